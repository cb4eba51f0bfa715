"""Effects of the settings of discrete variables in published networks, and linear ones beside sumu's Beeps.

What has to hold, from before anything was measured. Of each ordered pair one number counts: the change of
the probability of the outcome's most frequent level between the two most frequent settings of the cause.

1. With the true graph given (10,000 rows), the mean is within three posterior standard deviations of the
   truth for every pair with an effect; over all settings and levels, for 99 % of the differences (so many
   normal ones are beyond three by chance that "all" would fail with a right posterior).
2. With the graph learnt, 90 % intervals hold the truth for 85 % or more of the identified pairs, those
   without any effect counted or not. An effect is identified where no possibly directed path from cause to
   outcome in the CPDAG of the true graph starts with an undirected edge (Perkovic et al. 2017).

The true effects are sums over the true tables by `einsum`, which shares nothing with the package's own
elimination. Samples in which a column is constant are drawn again.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

import gflowdag as gd
from gflowdag.data import load_network
from gflowdag.errors import DataError
from gflowdag.graph import cpdag, transitive_closure
from gflowdag_lab.measurements.harness import Options, Row, case

METHODS = {"asia": "exact", "child": "parent-set-mcmc"}


@case
def effects_networks(options: Options) -> Iterator[Row]:
    """Asia and child: effects with the true graph and with the graph learnt; `rows`, `repeats`, `draws`."""
    num_rows = 500 if options.quick else int(options.extra.get("rows", 10_000))
    repeats = 1 if options.quick else int(options.extra.get("repeats", 3))
    draws = 200 if options.quick else int(options.extra.get("draws", 2000))
    for name in options.extra.get("networks", "asia" if options.quick else "asia,child").split(","):
        network: Any = load_network(name)
        identified = _identified(network.adjacency)
        for repeat in range(repeats):
            rng = np.random.default_rng([options.seed, *name.encode(), repeat])
            frame, data = _sample(network, num_rows, rng)
            learnt = gd.fit(data, method=METHODS[name], random_state=repeat)
            graph = network.graph.loc[list(learnt.names), list(learnt.names)].to_numpy()
            known = replace(
                learnt,
                samples=graph[None],
                log_weights=np.zeros(1),
                log_scores=None,
                marginals=None,
                path_marginals=None,
                best_graph=None,
            )
            for given, posterior in (("true graph", known), ("learnt graph", learnt)):
                started = time.process_time()
                found = list(_pairs(network, posterior, frame, identified, draws))
                yield {
                    "network": name,
                    "sample": repeat,
                    "given": given,
                    "verdict": posterior.diagnosis.verdict,
                    **_summary(found, given == "true graph"),
                    "cpu_seconds": round(time.process_time() - started, 1),
                }


@case
def effects_beeps(options: Options) -> Iterator[Row]:
    """Linear effects of one set of graphs by `effect`, by `total_effects` and by Beeps of sumu."""
    import sumu
    from sumu.beeps import beeps

    repeats = 1 if options.quick else int(options.extra.get("repeats", 5))
    for repeat in range(repeats):
        frame = gd.simulate.linear_gaussian(
            8, 200, noise_variance=1.0, random_state=options.seed + repeat
        ).frame
        frame = (frame - frame.mean()) / frame.std()
        post = gd.fit(frame, method="exact", num_samples=4000, random_state=repeat)
        ours: dict[Any, Any] = {
            (a, b): post.effect(a, b, num_draws=4000) for a in post.names for b in post.names if a != b
        }
        adjusted = gd.total_effects(post, frame).set_index(["source", "target"])
        np.random.seed(repeat)  # noqa: NPY002  (where sumu takes its random numbers)
        theirs = beeps(post.samples.transpose(0, 2, 1), sumu.Data(frame.to_numpy(), discrete=False))
        off = [(i, j) for i in range(8) for j in range(8) if i != j]  # its order: cause by cause
        rows = []
        for place, (i, j) in enumerate(off):
            one = ours[post.names[i], post.names[j]].draws
            spread = np.sqrt(one.weights @ np.square(one.values) - (one.weights @ one.values) ** 2 + 1e-12)
            rows.append(
                (
                    one.mean(),
                    theirs[:, place].mean(),
                    adjusted.loc[(post.names[i], post.names[j]), "mean"],
                    spread,
                    theirs[:, place].std(),
                )
            )
        mean, of_beeps, of_adjustment, spread, spread_of_beeps = np.array(rows).T
        yield {
            "sample": repeat,
            "pairs": len(off),
            "largest_mean": float(np.abs(mean).max()),
            "beeps_differs_by_at_most": float(np.abs(mean - of_beeps).max()),
            "adjustment_differs_by_at_most": float(np.abs(mean - of_adjustment).max()),
            "largest_error_of_4000_draws": float((spread / np.sqrt(4000)).max()),
            "median_ratio_of_spreads": float(np.median(spread_of_beeps / spread)),
        }


def _sample(network: Any, num_rows: int, rng: np.random.Generator) -> tuple[Any, gd.Dataset]:
    while True:
        frame = network.sample(num_rows, rng)
        try:
            return frame, gd.Dataset.from_frame(frame)
        except DataError:
            continue


def _pairs(
    network: Any, posterior: gd.Posterior, frame: Any, identified: np.ndarray, draws: int
) -> Iterator[dict[str, Any]]:
    """Every ordered pair: the effect that counts and, of graphs that are known, all others."""
    descends = transitive_closure(network.adjacency)
    for i, j in np.argwhere(~np.eye(len(network.names), dtype=bool)):
        if not identified[i, j] and posterior.num_samples > 1:
            continue
        if not descends[i, j] and posterior.num_samples == 1:
            continue
        cause, outcome = network.names[i], network.names[j]
        found: Any = posterior.effect(cause, outcome, num_draws=draws)
        truth = _truth(network, int(i), int(j))
        levels = list(network.levels[i]), list(network.levels[j])
        to, base = frame[cause].value_counts().index[:2]
        most = frame[outcome].value_counts().index[0]
        b = levels[1].index(most)
        true = truth[levels[0].index(to), b] - truth[levels[0].index(base), b]
        one = found.difference(most, to, base)
        low, high = one.interval(0.9)
        rounding = 1e-12
        settings = [level for level in found.cause_levels if level != base]
        every = [
            (found.difference(y, x, base), truth[levels[0].index(x), k] - truth[levels[0].index(base), k])
            for x in settings
            for k, y in enumerate(levels[1])
            if y in found.outcome_levels
        ]
        yield {
            "has_effect": bool(descends[i, j]),
            "deviations": abs(one.mean() - true) / _spread(one),
            "held": low - rounding <= true <= high + rounding,
            "every": [abs(draw.mean() - value) / _spread(draw) for draw, value in every],
        }


def _spread(draws: Any) -> float:
    second = draws.weights @ np.square(draws.values)
    return float(np.sqrt(max(second - draws.mean() ** 2, 1e-24)))


def _summary(found: list[dict[str, Any]], is_given: bool) -> Row:
    some = [one for one in found if one["has_effect"]]
    if is_given:
        every = np.concatenate([one["every"] for one in some])
        return {
            "pairs": len(some),
            "largest_deviation": max(one["deviations"] for one in some),
            "beyond_three": sum(one["deviations"] > 3 for one in some),
            "differences": len(every),
            "differences_within_three": float((every <= 3).mean()),
        }
    return {
        "pairs": len(found),
        "held": float(np.mean([one["held"] for one in found])),
        "pairs_with_effect": len(some),
        "held_with_effect": float(np.mean([one["held"] for one in some])),
    }


def _truth(network: Any, i: int, j: int) -> np.ndarray:
    """`P(j | do(i))`, [levels of i, levels of j], by one sum over the true tables."""
    above = transitive_closure(network.adjacency)[:, j]
    above[j] = True
    operands: list[Any] = [np.ones(len(network.levels[i])), [i]]
    for node in np.flatnonzero(above):
        if node != i:
            operands += [network.tables[node], [*network.parents[node], int(node)]]
    return np.asarray(np.einsum(*operands, [i, j], optimize="greedy"))


def _identified(graph: np.ndarray) -> np.ndarray:
    """Which effects the equivalence class of a graph decides, bool [d, d]."""
    pattern = np.asarray(cpdag(graph)).astype(bool)
    undirected = pattern & pattern.T
    d = len(graph)
    out = ~np.eye(d, dtype=bool)
    for i in range(d):
        steps = pattern.copy()  # along edges, and either way along undirected ones, not through i
        steps[i] = steps[:, i] = False
        reach = _reach(steps)
        for first in np.flatnonzero(undirected[i]):
            out[i, first] = False
            out[i] &= ~reach[first]
    return out


def _reach(steps: np.ndarray) -> np.ndarray:
    found = steps.copy()
    for _ in range(len(steps)):
        found |= (found.astype(np.int64) @ steps) > 0
    return found
