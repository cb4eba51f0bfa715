"""The non-parametric bootstrap of a structure search: resample the rows, search again, keep every graph.

Friedman, Goldszmidt & Wyner (1999). What it measures is how stable the search is under resampling, which is
not a posterior, though often used as one.
"""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Callable, Iterator
from itertools import takewhile
from typing import Any, NamedTuple

import numpy as np

from gflowdag.errors import MissingExtraError
from gflowdag.graph.closure import transitive_closure
from gflowdag.graph.equivalence import extend_pdag, random_member
from gflowdag.runtime.deadline import Deadline
from gflowdag.runtime.progress import Progress, silent

Search = Callable[[np.ndarray], np.ndarray]
"""From observations float64 [n, d] to a partly directed graph bool [d, d] (undirected edge: both entries)."""


class Resampled(NamedTuple):
    """The graphs that a search found on resampled data."""

    graphs: np.ndarray  # bool [b, d, d], partly directed
    failures: tuple[str, ...]  # why the search failed on the other data sets


class Orientation(NamedTuple):
    """A DAG made of a partly directed graph."""

    dag: np.ndarray  # bool [d, d]
    is_forced: bool  # no DAG has these edges and v-structures: orientations were given up


def run(
    search: Search,
    values: np.ndarray,
    *,
    num_bootstraps: int,
    seed: int,
    n_jobs: int | None = None,
    deadline: Deadline = Deadline(),  # noqa: B008 (immutable)
    progress: Progress = silent,
) -> Resampled:
    """Search on `num_bootstraps` resampled data sets, in parallel processes of one thread each.

    Args:
        search: the structure search; pickled to the workers, so a function of a module or a `partial` of one.
        values: observations, float64 [n, d].
        num_bootstraps: number of resampled data sets.
        seed: the same seed gives the same data sets, whatever the number of processes.
        n_jobs: number of processes as joblib counts them; None is one for each core.
        deadline: no search begins after it, but for the first one.
        progress: told about the data sets done.
    """
    import joblib

    seeds = np.random.SeedSequence(seed).spawn(num_bootstraps)

    def tasks() -> Iterator[Any]:
        """Of the data sets until the deadline; the first is searched in any case."""
        yield joblib.delayed(_search_resampled)(search, values, seeds[0])
        for child in takewhile(lambda _: not deadline.has_passed, seeds[1:]):
            yield joblib.delayed(_search_resampled)(search, values, child, deadline)

    # Loky starts fresh interpreters: forked children of a process that ran numba or JAX can die or hang.
    with joblib.parallel_config(backend="loky", inner_max_num_threads=1):
        parallel = joblib.Parallel(n_jobs=-1 if n_jobs is None else n_jobs, return_as="generator")
        graphs, failures = [], []
        for outcome in parallel(tasks()):
            if outcome is not None:
                (failures if isinstance(outcome, str) else graphs).append(outcome)
                progress(len(graphs) + len(failures), num_bootstraps, failures=len(failures))
    d = values.shape[1]
    return Resampled(np.array(graphs, dtype=bool).reshape(-1, d, d), tuple(failures))


def _search_resampled(
    search: Search,
    values: np.ndarray,
    seed: np.random.SeedSequence,
    deadline: Deadline = Deadline(),  # noqa: B008 (immutable)
) -> np.ndarray | str | None:
    """The graph, or why the search failed; None if it had waited for a process beyond the deadline."""
    if deadline.has_passed:
        return None
    rows = np.random.default_rng(seed).integers(len(values), size=len(values))
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        try:
            return search(values[rows])
        except MissingExtraError:
            raise
        except Exception as error:  # any failure of the search is a result to be counted
            return f"{type(error).__name__}: {error}"


def draw_dag(
    pdag: np.ndarray, required: np.ndarray, forbidden: np.ndarray, rng: np.random.Generator
) -> Orientation:
    """A DAG of the class that a partly directed graph stands for, with knowledge imposed.

    Uniform over the Markov equivalence class where the graph is a CPDAG; a random extension where knowledge
    orients more edges than that; and where no DAG extends the graph (the conflicting tests of PC), one that
    keeps the skeleton and as many orientations as a random order of the edges allows.

    Args:
        pdag: bool [d, d], both entries set for an undirected edge.
        required: edges that must be there, bool [d, d], acyclic.
        forbidden: edges that must not, bool [d, d].
        rng: source of randomness.
    """
    turned = (pdag & forbidden).T  # an edge that points the forbidden way is turned, if it may
    known = ((pdag | turned) & ~forbidden) | required
    known &= ~required.T
    if np.array_equal(known, pdag):
        try:
            return Orientation(random_member(pdag, rng), is_forced=False)
        except ValueError:  # not a CPDAG
            pass
    dag = extend_pdag(known, rng)
    if dag is not None:
        return Orientation(dag, is_forced=False)
    return Orientation(_forced(known, required, forbidden, rng), is_forced=True)


def _forced(
    pdag: np.ndarray, required: np.ndarray, forbidden: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """Take required, directed, then undirected edges; turn one that would close a cycle, if it may turn."""
    dag = required.copy()
    directed = pdag & ~pdag.T & ~required
    for edges in (directed, pdag & pdag.T):
        for i, j in rng.permutation(np.argwhere(edges)):
            if dag[i, j] or dag[j, i]:
                continue
            if not transitive_closure(dag)[j, i]:
                dag[i, j] = True
            elif not forbidden[j, i]:
                dag[j, i] = True
    return dag
