"""Does the model fit? What a table, and what residuals given sampled parents, say against it."""

from __future__ import annotations

from gflowdag.posterior.model_fit.finding import Change, Finding, ModelFit, Remedy
from gflowdag.posterior.model_fit.residuals import check_residuals
from gflowdag.posterior.model_fit.tables import check_table

__all__ = ["Change", "Finding", "ModelFit", "Remedy", "check_residuals", "check_table"]
