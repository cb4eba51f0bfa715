"""Training objectives.

Where every state is complete, its flow is known up to the policy: `F(G) = R(G) / P(stop | G)`. Each state `t`
of a trajectory therefore gives an estimate of the log evidence,

    u_t = log R(G_t) − log P(stop | G_t) − Σ_{s<t} [log P_F(G_{s+1} | G_s) − log P_B(G_s | G_{s+1})],

and all of them agree iff the flows match. The objectives differ in which pairs of estimates they compare:
neighbours (the paper's modified detailed balance), all pairs of a trajectory (sub-trajectory balance, Madan
et al. 2023), or the ends of all trajectories (trajectory balance, in the log-variance form of Richter et al.
2020).
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array
from optax.losses import huber_loss

OBJECTIVES = ("detailed", "subtrajectory", "trajectory")


def evidence_estimates(log_flow: Array, log_forward: Array, log_backward: Array) -> Array:
    """The estimates `u` of the log evidence; arguments and result are [steps, batch].

    Args:
        log_flow: of the state before each action, `log R − log P(stop)`, any common offset left out.
        log_forward: log probability of the action that was taken; 0 for stop and beyond.
        log_backward: log probability of taking it back; 0 for stop and beyond.
    """
    added = jnp.cumsum(log_forward - log_backward, axis=0)
    return log_flow - (added - (log_forward - log_backward))


def flow_levels(log_flow: Array, log_policy: Array, shaped: Array) -> Array:
    """The same for spaces of fixed length, whose flows are learnt, [d + 1, batch].

    Log flow of each state less what the steps so far should have changed: constant along each trajectory iff
    the flows match.

    Args:
        log_flow: of each state but the last, relative to the potential, [d, batch]; that of the last is zero.
        log_policy: of each step taken, [d, batch].
        shaped: change of log reward and potential by each step taken, [d, batch].
    """
    excess = jnp.cumsum(log_policy - shaped, axis=0)
    nothing = jnp.zeros_like(excess[:1])
    return jnp.concatenate([log_flow, nothing]) - jnp.concatenate([nothing, excess])


def balance_loss(
    objective: str, estimates: Array, active: Array, stopped: Array, *, decay: float = 0.9
) -> Array:
    """Mean Huber loss of one objective: rewards of thousands of nats give finite steps.

    Args:
        objective: one of `OBJECTIVES`.
        estimates: `u` of `evidence_estimates`, [steps, batch].
        active: states that were visited, bool [steps, batch].
        stopped: the last of them in each trajectory, bool [steps, batch].
        decay: weight of a pair of states in sub-trajectory balance, to the power of their distance.
    """
    if objective == "detailed":
        return detailed_balance(estimates, active)
    if objective == "subtrajectory":
        return subtrajectory_balance(estimates, active, decay)
    if objective == "trajectory":
        return trajectory_balance(final_estimates(estimates, stopped))
    raise ValueError(f"objective must be one of {', '.join(OBJECTIVES)}, not {objective!r}")


def detailed_balance(estimates: Array, active: Array) -> Array:
    """Neighbouring states agree."""
    pairs = active[1:]
    residual = huber_loss(estimates[1:] - estimates[:-1])
    return jnp.where(pairs, residual, 0.0).sum() / jnp.maximum(pairs.sum(), 1)


def subtrajectory_balance(estimates: Array, active: Array, decay: float) -> Array:
    """All pairs of states of a trajectory agree, near ones before all."""
    steps = jnp.arange(estimates.shape[0])
    distance = steps[None, :] - steps[:, None]
    weight = jnp.where(distance > 0, jnp.asarray(decay, jnp.float32) ** distance, 0.0)[..., None]
    weight = weight * (active[:, None] & active[None, :])
    residual = huber_loss(estimates[:, None] - estimates[None, :])
    return (weight * residual).sum() / jnp.maximum(weight.sum(), 1e-6)


def trajectory_balance(finals: Array) -> Array:
    """The ends of all trajectories, [batch], agree; their mean takes the place of a learnt log evidence."""
    return huber_loss(finals - jax.lax.stop_gradient(finals.mean())).mean()


def final_estimates(estimates: Array, stopped: Array) -> Array:
    """The estimate at the end of each trajectory, its log importance weight, [batch]."""
    return jnp.where(stopped, estimates, 0.0).sum(axis=0)
