"""A posterior as xarray's `DataTree`, the form in which ArviZ 1 and other Bayesian tools exchange samples."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gflowdag.errors import MissingExtraError
from gflowdag.posterior.posterior import Posterior

if TYPE_CHECKING:
    from xarray import DataTree


def datatree(posterior: Posterior) -> DataTree:
    """See `Posterior.to_datatree`."""
    try:
        import xarray
    except ImportError as error:
        raise MissingExtraError("to_datatree needs xarray 2024.10 or newer: pip install xarray") from error
    names = list(posterior.names)
    places: dict[str, Any] = {"chain": [0], "draw": np.arange(posterior.num_samples)}
    stats: dict[str, Any] = {"log_weight": (("chain", "draw"), posterior.log_weights[None])}
    if posterior.log_scores is not None:
        stats["log_score"] = (("chain", "draw"), posterior.log_scores[None])
    found = posterior.diagnosis
    about: dict[str, Any] = {
        "inference_library": "gflowdag",
        "method": posterior.method,
        "verdict": found.verdict,
        "explanation": found.explanation,
    }
    if posterior.log_evidence is not None:
        about["log_evidence"] = posterior.log_evidence
    adjacency = xarray.Dataset(
        {"adjacency": (("chain", "draw", "source", "target"), posterior.samples[None].astype(np.int8))},
        {**places, "source": names, "target": names},
        about,
    )
    return xarray.DataTree.from_dict(
        {"posterior": adjacency, "sample_stats": xarray.Dataset(stats, places, about)}
    )
