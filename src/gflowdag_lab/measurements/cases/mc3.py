"""MC3: its speed beside a plain NumPy chain, and the paper's problems.

Options: `chains=N`, `steps=N` (after as long a burn-in), `exact=yes`.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import jax
import numpy as np

from gflowdag.estimators import MC3
from gflowdag.graph import compress, parent_masks, transitive_closure
from gflowdag.mcmc import limits_from_constraints, make_changes, structure
from gflowdag.runtime import double_precision
from gflowdag_lab.measurements import baseline_rows
from gflowdag_lab.measurements.harness import Options, Row, case
from gflowdag_lab.model import PRIOR, paper_score
from gflowdag_lab.paper import problems


@case
def mc3_speed(options: Options) -> Iterator[Row]:
    """Steps per second at d = 20 on one table: one plain NumPy chain, then growing numbers of ours."""
    d = 6 if options.quick else 20
    problem = problems.linear_gaussian(d, 100, options.seed, standardize=True)
    plain = _plain_speed(paper_score(problem.data).unconstrained_table(), 50 if options.quick else 2000)
    yield {"problem": problem.name, "implementation": "plain NumPy", "chains": 1, "steps_per_s": plain}
    for chains in (64,) if options.quick else (64, 256, 1024, 4096):
        speed = _our_speed(problem, chains, 100 if options.quick else 2_000_000 // chains)
        yield {
            "problem": problem.name,
            "implementation": "gflowdag",
            "chains": chains,
            "steps_per_s": speed,
            "times_plain": speed / plain,
        }


@case
def mc3_twenty(options: Options) -> Iterator[Row]:
    """MC3: ER2, d = 20, N = 100, five networks, raw and standardised."""
    return baseline_rows.twenty(_learner(options), options)


@case
def mc3_sachs(options: Options) -> Iterator[Row]:
    """MC3 on continuous Sachs, in both alignments."""
    return baseline_rows.sachs(_learner(options), options)


def _learner(options: Options) -> baseline_rows.Learner:
    steps = int(options.extra.get("steps", 400 if options.quick else 100_000))
    chains = int(options.extra.get("chains", 32 if options.quick else 256))
    thinning = max(steps // 200, 1)
    return lambda seed: MC3(
        prior=PRIOR,
        num_chains=chains,
        burn_in=steps,
        num_steps=steps,
        thinning=thinning,
        random_state=seed,
    )


@double_precision
def _our_speed(problem: problems.Problem, chains: int, steps: int) -> float:
    score = paper_score(problem.data)
    changes, limits = make_changes(score.deltas()), limits_from_constraints(*score.constraints)
    thinning, seconds = max(steps // 20, 1), []
    for _ in range(2):  # the first run compiles
        state = structure.init(
            np.zeros((chains, *score.constraints.required.shape), bool), np.zeros(chains), changes, limits
        )
        started = time.perf_counter()
        structure.run(
            jax.random.key(0), state, changes, limits, burn_in=0, num_steps=20 * thinning, thinning=thinning
        )
        seconds.append(time.perf_counter() - started)
    return chains * 20 * thinning / seconds[-1]


def _plain_speed(table: np.ndarray, steps: int) -> float:
    """Metropolis–Hastings as one would write it from the textbook: one chain, matrices, look-ups."""
    rng = np.random.default_rng(0)
    d = len(table)
    graph = np.zeros((d, d), bool)
    moves = _plain_neighbours(graph)
    started = time.perf_counter()
    for _ in range(steps):
        kind, i, j = moves[rng.integers(len(moves))]
        proposal = graph.copy()
        proposal[i, j] = kind == "add"
        proposal[j, i] = kind == "reverse"
        new_moves = _plain_neighbours(proposal)
        change = sum(
            _plain_local(table, proposal, node) - _plain_local(table, graph, node) for node in (i, j)
        )
        if np.log(rng.random()) < change + np.log(len(moves) / len(new_moves)):
            graph, moves = proposal, new_moves
    return steps / (time.perf_counter() - started)


def _plain_neighbours(graph: np.ndarray) -> list[tuple[str, int, int]]:
    ancestors = transitive_closure(graph)
    addable = ~graph & ~ancestors.T & ~np.eye(len(graph), dtype=bool)
    indirect = (graph.astype(np.int64) @ ancestors) > 0  # paths of two edges or more
    moves = [("add", i, j) for i, j in np.argwhere(addable)]
    moves += [("remove", i, j) for i, j in np.argwhere(graph)]
    moves += [("reverse", i, j) for i, j in np.argwhere(graph & ~indirect)]
    return moves


def _plain_local(table: np.ndarray, graph: np.ndarray, node: int) -> float:
    return table[node, compress(parent_masks(graph)[node], node)]
