"""Columns that carry no information, or the same information twice."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import linalg

from gflowdag.errors import DataError
from gflowdag.runtime.messages import shown

# Residual over standard deviation: what sums in float64 and decimals in a file leave of an exact relation.
RELATIVE_TOLERANCE = 1e-10
LARGEST = 1e60  # in absolute value: scores take squares of sums of squares


def check_constant(values: np.ndarray, names: Sequence[str]) -> None:
    """Refuse columns with one value only; `values` is float64 [n, d]."""
    constant = np.ptp(values, axis=0) <= 1e-14 * np.abs(values).max(axis=0)
    if constant.any():
        found = [names[column] for column in np.flatnonzero(constant).tolist()]
        raise DataError(
            f"Constant: {shown(map(repr, found))}. A column with one value says nothing about the graph; "
            f"drop it: df.drop(columns={found[:6]!r}), or --drop NAMES on the command line."
        )


def check_range(values: np.ndarray, names: Sequence[str]) -> None:
    """Refuse continuous columns whose squares, or squares of squares, no float64 can hold; [n, d]."""
    largest = np.abs(values).max(axis=0)
    bad = (largest > LARGEST) | (np.ptp(values, axis=0) < 1 / LARGEST)
    if bad.any():
        name, size = names[int(bad.argmax())], largest[bad.argmax()]
        raise DataError(
            f"Column {name!r} has values up to {size:.3g}; their range must be between {1 / LARGEST:g} and "
            f"{LARGEST:g}. Measure it in another unit."
        )


def check_copies(values: np.ndarray, names: Sequence[str]) -> None:
    """Refuse discrete columns that are copies of each other up to labels; `values` holds codes [n, d]."""
    if len(values) < 5:  # so few rows can agree by chance
        return
    seen: dict[bytes, str] = {}
    for name, codes in zip(names, values.T, strict=True):
        _, first, inverse = np.unique(codes, return_index=True, return_inverse=True)
        in_order_of_appearance = np.argsort(np.argsort(first))[inverse].tobytes()
        if in_order_of_appearance in seen:
            raise _copy_error(seen[in_order_of_appearance], name)
        seen[in_order_of_appearance] = name


def check_collinear(values: np.ndarray, names: Sequence[str]) -> None:
    """Refuse continuous columns that are exact linear functions of others; `values` is float64 [n, d].

    With no more rows than variables every column is such a function; then only pairs are checked.
    """
    num_rows, num_variables = values.shape
    deviations = values - values.mean(axis=0)
    deviations /= np.linalg.norm(deviations, axis=0)
    if num_rows > 3:  # two or three points can lie on a line by chance
        _check_pairs(deviations, names)
    if num_rows > num_variables:
        _check_combinations(deviations, names)


def _check_pairs(deviations: np.ndarray, names: Sequence[str]) -> None:
    correlations = deviations.T @ deviations
    # A correlation cannot tell a residual of 1e-8 from none, the difference of the two columns can.
    suspects = np.argwhere(np.triu(np.abs(correlations) > 1 - 1e-12, k=1))
    for i, j in suspects.tolist():
        difference = deviations[:, j] - np.sign(correlations[i, j]) * deviations[:, i]
        if np.linalg.norm(difference) < RELATIVE_TOLERANCE:
            raise _copy_error(names[i], names[j])


def _check_combinations(deviations: np.ndarray, names: Sequence[str]) -> None:
    factors: tuple = linalg.qr(deviations, mode="r", pivoting=True)
    triangle, order = factors[0][: len(names)], factors[-1]
    rank = int((np.abs(np.diag(triangle)) > RELATIVE_TOLERANCE).sum())
    if rank == len(names):
        return
    weights = linalg.solve_triangular(triangle[:rank, :rank], triangle[:rank, rank])
    dependent = names[int(order[rank])]
    sources = [names[int(order[k])] for k in np.flatnonzero(np.abs(weights) > 1e-6)]
    raise DataError(
        f"Collinear: {dependent!r} is an exact linear combination of {shown(map(repr, sources), 12)}. "
        f"Drop one of these columns, for example df.drop(columns=[{dependent!r}]), or --drop NAMES on the "
        "command line."
    )


def _copy_error(first: str, second: str) -> DataError:
    return DataError(
        f"Duplicated: {first!r} and {second!r} hold the same information, up to labels or a linear scale. "
        f"Drop one of them, for example df.drop(columns=[{second!r}]), or --drop NAMES on the command line."
    )
