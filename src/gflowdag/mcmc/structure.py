"""Structure MCMC (MC3): Metropolis–Hastings on DAGs, one edge added, removed or reversed at a time.

Madigan & York (1995), with reversals (Giudici & Castelo 2003). A move is drawn uniformly from the
neighbourhood N(G) and accepted with probability min(1, R(G') |N(G)| / (R(G) |N(G')|)). All
chains step together.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from gflowdag.mcmc.changes import Changes, EdgePrices
from gflowdag.mcmc.moves import (
    MOVES,
    DAGs,
    Limits,
    Neighbourhood,
    adjacency,
    adjacency_bits,
    apply_move,
    dags_from_adjacency,
    neighbourhood,
    nth_move,
    num_configurations,
)
from gflowdag.runtime.convergence import FEWEST_DRAWS
from gflowdag.runtime.deadline import Deadline
from gflowdag.runtime.progress import Progress, silent


class ChainState(NamedTuple):
    """Where C chains are."""

    dags: DAGs
    moves: Neighbourhood  # the legal moves from here
    log_score: Array  # float64 [C]
    memory: Any  # what `Changes` keeps


class StepInfo(NamedTuple):
    """What one step did."""

    kind: Array  # int32 [C], the proposed kind of move
    accepted: Array  # bool [C]


class Chains(NamedTuple):
    """What a run of MC3 leaves behind: T recorded states of C chains."""

    parents: np.ndarray  # uint32 [T, d, W, C], packed parent sets; `graphs` unpacks them
    log_scores: np.ndarray  # float64 [T, C]
    edge_probabilities: np.ndarray  # float64 [T, d, d], Rao–Blackwellised, mean over the chains
    proposed: np.ndarray  # int64 [3], proposals after burn-in: additions, removals, reversals
    accepted: np.ndarray  # int64 [3]
    share_done: float = 1.0  # of the planned steps
    is_burnt_in: bool = True  # whether all of these states come after the burn-in

    def graphs(self) -> np.ndarray:
        """The recorded DAGs, bool [T, C, d, d]."""
        return adjacency(self.parents)

    def acceptance(self) -> dict[str, float]:
        """Share of accepted proposals for each kind of move."""
        return {
            kind: float(a / max(p, 1)) for kind, a, p in zip(MOVES, self.accepted, self.proposed, strict=True)
        }


_neighbourhood = jax.jit(neighbourhood)  # loops outside of compiled code are compiled anew in every call


def init(graphs: np.ndarray, log_scores: np.ndarray, changes: Changes, limits: Limits) -> ChainState:
    """Chains that start at the DAGs `graphs`, bool [C, d, d], with these log scores [C]."""
    dags = dags_from_adjacency(graphs)
    return ChainState(
        dags, _neighbourhood(dags, limits), jnp.asarray(log_scores, jnp.float64), changes.init(dags)
    )


def log_acceptance(change: Array, before: Neighbourhood, after: Neighbourhood) -> Array:
    """Log of the Metropolis–Hastings ratio of a move that changes the log score by `change`, float64 [C].

    Moves are drawn uniformly, so the way there has probability 1/|N(G)| and the way back 1/|N(G')|.
    """
    there, back = before.sizes.sum(0), after.sizes.sum(0)
    return change + jnp.log(there.astype(jnp.float64)) - jnp.log(back.astype(jnp.float64))


def step(
    key: Array, state: ChainState, changes: Changes, limits: Limits, inverse_temperature: float | Array = 1.0
) -> tuple[ChainState, StepInfo]:
    """One Metropolis–Hastings step of every chain.

    Args:
        key: random key.
        state: where the chains are.
        changes: what moves do to the log score.
        limits: what background knowledge leaves open.
        inverse_temperature: power to which the posterior is raised; 0 walks over all DAGs alike.
    """
    # In float64: a coin of float32 is exactly 0 once in 2²³ throws, and would accept any loss.
    pick, coin = jax.random.uniform(key, (2, len(state.log_score)), dtype=jnp.float64)
    size = state.moves.sizes.sum(0)
    move = nth_move(state.moves, jnp.minimum((pick * size).astype(jnp.int32), size - 1))
    dags = apply_move(state.dags, move)
    moves = neighbourhood(dags, limits)
    change = changes.change(state.memory, state.dags, dags, move)
    # A graph whose every edge is settled by knowledge has no neighbour, and stays.
    accepted = (jnp.log(coin) < log_acceptance(inverse_temperature * change, state.moves, moves)) & (size > 0)
    dags, moves, change = jax.tree.map(
        lambda new, old: jnp.where(accepted, new, old), (dags, moves, change), (state.dags, state.moves, 0.0)
    )
    memory = changes.update(state.memory, move, accepted)
    return ChainState(dags, moves, state.log_score + change, memory), StepInfo(move.kind, accepted)


def edge_conditionals(state: ChainState, changes: EdgePrices, limits: Limits) -> Array:
    """P(i -> j | everything else in the graph) for each chain, float64 [d, d, C].

    Given all other edges, the pair {i, j} has at most three states: no edge, i -> j, or j -> i. Averaging
    their probabilities instead of counting edges resolves marginals far below one over the number of samples.
    """
    present = adjacency_bits(state.dags.parents)
    others = present.sum(0, dtype=jnp.int32) - present  # [d, d, C], parents of j beside i
    # i -> j closes a cycle iff j reaches i by other edges than j -> i, which are paths of two edges or more.
    acyclic = ~adjacency_bits(state.dags.indirect).transpose(1, 0, 2)
    allowed = adjacency_bits(limits.addable[:, :, None]).transpose(1, 0, 2)
    required = ~adjacency_bits(limits.removable[:, :, None])
    possible = acyclic & allowed & (others < limits.max_parents)
    if limits.cells is not None:
        levels, most = limits.cells.levels[:, None, None], limits.cells.most[:, None]
        configurations = num_configurations(state.dags.parents, limits.cells.levels)  # [d, C]
        with_edge = jnp.where(present, configurations, levels * configurations)  # [d, d, C]
        possible &= (with_edge <= most) | (others == 0)
    log_odds = jnp.where(possible, changes.log_odds(state.memory, state.dags), -jnp.inf)
    largest = jnp.maximum(jnp.maximum(log_odds, log_odds.transpose(1, 0, 2)), 0.0)  # of the three states
    odds = jnp.exp(log_odds - largest)
    total = jnp.exp(-largest) + odds + odds.transpose(1, 0, 2)
    return jnp.where(required, 1.0, odds / total)


def _walk(
    keys: Array, state: ChainState, changes: Changes, limits: Limits, inverse_temperature: Array
) -> tuple[ChainState, Array, Array]:
    """One step for each key; proposals and acceptances of each kind of move, int64 [3]."""

    def advance(carry: tuple, key: Array) -> tuple[tuple, None]:
        state, proposed, accepted = carry
        state, info = step(key, state, changes, limits, inverse_temperature)
        kinds = info.kind == jnp.arange(len(MOVES))[:, None]
        return (state, proposed + kinds.sum(1), accepted + (kinds & info.accepted).sum(1)), None

    none = jnp.zeros(len(MOVES), jnp.int64)
    return jax.lax.scan(advance, (state, none, none), keys)[0]


def _seen(state: ChainState, changes: Changes, limits: Limits) -> tuple[Array, Array, Array]:
    """What is recorded of a state: parents, log scores, and the mean of the edges over the chains, [d, d]."""
    if isinstance(changes, EdgePrices):
        edges = edge_conditionals(state, changes, limits)
    else:
        edges = adjacency_bits(state.dags.parents)
    return state.dags.parents, state.log_score, edges.mean(-1, dtype=jnp.float64)


@partial(jax.jit, static_argnames="thinning", donate_argnames="state")
def _record(
    keys: Array, state: ChainState, changes: Changes, limits: Limits, temperatures: Array, *, thinning: int
) -> tuple[ChainState, tuple[Array, ...]]:
    """One record every `thinning` steps, at each of the inverse `temperatures`, float64 [T]; keys [T]."""

    def record(state: ChainState, inputs: tuple[Array, Array]) -> tuple[ChainState, tuple[Array, ...]]:
        key, inverse_temperature = inputs
        steps = jax.random.split(key, thinning)
        state, proposed, accepted = _walk(steps, state, changes, limits, inverse_temperature)
        return state, (*_seen(state, changes, limits), proposed, accepted)

    return jax.lax.scan(record, state, (keys, temperatures))


_some_steps = jax.jit(_walk, donate_argnames="state")
_state_seen = jax.jit(_seen)


def _record_until(
    deadline: Deadline,
    key: Array,
    state: ChainState,
    changes: Changes,
    limits: Limits,
    inverse_temperature: float,
    *,
    thinning: int,
) -> tuple[ChainState, tuple[Array, ...], int]:
    """One record, of fewer than `thinning` steps where the deadline comes first; also says of how many."""
    proposed, accepted, done = 0, 0, 0
    for one in jax.random.split(key, thinning)[:, None]:
        state, *counts = _some_steps(one, state, changes, limits, inverse_temperature)
        proposed, accepted, done = proposed + counts[0], accepted + counts[1], done + 1
        if deadline.has_passed:
            break
    record = (*_state_seen(state, changes, limits), proposed, accepted)
    return state, jax.tree.map(lambda leaf: leaf[None], record), done


def run(
    key: Array,
    state: ChainState,
    changes: Changes,
    limits: Limits,
    *,
    burn_in: int,
    num_steps: int,
    thinning: int,
    deadline: Deadline = Deadline(),  # noqa: B008 (immutable)
    progress: Progress = silent,
) -> Chains:
    """Run many chains of MC3.

    The chains first walk at random and are cooled to the posterior over the first half of the burn-in, so
    that they start far apart: chains that agree in the end do so because they mix.

    Args:
        key: random key.
        state: where the chains start; its DAGs hold all required edges.
        changes: what moves do to the log score.
        limits: what background knowledge leaves open.
        burn_in: steps of each chain that are thrown away.
        num_steps: steps of each chain after that.
        thinning: a state is recorded every so many steps.
        deadline: ends the run early, after a record, or after a step where scores are computed on demand.
            Where it comes during the burn-in, the last states are kept nevertheless, and `is_burnt_in`
            says so.
        progress: told about the steps taken.
    """
    warm_up, num_records = burn_in // thinning, num_steps // thinning
    cooling = np.minimum(2 * np.arange(warm_up) / max(warm_up, 1), 1.0)
    schedule = np.concatenate([cooling, np.ones(num_records)])
    chunk = max(1, len(schedule) // 20)
    keys = []
    for start in range(0, len(schedule), chunk):
        key, subkey = jax.random.split(key)
        keys.append(jax.random.split(subkey, min(chunk, len(schedule) - start)))
    keys = jnp.concatenate(keys)
    chunk = 1 if deadline.is_set else chunk
    is_slow = deadline.is_set and not isinstance(changes, EdgePrices)
    records: list[tuple[np.ndarray, ...]] = []
    done, planned = 0, len(schedule) * thinning  # steps
    for number in range(0, len(schedule), chunk):
        part = slice(number, number + chunk)
        if is_slow:
            state, recorded, steps = _record_until(
                deadline, keys[number], state, changes, limits, schedule[number], thinning=thinning
            )
        else:
            state, recorded = _record(keys[part], state, changes, limits, schedule[part], thinning=thinning)
            steps = len(schedule[part]) * thinning
        records.append(jax.device_get(recorded))
        done += steps
        progress(done, planned, log_score=float(recorded[1][-1].mean()))
        if deadline.has_passed:
            break
    first = min(warm_up, max(sum(len(part[0]) for part in records) - FEWEST_DRAWS, 0))
    parents, log_scores, marginals, proposed, accepted = (
        np.concatenate(part)[first:] for part in zip(*records, strict=True)
    )
    return Chains(
        parents,
        log_scores,
        marginals,
        proposed.sum(0),
        accepted.sum(0),
        share_done=done / planned,
        is_burnt_in=first == warm_up,
    )
