"""Exact answers kept on disk, for judging other methods again and again on the same table."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gflowdag.exact.marginals import posterior
from gflowdag.exact.size import MAX_VARIABLES, checked_table
from gflowdag.runtime.files import write_npz
from gflowdag.runtime.progress import Progress, silent


class Reference(NamedTuple):
    """What other methods are judged against; rows are sources."""

    log_evidence: float
    edge_probabilities: NDArray[np.float64]  # [d, d]
    path_probabilities: NDArray[np.float64]  # [d, d]


def reference(
    table: ArrayLike,
    folder: str | Path,
    *,
    progress: Progress = silent,
    max_variables: int = MAX_VARIABLES,
) -> Reference:
    """The exact posterior's summary, read from `folder` if this very table was seen before.

    Args:
        table: log scores of all parent sets, float64 [d, 2^(d−1)], compressed index.
        folder: where the small `.npz` files live, one for each table, named by its SHA-256.
        progress: told how far a new computation is.
        max_variables: see `posterior`.
    """
    table = np.ascontiguousarray(checked_table(table))
    path = Path(folder) / f"exact-{hashlib.sha256(table.data).hexdigest()}.npz"
    if not path.exists():
        exact = posterior(table, progress=progress, max_variables=max_variables)
        fields = {name: np.asarray(getattr(exact, name)) for name in Reference._fields}
        write_npz(path, fields)
    with np.load(path, allow_pickle=False) as stored:
        return Reference(
            log_evidence=float(stored["log_evidence"]),
            edge_probabilities=stored["edge_probabilities"],
            path_probabilities=stored["path_probabilities"],
        )
