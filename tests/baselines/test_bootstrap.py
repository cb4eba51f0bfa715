"""Bootstrapped GES and PC: problems with a known class, conflicts, knowledge, failures, processes."""

from __future__ import annotations

import sys
from functools import partial

import numpy as np
import pandas as pd
import pytest

import gflowdag as gd
from gflowdag.baselines import bootstrap
from gflowdag.baselines.causal_learn import edge_matrix
from gflowdag.data import Knowledge
from gflowdag.errors import DataError, GFlowDAGError, KnowledgeError, MissingExtraError
from gflowdag.graph.closure import is_acyclic
from gflowdag.graph.equivalence import class_members, cpdag

NONE = np.zeros((4, 4), bool)


@pytest.fixture(scope="module")
def collider() -> pd.DataFrame:
    """a -> c <- b and c -> d, strong and with many rows: every direction is identified."""
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 500))
    c = a + b + 0.5 * rng.normal(size=500)
    return pd.DataFrame({"a": a, "b": b, "c": c, "d": c + 0.5 * rng.normal(size=500)})


def truth() -> np.ndarray:
    graph = NONE.copy()
    graph[0, 2] = graph[1, 2] = graph[2, 3] = True
    return graph


def needs_no_extra_or_has_it(estimator: type) -> None:
    """PC is causal-learn's; GES is ours."""
    if estimator is gd.BootstrapPC:
        pytest.importorskip("causallearn")


@pytest.mark.parametrize("estimator", [gd.BootstrapGES, gd.BootstrapPC])
def test_an_identified_graph_is_found_in_most_resamples(estimator, collider):
    needs_no_extra_or_has_it(estimator)
    options = {"num_bootstraps": 8, "num_samples": 40, "random_state": 0, "n_jobs": 1}
    posterior = estimator(**options).fit(collider).posterior_
    assert (posterior.edge_probabilities().to_numpy()[truth()] > 0.6).all()
    assert is_acyclic(posterior.samples).all()
    diagnostics = posterior.diagnostics()
    assert diagnostics["verdict"] == "unverified"
    assert (diagnostics["num_bootstraps"], diagnostics["num_failures"]) == (8, 0)
    again = estimator(**options).fit(collider).posterior_
    np.testing.assert_array_equal(posterior.samples, again.samples)


@pytest.mark.parametrize("estimator", [gd.BootstrapGES, gd.BootstrapPC])
def test_an_exact_run_and_a_parallel_bootstrap_share_one_process(estimator, collider):
    needs_no_extra_or_has_it(estimator)
    gd.ExactPosterior(random_state=0).fit(collider)  # numba's threads are up from here on
    options = {"num_bootstraps": 4, "num_samples": 8, "random_state": 1}
    parallel = estimator(n_jobs=2, **options).fit(collider).posterior_
    serial = estimator(n_jobs=1, **options).fit(collider).posterior_
    np.testing.assert_array_equal(parallel.samples, serial.samples)


@pytest.mark.parametrize("estimator", [gd.BootstrapGES, gd.BootstrapPC])
def test_discrete_tables_are_searched_with_discrete_scores(estimator):
    needs_no_extra_or_has_it(estimator)
    rng = np.random.default_rng(2)
    a, b = rng.integers(2, size=(2, 400))
    c = np.where(rng.random(400) < 0.9, a | b, rng.integers(2, size=400))
    frame = pd.DataFrame({"a": a, "b": b, "c": c}).astype("category")
    posterior = estimator(num_bootstraps=4, num_samples=20, random_state=0, n_jobs=1).fit(frame).posterior_
    p = posterior.edge_probabilities()
    assert p.loc["a", "c"] > 0.6
    assert p.loc["b", "c"] > 0.6


def test_pc_keeps_knowledge_in_every_graph(collider):
    pytest.importorskip("causallearn")
    knowledge = Knowledge(required=[("a", "b"), ("d", "c")], forbidden=[("a", "c")])
    options = {"num_bootstraps": 4, "num_samples": 20, "random_state": 0, "n_jobs": 1}
    samples = gd.BootstrapPC(knowledge=knowledge, **options).fit(collider).posterior_.samples
    assert samples[:, 0, 1].all()
    assert samples[:, 3, 2].all()
    assert not samples[:, 0, 2].any()
    assert is_acyclic(samples).all()


def test_what_a_search_cannot_use_is_refused(collider):
    with pytest.raises(KnowledgeError, match="cannot use required or forbidden edges"):
        gd.BootstrapGES(knowledge=Knowledge(required=[("a", "c")])).fit(collider)
    frame = collider.assign(target=["c"] + [None] * 499)
    for estimator in (gd.BootstrapGES, gd.BootstrapPC):
        with pytest.raises(DataError, match="interventional"):
            estimator().fit(frame, interventions="target")


@pytest.mark.parametrize(
    ("estimator", "option", "value"),
    [
        (gd.BootstrapGES, "penalty", np.nan),
        (gd.BootstrapGES, "penalty", np.inf),
        (gd.BootstrapGES, "penalty", -1),
        (gd.BootstrapGES, "penalty", "1"),
        (gd.BootstrapGES, "num_bootstraps", 2.5),
        (gd.BootstrapGES, "num_samples", "10"),
        (gd.BootstrapPC, "alpha", "0.05"),
        (gd.BootstrapPC, "alpha", np.nan),
    ],
)
def test_options_out_of_range_are_refused_by_name(estimator, option, value, collider):
    with pytest.raises(GFlowDAGError, match=f"{option} .*got {value!r}"):
        estimator(n_jobs=1, **{option: value}).fit(collider)


def test_a_limit_that_no_graph_keeps_comes_with_remedies(collider):
    pytest.importorskip("causallearn")
    estimator = gd.BootstrapPC(num_bootstraps=2, n_jobs=1, knowledge=Knowledge(max_parents=0))
    with pytest.raises(
        GFlowDAGError, match=r"more than 0 parents somewhere: raise max_parents, .*lower alpha"
    ):
        estimator.fit(collider)


def test_members_of_a_class_are_drawn_uniformly():
    chain = np.zeros((4, 4), bool)
    chain[0, 1] = chain[1, 2] = chain[2, 3] = True
    graph = cpdag(chain)
    rng = np.random.default_rng(3)
    drawn = np.array([bootstrap.draw_dag(graph, NONE, np.eye(4, dtype=bool), rng).dag for _ in range(2000)])
    members = class_members(graph)
    counts = (drawn[:, None] == members).all((2, 3)).sum(0)
    # Four members, 500 expected each, standard deviation 19.
    assert counts.sum() == 2000
    assert np.abs(counts - 500).max() < 80


def test_conflicts_are_forced_into_a_dag_with_the_same_skeleton():
    cycle = np.roll(np.eye(4, dtype=bool), 1, axis=1)  # directed cycle of four: no DAG extends it
    required = NONE.copy()
    required[3, 2] = True
    for knowledge, skeleton in ((NONE, cycle), (required, cycle)):
        forbidden = np.eye(4, dtype=bool) | knowledge.T
        orientation = bootstrap.draw_dag(cycle, knowledge, forbidden, np.random.default_rng(4))
        assert is_acyclic(orientation.dag)
        np.testing.assert_array_equal(orientation.dag | orientation.dag.T, skeleton | skeleton.T)
        assert orientation.dag[knowledge].all()
    assert bootstrap.draw_dag(cycle, NONE, np.eye(4, dtype=bool), np.random.default_rng(4)).is_forced


def unlucky(values: np.ndarray, threshold: float) -> np.ndarray:
    if values[0, 0] > threshold:
        raise np.linalg.LinAlgError("singular")
    return np.zeros((values.shape[1],) * 2, bool)


def test_failures_are_counted_and_say_why():
    values = np.arange(10.0)[:, None]
    found = bootstrap.run(partial(unlucky, threshold=4.5), values, num_bootstraps=30, seed=0, n_jobs=1)
    assert len(found.graphs) + len(found.failures) == 30
    assert 5 < len(found.failures) < 25
    assert set(found.failures) == {"LinAlgError: singular"}


def test_end_marks_are_read_as_documented():
    marks = np.array([[0, -1, -1], [1, 0, 1], [-1, 1, 0]])  # 0 -> 1, 0 -- 2, 1 <-> 2
    expected = np.array([[0, 1, 1], [0, 0, 1], [1, 1, 0]], bool)
    np.testing.assert_array_equal(edge_matrix(marks), expected)


def test_a_missing_package_names_the_pip_command(collider, monkeypatch):
    monkeypatch.setitem(sys.modules, "causallearn", None)
    for name in [name for name in sys.modules if name.startswith("causallearn.")]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(MissingExtraError, match=r'pip install "gflowdag\[baselines\]"'):
        gd.BootstrapPC(num_bootstraps=2).fit(collider)
    gd.BootstrapGES(num_bootstraps=2, num_samples=2, n_jobs=1).fit(collider)  # does without


@pytest.mark.parametrize(
    ("name", "score"),
    [("generalized-linear", gd.GeneralizedLinear()), ("degenerate-gaussian", gd.DegenerateGaussian())],
)
@pytest.mark.parametrize("kind", ["continuous", "discrete"])
def test_ges_uses_a_score_that_is_named_whatever_the_kind_of_the_columns(name, score, kind):
    values = np.random.default_rng(0).integers(0, 2, size=(60, 3)).cumsum(axis=1).astype(float)
    data = gd.Dataset.from_array(values, kinds=kind)
    options = {"num_bootstraps": 4, "num_samples": 8, "random_state": 0, "n_jobs": 1}
    named = gd.BootstrapGES(score=name, **options).fit(data).posterior_
    given = gd.BootstrapGES(score=score, **options).fit(data).posterior_
    np.testing.assert_array_equal(named.samples, given.samples)
    assert named.diagnosis.uses_prior is None  # unlike the BIC or BDeu that it takes in place of others
