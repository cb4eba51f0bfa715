"""How often an answer says "trusted" and is wrong: small hard posteriors, every method that judges itself.

What counts, fixed before anything was measured: an answer is *false trust* if its verdict is "trusted" and an
edge probability is more than 0.05 from the exact one. The bar is fewer than one in a thousand of the trusted
answers at default options, over all families but the needle, which no chain of small steps can find. Short
runs, and runs of few chains, are to provoke it; each case found there is explained too.

Rows are kept in a file as they come, and what stands there is not run again. Several processes may share the
runs (`part=1/4`), each with a file of its own; `take=FOLDER` puts the rows of such files into the one that is
kept.
"""

from __future__ import annotations

import csv
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import beta

from gflowdag.estimators import estimator_class
from gflowdag.runtime import atomic_write
from gflowdag_lab.measurements.hard_posteriors import FAMILIES, exact_edges, fit, hard_posterior
from gflowdag_lab.measurements.harness import Options, Row, case
from gflowdag_lab.paper.fits import commit

FOLDER = Path("docs/laboratory/trust")
KEPT = FOLDER / "runs.csv"
TOLERATED = 0.05  # error of an edge probability in an answer that says "trusted"
NEEDLE = "needle"
ALL = "all methods"
COLUMNS: tuple[str, ...] = (
    "family",
    "seed",
    "variables",
    "method",
    "options",
    "verdict",
    "error",
    "stated",
    "r_hat",
    "ess",
)
COLUMNS += ("cpu_s", "commit")

Fit = dict[str, str]  # a row of the file: what was asked, what came out


class Setting(NamedTuple):
    """Options of a method, and which of the problems it is run on."""

    method: str
    name: str  # "default", or what is short about it
    options: dict[str, Any]
    variables: int
    every: int  # of so many problems of a family one


Task = tuple[int, str, Setting]  # the seed of a problem, its family, and what is run on it
CHAIN, NET = 5, 4  # variables: 29,281 and 543 graphs
FEW = {"num_samples": 50}  # graphs drawn from what the chains recorded: of no account for edges and verdict
MOST = {"iterations": 8192} | FEW  # sweeps; without a limit chains that do not agree go on for half an hour
SHORT = {"num_chains": 64, "thinning": 10} | FEW
SETTINGS = (
    # These chains stop as soon as they are trusted: their defaults are as short as an answer can be.
    Setting("parent-set-mcmc", "default", MOST, CHAIN, 1),
    Setting("parent-set-mcmc", "4 chains", {"num_chains": 4} | MOST, CHAIN, 8),
    Setting("parent-set-mcmc", "narrow", {"core_size": 0, "num_outsiders": 1} | MOST, CHAIN, 98),
    Setting("order-mcmc", "default", FEW, NET, 7),
    Setting("order-mcmc", "4 chains", {"num_chains": 4} | FEW, CHAIN, 49),
    Setting("order-mcmc", "16 chains, 150 steps", {"num_chains": 16, "iterations": 150} | FEW, CHAIN, 2),
    Setting("mc3", "default", FEW, CHAIN, 14),
    Setting("mc3", "4 chains, no burn-in", {"num_chains": 4, "burn_in": 0} | FEW, CHAIN, 49),
    Setting("mc3", "64 chains, 5,000 steps", SHORT | {"num_steps": 5000, "burn_in": 1000}, CHAIN, 1),
    Setting("mc3", "64 chains, 1,000 steps", SHORT | {"num_steps": 1000, "burn_in": 200}, CHAIN, 1),
    Setting("gadget", "default", FEW, CHAIN, 98),
    Setting("order-gflownet", "default", {}, NET, 8),
    Setting("order-gflownet", "100 iterations", {"iterations": 100}, NET, 8),
    Setting("dag-gflownet", "default", {}, NET, 8),
    Setting("dag-gflownet", "200 iterations", {"iterations": 200}, NET, 8),
)


@case
def false_trust(options: Options) -> Iterator[Row]:
    """Share of "trusted" answers that are wrong by more than 0.05, by method and by family.

    `problems` of each family, `seconds` of processor time at most, `methods`, `families`, `file` choose;
    `only-default=yes` leaves out what is short. `part=I/N` is the I-th of N shares of these runs;
    `take=FOLDER` runs nothing and takes over the rows of the files in a folder.
    """
    extra = options.extra
    path = Path(extra.get("file", KEPT))
    if "take" in extra:
        take_over(Path(extra["take"]), path)
    elif options.quick:
        short = [task for task in _tasks(1, extra) if task[2].method in ("parent-set-mcmc", "mc3")][:4]
        yield from summary([_run(*task) for task in short])
        return
    else:
        tasks = _tasks(int(extra.get("problems", 120)), extra)
        part, parts = map(int, extra.get("part", "1/1").split("/"))
        _measure(tasks[part - 1 :: parts], path, float(extra.get("seconds", "inf")))
    yield from summary(stored(path))


def _tasks(problems: int, extra: dict[str, str]) -> list[Task]:
    """The runs that are asked for: all settings on the first problems, then on the next."""
    methods = extra.get("methods", ",".join({setting.method: 0 for setting in SETTINGS})).split(",")
    families = extra.get("families", ",".join(FAMILIES)).split(",")
    return [
        (seed, family, setting)
        for seed in range(problems)
        for setting in SETTINGS
        for number, family in enumerate(families)
        if setting.method in methods
        and (seed + number) % setting.every == 0
        and (setting.name == "default" or "only-default" not in extra)
    ]


def take_over(folder: Path, path: Path) -> None:
    """Add the runs in the files of a folder to those of a file: of two that are the same, the first stays."""
    rows = {_key(row): row for file in sorted(folder.glob("*.csv"), reverse=True) for row in stored(file)}
    rows |= {_key(row): row for row in stored(path)}
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as stream:
        writer = csv.DictWriter(stream, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows[key] for key in sorted(rows, key=lambda key: (key[2:], int(key[0]), key[1])))


def _key(row: Fit) -> tuple[str, str, str, str]:
    """What was run on what."""
    return row["seed"], row["family"], row["method"], row["options"]


def stored(path: Path) -> list[Fit]:
    """The rows of a file; none where it is not there."""
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    return [row for row in rows if None not in row.values()]  # a killed run may leave half a row at the end


def _measure(tasks: list[Task], path: Path, seconds: float) -> None:
    """Run what is not in the file, nor in the one that is kept, until all is there or the time is over."""
    done = {_key(row) for row in [*stored(KEPT), *stored(path)]}
    path.parent.mkdir(parents=True, exist_ok=True)
    is_new = not path.exists()
    started = time.process_time()
    with path.open("a", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, COLUMNS, lineterminator="\n")
        if is_new:
            writer.writeheader()
        for seed, family, setting in tasks:
            if (str(seed), family, setting.method, setting.name) in done:
                continue
            if time.process_time() - started > seconds:
                break
            writer.writerow(_run(seed, family, setting))
            stream.flush()


def _run(seed: int, family: str, setting: Setting) -> Fit:
    problem = hard_posterior(family, seed, setting.variables)
    exact = exact_edges(family, seed, setting.variables)
    started = time.process_time()
    found = fit(estimator_class(setting.method), problem, random_state=seed, **setting.options)
    seconds = time.process_time() - started
    diagnosis = found.diagnosis
    numbers = {
        "error": np.abs(found.edge_probabilities().to_numpy() - exact).max(),
        "stated": None if diagnosis.edge_errors is None else diagnosis.edge_errors.max(),
        "r_hat": diagnosis.r_hat,
        "ess": diagnosis.ess,
        "cpu_s": seconds,
    }
    names = (family, str(seed), str(setting.variables), setting.method, setting.name, diagnosis.verdict)
    row = dict(zip(COLUMNS, names, strict=False))
    row |= {name: "" if number is None else f"{number:.4g}" for name, number in numbers.items()}
    return row | {"commit": commit()}


def summary(rows: list[Fit]) -> Iterator[Row]:
    """By method and options without the needle, all chains and all networks, and the needle by method."""
    counted = [row for row in rows if row["family"] != NEEDLE]
    for is_default in (True, False):
        kind = [row for row in counted if (row["options"] == "default") == is_default]
        options = "default" if is_default else "short"
        for method in _different(kind, "method"):
            yield {"of": method, "options": options} | counts(
                [row for row in kind if row["method"] == method]
            )
        yield {"of": ALL, "options": options} | counts(kind)
    needles = [row for row in rows if row["family"] == NEEDLE]
    for method in _different(needles, "method"):
        yield {"of": method, "options": NEEDLE} | counts([row for row in needles if row["method"] == method])


def summary_by_family(rows: list[Fit]) -> Iterator[Row]:
    """By family, of all methods and options."""
    for family in _different(rows, "family"):
        yield {"family": family} | counts([row for row in rows if row["family"] == family])


def _different(rows: list[Fit], column: str) -> list[str]:
    return list(dict.fromkeys(row[column] for row in rows))


def is_false_trust(row: Fit) -> bool:
    """Whether an answer is trusted, and wrong by more than is tolerated."""
    return row["verdict"] == "trusted" and float(row["error"]) > TOLERATED


def counts(rows: list[Fit]) -> Row:
    """How many answers there are, are trusted, are false trust, and how many of the trusted that may be."""
    errors = [float(row["error"]) for row in rows if row["verdict"] == "trusted"]
    false = sum(map(is_false_trust, rows))
    return {
        "runs": len(rows),
        "trusted": len(errors),
        "false": false,
        "share_at_most": upper_bound(false, len(errors)),
        "largest_trusted_error": max(errors, default=0.0),
    }


def upper_bound(hits: int, runs: int, confidence: float = 0.95) -> float:
    """The largest share that is compatible with so many hits in so many runs (Clopper & Pearson)."""
    return float(beta.ppf(confidence, hits + 1, runs - hits)) if hits < runs else 1.0
