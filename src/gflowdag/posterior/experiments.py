"""Which experiment next: the information that one can expect from setting a variable, in nats.

The gain of an experiment about the graph is the mutual information of the graph and the rows that come out of
it: the mean, over rows that the posterior expects, of the divergence of the posterior after them from the one
before. Rows are drawn from sampled graphs with parameters from their posterior; after them each sampled graph
is weighed by the likelihood of the rows with its parameters integrated out (Murphy 2001, "Active learning of
causal Bayes net structure"; Tong & Koller 2001).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd  # pyright: ignore[reportMissingTypeStubs]
from numpy.typing import NDArray
from scipy.special import logsumexp, rel_entr

from gflowdag.errors import DataError
from gflowdag.graph.bits import graph_keys
from gflowdag.posterior.diagnostics import Verdict
from gflowdag.posterior.network_effects import conjugate_parameters
from gflowdag.posterior.posterior import Posterior
from gflowdag.posterior.probability import samples_with
from gflowdag.runtime.messages import counted, unknown_name
from gflowdag.runtime.randomness import generator
from gflowdag.score.predictive import draw_rows, log_predictive

if TYPE_CHECKING:
    from gflowdag.posterior.probability import Feature
    from gflowdag.score.conjugate import ConjugateParameters

MAX_GRAPHS = 2000  # that are weighed: beyond, as many are drawn from the posterior
_CELLS_AT_ONCE = 1 << 22  # numbers of one block of simulated tables
_NEARLY_ALL = 0.95  # of the entropy: experiments that gain as much are not told apart by their gains


@dataclass(frozen=True)
class Experiment:
    """What one experiment can be expected to tell.

    Attributes:
        target: the variable that is set from outside; None for rows without an intervention.
        gain: expected information, in nats.
        error: its Monte-Carlo standard error.
    """

    target: str | None
    gain: float
    error: float


@dataclass(frozen=True)
class NextExperiments:
    """Experiments by what they can be expected to tell, most first.

    Attributes:
        experiments: one for each target and one without an intervention, largest gain first.
        num_rows: of each experiment.
        about: what the information is about: a statement, or "the graph".
        entropy: what there is to be known, in nats: no gain can exceed it.
        num_graphs: distinct graphs that were weighed.
        verdict: how far to trust the posterior over graphs.
    """

    experiments: tuple[Experiment, ...]
    num_rows: int
    about: str
    entropy: float
    num_graphs: int
    verdict: Verdict

    @property
    def best(self) -> Experiment:
        """The experiment with the largest expected gain."""
        return self.experiments[0]

    @property
    def tells_nearly_all(self) -> bool:
        """Whether every experiment is expected to tell nearly all that the sampled graphs leave open.

        Their gains cannot be compared then: what more they may tell, these graphs are too few to show.
        """
        return min(one.gain for one in self.experiments) >= _NEARLY_ALL * self.entropy

    def table(self) -> pd.DataFrame:
        """One row for each experiment: `target` (None: nothing is set), `gain`, `error`, `num_rows`."""
        return pd.DataFrame(
            {
                "target": pd.Series([one.target for one in self.experiments], dtype=object),
                "gain": [one.gain for one in self.experiments],
                "error": [one.error for one in self.experiments],
                "num_rows": self.num_rows,
            }
        )

    def to_dict(self) -> dict[str, Any]:
        """All of it in plain values."""
        rows = [
            {"target": one.target, "gain": one.gain, "error": one.error, "num_rows": self.num_rows}
            for one in self.experiments
        ]
        return {
            "about": self.about,
            "entropy": self.entropy,
            "num_graphs": self.num_graphs,
            "verdict": self.verdict,
            "experiments": rows,
        }

    def summary(self) -> str:
        """The answer in a few sentences."""
        if self.entropy == 0:
            return f"Nothing is open about {self.about}: all sampled graphs agree."
        rows = counted(self.num_rows, "row")
        if self.tells_nearly_all:
            return (
                f"In {rows} any experiment tells nearly all of the {self.entropy:.2f} nats that "
                f"the {self.num_graphs:,} different sampled graphs leave open about {self.about}: to compare "
                "experiments, ask with fewer rows."
            )
        best = self.best
        what = "observing all variables" if best.target is None else f"setting {best.target} at random"
        told = (
            f"{what[0].upper()}{what[1:]} in {rows} tells most about {self.about}: "
            f"{best.gain:.2f} of {self.entropy:.2f} nats are expected to be resolved."
        )
        rivals = [
            one.target or "no intervention"
            for one in self.experiments[1:]
            if best.gain - one.gain < 2 * np.hypot(best.error, one.error)
        ]
        return told if not rivals else f"{told} The error is too large to rank it above: {', '.join(rivals)}."

    def __repr__(self) -> str:
        return f"<NextExperiments: {self.summary()}>"


def next_experiments(
    posterior: Posterior,
    *,
    about: Feature | None = None,
    num_rows: int = 100,
    targets: Sequence[str] | None = None,
    num_outcomes: int = 200,
    random_state: int | np.random.Generator | None = 0,
) -> NextExperiments:
    """The experiments by expected information; see `Posterior.next_experiments`."""
    parameters = conjugate_parameters(posterior, "The next experiment")
    for name, value, least in (("num_rows", num_rows, 1), ("num_outcomes", num_outcomes, 2)):
        if value < least:
            raise DataError(f"{name} must be {least} or more, got {value}")
    names = list(posterior.names) if targets is None else list(dict.fromkeys(targets))
    for name in names:
        if name not in posterior.names:
            raise DataError(unknown_name(name, posterior.names))
    rng = generator(random_state)
    graphs, weights = _distinct(posterior, rng)
    groups = np.arange(len(graphs))  # graphs of one group are the same answer
    what = "the graph"
    if about is not None:
        groups = samples_with(_of_graphs(posterior, graphs), about).astype(np.int64)
        what = about if isinstance(about, str) else getattr(about, "__name__", "the feature")
    of_outcome = np.sort(rng.choice(len(graphs), num_outcomes, p=weights))
    seed = rng.integers(2**63)
    found: list[Experiment] = []
    for target in (None, *names):
        place = None if target is None else posterior.names.index(target)
        gains = _gains(
            parameters,
            graphs,
            weights,
            groups,
            of_outcome,
            num_rows,
            place,
            np.random.default_rng(seed),  # common random numbers make gains comparable
        )
        error = gains.std(ddof=1) / np.sqrt(num_outcomes)
        found.append(Experiment(target, float(gains.mean()), float(error)))
    mass = np.bincount(groups, weights=weights)
    return NextExperiments(
        tuple(sorted(found, key=lambda one: -one.gain)),
        num_rows,
        what,
        entropy=max(-float(rel_entr(mass, np.ones_like(mass)).sum()), 0.0),
        num_graphs=len(graphs),
        verdict=posterior.diagnosis.verdict,
    )


def _gains(
    parameters: ConjugateParameters,
    graphs: NDArray[np.bool_],
    weights: NDArray[np.float64],
    groups: NDArray[np.int64],
    of_outcome: NDArray[np.int64],
    num_rows: int,
    target: int | None,
    rng: np.random.Generator,
) -> NDArray[np.float64]:
    """The divergence of the posterior after each simulated outcome from the one before, [k]."""
    d = graphs.shape[1]
    mass = np.bincount(groups, weights=weights)
    gains: list[NDArray[np.float64]] = []
    step = max(_CELLS_AT_ONCE // (num_rows * d), 1)
    for start in range(0, len(of_outcome), step):
        part = of_outcome[start : start + step]
        drawn, number = np.unique(part, return_counts=True)
        rows = np.concatenate(
            [
                draw_rows(parameters, graphs[graph], num_rows, target, int(size), rng)
                for graph, size in zip(drawn, number, strict=True)
            ]
        )
        logs = log_predictive(parameters, graphs, rows, target) + np.log(weights)
        after = np.exp(logs - logsumexp(logs, axis=1)[:, None])
        of_group = np.stack([np.bincount(groups, weights=one, minlength=len(mass)) for one in after])
        gains.append(rel_entr(of_group, mass).sum(axis=1).clip(min=0.0))
    return np.concatenate(gains)


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


def _of_graphs(posterior: Posterior, graphs: NDArray[np.bool_]) -> Posterior:
    return replace(posterior, samples=graphs, log_weights=None, log_scores=None)
