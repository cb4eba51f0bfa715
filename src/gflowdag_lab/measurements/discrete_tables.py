"""Discrete tables of noise and with signal, for `cases.discrete_noise`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd

from gflowdag import Dataset, simulate
from gflowdag.data import load_network
from gflowdag.errors import DataError
from gflowdag.graph import erdos_renyi

LEVELS = ("2", "3", "4", "5", "8", "2-8")
BINS = (2, 3, 4, 5)
REAL = ("wine", "breast-cancer", "digits", "diabetes", "anes96", "fair", "macrodata", "star98", "randhie")
NETWORKS = ("asia", "sachs", "child", "insurance", "alarm", "five parents")
MOST = 12  # variables of a part of a larger network, and of a permuted table


def noise_tables(
    seed: int,
    sizes: Sequence[int],
    rows: Sequence[int],
    repeats: int,
    permuted: int,
    kinds: Sequence[str] = LEVELS,
    bins: Sequence[int] = BINS,
) -> Iterator[tuple[str, Dataset]]:
    """Independent columns of these numbers of variables and rows, and permuted columns of real tables.

    Args:
        seed: of all of them.
        sizes: numbers of variables.
        rows: numbers of rows.
        repeats: tables of each kind; one beyond `MOST` variables, which take ten times as long.
        permuted: tables of each real table and number of bins.
        kinds: numbers of levels of independent columns, of `LEVELS`.
        bins: numbers of bins of permuted columns.
    """
    for d in sizes:
        for n in rows:
            for number, levels in enumerate(LEVELS):
                if levels not in kinds:
                    continue
                for skewed in (False, True):
                    for repeat in range(repeats if d <= MOST else 1):
                        rng = np.random.default_rng([seed, d, n, number, skewed, repeat])
                        shape = "skewed" if skewed else "uniform"
                        yield f"{levels} levels, {shape}", _independent(d, n, levels, skewed, rng)
    for name in REAL if permuted else ():
        frame = _real(name)
        for number in bins:
            for repeat in range(permuted):
                rng = np.random.default_rng([seed, *name.encode(), number, repeat])
                yield f"{name}, {number} bins", _permuted(frame, number, rng)


def _independent(d: int, n: int, levels: str, skewed: bool, rng: np.random.Generator) -> Dataset:
    """Independent columns; the probabilities of a skewed one are drawn from a flat Dirichlet."""
    columns = []
    while len(columns) < d:
        r = int(rng.integers(2, 9)) if levels == "2-8" else int(levels)
        column = rng.choice(r, n, p=rng.dirichlet(np.ones(r)) if skewed else None)
        if np.ptp(column) > 0:
            columns.append(column)
    return Dataset.from_array(np.stack(columns, axis=1), kinds="discrete")


def _permuted(frame: pd.DataFrame, bins: int, rng: np.random.Generator) -> Dataset:
    """Up to twelve of the columns and 2000 of the rows, each column shuffled and cut by quantiles."""
    while True:
        chosen = rng.permutation(frame.shape[1])[:MOST]
        shuffled = pd.DataFrame({frame.columns[i]: rng.permutation(frame.iloc[:, i])[:2000] for i in chosen})
        try:
            return Dataset.from_frame(shuffled, discretize="quantile", bins=bins)
        except DataError:  # a column that is constant, or nearly: others are drawn
            continue


def _real(name: str) -> pd.DataFrame:
    """A table of scikit-learn or statsmodels, complete rows, columns with two values at least."""
    from sklearn import datasets

    if name in ("wine", "breast-cancer", "digits", "diabetes"):
        frame = pd.DataFrame(getattr(datasets, "load_" + name.replace("-", "_"))().data).add_prefix("V")
    else:
        import statsmodels.api

        frame = getattr(statsmodels.api.datasets, name).load_pandas().data.dropna()
    frame = frame.astype(float)
    return frame.loc[:, frame.nunique() > 1]


def sample(network: str, n: int, rng: np.random.Generator) -> tuple[Dataset, np.ndarray]:
    """A sample and its true graph; drawn again where a column is constant or a copy, which is refused."""
    while True:
        if network == "five parents":
            graph = np.zeros((10, 10), bool)
            graph[:9, :9] = erdos_renyi(9, 6.0, rng)
            graph[:5, 9] = True
            drawn = simulate.discrete(10, n, graph=graph, num_levels=2, random_state=rng)
            frame = drawn.frame
        else:
            whole = load_network(network.removesuffix("-whole"))
            chosen = _ancestral(whole.adjacency, len(whole.names) if "-whole" in network else MOST, rng)
            frame = whole.sample(n, rng).iloc[:, chosen]
            graph = whole.adjacency[np.ix_(chosen, chosen)]
        try:
            return Dataset.from_frame(frame), graph
        except DataError:
            continue


def _ancestral(adjacency: np.ndarray, most: int, rng: np.random.Generator) -> np.ndarray:
    """Random nodes, at most so many, with all their ancestors: the graph among them is their true graph."""
    d = len(adjacency)
    reaches = np.linalg.matrix_power(np.eye(d) + adjacency, d) > 0
    chosen = np.zeros(d, bool)
    for node in rng.permutation(d):
        if (chosen | reaches[:, node]).sum() <= most:
            chosen |= reaches[:, node]
    return np.flatnonzero(chosen)


def dependent(d: int, rng: np.random.Generator) -> Dataset:
    """A sample of a random network of 2 to 8 levels; the more variables, the fewer levels."""
    while True:
        levels = rng.integers(2, 9 if d == 2 else 5, d)
        n = int(rng.choice([50, 200, 1000]))
        drawn = simulate.discrete(
            d, n, edges_per_node=0.5 * (d - 1) / 2, num_levels=levels.tolist(), random_state=rng
        )
        try:
            return Dataset.from_frame(drawn.frame)
        except DataError:
            continue
