"""What the policies over orders share: a residual perceptron whose head starts at zero."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array


class ResidualPerceptron(eqx.Module):
    """Layers and their start; what goes in and what the head says is for a policy to decide."""

    first: eqx.nn.Linear
    blocks: list[eqx.nn.Linear]
    head: eqx.nn.Linear

    def __init__(self, num_in: int, num_to_head: int, num_out: int, width: int, depth: int, key: Array):
        keys = jax.random.split(key, depth + 1)
        linear = lambda a, b, key: eqx.nn.Linear(a, b, dtype=jnp.float32, key=key)  # noqa: E731
        self.first = linear(num_in, width, keys[0])
        self.blocks = [linear(width, width, key) for key in keys[1:depth]]
        self.head = jax.tree.map(jnp.zeros_like, linear(num_to_head, num_out, keys[depth]))

    def hidden(self, features: Array) -> Array:
        """The last hidden layer, float32 [width]."""
        hidden = jax.nn.gelu(self.first(features))
        for block in self.blocks:
            hidden = hidden + jax.nn.gelu(block(hidden))
        return hidden
