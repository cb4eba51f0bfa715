"""Stated probabilities are frequencies, on tables from the prior; and the tests see it where they are not.

Thresholds and settings are those of the measured case, which has them from before anything was measured.
"""

from __future__ import annotations

import numpy as np
import pytest

from gflowdag_lab.measurements.calibration import (
    Answer,
    Collected,
    Setting,
    Table,
    adjusted,
    by_method,
    collect,
    exactly,
    tables,
)
from gflowdag_lab.measurements.cases.calibration import (
    BDE,
    BDEU,
    BGE,
    LIMIT,
    LOGISTIC,
    MIXED,
    NORMALISED,
    SAMPLERS,
    WRONG,
)


def smallest_p(setting: Setting, num_tables: int, seed: int = 1) -> float:
    return adjusted(list(collect(setting, exactly(999), num_tables, seed).p_values().values()))


def named(setting: Setting) -> str:
    return setting.name


@pytest.mark.parametrize(
    ("setting", "num_tables"),
    [(BGE, 80), (BDE, 80), (BDEU, 80), (MIXED, 30), (LOGISTIC, 30)],
    ids=["bge", "bde", "bdeu", "conditional-gaussian", "generalized-linear"],
)
def test_probabilities_of_every_normalised_score_are_frequencies(setting: Setting, num_tables: int):
    assert smallest_p(setting, num_tables) > LIMIT


@pytest.mark.parametrize("setting", [WRONG[0], WRONG[2]], ids=named)
def test_wrong_hyper_parameters_are_seen(setting: Setting):
    assert smallest_p(setting, 80) < 0.001


def test_probabilities_that_are_too_sure_are_seen_where_ranks_are_right():
    """Draws are right, stated probabilities are not: reliability alone can tell."""

    def too_sure(table: Table, rng: np.random.Generator) -> Answer:
        right = exactly(999)(table, rng)
        odds = (right.edges / (1 - np.minimum(right.edges, 1 - 1e-12))) ** 2
        return right._replace(edges=odds / (1 + odds))

    found = collect(BGE, too_sure, 80, seed=1).p_values()
    assert found.pop("reliability") <= 0.001
    assert adjusted(list(found.values())) > LIMIT


def test_a_perfect_forecast_of_made_up_edges_is_calibrated():
    """Without any posterior: edges that are drawn with the probabilities that are stated."""
    rng = np.random.default_rng(0)
    collected = Collected()
    for table in tables(BGE, 5, seed=2):
        stated = np.triu(rng.uniform(size=(5, 5)), 1)
        graphs = rng.uniform(size=(400, 5, 5)) < stated
        collected.add(table._replace(truth=graphs[0]), Answer(stated, graphs[1:]), rng)
    assert adjusted(list(collected.p_values().values())) > LIMIT


@pytest.mark.long
@pytest.mark.parametrize("setting", NORMALISED, ids=named)
def test_probabilities_are_frequencies_on_a_thousand_tables(setting: Setting):
    assert smallest_p(setting, 1000, seed=2) > LIMIT


@pytest.mark.long
@pytest.mark.parametrize("setting", WRONG, ids=named)
def test_wrong_models_are_seen_on_a_thousand_tables(setting: Setting):
    assert smallest_p(setting, 1000, seed=2) < 0.001


@pytest.mark.long
@pytest.mark.parametrize("setting", [BGE, BDEU], ids=named)
@pytest.mark.parametrize("method", SAMPLERS)
def test_probabilities_of_every_sampler_are_frequencies(method: str, setting: Setting):
    answer = by_method(method, 999, **SAMPLERS[method])
    found = collect(setting, answer, 50, seed=2).p_values()
    assert adjusted(list(found.values())) > LIMIT
