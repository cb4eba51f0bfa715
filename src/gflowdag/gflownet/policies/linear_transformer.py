"""The paper's policy: a Linear Transformer on the d² edges of a graph (paper, sec. 4.3).

Sizes are those of the official implementation. Attention is linear in the number of tokens (Katharopoulos
et al. 2020), and nothing but the embeddings tells nodes apart.

With `sees_scores`, which is not in the paper, the network also sees the change of the score by every edge,
and corrects the policy that would be right if pairs of nodes did not interact.
"""

from __future__ import annotations

from itertools import pairwise

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from gflowdag.gflownet.policies.pairs import hierarchical, independent_pairs
from gflowdag.gflownet.spaces import NEVER, Decision
from gflowdag.gflownet.spaces.edges import Observation, edge_decision, uniform_removals


class Sizes(eqx.Module):
    """Sizes of the network; the defaults make 5 million parameters."""

    embedding: int = 128  # of a source, of a target, and of an edge's bit
    heads: int = 4
    head_size: int = 64
    hidden: int = 512
    shared_blocks: int = 3
    head_blocks: int = 2  # of each of the two heads


_SHARE_OF_GAIN = 0.1  # unit of the corrections, of the log flow that independent pairs expect
_TRUNCATED = 0.87962566  # standard deviation of a standard normal variable cut off at -2 and 2


def _linear(in_size: int, out_size: int, key: Array, variance: float = 0.4) -> eqx.nn.Linear:
    """A linear layer with weights of a variance of `variance / in_size`, and zero bias."""
    layer = eqx.nn.Linear(in_size, out_size, key=key, dtype=jnp.float32)
    scale = (variance / in_size) ** 0.5 / _TRUNCATED
    weight = scale * jax.random.truncated_normal(key, -2.0, 2.0, layer.weight.shape, jnp.float32)
    return eqx.tree_at(lambda l: (l.weight, l.bias), layer, (weight, jnp.zeros(out_size, jnp.float32)))


class Block(eqx.Module):
    """Linear attention and a perceptron, each on the normalised tokens joined with the edges' bits."""

    bits_before_attention: eqx.nn.Linear
    bits_before_perceptron: eqx.nn.Linear
    norm_attention: eqx.nn.LayerNorm
    norm_perceptron: eqx.nn.LayerNorm
    project: eqx.nn.Linear  # to queries, keys and values of all heads, in one product
    join: eqx.nn.Linear
    widen: eqx.nn.Linear
    narrow: eqx.nn.Linear
    heads: int = eqx.field(static=True)

    def __init__(self, sizes: Sizes, key: Array, num_bits: int = 1):
        keys = jax.random.split(key, 6)
        token, attention = 2 * sizes.embedding, sizes.heads * sizes.head_size
        joined = token + sizes.embedding
        self.bits_before_attention = _linear(num_bits, sizes.embedding, keys[0])
        self.bits_before_perceptron = _linear(num_bits, sizes.embedding, keys[1])
        self.norm_attention = eqx.nn.LayerNorm(joined, dtype=jnp.float32)
        self.norm_perceptron = eqx.nn.LayerNorm(joined, dtype=jnp.float32)
        self.project = _linear(joined, 3 * attention, keys[2])
        self.join = _linear(attention, token, keys[3])
        self.widen = _linear(joined, sizes.hidden, keys[4])
        self.narrow = _linear(sizes.hidden, token, keys[5])
        self.heads = sizes.heads

    def __call__(self, tokens: Array, bits: Array) -> Array:
        """Tokens [d², 256] and what is known of the edges, [d², 1 or 4], to tokens."""
        x = _joined(tokens, bits, self.bits_before_attention, self.norm_attention)
        tokens = tokens + jax.vmap(self.join)(self._attend(x))
        x = _joined(tokens, bits, self.bits_before_perceptron, self.norm_perceptron)
        return tokens + jax.vmap(self.narrow)(jax.nn.gelu(jax.vmap(self.widen)(x)))

    def _attend(self, x: Array) -> Array:
        projected = jax.vmap(self.project)(x).reshape(len(x), 3, self.heads, -1)
        query, key, value = jnp.moveaxis(projected, 1, 0)
        query, key = jax.nn.elu(query) + 1.0, jax.nn.elu(key) + 1.0
        memory = jnp.einsum("thk,thv->hkv", key, value)
        attended = jnp.einsum("thk,hkv->thv", query, memory)
        total = jnp.einsum("thk,hk->th", query, key.sum(axis=0))
        return (attended / (total[..., None] + 1e-6)).reshape(len(x), -1)


def _joined(tokens: Array, bits: Array, embed: eqx.nn.Linear, norm: eqx.nn.LayerNorm) -> Array:
    return jax.vmap(norm)(jnp.concatenate([tokens, jax.vmap(embed)(bits)], axis=-1))


class LinearTransformer(eqx.Module):
    """Policy of the `paper` preset: a shared trunk, one head for stopping and one for the edges."""

    sources: Array  # float32 [d, 128]
    targets: Array  # float32 [d, 128]
    trunk: list[Block]
    stop_blocks: list[Block]
    edge_blocks: list[Block]
    stop_head: list[eqx.nn.Linear]
    edge_head: list[eqx.nn.Linear]
    sees_scores: bool = eqx.field(static=True)

    def __init__(
        self,
        num_variables: int,
        *,
        sizes: Sizes = Sizes(),  # noqa: B008 (immutable)
        sees_scores: bool = False,
        key: Array,
    ):
        self.sees_scores = sees_scores
        num_bits = 4 if sees_scores else 1
        keys = iter(jax.random.split(key, 8 + sizes.shared_blocks + 2 * sizes.head_blocks))
        shape = (num_variables, sizes.embedding)
        self.sources = jax.random.truncated_normal(next(keys), -2.0, 2.0, shape, jnp.float32)
        self.targets = jax.random.truncated_normal(next(keys), -2.0, 2.0, shape, jnp.float32)
        self.trunk = [Block(sizes, next(keys), num_bits) for _ in range(sizes.shared_blocks)]
        self.stop_blocks = [Block(sizes, next(keys), num_bits) for _ in range(sizes.head_blocks)]
        self.edge_blocks = [Block(sizes, next(keys), num_bits) for _ in range(sizes.head_blocks)]
        widths = [2 * sizes.embedding, 2 * sizes.embedding, sizes.embedding, 1]
        layers = list(pairwise(widths))
        # Larger weights than in the blocks: a step of Adam moves the logits four times as far.
        self.stop_head = [_linear(*layer, next(keys), variance=_TRUNCATED**2) for layer in layers]
        self.edge_head = [_linear(*layer, next(keys), variance=_TRUNCATED**2) for layer in layers]
        if sees_scores:  # training starts from independent pairs
            self.stop_head[-1] = jax.tree.map(lambda leaf: 0.01 * leaf, self.stop_head[-1])
            self.edge_head[-1] = jax.tree.map(lambda leaf: 0.01 * leaf, self.edge_head[-1])

    def __call__(self, observation: Observation) -> Decision:
        d = observation.adjacency.shape[0]
        pair = (d, d, self.sources.shape[-1])
        tokens = jnp.concatenate(
            [jnp.broadcast_to(self.sources[:, None], pair), jnp.broadcast_to(self.targets[None], pair)],
            axis=-1,
        ).reshape(d * d, -1)
        bits = _known(observation) if self.sees_scores else _bits(observation)
        tokens = _run(self.trunk, tokens, bits)
        stop_token = _run(self.stop_blocks, tokens, bits).mean(axis=0)
        edge_tokens = _run(self.edge_blocks, tokens, bits)
        stop_logit = _perceptron(self.stop_head, stop_token)[0]
        edge_logits = jax.vmap(lambda token: _perceptron(self.edge_head, token)[0])(edge_tokens)
        edge_logits = edge_logits.reshape(d, d)
        if self.sees_scores:
            stop_logit, edge_logits = _corrected(observation, stop_logit, edge_logits)
        forward = hierarchical(stop_logit, edge_logits, observation.legal)
        return edge_decision(*forward, uniform_removals(observation.removable))


def _bits(observation: Observation) -> Array:
    """Which edges are there, float32 [d², 1]."""
    return observation.adjacency.reshape(-1, 1).astype(jnp.float32)


def _known(observation: Observation) -> Array:
    """Which edges are there, which are legal, their deltas (on a logarithmic scale) and the exponent."""
    exponent = jnp.broadcast_to(jnp.log(observation.exponent + 0.01), observation.legal.shape)
    columns = [observation.legal, jnp.arcsinh(observation.deltas) / 3, exponent / 3]
    known = [column.reshape(-1, 1).astype(jnp.float32) for column in columns]
    return jnp.concatenate([_bits(observation), *known], axis=-1)


def _corrected(observation: Observation, stop: Array, edges: Array) -> tuple[Array, Array]:
    """Logits of independent pairs with the network's corrections.

    Far from the end of a trajectory the pairs are wrong by tens of nats, at its end by none: corrections are
    in units of what is still to be gained. What the edges gain by theirs, stopping loses.
    """
    stop_start, edges_start = independent_pairs(observation)
    unit = 1.0 - _SHARE_OF_GAIN * stop_start
    edges = edges_start + unit * edges
    num_added = observation.removable.sum()
    flow = jax.nn.logsumexp(jnp.where(observation.legal, edges, NEVER)) - jnp.log(num_added + 1.0)
    return stop_start + unit * stop - flow, edges


def _run(blocks: list[Block], tokens: Array, bits: Array) -> Array:
    for block in blocks:
        tokens = block(tokens, bits)
    return tokens


def _perceptron(layers: list[eqx.nn.Linear], x: Array) -> Array:
    for layer in layers[:-1]:
        x = jax.nn.relu(layer(x))
    return layers[-1](x)
