"""Parent sets as bit masks and graphs as keys."""

from __future__ import annotations

import numpy as np
import pytest

from gflowdag import graph


def test_masks_have_bit_i_set_for_the_edge_from_i():
    adjacency = np.zeros((4, 4), dtype=bool)
    adjacency[0, 2] = adjacency[3, 2] = adjacency[1, 0] = True
    np.testing.assert_array_equal(graph.parent_masks(adjacency), [0b0010, 0, 0b1001, 0])


def test_masks_and_graphs_are_inverse_up_to_62_nodes():
    rng = np.random.default_rng(0)
    graphs = rng.random((3, 2, 62, 62)) < 0.5
    np.testing.assert_array_equal(graph.graphs_from_masks(graph.parent_masks(graphs), 62), graphs)
    with pytest.raises(ValueError, match="at most 62"):
        graph.parent_masks(np.zeros((63, 63)))


def test_compressed_indices_number_the_parent_sets_of_a_node_without_gaps():
    d = 6
    for j in range(d):
        masks = np.array([mask for mask in range(2**d) if not mask >> j & 1])
        index = graph.compress(masks, j)
        np.testing.assert_array_equal(index, np.arange(2 ** (d - 1)))
        np.testing.assert_array_equal(graph.expand(index, j), masks)


def test_compression_takes_one_node_for_each_mask():
    masks = graph.parent_masks(graph.all_dags(4))
    index = graph.compress(masks, np.arange(4))
    np.testing.assert_array_equal(graph.expand(index, np.arange(4)), masks)


def test_popcount_counts_parents():
    graphs = graph.all_dags(4)
    np.testing.assert_array_equal(graph.popcount(graph.parent_masks(graphs)), graphs.sum(axis=1))


def test_keys_are_equal_exactly_for_equal_graphs():
    graphs = graph.all_dags(4)
    keys = graph.graph_keys(graphs)
    assert len(set(keys.tolist())) == len(graphs)
    np.testing.assert_array_equal(graph.graph_keys(graphs.copy()), keys)
    assert graph.graph_keys(graphs[7]) == keys[7]
