"""Graphs as machine words against the plain algebra of 0/1 arrays."""

from __future__ import annotations

import numpy as np
import pytest

from gflowdag.graph import erdos_renyi
from gflowdag.graph.closure import transitive_closure
from gflowdag.mcmc.bit_graphs import edge_at, holds, non_descendants, pack, set_parents, size, unpack


@pytest.fixture(params=[50, 64, 70], ids="{} nodes".format)
def graph(request) -> np.ndarray:
    """With nodes in one word, in exactly one, and in two."""
    return np.asarray(erdos_renyi(request.param, 2 * request.param, np.random.default_rng(0)), bool)


def members(words: np.ndarray, d: int) -> np.ndarray:
    return np.array([holds(words, node) for node in range(d)])


def test_words_hold_the_whole_graph(graph):
    again = np.zeros_like(graph)
    unpack(pack(graph), again)
    assert (again == graph).all()
    assert sum(size(words) for words in pack(graph).children) == graph.sum()


def test_non_descendants_are_what_no_path_leads_to(graph):
    reached = transitive_closure(graph) | np.eye(len(graph), dtype=bool)
    packed = pack(graph)
    for node in range(len(graph)):
        assert (members(non_descendants(packed, node), len(graph)) == ~reached[node]).all()


def test_every_edge_has_one_rank(graph):
    packed = pack(graph)
    edges = {edge_at(packed, rank) for rank in range(graph.sum())}
    assert edges == {(int(i), int(j)) for i, j in np.argwhere(graph)}


def test_new_parents_replace_the_old_ones_in_both_directions(graph):
    packed, other = pack(graph), pack(graph[::-1].copy())
    set_parents(packed, 3, other.parents[5])
    expected = graph.copy()
    expected[:, 3] = graph[::-1][:, 5]
    again = np.zeros_like(graph)
    unpack(packed, again)
    assert (again == expected).all()
    assert (packed.children == pack(expected).children).all()
