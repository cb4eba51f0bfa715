"""Effects with the uncertainty of graph and parameters, against brute force, theory and simulation."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from effect_calibration import Outcome, assert_calibrated, normal_wishart_tables, outcome
from scipy import stats

import gflowdag as gd
from gflowdag.data.networks import DiscreteNetwork
from gflowdag.errors import DataError, ScoreError
from gflowdag.graph import all_dags
from gflowdag.graph.closure import transitive_closure
from gflowdag.posterior.effect import DiscreteEffect, EffectDraws, LinearEffect
from gflowdag.posterior.elimination import Factor, outcome_given_setting, simulated_outcome
from gflowdag.posterior.linear_effects import path_products
from gflowdag.posterior.parameter_archive import parameter_members, read_parameters
from gflowdag.posterior.posterior import Posterior
from gflowdag.score import BDeu, BGe, make_score
from gflowdag.score.conjugate import GaussianParameters

DAGS = all_dags(3)
NAMES = ("X1", "X2", "X3")


def enumerated(data: gd.Dataset, score: Any) -> Posterior:
    """The posterior over all graphs of three variables under a uniform prior, each graph once."""
    scores = make_score(data, score=score, prior="uniform").log_score(DAGS)
    return Posterior(DAGS, NAMES, log_weights=scores, log_scores=scores).with_parameters(data, score=score)


# -- continuous ----------------------------------------------------------------------------------------------


def test_path_products_are_those_of_the_inverse() -> None:
    """With coefficients that are nearly certain, the effects are `(I − B)⁻¹ − I` of the means."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(10**6, 4)) @ rng.normal(size=(4, 4))
    parameters = GaussianParameters((rows.T @ rows)[None], np.array([1e12]), np.zeros(4, np.int64))
    for graph in all_dags(4)[::29]:
        coefficients = np.zeros((4, 4))
        for node in range(4):
            parents = np.flatnonzero(graph[:, node])
            coefficients[parents, node] = parameters.draw_coefficients(node, parents, 1, rng)[0]
        expected = np.linalg.inv(np.eye(4) - coefficients)
        for i, j in np.argwhere(transitive_closure(graph)):
            (found,) = path_products(parameters, graph, int(i), int(j), 1, rng)
            assert found == pytest.approx(expected[i, j], abs=1e-4)  # residual noise of 1e-6 a coefficient


def test_in_a_complete_graph_path_products_have_the_law_of_back_door_adjustment() -> None:
    """All of the normal-Wishart posterior is used by both, so both laws are one Student-t."""
    data = gd.Dataset.from_frame(gd.simulate.linear_gaussian(3, 12, random_state=1).frame)
    complete = np.triu(np.ones((3, 3), bool), 1)
    post = Posterior(complete[None], NAMES).with_parameters(data)
    found = post.effect("X1", "X3", num_draws=4000, random_state=0)
    assert isinstance(found, LinearEffect)
    law = gd.total_effects(post, data, source="X1", target="X3", level=0.8).iloc[0]
    below = [(found.draws.values < law[end]).mean() for end in ("lower", "upper")]
    assert below == pytest.approx([0.1, 0.9], abs=0.02)  # four standard errors of 4000 draws
    assert found.draws.mean() == pytest.approx(law["mean"], abs=4 * found.mean_error)


def test_a_mixture_over_graphs_is_that_of_all_graphs_one_by_one() -> None:
    data = gd.Dataset.from_frame(gd.simulate.linear_gaussian(3, 15, random_state=3).frame)
    post = enumerated(data, "bge")
    found = post.effect("X1", "X3", num_draws=40_000)
    alone = [
        replace(post, samples=graph[None], log_weights=None, log_scores=None).effect("X1", "X3")
        for graph in DAGS
    ]
    assert found.probability == pytest.approx(post.weights @ transitive_closure(DAGS)[:, 0, 2])
    assert found.draws.mean() == pytest.approx(
        post.weights @ [one.draws.mean() for one in alone], abs=5 * found.mean_error
    )
    assert found.draws.probability == pytest.approx(found.probability)


def test_rows_in_which_a_node_was_set_do_not_count_for_it() -> None:
    rng = np.random.default_rng(0)
    cause = rng.normal(size=4000)
    outcome = 2 * cause + rng.normal(size=4000)
    outcome[2000:] = rng.normal(size=2000) * 5
    frame = pd.DataFrame({"a": cause, "b": outcome})
    blocks = [(2000, None), (2000, "b")]
    post = gd.fit(frame, method="exact", interventions=blocks, num_samples=20)
    assert post.effect("a", "b").draws.mean() == pytest.approx(2.0, abs=0.1)


def test_scales_are_converted_back() -> None:
    rng = np.random.default_rng(1)
    x = rng.lognormal(size=5000)
    y = 3 * x**0.5 * rng.lognormal(0, 0.1, size=5000)
    frame, graph = pd.DataFrame({"x": x, "y": y}), np.array([[[0, 1], [0, 0]]], bool)
    chain = Posterior(graph, ("x", "y"))
    data = gd.Dataset.from_frame(frame, transform="log")
    both = chain.with_parameters(data).effect("x", "y")
    assert both.meaning == "Twice as much x multiplies y by the effect."
    assert both.draws.median() == pytest.approx(2**0.5, abs=0.01)
    outcome = chain.with_parameters(gd.Dataset.from_frame(frame.assign(x=np.log(x)), transform={"y": "log"}))
    assert outcome.effect("x", "y").draws.median() == pytest.approx(np.exp(0.5), abs=0.01)
    plain = chain.with_parameters(
        gd.Dataset.from_frame(pd.DataFrame({"x": x, "y": 7 * x + rng.normal(size=5000)}))
    )
    assert plain.effect("x", "y").meaning == "One unit more of x raises y by the effect."
    assert plain.effect("x", "y").draws.median() == pytest.approx(7, abs=0.1)
    ranks = chain.with_parameters(gd.Dataset.from_frame(frame, transform="rank")).effect("x", "y")
    low, middle, high = np.quantile(y, [0.25, 0.5, 0.75])
    assert ranks.meaning == "X from its lower to its upper quartile moves y from its median by the effect."
    assert 0.5 * (high - low) < ranks.draws.median() < np.quantile(y, 0.95) - middle


def _normal_wishart_effects(num_tables: int) -> list[Outcome]:
    """True effects in their posteriors; graph and parameters come from the prior of BGe."""
    rng, found = np.random.default_rng(11), []
    for frame, truth, present in normal_wishart_tables(rng, num_tables):
        data = gd.Dataset.from_frame(frame, standardize=False)
        draws = enumerated(data, BGe()).effect("X1", "X3", num_draws=2000, random_state=rng).draws
        found.append(outcome(draws, truth, present, rng))
    return found


def test_true_linear_effects_are_anywhere_in_their_posterior() -> None:
    assert_calibrated(_normal_wishart_effects(80))


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_true_linear_effects_are_anywhere_in_their_posterior_over_500_tables() -> None:
    assert_calibrated(_normal_wishart_effects(500))


# -- discrete ------------------------------------------------------------------------------------------------


def _factors(graph: np.ndarray, levels: np.ndarray, rng: np.random.Generator, size: int = 1) -> list[Factor]:
    found = []
    for node in range(len(graph)):  # the graphs below are sorted topologically
        parents = np.flatnonzero(graph[:, node]).tolist()
        shape = levels[[*parents, node]]
        values = rng.dirichlet(np.ones(shape[-1]), size=(size, *shape[:-1]))
        found.append(Factor((*parents, node), values))
    return found


def _joint(factors: list[Factor], levels: np.ndarray, do: dict[int, int]) -> dict[tuple[int, ...], float]:
    """Truncated factorisation, state by state."""
    joint = {}
    for state in product(*map(range, levels)):
        p = 1.0
        for scope, values in factors:
            if scope[-1] in do:
                p *= state[scope[-1]] == do[scope[-1]]
            else:
                p *= values[0][tuple(state[v] for v in scope)]
        joint[state] = p
    return joint


@pytest.mark.parametrize("seed", range(4))
def test_elimination_is_the_truncated_factorisation_and_back_door_adjustment(seed: int) -> None:
    rng = np.random.default_rng(seed)
    levels = np.array([2, 3, 2, 3])
    graph = np.triu(rng.random((4, 4)) < 0.7, 1)
    factors, cause, outcome = _factors(graph, levels, rng), 1, 3
    needed = [factor for factor in factors if factor.scope[-1] != cause]
    found = outcome_given_setting(needed, cause, outcome, levels)
    observed = _joint(factors, levels, {})
    parents = np.flatnonzero(graph[:, cause])
    for level in range(3):
        joint = _joint(factors, levels, {cause: level})
        for y in range(3):
            by_force = sum(p for state, p in joint.items() if state[outcome] == y)
            assert found[0, level, y] == pytest.approx(by_force, abs=1e-12)
            adjusted = 0.0
            for z in product(*(range(levels[v]) for v in parents)):
                alike = {
                    s: p
                    for s, p in observed.items()
                    if all(s[v] == k for v, k in zip(parents, z, strict=True))
                }
                treated = {s: p for s, p in alike.items() if s[cause] == level}
                share = sum(p for s, p in treated.items() if s[outcome] == y) / sum(treated.values())
                adjusted += sum(alike.values()) * share
            assert found[0, level, y] == pytest.approx(adjusted, abs=1e-12)


def test_simulated_rows_agree_with_elimination() -> None:
    rng = np.random.default_rng(5)
    levels, graph = np.array([2, 3, 2, 3]), np.triu(np.ones((4, 4), bool), 1)
    factors = [factor for factor in _factors(graph, levels, rng, size=3) if factor.scope[-1] != 1]
    exact = outcome_given_setting(factors, 1, 3, levels)
    found = simulated_outcome(factors, 1, 3, levels, rng)
    assert np.abs(found - exact).max() < 0.04  # five standard errors of 4096 rows
    one = simulated_outcome(
        [factors[-1]._replace(scope=(1, 3), values=np.full((1, 3, 3), 1 / 3))], 1, 3, levels, rng
    )
    assert np.abs(one - 1 / 3).max() < 0.04


def test_discrete_effects_of_all_graphs_are_their_mixture() -> None:
    frame = gd.simulate.discrete(3, 40, random_state=2).frame
    data = gd.Dataset.from_frame(frame)
    post = enumerated(data, BDeu(ess=2.0, cells_per_row=None))
    found = post.effect("X1", "X3", num_draws=20_000)
    assert isinstance(found, DiscreteEffect)
    expected = np.zeros(found.distributions.shape[1:])
    codes = data.values.astype(int)
    for graph, weight in zip(DAGS, post.weights, strict=True):
        expected += weight * _adjusted_mean(codes, graph, data.cardinalities)
    mean = np.tensordot(found.weights, found.distributions, axes=1)
    spread = np.sqrt(np.tensordot(found.weights**2, np.square(found.distributions - mean), axes=1))
    assert (np.abs(mean - expected) < 5 * spread + 1e-3).all()
    assert found.probability == pytest.approx(post.weights @ transitive_closure(DAGS)[:, 0, 2])
    table = found.table()
    assert table.groupby("setting")["mean"].sum().to_numpy() == pytest.approx(1)


def _adjusted_mean(codes: np.ndarray, graph: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """`E[P(X3 | do(X1))]` under one graph: tables of nodes are independent, so means multiply (ess 2)."""
    tables = []
    for node in range(3):
        parents = np.flatnonzero(graph[:, node]).tolist()
        shape = levels[[*parents, node]]
        counts = np.full(shape, 2.0 / np.prod(shape))
        np.add.at(counts, tuple(codes[:, [*parents, node]].T), 1)
        tables.append(Factor((*parents, node), (counts / counts.sum(axis=-1, keepdims=True))[None]))
    out = np.zeros((levels[0], levels[2]))
    for level in range(levels[0]):
        for state, p in _joint(tables, levels, {0: level}).items():
            out[level, state[2]] += p
    return out


def _dirichlet_effects(num_tables: int) -> list[Outcome]:
    """True differences of probabilities in their posteriors; all come from the prior of BDeu, ess 3."""
    rng = np.random.default_rng(7)
    score, effects = BDeu(ess=3.0, cells_per_row=None, edge_factor=1.0), []
    for _ in range(num_tables):
        graph = DAGS[rng.integers(len(DAGS))]
        tables = []
        for node in range(3):
            shape = (2,) * int(graph[:, node].sum())
            tables.append(rng.dirichlet(np.full(2, 3.0 / 2 ** (len(shape) + 1)), size=shape))
        parents = tuple(tuple(np.flatnonzero(graph[:, node]).tolist()) for node in range(3))
        network = DiscreteNetwork(NAMES, ((0, 1),) * 3, parents, tuple(tables))
        try:
            data = gd.Dataset.from_frame(network.sample(40, rng))
        except (
            DataError
        ):  # a constant column, or two that are copies: the law given any other table is the same
            continue
        factors = [Factor((*parents[node], node), tables[node][None]) for node in range(3)]
        true = [
            sum(p for state, p in _joint(factors, np.array([2, 2, 2]), {0: level}).items() if state[2] == 1)
            for level in (0, 1)
        ]
        present = bool(transitive_closure(graph)[0, 2])
        truth = (true[1] - true[0]) * present
        found = enumerated(data, score).effect("X1", "X3", num_draws=2000, random_state=rng)
        draws = found.difference(1, 1, 0)
        effects.append(outcome(draws, truth, present, rng))
    return effects


def test_true_discrete_effects_are_anywhere_in_their_posterior() -> None:
    assert_calibrated(_dirichlet_effects(80))


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_true_discrete_effects_are_anywhere_in_their_posterior_over_500_tables() -> None:
    effects = _dirichlet_effects(1400)
    assert len(effects) >= 500
    assert_calibrated(effects)


def test_of_several_sample_sizes_each_draw_takes_one_by_its_posterior() -> None:
    """Mean of `P(X1 = 0)` without parents, averaged over sample sizes in proportion to their evidence."""
    frame = pd.DataFrame({"X1": [0] * 9 + [1], "X2": [0, 1] * 5})
    data = gd.Dataset.from_frame(frame, discrete=["X1", "X2"])
    sizes = (1.0, 64.0)
    post = Posterior(np.zeros((1, 2, 2), bool), ("X1", "X2")).with_parameters(data, score=BDeu(ess=sizes))
    draws = post.parameters.draw_table(0, (), 20_000, np.random.default_rng(0))[:, 0]
    evidence = [stats.betabinom(10, ess / 2, ess / 2).pmf(9) for ess in sizes]
    means = [(9 + ess / 2) / (10 + ess) for ess in sizes]
    assert draws.mean() == pytest.approx(np.average(means, weights=evidence), abs=0.005)


# -- what is refused -----------------------------------------------------------------------------------------


def test_effects_that_cannot_be_computed_are_refused_with_the_reason() -> None:
    drawn = gd.simulate.mixed(num_variables=3, num_rows=60, random_state=1)
    mixed = gd.fit(drawn.frame, score="conditional-gaussian", method="exact", num_samples=5)
    with pytest.raises(ScoreError, match="generalized-linear"):
        mixed.effect(*mixed.names[:2])
    alone = Posterior(DAGS, NAMES)
    with pytest.raises(ScoreError, match="with_parameters"):
        alone.effect("X1", "X2")
    frame = gd.simulate.linear_gaussian(3, 30, random_state=0).frame
    learnt = gd.fit(frame, method="exact", num_samples=20)
    with pytest.raises(DataError, match="both 'X1'"):
        learnt.effect("X1", "X1")
    with pytest.raises(DataError, match="no variable 'Y'"):
        learnt.effect("X1", "Y")
    with pytest.raises(DataError, match="not the table"):
        replace(learnt, parameters=None).with_parameters(frame * 2 + 1)
    again = replace(learnt, parameters=None).with_parameters(frame)
    assert again.effect("X1", "X2").draws.mean() == learnt.effect("X1", "X2").draws.mean()


def test_a_file_keeps_what_effects_need(tmp_path: Path) -> None:
    blocks = [(40, None), (20, "X1"), (20, ["X1", "X2"])]
    drawn = gd.simulate.discrete(3, 80, random_state=4).frame
    for frame in (gd.simulate.linear_gaussian(3, 80, random_state=4).frame, drawn):
        post = gd.fit(frame, method="exact", num_samples=50, interventions=blocks)
        post.save(tmp_path / "p.npz")
        first, again = (one.effect("X1", "X3") for one in (post, Posterior.load(tmp_path / "p.npz")))
        assert first.to_dict() == again.to_dict()


@pytest.mark.parametrize(
    ("member", "change"),
    [
        ("scatter", lambda array: -array),
        ("scatter", lambda array: array[:, :2]),
        ("degrees", lambda array: array * np.nan),
        ("group_of_node", lambda array: array + 1),
        ("group_of_node", None),
        ("codes", lambda array: array + 7),
        ("counts", lambda array: array[:, 1:]),
        ("cardinalities", lambda array: array * 0),
        ("ess", lambda array: -array),
    ],
)
def test_a_damaged_file_is_refused(member: str, change: Any) -> None:
    name = f"parameters_{member}"
    tables = {"scatter": gd.simulate.linear_gaussian, "degrees": gd.simulate.linear_gaussian}
    drawn = tables.get(member, gd.simulate.discrete)(3, 40, random_state=4)
    post = Posterior(DAGS, NAMES).with_parameters(drawn.frame)
    arrays = parameter_members(post.parameters)
    assert read_parameters(arrays, 3) is not None
    damaged = {key: value for key, value in arrays.items() if key != name}
    if change is not None:
        damaged[name] = change(arrays[name])
    with pytest.raises(ValueError, match=r"\w"):
        read_parameters(damaged, 3)


# -- a number with a point mass ------------------------------------------------------------------------------


def test_quantiles_step_over_the_mass_at_no_effect() -> None:
    draws = EffectDraws(np.array([-2.0, 1.0, 3.0]), np.array([0.1, 0.2, 0.1]))
    assert draws.probability == pytest.approx(0.4)
    assert [draws.quantile(share) for share in (0.05, 0.1, 0.11, 0.7, 0.71, 0.9, 0.95)] == [
        -2,
        -2,
        0,
        0,
        1,
        1,
        3,
    ]
    assert draws.median() == 0
    assert draws.mean() == pytest.approx(0.3)
    assert draws.mean_if_present() == pytest.approx(0.75)
    density = draws.density(400)
    area = np.trapezoid(density["density"], density["value"])
    assert area == pytest.approx(0.4, abs=0.01)
    ratio = EffectDraws(np.array([2.0]), np.array([0.25]), none=1.0)
    assert (ratio.median(), ratio.mean()) == (1.0, 1.25)


def test_the_matrix_has_the_effects_of_all_pairs() -> None:
    frame = gd.simulate.linear_gaussian(4, 60, random_state=5).frame * [1, 10, 1, 0.1]
    post = gd.fit(frame, method="exact", num_samples=300)
    matrix = post.effect_matrix(num_draws=20_000)
    for source, target in (("X1", "X2"), ("X3", "X1"), ("X4", "X2")):
        one = post.effect(source, target)
        assert matrix.loc[source, target] == pytest.approx(one.draws.mean(), abs=4 * one.mean_error + 1e-9)
    codes = gd.fit(gd.simulate.discrete(3, 60, random_state=5).frame, method="exact", num_samples=100)
    assert codes.effect_matrix(num_draws=50).to_numpy().shape == (3, 3)


def test_the_matrix_is_converted_back_as_one_effect_is() -> None:
    rng = np.random.default_rng(3)
    a = rng.normal(size=400)
    b = 0.5 * a + rng.normal(size=400)
    table = {
        "a": np.exp(a),
        "b": np.exp(b),
        "c": (b + rng.normal(size=400)) ** 3,
        "d": b + rng.normal(size=400),
    }
    data = gd.Dataset.from_frame(pd.DataFrame(table), transform={"a": "log", "b": "log", "c": "rank"})
    post = gd.fit(data, method="exact", num_samples=200, random_state=0)
    matrix = post.effect_matrix(num_draws=20_000)
    for source, target in (
        ("a", "b"),
        ("a", "c"),
        ("a", "d"),
        ("c", "b"),
        ("d", "c"),
        ("b", "d"),
        ("c", "d"),
    ):
        one = post.effect(source, target)
        assert matrix.loc[source, target] == pytest.approx(one.draws.mean(), abs=5 * one.mean_error + 1e-9)
    assert matrix.loc["b", "b"] == 0 < 1 < matrix.loc["a", "b"]  # a factor
    assert np.diag(matrix).tolist() == [0, 0, 0, 0]
    assert matrix.attrs["factors"] == ["a", "b"]
    assert "a, b: twice" in matrix.attrs["meaning"]
    assert "c: from the lower" in matrix.attrs["meaning"]


def test_what_is_given_holds_in_the_graphs_of_an_effect() -> None:
    frame = gd.simulate.linear_gaussian(3, 40, random_state=7).frame
    post = gd.fit(frame, method="exact", num_samples=500)
    assert post.effect("X1", "X2", given="X1 -> X2").probability == 1
    assert post.effect("X1", "X2", given="X2 -> X1").probability == 0
