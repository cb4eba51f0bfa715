"""Which rows of codes are the same: tables of many rows cost what their distinct rows cost."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

_LARGEST = 1 << 62  # of a key
_FREE = 1024  # cells that may be counted whatever the number of rows


def distinct_rows(codes: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """The rows that differ, in lexicographic order, and how often each is there: [n, d] -> [u, d], [u].

    `np.unique(codes, axis=0, return_counts=True)`, in a time that is linear in small tables of cells.

    Args:
        codes: whole numbers from 0 on.
    """
    keys, num_cells = _keys(codes)
    if num_cells > max(_FREE, len(codes)):
        _, first, counts = np.unique(keys, return_index=True, return_counts=True)
        return codes[first], counts.astype(np.int64)
    counts = np.bincount(keys, minlength=num_cells)
    some_row = np.zeros(num_cells, np.int64)
    some_row[keys] = np.arange(len(codes))
    occupied = np.flatnonzero(counts)
    return codes[some_row[occupied]], counts[occupied].astype(np.int64)


def cells_of_rows(codes: NDArray[Any]) -> NDArray[np.int64]:
    """A number for each row, the same for equal rows, and not much larger than the number of rows, [n].

    Args:
        codes: whole numbers from 0 on, [n, d].
    """
    keys, num_cells = _keys(codes)
    if num_cells > max(_FREE, len(codes)):
        keys = np.unique(keys, return_inverse=True)[1].reshape(-1)
    return keys


def _keys(codes: NDArray[Any]) -> tuple[NDArray[np.int64], int]:
    """Numbers that are equal as the rows are and in their order, and a number that none of them reaches."""
    keys, num_cells = np.zeros(len(codes), np.int64), 1
    for column in codes.T:
        levels = int(column.max(initial=0)) + 1
        if num_cells * levels > _LARGEST:
            keys = np.unique(keys, return_inverse=True)[1].reshape(-1)
            num_cells = int(keys.max(initial=0)) + 1
        keys = keys * levels + column.astype(np.int64)
        num_cells *= levels
    return keys, num_cells
