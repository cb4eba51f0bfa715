"""Columns that carry no information, or the same information twice."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import linalg
from scipy.special import gammaln

from gflowdag.errors import DataError
from gflowdag.runtime.messages import shown
from gflowdag.runtime.place import option

# Residual over standard deviation: what sums in float64 and decimals in a file leave of an exact relation.
RELATIVE_TOLERANCE = 1e-10
_BY_CHANCE = 0.05  # expected copies by chance, from which on a copy is no reason to refuse a table
LARGEST = 1e60  # in absolute value: scores take squares of sums of squares


def constant_columns(values: np.ndarray, names: Sequence[str]) -> list[str]:
    """Columns with one value only, up to rounding; `values` is float64 [n, d], gaps are NaN."""
    span = np.nanmax(values, axis=0) - np.nanmin(values, axis=0)
    constant = span <= 1e-14 * np.nanmax(np.abs(values), axis=0)
    return [names[column] for column in np.flatnonzero(constant).tolist()]


def check_range(values: np.ndarray, names: Sequence[str]) -> None:
    """Refuse continuous columns whose squares, or squares of squares, no float64 can hold; [n, d]."""
    largest = np.nanmax(np.abs(values), axis=0)
    bad = (largest > LARGEST) | (np.nanmax(values, axis=0) - np.nanmin(values, axis=0) < 1 / LARGEST)
    if bad.any():
        name, size = names[int(bad.argmax())], largest[bad.argmax()]
        raise DataError(
            f"Column {name!r} has values up to {size:.3g}; their range must be between {1 / LARGEST:g} and "
            f"{LARGEST:g}. Measure it in another unit.",
            without=[name],
        )


def discrete_copies(values: np.ndarray, names: Sequence[str]) -> list[tuple[str, str]]:
    """Pairs of discrete columns that are copies of each other up to labels; `values` holds codes [n, d].

    Not those that a table of so few rows and so many columns is likely to have by chance.
    """
    seen: dict[bytes, str] = {}
    found: list[tuple[str, str]] = []
    for name, codes in zip(names, values.T, strict=True):
        _, first, inverse = np.unique(codes, return_index=True, return_inverse=True)
        in_order_of_appearance = np.argsort(np.argsort(first))[inverse].tobytes()
        if in_order_of_appearance in seen and _chance_copies(codes, len(names)) < _BY_CHANCE:
            found.append((seen[in_order_of_appearance], name))
        seen.setdefault(in_order_of_appearance, name)
    return found


def _chance_copies(values: np.ndarray, num_columns: int) -> float:
    """Expected number of pairs in `num_columns` columns like this one, [n], that are copies by chance.

    Its values in random order are a copy in as many of n! cases as there are orders within each level, and
    orders of the levels that are equally frequent.
    """
    counts = np.unique(values, return_counts=True)[1]
    alike = np.unique(counts, return_counts=True)[1]
    orders = np.append(counts, alike)
    log_probability = gammaln(orders + 1.0).sum() - gammaln(len(values) + 1.0)
    return num_columns * (num_columns - 1) / 2 * float(np.exp(log_probability))


def check_collinear(values: np.ndarray, names: Sequence[str]) -> None:
    """Refuse continuous columns that are exact linear functions of others; `values` is float64 [n, d].

    With no more rows than variables every column is such a function; then only pairs are checked.
    """
    num_rows, num_variables = values.shape
    if num_rows == 0:
        return
    deviations = values - values.mean(axis=0)
    deviations /= np.linalg.norm(deviations, axis=0)
    if num_rows > 3:  # two or three points can lie on a line by chance
        _check_pairs(deviations, names)
    if num_rows > num_variables:
        _check_combinations(deviations, names)


def _check_pairs(deviations: np.ndarray, names: Sequence[str]) -> None:
    """Refuse a column that is another one or its negative, up to rounding; linear in the table.

    Copies have equal projections on any direction, so only neighbours along a random one are compared.
    """
    num_rows, num_variables = deviations.shape
    direction = np.random.default_rng(0).normal(size=num_rows)
    projections = direction / np.linalg.norm(direction) @ deviations
    upright = deviations * np.where(projections < 0, -1.0, 1.0)
    order = np.argsort(np.abs(projections), kind="stable")
    gaps = np.diff(np.abs(projections)[order])
    for near in np.split(order, np.flatnonzero(gaps > RELATIVE_TOLERANCE) + 1):
        different: list[int] = []  # columns of this place, no two of which are copies
        for j in map(int, np.sort(near)):
            differences = np.linalg.norm(upright[:, different] - upright[:, [j]], axis=0)
            copies = np.flatnonzero(differences < RELATIVE_TOLERANCE)
            if not len(copies):
                different.append(j)
            elif not _may_be_chance(deviations[:, j], num_variables):
                raise _copy_error(names[different[int(copies[0])]], names[j])


def _may_be_chance(deviations: np.ndarray, num_columns: int) -> bool:
    """Whether a column of so few different values may have a copy by chance; measurements have no ties."""
    rounded = deviations.round(9)
    has_ties = len(np.unique(rounded)) < len(rounded)
    return has_ties and _chance_copies(rounded, num_columns) >= _BY_CHANCE


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
        f"Drop one of these columns, for example {option('drop', [dependent])}.",
        without=[dependent],
    )


def _copy_error(first: str, second: str) -> DataError:
    return DataError(
        f"Duplicated: {first!r} and {second!r} hold the same information, up to a linear scale. "
        f"Drop one of them, for example {option('drop', [second])}.",
        without=[second],
    )
