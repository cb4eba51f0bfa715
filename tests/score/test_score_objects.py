"""Scores as objects: hyper-parameters reach the numbers, names are the defaults, own scores are taken."""

from __future__ import annotations

import copy
from dataclasses import FrozenInstanceError, dataclass

import numpy as np
import pytest
from score_problems import continuous, discrete, plain_score, random_dags
from slow_scores import slow_bdeu, slow_bge

import gflowdag as gd
from gflowdag.errors import ScoreError
from gflowdag.score import make_score
from gflowdag.score.known_values import KnownValues
from gflowdag.score.local_score import LocalScore


@dataclass
class NumberOfParents(LocalScore):
    """Depends on the node and on how many parents it has."""

    slope: float = -1.0

    def local(self, node, parents):
        return self.slope * (node + 1) * parents.sum(axis=1)


class Broken(LocalScore):
    def __init__(self, value):
        self.value = value

    def local(self, node, parents):
        return self.value


def test_hyper_parameters_of_an_object_reach_the_numbers():
    data = continuous()
    got = plain_score(data, score=gd.BGe(alpha_mu=2.5, alpha_w=20)).local(2, [[1, 0, 0, 0, 1]])[0]
    expected = slow_bge(data.values, 2, [0, 4], alpha_mu=2.5, alpha_w=20)
    assert got == pytest.approx(expected, abs=1e-9)  # some hundred nats
    assert got != pytest.approx(slow_bge(data.values, 2, [0, 4]), abs=1.0)
    codes = discrete()
    got = plain_score(codes, score=gd.BDeu(ess=7, edge_factor=1)).local(2, [[1, 0, 0, 0, 1]])[0]
    assert got == pytest.approx(slow_bdeu(codes.values, codes.cardinalities, 2, [0, 4], ess=7.0), abs=1e-9)


@pytest.mark.parametrize(
    ("data", "names", "default"),
    [
        (continuous(), ("auto", "bge"), gd.BGe()),
        (discrete(), ("auto", "bdeu"), gd.BDeu()),
        (discrete(), ("bde",), gd.BDeu(ess=1, cells_per_row=None, edge_factor=1)),
    ],
)
def test_a_name_stands_for_the_defaults_bit_for_bit(data, names, default):
    expected = make_score(data, score=default).dense_table()
    for name in names:
        np.testing.assert_array_equal(make_score(data, score=name).dense_table(), expected)


def test_a_score_object_is_a_value_that_tells_its_parameters():
    assert repr(gd.BDeu(ess=3)) == "BDeu(ess=3.0, cells_per_row=1.0, edge_factor=0.25)"
    assert gd.BDeu(ess=[1, 4, 16]) == gd.BDeu()
    assert repr(gd.BGe(alpha_w=9)) == "BGe(alpha_mu=1.0, alpha_w=9.0, scale=None, prior_mean=0.0)"
    assert gd.BGe(prior_mean=np.zeros(2)) == gd.BGe(prior_mean=[0, 0])
    assert copy.deepcopy(gd.BGe(alpha_mu=2)) == gd.BGe(alpha_mu=2.0)
    with pytest.raises(FrozenInstanceError):
        gd.BDeu().ess = 2.0  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.raises(TypeError):
        gd.BDeu(2.0)  # pyright: ignore[reportCallIssue]
    assert repr(Broken(value=3)) == "Broken(value=3)"
    assert repr(NumberOfParents(slope=-2.0)) == "NumberOfParents(slope=-2.0)"


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda: gd.BGe(alpha_mu=0), "alpha_mu"),
        (lambda: gd.BGe(alpha_w=-1), "alpha_w"),
        (lambda: gd.BGe(scale=np.nan), "scale"),
        (lambda: gd.BGe(prior_mean="zero"), "prior_mean"),  # pyright: ignore[reportArgumentType]
        (lambda: gd.BDeu(ess=np.inf), "ess"),
        (lambda: gd.BDeu(ess=()), "ess"),
        (lambda: gd.BDeu(ess=(1, 0)), "ess"),
        (lambda: gd.BDeu(cells_per_row=0), "cells_per_row"),
    ],
)
def test_hyper_parameters_out_of_range_are_refused_where_they_are_given(make, name):
    with pytest.raises(ScoreError, match=f"{name} .*must be"):
        make()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (gd.BGe, r"Give an instance: BGe\(\)"),
        (3, "score must be one of auto, bge"),
        ("bic", "no score 'bic'"),
        (gd.BGe(alpha_w=5.5), "alpha_w = 5.5 must exceed d \\+ 1 = 6"),
        (gd.BDeu(), "continuous: cut them into bins"),
    ],
)
def test_what_is_no_score_for_a_table_is_refused(given, said):
    with pytest.raises(ScoreError, match=said):
        make_score(continuous(), score=given)


def test_the_effects_take_the_hyper_parameters_as_an_object_and_by_name():
    data = continuous(d=3)
    posterior = gd.ExactPosterior(num_samples=50, random_state=0).fit(data).posterior_
    by_object = gd.total_effects(posterior, data, score=gd.BGe(alpha_w=30))
    assert by_object.equals(gd.total_effects(posterior, data, alpha_w=30))
    assert not by_object.equals(gd.total_effects(posterior, data))
    with pytest.raises(ScoreError, match="effects need BGe"):
        gd.total_effects(posterior, data, score=NumberOfParents())


def test_everything_else_follows_from_the_local_scores_of_ones_own():
    data = continuous(d=4)
    score = make_score(data, score=NumberOfParents(), prior="fair")
    assert not score.score_equivalent
    table = score.dense_table()
    for graph in random_dags(4, 20):
        counts = graph.sum(axis=0)
        masks = [sum(int(graph[i, j]) << (i - (i > j)) for i in range(4)) for j in range(4)]
        expected = -(np.arange(1, 5) * counts).sum() + score.prior_log_weights[counts].sum()
        assert score.log_score(graph[None])[0] == pytest.approx(expected)
        assert table[np.arange(4), masks].sum() == pytest.approx(expected)
    some = np.array([[False, True, False, False]])
    extended = score.extended_local(0, some)[0]
    assert np.isneginf(extended[:2]).all()
    np.testing.assert_allclose(extended[2:], score.local(0, [[0, 1, 1, 0]])[0])


def test_a_score_that_ignores_interventions_is_not_given_them():
    data = continuous(interventions=True)
    with pytest.raises(ScoreError, match="uses_interventions"):
        make_score(data, score=NumberOfParents())
    aware = NumberOfParents()
    aware.uses_interventions = True
    assert make_score(data, score=aware).num_variables == 5


@pytest.mark.parametrize(
    ("value", "said"),
    [(np.zeros(3), "shape"), (np.array([np.nan]), "nan for node 1 with the parents \\[0\\]")],
)
def test_a_local_score_that_breaks_its_promise_is_named(value, said):
    score = make_score(continuous(), score=Broken(value))
    with pytest.raises(ScoreError, match=f"Broken.local gave .*{said}"):
        score.local(1, [[True, False, False, False, False]])


@dataclass(frozen=True)
class AtMostTwo:
    """An own prior: a third parent is a million times less likely."""

    cost: float = np.log(1e6)

    def log_weights(self, d):
        return -self.cost * np.maximum(np.arange(d) - 2, 0)


def test_an_own_prior_is_any_object_with_log_weights():
    data = continuous(d=5)
    own, uniform = make_score(data, prior=AtMostTwo()), make_score(data, prior="uniform")
    crowded = [[True, True, True, False, False]]
    assert uniform.local(3, crowded)[0] - own.local(3, crowded)[0] == pytest.approx(np.log(1e6))
    posterior = gd.ExactPosterior(prior=AtMostTwo(), num_samples=200, random_state=0).fit(data).posterior_
    assert posterior.samples.sum(axis=1).max() == 2


@pytest.mark.parametrize("memory", [1 << 20, 1000])
def test_known_values_are_those_computed_whether_or_not_they_are_remembered(memory):
    asked = 0

    def compute(node, parents):
        nonlocal asked
        asked += len(parents)
        return node + np.packbits(parents, axis=1).astype(float)

    d = 70
    known = KnownValues(d, 9, compute, memory=memory)
    rng = np.random.default_rng(0)
    parents = rng.random((500, d)) < 0.5
    nodes = rng.integers(d, size=500)
    for _ in range(3):
        again = rng.integers(500, size=2000)
        expected = nodes[again, None] + np.packbits(parents[again], axis=1)
        np.testing.assert_array_equal(known(nodes[again], parents[again]), expected)
    assert (asked <= 500) == (memory > 10_000)
