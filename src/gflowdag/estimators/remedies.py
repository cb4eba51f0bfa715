"""What the remedies for a model that does not fit would change, where the exact posterior is quick."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gflowdag.data import Dataset
from gflowdag.estimators.cost import expected_rounds
from gflowdag.estimators.exact import ExactPosterior, seconds_of_exact
from gflowdag.posterior.posterior import Posterior

MOST_SECONDS = 1.0  # for one remedy, as estimated
_MOST_VARIABLES = 17  # where no estimate is known: a second for continuous columns


def with_remedies_tried(posterior: Posterior, data: Dataset, *, score: Any, prior: Any) -> Posterior:
    """The posterior with findings that say what their remedies change.

    Where the exact posterior takes longer than a second nothing is tried, and the findings say so. Under a
    remedy that makes a continuous table discrete the score is the default one.

    Args:
        posterior: the answer, with findings.
        data: its table.
        score: of the answer.
        prior: of the answer.
    """
    found = posterior.diagnosis.model_fit
    if found is None or not found.findings:
        return posterior
    seconds = seconds_of_exact(data) * expected_rounds(data)
    if data.missing is not None or data.num_variables > _MOST_VARIABLES or seconds > MOST_SECONDS:
        late = "not tried: an exact answer takes longer than a second"
        findings = tuple(
            replace(finding, tried=late) if finding.remedy else finding for finding in found.findings
        )
        return posterior.with_diagnostics(model_fit=replace(found, findings=findings))

    def refit(changed: Dataset) -> Posterior:
        same_kind = (changed.is_continuous, changed.is_discrete) == (data.is_continuous, data.is_discrete)
        learner = ExactPosterior(
            score=score if same_kind else "auto", prior=prior, num_samples=1, random_state=0
        )
        return learner.fit(changed).posterior_

    return posterior.with_diagnostics(model_fit=found.with_changes(posterior, data, refit))
