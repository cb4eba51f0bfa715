"""Columns that carry no information, or the same information twice."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.linalg import qr, solve_triangular

from gflowdag.data.wording import shown
from gflowdag.errors import DataError

RELATIVE_TOLERANCE = (
    1e-10  # residual over standard deviation: what float64 sums and decimal files leave behind
)


def check_constant(values: np.ndarray, names: Sequence[str]) -> None:
    """Refuse columns with one value only; `values` is float64 [n, d]."""
    spread = np.ptp(values, axis=0)
    constant = spread <= 1e-14 * np.abs(values).max(axis=0)
    if constant.any():
        found = [name for name, is_constant in zip(names, constant, strict=True) if is_constant]
        raise DataError(
            f"Constant: {shown(map(repr, found))}. A column with a single value says nothing about the graph; "
            f"drop it with df.drop(columns={found[:6]!r})."
        )


def check_copies(values: np.ndarray, names: Sequence[str]) -> None:
    """Refuse discrete columns that are copies of each other, whatever their labels; `values` holds codes [n, d]."""
    seen: dict[bytes, str] = {}
    for name, codes in zip(names, values.T, strict=True):
        _, first, inverse = np.unique(codes, return_index=True, return_inverse=True)
        relabelled = np.argsort(np.argsort(first))[inverse].astype(np.int32).tobytes()
        if relabelled in seen:
            raise _copy(seen[relabelled], name)
        seen[relabelled] = name


def check_collinear(values: np.ndarray, names: Sequence[str]) -> None:
    """Refuse continuous columns that are exact linear functions of others; `values` is float64 [n, d].

    With no more rows than variables every column is such a function of the others; then only copies are refused.
    """
    num_rows, num_variables = values.shape
    deviations = values - values.mean(axis=0)
    deviations /= np.sqrt(np.square(deviations).sum(axis=0))
    if num_rows > 3:
        _check_pairs(deviations, names)
    if num_rows > num_variables:
        _check_combinations(deviations, names)


def _check_pairs(deviations: np.ndarray, names: Sequence[str]) -> None:
    correlations = deviations.T @ deviations
    # A correlation cannot tell 1 from 1 − 1e-16; the difference of the two columns can.
    for i, j in np.argwhere(np.triu(np.abs(correlations) > 1 - 1e-12, k=1)):
        difference = deviations[:, j] - np.sign(correlations[i, j]) * deviations[:, i]
        if np.linalg.norm(difference) < RELATIVE_TOLERANCE:
            raise _copy(names[i], names[j])


def _check_combinations(deviations: np.ndarray, names: Sequence[str]) -> None:
    triangle, order = qr(deviations, mode="r", pivoting=True)[-2:]
    triangle = triangle[: len(order)]
    rank = int((np.abs(np.diag(triangle)) > RELATIVE_TOLERANCE).sum())
    if rank == len(order):
        return
    dependent = order[rank]
    weights = solve_triangular(triangle[:rank, :rank], triangle[:rank, rank])
    sources = [names[order[k]] for k in np.flatnonzero(np.abs(weights) > 1e-6)]
    raise DataError(
        f"Collinear: {names[dependent]!r} is an exact linear combination of {shown(map(repr, sources), 12)}. "
        f"Drop one of these columns, for example df.drop(columns=[{names[dependent]!r}])."
    )


def _copy(first: str, second: str) -> DataError:
    return DataError(
        f"Duplicated: {first!r} and {second!r} carry the same information (equal, or an exact function of each other). "
        f"Drop one of them, for example df.drop(columns=[{second!r}])."
    )
