"""Gadget: Markov chains over ordered partitions of the nodes (Viinikka et al. 2020), by sumu.

sumu's own scores come with the "fair" structure prior. Here its sampler is given *our* local scores, so that
it walks on the posterior that the user asked for, structure prior, interventions and knowledge included; and
its split-or-merge move, which in version 0.1.2 draws the nodes to split off with replacement, is replaced.
"""

from __future__ import annotations

import importlib
from collections import deque
from collections.abc import Callable, Sequence
from itertools import combinations
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from gflowdag.errors import GFlowDAGError, MissingExtraError
from gflowdag.runtime.convergence import FEWEST_DRAWS
from gflowdag.runtime.deadline import Deadline
from gflowdag.runtime.progress import Progress, silent
from gflowdag.runtime.threads import map_threads
from gflowdag.score import Score

# sumu stops the process at −inf. A forbidden set this improbable is never drawn, and leaves room in float64.
IMPOSSIBLE = -1e8
TOLERANCE = 2.0**-32  # of sumu's subtractions before it falls back to enumeration


class Options(NamedTuple):
    """How one run walks."""

    num_candidates: int  # K, candidate parents of each node, whose subsets are all weighed
    max_outsiders: int  # size of the largest parent set with a member outside of the candidates
    num_temperatures: int  # tempered chains that swap states
    burn_in: int
    num_steps: int
    thinning: int


class Run(NamedTuple):
    """What one run leaves behind."""

    graphs: np.ndarray  # bool [m, d, d], rows are sources
    log_scores: np.ndarray  # float64 [m], as the sampler weighed them
    share_done: float = 1.0  # of the planned steps
    is_burnt_in: bool = True  # whether all of these graphs come after the burn-in


def import_sumu(module: str) -> ModuleType:
    """A module of sumu by its path inside the package; a missing package names the pip command."""
    try:
        return importlib.import_module(f"sumu.{module}")
    except ImportError as error:
        raise MissingExtraError(
            'Gadget needs sumu, which builds with a C++ compiler: pip install "gflowdag[gadget]"'
        ) from error


class Tables(NamedTuple):
    """The local scores of all parent sets that the runs weigh."""

    names: tuple[str, ...]
    candidates: dict[int, tuple[int, ...]]  # of each node
    scores: np.ndarray  # float64 [d, 2^K]
    others: Any  # sumu's object of the sets with a node outside of the candidates; None where there is none
    num_outsiders: int


class LocalScores:
    """Our score under the names by which sumu asks for it."""

    maxid = -1  # no limit on the parents beside what the score itself forbids

    def __init__(self, score: Score) -> None:
        self.score = score
        self.n = score.num_variables
        self._cache: dict[tuple[int, ...], float] = {}

    def _local(self, node: int, parents: np.ndarray) -> float:
        members = np.asarray(parents, int)
        key = (node, *sorted(members))
        if key not in self._cache:
            # sumu asks for one set with each further parent in turn, the further one last.
            mask = np.zeros((self.n, self.n), bool)
            mask[:, members[:-1]] = True
            further = [other for other in range(self.n) if other != node and not mask[0, other]]
            mask[further, further] = True
            values = self._weights(node, mask[further]).tolist()
            self._cache |= {
                (node, *sorted([*members[:-1], other])): value
                for other, value in zip(further, values, strict=True)
            }
        return self._cache[key]

    def clear_cache(self) -> None:
        self._cache.clear()

    def all_candidate_restricted_scores(self, candidates: np.ndarray) -> np.ndarray:
        """float64 [d, 2^K]; bit `k` of the index stands for the node's `k`-th candidate."""
        num_candidates = candidates.shape[1]
        subsets = (np.arange(2**num_candidates)[:, None] >> np.arange(num_candidates) & 1).astype(bool)
        scores = np.empty((self.n, len(subsets)))

        def fill(node: int) -> None:
            parents = np.zeros((len(subsets), self.n), bool)
            parents[:, candidates[node]] = subsets
            scores[node] = self._weights(node, parents)

        map_threads(fill, range(self.n))
        return scores

    def complementary_scores_dict(
        self, candidates: dict[int, tuple[int, ...]], max_size: int
    ) -> dict[int, dict[tuple[int, ...], float]]:
        """The small parent sets that hold a node outside of the candidates."""
        found: dict[int, dict[tuple[int, ...], float]] = {}

        def fill(node: int) -> None:
            inside = candidates[node]
            others = [other for other in range(self.n) if other != node]
            sets = [
                parents
                for size in range(1, max_size + 1)
                for parents in combinations(others, size)
                if not set(parents) <= set(inside)
            ]
            mask = np.zeros((len(sets), self.n), bool)
            for row, parents in enumerate(sets):
                mask[row, list(parents)] = True
            found[node] = dict(zip(sets, self._weights(node, mask).tolist(), strict=True))

        map_threads(fill, range(self.n))
        return {node: found[node] for node in candidates}

    def _weights(self, node: int, parents: np.ndarray) -> np.ndarray:
        return np.maximum(self.score.local(node, parents), IMPOSSIBLE)


def split_or_merge(**request: Any) -> Any:
    """Propose to merge two adjacent parts or to split one, uniformly (Kuipers & Moffa 2017).

    sumu calls a move with `R`, the partition as a sequence of sets, and asks first whether it can be made at
    all (`validate=True`).

    Returns:
        The new partition, the probabilities of the way there and back, and the nodes whose score changed.
    """
    if request.get("validate"):
        return True
    parts = request["R"]
    size = _num_splits_and_merges(parts)
    choice = np.random.randint(size)  # noqa: NPY002
    last = len(parts) - 1
    if choice < last:  # merge with the next part
        new = [*parts[:choice], parts[choice] | parts[choice + 1], *parts[choice + 2 :]]
        changed = parts[choice + 1] | parts[min(choice + 2, last)]
    else:
        choice -= last
        splits = np.array([2 ** len(part) - 2 for part in parts])
        index = int(np.searchsorted(np.cumsum(splits), choice, side="right"))
        subset = choice - int(splits[:index].sum()) + 1  # as a bit mask, neither empty nor everything
        first = {node for bit, node in enumerate(sorted(parts[index])) if subset >> bit & 1}
        new = [*parts[:index], first, parts[index] - first, *parts[index + 1 :]]
        changed = (parts[index] - first) | parts[min(index + 1, last)]
    return new, 1 / size, 1 / _num_splits_and_merges(new), changed


def _num_splits_and_merges(parts: Sequence[set[int]]) -> int:
    return len(parts) - 1 + sum(2 ** len(part) - 2 for part in parts)


def tables(score: Score, options: Options) -> Tables:
    """Candidate parents and the scores of the parent sets, once for all runs."""
    gadget = import_sumu("gadget")
    local, d = LocalScores(score), score.num_variables
    size, outsiders = min(options.num_candidates, d - 1), min(options.max_outsiders, d - 1)
    candidates = import_sumu("candidates").candidate_parent_algorithm["greedy-lite"](size, n=d, scores=local)
    return Tables(
        score.names,
        candidates,
        local.all_candidate_restricted_scores(_array_of(candidates)),
        gadget.CandidateComplementScore(candidates, local, outsiders) if size < d - 1 else None,
        outsiders,
    )


def _array_of(candidates: dict[int, tuple[int, ...]]) -> np.ndarray:
    return np.array([candidates[node] for node in range(len(candidates))], dtype=np.int32)


def sample(
    tables: Tables,
    options: Options,
    seed: int,
    deadline: Deadline = Deadline(),  # noqa: B008 (immutable)
) -> Run:
    """One run: partition chains, then one DAG for each recorded partition.

    Args:
        tables: of the score to sample from.
        options: how to walk.
        seed: of NumPy's global generator, which sumu draws from; it is left as it was found.
        deadline: ends it early.
    """
    before = np.random.get_state()  # noqa: NPY002
    np.random.seed(seed)  # noqa: NPY002
    try:
        return _sample(tables, options, deadline)
    finally:
        np.random.set_state(before)  # noqa: NPY002


def _sample(tables: Tables, options: Options, deadline: Deadline) -> Run:
    gadget, mcmc = import_sumu("gadget"), import_sumu("mcmc")
    names, candidates, table, others, outsiders = tables
    d, candidate_array = len(names), _array_of(candidates)
    size = candidate_array.shape[1]
    target = gadget.Score(
        C=candidates,
        score_array=table,
        c_r_score=gadget.CandidateRestrictedScore(table, candidate_array, size),
        c_c_score=others,
    )
    target.sum = _of_possible_sets(target.sum)
    temperatures = np.linspace(0, 1, options.num_temperatures) if options.num_temperatures > 1 else [1.0]
    chains = [mcmc.PartitionMCMC(candidates, target, outsiders, temperature=float(t)) for t in temperatures]
    for each in chains:
        each._moves = [split_or_merge, import_sumu("mcmc_moves").R_swap_any]
    chain = mcmc.MC3(chains) if len(chains) > 1 else chains[0]

    partitions, warm_up, done = [], deque(maxlen=FEWEST_DRAWS), 0
    for step in range(options.burn_in + options.num_steps):
        with np.errstate(over="ignore"):  # of the ratio, on the way out of an impossible partition
            partition, log_weight = chain.sample()
        done += 1
        if step < options.burn_in:
            if log_weight >= IMPOSSIBLE / 2:
                warm_up.append(partition)
        elif (step - options.burn_in) % options.thinning == 0:
            if log_weight < IMPOSSIBLE / 2:
                raise GFlowDAGError(
                    f"no order of the nodes that the knowledge allows was found in {step:,} steps: raise "
                    "burn_in, or use OrderMCMC, whose chains start at one"
                )
            partitions.append(partition)
        if deadline.has_passed and len(partitions) + len(warm_up) >= FEWEST_DRAWS:
            break
    is_burnt_in = len(partitions) >= FEWEST_DRAWS or done == options.burn_in + options.num_steps
    partitions = partitions if is_burnt_in else [*warm_up, *partitions][-FEWEST_DRAWS:]

    graphs, log_scores = np.zeros((len(partitions), d, d), bool), np.zeros(len(partitions))
    draw = gadget.DAGR(target, candidates, tolerance=TOLERANCE)
    for node in range(d):
        draw.precompute_pset_sampling(node)
        for index, partition in enumerate(partitions):
            try:
                family, log_score = draw.sample_pset(node, partition, score=True)
            except UnboundLocalError as error:  # sumu's way to say that all sets of candidates weigh nothing
                raise GFlowDAGError(
                    f"sumu's sums over the parent sets of {names[node]} ({size} candidates) round to "
                    "nothing, because a few sets outweigh all others by far: use fewer num_candidates "
                    "(8, say), or OrderMCMC, which sums without subtraction"
                ) from error
            graphs[index, list(family[1]) if len(family) > 1 else [], node] = True
            log_scores[index] += log_score
    return Run(graphs, log_scores, done / (options.burn_in + options.num_steps), is_burnt_in)


def _of_possible_sets(total: Callable[..., float]) -> Callable[..., float]:
    """sumu's sum over parent sets, which is not a number where knowledge forbids all of them.

    A chain that starts at such a partition would stay there: nothing compares with it.
    """

    def total_or_impossible(*sets: Any) -> float:
        log_weight = total(*sets)
        return IMPOSSIBLE if np.isnan(log_weight) else log_weight

    return total_or_impossible


def run(
    score: Score,
    options: Options,
    *,
    num_runs: int,
    seed: int,
    n_jobs: int | None = None,
    deadline: Deadline = Deadline(),  # noqa: B008 (immutable)
    progress: Progress = silent,
) -> list[Run]:
    """Independent runs, in parallel processes of one thread each.

    Args:
        score: the score to sample from.
        options: how each run walks.
        num_runs: number of runs.
        seed: the same seed gives the same samples, whatever the number of processes.
        n_jobs: number of processes as joblib counts them; None is one for each core.
        deadline: ends all runs early. Where the processes are fewer than the runs, each gets its share. The
            tables of scores are finished.
        progress: told about the runs done.
    """
    import joblib

    prepared = tables(score, options)
    seeds = map(int, np.random.SeedSequence(seed).generate_state(num_runs))
    workers = joblib.effective_n_jobs(-1 if n_jobs is None else n_jobs)
    rounds = -(-num_runs // workers)  # of runs, one after another
    ends = [deadline.share((number // workers + 1) / rounds) for number in range(num_runs)]
    runs = []
    with joblib.parallel_config(backend="loky", inner_max_num_threads=1):
        parallel = joblib.Parallel(n_jobs=-1 if n_jobs is None else n_jobs, return_as="generator")
        for done in parallel(
            joblib.delayed(sample)(prepared, options, *each) for each in zip(seeds, ends, strict=True)
        ):
            runs.append(done)
            progress(len(runs), num_runs)
    return runs
