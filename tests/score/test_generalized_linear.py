"""The generalised linear score: against numerical integration, and against the scores that it contains."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import optimize, stats
from scipy.special import gammaln, logsumexp

import gflowdag as gd
from gflowdag.data import Dataset
from gflowdag.data.columns import Kind
from gflowdag.graph.bits import expand
from gflowdag.score import make_score

ROUNDING = 1e-9
SEARCH = 1e-3  # where two searches end, a gain of 1e-7 nats away from the top, the curvature differs a little
LAPLACE = 0.1  # nats a cell: the error of Laplace's formula, with twenty rows in it or more
SCORE = gd.GeneralizedLinear(ess=2.0, cells_per_row=None)
KINDS: dict[str, Kind] = {"a": "discrete", "b": "continuous", "c": "discrete", "e": "continuous"}


def frame_of(n=150, seed=0):
    """b → a (3 levels) and c → a; c → e ← b."""
    rng = np.random.default_rng(seed)
    b = rng.normal(size=n)
    c = rng.integers(2, size=n)
    a = np.where(rng.logistic(size=n) < 1.5 * b - c, 1 + (rng.random(n) < 0.4), 0)
    e = rng.normal(size=n) + np.where(c == 1, 0.9, -0.5) * b
    return pd.DataFrame({"a": a, "b": b, "c": c, "e": e})


def table(n=150, **options):
    return Dataset.from_frame(frame_of(n), kinds=KINDS, **options)


def all_sets(node, d=4):
    masks = expand(np.arange(1 << (d - 1)), node)
    return (masks[:, None] >> np.arange(d) & 1).astype(bool)


def integrated(level, x, ess, cells):
    """Log marginal likelihood of a binary logistic regression in each of `cells`, on a grid."""
    a, total = ess / (2 * len(np.unique(cells))), 0.0
    intercepts, slopes = np.linspace(-25, 25, 401), np.linspace(-25, 25, 401)
    log_prior = (
        gammaln(2 * a) - 2 * gammaln(a) - a * np.logaddexp(0, intercepts) - a * np.logaddexp(0, -intercepts)
    )
    for cell in np.unique(cells):
        own, y = x[cells == cell], level[cells == cell]
        odds = intercepts[:, None, None] + slopes[:, None] * own
        values = (odds * y - np.logaddexp(0, odds)).sum(axis=2) + log_prior[:, None]
        variance = 2 * SCORE.deviation**2  # of the difference of two coefficients
        values -= slopes**2 / (2 * variance) + 0.5 * np.log(2 * np.pi * variance)
        total += logsumexp(values) + np.log(intercepts[1] - intercepts[0]) + np.log(slopes[1] - slopes[0])
    return total


@pytest.mark.parametrize("parents", [["b"], ["b", "e"], ["a", "e"]])
def test_logistic_marginal_likelihoods_are_those_of_numerical_integration(parents):
    data = table(120)
    node, members = 2, [data.names.index(name) for name in parents]
    covariates = data.values[:, [i for i in members if data.kinds[i] == "continuous"]]
    if covariates.shape[1] == 2:  # a grid has room for one slope: two equal covariates have half of it each
        data = Dataset(data.columns, np.column_stack([data.values[:, :3], data.values[:, 1]]))
        x = np.sqrt(2) * data.values[:, 1]
    else:
        x = covariates[:, 0]
    cells = data.values[:, 0] if "a" in parents else np.zeros(len(x))
    parent_set = np.isin(np.arange(4), members)[None]
    found = make_score(data, score=SCORE).likelihood.local(node, parent_set)[0]
    assert found == pytest.approx(
        integrated(data.values[:, node], x, 2.0, cells), abs=LAPLACE * len(np.unique(cells))
    )


def integrated_over_three_levels(level, x, ess, cells, nodes):
    """Log marginal likelihood of a multinomial logistic regression, by Gauss and Hermite around each top."""
    a, (points, weights) = ess / (3 * len(np.unique(cells))), np.polynomial.hermite.hermgauss(nodes)
    grid = np.stack(np.meshgrid(*[points] * 4), axis=-1).reshape(-1, 4)
    log_weights = sum(np.meshgrid(*[np.log(weights) + points**2] * 4)).reshape(-1)
    prior_of_slopes = stats.multivariate_normal(np.zeros(2), SCORE.deviation**2 * (np.eye(2) + 1))
    total = 0.0
    for cell in np.unique(cells):
        own, y = x[cells == cell], level[cells == cell].astype(int)

        def log_posterior(values, own=own, y=y):
            """Of two intercepts and two slopes, less those of the first level, [..., 4]."""
            intercepts, slopes = (np.insert(part, 0, 0.0, axis=-1) for part in np.split(values, 2, axis=-1))
            odds = intercepts[..., None, :] + own[:, None] * slopes[..., None, :]
            likelihood = odds[..., np.arange(len(y)), y] - logsumexp(odds, axis=-1)
            at_zero = (
                gammaln(3 * a)
                - 3 * gammaln(a)
                + a * (intercepts - logsumexp(intercepts, axis=-1, keepdims=True)).sum(axis=-1)
            )
            return likelihood.sum(axis=-1) + at_zero + prior_of_slopes.logpdf(slopes[..., 1:])

        top = optimize.minimize(lambda values: -log_posterior(values), np.zeros(4)).x
        steps = 1e-3 * np.eye(4)
        curvature = np.array([[_second(log_posterior, top, one, other) for other in steps] for one in steps])
        root = np.linalg.cholesky(np.linalg.inv(-curvature)) * np.sqrt(2)
        values = np.concatenate([log_posterior(part) for part in np.array_split(top + grid @ root.T, 50)])
        total += logsumexp(values + log_weights) + np.log(np.linalg.det(root))
    return total


def _second(function, place, one, other):
    """A second derivative, from steps in two directions."""
    ahead, behind = function(place + one + other), function(place - one - other)
    return (ahead + behind - function(place + one - other) - function(place - one + other)) / (
        4 * one.sum() * other.sum()
    )


@pytest.mark.parametrize("parents", [["b"], ["b", "c"]])
def test_multinomial_marginal_likelihoods_are_those_of_numerical_integration(parents):
    data = table(150)
    level, x = data.values[:, 0], data.values[:, 1]
    cells = data.values[:, 2] if "c" in parents else np.zeros(len(x))
    expected = integrated_over_three_levels(level, x, 2.0, cells, nodes=7)
    assert integrated_over_three_levels(level, x, 2.0, cells, nodes=5) == pytest.approx(expected, abs=0.01)
    sets = np.isin(list("abce"), parents)[None]
    found = make_score(data, score=SCORE).likelihood.local(0, sets)[0]
    assert found == pytest.approx(expected, abs=LAPLACE * len(np.unique(cells)))


def test_several_sample_sizes_are_averaged_with_the_probabilities_that_bdeu_gives_them():
    data = table()
    parents = np.array([[False, True, True, False]])
    of_each, without = [], []
    for ess in (1.0, 4.0, 16.0):
        score = gd.GeneralizedLinear(ess=ess, cells_per_row=None)
        of_each.append(make_score(data, score=score).likelihood.local(0, parents)[0])
        c = data.values[:, 2]
        counts = np.array([(c == 0).sum(), (c == 1).sum()])
        without.append(
            gammaln(ess) - gammaln(len(c) + ess) + (gammaln(counts + ess / 2) - gammaln(ess / 2)).sum()
        )
    expected = logsumexp(np.array(without) + of_each) - logsumexp(without)
    found = make_score(data, score=gd.GeneralizedLinear(cells_per_row=None)).likelihood.local(0, parents)[0]
    # Of `mean_e M_e`, not of the local scores: sample sizes that make c likely count more.
    assert found == pytest.approx(expected, abs=0.01)  # one search serves all three sample sizes


def test_families_of_one_kind_score_as_bdeu_and_bge():
    data = table()
    mixed = make_score(data, score=gd.GeneralizedLinear()).likelihood
    for names, score in (("ac", gd.BDeu()), ("be", gd.BGe())):
        alone = make_score(table(drop=[n for n in "abce" if n not in names]), score=score).likelihood
        places = [data.names.index(name) for name in names]
        for node in range(2):
            parents = np.zeros((2, 4), bool)
            parents[1, places[1 - node]] = True
            np.testing.assert_allclose(
                mixed.local(places[node], parents),
                alone.local(node, parents[:, places]),
                atol=ROUNDING,
            )


def linear(y, blocks, degrees, alpha_mu=1.0):
    """Log density of `y` under a linear regression, whose slopes are integrated out: a multivariate t.

    Each block of covariates [n, k] has an intercept of its own in the rows in which `rows` is true.
    """
    scale = alpha_mu * (degrees - 1) / (alpha_mu + 1)
    covariance = np.eye(len(y))
    for rows, x in blocks:
        covariance += np.outer(rows, rows) * (x @ x.T / scale + 1 / alpha_mu)
    free = degrees + blocks[0][1].shape[1] + 1
    return stats.multivariate_t(np.zeros(len(y)), scale / free * covariance, free).logpdf(y)


@pytest.mark.parametrize("parents", ["c", "ac", "b", "bc", "abc"])
def test_levels_shift_a_mean_or_have_a_regression_each_with_probability_one_half(parents):
    """Both with one variance of the noise."""
    data = table()
    a, b, c, y = data.values.T
    sets = np.isin(list("abce"), list(parents))[None]
    found = make_score(data, score=SCORE).likelihood.local(3, sets)[0]
    numbers = b[:, None][:, : "b" in parents]
    cell = 2 * a * ("a" in parents) + c * ("c" in parents)
    in_cells = linear(y, [((cell == one).astype(float), numbers) for one in np.unique(cell)], degrees=2.0)
    shifts = make_score(data, score=gd.DegenerateGaussian()).likelihood.local(3, sets)[0]
    expected = np.logaddexp(in_cells, shifts) - np.log(2) if parents != "b" else in_cells
    assert found == pytest.approx(expected, abs=1e-8)


def test_variances_that_differ_between_cells_make_no_edge():
    """A column with heavy tails has cells of very different variances, whatever the cells are."""
    rng = np.random.default_rng(1)
    x = np.exp(1.5 * rng.normal(size=400))
    frame = pd.DataFrame({"x": x, "y": rng.choice(["no", "yes"], 400), "z": rng.choice(["u", "v", "w"], 400)})
    own = gd.fit(frame, score="conditional-gaussian", method="exact").edge_probabilities().loc[:, "x"].max()
    one = gd.fit(frame, method="exact").edge_probabilities().to_numpy().max()
    assert one < 0.2 < 0.9 < own


@pytest.mark.parametrize("interventions", [False, True])
def test_tables_subsets_and_sets_agree(interventions):
    mask = np.zeros((150, 4), bool)
    mask[:20, 0] = True
    mask[20:50, 3] = True
    data = table(interventions=mask if interventions else None)
    likelihood = make_score(data, score=SCORE).likelihood
    tables = likelihood.tables()
    for node in range(4):
        others, parents = np.delete(np.arange(4), node), all_sets(node)
        local = likelihood.local(node, parents)
        np.testing.assert_allclose(tables[node], local, atol=SEARCH)
        turned = others[[2, 0, 1]]  # bits that do not follow the columns
        sets = np.zeros((8, 4), bool)
        sets[:, turned] = np.arange(8)[:, None] >> np.arange(3) & 1
        np.testing.assert_allclose(
            likelihood.local_subsets(node, turned), likelihood.local(node, sets), atol=SEARCH
        )


def test_rows_in_which_a_level_was_set_do_not_count_for_it():
    mask = np.zeros((150, 4), bool)
    mask[:30, 0] = True
    data = table(interventions=mask)
    parents = all_sets(0)
    np.testing.assert_allclose(
        make_score(data, score=SCORE).likelihood.local(0, parents),
        make_score(Dataset(data.columns, data.values[30:]), score=SCORE).likelihood.local(0, parents),
        atol=SEARCH,
    )


def test_the_order_of_the_levels_does_not_matter():
    frame = frame_of()
    first = make_score(Dataset.from_frame(frame, kinds=KINDS), score=SCORE).dense_table()
    frame["a"] = frame["a"].replace({0: 2, 1: 0, 2: 1})
    second = make_score(Dataset.from_frame(frame, kinds=KINDS), score=SCORE).dense_table()
    np.testing.assert_allclose(first, second, atol=SEARCH)


def test_the_two_directions_between_the_kinds_score_differently_and_within_a_kind_alike():
    score = make_score(table(), score=gd.GeneralizedLinear(edge_factor=1), prior="uniform")
    assert not score.score_equivalent

    def edge(source, target):
        graph = np.zeros((1, 4, 4), bool)
        graph[0, "abce".index(source), "abce".index(target)] = True
        return score.log_score(graph)[0]

    assert edge("a", "c") == pytest.approx(edge("c", "a"), abs=ROUNDING)
    assert edge("b", "e") == pytest.approx(edge("e", "b"), abs=ROUNDING)
    assert abs(edge("a", "b") - edge("b", "a")) > 0.1


@pytest.mark.parametrize("n", [200, 1000])
def test_a_logistic_regression_is_as_strict_as_the_linear_one_in_the_other_direction(n):
    parents, differences = np.array([[False, True]]), []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        data = Dataset.from_frame(pd.DataFrame({"y": rng.choice(["no", "yes"], n), "x": rng.normal(size=n)}))
        logistic, linear = (
            make_score(data, score=score).likelihood
            for score in (gd.GeneralizedLinear(), gd.DegenerateGaussian())
        )
        gains = [part.local(0, parents) - part.local(0, ~parents & False) for part in (logistic, linear)]
        differences.append(gains[0] - gains[1])
    assert abs(np.mean(differences)) < 0.1  # nats, of some 3.5 to 4 that an edge between noise costs


def test_two_numbers_that_cause_a_level_are_found_as_its_causes():
    rng = np.random.default_rng(0)
    x, z = rng.normal(size=(2, 500))
    y = np.where(rng.logistic(size=500) < 1.5 * x - 1.5 * z, "yes", "no")
    p = gd.fit(pd.DataFrame({"x": x, "z": z, "y": y}), score="generalized-linear").edge_probabilities()
    assert min(p.loc["x", "y"], p.loc["z", "y"]) > 0.95
    assert p.loc["x", "z"] + p.loc["z", "x"] < 0.1
