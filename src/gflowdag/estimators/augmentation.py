"""Tables with gaps: graphs and missing cells drawn in turn, by several chains, until they agree.

A round of a chain draws a graph given its completed table, then the missing cells given the graph (data
augmentation, Tanner & Wong 1987). The graphs, or their edge probabilities given each completed table, are
those of the posterior given what was observed. That holds for any score that can draw cells, and for any step
that leaves the posterior of the completed table as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gflowdag.data import Dataset
from gflowdag.mcmc.scattered import scattered_graphs
from gflowdag.mcmc.unrestricted.run import Verdict, agreement
from gflowdag.runtime.deadline import Deadline
from gflowdag.runtime.progress import Progress
from gflowdag.score import Score
from gflowdag.score.missing_cells import CellDraws, start_at_random

NUM_CHAINS = 4
FEWEST_ROUNDS = 50  # of a chain, before it is judged
MOST_ROUNDS = 4000  # where nobody says how many
_MOST_NUMBERS = 1 << 26  # kept as edge probabilities of all rounds; many variables have fewer rounds
_LATER = 1.25  # chains are judged again when they are that much longer
LONGEST = 1800.0  # seconds that a fit takes at most where nobody has set a budget
_SCATTERING = 3  # draws of the cells given a random graph, to begin with
_MOST_KEPT = 128  # completed tables of a chain; then every second is forgotten
_LEFT_OUT = 4  # one part in so many, at the beginning


@dataclass(frozen=True)
class Augmentation:
    """A table with gaps, and how it is completed and scored."""

    data: Dataset
    draws: CellDraws
    make_score: Callable[[Dataset], Score]

    @property
    def missing(self) -> NDArray[np.bool_]:
        """Which cells are missing, bool [n, d]."""
        assert self.data.missing is not None
        return self.data.missing

    def completed(self, values: NDArray[np.float64]) -> Dataset:
        """The data set with these values."""
        return replace(self.data, values=values.copy())

    def score(self, values: NDArray[np.float64]) -> Score:
        """The score of a completed table."""
        return self.make_score(self.completed(values))

    def filled(self) -> NDArray[np.float64]:
        """Some completion, for what does not depend on the missing cells."""
        return start_at_random(self.data, np.random.default_rng(0))

    def starts(self, num_chains: int, seed: int) -> list[NDArray[np.float64]]:
        """Scattered completions: cells as random graphs predict them, which differ from chain to chain."""
        rng = np.random.default_rng(seed)
        tables = [start_at_random(self.data, rng) for _ in range(num_chains)]
        graphs = scattered_graphs(self.score(tables[0]), num_chains, seed)
        for number, graph in enumerate(graphs):
            for _ in range(_SCATTERING):
                tables[number] = self.draw(tables[number], graph, self.score(tables[number]), rng)
        return tables

    def draw(
        self, values: NDArray[np.float64], graph: NDArray[np.bool_], score: Score, rng: np.random.Generator
    ) -> NDArray[np.float64]:
        """The missing cells anew, given a graph; `score` is that of `values`."""
        return self.draws(values, graph, score.likelihood, rng)


class Step(NamedTuple):
    """What was drawn or computed given one completed table."""

    graphs: NDArray[np.bool_]  # [k, d, d], draws; the last is where the chain goes on
    edges: NDArray[np.float64]  # [d, d], edge probabilities
    log_score: float  # of the graph, or of the table
    paths: NDArray[np.float64] | None = None  # [d, d], probabilities of directed paths


DrawGraphs = Callable[[Score, int, np.random.Generator], Step]
"""From the score of a completed table and the number of the chain."""


@dataclass
class Chain:
    """A completed table on its way."""

    values: NDArray[np.float64]
    rng: np.random.Generator
    edges: list[NDArray[np.float32]] = field(default_factory=list)
    log_scores: list[float] = field(default_factory=list)
    paths: list[NDArray[np.float32]] = field(default_factory=list)
    kept: list[tuple[int, NDArray[np.float64], NDArray[np.bool_]]] = field(default_factory=list)
    every: int = 1  # how many rounds lie between two that are kept

    def go_on(self, augmentation: Augmentation, number: int, draw_graphs: DrawGraphs) -> None:
        """One round."""
        score = augmentation.score(self.values)
        step = draw_graphs(score, number, self.rng)
        round_number = len(self.edges)
        self.edges.append(step.edges.astype(np.float32))
        self.log_scores.append(step.log_score)
        if step.paths is not None:
            self.paths.append(step.paths.astype(np.float32))
        if round_number % self.every == 0:
            self.kept.append((round_number, self.values[augmentation.missing], step.graphs))
            if len(self.kept) > _MOST_KEPT:
                self.kept, self.every = self.kept[::2], 2 * self.every
        self.values = augmentation.draw(self.values, step.graphs[-1], score, self.rng)


class Completions(NamedTuple):
    """What the chains found."""

    edges: NDArray[np.float64]  # [d, d], probabilities
    errors: NDArray[np.float64]  # [d, d], their Monte-Carlo errors
    paths: NDArray[np.float64] | None  # [d, d], probabilities of directed paths, where the steps give them
    cells: NDArray[np.float64]  # [c, m], missing cells of completed tables that were kept, row by row
    graphs: NDArray[np.bool_]  # [c, k, d, d], drawn given each of them
    verdict: Verdict
    between_share: float | None  # of the variance of edges, that between completed tables
    traces: NDArray[np.float64]  # [chains, rounds]
    num_rounds: int  # of all chains together, those at the beginning left out
    share_done: float


def run(
    augmentation: Augmentation,
    draw_graphs: DrawGraphs,
    *,
    seed: int,
    starts: list[NDArray[np.float64]],
    num_rounds: int | None,
    deadline: Deadline,
    max_error: float,
    progress: Progress,
) -> Completions:
    """Chains of completed tables until they agree.

    Args:
        augmentation: the table.
        draw_graphs: a step over graphs given a completed table.
        seed: of the chains.
        starts: where each chain begins.
        num_rounds: of each chain; None until they agree, or as many as there is room for.
        deadline: the end of the time there is.
        max_error: the largest Monte-Carlo error of an edge probability at which they stop.
        progress: told how far they are.
    """
    randoms = np.random.default_rng(seed).spawn(len(starts))
    chains = [Chain(values, rng) for values, rng in zip(starts, randoms, strict=True)]
    most = int(np.clip(_MOST_NUMBERS // (len(chains) * augmentation.data.num_variables**2), 200, MOST_ROUNDS))
    planned = num_rounds or most
    done, due = 0, FEWEST_ROUNDS
    while True:
        for number, chain in enumerate(chains):
            chain.go_on(augmentation, number, draw_graphs)
        done += 1
        over = done >= planned or (deadline.has_passed and done >= _LEFT_OUT * 4)
        if over or (num_rounds is None and done >= due):
            due = int(_LATER * done)
            edges, errors, verdict = judged(chains)
            progress(done, planned, r_hat=verdict.r_hat, error=verdict.error)
            if over or (verdict.trusted and verdict.error <= max_error):
                break
        else:
            progress(done, planned)
    is_enough = num_rounds is None and verdict.trusted
    return _summary(chains, edges, errors, verdict, 1.0 if is_enough else done / planned)


def judged(chains: list[Chain]) -> tuple[NDArray[np.float64], NDArray[np.float64], Verdict]:
    """Edge probabilities, their errors and whether the chains agree, by all but the first rounds."""
    first = len(chains[0].edges) // _LEFT_OUT
    edges = np.array([chain.edges[first:] for chain in chains])
    log_scores = np.array([chain.log_scores[first:] for chain in chains])
    return agreement(edges, log_scores, frozen_is_one_sample=False)


def _summary(
    chains: list[Chain],
    edges: NDArray[np.float64],
    errors: NDArray[np.float64],
    verdict: Verdict,
    share_done: float,
) -> Completions:
    rounds = len(chains[0].edges)
    first = rounds // _LEFT_OUT
    kept = [one for chain in chains for one in chain.kept if one[0] >= first]
    given = np.array([chain.edges[first:] for chain in chains], np.float64)
    total = (edges * (1 - edges)).sum()
    paths = [one for chain in chains for one in chain.paths[first:]]
    return Completions(
        edges,
        errors,
        np.asarray(np.mean(paths, axis=0), np.float64) if paths else None,
        np.array([cells for _, cells, _ in kept]),
        np.array([graphs for _, _, graphs in kept]),
        verdict,
        None if not paths else float(given.var(axis=(0, 1)).sum() / total) if total > 0 else 0.0,
        np.array([chain.log_scores for chain in chains]),
        len(chains) * (rounds - first),
        share_done,
    )
