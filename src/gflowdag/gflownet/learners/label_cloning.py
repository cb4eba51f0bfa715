"""Learning from canonical orders of another method, without any table."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from gflowdag.gflownet.policies.label_orders import ReadyPolicy
from gflowdag.gflownet.rollout import follow, rollout, steps_of
from gflowdag.gflownet.spaces.label_orders import LabelOrderSpace
from gflowdag.gflownet.trainer import Moment


class LabelCloning(eqx.Module):
    """Maximum likelihood on given orders: each graph has one canonical order, and each order one path."""

    space: LabelOrderSpace
    orders: Array  # int32 [n, d], of graphs from the posterior, nodes numbered by label
    batch: int = eqx.field(static=True, default=256)
    width: int = eqx.field(static=True, default=256)
    depth: int = eqx.field(static=True, default=3)

    def init(self, key: Array) -> tuple[ReadyPolicy, tuple[()]]:
        """A network that corrects nothing yet; no memory."""
        return ReadyPolicy(self.space.num_variables, self.width, self.depth, key), ()

    def loss(self, params: ReadyPolicy, target: ReadyPolicy, memory: tuple[()], key: Array, moment: Moment):
        """Negative mean log-likelihood of some of the orders, drawn with replacement."""
        rows = jax.random.randint(key, (self.batch,), 0, self.orders.shape[0], jnp.int32)
        paths = rollout(self.space, params, follow(self.orders[rows]), self.batch)
        log_policy = steps_of(params, jax.lax.stop_gradient(paths)).log_forward.sum(axis=0)
        return -log_policy.mean(), (memory, {})
