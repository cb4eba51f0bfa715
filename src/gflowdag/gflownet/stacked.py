"""Several problems of equal size trained at once: learners stacked along a leading axis and mapped over."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax import Array

from gflowdag.gflownet.trainer import Learner, Moment


class Stacked(eqx.Module):
    """A learner made of learners that differ only in their arrays; see `trainer.Learner`.

    Losses are summed, so that each problem gets the gradient it would get alone; give the trainer
    `stacked_optimizer`, which clips each problem's gradient by itself. Metrics are means over the problems.
    """

    learners: Any  # one learner whose array leaves have a leading axis [problems]
    size: int = eqx.field(static=True)

    def __init__(self, learners: Sequence[Learner]):
        arrays, static = zip(*(eqx.partition(learner, eqx.is_array) for learner in learners), strict=True)
        self.learners = eqx.combine(jax.tree.map(lambda *leaves: jnp.stack(leaves), *arrays), static[0])
        self.size = len(learners)

    @property
    def plans_ahead(self) -> bool:
        """Whether the learners follow the planned number of iterations."""
        return getattr(self.learners, "plans_ahead", False)

    def init(self, key: Array) -> tuple[Any, Any]:
        """Parameters and memories, stacked."""
        return eqx.filter_vmap(lambda learner, key: learner.init(key))(
            self.learners, jax.random.split(key, self.size)
        )

    def loss(self, params: Any, target: Any, memory: Any, key: Array, moment: Moment):
        """Sum of the losses."""
        losses, (memory, metrics) = eqx.filter_vmap(
            lambda learner, *state: learner.loss(*state, moment), in_axes=eqx.if_array(0)
        )(self.learners, params, target, memory, jax.random.split(key, self.size))
        return losses.sum(), (memory, jax.tree.map(jnp.mean, metrics))


def stacked_optimizer(optimizer: optax.GradientTransformation) -> optax.GradientTransformation:
    """`optimizer` applied to each of the stacked problems by itself."""
    return optax.GradientTransformation(
        jax.vmap(optimizer.init),
        lambda updates, state, params=None: jax.vmap(optimizer.update)(updates, state, params),
    )


def unstack(tree: Any, index: int) -> Any:
    """The part of one problem."""
    return jax.tree.map(lambda leaf: leaf[index] if eqx.is_array(leaf) else leaf, tree)
