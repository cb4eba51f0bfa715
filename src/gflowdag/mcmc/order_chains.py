"""Chains of graphs that move as orders: fresh labels, steps in the order, a drawn graph, edge reversals.

Which order of a graph is the canonical one depends on the labels, and with fixed labels the canonical
condition holds nodes back in places that the graph itself would let them leave. But any labels are as good: a
*sweep* gives each chain new random labels, takes the canonical order of its graph under these, makes some
steps in the order (`orders`), draws a graph from all those that share the order it came to, and proposes edge
reversals to it (`reversals`). Each part leaves the posterior over graphs as it is, whatever the labels. What
is recorded is the canonical order of the graph under the labels of the problem.

Where modes are far apart, each chain is one of several replicas at rising temperatures, the local scores
multiplied by the inverse temperature, which exchange their graphs (parallel tempering).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from gflowdag.mcmc import orders
from gflowdag.mcmc.reversals import parent_sums, reverse_edges
from gflowdag.orders.candidates import CandidateTable, table_log_scores
from gflowdag.orders.draws import draw_graphs
from gflowdag.orders.labels import canonical_orders
from gflowdag.orders.problem import OrderProblem
from gflowdag.orders.weights import OrderWeights, order_weights
from gflowdag.runtime.convergence import FEWEST_DRAWS
from gflowdag.runtime.deadline import Deadline
from gflowdag.runtime.progress import Progress, silent


class Sweep(NamedTuple):
    """What a chain does between two drawings of labels."""

    steps: int  # in the order, before a graph is drawn
    reversals: int  # proposed to that graph, for each step and variable


SWEEP = Sweep(steps=5, reversals=2)
TEMPERED_SWEEP = Sweep(steps=2, reversals=10)  # where modes are far apart, reversals do most of the work


class Chains(NamedTuple):
    """What a run leaves behind: T recorded states of C chains; B inverse temperatures."""

    orders: np.ndarray  # int16 [C, T, d], canonical under the labels of the problem
    log_weights: np.ndarray  # float64 [C, T], of these orders
    relocated: float  # share of steps in which a block left its place
    swapped: float  # share of accepted swaps
    reversed: float  # share of accepted edge reversals
    exchanged: np.ndarray  # float64 [B − 1], share of accepted exchanges between neighbouring temperatures
    share_done: float = 1.0  # of the planned records
    is_burnt_in: bool = True  # whether all of these states come after the burn-in

    def acceptance(self) -> dict[str, float]:
        """Share of accepted moves of each kind; of the exchanges, where they are rarest."""
        shares = {"relocation": self.relocated, "swap": self.swapped, "reversal": self.reversed}
        return shares | ({"exchange": float(self.exchanged.min())} if self.exchanged.size else {})


def geometric_ladder(num_temperatures: int, hottest: float = 0.25) -> tuple[float, ...]:
    """Inverse temperatures from 1 to `hottest` by equal factors."""
    return tuple(np.geomspace(1.0, hottest, num_temperatures).tolist())


def sample(
    problem: OrderProblem,
    key: Array,
    *,
    num_chains: int,
    num_records: int,
    thinning: int,
    burn_in: int,
    ladder: Sequence[float] = (1.0,),
    deadline: Deadline = Deadline(),  # noqa: B008 (immutable)
    progress: Progress = silent,
) -> Chains:
    """Run chains from random orders (from the ascending one where a random one is impossible).

    Args:
        problem: tables and labels.
        key: typed PRNG key.
        num_chains: chains side by side, `C`.
        num_records: recorded states of each, `T`.
        thinning: steps in the order from one record to the next.
        burn_in: records that are thrown away before the first one that is kept.
        ladder: inverse temperatures of the replicas of each chain, from 1 down.
        deadline: ends the run early, after a sweep. Where it comes during the burn-in, the last states are
            kept nevertheless, and `is_burnt_in` says so.
        progress: told about the records done.
    """
    start_key, host_key, key = jax.random.split(key, 3)
    rng = np.random.default_rng(np.asarray(jax.random.key_data(host_key)))
    replicas = Replicas(problem, ladder, num_chains, start_key, rng)
    kind = SWEEP if len(ladder) == 1 else TEMPERED_SWEEP
    num_sweeps = -(-thinning // kind.steps)
    kept: list[np.ndarray] = []
    total = burn_in + num_records
    for record in range(total):
        for sweep in range(num_sweeps):
            sweep_key = jax.random.fold_in(key, record * num_sweeps + sweep)
            replicas.sweep(sweep_key, Sweep(-(-thinning // num_sweeps), kind.reversals))
            if deadline.has_passed:
                break
        kept.append(canonical_orders(replicas.graphs[0], problem.labels).astype(np.int16))
        progress(record + 1, total)
        if deadline.has_passed:
            break
    first = min(burn_in, max(len(kept) - FEWEST_DRAWS, 0))
    recorded = np.stack(kept[first:], axis=1)
    done = len(kept) / total
    return Chains(recorded, log_weights(problem, recorded), *replicas.shares(), done, first == burn_in)


def log_weights(problem: OrderProblem, recorded: np.ndarray) -> NDArray[np.float64]:
    """Log-weights of recorded orders, int [C, T, d] -> float64 [C, T]."""
    labels = jnp.asarray(problem.labels, jnp.int32)
    return np.asarray(_log_weights(problem.weights, jnp.asarray(recorded, jnp.int32), labels))


class Replicas:
    """The graphs of all chains at all temperatures, and what moves them.

    Args:
        problem: tables and labels.
        ladder: inverse temperatures, from 1 down, `B` of them.
        num_chains: chains side by side, `C`.
        key: of the random orders at the start.
        rng: of everything else that happens on the host.
    """

    def __init__(
        self,
        problem: OrderProblem,
        ladder: Sequence[float],
        num_chains: int,
        key: Array,
        rng: np.random.Generator,
    ) -> None:
        self.rng = rng
        self.ladder = np.asarray(ladder, np.float64)
        self.table = problem.table
        self.problems = [_tempered(problem, beta) for beta in ladder]
        self.sums = [parent_sums(tempered) for tempered in self.problems]
        self.weights = problem.weights
        if len(ladder) > 1:
            self.weights = jax.tree.map(
                lambda *leaves: jnp.stack(leaves), *(tempered.weights for tempered in self.problems)
            )
        labels = jnp.asarray(problem.labels, jnp.int32)
        started = orders.start(key, problem.weights, labels, num_chains * len(ladder)).order
        drawn = draw_graphs(problem.weights, problem.table, np.asarray(started), problem.labels, rng)
        self.graphs = drawn.reshape(len(ladder), num_chains, *drawn.shape[1:])  # bool [B, C, d, d]
        self._moves: list[tuple[float, float, float]] = []  # shares of accepted moves at temperature 1
        self._exchanges = np.zeros((2, len(ladder) - 1))  # accepted, proposed
        self._round = 0

    def sweep(self, key: Array, sweep: Sweep) -> None:
        """Fresh labels, steps in the order, new graphs, reversals, exchanges."""
        num_betas, num_chains, d, _ = self.graphs.shape
        labels = np.broadcast_to(np.arange(d, dtype=np.int32), (num_betas * num_chains, d))
        labels = self.rng.permuted(labels, axis=1)
        reached = canonical_orders(self.graphs.reshape(-1, d, d), labels)
        labels, reached = (each.reshape(num_betas, num_chains, d) for each in (labels, reached))
        reached, info = jax.device_get(_steps(key, reached, labels, self.weights, num_steps=sweep.steps))
        for level, tempered in enumerate(self.problems):
            drawn = draw_graphs(tempered.weights, tempered.table, reached[level], labels[level], self.rng)
            num_reversals = sweep.reversals * sweep.steps * d
            self.graphs[level], share = reverse_edges(self.sums[level], drawn, num_reversals, self.rng)
            if level == 0:
                self._moves.append((info.relocated[0], info.swapped[0], share))
        self._exchange()

    def _exchange(self) -> None:
        """Metropolis exchange of whole graphs between neighbours, pairs of even and of odd levels in turn."""
        num_betas, num_chains, d, _ = self.graphs.shape
        scores = table_log_scores(self.table, self.graphs.reshape(-1, d, d)).reshape(num_betas, num_chains)
        self._round += 1
        for level in range(self._round % 2, num_betas - 1, 2):
            gain = (self.ladder[level] - self.ladder[level + 1]) * (scores[level + 1] - scores[level])
            taken = np.log(self.rng.random(num_chains)) < gain
            pair = self.graphs[level : level + 2, taken]
            self.graphs[level : level + 2, taken] = pair[::-1]
            self._exchanges[:, level] += taken.sum(), num_chains

    def shares(self) -> tuple[float, float, float, NDArray[np.float64]]:
        """Accepted relocations, swaps, reversals and exchanges."""
        relocated, swapped, reversed_ = np.mean(self._moves, axis=0)
        accepted, proposed = self._exchanges
        return float(relocated), float(swapped), float(reversed_), accepted / np.maximum(proposed, 1)


def _tempered(problem: OrderProblem, beta: float) -> OrderProblem:
    """The problem with all local scores multiplied by `beta`."""
    if beta == 1.0:
        return problem
    table = problem.table
    table = CandidateTable(table.candidates, beta * table.scores, beta * table.singles)
    return OrderProblem(table, jax.tree.map(jnp.asarray, order_weights(table)), problem.labels)


@partial(jax.jit, static_argnames="num_steps")
def _steps(key: Array, order: Array, labels: Array, weights: OrderWeights, *, num_steps: int):
    """Steps of all replicas, each under its own labels and weights.

    Args:
        key: typed PRNG key.
        order: int32 [B, C, d].
        labels: int32 [B, C, d].
        weights: leaves [B, ...]; without that axis where there is one temperature.
        num_steps: of each.

    Returns:
        int32 [B, C, d], and the shares of accepted moves at each temperature [B].
    """
    level = 0 if weights.empty.ndim == 2 else None

    def body(states: orders.ChainState, key: Array):
        keys = jax.random.split(key, labels.shape[:2])
        chains = jax.vmap(orders.step, (0, 0, None, 0))
        states, info = jax.vmap(chains, (0, 0, level, 0))(keys, states, weights, labels)
        return states, jax.tree.map(lambda leaf: jnp.mean(leaf, axis=1, dtype=jnp.float32), info)

    start = jax.vmap(orders.init, (None, 0, 0))
    states = jax.vmap(start, (level, 0, 0))(weights, labels, order)
    states, info = jax.lax.scan(body, states, jax.random.split(key, num_steps))
    return states.order, jax.tree.map(partial(jnp.mean, axis=0), info)


@jax.jit
def _log_weights(weights: OrderWeights, recorded: Array, labels: Array) -> Array:
    one = partial(orders.log_weight, weights, labels)
    return jax.lax.map(jax.vmap(one), recorded)
