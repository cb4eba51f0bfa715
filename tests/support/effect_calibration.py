"""Whether posteriors of effects are calibrated on tables whose graph and parameters come from the prior."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import stats


class Outcome(NamedTuple):
    """How one true effect stands to its posterior."""

    rank: float  # the posterior mass below the true effect, at random within that of its atom
    probability: float  # stated, that there is any effect
    present: bool  # whether there is one


def outcome(draws: Any, true: float, present: bool, rng: np.random.Generator) -> Outcome:
    """The rank of the `true` effect in `EffectDraws` whose mass without an effect is at zero."""
    absent = 1 - draws.probability
    below = draws.weights @ (draws.values < true) + absent * (true > 0)
    return Outcome(below + rng.random() * absent * (true == 0), draws.probability, present)


def assert_calibrated(found: Sequence[Outcome]) -> None:
    """Ranks are uniform, and there are as many effects as the stated probabilities add up to."""
    ranks, p, present = np.array(found, dtype=float).T
    of_ranks = float(stats.kstest(ranks, "uniform").pvalue)
    error = np.sqrt((p * (1 - p)).sum())
    of_atom = float(2 * stats.norm.sf(abs(present.sum() - p.sum()) / error))
    print(
        f"{len(ranks)} tables: ranks p = {of_ranks:.3f}; effects {present.sum():.0f}, stated "
        f"{p.sum():.1f} ± {error:.1f}, p = {of_atom:.3f}"
    )
    assert of_ranks > 0.01
    assert of_atom > 0.01
