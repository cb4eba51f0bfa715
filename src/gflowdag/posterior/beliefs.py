"""What is known before an experiment: tables, and how probable each graph is given each of them.

Without gaps there is one table, and the graphs have the weights of the samples. Where cells were imputed
there are several completed tables, equally probable; the sampled graphs are weighed by the score of each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.special import rel_entr, softmax

from gflowdag.errors import ScoreError
from gflowdag.graph.bits import graph_keys
from gflowdag.posterior.incomplete_table import IncompleteTable
from gflowdag.posterior.posterior import Posterior
from gflowdag.posterior.probability import samples_with
from gflowdag.posterior.sample_parameters import SampleParameters, no_parameters
from gflowdag.score.conjugate import ParameterPosterior

if TYPE_CHECKING:
    from gflowdag.posterior.imputation import ImputedCells
    from gflowdag.posterior.probability import Feature

MAX_GRAPHS = 2000  # that are weighed: beyond, as many are drawn from the posterior
MAX_TABLES = 400  # completed ones


@dataclass(frozen=True, eq=False)
class Beliefs:
    """Graphs and tables before an experiment.

    Attributes:
        graphs: distinct sampled graphs, bool [g, d, d].
        answers: which answer to the question each graph gives, int [g].
        joint: probability of each table with each graph, [t, g].
        tables: the completed tables, by their number among the draws of cells, int [t]; one where none has
            gaps.
    """

    graphs: NDArray[np.bool_]
    answers: NDArray[np.int64]
    joint: NDArray[np.float64]
    tables: NDArray[np.int64]

    @property
    def of_answers(self) -> NDArray[np.float64]:
        """Probability of each answer."""
        return self.sum_answers(self.joint.sum(axis=0))

    @property
    def entropy(self) -> float:
        """Of the answer, in nats."""
        mass = self.of_answers
        return max(-float(rel_entr(mass, np.ones_like(mass)).sum()), 0.0)

    def sum_answers(self, of_graphs: NDArray[np.float64]) -> NDArray[np.float64]:
        """Probabilities of graphs, [..., g], as those of answers."""
        number = int(self.answers.max()) + 1
        flat = of_graphs.reshape(-1, of_graphs.shape[-1])
        summed = np.stack([np.bincount(self.answers, weights=one, minlength=number) for one in flat])
        return np.asarray(summed, np.float64).reshape(*of_graphs.shape[:-1], number)

    def with_fewer_tables(self, number: int) -> Beliefs:
        """The same by some of the tables, as far apart as can be."""
        if len(self.tables) <= number:
            return self
        chosen = np.linspace(0, len(self.tables) - 1, number).round().astype(int)
        return replace(self, joint=self.joint[chosen] / self.joint[chosen].sum(), tables=self.tables[chosen])


def beliefs(posterior: Posterior, about: Feature | None, rng: np.random.Generator) -> Beliefs:
    """What the posterior says about a question, or about the graph."""
    graphs, weights = _distinct(posterior, rng)
    answers = np.arange(len(graphs))
    if about is not None:
        of_graphs = replace(posterior, samples=graphs, log_weights=None, log_scores=None, imputed_cells=None)
        _, answers = np.unique(samples_with(of_graphs, about), return_inverse=True)
    if posterior.parameters is not None:
        return Beliefs(graphs, answers, weights[None], np.zeros(1, np.int64))
    table, cells = remembered_gaps(posterior)
    kept = np.arange(len(cells.values))
    if len(kept) > MAX_TABLES:
        kept = np.linspace(0, len(kept) - 1, MAX_TABLES).round().astype(int)
    given_table = np.stack([probabilities(table, cells, int(draw), graphs) for draw in kept])
    return Beliefs(graphs, answers, given_table / len(kept), kept)


def remembered_gaps(posterior: Posterior) -> tuple[IncompleteTable, ImputedCells]:
    """The table with gaps and the draws of its cells, or a refusal."""
    if posterior.incomplete is None or posterior.imputed_cells is None:
        raise no_parameters(posterior)
    if posterior.diagnosis.uses_prior is False:
        raise ScoreError(
            f"The graphs of {posterior.method} are not draws from the posterior of a score, so completed "
            "tables cannot weigh them: experiments over imputed cells need another method."
        )
    return posterior.incomplete, posterior.imputed_cells


def probabilities(
    table: IncompleteTable, cells: ImputedCells, draw: int, graphs: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """Probability of each of the graphs given a completed table, [g]."""
    return softmax(table.score_of(table.completed(cells, draw)).log_score(graphs))


def parameters_of(posterior: Posterior, known: Beliefs) -> Sequence[ParameterPosterior]:
    """What each table says about the parameters, [t]."""
    parameters = SampleParameters(posterior)
    return [parameters.of(int(table)) for table in known.tables]


def _distinct(
    posterior: Posterior, rng: np.random.Generator
) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    """The distinct sampled graphs with their mass; of too many, some drawn from them."""
    keys = graph_keys(posterior.samples)
    weights = posterior.weights
    if len(np.unique(keys[weights > 0])) > MAX_GRAPHS:
        chosen = rng.choice(len(keys), MAX_GRAPHS, p=weights)
        keys, samples, weights = keys[chosen], posterior.samples[chosen], np.full(MAX_GRAPHS, 1 / MAX_GRAPHS)
    else:
        samples = posterior.samples
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    mass = np.bincount(inverse.reshape(-1), weights=weights)
    return samples[first[mass > 0]], mass[mass > 0] / mass.sum()
