"""The probability of anything that can be said about a graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import pandas as pd  # pyright: ignore[reportMissingTypeStubs]
from numpy.typing import NDArray

from gflowdag.errors import DataError
from gflowdag.graph.bits import graph_keys
from gflowdag.graph.closure import transitive_closure
from gflowdag.posterior.diagnostics import Diagnostics, Verdict
from gflowdag.posterior.posterior import Posterior
from gflowdag.posterior.statement_language import parse_statement
from gflowdag.posterior.statements import Adjacent, Edge, Not, Path, Statement
from gflowdag.runtime.messages import counted

Feature: TypeAlias = str | Callable[[pd.DataFrame], bool]
"""A statement such as `"A -> B and not A ~> C"`, or a function of a graph, bool frame [source, target]."""


@dataclass(frozen=True)
class FeatureProbability:
    """How probable a feature of the graph is.

    Attributes:
        statement: what was asked; the name of the function where it was one.
        probability: its posterior probability.
        error: Monte-Carlo standard error of that; zero where it is exact.
        exact: whether no sampling is in it: of an exact posterior, edges and all that is made of them, single
            paths, and up to five variables everything.
        verdict: how far to trust the posterior as a whole.
        assumed: edges in the statement, or on its paths, whose direction is assumed by the score and was not
            learnt, as pairs of names.
    """

    statement: str
    probability: float
    error: float
    exact: bool
    verdict: Verdict
    assumed: tuple[tuple[str, str], ...] = ()

    def __float__(self) -> float:
        return self.probability


def feature_probability(posterior: Posterior, feature: Feature) -> FeatureProbability:
    """The probability of `feature`; see `Posterior.probability`."""
    found = posterior.diagnosis
    if not isinstance(feature, str):
        name = getattr(feature, "__name__", type(feature).__name__)
        p = _over_all_graphs(posterior, feature)
        if p is not None:
            return FeatureProbability(name, p, 0.0, True, found.verdict)
        p, error = _by_counting(posterior, _evaluate(posterior.names, posterior.samples, feature))
        return FeatureProbability(name, p, error, False, found.verdict)
    statement = parse_statement(feature, posterior.names)
    known = _without_counting(posterior, statement) or _over_all(posterior, statement)
    p, error = known or _by_counting(posterior, statement.holds(posterior.samples))
    exact = known is not None and found.verdict == "exact" and error == 0
    return FeatureProbability(feature, p, error, exact, found.verdict, _assumed(posterior, statement))


def condition_on(posterior: Posterior, feature: Feature) -> Posterior:
    """The posterior given that `feature` holds; see `Posterior.given`."""
    holds = samples_with(posterior, feature) & (posterior.weights > 0)
    number = int(holds.sum())
    if not number:
        raise DataError(
            f"None of the {counted(posterior.num_samples, 'sampled graph')} has this feature: nothing can be "
            "said of the others. Draw more samples, or require it as knowledge in a new fit."
        )
    before = posterior.diagnosis
    verdict: Verdict = "trusted" if before.verdict == "exact" else before.verdict
    about = feature if isinstance(feature, str) else "the given feature"
    independent = before.independent_samples or before.effective_samples
    best = None if posterior.log_scores is None else float(posterior.log_scores[holds].max())
    return replace(
        posterior,
        samples=posterior.samples[holds],
        log_weights=posterior.log_weights[holds],
        log_scores=None if posterior.log_scores is None else posterior.log_scores[holds],
        marginals=None,
        path_marginals=None,
        best_graph=None,
        log_evidence=None,
        log_evidence_error=None,
        local_scores=None,
        imputed_cells=None if posterior.imputed_cells is None else posterior.imputed_cells.of_samples(holds),
        diagnosis=Diagnostics(
            verdict,
            f"The {counted(number, 'sampled graph')} of {posterior.num_samples:,} in which this holds: "
            f"{about}. Of all samples: {before.explanation}",
            notes=before.notes,
            chosen=before.chosen,
            interventional=before.interventional,
            knowledge=before.knowledge,
            uses_prior=before.uses_prior,
            r_hat=before.r_hat,
            independent_samples=None if independent is None else independent * number / posterior.num_samples,
            best_log_score=best,
            assumed_directions=before.assumed_directions,
            model_fit=before.model_fit,
        ),
    )


def samples_with(posterior: Posterior, feature: Feature) -> NDArray[np.bool_]:
    """The samples in which `feature` holds, bool [n]."""
    if isinstance(feature, str):
        return parse_statement(feature, posterior.names).holds(posterior.samples)
    return _evaluate(posterior.names, posterior.samples, feature)


def _over_all(posterior: Posterior, statement: Statement) -> tuple[float, float] | None:
    """The exact probability of a statement, and no error; None where it is not to be had."""
    if posterior.local_scores is None or posterior.diagnosis.verdict != "exact":
        return None
    from gflowdag.posterior.exact_statements import probability_of

    p = probability_of(posterior.local_scores, statement)
    return None if p is None else (p, 0.0)


def _over_all_graphs(posterior: Posterior, feature: Callable[[pd.DataFrame], bool]) -> float | None:
    """The exact probability of a function of a graph; None where not all graphs can be listed."""
    if posterior.local_scores is None or posterior.diagnosis.verdict != "exact":
        return None
    from gflowdag.posterior.exact_statements import all_graphs

    listed = all_graphs(posterior.local_scores)
    if listed is None:
        return None
    graphs, weight = listed
    return float(np.clip(weight @ _evaluate(posterior.names, graphs, feature), 0, 1))


def _evaluate(
    names: Sequence[str], graphs: NDArray[np.bool_], feature: Callable[[pd.DataFrame], bool]
) -> NDArray[np.bool_]:
    """Of which graphs a function is true, bool [n]; each distinct graph is asked for once."""
    _, first, inverse = np.unique(graph_keys(graphs), return_index=True, return_inverse=True)
    names = list(names)
    values: list[object] = [
        feature(pd.DataFrame(graph.copy(), index=names, columns=names)) for graph in graphs[first]
    ]
    if unusable := [value for value in values if not isinstance(value, bool | np.bool_)]:
        raise DataError(
            f"The function gave {unusable[0]!r} for a graph: it must say True or False of every graph."
        )
    return np.array(values, dtype=bool)[inverse.reshape(-1)]


def _by_counting(posterior: Posterior, holds: NDArray[np.bool_]) -> tuple[float, float]:
    """Probability and Monte-Carlo error by the samples in which it `holds`, bool [n]."""
    p = np.clip(posterior.weights @ holds / posterior.weights.sum(), 0, 1)
    return float(p), float(posterior.standard_errors(holds))


def _without_counting(posterior: Posterior, statement: Statement) -> tuple[float, float] | None:
    """Probability and error of what the method knows better than its samples; None where it knows no better.

    These are the values of `edge_table` and `path_probabilities`, so that the answers agree.
    """
    if isinstance(statement, Not):
        known = _without_counting(posterior, statement.part)
        return known and (1 - known[0], known[1])
    if isinstance(statement, Path) and posterior.path_marginals is not None:
        i, j = statement.source, statement.target
        return float(posterior.path_marginals[i, j]), float(posterior.path_errors()[i, j])
    if posterior.marginals is None:
        return None
    p, error = posterior.marginals, posterior.edge_errors()
    if isinstance(statement, Edge):
        i, j = statement.source, statement.target
        return float(p[i, j]), float(error[i, j])
    if isinstance(
        statement, Adjacent
    ):  # the two directions exclude each other, so this is no less than theirs
        i, j = statement.first, statement.second
        return float(min(p[i, j] + p[j, i], 1)), float(np.hypot(error[i, j], error[j, i]))
    return None


def _assumed(posterior: Posterior, statement: Statement) -> tuple[tuple[str, str], ...]:
    """The edges with an assumed direction that bear on a statement."""
    assumed = posterior.diagnosis.assumed_directions
    if assumed is None:
        return ()
    relevant = np.zeros_like(assumed)
    reach: NDArray[np.bool_] | None = None
    for part in statement.parts():
        if isinstance(part, Edge):
            relevant[part.source, part.target] = relevant[part.target, part.source] = True
        elif isinstance(part, Path):
            if reach is None:
                reach = transitive_closure(posterior.samples) | np.eye(posterior.num_variables, dtype=bool)
            on_path = reach[:, part.source, :, None] & posterior.samples & reach[:, None, :, part.target]
            relevant |= on_path.any(axis=0)
    edges = np.argwhere(assumed & relevant)
    return tuple((posterior.names[int(i)], posterior.names[int(j)]) for i, j in edges)
