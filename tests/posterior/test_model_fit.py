"""A table that fits the model is left in peace; what does not fit is found, named, and mended."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import gflowdag as gd
from gflowdag.posterior.model_fit import Change, ModelFit, Remedy, check_residuals, check_table
from gflowdag.posterior.model_fit.statistics import excess_kurtosis, skewness

NAMES = ["a", "b", "c", "d"]
N = 600


def chain(seed: int = 0, rows: int = N) -> pd.DataFrame:
    """a → b → c, and d alone: linear, Gaussian, independent rows."""
    noise = np.random.default_rng(seed).normal(size=(rows, 4))
    frame = pd.DataFrame(noise, columns=NAMES)
    frame["b"] += 0.8 * frame["a"]
    frame["c"] += 0.8 * frame["b"]
    return frame


def fitted(frame: pd.DataFrame, **options: object) -> tuple[gd.Posterior, gd.Dataset]:
    data = gd.Dataset.from_frame(frame, **options)
    return gd.fit(data, method="exact", num_samples=100), data


def found(fit: ModelFit) -> dict[str, tuple[str, ...]]:
    return {finding.check: finding.columns for finding in fit.findings}


def heavy(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(d=np.random.default_rng(1).standard_t(3, len(frame)))


def skewed(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(d=np.exp(frame["d"]))


def outlying(frame: pd.DataFrame) -> pd.DataFrame:
    changed = frame.copy()
    changed.loc[[17, 300], "d"] = [9.0, -8.0]
    return changed


def curved(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(d=0.7 * frame["d"] + 0.5 * frame["a"] ** 2 + 0.3 * frame["a"])


def unequal(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(d=frame["d"] * (0.3 + np.abs(frame["a"])) + 0.8 * frame["a"])


def serial(frame: pd.DataFrame) -> pd.DataFrame:
    noise = np.random.default_rng(2).normal(size=len(frame))
    return frame.assign(d=[*_autoregressive(noise, 0.6)])


def _autoregressive(noise: np.ndarray, strength: float) -> np.ndarray:
    values = noise.copy()
    for row in range(1, len(values)):
        values[row] += strength * values[row - 1]
    return values


def deterministic(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(d=frame["a"] + frame["b"] + 0.001 * frame["d"])


def two_valued(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(d=np.where(frame["d"] > 0, 1.5, 0.5))


VIOLATIONS = [
    ("tails", heavy),
    ("skewness", skewed),
    ("outliers", outlying),
    ("curvature", curved),
    ("unequal variance", unequal),
    ("serial dependence", serial),
    ("deterministic", deterministic),
    ("few values", two_valued),
]


@pytest.mark.parametrize(("check", "plant"), VIOLATIONS, ids=[check for check, _ in VIOLATIONS])
def test_a_planted_violation_is_found_before_and_after_the_fit(check: str, plant) -> None:
    frame = plant(chain())
    options = {"kinds": "continuous"}
    assert "d" in found(check_table(gd.Dataset.from_frame(frame, **options))).get(check, ())
    assert "d" in found(check_residuals(*fitted(frame, **options))).get(check, ())


def discrete(seed: int = 0, rows: int = N) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 3, rows)
    b = np.where(rng.random(rows) < 0.6, a, rng.integers(0, 3, rows))
    return pd.DataFrame(
        {"a": a, "b": b, "c": rng.integers(0, 3, rows), "d": rng.integers(0, 2, rows)}
    ).astype("category")


def rare(frame: pd.DataFrame) -> pd.DataFrame:
    levels = frame["d"].astype(int).to_numpy().copy()
    levels[[5, 80]] = 2
    return frame.assign(d=pd.Categorical(levels))


def copied(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(d=(frame["a"].astype(int) > 0).astype("category"))


def sticky(frame: pd.DataFrame) -> pd.DataFrame:
    noise = _autoregressive(np.random.default_rng(3).normal(size=len(frame)), 0.7)
    return frame.assign(d=pd.Categorical(noise > 0))


@pytest.mark.parametrize(
    ("check", "plant"), [("rare levels", rare), ("deterministic", copied), ("serial dependence", sticky)]
)
def test_a_violation_in_a_discrete_table_is_found(check: str, plant) -> None:
    frame = plant(discrete())
    assert "d" in found(check_table(gd.Dataset.from_frame(frame))).get(check, ())
    assert "d" in found(check_residuals(*fitted(frame))).get(check, ())


def mixed(seed: int = 0, rows: int = N) -> pd.DataFrame:
    """arm → b ← a with an intercept, a slope and a variance in each cell, and d ← arm."""
    rng = np.random.default_rng(seed)
    arm = rng.integers(0, 3, rows)
    noise = rng.normal(size=(rows, 3))
    a = noise[:, 0]
    b = arm + np.array([0.8, -0.5, 0.0])[arm] * a + np.array([0.5, 1.0, 2.0])[arm] * noise[:, 1]
    d = 2.0 * arm + noise[:, 2]
    return pd.DataFrame({"arm": np.array(list("uvw"))[arm], "a": a, "b": b, "d": d})


def of_mixed(frame: pd.DataFrame, **options: object) -> tuple[gd.Posterior, gd.Dataset]:
    """The graph that made `mixed` tables; what is found does not depend on a score."""
    data = gd.Dataset.from_frame(frame, **options)
    graph = np.zeros((1, 4, 4), bool)
    graph[0, [0, 1, 0], [2, 2, 3]] = True
    return gd.Posterior(graph, data.names), data


def skewed_in_cells(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(d=np.exp(frame["d"] - 2.0 * frame["arm"].map({"u": 0, "v": 1, "w": 2})))


def curved_in_cells(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(b=frame["b"] + 1.5 * frame["a"] ** 2)


def unequal_in_cells(frame: pd.DataFrame) -> pd.DataFrame:
    noise = np.random.default_rng(4).normal(size=len(frame))
    return frame.assign(b=noise * (0.2 + np.abs(frame["a"])))


def outlying_in_cells(frame: pd.DataFrame) -> pd.DataFrame:
    changed = frame.copy()
    changed.loc[500, "d"] += 15.0
    changed.loc[500, "arm"] = "v"
    return changed


def rare_in_mixed(frame: pd.DataFrame) -> pd.DataFrame:
    changed = frame.copy()
    changed.loc[[5, 80], "arm"] = "x"
    return changed


MIXED = [
    ("skewness", "d", skewed_in_cells),
    ("curvature", "b", curved_in_cells),
    ("unequal variance", "b", unequal_in_cells),
    ("outliers", "d", outlying_in_cells),
    ("serial dependence", "d", lambda frame: serial(frame)),
    ("rare levels", "arm", rare_in_mixed),
]


@pytest.mark.parametrize(("check", "column", "plant"), MIXED, ids=[check for check, _, _ in MIXED])
def test_a_violation_in_a_mixed_table_is_found(check: str, column: str, plant) -> None:
    assert column in found(check_residuals(*of_mixed(plant(mixed())))).get(check, ())


def test_a_mixed_table_that_fits_is_flagged_in_one_case_of_a_hundred() -> None:
    alarms: dict[str, int] = {}
    for seed in range(REPEATS):
        fit = check_residuals(*of_mixed(mixed(seed, 300)))
        assert fit.given_parents
        for finding in fit.findings:
            alarms[finding.check] = alarms.get(finding.check, 0) + 1
    assert max(alarms.values(), default=0) <= MOST_ALARMS, alarms


def test_outliers_are_named_by_their_rows_in_the_table() -> None:
    for options in ({}, {"interventions": ["d"] * 100 + [""] * (N - 100)}):
        (finding,) = [
            finding
            for finding in check_residuals(*of_mixed(outlying_in_cells(mixed()), **options)).findings
            if finding.check == "outliers"
        ]
        assert "d in row 501" in finding.sentence()
    targets = ["a"] * 10 + [""] * (N - 10)
    (finding,) = check_table(gd.Dataset.from_frame(outlying(chain()), interventions=targets)).findings
    assert "d in row 18, 301" in finding.sentence()


@pytest.mark.parametrize("rows", [30, 500])
def test_skewness_and_tails_are_tested_as_scipy_does(rows: int) -> None:
    rng = np.random.default_rng(rows)
    for x in (rng.normal(size=rows), rng.gamma(1.0, size=rows), rng.standard_t(3, size=rows)):
        of_scipy = [stats.skew(x), stats.skewtest(x).pvalue, stats.kurtosis(x), stats.kurtosistest(x).pvalue]
        np.testing.assert_allclose([*skewness(x), *excess_kurtosis(x)], of_scipy, rtol=1e-9)


def test_what_could_not_be_looked_at_is_no_absence_of_objections() -> None:
    fit = check_residuals(*of_mixed(mixed(rows=20)))
    assert not fit.given_parents
    assert any("Too few rows" in note for note in fit.not_checked)


def test_few_rows_for_the_parameters_are_named() -> None:
    assert "few rows" in found(check_table(gd.Dataset.from_frame(chain(rows=15))))
    wide = pd.DataFrame(np.random.default_rng(0).integers(0, 8, (200, 3))).astype("category")
    assert "few rows" in found(check_table(gd.Dataset.from_frame(wide.set_axis(list("abc"), axis=1))))


LEVEL = 0.01  # as promised, whatever the module says
REPEATS = 100
# Each check may err in at most 1 % of the tables. By chance alone a check errs more often than allowed here
# with a probability of 5e-4, and there are six: the test fails without cause in less than 0.4 %.
MOST_ALARMS = int(stats.binom.isf(5e-4, REPEATS, LEVEL)) + 1


@pytest.mark.parametrize(("what", "rows"), [("table", 40), ("table", 300), ("residuals", 100)])
def test_a_table_that_fits_is_flagged_in_one_case_of_a_hundred(what: str, rows: int) -> None:
    alarms: dict[str, int] = {}
    for seed in range(REPEATS):
        frame = chain(1000 + seed, rows)
        data = gd.Dataset.from_frame(frame)
        fit = check_table(data) if what == "table" else fitted(frame)[0].diagnostics().model_fit
        for finding in fit.findings:
            alarms[finding.check] = alarms.get(finding.check, 0) + 1
    assert max(alarms.values(), default=0) <= MOST_ALARMS, alarms


@pytest.mark.long
@pytest.mark.parametrize("rows", [30, 100, 1000])
def test_the_level_of_every_check_holds_over_thousands_of_tables(rows: int) -> None:
    """4,000 tables: a check with a level of 1 % stays below 1.6 % but for one case in ten thousand."""
    repeats = 4000
    alarms: dict[str, int] = {}
    for seed in range(repeats):
        fit = check_table(gd.Dataset.from_frame(chain(10_000 + seed, rows)))
        for finding in fit.findings:
            alarms[finding.check] = alarms.get(finding.check, 0) + 1
    limit = stats.binom.isf(1e-4, repeats, LEVEL)
    assert max(alarms.values(), default=0) <= limit, alarms


def test_sorted_rows_are_not_taken_for_dependent_ones() -> None:
    fit = check_table(gd.Dataset.from_frame(chain().sort_values("a")))
    assert "serial dependence" not in found(fit)
    assert any("sorted by a" in note for note in fit.not_checked)


def test_rows_that_were_set_from_outside_do_not_count() -> None:
    frame = chain()
    frame.loc[:99, "d"] = 50.0 + np.arange(100)
    targets = ["d"] * 100 + [""] * (N - 100)
    data = gd.Dataset.from_frame(frame, interventions=targets)
    post = gd.fit(data, method="exact", num_samples=50)
    assert found(check_table(data)) == {}
    assert found(check_residuals(post, data)) == {}


@pytest.mark.parametrize(
    ("plant", "remedy"),
    [
        (skewed, Remedy(transform=(("d", "log"),))),
        (heavy, Remedy(transform=(("d", "rank"),))),
        (deterministic, Remedy(drop=("d",))),
    ],
)
def test_under_the_remedy_the_finding_is_gone(plant, remedy: Remedy) -> None:
    data = gd.Dataset.from_frame(plant(chain()))
    (finding,) = check_table(data).findings[:1]
    assert finding.remedy == remedy
    assert finding.check not in found(check_table(remedy.apply(data)))


@pytest.mark.parametrize(
    ("remedy", "options"),
    [
        (Remedy(transform="rank"), {"transform": "rank"}),
        (Remedy(transform=(("d", "log"),)), {"transform": {"d": "log"}}),
        (Remedy(drop=("a",)), {"drop": ["a"]}),
        (Remedy(discretize="quantile"), {"discretize": "quantile"}),
    ],
    ids=["rank", "log", "drop", "discretize"],
)
def test_a_remedy_is_what_reading_the_table_with_its_options_gives(remedy: Remedy, options: dict) -> None:
    frame = skewed(chain())
    expected = gd.Dataset.from_frame(frame, **options)
    changed = remedy.apply(gd.Dataset.from_frame(frame))
    assert changed.names == expected.names
    assert changed.cardinalities.tolist() == expected.cardinalities.tolist()
    # The units are restored from standardised numbers: a few roundings of float64.
    np.testing.assert_allclose(changed.values, expected.values, rtol=1e-9, atol=1e-9)


def test_a_finding_says_what_its_remedy_changes() -> None:
    frame = skewed(chain())
    post, data = fitted(frame)
    fit = check_residuals(post, data).with_changes(post, data, lambda other: gd.fit(other, method="exact"))
    (finding,) = fit.findings
    log = gd.fit(frame, method="exact", transform={"d": "log"}).edge_probabilities().to_numpy()
    expected = np.abs(log - post.edge_probabilities().to_numpy()).max()
    assert isinstance(finding.change, Change)
    assert finding.change.size == pytest.approx(expected, abs=1e-6)  # units restored by float64
    assert f"{expected:.2f}" in finding.sentence()
    assert "--transform d=log" in finding.sentence("command line")
    assert "transform={'d': 'log'}" in finding.sentence("python")


def test_findings_survive_a_file() -> None:
    fit = check_table(gd.Dataset.from_frame(deterministic(skewed(serial(chain())))))
    assert fit.findings
    assert ModelFit.from_dict(fit.to_dict()) == fit


def test_diagnostics_and_a_saved_posterior_hold_the_findings(tmp_path) -> None:
    frame = skewed(chain())
    post, _ = fitted(frame)
    assert found(post.diagnostics().model_fit) == {"skewness": ("d",)}
    post.save(tmp_path / "p.npz")
    loaded = gd.Posterior.load(tmp_path / "p.npz")
    assert loaded.diagnostics().model_fit == post.diagnostics().model_fit == loaded.model_fit(frame)


def test_an_exact_answer_about_a_wrong_model_is_still_called_exact_and_the_misfit_named() -> None:
    post, _ = fitted(heavy(chain()))
    assert post.diagnostics().verdict == "exact"
    assert post.diagnostics().model_fit.findings
