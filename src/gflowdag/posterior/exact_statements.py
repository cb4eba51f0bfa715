"""Probabilities of statements by sums over all DAGs, where the posterior holds the scores of all parent sets.

Up to five variables every DAG is listed, and anything can be asked. Beyond, a statement is split by the edges
that it names until it is true, false, or one directed path: `A -> B or C -> D` is A → B, or no A → B and
C → D. Each part is one sum over the DAGs with these edges and without those, by the exact engine.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gflowdag import exact
from gflowdag.errors import KnowledgeError
from gflowdag.exact.size import estimated_seconds
from gflowdag.graph.bits import compress, parent_masks
from gflowdag.graph.closure import transitive_closure
from gflowdag.graph.enumeration import MAX_LISTED, all_dags
from gflowdag.posterior.statements import Adjacent, All, Any, Edge, Not, Path, Statement

_MOST_PARTS = 256  # of a statement that is split
_MOST_SECONDS = 120.0  # that its sums may take, by estimate


class _Part(NamedTuple):
    """Graphs with some edges and without others, in which the statement holds, or says that a path does."""

    required: NDArray[np.bool_]  # [d, d]
    forbidden: NDArray[np.bool_]  # [d, d]
    holds: bool  # with a path: whether it is to be there
    path: Path | None


def all_graphs(scores: NDArray[np.float64]) -> tuple[NDArray[np.bool_], NDArray[np.float64]] | None:
    """Every DAG with its probability, [n, d, d] and [n]; None beyond five variables.

    Args:
        scores: of all parent sets, float64 [d, 2^(d−1)], compressed index.
    """
    d = len(scores)
    if d > MAX_LISTED:
        return None
    graphs, nodes = all_dags(d), np.arange(d)
    log_weight = scores[nodes, compress(parent_masks(graphs), nodes)].sum(axis=1)
    weight = np.exp(log_weight - log_weight.max())
    return graphs[weight > 0], weight[weight > 0] / weight.sum()


def probability_of(scores: NDArray[np.float64], statement: Statement) -> float | None:
    """The probability that a statement holds; None where that is beyond the exact engine.

    Args:
        scores: of all parent sets, float64 [d, 2^(d−1)], compressed index.
        statement: what is asked.
    """
    listed = all_graphs(scores)
    if listed is not None:
        graphs, weight = listed
        return float(np.clip(weight @ statement.holds(graphs), 0, 1))
    return by_parts(scores, statement)


def by_parts(scores: NDArray[np.float64], statement: Statement) -> float | None:
    """The same by sums over the DAGs with some edges and without others."""
    parts = _parts(statement, len(scores))
    if parts is None:
        return None
    holds = [part for part in parts if part.holds or part.path is not None]
    fails = [part for part in parts if not part.holds]
    by_complement = len(fails) < len(holds) and all(part.path is None for part in parts)
    chosen = fails if by_complement else holds
    if (len(chosen) + 1) * estimated_seconds(len(scores)) > _MOST_SECONDS:
        return None
    total = exact.log_evidence(scores)
    found = sum(_weight(scores, part, total) for part in chosen)
    return float(np.clip(1 - found if by_complement else found, 0, 1))


def _weight(scores: NDArray[np.float64], part: _Part, total: float) -> float:
    """The probability of a part, and that its path is as it is to be."""
    try:
        given = exact.given_edges(scores, part.required, part.forbidden)
        if part.path is None:
            return float(np.exp(exact.log_evidence(given) - total))
        answer = exact.posterior(given, max_variables=len(scores))
    except KnowledgeError:  # no DAG is like this
        return 0.0
    path = float(answer.path_probabilities[part.path.source, part.path.target])
    return float(np.exp(answer.log_evidence - total)) * (path if part.holds else 1 - path)


def _parts(statement: Statement, d: int) -> list[_Part] | None:
    """Disjoint parts that together are all graphs; None where that is too many, or beyond the engine."""
    none = np.zeros((d, d), bool)
    left = [(statement, none, none)]
    parts: list[_Part] = []
    while left:
        asked, required, forbidden = left.pop()
        rest = _simplified(asked, required, forbidden)
        if isinstance(rest, bool):
            parts.append(_Part(required, forbidden, rest, None))
        elif (edge := _first_edge(rest)) is not None:
            i, j = edge
            left.append((rest, required, _with(forbidden, i, j)))
            left.append((rest, _with(required, i, j), _with(forbidden, j, i)))
        elif isinstance(rest, Path):
            parts.append(_Part(required, forbidden, True, rest))
        elif isinstance(rest, Not) and isinstance(rest.part, Path):
            parts.append(_Part(required, forbidden, False, rest.part))
        else:
            return None
        if len(parts) + len(left) > _MOST_PARTS:
            return None
    return parts


def _simplified(
    statement: Statement, required: NDArray[np.bool_], forbidden: NDArray[np.bool_]
) -> Statement | bool:
    """What is left of a statement in graphs with these edges and without those, bool [d, d]."""
    if isinstance(statement, Edge):
        i, j = statement.source, statement.target
        return True if required[i, j] else False if forbidden[i, j] else statement
    if isinstance(statement, Adjacent):
        i, j = statement.first, statement.second
        if required[i, j] or required[j, i]:
            return True
        if forbidden[i, j] or forbidden[j, i]:
            return _simplified(Edge(j, i) if forbidden[i, j] else Edge(i, j), required, forbidden)
        return statement
    if isinstance(statement, Path):
        reach = transitive_closure(required)
        i, j = statement.source, statement.target
        return True if reach[i, j] else False if reach[j, i] else statement
    if isinstance(statement, Not):
        part = _simplified(statement.part, required, forbidden)
        if isinstance(part, bool):
            return not part
        return part.part if isinstance(part, Not) else Not(part)
    if isinstance(statement, All | Any):
        decides = isinstance(statement, Any)  # one true member decides `or`, one false member `and`
        members = [_simplified(member, required, forbidden) for member in statement.members]
        if any(member is decides for member in members):
            return decides
        left = tuple(dict.fromkeys(member for member in members if not isinstance(member, bool)))
        if len(left) < 2:
            return left[0] if left else not decides
        return type(statement)(left)
    return statement


def _with(edges: NDArray[np.bool_], i: int, j: int) -> NDArray[np.bool_]:
    more = edges.copy()
    more[i, j] = True
    return more


def _first_edge(statement: Statement) -> tuple[int, int] | None:
    """An edge that the statement names."""
    for part in statement.parts():
        if isinstance(part, Edge):
            return part.source, part.target
        if isinstance(part, Adjacent):
            return part.first, part.second
    return None
