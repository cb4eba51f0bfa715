"""Three kinds of trust in a line each: is it computed right, does the model fit, are the arrows causes?"""

from __future__ import annotations

from typing import Literal, NamedTuple

from gflowdag.posterior.model_fit import ModelFit
from gflowdag.posterior.posterior import Posterior
from gflowdag.runtime.messages import counted
from gflowdag.runtime.place import Language

Colour = Literal["good", "bad", "unsure"]

_OF_VERDICT: dict[str, Colour] = {
    "exact": "good",
    "trusted": "good",
    "not converged": "bad",
    "unverified": "unsure",
}
_CAUSAL = (
    "An arrow is a cause only if there is no hidden common cause and no feedback, and rows are not a time "
    "series. None of these is handled, and no table can rule them out."
)
_DOUBTFUL = (
    "The probabilities hold only if the model is right, and the table speaks against it: an arrow can be "
    "wrong even at a probability of 1."
)


class TrustLine(NamedTuple):
    """One kind of trust."""

    aspect: str  # "Computed", "Modelled" or "Causal"
    state: str
    colour: Colour
    explanation: str


def trust_lines(posterior: Posterior) -> tuple[TrustLine, TrustLine, TrustLine]:
    """Computed, modelled, causal. The verdict of the method vouches for the first alone."""
    found = posterior.diagnosis
    computed = TrustLine(
        "Computed", found.verdict.capitalize(), _OF_VERDICT.get(found.verdict, "unsure"), found.explanation
    )
    return computed, _modelled(found.model_fit), TrustLine("Causal", "Assumed", "unsure", _CAUSAL)


def is_doubtful(posterior: Posterior) -> bool:
    """Whether the table speaks against the model: then no probability holds by itself, however sure."""
    fit = posterior.diagnosis.model_fit
    return fit is not None and bool(fit.findings)


def trust_in_lines(posterior: Posterior) -> list[str]:
    """What has to stand beside a single number: how it was computed, and what speaks against the model."""
    computed, modelled, _ = trust_lines(posterior)
    lines = [computed, modelled] if is_doubtful(posterior) else [computed]
    return [f"{line.state}: {line.explanation}" for line in lines]


def finding_sentences(posterior: Posterior, language: Language) -> tuple[str, ...]:
    """What speaks against the model, a sentence each, and what was not checked."""
    fit = posterior.diagnosis.model_fit
    if fit is None:
        return ()
    return (*sentences(fit, language), *fit.not_checked)


def sentences(fit: ModelFit, language: Language) -> list[str]:
    """The findings; a remedy that several share is said once, after the last of them, for all of them."""
    mending = [finding.mending(language) for finding in fit.findings]
    said = []
    for index, finding in enumerate(fit.findings):
        alike = [
            other.check for other, words in zip(fit.findings, mending, strict=True) if words == mending[index]
        ]
        if finding.remedy is None or len(alike) == 1:
            said.append(finding.sentence(language))
        elif mending[index] in mending[index + 1 :]:
            said.append(finding.what)
        else:
            said.append(f"{finding.what} {finding.mending(language, of=alike)}")
    return said


def _modelled(fit: ModelFit | None) -> TrustLine:
    if fit is None or not (fit.findings or fit.given_parents):
        return TrustLine("Modelled", "Not checked", "unsure", "Whether the data fit the model is not known.")
    if not fit.findings:
        return TrustLine(
            "Modelled",
            "No objection",
            "good",
            "Residuals given sampled parents show nothing that speaks against the model.",
        )
    named = ", ".join(
        f"{finding.check} in {counted(len(finding.columns), 'column')}" for finding in fit.findings
    )
    changes = [finding.change.size for finding in fit.findings if finding.change is not None]
    effect = f" Under a remedy an edge probability changes by up to {max(changes):.2f}." if changes else ""
    return TrustLine("Modelled", "Doubtful", "bad", f"{_DOUBTFUL} In this table: {named}.{effect}")
