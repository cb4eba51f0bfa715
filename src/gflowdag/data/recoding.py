"""The same observations, read in another way: what a remedy for a column comes to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import pandas as pd

from gflowdag.data.dataset import Dataset
from gflowdag.data.knowledge import Knowledge
from gflowdag.data.read_options import Transform


def recoded(
    data: Dataset,
    *,
    transform: Mapping[str, Transform] | Transform | None = None,
    drop: Sequence[str] = (),
    discrete: Sequence[str] = (),
    discretize: Literal["quantile", "interval"] | None = None,
    max_parents: int | None = None,
    every: int = 1,
) -> Dataset:
    """A data set as it would be had its table been read with these options on top of its own.

    Args:
        data: the data set; bins cannot be undone, so that columns that were binned stay discrete.
        transform: of all columns, or by name; other columns keep theirs.
        drop: columns to leave out.
        discrete: continuous columns that are levels.
        discretize: cut the other continuous columns into bins.
        max_parents: the largest number of parents of a variable.
        every: keep the first of so many rows.
    """
    continuous = [column.name for column in data.columns if column.kind == "continuous"]
    own: dict[str, Any] = {
        column.name: "log" if column.log else "rank"
        for column in data.columns
        if column.name in continuous and (column.log or column.scores is not None)
    }
    asked: dict[str, Any] = (
        dict.fromkeys(continuous, transform) if isinstance(transform, str) else dict(transform or {})
    )
    kept = [name for name in data.names if name not in drop]
    transforms: dict[str, Transform] = {
        name: how for name, how in (own | asked).items() if name in kept and name not in discrete
    }
    kinds = {
        name: "continuous" if name in continuous and name not in discrete else "discrete" for name in kept
    }
    rows = slice(None, None, every)
    return Dataset.from_frame(
        _measured(data).iloc[rows],
        kinds=kinds,  # pyright: ignore[reportArgumentType]
        drop=drop,
        transform=transforms,
        standardize=data.standardized,
        discretize=discretize,
        interventions=None if data.intervened is None else data.intervened[rows],
        knowledge=_limited(data.knowledge, max_parents),
        max_levels=max(30, *map(int, data.cardinalities)),
    )


def _measured(data: Dataset) -> pd.DataFrame:
    """The table behind a data set, in the units in which it was measured."""
    frame = data.to_frame()
    for column, numbers in zip(data.columns, data.values.T, strict=True):
        if column.kind == "continuous":
            frame[column.name] = column.decode(numbers)
    return frame


def _limited(knowledge: Knowledge | None, max_parents: int | None) -> Knowledge | None:
    if max_parents is None:
        return knowledge
    return replace(knowledge or Knowledge(), max_parents=max_parents)
