"""Lists of parent sets: the bound on what is left out, against enumeration."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.special import logsumexp

import gflowdag as gd
from gflowdag.data import Dataset, Knowledge
from gflowdag.errors import KnowledgeError, TooLargeError
from gflowdag.graph.bits import parent_masks
from gflowdag.graph.enumeration import all_dags
from gflowdag.orders.lists import all_sets, kept_sets, most_parents, parent_lists
from gflowdag.runtime.precision import double_precision
from gflowdag.score import make_score


def score_of(d, num_rows=50, knowledge=None, prior="fair"):
    frame = gd.simulate.linear_gaussian(d, num_rows, random_state=3).frame
    return make_score(Dataset.as_dataset(frame), score="auto", prior=prior, knowledge=knowledge)


def listed_masks(lists):
    """The kept sets of each node, as bit masks with their scores."""
    d = lists.num_variables
    masks = np.where(lists.members < d, 1 << lists.members.astype(np.int64), 0).sum(axis=2)
    return [
        dict(zip(own[:n].tolist(), scores[:n].tolist(), strict=True))
        for own, scores, n in zip(masks, lists.scores, lists.lengths, strict=True)
    ]


def largest_share_lost(scores, num_possible, largest, keep):
    """The most that the sets not kept weigh among the sets within U that meet L, over all U ⊇ L."""
    sets = all_sets(num_possible, largest)
    masks = np.where(sets < num_possible, 1 << sets, 0).sum(axis=1)
    weights, worst = np.exp(scores), 0.0
    for within, window in itertools.product(range(1, 1 << num_possible), repeat=2):
        if window & ~within:
            continue
        meets = (masks & ~within == 0) & (masks & window != 0)
        worst = max(worst, weights[meets & ~keep].sum() / weights[meets].sum())
    return worst


def test_all_sets_are_there_once_and_where_their_rank_says():
    sets = all_sets(7, 3)
    assert len(sets) == sum(math.comb(7, size) for size in range(4))
    first = np.cumsum([0] + [math.comb(7, size) for size in range(3)])
    for place, row in enumerate(sets):
        members = row[row < 7]
        assert list(members) == sorted(set(members.tolist()))
        assert place == first[len(members)] + sum(math.comb(c, i + 1) for i, c in enumerate(members))


@pytest.mark.parametrize("epsilon", [0.02, 0.2])
@pytest.mark.parametrize("slope", [0.5, 2.0, 5.0])
def test_no_sum_of_a_window_loses_more_than_its_share(epsilon, slope):
    rng = np.random.default_rng(0)
    dropped = 0
    for _ in range(5):
        sets = all_sets(5, 3)
        scores = rng.normal(size=len(sets)) * 2 - slope * (sets < 5).sum(axis=1)
        keep = np.isin(np.arange(len(sets)), kept_sets(scores, 5, 3, epsilon))
        assert keep[0]  # the empty set
        assert largest_share_lost(scores, 5, 3, keep) <= epsilon
        dropped += (~keep).sum()
    assert dropped > 0 or slope < 5


def test_the_largest_number_of_parents_in_place_of_the_possible_ones_breaks_the_bound():
    epsilon, sets = 0.1, all_sets(6, 2)
    size = (sets < 6).sum(axis=1)
    limit = 2  # w({j}, {j, k}) = 1/3 under K = 2; five such sets together weigh more than ε
    scores = np.where(size == 2, np.log(0.99 * epsilon / 3), 0.0)
    right = np.isin(np.arange(len(sets)), kept_sets(scores, 6, 2, epsilon))
    assert largest_share_lost(scores, 6, 2, right) <= epsilon
    wrong = wrongly_kept(scores, sets, limit, epsilon)
    assert largest_share_lost(scores, 6, 2, wrong) > epsilon


def wrongly_kept(scores, sets, k, epsilon):
    """The rule in plain words, with any K: which sets stay, bool [n]."""
    number = sets.max()
    families = [frozenset(row[row < number].tolist()) for row in sets]
    weights = dict(zip(families, np.exp(scores), strict=True))

    def charged(family, j):
        others = sorted(family - {j})
        return sum(
            (1 + 1 / k) ** (len(part) + 1 - k)
            * k ** (len(part) + 1 - len(family))
            * weights[frozenset(part) | {j}]
            for size in range(len(others) + 1)
            for part in itertools.combinations(others, size)
        )

    return np.array(
        [
            not family or any(weights[family] >= epsilon * charged(family, j) for j in family)
            for family in families
        ]
    )


@pytest.mark.parametrize("epsilon", [1e-3, 0.05])
def test_the_rule_is_the_one_that_is_written_down(epsilon):
    rng, sets = np.random.default_rng(1), all_sets(6, 3)
    scores = rng.normal(size=len(sets)) * 3 - 4.0 * (sets < 6).sum(axis=1)
    expected = wrongly_kept(scores, sets, 6, epsilon)  # with the right K
    np.testing.assert_array_equal(kept_sets(scores, 6, 3, epsilon), np.flatnonzero(expected))
    assert not expected.all()


@pytest.mark.parametrize("knowledge", [None, Knowledge(max_parents=2), Knowledge(required=[("X1", "X2")])])
@double_precision
def test_the_posterior_over_listed_dags_is_within_the_stated_distance(knowledge):
    score = score_of(5, knowledge=knowledge)
    graphs = all_dags(5)
    log_scores = score.log_score(graphs)
    probability = np.exp(log_scores - logsumexp(log_scores))
    masks = parent_masks(graphs)
    for epsilon in (0.0, 0.01, 0.2):
        lists = parent_lists(score, epsilon=epsilon)
        own = listed_masks(lists)
        listed = np.all([[m in own[node] for m in masks[:, node]] for node in range(5)], axis=0)
        lost = probability[~listed].sum()  # the total variation
        assert lost <= lists.total_variation + 1e-12
        assert (lost == 0) == (epsilon == 0 or listed[probability > 0].all())
        for node in range(5):
            for mask, value in own[node].items():
                parents = (mask >> np.arange(5) & 1).astype(bool)
                assert value == pytest.approx(score.local(node, parents[None])[0], abs=1e-9)
    assert not listed.all() or knowledge is not None  # the last ε left something out


@double_precision
def test_more_sets_than_can_be_scored_are_refused_and_so_are_nodes_without_any():
    with pytest.raises(TooLargeError, match="allow fewer parents"):
        parent_lists(score_of(80), max_parents=7)
    with pytest.raises(KnowledgeError, match="X3"):
        parent_lists(score_of(4, knowledge=Knowledge(required=[("X1", "X3"), ("X2", "X3")])), max_parents=1)
    assert [most_parents(d) for d in (5, 30, 50, 100, 441)] == [4, 5, 4, 3, 2]
