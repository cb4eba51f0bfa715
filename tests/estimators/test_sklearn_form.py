"""The estimators under scikit-learn's own checks of what an estimator is."""

from __future__ import annotations

import importlib.util
import sys

import pytest
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
