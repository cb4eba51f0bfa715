"""DiBS: differentiable Bayesian structure learning (Lorch et al. 2021), over graphs alone (marginal DiBS).

A particle is a latent embedding `Z = (U, V)` of the nodes; it stands for a distribution over graphs in which
`i → j` is present, independently, with probability `σ(α u_i·v_j)`. Particles follow the gradient of
`log p(Z | D)` by Stein variational gradient descent, while α (how sharply a particle decides) and β (how much
a cycle costs) grow linearly. The target is

    log p(Z | D) = log N(Z; 0, 1/k) − β E[h(G)] + log E_{G ~ p(G | Z)} [exp log_score(G)] + constant.

Every term depends on Z through the edge logits `S = α U Vᵀ` only, and its gradient in S has a short closed
form, so nothing is differentiated automatically.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array

from gflowdag.baselines.graph_score import GraphScore
from gflowdag.baselines.svgd import stein_direction
from gflowdag.runtime.deadline import Deadline
from gflowdag.runtime.progress import Progress, silent


class Config(NamedTuple):
    """Settings of a run; the defaults are the published ones (30 particles in the experiments)."""

    num_particles: int = 30
    num_steps: int = 3000
    learning_rate: float = 0.005  # of RMSProp
    sharpness: float = 1.0  # α(t) = sharpness · t
    cycle_cost: float = 1.0  # β(t) = cycle_cost · t
    bandwidth: float = 5.0  # of the Stein kernel
    num_graphs: int = 128  # graphs per particle and step that estimate the gradient of the score
    num_soft_graphs: int = 32  # relaxed graphs per particle and step that estimate that of E[h(G)]


class Target(NamedTuple):
    """What is inferred: a score, and which edges are free."""

    score: GraphScore
    required: Array | np.ndarray  # bool [d, d], edges that every graph has
    forbidden: Array | np.ndarray  # bool [d, d], edges that no graph has, the diagonal included


class State(NamedTuple):
    """Particles on their way."""

    latents: Array  # float32 [m, 2, d, k]: U (as source) and V (as target) of each particle
    optimiser: optax.OptState
    step: Array  # int32 []
    key: Array


def init(key: Array, num_variables: int, config: Config) -> State:
    """Particles drawn from the latent prior N(0, 1/k), with k = d."""
    key, draw = jax.random.split(key)
    shape = (config.num_particles, 2, num_variables, num_variables)
    latents = jax.random.normal(draw, shape, jnp.float32) / np.float32(np.sqrt(num_variables))
    return State(latents, _optimiser(config).init(latents), jnp.int32(0), key)


def step(state: State, target: Target, config: Config) -> State:
    """Move all particles once."""
    key, draw = jax.random.split(state.key)
    time = state.step.astype(jnp.float32)
    gradient = partial(
        latent_gradient,
        target=target,
        alpha=config.sharpness * time,
        beta=config.cycle_cost * time,
        config=config,
    )
    gradients = jax.vmap(gradient)(jax.random.split(draw, config.num_particles), state.latents)
    flat = (config.num_particles, -1)
    direction = stein_direction(state.latents.reshape(flat), gradients.reshape(flat), config.bandwidth)
    updates, optimiser = _optimiser(config).update(-direction.reshape(state.latents.shape), state.optimiser)
    latents = jax.tree.map(jnp.add, state.latents, updates)
    return State(latents, optimiser, state.step + 1, key)


def latent_gradient(
    key: Array, latents: Array, target: Target, alpha: Array, beta: Array, config: Config
) -> Array:
    """Monte-Carlo gradient of `log p(Z | D)` at one particle.

    Args:
        key: source of randomness.
        latents: float32 [2, d, k].
        target: score and free edges.
        alpha: sharpness of the edge probabilities, float32 [].
        beta: cost of cycles, float32 [].
        config: numbers of graphs.

    Returns:
        float32 [2, d, k].
    """
    hard, soft = jax.random.split(key)
    sources, targets = latents
    logits = alpha * sources @ targets.T
    free = ~(target.required | target.forbidden)
    in_logits = score_gradient(hard, logits, target, config.num_graphs)
    in_logits -= beta * cycle_gradient(soft, logits, target, config.num_soft_graphs)
    in_logits = alpha * jnp.where(free, in_logits, 0)
    in_latents = jnp.stack([in_logits @ targets, in_logits.T @ sources])
    return in_latents - latents.shape[-1] * latents  # the latent prior has variance 1/k


def score_gradient(key: Array, logits: Array, target: Target, num_graphs: int) -> Array:
    """Gradient of `log E[exp log_score(G)]` in the edge logits, float32 [d, d].

    The score need not be differentiable: `∇ log E[R] = E[R ∇ log p(G)] / E[R]`, both expectations over the
    same graphs, and `∇ log p(G) = G − σ(S)`.
    """
    probability = jax.nn.sigmoid(logits)
    uniform = jax.random.uniform(key, (num_graphs, *logits.shape), jnp.float32)
    graphs = (uniform < probability) & ~target.forbidden | target.required
    weights = jax.nn.softmax(target.score(graphs)).astype(jnp.float32)
    return jnp.tensordot(weights, graphs.astype(jnp.float32), axes=1) - probability


def cycle_gradient(key: Array, logits: Array, target: Target, num_graphs: int) -> Array:
    """Gradient of `E[h(G)]`, `h(G) = tr (I + G/d)^d − d`, in the edge logits, float32 [d, d].

    The expectation runs over relaxed graphs `σ(S + logistic noise)`; `∇h(G) = ((I + G/d)^(d−1))ᵀ`.
    """
    d = logits.shape[0]
    noise = jax.random.logistic(key, (num_graphs, d, d), jnp.float32)
    relaxed = jax.nn.sigmoid(logits + noise)
    graphs = jnp.where(target.required, 1, jnp.where(target.forbidden, 0, relaxed))
    power = jnp.linalg.matrix_power(jnp.eye(d, dtype=jnp.float32) + graphs / d, d - 1)
    return jnp.mean(jnp.swapaxes(power, -1, -2) * relaxed * (1 - relaxed), axis=0)


def particle_graphs(latents: np.ndarray, required: np.ndarray, forbidden: np.ndarray) -> np.ndarray:
    """The graph that each particle tends to as α → ∞: `i → j` iff `u_i·v_j > 0`.

    Args:
        latents: float [..., 2, d, k].
        required: edges that every graph has, bool [..., d, d].
        forbidden: edges that no graph has, bool [..., d, d].

    Returns:
        bool [..., d, d]; some may be cyclic.
    """
    logits = latents[..., 0, :, :] @ np.swapaxes(latents[..., 1, :, :], -1, -2)
    return (logits > 0) & ~forbidden | required


def run(
    keys: Array,
    targets: Target,
    config: Config,
    *,
    chunk: int = 100,
    deadline: Deadline = Deadline(),  # noqa: B008 (immutable)
    progress: Progress = silent,
) -> tuple[np.ndarray, int]:
    """Infer one or several posteriors at once.

    Args:
        keys: one key per data set [s].
        targets: every leaf with a leading axis of the s data sets.
        config: settings.
        chunk: steps between two reports of progress.
        deadline: ends the run early, after a chunk.
        progress: listener.

    Returns:
        Latents of the particles, float32 [s, m, 2, d, k]; see `particle_graphs`. And the steps taken.
    """
    num_variables = targets.required.shape[-1]
    state = jax.vmap(lambda key: init(key, num_variables, config))(keys)
    done = 0
    while done < config.num_steps and not (done and deadline.has_passed):
        count = min(chunk, config.num_steps - done)
        state = _advance(state, targets, count, config)
        state.step.block_until_ready()
        done += count
        progress(done, config.num_steps)
    return np.asarray(state.latents), done


@partial(jax.jit, static_argnames=("config",), donate_argnums=0)
def _advance(state: State, targets: Target, num_steps: int, config: Config) -> State:
    batched = jax.vmap(partial(step, config=config))
    return jax.lax.fori_loop(0, num_steps, lambda _, state: batched(state, targets), state)


def _optimiser(config: Config) -> optax.GradientTransformation:
    return optax.rmsprop(config.learning_rate, decay=0.9, eps=1e-8)
