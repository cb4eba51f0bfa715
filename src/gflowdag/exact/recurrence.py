"""The two recurrences over all pairs of nested sets, 3^d of them.

With β_j(W) the subset sums and C = V∖W,

    F(U) = Σ_{∅≠R⊆U} (−1)^{|R|+1} F(U∖R) Π_{j∈R} β_j(U∖R)      the weight of all DAGs on U
    H(W) = Σ_{∅≠R⊆C} (−1)^{|R|+1} H(W∪R) Π_{j∈R} β_j(W)        the weight of all ways to add C to W

(inclusion–exclusion over the nodes that have all their parents in U∖R, in W). The evidence is F(V) = H(∅).
Restricted to the R that contain j, the second sum is the weight of the ways in which j alone has all its
parents in W, that is, all other nodes of C descend from j: times F(W), it is the weight of all DAGs in which
W is the set of non-descendants of j.

Sets with the same high bits are a block. Blocks with equally many high bits do not depend on each other and
run in parallel; each is written by one thread in a fixed order, so the result does not depend on the number
of threads. After each such layer the state can be kept, and continued from.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from gflowdag.exact.blocks import complete_block, weigh_block
from gflowdag.exact.scaled import Potentials, SubsetSums
from gflowdag.runtime.progress import Progress

# Shares of the nodes that are high: measured at 20 variables, where a tenth more or less costs little.
HIGH_OF_DAGS = 0.35
HIGH_OF_COMPLETIONS = 0.58
_SMALL = 12  # variables, up to which starting threads takes longer than they save


class Dags(NamedTuple):
    """The first recurrence after some layers."""

    weight: NDArray[np.float64]  # [2^d], F(U) / 2^before(U)
    layers: int  # done


class Completions(NamedTuple):
    """The second recurrence after some layers."""

    weight: NDArray[np.float64]  # [2^d], H(W) / 2^after(W)
    only_root: NDArray[np.float64]  # [d, 2^(d−1)], its part in which j is the only root
    layers: int  # done


def weigh_dags(
    sums: SubsetSums,
    potential: Potentials,
    threads: int,
    progress: Progress,
    *,
    begun: Dags | None = None,
    after_layer: Callable[[Dags], None] = lambda _: None,
) -> NDArray[np.float64]:
    """F(U) / 2^before(U) for every set, [2^d].

    Args:
        sums: of the parent sets of every node.
        potential: of every set.
        threads: number of threads.
        progress: told how far it is.
        begun: what was done before; written to.
        after_layer: told the state, which the next layer writes to.
    """
    d = len(sums.log)
    high_bits = int(HIGH_OF_DAGS * d)
    if begun is None:
        begun = Dags(np.zeros_like(potential.before), 0)
        begun.weight[0] = 1.0

    def block(high: int) -> None:
        weigh_block(high, d - high_bits, sums.mantissa, sums.exponent, potential.before, begun.weight)

    layers = [_sets_of(size, high_bits) for size in range(high_bits + 1)]
    work = [2**size for size in range(high_bits + 1)]  # sets of partners of a block
    _run(block, layers, work, begun, threads, progress, after_layer)
    return begun.weight


def weigh_completions(
    sums: SubsetSums,
    potential: Potentials,
    threads: int,
    progress: Progress,
    *,
    begun: Completions | None = None,
    after_layer: Callable[[Completions], None] = lambda _: None,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """H(W) / 2^after(W) for every set, [2^d], and its part in which j is the only root, [d, 2^(d−1)].

    The arguments are those of `weigh_dags`.
    """
    d = len(sums.log)
    high_bits = int(HIGH_OF_COMPLETIONS * d)
    if begun is None:
        begun = Completions(np.zeros_like(potential.after), np.zeros_like(sums.log), 0)
        begun.weight[-1] = 1.0

    def block(high: int) -> None:
        low_bits = d - high_bits
        complete_block(high, low_bits, sums.mantissa, sums.exponent, potential.after, *begun[:2])

    layers = [_sets_of(size, high_bits) for size in range(high_bits, -1, -1)]
    work = [2**size for size in range(high_bits + 1)]  # sets of partners of a block
    _run(block, layers, work, begun, threads, progress, after_layer)
    return begun.weight, begun.only_root


def _sets_of(size: int, bits: int) -> list[int]:
    return [high for high in range(1 << bits) if high.bit_count() == size]


State = TypeVar("State", Dags, Completions)


def _run(
    block: Callable[[int], None],
    layers: list[list[int]],
    work: list[int],
    state: State,
    threads: int,
    progress: Progress,
    after_layer: Callable[[State], None],
) -> None:
    """Compute the blocks of the layers that are not done; `work` is that of a block of each layer."""
    total = sum(len(layer) * each for layer, each in zip(layers, work, strict=True))
    done = sum(len(layer) * each for layer, each in zip(layers[: state.layers], work, strict=False))
    with ThreadPoolExecutor(threads) as pool:
        in_turn = map if len(state.weight) <= 1 << _SMALL else pool.map
        try:
            for number in range(state.layers, len(layers)):
                for _ in in_turn(block, layers[number]):
                    done += work[number]
                    progress(done, total)
                after_layer(state._replace(layers=number + 1))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
