"""Distributions over permutations, `q(P) ∝ exp ⟨P, logits⟩`: samples and normalising constant.

All iterations multiply and add positive numbers: in double precision logits may span several hundred nats,
and no exponential is taken inside a loop.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array

from gflowdag.baselines.assignment import max_assignment


def sample_permutation(key: Array, logits: Array) -> Array:
    """The permutation of largest total logit after Gumbel noise (Mena et al. 2018).

    Args:
        key: source of randomness.
        logits: float64 [d, d], bounded to a few tens.

    Returns:
        float64 [d, d], exactly 0/1 with one 1 in each row and column.
    """
    perturbed = logits + jax.random.gumbel(key, logits.shape, jnp.float64)
    # Scaling rows and columns changes no optimal assignment; sharpened and nearly doubly stochastic, few rows
    # are in conflict and the assignment is found in a few turns.
    scaled = sinkhorn(perturbed / 0.2, num_iterations=20)
    columns = max_assignment(jnp.log(scaled + 1e-300))
    return jax.nn.one_hot(columns, len(columns), dtype=jnp.float64)


def sinkhorn(logits: Array, num_iterations: int) -> Array:
    """The (nearly) doubly stochastic matrix `diag(a) exp(logits) diag(b)`.

    Args:
        logits: float64 [d, d], spanning less than 300 nats.
        num_iterations: normalisations of rows and then columns.

    Returns:
        float64 [d, d]; columns sum to one exactly, rows in the limit.
    """
    kernel = jnp.exp(logits - jax.lax.stop_gradient(logits.max(axis=1, keepdims=True)))

    def normalise(columns: Array, _: None) -> tuple[Array, None]:
        rows = 1 / (kernel @ columns)
        return 1 / (rows @ kernel), None

    columns, _ = jax.lax.scan(normalise, jnp.ones(len(kernel), kernel.dtype), length=num_iterations - 1)
    scaled = kernel * columns
    scaled = scaled / scaled.sum(axis=1, keepdims=True)
    return scaled / scaled.sum(axis=0)


def log_bethe_permanent(logits: Array, num_iterations: int = 15) -> Array:
    """Bethe approximation, a lower bound, of `log permanent(exp(logits))` (Vontobel 2013).

    It is the maximum over doubly stochastic `β` of `Σ β·logits − β log β + (1 − β) log (1 − β)`, found by
    belief propagation; by the envelope theorem its gradient is `β` at the maximum.

    Args:
        logits: float64 [d, d], d ≥ 2.
        num_iterations: rounds of messages.
    """
    kernel = jnp.exp(jax.lax.stop_gradient(logits - logits.max()))

    def messages(from_columns: Array, _: None) -> tuple[Array, None]:
        from_rows = 1 / _sum_of_others(kernel * from_columns, axis=1)
        return 1 / _sum_of_others(kernel * from_rows, axis=0), None

    from_columns, _ = jax.lax.scan(messages, jnp.ones_like(kernel), length=num_iterations)
    odds = kernel * from_columns / _sum_of_others(kernel * from_columns, axis=1)
    belief = odds / (1 + odds)
    return jnp.sum(belief * logits - belief * jnp.log(belief) - (1 - belief) * jnp.log1p(odds))


def _sum_of_others(x: Array, axis: int) -> Array:
    """For each entry the sum of all others along `axis`, without cancellation where the entry dominates."""
    total = jnp.sum(x, axis=axis, keepdims=True)
    dominates = 2 * x > total
    rest = jnp.sum(jnp.where(dominates, 0, x), axis=axis, keepdims=True)
    return jnp.where(dominates, rest, total - x)
