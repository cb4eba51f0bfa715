"""What the benchmark cases on orders share."""

from __future__ import annotations

import jax

from gflowdag_lab.measurements.harness import Options


def setting(options: Options, name: str, default: int, quick: int) -> int:
    """A number that the command line may set, with one default for each size of run."""
    return int(options.extra.get(name, quick if options.quick else default))


def peak_memory() -> float:
    """Peak memory of the device so far in GiB; NaN where it does not say."""
    statistics = jax.devices()[0].memory_stats() or {}
    return statistics.get("peak_bytes_in_use", float("nan")) / 2**30
