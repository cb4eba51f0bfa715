"""One DAG as machine words, for moves that ask over and over what a node reaches.

Bit `i` of a node's words stands for node `i`, in word `i // 64`. Everything here runs inside numba.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic
from numpy.typing import NDArray


class BitGraph(NamedTuple):
    """A graph twice, so that both directions are one look-up; `W` words hold `d` bits."""

    parents: NDArray[np.uint64]  # [d, W]
    children: NDArray[np.uint64]  # [d, W]


def _trailing_zeros_of(typing_context: Any, word: Any):
    def generate(context, builder, signature, arguments):
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.uint64(types.uint64), generate


def _ones_of(typing_context: Any, word: Any):
    def generate(context, builder, signature, arguments):
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), generate


_trailing_zeros: Any = intrinsic(_trailing_zeros_of)  # index of the lowest bit that is set; there must be one
_ones: Any = intrinsic(_ones_of)  # number of bits that are set


@njit(cache=True, nogil=True)
def of_parents(parents):
    """The graph with these parents, [d, W]; they are not copied."""
    children = np.zeros_like(parents)
    for node in range(parents.shape[0]):
        left = parents[node].copy()
        parent = pop(left)
        while parent >= 0:
            add(children[parent], node)
            parent = pop(left)
    return BitGraph(parents, children)


@njit(cache=True, nogil=True)
def pack(graph):
    """The words of a graph, bool [d, d]."""
    d = graph.shape[0]
    packed = BitGraph(np.zeros((d, (d + 63) // 64), np.uint64), np.zeros((d, (d + 63) // 64), np.uint64))
    for source in range(d):
        for target in range(d):
            if graph[source, target]:
                add(packed.parents[target], source)
                add(packed.children[source], target)
    return packed


@njit(cache=True, nogil=True)
def unpack(packed, graph):
    """Write the words back to a graph, bool [d, d]."""
    for target in range(graph.shape[0]):
        for source in range(graph.shape[0]):
            graph[source, target] = holds(packed.parents[target], source)


@njit(cache=True, nogil=True)
def holds(words, node):
    """Whether a set of nodes contains one."""
    return words[node >> 6] >> np.uint64(node & 63) & np.uint64(1) != 0


@njit(cache=True, nogil=True)
def add(words, node):
    """Add a node to a set."""
    words[node >> 6] |= np.uint64(1) << np.uint64(node & 63)


@njit(cache=True, nogil=True)
def size(words):
    """Number of nodes in a set."""
    count = 0
    for word in words:
        count += int(_ones(word))
    return count


@njit(cache=True, nogil=True)
def pop(words):
    """Take the first node out of a set; −1 where there is none."""
    for w in range(len(words)):
        word = words[w]
        if word != 0:
            words[w] = word & (word - np.uint64(1))
            return 64 * w + int(_trailing_zeros(word))
    return -1


@njit(cache=True, nogil=True)
def set_parents(packed, node, words):
    """Give a node other parents."""
    old, new = packed.parents[node] & ~words, words & ~packed.parents[node]
    packed.parents[node] = words
    word, bit = node >> 6, np.uint64(1) << np.uint64(node & 63)
    parent = pop(old)
    while parent >= 0:
        packed.children[parent, word] &= ~bit
        parent = pop(old)
    parent = pop(new)
    while parent >= 0:
        packed.children[parent, word] |= bit
        parent = pop(new)


@njit(cache=True, nogil=True)
def non_descendants(packed, node):
    """Every node that `node` does not reach, itself left out; bits beyond the last node mean nothing."""
    children = packed.children
    reached = np.zeros(children.shape[1], np.uint64)
    add(reached, node)
    pending = reached.copy()
    reaching = pop(pending)
    while reaching >= 0:
        for w in range(children.shape[1]):
            new = children[reaching, w] & ~reached[w]
            reached[w] |= new
            pending[w] |= new
        reaching = pop(pending)
    return ~reached


@njit(cache=True, nogil=True)
def edge_at(packed, rank):
    """Source and target of one edge, counted by target, then by source."""
    target = 0
    count = size(packed.parents[0])
    while rank >= count:
        rank -= count
        target += 1
        count = size(packed.parents[target])
    sources = packed.parents[target].copy()
    for _ in range(rank):
        pop(sources)
    return pop(sources), target
