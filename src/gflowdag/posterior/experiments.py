"""Which experiment next: the information that one can expect from setting a variable, in nats.

The gain of an experiment about the graph is the mutual information of the graph and the rows that come out of
it: the mean, over rows that the posterior expects, of the divergence of the posterior after them from the one
before (Murphy 2001, "Active learning of causal Bayes net structure"; Tong & Koller 2001). New rows are
simulated (`simulated_rows`); missing cells of rows that are there can be measured (`measurements`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd  # pyright: ignore[reportMissingTypeStubs]
from numpy.typing import NDArray

from gflowdag.errors import DataError
from gflowdag.posterior.beliefs import Beliefs, beliefs, parameters_of
from gflowdag.posterior.diagnostics import Verdict
from gflowdag.posterior.measurements import check_measurable, measurement_gains
from gflowdag.posterior.posterior import Posterior
from gflowdag.posterior.sample_parameters import no_parameters
from gflowdag.posterior.simulated_rows import simulated_gains
from gflowdag.runtime.messages import counted, unknown_name
from gflowdag.runtime.randomness import generator

if TYPE_CHECKING:
    from gflowdag.posterior.probability import Feature

NUM_OUTCOMES = 200  # simulated ones of each experiment
MIXED_OUTCOMES = 50  # in tables of both kinds, which are scored anew after each
_MAX_WEIGHED = 24  # completed tables that simulated rows are weighed by
_MAX_WEIGHED_MIXED = 8  # the same, in tables of both kinds
_NEARLY_ALL = 0.95  # of the entropy: experiments that gain as much are not told apart by their gains


@dataclass(frozen=True)
class Experiment:
    """What one experiment can be expected to tell.

    Attributes:
        target: the variable that is set from outside; None for rows without an intervention.
        gain: expected information, in nats.
        error: its Monte-Carlo standard error.
        num_rows: rows that it takes: new ones, or those in which a missing cell is measured.
        measured: the column whose missing cells are measured; None for new rows.
    """

    target: str | None
    gain: float
    error: float
    num_rows: int
    measured: str | None = None

    @property
    def name(self) -> str:
        """What is done, in a few words."""
        if self.measured is not None:
            return f"measuring {self.measured}"
        return "no intervention" if self.target is None else self.target

    def to_dict(self) -> dict[str, Any]:
        """All of it in plain values."""
        return {
            "target": self.target,
            "measured": self.measured,
            "gain": self.gain,
            "error": self.error,
            "num_rows": self.num_rows,
        }


@dataclass(frozen=True)
class NextExperiments:
    """Experiments by what they can be expected to tell, most first.

    Attributes:
        experiments: one for each target, one without an intervention, and one for each column that is to be
            measured, largest gain first.
        num_rows: of each experiment with new rows.
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
        """One row for each experiment: `target`, `measured`, `gain`, `error`, `num_rows`.

        In new rows `target` is set (None: nothing); or the missing cells of `measured` are measured.
        """
        return pd.DataFrame(
            {
                "target": pd.Series([one.target for one in self.experiments], dtype=object),
                "measured": pd.Series([one.measured for one in self.experiments], dtype=object),
                "gain": [one.gain for one in self.experiments],
                "error": [one.error for one in self.experiments],
                "num_rows": [one.num_rows for one in self.experiments],
            }
        )

    def to_dict(self) -> dict[str, Any]:
        """All of it in plain values."""
        return {
            "about": self.about,
            "entropy": self.entropy,
            "num_graphs": self.num_graphs,
            "verdict": self.verdict,
            "experiments": [one.to_dict() for one in self.experiments],
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
        if best.measured is not None:
            what = f"measuring the missing cells of {best.measured}"
        told = (
            f"{what[0].upper()}{what[1:]} in {counted(best.num_rows, 'row')} tells most about {self.about}: "
            f"{best.gain:.2f} of {self.entropy:.2f} nats are expected to be resolved."
        )
        rivals = [
            one.name
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
    measure: Sequence[str] = (),
    num_outcomes: int | None = None,
    random_state: int | np.random.Generator | None = 0,
) -> NextExperiments:
    """The experiments by expected information; see `Posterior.next_experiments`."""
    if posterior.parameters is None and posterior.diagnosis.imputation is None:
        raise no_parameters(posterior)
    kinds = set[str]() if posterior.table is None else {column.kind for column in posterior.table.columns}
    is_mixed = len(kinds) > 1
    outcomes = (MIXED_OUTCOMES if is_mixed else NUM_OUTCOMES) if num_outcomes is None else num_outcomes
    for name, value, least in (("num_rows", num_rows, 1), ("num_outcomes", outcomes, 2)):
        if value < least:
            raise DataError(f"{name} must be {least} or more, got {value}")
    names = list(posterior.names) if targets is None else list(dict.fromkeys(targets))
    for name in names:
        if name not in posterior.names:
            raise DataError(unknown_name(name, posterior.names))
    measured = list(dict.fromkeys(measure))
    check_measurable(posterior, measured)
    rng = generator(random_state)
    known = beliefs(posterior, about, rng)
    found: list[Experiment] = []
    if names or not measured:
        weighing = known.with_fewer_tables(_MAX_WEIGHED_MIXED if is_mixed else _MAX_WEIGHED)
        parameters = parameters_of(posterior, weighing)
        of_outcome = np.sort(rng.choice(weighing.joint.size, outcomes, p=weighing.joint.reshape(-1)))
        seed = rng.integers(2**63)
        for target in (None, *names):
            place = None if target is None else posterior.names.index(target)
            again = np.random.default_rng(seed)  # common random numbers make gains comparable
            gains = simulated_gains(parameters, weighing, of_outcome, num_rows, place, again)
            found.append(Experiment(target, *_told(gains, known, len(gains)), num_rows))
    independent = posterior.diagnosis.effective_samples or np.inf
    for column in measured:
        gains, number = measurement_gains(posterior, known, column, outcomes, rng)
        found.append(Experiment(None, *_told(gains, known, independent), number, measured=column))
    return NextExperiments(
        tuple(sorted(found, key=lambda one: -one.gain)),
        num_rows,
        "the graph" if about is None else about if isinstance(about, str) else _name_of(about),
        entropy=known.entropy,
        num_graphs=len(known.graphs),
        verdict=posterior.diagnosis.verdict,
    )


def _told(gains: NDArray[np.float64], known: Beliefs, independent: float) -> tuple[float, float]:
    """The mean gain and its standard error; a simulated mean may exceed what is open, the gain cannot."""
    error = gains.std(ddof=1) / np.sqrt(min(len(gains), independent)) if len(gains) > 1 else np.inf
    return float(np.clip(gains.mean(), 0.0, known.entropy)), float(error)


def _name_of(feature: object) -> str:
    return getattr(feature, "__name__", "the feature")
