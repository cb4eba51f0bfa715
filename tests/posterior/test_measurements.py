"""The information that missing cells would give, against sums over all of their values."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.special import logsumexp
from scipy.stats import entropy
from typer.testing import CliRunner

import gflowdag as gd
from gflowdag.cli.app import app
from gflowdag.errors import DataError, ScoreError
from gflowdag.graph import all_dags
from gflowdag.posterior.posterior import Posterior
from gflowdag.score import BDeu, make_score

SCORE = BDeu(ess=1.0)
ONE = [(0, 1), (2, 1), (5, 1), (7, 1), (9, 1), (12, 1), (13, 1)]
SEVERAL = [(0, 0), (5, 0), (9, 1), (11, 1), (12, 1), (7, 2)]


def _table(cells: list[tuple[int, int]]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Three binary columns, without gaps and with."""
    rng = np.random.default_rng(3)
    a = rng.random(16) < 0.5
    b = a ^ (rng.random(16) < 0.15)
    c = b ^ (rng.random(16) < 0.15)
    frame = pd.DataFrame(np.stack([a, b, c], axis=1).astype(int), columns=["a", "b", "c"])
    gaps = frame.to_numpy(float, copy=True)
    gaps[tuple(np.array(cells).T)] = np.nan
    return frame, pd.DataFrame(gaps, columns=frame.columns)


def _fit(gaps: pd.DataFrame, completions: int) -> Posterior:
    return gd.fit(
        gaps, method="exact", score=SCORE, prior="uniform", kinds="discrete",
        completions=completions, num_samples=2000, random_state=0,
    )  # fmt: skip


def _all_values(frame: pd.DataFrame, cells: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    """Every filling of the cells, [2^m, m], and the joint probability of it and each graph, [2^m, 25]."""
    values, graphs = frame.to_numpy(float, copy=True), all_dags(3)
    fillings = np.array(list(product((0.0, 1.0), repeat=len(cells))))
    logs = []
    for filling in fillings:
        values[tuple(np.array(cells).T)] = filling
        data = gd.Dataset.from_frame(pd.DataFrame(values, columns=frame.columns), kinds="discrete")
        logs.append(make_score(data, score=SCORE, prior="uniform").log_score(graphs))
    return fillings, np.exp(logs - logsumexp(logs))


def _information(fillings: np.ndarray, joint: np.ndarray, known: np.ndarray, answers: np.ndarray) -> float:
    """Mutual information of an answer, int [25], and the cells that are `known`, bool [m]."""
    _, groups = np.unique(fillings[:, known], axis=0, return_inverse=True)
    p = np.zeros((groups.max() + 1, 25))
    np.add.at(p, groups.reshape(-1), joint)
    p = np.stack([np.bincount(answers, weights=one) for one in p])
    return float(entropy(p.sum(axis=0)) - p.sum(axis=1) @ [entropy(one) for one in p])


EVERY = np.arange(25)
IS_EDGE = all_dags(3)[:, 0, 1].astype(int)


@pytest.mark.parametrize(("cells", "completions"), [(ONE, 500), (SEVERAL, 60)])
def test_the_gain_is_the_mutual_information_of_graph_and_cells(cells, completions) -> None:
    frame, gaps = _table(cells)
    fillings, joint = _all_values(frame, cells)
    post, of_cell = _fit(gaps, completions), np.array(cells)[:, 1]
    measure = [gaps.columns[place] for place in np.unique(of_cell)]
    outcomes = 48 if len(measure) > 1 else 128
    for about, answers in ((None, EVERY), ("a -> b", IS_EDGE))[: 3 - min(len(measure), 2)]:
        found = post.next_experiments(measure=measure, targets=[], about=about, num_outcomes=outcomes)
        assert sorted(one.measured for one in found.experiments) == measure
        for one in found.experiments:
            known = of_cell == gaps.columns.get_loc(one.measured)
            expected = _information(fillings, joint, known, answers)
            assert one.num_rows == known.sum()
            # Four standard errors, and 0.01 for the rounds being so many and no more.
            assert one.gain == pytest.approx(expected, abs=4 * one.error + 0.01)
            assert one.error < 0.12


def test_measured_cells_stand_beside_experiments(tmp_path: Path) -> None:
    post = _fit(_table(SEVERAL)[1], 60)
    path = tmp_path / "posterior.npz"
    post.save(path)
    asked = {"measure": ["b", "c"], "targets": ["a"], "num_rows": 5, "num_outcomes": 20}
    found, again = post.next_experiments(**asked), Posterior.load(path).next_experiments(**asked)
    assert found.to_dict() == again.to_dict()
    words = ["next", str(path), "--measure", "b,c", "--targets", "a", "--rows", "5", "--outcomes", "20"]
    printed = CliRunner().invoke(app, words)
    assert printed.exit_code == 0, printed.output
    assert all(f"measuring {name}" in printed.output for name in "bc")
    table = found.table()
    assert sorted(table["measured"].dropna()) == ["b", "c"]
    assert list(table["target"].dropna()) == ["a"]
    assert table["gain"].is_monotonic_decreasing
    assert table.set_index("measured").loc["b", "num_rows"] == 3
    assert (table["gain"] <= found.entropy).all()


def test_rows_after_imputed_cells_tell_as_much_as_after_these_cells() -> None:
    """One missing cell of 200 rows changes nothing that matters."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(100, 3)), columns=["a", "b", "c"])
    frame["b"] += 0.4 * frame["a"]
    gaps = frame.copy()
    gaps.loc[3, "c"] = np.nan
    gains = []
    for table in (frame, gaps):
        post = gd.fit(table, method="exact", num_samples=2000, completions=40, random_state=0)
        found = post.next_experiments(num_rows=10, targets=["a", "b"], num_outcomes=400)
        gains.append({one.target: (one.gain, one.error) for one in found.experiments})
    for target, (gain, error) in gains[0].items():
        other, its_error = gains[1][target]
        assert other == pytest.approx(gain, abs=4 * np.hypot(error, its_error) + 0.01)


def test_what_cannot_be_measured_is_refused() -> None:
    frame, gaps = _table(ONE)
    post = _fit(gaps, 20)
    with pytest.raises(DataError, match=r"'a' has no missing cell .* missing cells: 'b'"):
        post.next_experiments(measure=["a"])
    with pytest.raises(DataError, match=r"no variable 'z'.* never measured"):
        post.next_experiments(measure=["z"])
    complete = gd.fit(frame, method="exact", num_samples=20, random_state=0)
    with pytest.raises(DataError, match="no missing cell"):
        complete.next_experiments(measure=["b"])
    resampled = post.with_diagnostics(uses_prior=False)
    with pytest.raises(ScoreError, match="are not draws from the posterior of a score"):
        resampled.next_experiments(measure=["b"])
