"""Conditional and degenerate Gaussian scores: against predictive densities, row by row, and each other."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import multivariate_t

import gflowdag as gd
from gflowdag.data import Dataset, Knowledge
from gflowdag.errors import KnowledgeError, ScoreError
from gflowdag.graph.bits import expand
from gflowdag.graph.enumeration import all_dags
from gflowdag.graph.equivalence import class_keys
from gflowdag.score import make_score
from gflowdag.score.degenerate_gaussian import contrasts
from gflowdag.score.generalized_linear import GeneralizedLinearLikelihood

ROUNDING = 1e-9  # scores of hundreds of nats, sums of some hundred rounded terms
SCORES = {  # one equivalent sample size and no limit, for tables of few rows
    "conditional-gaussian": gd.ConditionalGaussian(ess=1.0, cells_per_row=None),
    "degenerate-gaussian": gd.DegenerateGaussian(),
}
NAMES = list(SCORES)
KINDS = {"a": "discrete", "b": "continuous", "c": "discrete", "e": "continuous"}


def mixed_frame(n=40, seed=0):
    """a (3 levels) → b, c; b → e and c → e: levels and numbers that depend on each other."""
    rng = np.random.default_rng(seed)
    a = rng.integers(3, size=n)
    c = np.where(rng.random(n) < 0.7, a % 2, rng.integers(2, size=n))
    b = rng.normal(size=n) + 0.8 * a
    e = rng.normal(size=n) + np.where(c == 1, 0.9, -0.5) * b
    return pd.DataFrame({"a": a, "b": b, "c": c, "e": e})


def mixed(n=40, seed=0, *, interventions=False):
    mask = np.zeros((n, 4), bool)
    mask[: n // 4, 1] = True
    mask[n // 4 : n // 3, 2] = True
    return Dataset.from_frame(
        mixed_frame(n, seed), kinds=KINDS, interventions=mask if interventions else None
    )


def parent_sets(d, node):
    masks = expand(np.arange(1 << (d - 1)), node)
    return (masks[:, None] >> np.arange(d) & 1).astype(bool)


class GaussianPredictive:
    """Student-t predictive densities of a normal-Wishart prior, one row after the other."""

    def __init__(self, d, size, alpha_mu=1.0):
        alpha_w = d + 2
        self.mean, self.strength = np.zeros(size), alpha_mu
        self.scale = alpha_mu * (alpha_w - d - 1) / (alpha_mu + 1) * np.eye(size)
        self.degrees = alpha_w - d + 1.0

    def log_density(self, row):
        if not len(row):
            return 0.0
        shape = self.scale * (self.strength + 1) / (self.strength * self.degrees)
        return multivariate_t.logpdf(row, self.mean, shape, df=self.degrees)

    def learn(self, row):
        deviation = row - self.mean
        self.scale = self.scale + self.strength / (self.strength + 1) * np.outer(deviation, deviation)
        self.mean = self.mean + deviation / (self.strength + 1)
        self.strength, self.degrees = self.strength + 1, self.degrees + 1


def gaussian_by_rows(values, d):
    predictive, total = GaussianPredictive(d, values.shape[1]), 0.0
    for row in values:
        total += predictive.log_density(row)
        predictive.learn(row)
    return total


def conditional_gaussian_by_rows(data, node, parents, ess=1.0):
    """`Σ_rows log p(x_j | x_Pa, earlier rows)`, each a predictive probability or density."""
    kept = np.ones(data.num_rows, bool) if data.intervened is None else ~data.intervened[:, node]
    is_discrete = np.array(data.kinds) == "discrete"
    discrete, continuous = parents & is_discrete, np.flatnonzero(parents & ~is_discrete)
    num_continuous = int((~is_discrete).sum())
    q, r = np.prod(data.cardinalities[discrete], dtype=float), data.cardinalities[node]
    total, counts, cells = 0.0, {}, {}
    for row in data.values[kept]:
        cell = tuple(row[discrete])
        if is_discrete[node]:
            seen, same = counts.get(cell, 0), counts.get((*cell, "level", row[node]), 0)
            total += np.log((same + ess / (q * r)) / (seen + ess / q))
            counts[cell], counts[(*cell, "level", row[node])] = seen + 1, same + 1
            continue
        family = np.append(continuous, node)
        if cell not in cells:
            cells[cell] = [GaussianPredictive(num_continuous, len(set_)) for set_ in (continuous, family)]
        without, with_node = cells[cell]
        total += with_node.log_density(row[family]) - without.log_density(row[continuous])
        without.learn(row[continuous])
        with_node.learn(row[family])
    return total


def degenerate_gaussian_by_rows(data, node, parents):
    kept = np.ones(data.num_rows, bool) if data.intervened is None else ~data.intervened[:, node]
    blocks = [
        contrasts(column) if kind == "discrete" else column[:, None]
        for column, kind in zip(data.values.T, data.kinds, strict=True)
    ]
    d = sum(block.shape[1] for block in blocks)
    members = [int(i) for i in np.flatnonzero(parents)]
    family = np.concatenate([blocks[i][kept] for i in [*members, node]], axis=1)
    given = np.concatenate([blocks[i][kept] for i in members], axis=1) if members else family[:, :0]
    return gaussian_by_rows(family, d) - gaussian_by_rows(given, d)


BY_ROWS = {
    "conditional-gaussian": conditional_gaussian_by_rows,
    "degenerate-gaussian": degenerate_gaussian_by_rows,
}


@pytest.mark.parametrize("interventions", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_local_scores_are_products_of_predictive_densities(name, interventions):
    data = mixed(interventions=interventions)
    score = make_score(data, score=SCORES[name], prior="uniform")
    table = score.dense_table()
    for node in range(4):
        parents = parent_sets(4, node)
        for entry, row in enumerate(parents):
            if not score.allows(node, row[None])[0]:
                assert table[node, entry] == -np.inf
                continue
            expected = BY_ROWS[name](data, node, row)
            assert table[node, entry] == pytest.approx(expected, abs=ROUNDING)
            assert score.local(node, row[None])[0] == pytest.approx(expected, abs=ROUNDING)


@pytest.mark.parametrize("interventions", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_tables_subsets_and_single_edges_agree(name, interventions):
    likelihood = make_score(mixed(interventions=interventions), score=SCORES[name]).likelihood
    tables = likelihood.tables()
    for node in range(4):
        others = np.delete(np.arange(4), node)
        parents = parent_sets(4, node)
        local = likelihood.local(node, parents)
        np.testing.assert_allclose(tables[node], local, atol=ROUNDING)
        np.testing.assert_allclose(likelihood.local_subsets(node, others), local, atol=ROUNDING)
        turned = others[[2, 0, 1]]  # bits that do not follow the columns
        sets = np.zeros((8, 4), bool)
        sets[:, turned] = np.arange(8)[:, None] >> np.arange(3) & 1
        np.testing.assert_allclose(
            likelihood.local_subsets(node, turned), likelihood.local(node, sets), atol=ROUNDING
        )
        extended = likelihood.extended_local(node, parents)
        for parent in others:
            addable = ~parents[:, parent]
            larger = parents[addable]
            larger[:, parent] = True
            np.testing.assert_allclose(
                extended[addable, parent], likelihood.local(node, larger), atol=ROUNDING
            )


def scores_by_class(score):
    """Log scores of all graphs over four variables, their largest difference in a class, and the classes."""
    graphs = all_dags(4)
    scores = score.log_score(graphs)
    keys = pd.Series(class_keys(graphs))
    grouped = pd.Series(scores).groupby(keys)
    return scores, float((grouped.max() - grouped.min()).max()), keys


def test_degenerate_gaussian_scores_equivalent_graphs_alike():
    _, spread, _ = scores_by_class(make_score(mixed(), score=SCORES["degenerate-gaussian"], prior="uniform"))
    assert spread < ROUNDING


def test_conditional_gaussian_scores_the_allowed_members_of_a_class_alike_and_only_those():
    scores, spread, keys = scores_by_class(
        make_score(mixed(), score=SCORES["conditional-gaussian"], prior="uniform")
    )
    assert spread == np.inf  # some members of a class are forbidden, others are not
    finite = np.isfinite(scores)
    allowed = pd.Series(scores[finite]).groupby(keys[finite].to_numpy())
    assert float((allowed.max() - allowed.min()).max()) < ROUNDING
    assert (allowed.size() > 1).sum() > 10


def test_what_conditional_gaussian_forbids_would_be_no_likelihood():
    """The difference of two `M` for a discrete node with a continuous parent does not sum to one."""
    frame = mixed_frame(30)

    def probabilities(parents):
        logs = []
        for level in range(3):
            changed = frame.copy()
            changed.loc[29, "a"] = level
            data = Dataset.from_frame(changed, kinds=KINDS, standardize=False)
            before = data.take(np.arange(29))
            logs.append(
                make_score(data, score=SCORES["conditional-gaussian"]).likelihood.local(0, parents)[0]
                - make_score(before, score=SCORES["conditional-gaussian"]).likelihood.local(0, parents)[0]
            )
        return np.exp(logs).sum()

    assert probabilities(np.array([[False, False, True, False]])) == pytest.approx(1, abs=1e-9)
    assert abs(probabilities(np.array([[False, True, False, False]])) - 1) > 0.01


@pytest.mark.parametrize("name", NAMES)
def test_the_order_of_the_levels_does_not_matter(name):
    frame = mixed_frame()
    first = make_score(Dataset.from_frame(frame, kinds=KINDS), score=SCORES[name]).dense_table()
    frame["a"] = frame["a"].map({0: 2, 1: 0, 2: 1})
    second = make_score(Dataset.from_frame(frame, kinds=KINDS), score=SCORES[name]).dense_table()
    np.testing.assert_allclose(first, second, atol=ROUNDING)


def test_degenerate_gaussian_does_not_depend_on_which_contrasts_are_taken(monkeypatch):
    from gflowdag.score import degenerate_gaussian

    data = mixed()
    first = make_score(data, score=SCORES["degenerate-gaussian"]).dense_table()
    turn = np.linalg.qr(np.random.default_rng(1).normal(size=(2, 2)))[0]

    def turned(codes):
        columns = contrasts(codes)
        return columns @ turn if columns.shape[1] == 2 else -columns

    monkeypatch.setattr(degenerate_gaussian, "contrasts", turned)
    second = make_score(data, score=SCORES["degenerate-gaussian"]).dense_table()
    np.testing.assert_allclose(first, second, atol=ROUNDING)


def test_tables_of_one_kind_score_as_bge_and_bdeu_do():
    frame = mixed_frame()
    continuous = Dataset.from_frame(frame[["b", "e"]])
    discrete = Dataset.from_frame(frame[["a", "c"]])
    for name in NAMES:
        np.testing.assert_allclose(
            make_score(continuous, score=SCORES[name]).dense_table(),
            make_score(continuous).dense_table(),
            atol=ROUNDING,
        )
    np.testing.assert_allclose(
        make_score(discrete, score="conditional-gaussian").dense_table(),
        make_score(discrete, score=gd.BDeu(edge_factor=1)).dense_table(),
        atol=ROUNDING,
    )


def test_a_level_that_never_occurs_changes_no_degenerate_score():
    frame = mixed_frame()
    first = make_score(
        Dataset.from_frame(frame, kinds=KINDS), score=SCORES["degenerate-gaussian"]
    ).dense_table()
    frame["a"] = pd.Categorical(frame["a"], categories=[0, 1, 2, 3])
    second = make_score(
        Dataset.from_frame(frame, kinds=KINDS), score=SCORES["degenerate-gaussian"]
    ).dense_table()
    np.testing.assert_allclose(first, second, atol=ROUNDING)


def test_auto_takes_the_generalised_linear_score_for_a_mixed_table():
    assert isinstance(make_score(mixed()).likelihood, GeneralizedLinearLikelihood)
    for name, needed in (("bge", "continuous"), ("bde", "discrete")):
        with pytest.raises(ScoreError, match=f"needs {needed} columns"):
            make_score(mixed(), score=name)


def test_a_required_edge_that_the_score_cannot_express_is_an_error():
    knowledge = Knowledge(required=[("b", "a")])
    with pytest.raises(KnowledgeError, match=r"b → a is required.*generalized-linear"):
        make_score(mixed(), score=gd.ConditionalGaussian(), knowledge=knowledge)
    assert make_score(mixed(), score=gd.DegenerateGaussian(), knowledge=knowledge).constraints.required.any()


def test_columns_that_rounding_would_decide_are_refused():
    frame = mixed_frame()
    frame["b"] += 1e9
    data = Dataset.from_frame(frame, kinds=KINDS, standardize=False)
    for name in NAMES:
        with pytest.raises(ScoreError, match=r"Column 'b'.*Standardise"):
            make_score(data, score=SCORES[name])


@pytest.mark.parametrize("score", [gd.ConditionalGaussian(ess=2.0), gd.DegenerateGaussian(alpha_mu=0.5)])
def test_samplers_agree_with_the_exact_posterior(score):
    frame = mixed_frame(200).astype({"a": str, "c": str})
    options = {"score": score, "random_state": 0}
    exact = gd.ExactPosterior(**options).fit(frame).posterior_.edge_probabilities()
    chains = (
        gd.OrderMCMC(**options, num_samples=4000, num_chains=16, iterations=400),
        gd.MC3(**options, num_samples=4000, num_chains=32, burn_in=2000, num_steps=10_000, thinning=40),
    )
    for method in chains:
        found = method.fit(frame).posterior_.edge_probabilities()
        # Four thousand draws: a standard error of at most 0.008 if they were independent; chains are not.
        np.testing.assert_allclose(found, exact, atol=0.06)
