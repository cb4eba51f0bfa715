"""Stein variational gradient descent: the direction in which a set of particles moves (Liu & Wang 2016)."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array


def stein_direction(particles: Array, gradients: Array, bandwidth: float) -> Array:
    """Ascent direction of all particles under the kernel `k(x, y) = exp(−‖x − y‖² / bandwidth)`.

    Each particle follows the log density of its neighbours and is pushed away from them:
    `φ(x) = mean_y [k(x, y) ∇ log p(y) + ∇_y k(y, x)]`.

    Args:
        particles: float [m, n].
        gradients: gradient of the log density at each particle, float [m, n].
        bandwidth: squared length scale of the kernel.

    Returns:
        float [m, n].
    """
    norms = jnp.sum(particles**2, axis=1)
    squared = norms[:, None] + norms[None, :] - 2 * particles @ particles.T
    kernel = jnp.exp(-jnp.maximum(squared, 0) / bandwidth)
    repulsion = (2 / bandwidth) * (kernel.sum(axis=1, keepdims=True) * particles - kernel @ particles)
    return (kernel @ gradients + repulsion) / len(particles)
