"""The two remedies that the paper's appendix A leaves as future work, each without the other.

The preset `fast` of the DAG-GFlowNet has both: rewards are tempered (`Tempering`), and the logits are those
of independent pairs plus a learnt correction, with the deltas of all edges among the inputs. To see what each
is worth, one or the other is taken away here; everything else is the same.
"""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jax import Array

from gflowdag.estimators import DAGGFlowNet, Preset
from gflowdag.gflownet import (
    EdgeLearner,
    Observation,
    PairPolicy,
    Tempering,
    check_memory,
    default_width,
    edge_space,
)
from gflowdag.runtime import Progress, silent
from gflowdag.score import Score

_UNTEMPERED = Tempering(first_gain=1e9, rate=0.0)  # the exponent starts at 1 and stays there


class BlindPolicy(eqx.Module):
    """The same network, but told nothing about scores: neither in its inputs nor in its logits."""

    policy: PairPolicy

    def __call__(self, observation: Observation) -> Any:
        return self.policy(observation._replace(deltas=jnp.zeros_like(observation.deltas)))


class BlindLearner(EdgeLearner):
    """An edge-wise learner with a policy that does not see the deltas."""

    def init(self, key: Array) -> Any:
        policy, memory = super().init(key)
        return BlindPolicy(policy), memory


class PartlyRemedied(DAGGFlowNet):
    """The preset `fast` with one of the remedies, or none, and without graphs of chains.

    Args:
        temperature_schedule: temper the reward at first.
        reparametrised: give the policy the deltas, as inputs and in its logits.
        options: of `DAGGFlowNet`.
    """

    def __init__(self, *, temperature_schedule: bool, reparametrised: bool, **options: Any) -> None:
        super().__init__(preset="fast", **options)
        self.temperature_schedule = temperature_schedule
        self.reparametrised = reparametrised

    def make_learner(
        self, score: Score, preset: Preset, seed: int, progress: Progress = silent
    ) -> EdgeLearner:
        del seed, progress
        d = score.num_variables
        check_memory(d, preset.batch_size)
        learner = EdgeLearner if self.reparametrised else BlindLearner
        return learner(
            edge_space(score),
            batch_size=preset.batch_size,
            width=default_width(d),
            tempering=Tempering() if self.temperature_schedule else _UNTEMPERED,
        )  # pyright: ignore[reportCallIssue] (the constructor of an equinox module is inherited)
