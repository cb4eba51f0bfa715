"""Experiments chosen by expected information, against experiments at random and at the most uncertain edge.

What has to hold, from before anything was measured: over the networks of one kind (40 by default), with the
mean of the log loss of the true graph over all stages after the first experiment as the measure, choosing by
`Posterior.next_experiments` is better than choosing at random, and better than setting a variable of the most
uncertain edge, each by more than two standard errors of the paired difference.

Five variables, so that the posterior after every experiment is exact: all 29,281 graphs are scored. Everybody
starts from the same rows without interventions. An experiment has `rows` rows in which one variable is set:
a number to draws from N(0, 1) in the units of the standardised column, a level to any of them alike. The most
uncertain edge is the pair of variables whose three states (→, ←, none) have the largest entropy; one end
of it, at random, is set.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import gflowdag as gd
from gflowdag.errors import DataError
from gflowdag.graph import all_dags, compress, parent_masks
from gflowdag.runtime import atomic_write, read_json
from gflowdag.score import make_score
from gflowdag_lab.measurements.harness import Options, Row, case

_D = 5
_STORED = Path("docs/laboratory/next-experiment.json")
_STYLES = (("#0b5cab", "-"), ("#8a8a8a", "--"), ("#b3661b", ":"))  # of the curves


@case
def next_experiment(options: Options) -> Iterator[Row]:
    """Log loss and entropy by number of experiments; `networks`, `start`, `rows`, `experiments`."""
    number = 2 if options.quick else int(options.extra.get("networks", 40))
    start = int(options.extra.get("start", 60))
    num_rows = int(options.extra.get("rows", 20))
    stages = 2 if options.quick else int(options.extra.get("experiments", 3))
    every = _Graphs()
    for kind in options.extra.get("kinds", "continuous,discrete").split(","):
        curves: dict[str, list[np.ndarray]] = {name: [] for name in STRATEGIES}
        seconds = dict.fromkeys(STRATEGIES, 0.0)
        for index in range(number):
            drawn, data = _start(kind, start, options.seed * 10_000 + index)
            for name, choose in STRATEGIES.items():
                rng = np.random.default_rng([options.seed, index])
                began = time.process_time()
                curves[name].append(_curve(every, drawn, data, choose, num_rows, stages, rng))
                seconds[name] += time.process_time() - began
        for name, found in curves.items():
            mean = np.mean(found, axis=0)  # [1 + stages, 2]
            for stage in range(stages + 1):
                yield {
                    "kind": kind,
                    "strategy": name,
                    "networks": number,
                    "experiments": stage,
                    "log_loss": float(mean[stage, 0]),
                    "entropy": float(mean[stage, 1]),
                    "cpu_seconds": round(seconds[name], 1),
                }
        for rival in list(STRATEGIES)[1:]:
            difference = np.array(curves[rival]) - np.array(curves["expected information"])
            of_network = difference[:, 1:].mean(axis=1)  # [networks, 2]
            error = of_network.std(axis=0, ddof=1) / np.sqrt(number)
            yield {
                "kind": kind,
                "strategy": f"{rival} less expected information",
                "networks": number,
                "log_loss": float(of_network[:, 0].mean()),
                "log_loss_error": float(error[0]),
                "entropy": float(of_network[:, 1].mean()),
                "entropy_error": float(error[1]),
            }


@case
def next_experiment_picture(options: Options) -> Iterator[Row]:
    """The curves of `docs/laboratory/next-experiment.json` as a picture."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    rows = [row for row in read_json(_STORED)["rows"] if "experiments" in row]
    kinds = list(dict.fromkeys(row["kind"] for row in rows))
    figure = Figure(figsize=(3.6 * len(kinds), 3), layout="constrained")
    for ax, kind in zip(figure.subplots(1, len(kinds), squeeze=False)[0], kinds, strict=True):
        for name, (colour, dashes) in zip(STRATEGIES, _STYLES, strict=True):
            curve = [row for row in rows if (row["kind"], row["strategy"]) == (kind, name)]
            stages = [row["experiments"] for row in curve]
            ax.plot(stages, [row["log_loss"] for row in curve], dashes, color=colour, marker="o", label=name)
        ax.set(title=kind, xlabel="experiments", xticks=stages, ylabel="log loss of the true graph, nats")
        ax.spines[["top", "right"]].set_visible(False)
    figure.axes[0].legend(frameon=False, fontsize=8)
    path = Path("docs/images/next-experiment.png")
    with atomic_write(path, "wb") as stream:
        FigureCanvasAgg(figure).print_png(stream)
    yield {"picture": str(path), "curves": len(kinds) * len(STRATEGIES)}


class _Graphs:
    """All graphs, and the place of each parent set in a table of local scores."""

    def __init__(self) -> None:
        self.graphs = all_dags(_D)
        nodes = np.arange(_D)
        self.sets = compress(parent_masks(self.graphs), nodes)  # [n, d]

    def log_scores(self, score: Any) -> np.ndarray:
        return score.dense_table()[np.arange(_D), self.sets].sum(axis=1)


def _start(kind: str, num_rows: int, seed: int) -> tuple[Any, gd.Dataset]:
    for attempt in range(100):
        random_state = np.random.default_rng([seed, attempt])
        if kind == "continuous":
            drawn = gd.simulate.linear_gaussian(_D, num_rows, noise_variance=1.0, random_state=random_state)
        else:
            drawn = gd.simulate.discrete(_D, num_rows, num_levels=2, random_state=random_state)
        try:
            return drawn, gd.Dataset.from_frame(drawn.frame)
        except DataError:  # a constant column
            continue
    raise RuntimeError("no table without a constant column")


def _curve(
    every: _Graphs,
    drawn: Any,
    data: gd.Dataset,
    choose: Callable[..., int],
    num_rows: int,
    stages: int,
    rng: np.random.Generator,
) -> np.ndarray:
    """Log loss of the true graph and entropy of the posterior, before and after each experiment."""
    truth = int(np.flatnonzero((every.graphs == drawn.truth.to_numpy()).all(axis=(1, 2)))[0])
    out = []
    for stage in range(stages + 1):
        score = make_score(data)
        logs = every.log_scores(score)
        logs -= np.logaddexp.reduce(logs)
        p = np.exp(logs)
        out.append((-logs[truth], -(p[p > 0] * logs[p > 0]).sum()))
        if stage < stages:
            post = gd.Posterior(
                every.graphs[rng.choice(len(p), 1000, p=p / p.sum())],
                data.names,
                parameters=score.likelihood.parameter_posterior,
            )
            data = data.concatenate(_experiment(drawn, data, choose(post, num_rows, rng), num_rows, rng))
    return np.array(out)


def _experiment(
    drawn: Any, data: gd.Dataset, target: int, num_rows: int, rng: np.random.Generator
) -> gd.Dataset:
    """Rows of the true network in which one variable is set."""
    mask = np.zeros((num_rows, _D), bool)
    mask[:, target] = True
    if data.is_discrete:
        frame = drawn.network.sample(num_rows, rng, intervened=mask)
        return data.like(frame, interventions=mask)
    values = np.zeros((num_rows, _D))  # the network's own interventions are in units of the raw column
    mean, deviation = data.columns[target].scaling or (0.0, 1.0)
    network = drawn.network
    left, placed = list(range(_D)), np.zeros(_D, bool)
    while left:
        node = next(v for v in left if not (network.adjacency[:, v] & ~placed).any())
        noise = rng.normal(0.0, np.sqrt(network.variances[node]), num_rows)
        values[:, node] = network.intercepts[node] + values @ network.weights[:, node] + noise
        if node == target:
            values[:, node] = mean + deviation * rng.normal(size=num_rows)
        placed[node] = True
        left.remove(node)
    frame = drawn.frame.iloc[:0].reindex(range(num_rows))
    frame[:] = values
    return data.like(frame, interventions=mask)


def _by_information(post: gd.Posterior, num_rows: int, rng: np.random.Generator) -> int:
    found = post.next_experiments(num_rows=num_rows, num_outcomes=100, random_state=rng)
    return post.names.index(next(one.target for one in found.experiments if one.target is not None))


def _at_random(post: gd.Posterior, num_rows: int, rng: np.random.Generator) -> int:
    return int(rng.integers(post.num_variables))


def _most_uncertain_edge(post: gd.Posterior, num_rows: int, rng: np.random.Generator) -> int:
    p = post.edge_probabilities().to_numpy()
    states = np.stack([p, p.T, 1 - p - p.T]).clip(1e-12, 1)
    entropy = -(states * np.log(states)).sum(axis=0)
    np.fill_diagonal(entropy, -1)
    ends = np.unravel_index(int(entropy.argmax()), entropy.shape)
    return int(ends[rng.integers(2)])


STRATEGIES: dict[str, Callable[..., int]] = {
    "expected information": _by_information,
    "at random": _at_random,
    "most uncertain edge": _most_uncertain_edge,
}
