"""What effects need, as members of a posterior's file: written where it is small, checked when it is read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gflowdag.errors import ScoreError
from gflowdag.score.conjugate import DiscreteParameters, GaussianParameters, ParameterPosterior
from gflowdag.score.generalized_linear import GeneralizedLinear
from gflowdag.score.mixed_parameters import MixedParameters

MAX_KEPT = 32 * 2**20  # bytes before compression; beyond, effects ask for the table
_GAUSSIAN = ("scatter", "degrees", "group_of_node")
_DISCRETE = ("codes", "counts", "cardinalities", "ess", "group_of_node")
_MIXED = ("values", "num_levels", "intervened", "ess", "constants")
_NO_NUMBER = -1.0  # of a hyper-parameter that is not set
_PREFIX = "parameters_"


def parameter_members(parameters: ParameterPosterior | None) -> dict[str, NDArray[Any]]:
    """The members of a file; none where there is nothing to keep, or too much."""
    if parameters is None:
        return {}
    if isinstance(parameters, MixedParameters):
        found = _mixed_members(parameters)
    else:
        names = _GAUSSIAN if isinstance(parameters, GaussianParameters) else _DISCRETE
        found = {name: getattr(parameters, name) for name in names}
    arrays = {_PREFIX + name: _narrow(array) for name, array in found.items()}
    return arrays if sum(array.nbytes for array in arrays.values()) <= MAX_KEPT else {}


def read_parameters(arrays: Mapping[str, NDArray[Any]], d: int) -> ParameterPosterior | None:
    """The inverse of `parameter_members`, for `d` variables.

    Raises:
        ValueError: the members are damaged.
    """
    found = {name.removeprefix(_PREFIX): arrays[name] for name in arrays if name.startswith(_PREFIX)}
    if not found:
        return None
    if any(array.dtype.kind not in "uif" or not np.isfinite(array).all() for array in found.values()):
        raise ValueError("not finite numbers")
    if found.keys() == set(_GAUSSIAN):
        return _gaussian(found, d)
    if found.keys() == set(_DISCRETE):
        return _discrete(found, d)
    if found.keys() == set(_MIXED):
        return _mixed(found, d)
    raise ValueError("members are missing")


def _gaussian(found: Mapping[str, NDArray[Any]], d: int) -> GaussianParameters:
    scatter, degrees = (np.asarray(found[name], np.float64) for name in ("scatter", "degrees"))
    groups = len(degrees) if degrees.ndim == 1 else 0
    if scatter.shape != (groups, d, d) or not groups or degrees.min() <= 0:
        raise ValueError("scatter and degrees do not fit")
    if not np.array_equal(scatter, scatter.transpose(0, 2, 1)) or np.linalg.eigvalsh(scatter).min() <= 0:
        raise ValueError("scatter is no scatter matrix")
    return GaussianParameters(scatter, degrees, _groups(found, d, groups))


def _discrete(found: Mapping[str, NDArray[Any]], d: int) -> DiscreteParameters:
    codes, counts, levels = (_whole(found[name]) for name in ("codes", "counts", "cardinalities"))
    ess = np.asarray(found["ess"], np.float64)
    if codes.ndim != 2 or counts.ndim != 2 or levels.shape != (d,) or ess.ndim != 1:
        raise ValueError("the counts have other shapes")
    groups, rows = counts.shape
    if codes.shape != (d, rows) or not groups or not len(ess) or ess.min() <= 0 or levels.min() < 1:
        raise ValueError("the counts do not fit")
    if (codes < 0).any() or (codes >= levels[:, None]).any() or (counts < 0).any():
        raise ValueError("a level or a count is out of range")
    return DiscreteParameters(codes.astype(np.int32), counts, levels, ess, _groups(found, d, groups))


def _mixed_members(parameters: MixedParameters) -> dict[str, NDArray[Any]]:
    score, values = parameters.score, parameters.values
    given = (score.cells_per_row, score.alpha_mu, score.alpha_w, score.deviation)
    intervened = np.zeros((0, 0)) if parameters.intervened is None else parameters.intervened
    return {
        "values": values,
        "num_levels": parameters.num_levels,
        "intervened": intervened.astype(np.int64),
        "ess": np.atleast_1d(np.asarray(score.ess, np.float64)),
        "constants": np.array([_NO_NUMBER if number is None else number for number in given]),
    }


def _mixed(found: Mapping[str, NDArray[Any]], d: int) -> MixedParameters:
    values, ess, constants = (np.asarray(found[name], np.float64) for name in ("values", "ess", "constants"))
    num_levels, intervened = _whole(found["num_levels"]), _whole(found["intervened"])
    if values.ndim != 2 or values.shape[1] != d or num_levels.shape != (d,) or not len(values):
        raise ValueError("the table does not fit")
    if ess.ndim != 1 or constants.shape != (4,) or (intervened.size and intervened.shape != values.shape):
        raise ValueError("the hyper-parameters do not fit")
    codes = values[:, num_levels > 0]
    if (codes != codes.round()).any() or (codes < 0).any() or (codes >= num_levels[num_levels > 0]).any():
        raise ValueError("a level is out of range")
    cells_per_row, alpha_mu, alpha_w, deviation = (
        None if number == _NO_NUMBER else number for number in constants.tolist()
    )
    try:
        score = GeneralizedLinear(
            ess=tuple(ess.tolist()),
            cells_per_row=cells_per_row,
            alpha_mu=alpha_mu,  # pyright: ignore[reportArgumentType]  (checked there)
            alpha_w=alpha_w,
            deviation=deviation,  # pyright: ignore[reportArgumentType]
        )
    except ScoreError as error:
        raise ValueError(str(error)) from error
    return MixedParameters(values, num_levels, intervened != 0 if intervened.size else None, score)


def _groups(found: Mapping[str, NDArray[Any]], d: int, groups: int) -> NDArray[np.int64]:
    group = _whole(found["group_of_node"])
    if group.shape != (d,) or group.min() < 0 or group.max() >= groups:
        raise ValueError("the groups of rows do not fit")
    return group


def _whole(values: NDArray[Any]) -> NDArray[np.int64]:
    if values.dtype.kind not in "ui" or values.max(initial=0) > np.iinfo(np.int32).max:
        raise ValueError("not whole numbers of a sensible size")
    return values.astype(np.int64)


def _narrow(values: NDArray[Any]) -> NDArray[Any]:
    """Whole numbers of zero or more in as few bytes as hold them."""
    if values.dtype.kind != "i":
        return values
    for kind in (np.uint8, np.uint16):
        if values.max(initial=0) <= np.iinfo(kind).max:
            return values.astype(kind)
    return values.astype(np.int32)
