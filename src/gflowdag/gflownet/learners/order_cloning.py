"""Learning from the orders of another method, where nothing is learnt from the policy's own alone.

Each DAG has one canonical order and each order one path, so that the likelihood of the policy is exact, and
so are the importance weights of all orders, given ones and own ones.
"""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from optax.losses import huber_loss

from gflowdag.gflownet.learners.orders import draw_orders
from gflowdag.gflownet.policies.orders import OrderPolicy
from gflowdag.gflownet.rollout import Trajectories, follow, rollout, steps_of
from gflowdag.gflownet.spaces.orders import OrderSpace
from gflowdag.gflownet.trainer import Moment

_STEEPEST = 10.0  # nats of imbalance from which on an order pulls no harder
_BOTTOM = 1000.0  # nats; own orders that much below all given ones count as this, also impossible ones


class OrderCloning(eqx.Module):
    """Maximum likelihood on given orders."""

    space: OrderSpace
    orders: Array  # int32 [n, d], samples of another method
    batch: int = eqx.field(static=True, default=256)
    width: int = eqx.field(static=True, default=256)
    depth: int = eqx.field(static=True, default=3)

    def init(self, key: Array) -> tuple[OrderPolicy, tuple[()]]:
        """A fresh network; no memory."""
        return OrderPolicy(self.space.num_variables, self.width, self.depth, key), ()

    def loss(self, params: OrderPolicy, target: OrderPolicy, memory: tuple[()], key: Array, moment: Moment):
        """Negative mean log-likelihood of a batch.

        `above` is the mean log importance weight of the orders: if they come from the posterior, the log
        evidence plus the Kullback–Leibler divergence of the policy from the posterior.
        """
        paths = given(self.space, params, self.orders, key, self.batch)
        log_policy = steps_of(params, paths).log_forward.sum(axis=0)
        return -log_policy.mean(), (memory, {"above": jnp.mean(paths.log_final - log_policy)})


class OrderMatching(OrderCloning):
    """Maximum likelihood on given orders, and trajectory balance on these and on the policy's own.

    The likelihood leads the policy to the posterior, but does not hear of the orders that the policy makes
    and nobody else does. Trajectory balance asks that log weight less log probability be the same for all
    orders (in the log-variance form of Richter et al. 2020, which needs no flows: those of a network that
    cloned are untrained, and sub-trajectory balance would ruin the policy before it had learnt them).
    """

    def loss(self, params: OrderPolicy, target: OrderPolicy, memory: tuple[()], key: Array, moment: Moment):
        """Both losses of a batch, half of which is given.

        `above` is as in `OrderCloning`, `below` the same of the policy's own orders: the log evidence less
        the divergence of the posterior from the policy.
        """
        given_key, own_key = jax.random.split(key)
        half = self.batch // 2
        theirs = given(self.space, params, self.orders, given_key, half)
        own = jax.lax.stop_gradient(draw_orders(self.space, params, own_key, self.batch - half))
        log_theirs, log_own = (steps_of(params, paths).log_forward.sum(axis=0) for paths in (theirs, own))
        bottom = theirs.log_final.min() - _BOTTOM
        above = theirs.log_final - log_theirs
        below = jnp.maximum(own.log_final, bottom) - log_own
        log_ratios = jnp.concatenate([above, below])
        # A median, as one impossible order of the policy's own would carry a mean away.
        imbalance = log_ratios - jax.lax.stop_gradient(jnp.median(log_ratios))
        loss = huber_loss(imbalance, delta=_STEEPEST).mean() - log_theirs.mean()
        return loss.astype(jnp.float32), (memory, {"above": above.mean(), "below": below.mean()})


def given(space: OrderSpace, policy: OrderPolicy, orders: Array, key: Array, batch: int) -> Trajectories:
    """The trajectories of some of the orders, int32 [n, d], drawn with replacement."""
    rows = jax.random.randint(key, (batch,), 0, orders.shape[0], jnp.int32)
    return jax.lax.stop_gradient(rollout(space, policy, follow(orders[rows]), batch))
