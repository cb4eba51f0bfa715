"""BGe and BDeu against direct formulas, published values and score equivalence."""

from __future__ import annotations

import time

import numpy as np
import pandas as pd
import pytest
from score_problems import continuous, discrete, plain_score, random_dags
from slow_scores import slow_bdeu, slow_bge

from gflowdag.data import Dataset, Knowledge
from gflowdag.data.catalog import load_dataset
from gflowdag.errors import KnowledgeError, ScoreError, TooLargeError
from gflowdag.graph.bits import compress, expand, parent_masks
from gflowdag.graph.equivalence import class_members, cpdag
from gflowdag.score import table_memory

# Scores of hundreds of nats, sums of a dozen rounded terms: 1e-9 leaves a wide margin.
ROUNDING = 1e-9


def all_parent_sets(d, node):
    masks = expand(np.arange(1 << (d - 1)), node)
    return (masks[:, None] >> np.arange(d) & 1).astype(bool)


def slow_local(data, node, parents):
    kept = None if data.intervened is None else ~data.intervened[:, node]
    members = [int(p) for p in np.flatnonzero(parents)]
    if data.is_continuous:
        return slow_bge(data.values, node, members, kept=kept)
    return slow_bdeu(data.values, data.cardinalities, node, members, kept=kept)


@pytest.mark.parametrize("make_data", [continuous, discrete])
@pytest.mark.parametrize("interventions", [False, True])
def test_local_scores_and_tables_agree_with_the_direct_formula(make_data, interventions):
    data = make_data(interventions=interventions)
    score = plain_score(data)
    table = score.dense_table()
    for node in range(5):
        parents = all_parent_sets(5, node)
        expected = [slow_local(data, node, row) for row in parents]
        np.testing.assert_allclose(score.local(node, parents), expected, atol=ROUNDING)
        np.testing.assert_allclose(table[node], expected, atol=ROUNDING)


def test_rows_in_which_a_node_was_set_are_left_out_of_its_score_only():
    data = continuous(interventions=True)
    everything = plain_score(continuous())
    score = plain_score(data)
    parents = all_parent_sets(5, 1)
    without = plain_score(Dataset(data.columns, data.values[~data.intervened[:, 1]]))
    np.testing.assert_allclose(score.local(1, parents), without.local(1, parents), atol=ROUNDING)
    np.testing.assert_allclose(
        score.local(4, all_parent_sets(5, 4)), everything.local(4, all_parent_sets(5, 4)), atol=ROUNDING
    )
    assert everything.score_equivalent
    assert not score.score_equivalent


@pytest.mark.parametrize("make_data", [continuous, discrete])
def test_a_node_that_was_set_in_every_row_scores_zero_with_any_parents(make_data):
    data = make_data()
    intervened = np.zeros(data.values.shape, bool)
    intervened[:, 2] = True
    score = plain_score(Dataset(data.columns, data.values, intervened))
    np.testing.assert_allclose(score.local(2, all_parent_sets(5, 2)), 0.0, atol=ROUNDING)


@pytest.mark.parametrize("make_data", [continuous, discrete])
def test_members_of_an_equivalence_class_score_alike(make_data):
    score = plain_score(make_data(d=6, n=200))
    classes_with_choice = 0
    for graph in random_dags(6, 20, seed=3):
        scores = score.log_likelihood(class_members(cpdag(graph)))
        classes_with_choice += len(scores) > 1
        np.testing.assert_allclose(scores, score.log_likelihood(graph[None])[0], atol=ROUNDING)
    assert classes_with_choice > 5


@pytest.mark.parametrize(
    ("name", "empty", "consensus", "best"),
    [
        ("sachs", -13392.9954, -10768.6607, -10716.1216),
        ("sachs-interventional", -45955.0880, -34507.9797, -31696.9380),
    ],
)
def test_published_scores_of_the_sachs_data(name, empty, consensus, best, request):
    if name == "sachs-interventional":
        request.getfixturevalue("data_folder")
    loaded = load_dataset(name)
    data = loaded.dataset(kinds="continuous" if name == "sachs" else "discrete")
    score = plain_score(data)
    truth = loaded.truth.loc[list(score.names), list(score.names)].to_numpy(bool)
    # The published values have four decimals.
    np.testing.assert_allclose(
        score.log_score(np.stack([np.zeros_like(truth), truth])), [empty, consensus], atol=1e-4
    )
    assert best_score(score.dense_table()) == pytest.approx(best, abs=1e-4)


def best_score(table):
    """The best DAG by dynamic programming over sinks (Silander & Myllymäki 2006)."""
    d = len(table)
    best_parents = table.copy()
    for bit in range(d - 1):
        split = best_parents.reshape(d, -1, 2, 1 << bit)
        np.maximum(split[:, :, 1], split[:, :, 0], out=split[:, :, 1])
    best = np.zeros(1 << d)
    for subset in range(1, 1 << d):
        sinks = [node for node in range(d) if subset >> node & 1]
        best[subset] = max(
            best[subset & ~(1 << sink)] + best_parents[sink, compress(subset & ~(1 << sink), sink)]
            for sink in sinks
        )
    return best[-1]


@pytest.mark.parametrize("make_data", [continuous, discrete])
def test_graph_scores_are_sums_of_table_entries(make_data):
    score = plain_score(make_data(interventions=True), prior="fair")
    table = score.dense_table()
    graphs = random_dags(5, 30)
    masks = parent_masks(graphs)
    nodes = np.arange(5)
    expected = table[nodes, compress(masks, nodes)].sum(axis=1)
    np.testing.assert_allclose(score.log_score(graphs), expected, atol=ROUNDING)
    np.testing.assert_allclose(
        score.log_likelihood(graphs) + score.log_prior(graphs), expected, atol=ROUNDING
    )


def test_knowledge_forbids_parent_sets_in_every_form_of_the_score():
    data = continuous()
    knowledge = Knowledge(required=[("X1", "X2")], forbidden=[("X3", "X2"), ("X5", "X4")], max_parents=2)
    score = plain_score(data, knowledge=knowledge)
    free = plain_score(data)
    for node in range(5):
        parents = all_parent_sets(5, node)
        allowed = parents.sum(axis=1) <= 2
        if node == 1:
            allowed &= parents[:, 0] & ~parents[:, 2]
        if node == 3:
            allowed &= ~parents[:, 4]
        if node == 0:
            allowed &= ~parents[:, 1]  # would close a cycle with the required edge
        expected = np.where(allowed, free.local(node, parents), -np.inf)
        np.testing.assert_allclose(score.local(node, parents), expected, atol=ROUNDING)
        np.testing.assert_allclose(score.dense_table()[node], expected, atol=ROUNDING)
    empty = np.zeros((1, 5, 5), bool)
    assert score.log_score(empty)[0] == -np.inf
    assert np.isfinite(score.log_likelihood(empty)[0])
    assert np.isfinite(score.unconstrained_table()).all()


@pytest.mark.parametrize("make_data", [continuous, discrete])
def test_one_more_parent_scores_like_the_larger_set(make_data):
    knowledge = Knowledge(required=[("X1", "X2")], forbidden=[("X3", "X2")], max_parents=3)
    score = plain_score(make_data(interventions=True), prior="edge", knowledge=knowledge)
    for node in range(5):
        parents = all_parent_sets(5, node)
        extended = score.extended_local(node, parents)
        for parent in range(5):
            larger = parents.copy()
            larger[:, parent] = True
            meaningless = parents[:, parent] | (parent == node)
            larger[meaningless] = False
            expected = np.where(meaningless, -np.inf, score.local(node, larger))
            np.testing.assert_allclose(extended[:, parent], expected, atol=ROUNDING)


def test_hyper_parameters_reach_the_formula():
    data = continuous()
    score = plain_score(data, alpha_mu=2.5, alpha_w=11.0)
    expected = slow_bge(data.values, 2, [0, 4], alpha_mu=2.5, alpha_w=11.0)
    assert score.local(2, [[True, False, False, False, True]])[0] == pytest.approx(expected, abs=ROUNDING)
    codes = discrete()
    expected = slow_bdeu(codes.values, codes.cardinalities, 2, [0, 4], ess=7.0)
    assert plain_score(codes, ess=7.0).local(2, [[True, False, False, False, True]])[0] == pytest.approx(
        expected, abs=ROUNDING
    )
    shifted = Dataset.from_array(data.values + 3.0, standardize=False)
    np.testing.assert_allclose(
        plain_score(shifted, prior_mean=3.0).dense_table(), plain_score(data).dense_table(), atol=1e-6
    )  # 1e-6: the shifted values lose digits


@pytest.mark.parametrize(
    ("make_data", "name", "value"),
    [
        (continuous, "alpha_mu", np.inf),
        (continuous, "alpha_w", np.inf),
        (continuous, "scale", "1"),
        (continuous, "scale", np.nan),
        (continuous, "prior_mean", np.nan),
        (continuous, "prior_mean", [1.0, 2.0]),
        (continuous, "prior_mean", "zero"),
        (discrete, "ess", np.inf),
        (discrete, "ess", 0),
    ],
)
def test_hyper_parameters_out_of_range_are_refused_by_name(make_data, name, value):
    with pytest.raises(ScoreError, match=f"{name} .*must be|{name} must be"):
        plain_score(make_data(), **{name: value})


def test_raw_columns_far_from_the_prior_mean_are_right_or_refused():
    values = continuous().values
    pair = [[True, False, True, False, False]]
    for offset in (0.0, 1e6):
        shifted = np.asarray(values + offset)
        score = plain_score(Dataset.from_array(shifted, standardize=False))
        difference = score.local(1, pair)[0] - slow_bge(shifted, 1, [0, 2])
        assert abs(difference) < 0.01  # what BGe promises, see MAX_ROUNDING
    far = Dataset.from_array(values + 1e9, names=list("abcde"), standardize=False)
    with pytest.raises(
        ScoreError, match=r"Column '[a-e]' lies 1e\+09 from the prior mean.*Standardise the table"
    ):
        plain_score(far)
    assert np.isfinite(plain_score(far, prior_mean=1e9).dense_table()).all()


@pytest.mark.parametrize("offset", [1e3, 1e5, 1e6, 3e6, 1e7])
@pytest.mark.parametrize("noise", [0.01, 0.1, 1.0])
def test_what_collinear_columns_leave_of_each_other_is_right_or_refused(noise, offset):
    rng = np.random.default_rng(0)
    x = rng.normal(size=500)
    values = np.stack([x, x + noise * rng.normal(size=500)], axis=1) + offset
    try:
        score = plain_score(Dataset.from_array(values, standardize=False))
    except ScoreError:
        assert offset > 1e5  # errors of 0.01 and more were seen from 10⁶ on
        return
    assert abs(score.local(1, [[True, False]])[0] - slow_bge(values, 1, [0])) < 0.01


def test_a_column_far_away_does_not_spoil_the_others():
    rng = np.random.default_rng(0)
    values = np.stack([rng.normal(1e7, 1e7, 500), rng.normal(0.5, 0.1, 500), rng.normal(size=500)], axis=1)
    score = plain_score(Dataset.from_array(values, standardize=False))
    assert abs(score.local(1, [[True, False, True]])[0] - slow_bge(values, 1, [0, 2])) < 1e-6


def test_fewer_rows_than_columns_are_scored_or_refused():
    values = np.random.default_rng(0).normal(size=(4, 6))
    assert np.isfinite(plain_score(Dataset.from_array(values, standardize=False)).dense_table()).all()
    for deviation in (1e8, 1e12):  # three parents leave nothing but `t`, which is lost in rounding
        with pytest.raises(ScoreError, match="would be rounding error"):
            plain_score(Dataset.from_array(deviation * values, standardize=False))


def test_each_group_of_intervened_rows_is_right_or_refused():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(400, 2)) + 1e8
    values[:200] = rng.normal(size=(200, 2)) * 1e8  # a wide range hides the location of the other rows
    is_set = np.zeros((400, 2), bool)
    is_set[:200, 0] = True
    with pytest.raises(ScoreError, match="from the prior mean"):
        plain_score(Dataset.from_array(values, standardize=False, interventions=is_set))


def test_nearly_collinear_columns_stay_finite_and_ordered():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(1000, 6)) * 1e4
    values[:, 5] = values[:, :5].sum(axis=1) + 1e-3 * rng.normal(size=1000)
    table = plain_score(Dataset.from_array(values, standardize=False)).dense_table()
    assert np.isfinite(table).all()
    # Five causes explain the sum, four leave a residual of 1e4: about 1000 log 1e4 ≈ 9000 nats.
    assert table[5, 31] - table[5, 15] > 8000


def test_many_levels_do_not_need_a_contingency_table_of_all_cells():
    rng = np.random.default_rng(0)
    codes = rng.integers(30, size=(300, 12))
    data = Dataset.from_array(codes, kinds="discrete")
    parents = np.zeros((1, 12), bool)
    parents[0, 1:] = True  # 30^11 parent configurations
    expected = slow_bdeu(data.values, data.cardinalities, 0, list(range(1, 12)))
    assert plain_score(data).local(0, parents)[0] == pytest.approx(expected, abs=1e-7)  # thousands of nats


def test_dense_tables_are_fast(data_folder):
    """Bars: d = 16 BGe and interventional Sachs BDeu in 5 s of computing each; measured: a tenth of one."""
    sachs = plain_score(load_dataset("sachs-interventional").dataset(kinds="discrete"))
    wide = plain_score(continuous(d=16, n=100))
    plain_score(continuous(d=3)).dense_table()
    plain_score(discrete(d=3)).dense_table()
    for score in (sachs, wide):
        begin = time.process_time()
        score.dense_table()
        assert time.process_time() - begin < 5.0


def test_tables_beyond_the_memory_limit_are_refused_and_the_limit_can_be_raised():
    score = plain_score(continuous(d=8))
    with pytest.raises(TooLargeError, match="memory_limit"):
        score.dense_table(memory_limit=table_memory(8) - 1)
    assert score.dense_table(memory_limit=table_memory(8)).shape == (8, 128)
    assert table_memory(20) < 2**28  # d = 20 is far below the default limit


def test_misfits_between_data_and_score_are_refused_with_the_remedy():
    with pytest.raises(ScoreError, match="discretize"):
        plain_score(continuous(), score="bde")
    with pytest.raises(ScoreError, match="'bdeu'"):
        plain_score(discrete(), score="bge")
    with pytest.raises(ScoreError, match="no score"):
        plain_score(continuous(), score="bic")
    with pytest.raises(ScoreError, match="no parameter"):
        plain_score(continuous(), ess=1.0)
    with pytest.raises(ScoreError, match="alpha_w"):
        plain_score(continuous(), alpha_w=4.0)
    with pytest.raises(ScoreError, match="ess"):
        plain_score(discrete(), ess=0.0)


def test_knowledge_in_two_places_must_agree():
    frame = pd.DataFrame(continuous().values, columns=list("abcde"))
    carried = Knowledge(forbidden=[("a", "b")])
    data = Dataset.from_frame(frame, knowledge=carried)
    assert plain_score(data).constraints.forbidden[0, 1]
    assert plain_score(data, knowledge=Knowledge(forbidden=[("a", "b")])).constraints.forbidden[0, 1]
    with pytest.raises(KnowledgeError, match="one place"):
        plain_score(data, knowledge=Knowledge(forbidden=[("b", "a")]))
