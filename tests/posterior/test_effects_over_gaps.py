"""Effects where cells were imputed: graph, parameters and missing cells all have their posterior."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from effect_calibration import Outcome, assert_calibrated, normal_wishart_tables, outcome
from scipy.special import logsumexp, softmax

import gflowdag as gd
from gflowdag.errors import FileFormatError, ScoreError
from gflowdag.graph import all_dags
from gflowdag.posterior.posterior import Posterior
from gflowdag.runtime.files import read_npz, write_npz
from gflowdag.score import BDeu, BGe, make_score

NAMES = ("X1", "X2", "X3")
SCORE = BDeu(ess=2.0)
CELLS = [(0, 0), (3, 2), (4, 0), (7, 2), (9, 1), (11, 2)]


def _binary() -> pd.DataFrame:
    rng = np.random.default_rng(5)
    a = rng.random(24) < 0.5
    b = a ^ (rng.random(24) < 0.2)
    c = b ^ (rng.random(24) < 0.2)
    return pd.DataFrame(np.stack([a, b, c], axis=1).astype(int), columns=list(NAMES))


def _with_gaps(frame: pd.DataFrame) -> pd.DataFrame:
    values = frame.to_numpy(float, copy=True)
    values[tuple(np.array(CELLS).T)] = np.nan
    return pd.DataFrame(values, columns=frame.columns)


@pytest.fixture(scope="module")
def imputed() -> Posterior:
    return gd.fit(
        _with_gaps(_binary()), method="exact", score=SCORE, prior="uniform", kinds="discrete",
        completions=240, num_samples=4000, random_state=0,
    )  # fmt: skip


def test_the_effect_is_that_of_the_sum_over_all_completions(imputed: Posterior) -> None:
    values, graphs = _binary().to_numpy(float, copy=True), all_dags(3)
    logs, means = [], []
    for levels in product((0.0, 1.0), repeat=len(CELLS)):
        values[tuple(np.array(CELLS).T)] = levels
        data = gd.Dataset.from_frame(pd.DataFrame(values, columns=list(NAMES)), kinds="discrete")
        scores = make_score(data, score=SCORE, prior="uniform").log_score(graphs)
        of_completion = Posterior(graphs, NAMES, log_weights=scores).with_parameters(data, score=SCORE)
        found = of_completion.effect("X1", "X3", num_draws=1000)
        means.append(found.difference(1, 1, 0).mean())
        logs.append(logsumexp(scores))
    expected = softmax(logs) @ np.array(means)
    found = imputed.effect("X1", "X3", num_draws=20_000)
    # Four standard errors: differences of about 0.3 drawn from 240 completed tables, worth 100 or more.
    assert found.difference(1, 1, 0).mean() == pytest.approx(expected, abs=4 * 0.3 / np.sqrt(100))
    assert found.probability == pytest.approx(imputed.path_probabilities().loc["X1", "X3"])


def test_each_graph_has_the_parameters_of_its_own_table(imputed: Posterior) -> None:
    """The effect given one completed table is that of the table: nothing is left of the others."""
    cells = imputed.imputed_cells
    assert cells is not None
    assert cells.of_sample is not None
    own = int(cells.of_sample[0])
    mine = imputed.given(lambda graph: True)
    index = np.flatnonzero(cells.of_sample == own)
    only = Posterior(
        mine.samples[index], NAMES, table=mine.table, incomplete=mine.incomplete,
        imputed_cells=cells.of_samples(index),
    )  # fmt: skip
    values = _with_gaps(_binary()).to_numpy(copy=True)
    values[cells.rows, cells.columns] = cells.values[own]
    data = gd.Dataset.from_frame(pd.DataFrame(values, columns=list(NAMES)), kinds="discrete")
    complete = Posterior(only.samples, NAMES).with_parameters(data, score=SCORE)
    for cause, target in (("X1", "X2"), ("X2", "X3")):
        found, expected = (post.effect(cause, target, num_draws=500) for post in (only, complete))
        assert np.array_equal(found.distributions, expected.distributions)


def test_a_saved_fit_has_the_same_effects_and_a_damaged_one_is_refused(
    imputed: Posterior, tmp_path: Path
) -> None:
    path = tmp_path / "posterior.npz"
    imputed.save(path)
    again = Posterior.load(path)
    found, expected = again.effect("X1", "X3", num_draws=500), imputed.effect("X1", "X3", num_draws=500)
    assert np.array_equal(found.distributions, expected.distributions)
    arrays = dict(read_npz(path, max_bytes=1 << 24))
    values = arrays["incomplete_values"].copy()
    values[0, 0] = 1.0  # a cell that is drawn has a value
    for damage in (
        {"incomplete_values": values},
        {"incomplete_score": np.array('{"name": "nobody", "parameters": {}}')},
        {"incomplete_prior": np.zeros(2)},
        {"incomplete_max_parents": np.array([-7])},
    ):
        write_npz(path, arrays | damage)
        with pytest.raises(FileFormatError, match="table with gaps"):
            Posterior.load(path)


def test_what_was_not_kept_is_refused_with_what_to_do(imputed: Posterior) -> None:
    without = Posterior(imputed.samples, NAMES, diagnosis=imputed.diagnosis)
    with pytest.raises(ScoreError, match="completions each graph was drawn with"):
        without.effect("X1", "X3")


def test_all_pairs_of_a_continuous_table() -> None:
    rng = np.random.default_rng(0)
    a = rng.normal(size=300)
    frame = pd.DataFrame({"a": a, "b": 2 * a + rng.normal(size=300)})
    gaps = frame.mask(rng.random(frame.shape) < 0.2)
    known = gd.Knowledge(required=[("a", "b")])
    post = gd.fit(gaps, method="exact", knowledge=known, completions=40, num_samples=100, random_state=0)
    means = post.effect_matrix()
    assert means.loc["a", "b"] == pytest.approx(2, abs=0.2)
    assert means.loc["a", "b"] == pytest.approx(post.effect("a", "b").draws.mean(), abs=0.02)


def _effects(num_tables: int, completions: int) -> list[Outcome]:
    """True effects in their posteriors, tables from the prior of BGe; a fifth of the cells is missing."""
    rng, found = np.random.default_rng(3), []
    for frame, truth, present in normal_wishart_tables(rng, num_tables):
        gaps = frame.mask(rng.random(frame.shape) < 0.2)
        post = gd.fit(
            gaps, method="exact", score=BGe(), prior="uniform", standardize=False,
            completions=completions, num_samples=2 * completions, random_state=int(rng.integers(2**31)),
        )  # fmt: skip
        draws = post.effect("X1", "X3", num_draws=2000, random_state=rng).draws
        found.append(outcome(draws, truth, present, rng))
    return found


def test_true_effects_are_anywhere_in_their_posterior() -> None:
    assert_calibrated(_effects(24, 40))


@pytest.mark.long
@pytest.mark.timeout(2400)
def test_true_effects_are_anywhere_in_their_posterior_over_500_tables() -> None:
    assert_calibrated(_effects(500, 200))
