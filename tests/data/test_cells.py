"""Equal rows of a table of codes are found and counted."""

from __future__ import annotations

import numpy as np
import pytest

from gflowdag.data.cells import cells_of_rows, distinct_rows


@pytest.mark.parametrize(
    ("rows", "columns", "levels"),
    [(500, 3, 2), (500, 6, 5), (40, 50, 3), (200, 90, 8), (1, 2, 2), (0, 2, 2), (5, 0, 2)],
    ids=["few cells", "many cells", "more than rows", "more than 64 bits", "one row", "no row", "no column"],
)
def test_rows_are_those_of_numpy_in_its_order(rows: int, columns: int, levels: int) -> None:
    codes = np.random.default_rng(0).integers(levels, size=(rows, columns)).astype(np.int32)
    codes = np.concatenate([codes, codes[: rows // 2]])
    found, counts = distinct_rows(codes)
    if columns:
        expected, expected_counts = np.unique(codes, axis=0, return_counts=True)
        assert np.array_equal(found, expected)
        assert np.array_equal(counts, expected_counts)
    cells = cells_of_rows(codes)
    assert cells.max(initial=0) <= max(1024, len(codes))
    same = (codes[:, None] == codes).all(axis=-1)
    assert np.array_equal(cells[:, None] == cells, same)
