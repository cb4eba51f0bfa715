"""The exact posterior against brute force, a slow reference, counted DAGs and the Sachs data."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from slow_exact import brute_force, evidence_in_decimals, parent_set_probabilities_by_layers, random_table

from gflowdag.errors import FileFormatError, KnowledgeError, ScoreError, TooLargeError, TrainingError
from gflowdag.exact import Saved, check_size, given_edges, posterior, recurrence
from gflowdag.graph.bits import expand, popcount
from gflowdag.runtime import checkpoints


def tables_with_constraints():
    rng = np.random.default_rng(7)
    for d in (1, 2, 3, 4):
        yield f"plain-{d}", random_table(d, rng)
    for k in range(3):
        yield f"forbidden-{k}", random_table(4, rng, forbidden=0.4)
    yield "scores over 40,000 nats", random_table(4, rng, scale=1e4)
    yield "one node outweighs all", random_table(4, rng) + np.array([[-3e4], [0.0], [2e4], [-1e4]])
    limited = random_table(4, rng)
    limited[:, popcount(np.arange(8)) > 1] = -np.inf
    yield "at most one parent", limited
    required = random_table(4, rng)
    required[2, expand(np.arange(8), 2) & 0b1001 != 0b1001] = -np.inf  # 0 → 2 and 3 → 2
    required[0, expand(np.arange(8), 0) & 0b0010 == 0] = -np.inf  # 1 → 0
    yield "required edges", required


@pytest.mark.parametrize(("_name", "table"), list(tables_with_constraints()))
@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_evidence_and_marginals_equal_brute_force(_name, table, share, monkeypatch):
    monkeypatch.setattr(recurrence, "HIGH_OF_DAGS", share)  # 0: a single block, 1: one for every set
    monkeypatch.setattr(recurrence, "HIGH_OF_COMPLETIONS", share)
    log_evidence, edges, paths, parent_sets = brute_force(table)
    exact = posterior(table)
    # Scores of 1e4 nats carry an absolute rounding of 1e-12 each.
    assert exact.log_evidence == pytest.approx(log_evidence, rel=1e-14, abs=1e-12)
    np.testing.assert_allclose(exact.edge_probabilities, edges, atol=1e-11)
    np.testing.assert_allclose(exact.path_probabilities, paths, atol=1e-11)
    np.testing.assert_allclose(np.exp(exact.parent_set_log_probabilities), parent_sets, atol=1e-11)
    assert np.exp(exact.parent_set_log_probabilities)[np.isneginf(table)].sum() == 0


def test_parent_sets_of_eight_nodes_equal_a_sum_over_root_layers():
    table = random_table(8, np.random.default_rng(3), scale=3.0, penalty=1.0, forbidden=0.1)
    exact = posterior(table)
    expected = parent_set_probabilities_by_layers(table)
    # The reference only adds and multiplies, up to differences of β: twelve digits of the largest entries.
    np.testing.assert_allclose(np.exp(exact.parent_set_log_probabilities), expected, atol=1e-12)
    np.testing.assert_allclose(np.exp(exact.parent_set_log_probabilities).sum(axis=1), 1.0, rtol=1e-12)


def test_small_edge_probabilities_keep_their_digits():
    table = random_table(7, np.random.default_rng(5), scale=1.0, penalty=60.0)
    expected = parent_set_probabilities_by_layers(table)
    got = np.exp(posterior(table).parent_set_log_probabilities)
    single = np.arange(1, 64)[popcount(np.arange(1, 64)) == 1]
    assert expected[:, single].max() < 1e-20
    np.testing.assert_allclose(got[:, single], expected[:, single], rtol=1e-9)


@pytest.mark.parametrize("d", [6, 14])
def test_a_constant_table_counts_the_dags(d):
    count = [1]  # Robinson's recurrence, in whole numbers
    for n in range(1, d + 1):
        count.append(
            sum(
                (-1) ** (k + 1) * math.comb(n, k) * 2 ** (k * (n - k)) * count[n - k] for k in range(1, n + 1)
            )
        )
    exact = posterior(np.zeros((d, 1 << (d - 1))))
    assert exact.log_evidence == pytest.approx(math.log(count[d]), rel=1e-14)
    edges = exact.edge_probabilities[~np.eye(d, dtype=bool)]
    np.testing.assert_allclose(edges, edges[0], rtol=1e-12)  # all edges are alike
    assert exact.discrepancy < 1e-11


def test_the_result_does_not_depend_on_the_number_of_threads(monkeypatch):
    monkeypatch.setattr(recurrence, "_SMALL", 4)
    table = random_table(9, np.random.default_rng(1), scale=20.0)
    one, four = posterior(table, threads=1), posterior(table, threads=4)
    assert one.log_evidence == four.log_evidence
    np.testing.assert_array_equal(one.edge_probabilities, four.edge_probabilities)
    np.testing.assert_array_equal(one.parent_set_log_probabilities, four.parent_set_log_probabilities)


def test_progress_ends_at_its_total():
    calls = []
    posterior(np.zeros((5, 16)), progress=lambda done, total, **_: calls.append((done, total)))
    fractions = [done / total for done, total in calls]
    assert fractions == sorted(fractions)
    assert fractions[-1] == 1.0


def test_a_table_without_any_dag_is_refused():
    table = np.zeros((3, 4))
    table[:, 0] = -np.inf  # every node needs a parent
    with pytest.raises(KnowledgeError, match="no DAG is allowed"):
        posterior(table)
    with pytest.raises(KnowledgeError, match="no DAG is allowed"):
        posterior(np.full((2, 2), -np.inf))


def test_too_many_variables_are_refused_with_their_cost():
    with pytest.raises(TooLargeError, match=r"minutes.*GiB.*max_variables=24"):
        check_size(24, 20)
    with pytest.raises(TooLargeError, match=r"beyond the limit of 4 variables"):
        posterior(np.zeros((5, 16)), max_variables=4)


@pytest.mark.parametrize(
    "bad", [np.zeros((3, 3)), np.zeros(4), np.full((2, 2), np.nan), np.full((2, 2), np.inf)]
)
def test_a_bad_table_is_refused(bad):
    with pytest.raises(ScoreError):
        posterior(bad)


@pytest.mark.long
def test_sixteen_variables_take_less_than_ten_seconds():
    import time

    posterior(np.zeros((4, 8)))  # compile
    table = random_table(16, np.random.default_rng(0), scale=3.0, penalty=2.0)
    started = time.process_time()
    posterior(table)
    assert time.process_time() - started < 10


class _Killed(Exception):
    pass


@pytest.mark.parametrize("recurrence_and_layer", [("after_dags", 2), ("after_completions", 3)])
def test_a_computation_that_was_killed_goes_on_and_gives_the_same_answer(
    recurrence_and_layer, tmp_path, monkeypatch
):
    monkeypatch.setattr(checkpoints, "SECONDS_BETWEEN", 0.0)
    monkeypatch.setattr(checkpoints, "SHARE_OF_TIME", math.inf)
    table = random_table(9, np.random.default_rng(1), scale=20.0)
    name, layer = recurrence_and_layer
    killed, keep = Saved(tmp_path, "this table", 9, resume=False), getattr(Saved, name)

    def keep_and_die(self, state):
        keep(self, state)
        if state.layers == layer:
            raise _Killed

    with monkeypatch.context() as patched:
        patched.setattr(Saved, name, keep_and_die)
        with pytest.raises(_Killed):
            posterior(table, saved=killed)
    resumed = Saved(tmp_path, "this table", 9, resume=True)
    assert resumed.dags is not None
    begun = resumed.dags if name == "after_dags" else resumed.completions
    assert begun is not None
    assert begun.layers == layer
    done = []
    got = posterior(table, saved=resumed, progress=lambda done_now, total, **_: done.append(done_now / total))
    assert done[0] > (0.0 if name == "after_dags" else 0.5)  # the first half is not computed again
    for one, other in zip(got, posterior(table), strict=True):
        np.testing.assert_array_equal(one, other)
    resumed.discard()
    assert Saved(tmp_path, "this table", 9, resume=True).dags is None


def test_sums_of_another_table_are_not_continued(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoints, "SECONDS_BETWEEN", 0.0)
    monkeypatch.setattr(checkpoints, "SHARE_OF_TIME", math.inf)
    posterior(np.zeros((5, 16)), saved=Saved(tmp_path, "this table", 5, resume=False))
    with pytest.raises(TrainingError, match="other data"):
        Saved(tmp_path, "another table", 5, resume=True)
    with pytest.raises(FileFormatError, match="damaged"):
        Saved(tmp_path, "this table", 6, resume=True)


def test_a_short_computation_writes_no_file(tmp_path):
    posterior(np.zeros((5, 16)), saved=Saved(tmp_path, "this table", 5, resume=False))
    assert not list(tmp_path.iterdir())


def test_scores_thousands_of_nats_apart_stay_in_range():
    table = random_table(6, np.random.default_rng(2), scale=4000.0, penalty=-500.0)  # beyond any double
    table[3:] = random_table(6, np.random.default_rng(3), scale=0.5)[3:]  # and sums with many terms
    exact, whole = posterior(table), evidence_in_decimals(table)
    assert exact.log_evidence == pytest.approx(float(whole.ln()), rel=1e-14)
    for i, j in itertools.permutations(range(6), 2):
        required = np.zeros((6, 6), dtype=bool)
        required[i, j] = True
        with_edge = evidence_in_decimals(given_edges(table, required, np.zeros_like(required)))
        assert exact.edge_probabilities[i, j] == pytest.approx(float(with_edge / whole), abs=1e-11)
