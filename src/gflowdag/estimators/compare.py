"""`compare`: several methods fitted to one table, and set side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gflowdag.data import Dataset
from gflowdag.errors import DataError, GFlowDAGError
from gflowdag.estimators.base import StructureLearner
from gflowdag.posterior.comparison import Comparison
from gflowdag.posterior.posterior import Posterior
from gflowdag.posterior.truth import Truth, named

REFERENCE_VARIABLES = 12  # up to this many an exact reference takes about a second, and is made unasked
_SHARED = ("score", "prior", "knowledge", "standardize")


def compare(
    methods: Mapping[str, Posterior | StructureLearner],
    *,
    data: Any = None,
    truth: Truth | None = None,
    interventions: Any = None,
) -> Comparison:
    """Set methods side by side on the same data.

    Args:
        methods: by name, posteriors that exist or estimators that are fitted to `data` (as copies, one after
            another). One that fails is named in the result and does not stop the others.
        data: the table, needed for estimators; as for their `fit`.
        truth: the true graph, if it is known.
        interventions: as for `fit`.

    Returns:
        A `Comparison`. Errors are measured against the exact posterior that is among the methods; up to 12
        variables one is computed where there is none and all estimators agree on score, prior and knowledge.
    """
    if not isinstance(methods, Mapping):
        raise DataError("give the methods by name: {'exact': ExactPosterior(), 'mc3': MC3()}")
    if not methods:
        raise DataError("nothing to compare: name at least one method, {'exact': ExactPosterior()}")
    for name, method in methods.items():
        if not isinstance(method, Posterior | StructureLearner):
            raise DataError(f"{name!r} is neither a posterior nor an estimator, such as MC3(): {method!r}")
        if data is None and not isinstance(method, Posterior):
            raise DataError(f"{name!r} is an estimator: give compare the `data` to fit it to")
    if truth is not None:  # found wrong before the work, not after it
        truth = named(truth, _variables(methods, data, interventions))
    posteriors: dict[str, Posterior] = {}
    failures: dict[str, str] = {}
    for name, method in methods.items():
        if isinstance(method, Posterior):
            posteriors[name] = method
            continue
        try:
            copy = type(method)(**method.get_params(deep=False))
            posteriors[name] = copy.fit(data, interventions=interventions).posterior_
        except GFlowDAGError as error:
            failures[name] = str(error)
    _check_same_variables(posteriors)
    exact = [post for post in posteriors.values() if post.diagnosis.verdict == "exact"]
    estimators = [method for method in methods.values() if isinstance(method, StructureLearner)]
    reference = exact[0] if exact else _reference(estimators, data, interventions)
    return Comparison(posteriors, truth, reference, failures)


def _variables(methods: Mapping[str, Any], data: Any, interventions: Any) -> Sequence[str]:
    """The names of the variables that the methods are about."""
    for method in methods.values():
        if isinstance(method, Posterior):
            return method.names
    return Dataset.as_dataset(data, interventions=interventions).names


def _reference(estimators: list[StructureLearner], data: Any, interventions: Any) -> Posterior | None:
    """The exact posterior that the estimators approximate, if it is one and the same, and quick to have."""
    from gflowdag.estimators.exact import ExactPosterior

    settings = [{key: getattr(estimator, key) for key in _SHARED} for estimator in estimators]
    if not settings or any(other != settings[0] for other in settings):
        return None
    try:
        exact = ExactPosterior(
            **settings[0], num_samples=1, random_state=0, max_variables=REFERENCE_VARIABLES
        )
        return exact.fit(data, interventions=interventions).posterior_
    except GFlowDAGError:  # too many variables
        return None


def _check_same_variables(posteriors: Mapping[str, Posterior]) -> None:
    names = {frozenset(posterior.names) for posterior in posteriors.values()}
    if len(names) > 1:
        raise DataError("the posteriors are about different variables and cannot be compared")
