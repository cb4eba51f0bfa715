"""The estimators under scikit-learn's own checks of what an estimator is."""

from __future__ import annotations

import importlib.util
import subprocess
import sys

import pytest
import sklearn
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks
from test_estimators import tiny

import gflowdag as gd
from gflowdag.estimators import REGISTRY, BCDNets
from gflowdag.estimators.base import StructureLearner

# The checks that do not apply, and why. Everything else must pass.
_SCORE_IS_A_PARAMETER = "score names the local score, as everywhere in structure learning; it is no method"
DOES_NOT_APPLY = {
    "check_fit_score_takes_y": _SCORE_IS_A_PARAMETER,
    "check_n_features_in_after_fitting": _SCORE_IS_A_PARAMETER,
    "check_pipeline_consistency": _SCORE_IS_A_PARAMETER,
}
DOES_NOT_APPLY_TO = {
    BCDNets: {"check_estimators_dtypes": "integers of few values are discrete, which BCD Nets refuses"},
}
NEEDS = {"gadget": "sumu", "bootstrap-pc": "causallearn"}
METHODS = [method for method in REGISTRY if importlib.util.find_spec(NEEDS.get(method, "sklearn"))]


def does_not_apply(estimator: StructureLearner) -> dict[str, str]:
    return DOES_NOT_APPLY | DOES_NOT_APPLY_TO.get(type(estimator), {})


@parametrize_with_checks([tiny("exact")], expected_failed_checks=does_not_apply)
def test_the_exact_posterior_is_a_scikit_learn_estimator(estimator, check) -> None:
    check(estimator)


@pytest.mark.long
@parametrize_with_checks(
    [tiny(method) for method in METHODS if method != "exact"], expected_failed_checks=does_not_apply
)
def test_every_method_is_a_scikit_learn_estimator(estimator, check) -> None:
    check(estimator)


def test_a_pipeline_passes_interventions_on() -> None:
    frame = gd.simulate.linear_gaussian(3, 60, random_state=0).frame
    cells = [None] * 30 + ["X1"] * 30
    with sklearn.config_context(enable_metadata_routing=True):
        estimator = gd.ExactPosterior(random_state=0).set_fit_request(interventions=True)
        fitted = make_pipeline(estimator).fit(frame, interventions=cells)[-1]
    alone = gd.ExactPosterior(random_state=0).fit(frame, interventions=cells)
    assert fitted.posterior_.log_evidence == alone.posterior_.log_evidence
    assert fitted.posterior_.log_evidence != gd.ExactPosterior().fit(frame).posterior_.log_evidence


def test_notebooks_draw_an_estimator_and_its_words_name_what_was_changed() -> None:
    estimator = gd.ExactPosterior(random_state=3)
    assert "random_state" in estimator._repr_html_()
    assert repr(estimator) == "ExactPosterior(random_state=3)"


def test_a_small_fit_loads_neither_jax_nor_scikit_learn() -> None:
    """Together they take longer than the fit and its report."""
    code = (
        "import sys, gflowdag as gd; "
        "frame = gd.simulate.linear_gaussian(3, 50, random_state=0).frame; "
        "gd.fit(frame, random_state=0).report('/dev/null'); "
        "print(sorted({'jax', 'sklearn', 'scipy.stats', 'scipy.optimize', 'networkx'} & set(sys.modules)))"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"


def test_an_estimator_lists_its_attributes_without_pgmpy(monkeypatch: pytest.MonkeyPatch) -> None:
    """scikit-learn's `dir` asks for every attribute, and its picture of an estimator for `dir`."""
    monkeypatch.setitem(sys.modules, "pgmpy", None)
    monkeypatch.setitem(sys.modules, "pgmpy.base", None)
    frame = gd.simulate.linear_gaussian(3, 50, random_state=0).frame
    found = gd.ExactPosterior(random_state=0).fit(frame)
    assert "posterior_" in dir(found)
    assert "adjacency_matrix_" in dir(found)
    assert "causal_graph_" not in dir(found)
    with pytest.raises(AttributeError, match="pip install pgmpy"):
        _ = found.causal_graph_
