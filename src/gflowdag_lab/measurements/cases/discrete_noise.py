"""Which default for discrete tables finds nothing in noise and loses nothing in signal.

How the default is chosen, fixed before anything was measured:

1. Noise, on the tables of at least 200 rows (independent and permuted columns together): at most 0.3 expected
   edges a variable in the mean, no arrow above 0.5 in 99 % of the tables, an adjacency above 0.5 in at most
   10 % of them.
2. Directions: with two variables no difference between `P(i -> j)` and `P(j -> i)` above 0.01; of the
   classes of four variables none of which a limit allows some members only, and likelihoods within one that
   are equal up to rounding.
3. Of what is left, the best mean log loss over all samples of the networks, each sample counting alike. What
   lies within two standard errors of the best (paired by sample) is a tie.
4. Ties go to the simplest: a limit on the cells of a family, which lets every family in as the rows grow;
   then a limit on the parents, which never does; then another prior on structures; then another prior of
   the cells; then two changes at once. Among limits of one form, the mildest: that which forbids least.
5. It must not lose against today's default (prior `uniform`, no limit) by more than two standard errors in
   log loss, on any of the networks.

A second round looks closer around the best of the first, by the same criterion, on tables of its own
(`--seed 1 --set round=2`): what was chosen on one set of tables is judged on another. Among its changes of
the prior of the cells one equivalent sample size is simpler than an average over several.

A third round asks more of noise, because the mean over kinds of tables hides the worst kind: of the
candidates around the winner of the second, that one is taken

1. which keeps the bar of rule 1 in *every* kind of table (number of levels and shape; number of bins), on
   tables of their own (`--seed 2`, two and three levels or bins, where the bar is close);
2. which keeps rules 2 and 5, on samples of their own;
3. and of which the mean log loss is best; a tie goes to the candidate that is named first.

If none keeps the bar in every kind, the one whose worst share of tables with an adjacency above 0.5 is
smallest. The winner is shown on further tables (`--seed 3`), which decide nothing.

Log loss is the sum over ordered pairs, probabilities kept 1e-6 away from 0 and 1.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from gflowdag import exact
from gflowdag.graph import all_dags, class_keys, cpdag
from gflowdag_lab.measurements.discrete_candidates import ROUNDS, TODAY, Candidate, Table
from gflowdag_lab.measurements.discrete_tables import BINS, LEVELS, NETWORKS, dependent, noise_tables, sample
from gflowdag_lab.measurements.harness import Options, Row, case

FOLDER = Path("docs/laboratory/discrete-noise")


@case
def discrete_noise(options: Options) -> Iterator[Row]:
    """Expected edges and surest arrows on independent and on permuted columns, for all candidates.

    `round`, `sizes`, `rows`, `repeats`, `permuted`, `levels`, `bins`, `names` (separated by `|`) choose;
    `suffix` marks files.
    """
    sizes = _numbers(options, "sizes", "8" if options.quick else "8,12,15")
    rows = _numbers(options, "rows", "200" if options.quick else "50,200,500,1000,5000")
    repeats = 1 if options.quick else int(options.extra.get("repeats", 2))
    permuted = int(options.extra.get("permuted", 0 if options.quick else 2))
    columns = ("table", "variables", "rows", "candidate", "edges_per_variable", "arrow", "adjacency")
    with _Sheet(options, "noise", columns) as sheet:
        levels = options.extra.get("levels", ",".join(LEVELS)).split(",")
        bins = _numbers(options, "bins", ",".join(map(str, BINS)))
        for name, data in noise_tables(options.seed, sizes, rows, repeats, permuted, levels, bins):
            table = Table(data)
            for candidate in _chosen(options):
                if candidate.suits(table):
                    edges = exact.posterior(candidate.table(table)).edge_probabilities
                    values = (edges.sum() / len(edges), edges.max(), (edges + edges.T).max())
                    sheet.add(name, table.num_variables, table.num_rows, candidate.name, *values)
    yield from _noise_summary(sheet.frame())


@case
def discrete_signal(options: Options) -> Iterator[Row]:
    """Log loss and expected distance to the true class on samples of networks, for all candidates.

    `round`, `networks` (`child-whole`: all 20 variables), `rows`, `repeats`, `names` choose.
    """
    networks = options.extra.get("networks", ",".join(NETWORKS)).split(",")
    rows = _numbers(options, "rows", "100" if options.quick else "100,300,1000,5000")
    repeats = 1 if options.quick else int(options.extra.get("repeats", 12))
    columns = (
        "network",
        "rows",
        "sample",
        "variables",
        "candidate",
        "log_loss",
        "class_distance",
        "edges",
        "true",
    )
    with _Sheet(options, "signal", columns) as sheet:
        for network in networks:
            for n in rows:
                for repeat in range(repeats):
                    rng = np.random.default_rng([options.seed, *network.encode(), n, repeat])
                    data, truth = sample(network, n, rng)
                    table = Table(data)
                    for candidate in _chosen(options):
                        if candidate.suits(table):
                            values = _recovery(candidate.table(table), truth, rng)
                            sheet.add(network, n, repeat, len(truth), candidate.name, *values, truth.sum())
    yield from _signal_summary(sheet.frame())


@case
def discrete_directions(options: Options) -> Iterator[Row]:
    """Directions that are invented: two variables, and the members of the classes of four."""
    rng = np.random.default_rng(options.seed)
    repeats = 5 if options.quick else 200
    pairs = [Table(dependent(2, rng)) for _ in range(repeats)]
    fours = [Table(dependent(4, rng)) for _ in range(repeats // 4)]
    graphs = all_dags(4)
    members = pd.Series(range(len(graphs))).groupby(class_keys(graphs)).indices.values()
    for candidate in _chosen(options):
        gaps = [_gap(candidate.table(table, structure_prior=False)) for table in pairs]
        split, spread = 0, 0.0
        for table in fours:
            scores = _graph_scores(candidate.table(table, structure_prior=False), graphs)
            for same in members:
                finite = np.isfinite(scores[same])
                split += int(finite.any() and not finite.all())
                spread = max(spread, np.ptp(scores[same][finite]) if finite.any() else 0.0)
        yield {
            "candidate": candidate.name,
            "largest_difference": float(max(gaps)),
            "mean_difference": float(np.mean(gaps)),
            "above_0.1": float(np.mean(np.array(gaps) > 0.1)),
            "split_classes": split,
            "largest_spread_in_class": float(spread),
        }


@case
def discrete_verdict(options: Options) -> Iterator[Row]:
    """The summary of both files of measurements, without measuring again."""
    yield from _noise_summary(pd.read_csv(_path(options, "noise")))
    yield from _signal_summary(pd.read_csv(_path(options, "signal")))


# -- measures ------------------------------------------------------------------------------------------------


def _recovery(scores: np.ndarray, truth: np.ndarray, rng: np.random.Generator) -> tuple[float, float, float]:
    """Log loss over ordered pairs, expected distance between classes (200 graphs), expected edges."""
    answer = exact.posterior(scores)
    probability = np.clip(answer.edge_probabilities, 1e-6, 1 - 1e-6)
    losses = -np.where(truth, np.log(probability), np.log1p(-probability))
    np.fill_diagonal(losses, 0.0)
    classes, true = cpdag(exact.sample(scores, 200, rng, exact=answer)), cpdag(truth)
    differs = (classes != true) | (classes != true).swapaxes(-1, -2)
    distance = np.triu(differs, 1).sum(axis=(1, 2)).mean()
    return float(losses.sum()), float(distance), float(answer.edge_probabilities.sum())


def _gap(scores: np.ndarray) -> float:
    """`|P(0 -> 1) − P(1 -> 0)|` of two variables."""
    edges = exact.posterior(scores).edge_probabilities
    return float(abs(edges[0, 1] - edges[1, 0]))


def _graph_scores(scores: np.ndarray, graphs: np.ndarray) -> np.ndarray:
    """Sum of the local scores of each graph, bool [n, d, d] -> [n]."""
    total = np.zeros(len(graphs))
    for node in range(len(scores)):
        others = np.delete(graphs[:, :, node], node, axis=1)
        total += scores[node, others @ (1 << np.arange(len(scores) - 1))]
    return total


# -- files and summaries -------------------------------------------------------------------------------------


def _path(options: Options, kind: str) -> Path:
    """The file of a round and what `suffix` adds to its name."""
    round, suffix = options.extra.get("round", "1"), options.extra.get("suffix", "")
    return FOLDER / f"{kind}-{round}{suffix}.csv"


class _Sheet:
    """Rows that are written as they come; a quick run writes none."""

    def __init__(self, options: Options, kind: str, columns: Sequence[str]):
        self._columns, self._rows = list(columns), []
        self._path = None if options.quick else _path(options, kind)

    def __enter__(self) -> _Sheet:
        if self._path:
            self._path.parent.mkdir(exist_ok=True)
            self._stream = self._path.open("w", newline="", encoding="utf-8")
            self._writer = csv.writer(self._stream, lineterminator="\n")
            self._writer.writerow(self._columns)
        return self

    def __exit__(self, *_: object) -> None:
        if self._path:
            self._stream.close()

    def add(self, *values: object) -> None:
        row = [float(f"{value:.4g}") if isinstance(value, float) else value for value in values]
        self._rows.append(row)
        if self._path:
            self._writer.writerow(row)
            self._stream.flush()

    def frame(self) -> pd.DataFrame:
        return pd.DataFrame(self._rows, columns=self._columns)


def _noise_summary(frame: pd.DataFrame) -> Iterator[Row]:
    """What the bar asks for, over the tables of at least 200 rows; those below beside."""
    for name in frame["candidate"].unique():
        of = frame["candidate"] == name
        edges, arrow, adjacency = (
            frame.loc[of & (frame["rows"] >= 200), column].to_numpy(float)
            for column in ("edges_per_variable", "arrow", "adjacency")
        )
        few = frame.loc[of & (frame["rows"] < 200), "edges_per_variable"].to_numpy(float)
        mean, arrows, adjacencies = edges.mean(), (arrow > 0.5).mean(), (adjacency > 0.5).mean()
        yield {
            "candidate": str(name),
            "tables": len(edges),
            "edges_per_variable": float(mean),
            "most": float(edges.max()),
            "arrow": float(arrows),
            "adjacency": float(adjacencies),
            "passes": str(bool(mean <= 0.3 and arrows <= 0.01 and adjacencies <= 0.1)),
            "below_200_rows": float(few.mean()) if len(few) else float("nan"),
        }


def _signal_summary(frame: pd.DataFrame) -> Iterator[Row]:
    """Means, and the differences to today's default on the same samples: all, and network by network."""
    keys = ["network", "rows", "sample"]
    today = frame[frame["candidate"] == TODAY].set_index(keys)
    for name, found in frame.groupby("candidate", sort=False):
        found = found.set_index(keys)
        same = today.loc[today.index.intersection(found.index)]
        row: Row = {"candidate": str(name), "samples": len(found)}
        for measure in ("log_loss", "class_distance"):
            difference = (found[measure] - same[measure]).dropna()
            row[measure] = float(found[measure].to_numpy(float).mean())
            row[f"{measure}_difference"] = float(difference.mean())
            row[f"{measure}_error"] = float(difference.sem())
        loss = (found["log_loss"] - same["log_loss"]).dropna().groupby("network")
        for network, differences in loss:
            row[f"{network}"] = f"{differences.mean():.2f} ± {differences.sem():.2f}"
        yield row


def _chosen(options: Options) -> list[Candidate]:
    candidates = ROUNDS[int(options.extra.get("round", 1))]
    names = options.extra.get("names", "")
    return [candidates[name] for name in names.split("|")] if names else list(candidates.values())


def _numbers(options: Options, name: str, default: str) -> list[int]:
    return [int(number) for number in options.extra.get(name, default).split(",")]
