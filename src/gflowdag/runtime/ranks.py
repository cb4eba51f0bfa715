"""Ranks; those of scipy.stats take as long to load as a small fit takes."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray


def mean_ranks(values: ArrayLike) -> NDArray[np.float64]:
    """Ranks from 1 along the first axis, equal values with the mean of theirs; NaN where any value is."""
    columns = np.ascontiguousarray(np.moveaxis(np.asarray(values), 0, -1))
    order = np.argsort(columns, axis=-1)
    ordered = np.take_along_axis(columns, order, axis=-1)
    begins = np.ones(columns.shape, dtype=bool)  # a run of equal values
    begins[..., 1:] = ordered[..., 1:] != ordered[..., :-1]
    bounds = np.flatnonzero(np.append(begins, True))  # no run goes from one column into the next
    column = bounds[:-1] // columns.shape[-1] * columns.shape[-1]
    means = (bounds[:-1] + bounds[1:] + 1) / 2 - column
    ranks = np.empty(columns.shape)
    np.put_along_axis(ranks, order, np.repeat(means, np.diff(bounds)).reshape(columns.shape), axis=-1)
    ranks[(columns != columns).any(axis=-1)] = np.nan
    return np.moveaxis(ranks, -1, 0)
