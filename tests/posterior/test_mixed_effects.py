"""Effects in tables of both kinds, against those of tables of one kind, plain simulation, and theory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from effect_calibration import Outcome, assert_calibrated, outcome
from scipy.special import expit, softmax

import gflowdag as gd
from gflowdag.data.mixed_network import MixedNetwork, cells, draw_column
from gflowdag.errors import DataError, ScoreError
from gflowdag.graph import all_dags
from gflowdag.graph.closure import transitive_closure
from gflowdag.posterior.effect import DiscreteEffect
from gflowdag.posterior.mean_effect import MeanEffect
from gflowdag.posterior.mixed_effects import _outcomes
from gflowdag.posterior.parameter_archive import parameter_members, read_parameters
from gflowdag.posterior.posterior import Posterior
from gflowdag.score import BDeu, BGe, GeneralizedLinear, make_score
from gflowdag.score.degenerate_gaussian import contrasts
from gflowdag.score.logistic_draws import draw_coefficients
from gflowdag.score.mixed_parameters import Predictors

DAGS = all_dags(3)
NAMES = ("X1", "X2", "X3")
_ESS = 3.0


def dag(*edges: tuple[int, int], d: int = 3) -> np.ndarray:
    graph = np.zeros((d, d), bool)
    for i, j in edges:
        graph[i, j] = True
    return graph


def mixed_table(num_rows: int, seed: int = 0) -> pd.DataFrame:
    """A discrete column, a continuous one that it shifts, and a discrete one that follows from both."""
    rng = np.random.default_rng(seed)
    a = rng.integers(3, size=num_rows)
    x = 2.0 * a + rng.normal(size=num_rows)
    y = rng.random(num_rows) < expit(x - 2 + 0.5 * (a == 1))
    return pd.DataFrame({"a": pd.Categorical(a), "x": 10 + 3 * x, "y": np.where(y, "yes", "no")})


def test_continuous_families_have_the_effects_of_a_continuous_table() -> None:
    drawn = gd.simulate.linear_gaussian(3, 60, random_state=2).frame
    chain = dag((0, 1), (1, 2), (0, 2))
    alone = Posterior(chain[None], NAMES).with_parameters(drawn, score=BGe())
    beside = drawn.assign(D=pd.Categorical(np.arange(60) % 2))
    both = Posterior(np.pad(chain, (0, 1))[None], (*NAMES, "D")).with_parameters(beside)
    expected: Any = alone.effect("X1", "X3", num_draws=4000)
    found: Any = both.effect("X1", "X3", num_draws=4000)
    assert type(found) is MeanEffect
    low, high = float(found.table()["setting"].iloc[0]), float(found.table()["setting"].iloc[-1])
    slope = found.difference(high, low).values / (high - low)
    at = [0.05, 0.25, 0.5, 0.75, 0.95]
    spread = expected.draws.values.std()
    assert np.quantile(slope, at) == pytest.approx(np.quantile(expected.draws.values, at), abs=0.12 * spread)


def test_discrete_families_have_the_effects_of_a_discrete_table() -> None:
    drawn = gd.simulate.discrete(3, 50, num_levels=2, random_state=3).frame
    graph, score = dag((0, 1), (1, 2), (0, 2)), (1.0, 16.0)
    alone = Posterior(graph[None], NAMES).with_parameters(drawn, score=BDeu(ess=score))
    beside = drawn.assign(C=np.random.default_rng(0).normal(size=50))
    both = Posterior(np.pad(graph, (0, 1))[None], (*NAMES, "C")).with_parameters(
        beside, score=GeneralizedLinear(ess=score)
    )
    expected: Any = alone.effect("X1", "X3", num_draws=4000)
    found: Any = both.effect("X1", "X3", num_draws=4000)
    assert type(found) is DiscreteEffect
    a, b = expected.cause_levels
    y = expected.outcome_levels[0]
    at = [0.05, 0.25, 0.5, 0.75, 0.95]
    theirs, ours = expected.difference(y, b, a).values, found.difference(y, b, a).values
    assert np.quantile(ours, at) == pytest.approx(np.quantile(theirs, at), abs=0.12 * theirs.std())


def test_logistic_coefficients_follow_their_posterior() -> None:
    """One covariate, two levels: the posterior on a grid, with a rare level, so that it is skewed."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=40)
    level = (rng.random(40) < expit(x - 2.5)).astype(np.int64)
    a, deviation = 0.5, 2.0
    draws = draw_coefficients(level, x[None], 2, a, deviation, 4000, rng)[:, 1]
    b, w = np.meshgrid(np.linspace(-12, 4, 400), np.linspace(-6, 10, 400), indexing="ij")
    logs = a * b - 2 * a * np.logaddexp(0, b) - w**2 / (4 * deviation**2)  # the difference of two slopes
    for row, own in zip(x, level, strict=True):
        logs += own * (b + w * row) - np.logaddexp(0, b + w * row)
    p = softmax(logs)
    for place, (axis, grid) in enumerate(((1, b[:, 0]), (0, w[0]))):
        below = p.sum(axis=axis).cumsum()
        for share in (0.05, 0.25, 0.5, 0.75, 0.95):
            at = grid[np.searchsorted(below, share)]
            # five standard errors of 2000 weighted proposals
            assert (draws[:, place] <= at).mean() == pytest.approx(share, abs=0.06)


def test_outcomes_are_those_of_simulated_rows() -> None:
    rng = np.random.default_rng(2)
    levels = np.array([2, 0, 3, 0])
    graph = np.triu(np.ones((4, 4), bool), 1)
    coefficients, deviations = [], []
    for node in range(4):
        parents = np.arange(4)[graph[:, node]]
        shape = (
            int(np.prod(levels[parents][levels[parents] > 0])),
            max(levels[node], 1),
            1 + int((levels[parents] == 0).sum()),
        )
        coefficients.append(rng.normal(size=shape))
        deviations.append(np.full(shape[0], 0.0 if levels[node] else 0.7))
    draws = 64  # of one network: the same parameters each
    network = {
        node: (
            np.flatnonzero(graph[:, node]),
            Predictors(np.stack([coefficients[node]] * draws), np.stack([deviations[node]] * draws)),
        )
        for node in (0, 2, 3)
    }
    settings = np.array([-1.0, 0.5])
    found = _outcomes(network, levels, 1, 3, settings, draws, rng)[:, :, 0].mean(axis=1)
    size = 200_000
    expected = []
    for setting in settings:
        values = np.zeros((size, 4))
        values[:, 1] = setting
        for node in (0, 2, 3):
            parents = graph[:, node] & (np.arange(4) != node)
            own = (int(levels[node]), coefficients[node], deviations[node])
            values[:, node] = draw_column(values, parents, levels, *own, rng)
        expected.append(values[:, 3].mean())
    assert found == pytest.approx(expected, abs=5 * 2 / np.sqrt(size))


def test_rows_in_which_a_node_was_set_do_not_count_for_it() -> None:
    frame = mixed_table(800)
    rng = np.random.default_rng(0)
    frame.loc[400:, "x"] = rng.normal(10, 3, 400)
    graph = dag((0, 1), (1, 2))
    post = Posterior(graph[None], tuple(frame.columns))
    data = gd.Dataset.from_frame(frame, interventions=[(400, None), (400, "x")])
    found: Any = post.with_parameters(data).effect("a", "x", num_draws=200)
    assert found.difference(2, 0).mean() == pytest.approx(12, abs=1.5)  # three times 2 · 2
    everything: Any = post.with_parameters(frame).effect("a", "x", num_draws=200)
    assert everything.difference(2, 0).mean() < 9


def test_scales_are_converted_back() -> None:
    frame = mixed_table(400)
    frame["x"] = np.exp(frame["x"] / 10)
    post = Posterior(dag((0, 1))[None], tuple(frame.columns))
    logs: Any = post.with_parameters(gd.Dataset.from_frame(frame, transform="log")).effect("a", "x")
    assert logs.meaning == "The median of x where a is set to each level."
    medians = frame.groupby("a", observed=True)["x"].median()
    assert logs.table()["mean"].to_numpy() == pytest.approx(medians.to_numpy(), rel=0.1)
    assert logs.ratio(2, 0).median() == pytest.approx(np.exp(1.2), rel=0.1)
    ranks: Any = post.with_parameters(gd.Dataset.from_frame(frame, transform="rank")).effect("a", "x")
    assert "mean rank" in ranks.meaning


def test_all_pairs_what_is_given_and_what_is_refused(tmp_path: Path) -> None:
    post = gd.fit(mixed_table(150), method="exact", num_samples=60, random_state=0)
    matrix = post.effect_matrix(num_draws=60)
    assert matrix.loc["a", "x"] == pytest.approx(12, abs=3)
    assert post.effect("a", "y", given="a -> y").probability == 1
    found: Any = post.effect("x", "y", num_draws=100)
    assert found.cause_levels[1] == pytest.approx(mixed_table(150)["x"].median(), rel=1e-4)
    for one in (found, post.effect("a", "x", num_draws=100)):
        assert set(one.to_dict()) >= {"probability", "largest_change", "assumed"}
        assert "any effect with probability" in repr(one)
    means: Any = post.effect("a", "x", num_draws=5)
    with pytest.raises(DataError, match="no level 'z'"):
        means.difference("z", 0)
    with pytest.raises(ScoreError, match="table of one kind"):
        post.fitted_network()
    post.save(tmp_path / "p.npz")
    again: Any = Posterior.load(tmp_path / "p.npz").effect("x", "y", num_draws=100)
    assert again.to_dict() == found.to_dict()


@pytest.mark.parametrize(
    ("member", "change"),
    [
        ("values", lambda array: array[:, :2]),
        ("values", lambda array: array + 0.5),
        ("num_levels", lambda array: array * 0 + 1),
        ("ess", lambda array: -array),
        ("constants", lambda array: array[:2]),
        ("constants", None),
        ("intervened", lambda array: np.ones((1, 1), np.int64)),
    ],
)
def test_a_damaged_file_is_refused(member: str, change: Any) -> None:
    post = Posterior(DAGS, ("a", "x", "y")).with_parameters(mixed_table(40))
    arrays = parameter_members(post.parameters)
    assert read_parameters(arrays, 3) is not None
    name = f"parameters_{member}"
    damaged = {key: value for key, value in arrays.items() if key != name}
    if change is not None:
        damaged[name] = change(arrays[name])
    with pytest.raises(ValueError, match=r"\w"):
        read_parameters(damaged, 3)


# -- simulation ----------------------------------------------------------------------------------------------


def _regression_prior(size: int, count: int, rng: np.random.Generator) -> tuple[np.ndarray, float]:
    """Intercepts and slopes [count, 1 + l] and one deviation of the noise; α_w − d = 2, α_μ = 1, t = ½."""
    deviation = np.sqrt(0.5 / rng.chisquare(2 + size + 1))
    slopes = rng.normal(size=(count, size)) * deviation / np.sqrt(0.5)
    return np.column_stack([rng.normal(size=count) * deviation, slopes]), deviation


def _from_prior(
    graph: np.ndarray, levels: np.ndarray, num_rows: int, score: GeneralizedLinear, rng: np.random.Generator
) -> tuple[MixedNetwork, np.ndarray]:
    """A network whose parameters have the prior of the generalised linear score, and rows of it."""
    values = np.zeros((num_rows, len(graph)))
    every: list[Any] = [None] * len(graph)
    order = np.argsort(transitive_closure(graph).sum(axis=0), kind="stable")
    for node in order:
        parents, r = graph[:, node], int(levels[node])
        discrete, numbers = parents & (levels > 0), int((parents & (levels == 0)).sum())
        count = int(levels[discrete].prod())
        own, noise = np.zeros((count, max(r, 1), 1 + numbers)), np.zeros(count)
        if r:
            own[:, :, 0] = np.log(rng.dirichlet(np.full(r, _ESS / (count * r)), size=count))
            own[:, :, 1:] = rng.normal(size=(count, r, numbers)) * score.deviation
        elif not discrete.any() or rng.random() < 0.5:
            own[:, 0], noise[:] = _regression_prior(numbers, count, rng)
        else:  # the levels of one discrete parent shift the mean
            codes = values[:, discrete][:, 0]
            block = np.zeros((count, contrasts(codes).shape[1]))
            block[codes.astype(int)] = contrasts(codes)
            (found,), noise[:] = _regression_prior(block.shape[1] + numbers, 1, rng)
            own[:, 0, 0] = found[0] + block @ found[1 : 1 + block.shape[1]]
            own[:, 0, 1:] = found[1 + block.shape[1] :]
        values[:, node] = draw_column(values, parents, levels, r, own, noise, rng)
        every[node] = (own, noise)
    network = MixedNetwork(NAMES, graph, levels, tuple(o for o, _ in every), tuple(n for _, n in every))
    return network, values


def _true_outcomes(network: MixedNetwork, settings: Any, rng: np.random.Generator) -> np.ndarray:
    """The mean of X3 or its probabilities for settings of X1, by many simulated rows."""
    out = []
    for setting in settings:
        size = 40_000
        values = np.zeros((size, 3))
        values[:, 0] = setting
        order = np.argsort(transitive_closure(network.adjacency).sum(axis=0), kind="stable")
        for node in order:
            parents, levels = network.adjacency[:, node], network.num_levels
            own = network.coefficients[node]
            if node == 2:
                cell = cells(values, parents, levels)
                design = np.column_stack([np.ones(size), values[:, parents & (levels == 0)]])
                predictors = np.einsum("npk,nk->np", own[cell], design)
                out.append((softmax(predictors, axis=1) if levels[2] else predictors).mean(axis=0))
                break
            if node != 0:
                deviations = network.deviations[node]
                values[:, node] = draw_column(
                    values, parents, levels, int(levels[node]), own, deviations, rng
                )
    return np.array(out)


def prior_effects(levels: tuple[int, int, int], num_tables: int, seed: int) -> list[Outcome]:
    """True effects of X1 on X3 in their posteriors; graph and parameters come from the prior."""
    rng, effects = np.random.default_rng([seed, *levels]), []
    score = GeneralizedLinear(ess=_ESS, cells_per_row=None, deviation=2.0)
    for _ in range(num_tables):
        graph = DAGS[rng.integers(len(DAGS))]
        network, values = _from_prior(graph, np.array(levels), 60, score, rng)
        frame = pd.DataFrame(
            {
                name: pd.Categorical.from_codes(column.astype(int), categories=range(r)) if r else column
                for name, column, r in zip(NAMES, values.T, levels, strict=True)
            }
        )
        try:
            data = gd.Dataset.from_frame(frame, standardize=False)
            logs = make_score(data, score=score, prior="uniform").log_score(DAGS)
        except (DataError, ScoreError):  # a constant column, copies of a column, or numbers beyond rounding
            continue
        post = Posterior(DAGS, NAMES, log_weights=logs, log_scores=logs).with_parameters(data, score=score)
        found: Any = post.effect("X1", "X3", num_draws=1000, random_state=rng)
        settings = np.arange(levels[0]) if levels[0] else np.array(np.quantile(values[:, 0], [0.25, 0.75]))
        truth = _true_outcomes(network, settings, rng)
        present = bool(transitive_closure(graph)[0, 2])
        true = float(truth[-1, -1] - truth[0, -1]) * present
        if levels[2]:
            draws = found.difference(found.outcome_levels[-1], found.cause_levels[-1], found.cause_levels[0])
        else:
            draws = found.difference(found.settings[-1], found.settings[0])
        effects.append(outcome(draws, true, present, rng))
    return effects


def test_true_effects_are_anywhere_in_their_posterior() -> None:
    assert_calibrated(prior_effects((0, 2, 0), 40, 1))


@pytest.mark.long
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("levels", [(0, 2, 0), (2, 0, 0), (0, 0, 2), (2, 0, 2)])
def test_true_effects_are_anywhere_in_their_posterior_over_500_tables(levels: tuple[int, int, int]) -> None:
    effects = prior_effects(levels, 700, 2)
    assert len(effects) >= 500
    assert_calibrated(effects)
