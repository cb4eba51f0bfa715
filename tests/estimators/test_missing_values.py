"""Missing cells are imputed: the posterior is that given what was observed."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from scipy.special import logsumexp
from typer.testing import CliRunner

import gflowdag as gd
from gflowdag.cli.app import app
from gflowdag.data import Dataset
from gflowdag.errors import DataError, GFlowDAGError
from gflowdag.graph.enumeration import all_dags
from gflowdag.score import make_score

RNG = np.random.default_rng(7)
NUMBERS = pd.DataFrame(RNG.normal(size=(40, 3)), columns=["a", "b", "c"])
NUMBERS["b"] += 0.7 * NUMBERS["a"]


def holed(frame: pd.DataFrame, cells: list[tuple[int, int]]) -> pd.DataFrame:
    """The frame with gaps at these places."""
    values = frame.to_numpy(dtype=float, copy=True)
    values[tuple(np.array(cells).T)] = np.nan
    return pd.DataFrame(values, columns=frame.columns)


def binary_table(rows: int = 16) -> pd.DataFrame:
    """Three binary columns in a chain."""
    rng = np.random.default_rng(3)
    a = rng.random(rows) < 0.5
    b = a ^ (rng.random(rows) < 0.2)
    c = b ^ (rng.random(rows) < 0.25)
    return pd.DataFrame(np.stack([a, b, c], axis=1).astype(int), columns=["a", "b", "c"])


EIGHT = [(0, 0), (0, 1), (2, 1), (5, 2), (7, 0), (9, 1), (9, 2), (12, 0)]


def enumerated(frame: pd.DataFrame, cells: list[tuple[int, int]], score: gd.BDeu) -> NDArray[np.float64]:
    """Edge probabilities by the sum over every completion, each weighing its marginal likelihood, [d, d]."""
    values, graphs = frame.to_numpy(dtype=float, copy=True), all_dags(3)
    logs = []
    for levels in product((0.0, 1.0), repeat=len(cells)):
        values[tuple(np.array(cells).T)] = levels
        data = Dataset.from_frame(pd.DataFrame(values, columns=frame.columns), kinds="discrete")
        logs.append(make_score(data, score=score).log_score(graphs))
    return np.tensordot(np.exp(logsumexp(logs, axis=0) - logsumexp(logs)), graphs, axes=1)


@pytest.mark.parametrize(
    ("score", "completions", "precision"),
    [
        (gd.BDeu(), 600, 0.015),
        pytest.param(gd.BDeu(), 8000, 0.004, marks=pytest.mark.long),
        pytest.param(gd.BDeu(ess=1.0), 8000, 0.004, marks=pytest.mark.long),
    ],
)
def test_edges_of_a_binary_table_are_those_of_the_sum_over_all_completions(
    score: gd.BDeu, completions: int, precision: float
) -> None:
    frame = binary_table()
    gaps = holed(frame, EIGHT)
    expected = enumerated(frame, EIGHT, score)
    post = gd.fit(gaps, score=score, kinds="discrete", completions=completions, random_state=1)
    found, error = post.edge_probabilities().to_numpy(), post.edge_errors()
    off = ~np.eye(3, dtype=bool)
    assert error[off].max() < precision
    # Four standard errors: six edges miss that by chance once in three thousand seeds.
    assert (np.abs(found - expected)[off] < 4 * error[off]).all()
    # What other answers would be is outside: filled in by the most frequent level, or rows dropped.
    for wrong in (
        gd.fit(gaps.fillna(gaps.mode().iloc[0]), score=score, kinds="discrete"),
        gd.fit(gaps, score=score, kinds="discrete", missing="drop"),
    ):
        away = np.abs(wrong.edge_probabilities().to_numpy() - expected)[off]
        assert (away > 4 * error[off]).any()


def test_edges_of_a_gaussian_table_are_those_of_the_integral_over_two_cells() -> None:
    rng = np.random.default_rng(5)
    values = rng.normal(size=(8, 3))
    values[:, 1] += values[:, 0]
    values[:, 2] -= values[:, 1]
    graphs = all_dags(3)
    angles = (np.arange(40) + 0.5) / 40 * np.pi - np.pi / 2  # x = 2 tan(angle): tails of a t distribution
    logs = []
    for first, second in product(angles, angles):
        values[0, 1], values[3, 2] = 2 * np.tan(first), 2 * np.tan(second)
        score = make_score(Dataset.from_array(values, standardize=False))
        logs.append(score.log_score(graphs) - 2 * np.log(np.cos(first) * np.cos(second)))
    weights = np.exp(logsumexp(logs, axis=0) - logsumexp(logs))
    expected = np.tensordot(weights, graphs, axes=1)
    values[[0, 3], [1, 2]] = np.nan
    post = gd.fit(values, standardize=False, completions=800, random_state=2)
    error = post.edge_errors()
    assert error.max() < 0.015
    # Four standard errors, and what is left of 1,600 points in place of the integral.
    assert (np.abs(post.edge_probabilities().to_numpy() - expected) < 4 * error + 0.001).all()


def test_the_same_seed_gives_the_same_answer_and_another_seed_another() -> None:
    table = holed(NUMBERS, [(0, 0), (3, 1), (9, 2)])
    first, again, other = (gd.fit(table, completions=40, random_state=seed) for seed in (0, 0, 1))
    assert np.array_equal(first.samples, again.samples)
    assert np.array_equal(first.marginals, again.marginals)
    assert first.imputed("a").equals(again.imputed("a"))
    assert not np.array_equal(first.marginals, other.marginals)


def test_draws_of_missing_cells_have_the_units_of_the_table_and_survive_a_file(tmp_path: Path) -> None:
    post = gd.fit(holed(NUMBERS * 10 + 500, [(0, 0), (3, 1), (9, 1)]), completions=200)
    drawn = post.imputed("b")
    assert drawn.columns.tolist() == [3, 9]
    assert 450 < drawn.to_numpy().mean() < 550
    post.save(tmp_path / "p.npz")
    loaded = gd.Posterior.load(tmp_path / "p.npz")
    assert loaded.imputed("b").equals(drawn)
    assert loaded.diagnostics().imputation == post.diagnostics().imputation
    with pytest.raises(DataError, match="'c' has no missing cells; 'a', 'b' had some"):
        loaded.imputed("c")
    half = post.resample(100, 0)
    assert half.imputed_cells is not None
    assert half.imputed_cells.of_sample is not None
    assert len(half.imputed_cells.of_sample) == 100


def test_levels_are_imputed_as_levels() -> None:
    words = pd.DataFrame(np.array(["no", "yes"])[binary_table().to_numpy()], columns=["a", "b", "c"])
    words.iloc[0, 1] = None
    drawn = gd.fit(words, completions=40).imputed("b")
    assert set(drawn[0]) <= {"no", "yes"}


def test_diagnostics_say_what_was_imputed_and_assumed() -> None:
    post = gd.fit(holed(NUMBERS, [(0, 0), (3, 1)]), completions=100)
    told = post.diagnostics()
    assert told.imputation is not None
    assert (told.imputation.missing_cells, told.imputation.num_chains) == (2, 4)
    assert told.imputation.completions >= 100
    assert told.imputation.between_share is not None
    assert 0 < told.imputation.between_share < 1
    assert post.log_evidence is None
    assert any("2 cells of 120 are missing and imputed" in note for note in told.notes)
    assert "It is assumed that" in told.explanation


def test_scales_are_those_of_the_observed_cells() -> None:
    table = holed(NUMBERS, [(0, 0), (3, 1)])
    data = Dataset.from_frame(table)
    assert data.columns[0].scaling == pytest.approx((table["a"].mean(), table["a"].std()))
    assert data.missing is not None
    assert np.argwhere(data.missing).tolist() == [[0, 0], [3, 1]]


def test_rows_without_a_value_and_columns_that_are_mostly_gaps_are_named() -> None:
    table = holed(NUMBERS, [(5, 0), (5, 1), (5, 2), *((row, 2) for row in range(10, 35))])
    data = Dataset.from_frame(table)
    assert data.num_rows == 39
    assert any("1 row without any value" in note for note in data.notes)
    assert any("Mostly missing: 'c' (65%)" in note for note in data.notes)
    with pytest.raises(DataError, match="No value at all: 'd'"):
        Dataset.from_frame(table.assign(d=np.nan))


def test_knowledge_and_interventions_hold_for_completed_tables() -> None:
    table = holed(NUMBERS, [(0, 0), (3, 1), (20, 2)])
    mask = np.zeros((40, 3), bool)
    mask[10:20, 1] = True
    known = gd.Knowledge(forbidden=[("a", "c")], required=[("a", "b")])
    post = gd.fit(table, knowledge=known, interventions=mask, completions=40)
    edges = post.edge_probabilities()
    assert edges.loc["a", "c"] == 0
    assert edges.loc["a", "b"] == pytest.approx(1)
    mask[3, 1] = True  # set to a value that nobody knows
    data = Dataset.from_frame(table, interventions=mask)
    assert data.num_rows == 39
    assert any("the value that it was set to is missing" in note for note in data.notes)


def test_scores_without_draws_of_cells_refuse_and_name_the_remedy() -> None:
    table = holed(NUMBERS, [(0, 0)])
    with pytest.raises(GFlowDAGError, match="missing='drop'"):
        gd.fit(table, score=gd.DegenerateGaussian())
    with pytest.raises(GFlowDAGError, match="1 cell of the table are missing"):
        make_score(Dataset.from_frame(table))


@pytest.mark.parametrize("score", ["generalized-linear", "conditional-gaussian"])
def test_tables_of_both_kinds_are_imputed(score: str) -> None:
    rng = np.random.default_rng(2)
    group = rng.integers(3, size=200)
    x = group + 0.5 * rng.normal(size=200)
    y = x + 0.3 * rng.normal(size=200)
    table = pd.DataFrame({"group": group, "x": x, "y": y}).astype(float)
    table["group"] = table["group"].map({0.0: "low", 1.0: "mid", 2.0: "high"})
    known = table.copy()
    gaps = rng.random((200, 3)) < 0.15
    gaps[gaps.all(axis=1)] = False  # a row without any value would be left out
    table = table.mask(gaps)
    post = gd.fit(table, score=score, completions=60)
    drawn = post.imputed("group")
    right = [(drawn[row] == known["group"][row]).mean() for row in drawn.columns]
    assert np.mean(right) > 0.55  # a third by chance
    error = [post.imputed("y")[row].mean() - known["y"][row] for row in post.imputed("y").columns]
    assert np.std(error) < 0.6 * known["y"].std()
    assert post.edge_table().iloc[0]["absent"] < 0.05


@pytest.mark.parametrize("method", ["parent-set-mcmc", "mc3"])
def test_sampled_answers_agree_with_the_exact_one(method: str) -> None:
    table = holed(NUMBERS, [(0, 0), (3, 1), (9, 2), (12, 1), (20, 0)])
    exactly = gd.fit(table, completions=200).edge_probabilities().to_numpy()
    short = {"num_chains": 8, "burn_in": 500, "num_steps": 2000, "thinning": 20} if method == "mc3" else {}
    post = gd.fit(table, method=method, completions=400 if method != "mc3" else 3, **short)
    assert np.abs(post.edge_probabilities().to_numpy() - exactly).max() < 0.06
    assert post.diagnostics().imputation is not None


def test_a_table_without_gaps_has_the_answer_that_it_had() -> None:
    imputed, dropped = (gd.fit(NUMBERS, missing=missing) for missing in ("impute", "drop"))
    assert imputed.log_evidence == dropped.log_evidence
    assert np.array_equal(imputed.samples, dropped.samples)
    assert imputed.diagnostics().verdict == "exact"
    assert imputed.diagnostics().imputation is None
    with pytest.raises(DataError, match="Nothing was imputed"):
        imputed.imputed("a")


def test_the_command_line_imputes_and_keeps_the_draws(tmp_path: Path) -> None:
    holed(NUMBERS, [(0, 0), (3, 1)]).to_csv(tmp_path / "t.csv", index=False)
    run, words = tmp_path / "run", ["fit", str(tmp_path / "t.csv"), "--completions", "40", "-q"]
    answer = CliRunner().invoke(app, [*words, "--out", str(run)])
    assert answer.exit_code == 0, answer.output
    assert json.loads((run / "config.json").read_text())["missing"] == "impute"
    assert gd.Posterior.load(run).imputed("b").columns.tolist() == [3]
    dropped = CliRunner().invoke(app, [*words, "--missing", "drop", "--out", str(tmp_path / "dropped")])
    assert dropped.exit_code == 0, dropped.output
    assert "2 of 40 rows were dropped" in " ".join(
        gd.Posterior.load(tmp_path / "dropped").diagnostics().notes
    )


def test_a_budget_ends_the_chains_and_says_so() -> None:
    post = gd.fit(holed(NUMBERS, [(0, 0), (3, 1), (9, 2)]), method="exact", budget=2.0, completions=10**6)
    told = post.diagnostics()
    assert told.share_done is not None
    assert told.share_done < 0.5
    assert "The budget of" in told.explanation


def test_one_network_for_all_completed_tables_is_refused_with_the_reason() -> None:
    post = gd.fit(holed(NUMBERS, [(0, 0)]), completions=40)
    with pytest.raises(GFlowDAGError, match="each completed table has parameters of its own"):
        post.fitted_network()
