"""The short answer of a posterior, in words and rows: what a terminal and a notebook show of it."""

from __future__ import annotations

from typing import Any, NamedTuple

import pandas as pd

from gflowdag.display.truncate import truncated_names
from gflowdag.display.trust import TrustLine, finding_sentences, is_doubtful, trust_lines
from gflowdag.posterior.diagnostics import Diagnostics
from gflowdag.posterior.estimates import ROUNDING
from gflowdag.posterior.posterior import Posterior
from gflowdag.runtime.messages import counted
from gflowdag.runtime.place import Language

MAX_ROWS = 20
SURE = 0.9  # least probability of an edge that is called sure
OPEN_SHARE = 0.25  # of a connection: where the rarer direction has that much, the direction is open
_LEAST_PROBABILITY = 0.01
_DECIMALS = {"edges": 2, "shd": 2, "log_evidence": 2, "pareto_k": 2, "seconds": 1}  # three elsewhere
ASSUMED = " (assumed)"  # after an edge whose direction the score took for granted; a note says why
_NAME_WIDTH = 19  # columns of a variable's name


class Digest(NamedTuple):
    """What to say first about a posterior."""

    trust: tuple[TrustLine, ...]  # computed, modelled, causal
    size: str  # method, variables, graphs
    objections: tuple[str, ...]  # to the model, with remedies
    notes: tuple[str, ...]  # how it was made
    evidence: str | None
    titles: tuple[str, ...]  # of the columns of `rows`
    rows: tuple[tuple[str, ...], ...]  # the most probable edges
    closing: str  # what the rows leave out


def is_vouched_for(posterior: Posterior) -> bool:
    """Whether conclusions may be drawn: the verdict is `exact` or `trusted`."""
    return posterior.diagnosis.is_vouched_for


def digest(
    posterior: Posterior,
    *,
    rest: str,
    language: Language,
    max_rows: int = MAX_ROWS,
    name_width: int = _NAME_WIDTH,
) -> Digest:
    """The short answer: how far to trust it, the evidence, and the likely edges.

    Args:
        posterior: to be told about.
        rest: where the reader finds the other pairs.
        language: of the place where the reader is.
        max_rows: the most edges to list.
        name_width: columns that the name of a variable may take.
    """
    found = posterior.diagnosis
    verdict = found.verdict
    method = [] if posterior.method == verdict else [posterior.method]
    graphs = f"{counted(posterior.num_samples, 'graph')} drawn"
    size = [*method, counted(posterior.num_variables, "variable"), graphs]
    values = ("probability", "reverse", "absent", *(() if verdict == "exact" else ("error",)))
    pairs = _likely_pairs(posterior, max_rows)
    label = dict(zip(posterior.names, truncated_names(posterior.names, name_width), strict=True))
    return Digest(
        trust_lines(posterior),
        " · ".join(size),
        finding_sentences(posterior, language),
        tuple(_notes(found)),
        _evidence(posterior),
        ("edge", *("± error" if name == "error" else name for name in values)),
        tuple((_edge(pair, label), *(_cell(pair[name], name, found) for name in values)) for pair in pairs),
        _closing(posterior, len(pairs), rest),
    )


def value_text(value: Any, column: str) -> str:
    """An entry of `Comparison.table()` as text."""
    if isinstance(value, str):
        return value
    return "–" if pd.isna(value) else f"{value:.{_DECIMALS.get(column, 3)}f}"


def _likely_pairs(posterior: Posterior, max_rows: int) -> list[dict[Any, Any]]:
    rows = posterior.edge_table().head(max_rows).to_dict(orient="records")
    return [row for row in rows if row["probability"] >= _LEAST_PROBABILITY]


def _edge(pair: dict[Any, Any], label: dict[str, str]) -> str:
    return f"{label[pair['source']]} → {label[pair['target']]}{ASSUMED if pair['assumed'] else ''}"


def _cell(value: float, column: str, found: Diagnostics) -> str:
    """A value of a row of edges. No error is said to be 0.000, and chains that did not mix have none."""
    if column != "error":
        return f"{value:.3f}"
    if not found.has_errors:
        return "–"
    return "<0.001" if value < 0.0005 else f"{value:.3f}"


def _evidence(posterior: Posterior) -> str | None:
    if posterior.log_evidence is None:
        return None
    error = posterior.log_evidence_error
    return f"Log evidence {posterior.log_evidence:.4f}" + (f" ± {error:.2g}" if error else "")


def _closing(posterior: Posterior, num_shown: int, rest: str) -> str:
    p = posterior.edge_probabilities().to_numpy()
    likely = int((p > 0.5 + ROUNDING).sum())
    hidden = p.shape[0] * (p.shape[0] - 1) // 2 - num_shown
    sentence = f"{p.sum():.2f} edges expected; {likely} more likely than not."
    if not is_vouched_for(posterior):
        sentence = f"{p.sum():.1f} edges on average in the samples; {likely} in more than half of them."
    if hidden:
        sentence += f" {hidden} less probable {'pair is' if hidden == 1 else 'pairs are'} in {rest}."
    if is_doubtful(posterior):
        sentence += " All of this holds only if the model is right, and the table speaks against it."
    return sentence


def _notes(found: Diagnostics) -> list[str]:
    is_news = found.chosen and found.verdict != "exact"
    return ([f"Method chosen: {found.chosen}."] if is_news else []) + list(found.notes)
