"""Slow, plain and independent ways to the same answers."""

from __future__ import annotations

import math
from decimal import Decimal, getcontext
from functools import cache

import numpy as np
from scipy.special import logsumexp

from gflowdag.graph.bits import compress, expand, parent_masks, popcount
from gflowdag.graph.closure import transitive_closure
from gflowdag.graph.enumeration import all_dags


def graph_log_scores(table, graphs):
    """Log score of each graph, [n]."""
    nodes = np.arange(len(table))
    return table[nodes, compress(parent_masks(graphs), nodes)].sum(axis=-1)


def brute_force(table):
    """Log evidence, edge, path and parent-set probabilities by listing all DAGs (d ≤ 5)."""
    d = len(table)
    graphs = all_dags(d)
    scores = graph_log_scores(table, graphs)
    log_evidence = logsumexp(scores)
    probability = np.exp(scores - log_evidence)
    parent_sets = np.zeros(table.shape)
    for j in range(d):
        np.add.at(parent_sets[j], compress(parent_masks(graphs)[:, j], j), probability)
    edges = np.tensordot(probability, graphs, axes=1)
    paths = np.tensordot(probability, transitive_closure(graphs), axes=1)
    return log_evidence, edges, paths, parent_sets


def parent_set_probabilities_by_layers(table):
    """Parent-set probabilities, [d, 2^(d−1)], by summing root layers: positive terms only, O(4^d) each.

    The probability of a parent set is the evidence with this one set allowed for its node, over the whole
    evidence. All those evidences are computed side by side.
    """
    d, width = table.shape
    everything = (1 << d) - 1
    weights = np.exp(table - table.max(axis=1, keepdims=True))

    @cache
    def subset_sum(j, allowed):
        """β_j(allowed) as it is, and then with each single set of each node, [1 + d·width]."""
        inside = expand(np.arange(width), j) & ~allowed == 0
        terms = np.where(inside, weights[j], 0.0)
        sums = np.full(1 + d * width, terms.sum())
        sums[1 + j * width : 1 + (j + 1) * width] = terms
        return sums

    @cache
    def completions(placed, layer):
        """Weight of all ways to add the other nodes after `placed`, whose last layer is `layer`."""
        rest = everything & ~placed
        if rest == 0:
            return 1.0
        gain = {
            j: subset_sum(j, placed) - (subset_sum(j, placed & ~layer) if layer else 0.0)
            for j in range(d)
            if rest >> j & 1
        }
        total, following = 0.0, rest
        while following:
            product = completions(placed | following, following)
            for j in gain:
                if following >> j & 1:
                    product = product * gain[j]
            total = total + product
            following = (following - 1) & rest
        return total

    evidence = completions(0, 0)
    return (evidence[1:] / evidence[0]).reshape(d, width)


def evidence_in_decimals(table):
    """The sum over all DAGs by the plain recurrence, in numbers of 60 digits and any size."""
    getcontext().prec = 60
    d = len(table)
    weights = [[Decimal(float(score)).exp() for score in row] for row in table]

    @cache
    def subset_sum(j, allowed):
        parents = expand(np.arange(table.shape[1]), j)
        return sum((weights[j][k] for k in np.flatnonzero(parents & ~allowed == 0)), Decimal(0))

    @cache
    def all_dags_on(nodes):
        total, chosen = Decimal(nodes == 0), nodes
        while chosen:
            rest = nodes & ~chosen
            members = [j for j in range(d) if chosen >> j & 1]
            term = all_dags_on(rest) * math.prod((subset_sum(j, rest) for j in members), start=Decimal(1))
            total += term if len(members) % 2 else -term
            chosen = (chosen - 1) & nodes
        return total

    return all_dags_on((1 << d) - 1)


def random_table(d, rng, *, scale=2.0, penalty=0.0, forbidden=0.0):
    """Normal log scores, lower for larger sets; a share of the sets forbidden, never the empty one."""
    sizes = popcount(np.arange(1 << (d - 1)))
    table = scale * rng.normal(size=(d, len(sizes))) - penalty * sizes
    table[:, 1:][rng.random((d, len(sizes) - 1)) < forbidden] = -np.inf
    return table
