"""What the error of the edge probabilities does to a verdict."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from gflowdag.posterior.diagnostics import Diagnostics
from gflowdag.runtime.convergence import MAXIMAL_ERROR


def downgrade_if_imprecise(diagnostics: Diagnostics, errors: NDArray[np.float64]) -> Diagnostics:
    """Keep the errors, and lower the verdict where one is too large.

    Chains that agree and weights that vouch for themselves say that nothing is missed. 400 effective samples
    still leave an edge probability uncertain by 0.025, and one in twenty edges wrong by twice that.

    Args:
        diagnostics: the verdict of chains or weights.
        errors: Monte-Carlo standard errors of the edge probabilities, float64 [d, d].
    """
    diagnostics = replace(diagnostics, edge_errors=errors)
    largest = float(errors.max())
    if diagnostics.verdict != "trusted" or largest <= MAXIMAL_ERROR:
        return diagnostics
    return replace(
        diagnostics,
        verdict="not converged",
        explanation=f"{diagnostics.explanation} But an edge probability has a Monte-Carlo error of "
        f"{largest:.3f} ({MAXIMAL_ERROR} or less is needed): run longer chains, draw more samples or train "
        "longer.",
    )
