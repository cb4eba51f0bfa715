"""The answer in words: what was asked, how far to trust it, and what stands out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from gflowdag.data import Dataset
from gflowdag.display.digest import OPEN_SHARE, SURE, is_vouched_for
from gflowdag.display.orientation import OrientingEvidence
from gflowdag.display.trust import is_doubtful
from gflowdag.posterior.importance import MAXIMAL_PARETO_K, MINIMAL_ESS
from gflowdag.posterior.posterior import Posterior
from gflowdag.runtime.convergence import MAXIMAL_R_HAT, MINIMAL_EFFECTIVE_SAMPLES
from gflowdag.runtime.messages import counted

_PROBABLE = 0.75
_NAMED = 6  # edges that a sentence lists

VERDICTS = {
    "exact": (
        "Exact",
        "good",
        "Every possible graph was counted. These probabilities have no sampling error.",
    ),
    "trusted": ("Trusted", "good", "An approximation whose own checks passed."),
    "not converged": (
        "Not converged",
        "bad",
        "The checks failed. Do not draw conclusions from these numbers: run longer, or use another method.",
    ),
    "unverified": (
        "Unverified",
        "unsure",
        "This method has no check of its own. Compare it with another one before relying on it.",
    ),
}
_PARTLY_CHECKED = (
    "Unverified",
    "unsure",
    "Its own checks do not cover the whole posterior. Compare it with another method before relying on it.",
)

_OPENINGS = {  # kind of a pair: how its sentence begins, and what stands between the names
    "sure": ("Sure, direction included (90 % or more)", "→"),
    "directed": ("Surely connected, most likely in this direction", "→"),
    "assumed": ("Surely connected, direction assumed by the score and not learnt", "–"),
    "open": ("Surely connected, but the data leave the direction open", "–"),
    "probable": ("Probably connected (75 to 90 %)", "–"),
    "undecided": ("Undecided whether they are connected (25 to 75 %)", "–"),
}
_OPENINGS_OF_SAMPLES = {  # the same where nothing vouches for the samples
    "sure": ("In this direction in 90 % or more", "→"),
    "directed": ("Connected in 90 % or more, mostly in this direction", "→"),
    "assumed": ("Connected in 90 % or more, direction assumed by the score", "–"),
    "open": ("Connected in 90 % or more, in either direction", "–"),
    "probable": ("Connected in 75 to 90 %", "–"),
    "undecided": ("Connected in 25 to 75 %", "–"),
}


class Value(NamedTuple):
    """One number behind the verdict."""

    label: str
    value: str
    meaning: str
    passed: bool | None  # None where there is nothing to pass


def verdict(posterior: Posterior) -> tuple[str, str, str]:
    """Title, colour (`good`, `bad`, `unsure`) and one sentence of advice."""
    found = VERDICTS[posterior.diagnosis.verdict]
    # Checks may pass for what was considered and still say nothing about what a restriction left out.
    checked = any(value.passed is not None for value in values(posterior))
    return _PARTLY_CHECKED if found is VERDICTS["unverified"] and checked else found


def values(posterior: Posterior) -> list[Value]:
    """Evidence and diagnostics, each with what it means and whether it passed."""
    given = posterior.diagnosis
    exact = given.verdict == "exact"
    found = []
    if posterior.log_evidence is not None:
        error = posterior.log_evidence_error
        spread = f" ± {error:.2g}" if error else ""
        meaning = (
            "log of prior × likelihood, summed over all graphs; higher explains the data better (compare it "
            "under one prior only)"
        )
        found.append(
            Value("Log evidence", f"{posterior.log_evidence:.4f}{spread}".replace("-", "−"), meaning, None)
        )
    found.append(Value("Graphs sampled", f"{posterior.num_samples:,}", "on which this page is based", None))
    if (ess := _number(given.ess)) is not None and not exact:
        meaning, passed = "share of the samples that count as independent", None
        if given.effective_samples is None:  # weights; of chains the number counts, not the share
            meaning, passed = f"{meaning}; at least {MINIMAL_ESS:.0%} needed", ess >= MINIMAL_ESS
        found.append(Value("Effective sample size", f"{ess:.1%}", meaning, passed))
    if (k := _number(given.pareto_k)) is not None and not exact:
        meaning = f"do a few samples dominate the weights? at most {MAXIMAL_PARETO_K} needed"
        found.append(Value("Pareto k̂", f"{k:.2f}".replace("inf", "∞"), meaning, k <= MAXIMAL_PARETO_K))
    if (r_hat := _number(given.r_hat)) is not None:
        meaning = f"do the chains agree with each other? at most {MAXIMAL_R_HAT} needed"
        value = f"{r_hat:.3f}".replace("inf", "∞")  # chains that never leave different places
        found.append(Value("Largest R-hat", value, meaning, r_hat <= MAXIMAL_R_HAT))
    if (effective := _number(given.effective_samples)) is not None:
        meaning = f"of the least well estimated quantity; at least {MINIMAL_EFFECTIVE_SAMPLES} needed"
        enough = effective >= MINIMAL_EFFECTIVE_SAMPLES
        found.append(Value("Effective samples", f"{effective:,.0f}", meaning, enough))
    if (rate := _number(given.acceptance)) is not None:
        found.append(Value("Acceptance", f"{rate:.1%}", "proposed moves that were accepted", None))
    if (iterations := _number(given.iterations)) is not None:
        found.append(Value("Iterations", f"{iterations:,.0f}", "of training, or steps of each chain", None))
    if (seconds := _number(given.seconds)) is not None:
        found.append(Value("Time", f"{seconds:,.1f} s", "of computation", None))
    return found


def _number(value: float | Mapping[str, float] | None) -> float | None:
    """A single number that there is; rates of several kinds of move are none."""
    return None if value is None or isinstance(value, Mapping) or np.isnan(value) else float(value)


def question(posterior: Posterior, config: Mapping[str, Any], data: Dataset | None) -> str:
    """What was asked, in one sentence."""
    rows = f"the {data.num_rows:,} rows of " if data is not None else ""
    source = f"“{config['data']}”" if config.get("data") else "the table"
    prior = config.get("prior")
    has_prior = isinstance(prior, str) and posterior.diagnosis.uses_prior is not False
    given = f", with a {prior} prior over graphs" if has_prior else ""
    return (
        f"Which directed acyclic graphs over {counted(posterior.num_variables, 'variable')} could have "
        f"produced {rows}{source}{given}? Method: {posterior.method}."
    )


def assumptions(orienting: OrientingEvidence, data: Dataset | None) -> str:
    """What the probabilities take for granted."""
    shape = ""
    if data is not None and data.is_continuous:
        shape = "relations are linear with Gaussian noise, "
    elif data is not None and data.is_discrete:
        shape = "each variable is drawn from a table given its parents, "
    elif data is not None:
        shape = "relations between levels and numbers are those of the score, as the notes say, "
    prior = "no prior knowledge was given"
    if orienting.knowledge:
        prior = f"the knowledge {'that was given' if orienting.constraints is None else 'listed below'} holds"
    return (
        f"All probabilities hold under the model: {shape}there is no unmeasured common cause, no feedback, "
        f"and {prior}."
    )


def findings(posterior: Posterior) -> list[str]:
    """What stands out, a sentence each, the surest first; no pair is in two of them.

    Where nothing vouches for the samples, the sentences say what is in them, and not what is sure.
    """
    pairs = posterior.edge_table().to_dict(orient="records")
    if not pairs:
        return ["A single variable has no edges."]
    connected = [pair["probability"] + pair["reverse"] for pair in pairs]
    kinds = [_kind(pair["probability"], pair["reverse"], assumed=pair["assumed"]) for pair in pairs]
    apart = sum(p < 1 - SURE for p in connected)
    unconnected = f"{apart:,} {'pair is' if apart == 1 else 'pairs are'}"
    among = f"{counted(len(pairs), 'pair')} of variables"
    if is_vouched_for(posterior):
        openings = _OPENINGS
        first = (
            f"{sum(connected):.1f} edges are expected among {among}; {unconnected} very likely unconnected"
        )
        none_sure = "No edge is sure together with its direction (90 % or more)."
    else:
        openings = _OPENINGS_OF_SAMPLES
        first = f"{sum(connected):.1f} edges on average among {among}; {unconnected} unconnected"
        none_sure = "No edge has one direction in 90 % or more."
    if is_vouched_for(posterior) and is_doubtful(posterior):
        openings = {kind: (_conditional(opening), arrow) for kind, (opening, arrow) in openings.items()}
    sentences = [f"{first} (90 % or more)."]
    if "sure" not in kinds:
        sentences.append(none_sure)
    for kind, (opening, arrow) in openings.items():
        if found := [pair for pair, its_kind in zip(pairs, kinds, strict=True) if its_kind == kind]:
            sentences.append(f"{opening}: {_named(found, arrow)}.")
    return sentences


def _conditional(opening: str) -> str:
    """How a sentence begins where the table speaks against the model."""
    for sure in ("Surely connected", "Sure"):
        if opening.startswith(sure):
            return opening.replace(sure, f"{sure} if the model is right", 1)
    return opening


def _kind(probability: float, reverse: float, *, assumed: bool) -> str | None:
    """Which of `_OPENINGS` speaks of a pair, given its more probable direction and the other one."""
    connected = probability + reverse
    if assumed and connected >= SURE:
        return "assumed"
    if probability >= SURE:
        return "sure"
    if connected >= SURE:
        return "open" if reverse >= OPEN_SHARE * connected else "directed"
    if connected >= _PROBABLE:
        return "probable"
    return "undecided" if connected >= 1 - _PROBABLE else None


def _named(pairs: list[dict[Any, Any]], arrow: str) -> str:
    if arrow == "–":  # the table is sorted by direction, which does not count here
        pairs = sorted(pairs, key=lambda pair: pair["absent"])
    named = [f"{pair['source']} {arrow} {pair['target']}" for pair in pairs[:_NAMED]]
    return ", ".join(named) + (f" and {len(pairs) - _NAMED} more" if len(pairs) > _NAMED else "")
