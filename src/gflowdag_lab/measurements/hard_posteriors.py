"""Small posteriors that are hard to sample: separated modes, barriers, near-deterministic relations.

Each family is a function of a random generator and a number of variables. What it gives is a table, and a
score where the posterior is not that of the table.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import gflowdag as gd
from gflowdag.errors import DataError
from gflowdag.graph import erdos_renyi
from gflowdag.score import make_score

SHARE_OF_PAIRS = 0.75  # that have an edge in the graphs behind the tables
_MOST_TRIES = 100  # to draw a table that is not refused


class Hard(NamedTuple):
    """A table, and the score of its graphs."""

    data: gd.Dataset
    score: str | gd.LocalScore = "auto"


@dataclass
class TableScore(gd.LocalScore):
    """Local scores that are given, float64 [d, 2^d]; bit `i` of an index is parent `i`."""

    values: NDArray[np.float64]

    def local(self, node: int, parents: NDArray[np.bool_], /) -> NDArray[np.float64]:
        return self.values[node, parents @ (1 << np.arange(self.num_variables))]

    def __repr__(self) -> str:
        return f"TableScore({hash(self.values.tobytes())})"


def parity(rng: np.random.Generator, d: int) -> Hard:
    """A column is the parity of two or more others, up to some noise: no part of them shows it."""
    rows = int(rng.choice([100, 300, 1000]))
    codes = rng.integers(0, 2, (rows, d))
    members = rng.permutation(d)[: rng.integers(3, d + 1)]
    flips = rng.random(rows) < rng.choice([0.0, 0.02, 0.1])
    codes[:, members[0]] = codes[:, members[1:]].sum(axis=1) % 2 ^ flips
    return Hard(gd.Dataset.from_array(codes, kinds="discrete"))


def near_deterministic(rng: np.random.Generator, d: int) -> Hard:
    """Each column all but follows from others: linear with noise of a hundredth, or copies with few flips."""
    rows = int(rng.choice([30, 100, 300]))
    graph = erdos_renyi(d, SHARE_OF_PAIRS * d * (d - 1) / 2, rng)
    if rng.random() < 0.5:
        noise = rng.choice([0.003, 0.01, 0.03], d) * rng.normal(size=(rows, d))
        return Hard(gd.Dataset.from_array(_linear(graph, noise, rng)))
    codes = rng.integers(0, 2, (rows, d))
    for node in _ancestors_first(graph):
        flips = rng.random(rows) < 0.02
        if graph[:, node].any():
            codes[:, node] = codes[:, graph[:, node]].max(axis=1) ^ flips
    return Hard(gd.Dataset.from_array(codes, kinds="discrete"))


def permuted_interventions(rng: np.random.Generator, d: int) -> Hard:
    """Half of the rows are said to be of interventions, on columns that were not the ones set."""
    rows = int(rng.choice([100, 500, 2000]))
    graph = erdos_renyi(d, SHARE_OF_PAIRS * d * (d - 1) / 2, rng)
    target = np.where(rng.random(rows) < 0.5, rng.integers(0, d, rows), d)
    mask = target[:, None] == np.arange(d)
    values = rng.normal(size=(rows, d))
    weights = rng.uniform(0.5, 1.5, (d, d)) * rng.choice([-1, 1], (d, d)) * graph
    for node in _ancestors_first(graph):
        values[:, node] += np.where(mask[:, node], 2.0, values @ weights[:, node])
    told = mask[:, rng.permutation(d)]
    if rng.random() < 0.5:
        return Hard(gd.Dataset.from_array(values, interventions=told))
    codes = (values > np.median(values, axis=0)).astype(int)
    return Hard(gd.Dataset.from_array(codes, kinds="discrete", interventions=told))


def huge_table(rng: np.random.Generator, d: int) -> Hard:
    """A hundred thousand rows: classes of graphs lie thousands of nats apart; some edges are faint.

    The local scores of the table stand for it: reading it again in every fit would take most of the time.
    """
    rows = 100_000
    graph = erdos_renyi(d, SHARE_OF_PAIRS * d * (d - 1) / 2, rng)
    values = _linear(graph, rng.normal(size=(rows, d)), rng, least=0.003)
    if rng.random() < 0.5:
        data = gd.Dataset.from_array(values)
    else:
        data = gd.Dataset.from_array((values > 0).astype(int), kinds="discrete")
    score, parents = make_score(data).likelihood, _all_sets(d)
    scores = np.zeros((d, 1 << d))
    for node in range(d):
        without = ~parents[:, node]
        scores[node, without] = score.local(node, parents[without])
    return Hard(_any_table(rng, d), TableScore(scores))


def two_modes(rng: np.random.Generator, d: int) -> Hard:
    """Two random graphs with alike probability, and a loss for every parent that is added or missing."""
    modes = np.stack([erdos_renyi(d, d * (d - 1) / 4, rng) for _ in range(2)])
    loss = np.exp(rng.uniform(np.log(1), np.log(20)))
    parents = _all_sets(d)  # [2^d, d]
    differs = (parents[None, :, None, :] != modes.swapaxes(1, 2)[:, None]).sum(axis=-1)  # [2, 2^d, d]
    gains = rng.normal(scale=1 / np.sqrt(d), size=(2, 1, d))
    values = (gains - loss * differs).max(axis=0).T + rng.normal(scale=0.3, size=(d, 1 << d))
    return Hard(_any_table(rng, d), TableScore(values))


def rugged(rng: np.random.Generator, d: int) -> Hard:
    """Every parent set has a score of its own, independent of all others."""
    scale = np.exp(rng.uniform(np.log(1), np.log(30)))
    return Hard(_any_table(rng, d), TableScore(rng.normal(scale=scale, size=(d, 1 << d))))


def needle(rng: np.random.Generator, d: int) -> Hard:
    """One complete graph behind a barrier, against many sparse graphs: its basin has no share of its mass.

    No chain of small steps can know of it. This family is the known limit of chains, counted by itself.
    """
    order = rng.permutation(d)
    parents = _all_sets(d)
    sizes = parents.sum(axis=1)
    barrier = np.exp(rng.uniform(np.log(2), np.log(20)))
    values = np.where(sizes <= 1, 0.0, -barrier)[None].repeat(d, axis=0)
    gain = (d - 1) * np.log(d + 1) + rng.uniform(-2, 2)  # log of the number of rooted forests
    for place in range(2, d):
        before = np.zeros(d, bool)
        before[order[:place]] = True
        values[order[place], before @ (1 << np.arange(d))] = gain / (d - 2)
    return Hard(_any_table(rng, d), TableScore(values))


def both_kinds(rng: np.random.Generator, d: int) -> Hard:
    """Columns of both kinds, with edges in all directions and the default score."""
    rows = int(rng.choice([50, 100, 300]))
    return Hard(gd.Dataset.from_frame(gd.simulate.mixed(d, rows, edges_per_node=1.0, random_state=rng).frame))


FAMILIES: dict[str, Callable[[np.random.Generator, int], Hard]] = {
    family.__name__.replace("_", "-"): family
    for family in (parity, near_deterministic, permuted_interventions, huge_table, two_modes, rugged, needle)
}
ENUMERATED = FAMILIES | {"both-kinds": both_kinds}  # not hard: compared with the sum over every graph only


@lru_cache(maxsize=32)
def hard_posterior(family: str, seed: int, d: int) -> Hard:
    """The `seed`-th problem of a family; tables with copies of a column are refused, and drawn again."""
    rng = np.random.default_rng([*family.encode(), seed, d])
    for _ in range(_MOST_TRIES - 1):
        with suppress(DataError):
            return ENUMERATED[family](rng, d)
    return ENUMERATED[family](rng, d)


@lru_cache(maxsize=32)
def exact_edges(family: str, seed: int, d: int) -> NDArray[np.float64]:
    """Exact edge probabilities of a problem, [d, d]."""
    exact = fit(gd.ExactPosterior, hard_posterior(family, seed, d), num_samples=1, random_state=0)
    return exact.edge_probabilities().to_numpy()


def fit(method: type[Any], problem: Hard, **options: Any) -> gd.Posterior:
    """What a method says of a problem."""
    return method(score=problem.score, **options).fit(problem.data).posterior_


def _linear(
    graph: NDArray[np.bool_], noise: NDArray[np.float64], rng: np.random.Generator, least: float = 0.3
) -> NDArray[np.float64]:
    """Values of a linear model, weights from `least` to 1.5 in size."""
    sizes = np.exp(rng.uniform(np.log(least), np.log(1.5), graph.shape))
    weights = graph * sizes * rng.choice([-1, 1], graph.shape)
    values = noise.copy()
    for node in _ancestors_first(graph):
        if not graph[:, node].any():
            values[:, node] /= noise[:, node].std()
        values[:, node] += values @ weights[:, node]
    return values


def _ancestors_first(graph: NDArray[np.bool_]) -> list[int]:
    """Nodes in an order in which parents come before their children."""
    placed: list[int] = []
    while len(placed) < len(graph):
        left = [node for node in range(len(graph)) if node not in placed]
        placed += [node for node in left if not graph[left, node].any()]
    return placed


def _all_sets(d: int) -> NDArray[np.bool_]:
    return (np.arange(1 << d)[:, None] >> np.arange(d) & 1).astype(bool)


def _any_table(rng: np.random.Generator, d: int) -> gd.Dataset:
    """A table for scores that do not look at it."""
    return gd.Dataset.from_array(rng.normal(size=(20, d)))
