"""BCD Nets: Bayesian causal discovery nets (Cundy, Grover & Ermon 2021), for linear-Gaussian models.

A weighted DAG is a permutation and a strictly triangular matrix: `W = P U Pᵀ`, `x = Wᵀ x + noise`. The
variational posterior is `q(U, log σ) q(P | U, log σ)`: a diagonal normal, then a distribution over
permutations whose logits a network computes from the weights. Its evidence lower bound is maximised by
stochastic gradients: through the draw for the weights, and for the permutations by the score function,
several permutations of the same weights serving each other as baseline. (The published method differentiates
a Sinkhorn relaxation straight through; that gradient is biased, and the bound falls again during training.)

This model is not BGe: the weights have a horseshoe prior and the noise of all variables may have one
variance. An edge is a weight that exceeds a threshold, so the samples are no draws from the posterior of a
graph score.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array

from gflowdag.baselines.permutations import log_bethe_permanent, sample_permutation
from gflowdag.runtime.deadline import Deadline
from gflowdag.runtime.progress import Progress, silent


class Config(NamedTuple):
    """Settings of a run."""

    equal_variances: bool = False
    num_steps: int = 20_000
    batch_size: int = 16  # draws of weights and noise per step
    num_permutations: int = 4  # for each of them, at least 2
    learning_rate: float = 1e-3  # of AdaBelief
    degree: float = 2.0  # expected edges per node, sets the scale of the horseshoe
    hidden: int = 128  # width of both layers of the network


class Moments(NamedTuple):
    """All that the likelihood needs of a centred table."""

    covariance: Array | np.ndarray  # float64 [d, d], second moments
    num_rows: Array | np.ndarray  # float64 []


class Params(NamedTuple):
    """Of the variational posterior; there are e = d(d−1)/2 weights and v = 1 or d variances."""

    mean: Array  # float64 [e + v]
    log_std: Array  # float64 [e + v]
    layers: tuple[tuple[Array, Array], ...]  # weights and biases of the network to the d² permutation logits


class State(NamedTuple):
    """Training on its way."""

    params: Params
    optimiser: optax.OptState
    key: Array


class Draw(NamedTuple):
    """Weights and noise from the variational posterior, with k permutations."""

    weights: Array  # float64 [k, d, d], W, rows are sources
    log_noise: Array  # float64 [d], log standard deviations
    latents: Array  # float64 [e + v], the entries of U, then the free log standard deviations
    log_q_latents: Array  # float64 [], log density of the latents
    log_q_permutation: Array  # float64 [k], log probability of each permutation given the latents


def moments(values: np.ndarray) -> Moments:
    """Second moments of a table, float [n, d], about its column means."""
    centred = values - values.mean(axis=0)
    return Moments(centred.T @ centred / len(values), np.asarray(len(values), np.float64))


def init(key: Array, num_variables: int, config: Config) -> State:
    """A wide posterior around zero weights and unit noise, all permutations nearly alike."""
    d = num_variables
    size = d * (d - 1) // 2 + (1 if config.equal_variances else d)
    key, *draws = jax.random.split(key, 4)
    widths = (size, config.hidden, config.hidden, d * d)
    layers = tuple(
        (jax.random.normal(draw, (m, n), jnp.float64) / np.sqrt(m), jnp.zeros(n, jnp.float64))
        for draw, m, n in zip(draws, widths[:-1], widths[1:], strict=True)
    )
    params = Params(jnp.zeros(size, jnp.float64), jnp.full(size, -1.0, jnp.float64), layers)
    return State(params, optax.adabelief(config.learning_rate).init(params), key)


def step(state: State, data: Moments, config: Config) -> tuple[State, Array]:
    """One ascent of the evidence lower bound; also returns its estimate, float64 []."""
    key, draw = jax.random.split(state.key)
    gradient, bound = jax.grad(surrogate_loss, has_aux=True)(state.params, draw, data, config)
    updates, optimiser = optax.adabelief(config.learning_rate).update(gradient, state.optimiser, state.params)
    params = jax.tree.map(jnp.add, state.params, updates)
    return State(params, optimiser, key), bound


def surrogate_loss(params: Params, key: Array, data: Moments, config: Config) -> tuple[Array, Array]:
    """A loss whose gradient estimates that of minus the bound, and the bound itself, float64 [] each."""
    d = len(data.covariance)

    def of_one(key: Array) -> tuple[Array, Array]:
        draw = sample(key, params, config, d)
        log_joint = log_joint_density(draw, data, config)
        bound = jax.lax.stop_gradient(log_joint - draw.log_q_latents - draw.log_q_permutation)
        # Compared with the mean of the other permutations: (bound − mean of all) · k / (k − 1).
        advantage = (bound - bound.mean()) * config.num_permutations / (config.num_permutations - 1)
        gain = jnp.mean(log_joint + advantage * draw.log_q_permutation) - draw.log_q_latents
        return -gain, bound.mean()

    losses, bounds = jax.vmap(of_one)(jax.random.split(key, config.batch_size))
    return losses.mean(), bounds.mean()


def sample(key: Array, params: Params, config: Config, num_variables: int) -> Draw:
    """Draw weights and noise, through which gradients pass, and permutations, through which none do."""
    d = num_variables
    normal, gumbel = jax.random.split(key)
    noise = jax.random.normal(normal, params.mean.shape, jnp.float64)
    latents = params.mean + jnp.exp(params.log_std) * noise
    log_q_latents = jnp.sum(-0.5 * noise**2 - params.log_std) - 0.5 * np.log(2 * np.pi) * latents.size
    logits = _permutation_logits(params.layers, latents).reshape(d, d)
    draws = jax.random.split(gumbel, config.num_permutations)
    permutations = jax.vmap(sample_permutation, (0, None))(draws, jax.lax.stop_gradient(logits))
    log_q_permutation = jnp.sum(permutations * logits, axis=(1, 2)) - log_bethe_permanent(logits)
    num_weights = d * (d - 1) // 2
    triangular = jnp.zeros((d, d), jnp.float64).at[np.triu_indices(d, 1)].set(latents[:num_weights])
    weights = permutations @ triangular @ jnp.swapaxes(permutations, 1, 2)
    log_noise = jnp.broadcast_to(latents[num_weights:], (d,))
    return Draw(weights, log_noise, latents, log_q_latents, log_q_permutation)


def log_joint_density(draw: Draw, data: Moments, config: Config) -> Array:
    """Log likelihood of the table plus log prior of weights and noise, for each permutation, float64 [k]."""
    d = len(data.covariance)
    num_weights = d * (d - 1) // 2
    residual = jnp.eye(d) - draw.weights
    squares = jnp.sum(residual * (data.covariance @ residual), axis=1)  # mean squared residuals [k, d]
    terms = squares * jnp.exp(-2 * draw.log_noise) + 2 * draw.log_noise + np.log(2 * np.pi)
    log_likelihood = -0.5 * jnp.sum(terms, axis=1) * data.num_rows
    scale = horseshoe_scale(d, data.num_rows, config.degree)
    log_prior = jnp.sum(log_horseshoe(draw.latents[:num_weights], scale))
    log_prior += jnp.sum(-0.5 * (draw.latents[num_weights:] / 3.0) ** 2)
    return log_likelihood + log_prior


def log_horseshoe(x: Array, scale: Array) -> Array:
    """Log density of the horseshoe distribution (Carvalho et al. 2010) up to a constant.

    Its upper bound `log(1 + 2 / x²)`, which is sharp in the tails and has the same pole at zero.
    """
    return jnp.log(jnp.log1p(2 * scale**2 / (x**2 + 1e-30))) - jnp.log(scale)


def horseshoe_scale(num_variables: int, num_rows: Array | np.ndarray, degree: float) -> Array:
    """Global scale for an expected number of edges (Piironen & Vehtari 2017), as published for BCD Nets."""
    absent = num_variables - 1 - 2 * degree
    if absent <= 0:
        return jnp.full_like(num_rows, 1 / (2 * num_variables))
    return 2 * degree / absent / jnp.sqrt(num_rows)


def run(
    keys: Array,
    data: Moments,
    config: Config,
    *,
    chunk: int = 500,
    deadline: Deadline = Deadline(),  # noqa: B008 (immutable)
    progress: Progress = silent,
) -> tuple[Params, np.ndarray]:
    """Fit one or several data sets at once.

    Args:
        keys: one key per data set [s].
        data: every leaf with a leading axis of the s data sets.
        config: settings.
        chunk: steps between two reports of progress.
        deadline: ends the fit early, after a chunk.
        progress: listener; hears the mean lower bound of the chunk, averaged over data sets.

    Returns:
        Fitted parameters, each leaf with a leading axis [s], and the mean lower bound of each chunk,
        float64 [chunks, s].
    """
    state = jax.vmap(lambda key: init(key, data.covariance.shape[-1], config))(keys)
    bounds = []
    for done in range(0, config.num_steps, chunk):
        count = min(chunk, config.num_steps - done)
        state, total = _advance(state, data, count, config)
        bounds.append(np.asarray(total) / count)
        progress(done + count, config.num_steps, elbo=float(bounds[-1].mean()))
        if deadline.has_passed:
            break
    return state.params, np.array(bounds)


@partial(jax.jit, static_argnames=("config",), donate_argnums=0)
def _advance(state: State, data: Moments, num_steps: int, config: Config) -> tuple[State, Array]:
    batched = jax.vmap(partial(step, config=config))

    def body(_: int, carry: tuple[State, Array]) -> tuple[State, Array]:
        state, elbo = batched(carry[0], data)
        return state, carry[1] + elbo

    return jax.lax.fori_loop(0, num_steps, body, (state, jnp.zeros(data.num_rows.shape, jnp.float64)))


@partial(jax.jit, static_argnames=("config", "num_variables", "num_samples"))
def sample_weights(
    keys: Array, params: Params, config: Config, num_variables: int, num_samples: int
) -> Array:
    """Weighted DAGs of fitted data sets, float64 [s, n, d, d], rows are sources.

    Args:
        keys: one key per data set [s].
        params: as returned by `run`.
        config: settings.
        num_variables: d.
        num_samples: n.
    """

    def of_one(key: Array, params: Params) -> Array:
        single = config._replace(num_permutations=1)
        draw = partial(sample, params=params, config=single, num_variables=num_variables)
        return jax.vmap(draw)(jax.random.split(key, num_samples)).weights[:, 0]

    return jax.vmap(of_one)(keys, params)


def _permutation_logits(layers: tuple[tuple[Array, Array], ...], latents: Array) -> Array:
    """Logits bounded to ±10, so that no permutation is ever ruled out."""
    x = latents
    for weights, bias in layers[:-1]:
        x = jax.nn.relu(x @ weights + bias)
    weights, bias = layers[-1]
    return 10 * jnp.tanh((x @ weights + bias) / 10)
