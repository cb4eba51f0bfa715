"""`Posterior`: the answer of every method — weighted DAG samples, marginals, and how far to trust them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pandas as pd  # pyright: ignore[reportMissingTypeStubs]
from numpy.typing import ArrayLike
from scipy.special import logsumexp

from gflowdag.data.description import TableDescription
from gflowdag.errors import DataError
from gflowdag.posterior import estimates, graph_summaries
from gflowdag.posterior.diagnostics import Diagnostics
from gflowdag.posterior.handover import HandOver
from gflowdag.runtime.messages import CONTROL_CHARACTER, counted
from gflowdag.runtime.randomness import generator

if TYPE_CHECKING:
    from gflowdag.data import Dataset
    from gflowdag.posterior.difference import Difference
    from gflowdag.posterior.effect import DiscreteEffect, LinearEffect
    from gflowdag.posterior.experiments import NextExperiments
    from gflowdag.posterior.imputation import ImputedCells
    from gflowdag.posterior.incomplete_table import IncompleteTable
    from gflowdag.posterior.mean_effect import MeanEffect
    from gflowdag.posterior.model_fit import ModelFit
    from gflowdag.posterior.probability import Feature, FeatureProbability
    from gflowdag.score import UnboundScore
    from gflowdag.score.conjugate import ParameterPosterior


@dataclass(frozen=True, eq=False)
class Posterior(HandOver):
    """A distribution over directed acyclic graphs, as weighted samples and, where known, exact marginals.

    In every matrix rows are sources: entry `[i, j]` is about the edge `i → j`.

    Attributes:
        samples: sampled graphs, all acyclic, bool [n, d, d].
        names: variable names, in the order of the matrices.
        method: name of the method that made it.
        log_weights: unnormalised log importance weights [n]; zeros for equally weighted samples.
        log_scores: log prior + log marginal likelihood of each sample [n], or None.
        marginals: edge probabilities [d, d] that the method computed without sampling noise from drawing
            graphs (exact, or Rao–Blackwellised), or None to estimate them from the samples.
        path_marginals: probabilities of directed paths [d, d], likewise, or None.
        best_graph: the graph of highest score the method knows, bool [d, d], or None for the best sample.
        log_evidence: log of the sum of prior weight × likelihood over all graphs, or None where unknown. The
            weights of a prior need not sum to one (uniform: 1 for each graph), so evidences can be compared
            under one prior, not between two.
        log_evidence_error: its standard error; 0 where exact.
        local_scores: log scores of all parent sets, prior and knowledge included, [d, 2^(d−1)] in compressed
            index, where all DAGs were summed: what statements are summed over anew. None elsewhere.
        diagnosis: how far to trust all this, as the method says; what `diagnostics()` returns.
        table: how the table was read and coded, and its fingerprint; None where that is not known.
        parameters: what the table says about the parameters of a network given its graph, for `effect`; None
            where the score has no closed form for them.
        imputed_cells: draws of the missing cells, where some were imputed; see `imputed`.
        incomplete: the table with its gaps and what scores its completions, where cells were imputed.
    """

    samples: np.ndarray
    names: Sequence[str]
    method: str = "samples"
    log_weights: np.ndarray = None  # type: ignore[assignment]
    log_scores: np.ndarray | None = None
    marginals: np.ndarray | None = None
    path_marginals: np.ndarray | None = None
    best_graph: np.ndarray | None = None
    log_evidence: float | None = None
    log_evidence_error: float | None = None
    local_scores: np.ndarray | None = None
    diagnosis: Diagnostics = field(default_factory=Diagnostics)
    table: TableDescription | None = None
    parameters: ParameterPosterior | None = None
    imputed_cells: ImputedCells | None = None
    incomplete: IncompleteTable | None = None

    def __post_init__(self) -> None:
        samples = np.asarray(self.samples, dtype=bool)
        n, d = samples.shape[0], len(self.names)
        if samples.shape != (n, d, d) or n == 0:
            raise ValueError(f"samples must be [n, {d}, {d}] with n ≥ 1, got {samples.shape}")
        names = tuple(str(name) for name in self.names)
        if len(set(names)) < d:
            raise ValueError(f"names must be distinct, got {', '.join(names)}")
        if unprintable := next(filter(CONTROL_CHARACTER.search, names), None):
            raise ValueError(f"the name {unprintable!r} has a control character in it")
        given: ArrayLike | None = cast(Any, self.log_weights)
        weights = np.zeros(n) if given is None else np.asarray(given, dtype=np.float64)
        if weights.shape != (n,) or not np.isfinite(weights.max()):
            raise ValueError("log_weights must be n numbers, none of them NaN or +inf and not all −inf")
        scores = None if self.log_scores is None else np.asarray(self.log_scores, dtype=np.float64)
        if scores is not None and (scores.shape != (n,) or np.isnan(scores).any()):
            raise ValueError("log_scores must be n numbers, none of them NaN")
        set_ = object.__setattr__
        set_(self, "samples", samples)
        set_(self, "names", names)
        set_(self, "log_weights", weights)
        set_(self, "log_scores", scores)

    # -- sizes ---------------------------------------------------------------------------------------------

    @property
    def num_samples(self) -> int:
        return len(self.samples)

    @property
    def num_variables(self) -> int:
        return len(self.names)

    @cached_property
    def weights(self) -> np.ndarray:
        """Normalised weights [n], summing to one."""
        return np.exp(self.log_weights - logsumexp(self.log_weights))

    def diagnostics(self) -> Diagnostics:
        """How far to trust this: `verdict`, `explanation`, then the values behind them.

        The verdict is `"exact"`, `"trusted"`, `"not converged"` or `"unverified"`.
        """
        return self.diagnosis

    def with_diagnostics(self, **changes: Any) -> Posterior:
        """The same posterior with other diagnostics; `changes` are attributes of `Diagnostics`."""
        return replace(self, diagnosis=replace(self.diagnosis, **changes))

    def model_fit(
        self,
        data: Any,
        *,
        interventions: Any = None,
        refit: Callable[[Dataset], Posterior] | None = None,
    ) -> ModelFit:
        """What in the table speaks against the model: residuals of each variable given sampled parents.

        Args:
            data: the table as it was given to `fit`, or a `Dataset` of it.
            interventions: as for `fit`.
            refit: gives the answer for the table under a remedy, to say what the remedy changes:
                `lambda changed: gd.fit(changed, method="exact")`.
        """
        from gflowdag.data import Dataset
        from gflowdag.posterior.model_fit import check_residuals

        if self.table is not None:
            data = self.table.prepare(data, interventions=interventions)
        else:
            data = Dataset.as_dataset(data, interventions=interventions)
        found = check_residuals(self, data)
        return found if refit is None else found.with_changes(self, data, refit)

    # -- features ------------------------------------------------------------------------------------------

    def edge_probabilities(self, *, weighted: bool = True) -> pd.DataFrame:
        """Probability of each edge `i → j` (row i, column j).

        Args:
            weighted: the best estimate the method has. `False` gives the raw frequencies in the samples.
        """
        return self._frame(estimates.edges(self, weighted))

    def path_probabilities(self, *, weighted: bool = True) -> pd.DataFrame:
        """Probability of a directed path from i (row) to j (column)."""
        return self._frame(estimates.paths(self, weighted))

    def markov_blanket_probabilities(self, *, weighted: bool = True) -> pd.DataFrame:
        """Probability that i (row) is in the Markov blanket of j (column); symmetric."""
        return self._frame(estimates.markov_blankets(self, weighted))

    def probability(self, feature: Feature) -> FeatureProbability:
        """The probability of anything that can be said about a graph, with its Monte-Carlo error.

        Args:
            feature: a statement, or a function that says True or False of a graph, given as a bool frame
                [source, target]. Statements are made of `A -> B` (edge), `A ~> B` (directed path), `A - B`
                (edge in either direction), chains of these such as `A -> B -> C`, d-separations
                `A, B _||_ C | D`, and `and`, `or`, `not` and parentheses. Names with blanks or signs in them
                stand in quotes.

        Returns:
            `probability`, `error`, whether it is `exact`, the `verdict` on the posterior, and the edges whose
            direction was `assumed`. `float()` of it is the probability.
        """
        from gflowdag.posterior.probability import feature_probability

        return feature_probability(self, feature)

    def given(self, feature: Feature) -> Posterior:
        """The posterior given that `feature` holds: its samples in which it does.

        Args:
            feature: as for `probability`.
        """
        from gflowdag.posterior.probability import condition_on

        return condition_on(self, feature)

    def difference(self, other: Posterior) -> Difference:
        """What changed from this posterior to another: edges by difference, and which differ beyond noise."""
        from gflowdag.posterior.difference import difference

        return difference(self, other)

    def effect(
        self,
        cause: str,
        outcome: str,
        *,
        given: Feature | None = None,
        num_draws: int | None = None,
        random_state: int | np.random.Generator | None = 0,
    ) -> LinearEffect | DiscreteEffect | MeanEffect:
        """The total effect of setting `cause` on `outcome`, with the uncertainty of graph and parameters.

        Parameters of every sampled graph are drawn from their posterior and followed along it; graphs without
        a directed path count as no effect. It assumes that the graph is causal: no hidden common causes.

        Args:
            cause: the variable that is set.
            outcome: the variable that is looked at.
            given: a statement or function, as for `probability`; only graphs in which it holds count.
            num_draws: draws of the parameters, over all graphs; without it 10,000, or 2,000 in tables of
                both kinds.
            random_state: seed.

        Returns:
            For continuous tables a `LinearEffect` (its `draws` have `mean()`, `median()`, `interval()`,
            `density()`, and `meaning` says in which units). In discrete tables, and for discrete outcomes, a
            `DiscreteEffect` (`table()`, `difference()`, `ratio()`), for continuous outcomes in tables of both
            kinds a `MeanEffect` with the same: for each level of the cause, or each quartile.
        """
        from gflowdag.posterior.network_effects import effect

        chosen = self if given is None else self.given(given)
        return effect(chosen, cause, outcome, num_draws=num_draws, random_state=random_state)

    def effect_matrix(
        self, *, num_draws: int = 1000, random_state: int | np.random.Generator | None = 0
    ) -> pd.DataFrame:
        """The posterior mean of the effect of every variable on every other, [source, target].

        Of continuous variables the linear effect as the `meaning` of `effect` tells it: a factor where the
        target is on a log scale (1 is no effect), a change in units of the table elsewhere. Of discrete ones
        the largest total variation distance between the distributions of the target under two settings of
        the source; of continuous targets in tables of both kinds the largest difference between their means.
        The frame's `attrs["meaning"]` says which.
        """
        from gflowdag.posterior.network_effects import effect_matrix

        return effect_matrix(self, num_draws=num_draws, random_state=random_state)

    def next_experiments(
        self,
        *,
        about: Feature | None = None,
        num_rows: int = 100,
        targets: Sequence[str] | None = None,
        measure: Sequence[str] = (),
        num_outcomes: int | None = None,
        random_state: int | np.random.Generator | None = 0,
    ) -> NextExperiments:
        """What to set from outside, or to measure, next: experiments by the information they can give.

        Each experiment has `num_rows` rows in which one variable is set at random: a number to values of a
        normal distribution as wide as its column, a level to any of them alike. Rows in which nothing is set
        are compared with them. The gain is the mutual information of rows and graph in nats, over the sampled
        graphs, so it assumes that these are the posterior: more of them (`num_samples`) resolve more.

        Where cells were imputed, columns with gaps can be compared with them: the gain of `measure` is that
        of knowing all missing cells of the column, while those of other columns stay unknown.

        Args:
            about: a statement or function, as for `probability`: what is to be learnt. `"X ~> Y"` is whether
                X has an effect on Y. Without it, the graph.
            num_rows: of each experiment.
            targets: variables that can be set; without them, all.
            measure: columns whose missing cells can be measured.
            num_outcomes: simulated outcomes of each experiment; without it 200, or 50 in tables of both
                kinds.
            random_state: seed.

        Returns:
            `best`, `table()` with the gain of every experiment and its Monte-Carlo error, and the `entropy`
            that no gain can exceed.
        """
        from gflowdag.posterior.experiments import next_experiments

        return next_experiments(
            self,
            about=about,
            num_rows=num_rows,
            targets=targets,
            measure=measure,
            num_outcomes=num_outcomes,
            random_state=random_state,
        )

    def with_parameters(
        self, data: Any, *, score: str | UnboundScore = "auto", interventions: Any = None
    ) -> Posterior:
        """The same posterior with what `effect` needs of its table, where it was not kept.

        Args:
            data: the table as it was given to `fit`; another is refused where the posterior knows its own.
            score: the score that the posterior was learnt with.
            interventions: as for `fit`.
        """
        from gflowdag.posterior.network_effects import with_parameters

        return with_parameters(self, data, score, interventions)

    def standard_errors(self, features: np.ndarray, *, weighted: bool = True) -> np.ndarray:
        """Monte-Carlo standard error of the mean of per-sample `features` [n, ...].

        Samples are taken as independent; for a Markov chain `effective_samples` in the diagnostics widens it.
        Where `features` are bool and all samples agree, half a count is added for the other outcome.
        """
        return estimates.standard_errors(self, features, weighted)

    def edge_errors(self) -> np.ndarray:
        """Monte-Carlo standard error of each edge probability [d, d]; zero where they are exact."""
        return estimates.edge_errors(self)

    def path_errors(self) -> np.ndarray:
        """Monte-Carlo standard error of each path probability [d, d]; zero where they are exact."""
        return estimates.path_errors(self)

    def markov_blanket_errors(self) -> np.ndarray:
        """Monte-Carlo standard error of each probability of a Markov blanket [d, d]."""
        return estimates.markov_blanket_errors(self)

    def edge_table(self) -> pd.DataFrame:
        """Every pair of variables, the more probable direction first, most probable edge on top.

        Columns: `source`, `target`, `probability` of source → target, `reverse` of target → source, `absent`
        of no edge between them, `error`, the Monte-Carlo standard error of `probability`, and `assumed`:
        whether the direction is what the score allows, or follows from that, and was not learnt.
        """
        assumed = self.diagnosis.assumed_directions
        p, error = self.edge_probabilities().to_numpy(), self.edge_errors()
        i, j = np.triu_indices(self.num_variables, 1)
        swap = p[j, i] > p[i, j]
        i, j = np.where(swap, j, i), np.where(swap, i, j)
        names = np.array(self.names, dtype=object)
        table = pd.DataFrame(
            {
                "source": names[i],
                "target": names[j],
                "probability": p[i, j],
                "reverse": p[j, i],
                "absent": np.clip(1 - p[i, j] - p[j, i], 0, 1),
                "error": error[i, j],
                "assumed": False if assumed is None else (assumed | assumed.T)[i, j],
            }
        )
        return table.sort_values("probability", ascending=False, kind="stable", ignore_index=True)

    def imputed(self, column: str) -> pd.DataFrame:
        """Draws of the missing cells of a column from their posterior, given what was observed.

        Rows are draws, each from another completed table; columns are the rows of the table that have a gap,
        counted from 0 and without those that were left out. Values are those of the table, transforms undone.
        """
        from gflowdag.posterior.imputation import imputed_column

        return imputed_column(self, column)

    # -- graphs --------------------------------------------------------------------------------------------

    def map_graph(self) -> pd.DataFrame:
        """The graph of highest posterior probability that the method knows, bool [source, target]."""
        return self._frame(graph_summaries.best_graph(self))

    def consensus_graph(self, threshold: float = 0.5) -> pd.DataFrame:
        """The edges whose probability exceeds `threshold`, as a DAG, bool [source, target].

        Edges are taken from the most probable down; one that would close a cycle is left out.
        """
        p = self.edge_probabilities().to_numpy()
        return self._frame(graph_summaries.consensus_graph(p, threshold))

    def equivalence_classes(self, top: int | None = 10) -> pd.DataFrame:
        """Markov equivalence classes by probability.

        Columns: `probability`, `num_graphs` (distinct DAGs of the class among the samples), `num_edges`,
        `log_score` of its best sampled member, and `sample`, the index of that member.
        """
        table = graph_summaries.equivalence_classes(self)
        return table if top is None else table.head(top)

    def resample(self, num_samples: int, random_state: int | np.random.Generator | None = None) -> Posterior:
        """Equally weighted samples, drawn with replacement in proportion to the weights.

        They carry less information than the samples they are drawn from: how much, and so how large errors
        are, follows from `independent_samples` in the diagnostics.
        """
        if num_samples < 1:
            raise DataError(f"num_samples must be 1 or more, got {num_samples}")
        index = generator(random_state).choice(self.num_samples, size=num_samples, p=self.weights)
        scores = None if self.log_scores is None else self.log_scores[index]
        independent = 1 / (estimates.samples_for_one(self) * np.square(self.weights).sum() + 1 / num_samples)
        return replace(
            self,
            samples=self.samples[index],
            log_weights=np.zeros(num_samples),
            log_scores=scores,
            imputed_cells=None if self.imputed_cells is None else self.imputed_cells.of_samples(index),
            diagnosis=replace(self.diagnosis, independent_samples=independent),
        )

    # -- files ---------------------------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Write everything, the verdict included, to one `.npz` file (no pickle)."""
        from gflowdag.posterior.archive import write_posterior

        write_posterior(self, path)

    @classmethod
    def load(cls, path: str | Path) -> Posterior:
        """Read what `save` wrote; a damaged or foreign file is refused. Safe on files from strangers."""
        from gflowdag.posterior.archive import read_posterior

        return read_posterior(path)

    def report(self, path: str | Path, **context: Any) -> Path:
        """Write a self-contained HTML report and return its path."""
        from gflowdag.display.report import write_report

        return write_report(self, path, **context)

    def __repr__(self) -> str:
        evidence = "" if self.log_evidence is None else f", log evidence {self.log_evidence:.3f}"
        return (
            f"<Posterior over {counted(self.num_variables, 'variable')} by {self.method}: "
            f"{counted(self.num_samples, 'sample')}{evidence}, {self.diagnosis.verdict}>"
        )

    def _repr_html_(self) -> str:
        from gflowdag.display.notebook import posterior_html

        return posterior_html(self)

    # -- parts --------------------------------------------------------------------------------------------

    def _frame(self, values: np.ndarray) -> pd.DataFrame:
        source, target = pd.Index(self.names, name="source"), pd.Index(self.names, name="target")
        return pd.DataFrame(values, index=source, columns=target)
