"""Candidates for the default of discrete tables: priors, limits and priors of the cells, as dense tables.

A limit is a mask on parent sets. One that depends on the *family* alone, parents and child together, and that
allows every subset of what it allows, treats all members of an equivalence class alike: reversing a covered
edge `x -> y` replaces the families `Pa ∪ x` and `Pa ∪ {x, y}` by `Pa ∪ y` and `Pa ∪ {x, y}`; the largest of
the three stays, and the other two are subsets of it. Such reversals connect all members (Chickering 1995).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from gflowdag import Dataset
from gflowdag.graph import popcount
from gflowdag.score import BDeu, make_score
from gflowdag_lab.measurements import cell_priors

SAMPLE_SIZES = (1, 2, 4, 8, 16)  # of the average over equivalent sample sizes
Masks = NDArray[np.bool_]
Scores = NDArray[np.float64]


class Table:
    """A discrete table with the local scores that several candidates share, each computed once."""

    def __init__(self, data: Dataset):
        self.data = data
        self.num_variables, self.num_rows = data.num_variables, data.num_rows
        self.levels = np.asarray(data.cardinalities, np.int64)
        self._bdeu: dict[float, Scores] = {}

    def bdeu(self, ess: float) -> Scores:
        """BDeu without any prior on the structure, float64 [d, 2^(d−1)]."""
        if ess not in self._bdeu:
            plain = BDeu(ess=ess, cells_per_row=None, edge_factor=1)
            self._bdeu[ess] = make_score(self.data, score=plain, prior="uniform").dense_table()
        return self._bdeu[ess]

    def average(self, sizes: Sequence[float] = SAMPLE_SIZES) -> Scores:
        """BDeu of which the equivalent sample size is averaged out within the set function.

        `M(S) = log mean_ess exp M_ess(S)` and `M(P ∪ j) − M(P)` as ever: score-equivalent, and a normalised
        likelihood of every DAG, since each `M_ess` sums to that of the smaller set.
        """
        marginals = np.stack([_marginals(self.bdeu(ess)) for ess in sizes])
        return _locals(np.logaddexp.reduce(marginals) - np.log(len(sizes)))

    @cached_property
    def local_average(self) -> Scores:
        """The mean of the local likelihoods: not score-equivalent."""
        return np.logaddexp.reduce([self.bdeu(ess) for ess in SAMPLE_SIZES]) - np.log(len(SAMPLE_SIZES))

    @cached_property
    def others(self) -> dict[str, Scores]:
        """The scores of `cell_priors`."""
        return cell_priors.tables(self.data.values, self.levels)

    @cached_property
    def num_parents(self) -> NDArray[np.int64]:
        """Size of each parent set, [2^(d−1)]."""
        return popcount(np.arange(1 << (self.num_variables - 1)))

    @cached_property
    def family_cells(self) -> Scores:
        """Product of the levels of the parents and the child, [d, 2^(d−1)]."""
        rows = []
        for node, own in enumerate(self.levels):
            cells = np.array([float(own)])
            for levels in np.delete(self.levels, node):
                cells = np.concatenate([cells, cells * levels])
            rows.append(cells)
        return np.stack(rows)

    @cached_property
    def free_parameters(self) -> Scores:
        """Cells of the family less configurations of the parents; members of a class have one sum."""
        return self.family_cells * (1 - 1 / self.levels[:, None])

    def prior(self, name: str) -> Scores:
        """Log prior of each parent set, [2^(d−1)]."""
        return make_score(self.data, score="bde", prior=name).prior_log_weights[self.num_parents]


@dataclass(frozen=True)
class Candidate:
    """One way to score a discrete table."""

    name: str
    likelihood: Callable[[Table], Scores]
    prior: str = "fair"
    allowed: Callable[[Table], Masks] | None = None  # which parent sets, of a shape that broadcasts
    further: Callable[[Table], Scores] | None = None  # added to the log prior
    simplicity: int = 0  # see the criterion in `cases.discrete_noise`; smaller is simpler
    equivalent: bool = True  # likelihood and limit treat all members of a class alike

    def table(self, table: Table, *, structure_prior: bool = True) -> Scores:
        """Log scores of all parent sets, float64 [d, 2^(d−1)]."""
        scores = self.likelihood(table).copy()
        if structure_prior:
            scores += table.prior(self.prior)
        if self.further is not None:
            scores += self.further(table)
        if self.allowed is not None:
            scores[~np.broadcast_to(self.allowed(table), scores.shape)] = -np.inf
        return scores

    def suits(self, table: Table) -> bool:
        """The scores that are no differences of a set function take long: smaller tables only."""
        return self.equivalent or (table.num_variables <= 12 and table.num_rows <= 1000)


def bdeu(ess: float = 1.0) -> Callable[[Table], Scores]:
    """BDeu with this equivalent sample size."""
    return lambda table: table.bdeu(ess)


def averaged(*sizes: float) -> Callable[[Table], Scores]:
    """BDeu averaged over these equivalent sample sizes; over `SAMPLE_SIZES` where none is given."""
    return lambda table: table.average(sizes or SAMPLE_SIZES)


def cells_at_most(rows_per_cell: float) -> Callable[[Table], Masks]:
    """Families of three and more variables need this many rows for each of their cells."""
    return lambda table: (
        (table.family_cells <= table.num_rows / rows_per_cell) | (table.num_parents[None, :] <= 1)
    )


def parents_at_most(most: int) -> Callable[[Table], Masks]:
    """A plain limit on the number of parents."""
    return lambda table: table.num_parents[None, :] <= most


def _marginals(local: Scores) -> Scores:
    """`M(S)` of all sets, [2^d], from the local scores: the highest member given the others."""
    marginals = np.zeros(1)
    for node, row in enumerate(local):
        marginals = np.concatenate([marginals, marginals + row[: 1 << node]])
    return marginals


def _locals(marginals: Scores) -> Scores:
    """`M(P ∪ j) − M(P)`, [d, 2^(d−1)]."""
    d = len(marginals).bit_length() - 1
    split = (marginals.reshape(-1, 2, 1 << node) for node in range(d))
    return np.stack([(half[:, 1] - half[:, 0]).reshape(-1) for half in split])


def _first_round() -> list[Candidate]:
    found = [Candidate(name, bdeu(), prior=name) for name in ("uniform", "fair", "edge", "erdos-renyi")]
    for c in (1, 2, 5, 10):
        found.append(Candidate(f"cells<=N/{c}", bdeu(), allowed=cells_at_most(c), simplicity=1))
    for most in (2, 3, 4, 5):
        found.append(Candidate(f"parents<={most}", bdeu(), allowed=parents_at_most(most), simplicity=2))
    found += [
        Candidate("2^-k", bdeu(), further=lambda table: -np.log(2) * table.num_parents, simplicity=3),
        Candidate("fair^2", bdeu(), further=lambda table: table.prior("fair"), simplicity=3),
    ]
    for weight in (0.1, 0.5):
        found.append(
            Candidate(
                f"exp(-{weight} parameters)",
                bdeu(),
                further=lambda table, weight=weight: -weight * table.free_parameters,
                simplicity=3,
            )
        )
    cells: dict[str, Callable[[Table], Scores]] = {
        "ess=4": bdeu(4.0),
        "ess=16": bdeu(16.0),
        "ess averaged": averaged(),
    }
    yardsticks: dict[str, Callable[[Table], Scores]] = {
        "ess averaged locally": lambda table: table.local_average,
        **{kind: lambda table, kind=kind: table.others[kind] for kind in cell_priors.KINDS},
    }
    found += [Candidate(name, score, simplicity=4) for name, score in cells.items()]
    found += [Candidate(name, score, simplicity=4, equivalent=False) for name, score in yardsticks.items()]
    both = [
        (1, {"ess=4": bdeu(4.0), "ess averaged": cells["ess averaged"]}),
        (2, {**cells, "ess=2": bdeu(2.0), "ess=8": bdeu(8.0)}),
        (5, {"ess averaged": cells["ess averaged"]}),
    ]
    for c, scores in both:
        for name, score in scores.items():
            limited = Candidate(f"{name}, cells<=N/{c}", score, allowed=cells_at_most(c), simplicity=5)
            found.append(limited)
    limit = cells_at_most(2)
    for name in ("uniform", "erdos-renyi"):
        found.append(Candidate(f"{name}, cells<=N/2", bdeu(), name, limit, simplicity=5))
    for name, score in yardsticks.items():
        found.append(Candidate(f"{name}, cells<=N/2", score, allowed=limit, simplicity=5, equivalent=False))
    return found


def _second_round() -> list[Candidate]:
    """Around the best of the first round, under the mildest limit, for tables of their own."""
    limit = cells_at_most(1)
    found = [
        Candidate("uniform", bdeu(), prior="uniform"),
        Candidate("cells<=N/1", bdeu(), allowed=limit, simplicity=1),
    ]
    for ess in (2, 3, 4, 5, 6):
        found.append(Candidate(f"ess={ess}, cells<=N/1", bdeu(ess), allowed=limit, simplicity=5))
    for sizes in ((1, 4), (1, 2, 4), (1, 4, 16), (1, 2, 4, 8), SAMPLE_SIZES):
        name = f"ess of {', '.join(map(str, sizes))} averaged, cells<=N/1"
        found.append(Candidate(name, averaged(*sizes), allowed=limit, simplicity=6))
    found.append(
        Candidate(
            "ess averaged, 2^-k, cells<=N/1",
            averaged(),
            allowed=limit,
            further=lambda table: -np.log(2) * table.num_parents,
            simplicity=7,
        )
    )
    return found


def _third_round() -> list[Candidate]:
    """Ways to take away what averaging adds to an edge, in the order of their simplicity.

    Two independent columns each pay for not knowing the sample size, a connected pair pays once: averaging
    favours an edge by up to the number of sizes, 3. `roots`: every node with parents divides the prior by
    it (the number of nodes without parents is that of the roots of the components of the essential graph,
    one number for all members of a class).
    """
    limit, likelihood = cells_at_most(1), averaged(1, 4, 16)
    name = "ess of 1, 4, 16 averaged, cells<=N/1"
    further: dict[str, Callable[[Table], Scores]] = {
        "3^-roots": lambda table: -np.log(3) * (table.num_parents > 0),
        "2^-k": lambda table: -np.log(2) * table.num_parents,
        "3^-k": lambda table: -np.log(3) * table.num_parents,
        "4^-k": lambda table: -np.log(4) * table.num_parents,
    }
    return [
        Candidate("uniform", bdeu(), prior="uniform"),
        Candidate("cells<=N/1", bdeu(), allowed=limit, simplicity=1),
        Candidate(name, likelihood, allowed=limit, simplicity=6),
        *(
            Candidate(f"{name}, {title}", likelihood, allowed=limit, further=extra, simplicity=7 + place)
            for place, (title, extra) in enumerate(further.items())
        ),
    ]


ROUNDS = {
    number: {candidate.name: candidate for candidate in candidates}
    for number, candidates in enumerate((_first_round(), _second_round(), _third_round()), 1)
}
TODAY = "uniform"
