"""Whether stated probabilities are frequencies, on tables drawn from a score's own prior.

Given the table, the true graph and independent graphs of the right posterior are exchangeable. Both tests
rest on that alone:

- *Reliability.* Edges are sorted into ten bins by their stated probability. In bin b let D_b be the number of
  edges that are there less the sum of their probabilities p, and V_b the sum of p (1 − p). The statistic
  Σ_b D_b²/V_b of the true graphs is compared with that of posterior draws in the place of the true graphs,
  whose D_b is around the mean of the draws. So dependence among the edges of one table does no harm.
- *Ranks* (simulation-based calibration): the rank of a summary of the true graph among those of posterior
  draws, ties at random, is uniform. Tested by Kolmogorov and Smirnov.

A table that is refused, say because a column is constant, is drawn again with its graph: that depends on the
table alone and disturbs neither test.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

import gflowdag as gd
from gflowdag import Dataset, exact, simulate
from gflowdag.errors import DataError, ScoreError
from gflowdag.graph import transitive_closure
from gflowdag.score import Score, UnboundScore, make_score
from gflowdag_lab.measurements.harness import Row

BINS = 10
RANKS = ("edges", "ancestors", "arrow", "log_score")
TESTS = ("reliability", *RANKS)


@dataclass(frozen=True)
class Setting:
    """Where tables come from and how they are fitted."""

    name: str
    drawn_by: UnboundScore
    num_rows: int
    num_variables: int = 5
    num_levels: int | tuple[int, ...] = 0
    prior: str = "fair"
    fitted_by: UnboundScore | None = None  # None: `drawn_by`
    fitted_prior: str | None = None  # None: `prior`
    standardize: bool = False


class Table(NamedTuple):
    data: Dataset
    truth: np.ndarray  # bool [d, d]
    fitted_by: UnboundScore
    score: Score


class Answer(NamedTuple):
    edges: np.ndarray  # float64 [d, d], stated probabilities
    graphs: np.ndarray  # bool [n, d, d], posterior draws


Answerer = Callable[[Table, np.random.Generator], Answer]


def tables(setting: Setting, num_tables: int, seed: int) -> Iterator[Table]:
    """Tables of the setting's prior; one that is refused is drawn again."""
    for number in range(num_tables):
        rng = np.random.default_rng([seed, number])
        while True:
            try:
                yield _table(setting, rng)
                break
            except (DataError, ScoreError):
                continue


def _table(setting: Setting, rng: np.random.Generator) -> Table:
    drawn = simulate.from_prior(
        setting.num_variables,
        setting.num_rows,
        score=setting.drawn_by,
        prior=setting.prior,
        num_levels=setting.num_levels,
        random_state=rng,
    )
    data = Dataset.from_frame(drawn.frame, standardize=setting.standardize)
    fitted = setting.fitted_by or setting.drawn_by
    score = make_score(data, score=fitted, prior=setting.fitted_prior or setting.prior)
    return Table(data, drawn.truth.to_numpy(), fitted, score)


def exactly(num_draws: int) -> Answerer:
    """The exact posterior with so many independent draws."""

    def answer(table: Table, rng: np.random.Generator) -> Answer:
        scores = table.score.dense_table()
        posterior = exact.posterior(scores)
        return Answer(posterior.edge_probabilities, exact.sample(scores, num_draws, rng, exact=posterior))

    return answer


def by_method(method: str, num_draws: int, **options: Any) -> Answerer:
    """What `gd.fit` answers by a method."""

    def answer(table: Table, rng: np.random.Generator) -> Answer:
        posterior = gd.fit(
            table.data,
            method=method,
            score=table.fitted_by,
            prior=table.score.prior,
            standardize=False,
            num_samples=num_draws,
            random_state=rng,
            **options,
        )
        edges = posterior.edge_probabilities().to_numpy()
        if np.ptp(posterior.log_weights) > 0:
            posterior = posterior.resample(num_draws, rng)
        return Answer(edges, posterior.samples)

    return answer


@dataclass
class Collected:
    """Stated probabilities and ranks of many tables of one size."""

    stated: list[np.ndarray] = field(default_factory=list)  # of each table [d (d − 1)]
    found: list[np.ndarray] = field(default_factory=list)  # bool, of the true graph
    drawn: list[np.ndarray] = field(default_factory=list)  # bool [n, d (d − 1)]
    ranks: list[np.ndarray] = field(default_factory=list)  # [len(RANKS)], between 0 and 1

    def add(self, table: Table, answer: Answer, rng: np.random.Generator) -> None:
        off = ~np.eye(len(table.truth), dtype=bool)
        self.stated.append(answer.edges[off])
        self.found.append(table.truth[off])
        self.drawn.append(answer.graphs[:, off])
        summaries = _summaries(np.concatenate([table.truth[None], answer.graphs]), table.score)
        true, others = summaries[:, :1], summaries[:, 1:]
        below, ties = (others < true).sum(axis=1), (others == true).sum(axis=1)
        rank = below + rng.integers(ties + 1)
        self.ranks.append((rank + rng.random(len(rank))) / (others.shape[1] + 1))

    def groups(self, size: int) -> list[Collected]:
        """So many tables at a time; what is left over is left out."""
        parts = [slice(first, first + size) for first in range(0, len(self.ranks) - size + 1, size)]
        return [
            Collected(self.stated[part], self.found[part], self.drawn[part], self.ranks[part])
            for part in parts
        ]

    def p_values(self) -> dict[str, float]:
        """Of reliability and of each rank."""
        found = {"reliability": self._reliability()}
        for name, ranks in zip(RANKS, np.array(self.ranks).T, strict=True):
            found[name] = float(stats.kstest(ranks, "uniform").pvalue)
        return found

    def curve(self) -> list[Row]:
        """Of each bin the pairs, the mean probability, the frequency, and what 95 % of draws give instead."""
        bins = self._bins()
        found = [flat[members] for flat in [np.concatenate(self.found)] for members in bins]
        stated = np.concatenate(self.stated)
        drawn = np.concatenate(self.drawn, axis=1)
        rows: list[Row] = []
        for members, truth in zip(bins, found, strict=True):
            if len(members):
                low, high = np.quantile(drawn[:, members].mean(axis=1), [0.025, 0.975])
                rows.append(
                    {
                        "pairs": len(members),
                        "stated": float(stated[members].mean()),
                        "found": float(truth.mean()),
                        "low": float(low),
                        "high": float(high),
                    }
                )
        return rows

    def _bins(self) -> list[np.ndarray]:
        """Places of the pairs of each bin, all tables one after the other."""
        place = np.minimum((np.concatenate(self.stated) * BINS).astype(int), BINS - 1)
        return [np.flatnonzero(place == number) for number in range(BINS)]

    def _reliability(self) -> float:
        stated = np.concatenate(self.stated)
        # The true graphs first, then draw after draw.
        graphs = np.concatenate([np.concatenate(self.found)[None], np.concatenate(self.drawn, axis=1)])
        statistic = np.zeros(len(graphs))
        for members in self._bins():
            variance = (stated[members] * (1 - stated[members])).sum()
            if variance > 0:
                counts = graphs[:, members].sum(axis=1)
                difference = counts - counts[1:].mean()
                difference[0] = counts[0] - stated[members].sum()
                statistic += difference**2 / variance
        return float((statistic >= statistic[0] * (1 - 1e-12)).mean())


def collect(setting: Setting, answer: Answerer, num_tables: int, seed: int) -> Collected:
    """Draw tables, answer each, keep what the tests need."""
    collected = Collected()
    for number, table in enumerate(tables(setting, num_tables, seed)):
        rng = np.random.default_rng([seed, number, 1])
        collected.add(table, answer(table, rng), rng)
    return collected


def adjusted(p_values: Sequence[float]) -> float:
    """The smallest p-value times the number of tests (Bonferroni)."""
    return min(1.0, min(p_values) * len(p_values))


def _summaries(graphs: np.ndarray, score: Score) -> np.ndarray:
    """Edges, pairs of ancestor and descendant, one arrow, log score: bool [n, d, d] -> [len(RANKS), n].

    Log scores are rounded: graphs of one equivalence class are ties.
    """
    return np.stack(
        [
            graphs.sum(axis=(1, 2)),
            transitive_closure(graphs).sum(axis=(1, 2)),
            graphs[:, 0, 1],
            score.log_score(graphs).round(6),
        ]
    )
