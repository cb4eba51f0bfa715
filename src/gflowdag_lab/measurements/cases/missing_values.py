"""Tables with gaps: imputation against leaving rows out, on tables of the score's own prior.

How it is judged, fixed before anything was measured. Tables come from `simulate.from_prior` and lose a tenth
or three tenths of their cells: completely at random, or at random given the first column, which has no gaps
(the more likely, the higher its rank). A setting is one score, size, share and way of losing cells.

- *Calibrated*: as on the page on calibration, the smallest of five p-values times five is above 0.01. The
  ranks use a score of the rows without gaps, since they may depend on nothing that was not observed.
- *Better*: the log loss of the edges of the true graph, probabilities kept within 10⁻⁴ of 0 and 1, is smaller
  than that of the exact posterior of the rows without gaps, in the mean over all settings; and in no setting
  is it larger by two standard errors of the mean difference.
- Gaps filled by the mean or the most frequent level of their column, and fitted exactly, are measured beside,
  to see that the tests see: at 5 variables and three tenths they must not be calibrated. With 200 tables one
  of four passed. So imputation is also tested on as many tables as it takes to see all four: their *power*
  with n tables is the share of disjoint groups of n in which they are not calibrated, and imputation at 5
  variables and three tenths is run on the smallest n of 50, 100, 200, 400, 800 that has 0.9 in all four.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import rankdata

import gflowdag as gd
from gflowdag import BDeu, BGe, ConditionalGaussian, Dataset, GeneralizedLinear, exact, simulate
from gflowdag.errors import DataError, ScoreError
from gflowdag.score import make_score
from gflowdag_lab.measurements.calibration import TESTS, Answer, Collected, Table, adjusted
from gflowdag_lab.measurements.harness import Options, Row, case

LIMIT = 0.01  # smallest p-value of a setting, times its tests
_NEAREST = 1e-4  # that a probability comes to 0 and 1 in the log loss
_SIZES = {5: 60, 8: 100, 12: 200}  # rows, by the number of variables
_LEVELS = (2, 3)  # of discrete columns, in turn
_WAYS = ("completely at random", "at random")
_SCORES = (BGe(), BDeu(), ConditionalGaussian(), GeneralizedLinear())
_GROUPS = (50, 100, 200, 400, 800)  # tables at a time, for the power of the tests


class Setting(NamedTuple):
    score: BGe | BDeu | ConditionalGaussian | GeneralizedLinear
    num_variables: int
    share: float
    way: str

    @property
    def num_levels(self) -> tuple[int, ...]:
        """Of each column, 0 for a continuous one; of both kinds every second column is discrete."""
        levels = [_LEVELS[j % len(_LEVELS)] for j in range(self.num_variables)]
        if isinstance(self.score, BGe):
            return (0,) * self.num_variables
        if isinstance(self.score, BDeu):
            return tuple(levels)
        return tuple(0 if j % 2 else levels[j // 2] for j in range(self.num_variables))


class Drawn(NamedTuple):
    whole: pd.DataFrame
    holed: pd.DataFrame
    data: Dataset  # with gaps
    truth: np.ndarray  # bool [d, d]


@case
def missing_values(options: Options) -> Iterator[Row]:
    """Calibration and log loss, imputed and rows dropped.

    `sizes`, `scores`, `shares`, `ways` and `tables` choose; with `completions=default` the chains go on until
    they agree, as in a fit.
    """
    sizes = [int(size) for size in options.extra.get("sizes", "5,8,12").split(",")]
    names = options.extra.get("scores", "BGe,BDeu").split(",")
    shares = [float(share) for share in options.extra.get("shares", "0.1,0.3").split(",")]
    ways = options.extra.get("ways", ",".join(_WAYS)).split(",")
    completions = options.extra.get("completions", "160")
    completions = None if completions == "default" else int(completions)
    num_tables = 2 if options.quick else int(options.extra.get("tables", 50))
    for size in sizes:
        for score in (score for score in _SCORES if type(score).__name__ in names):
            for share in shares:
                for way in ways:
                    setting = Setting(score, size, share, way)
                    yield _row(setting, num_tables, completions, options.seed)


@case
def missing_values_filled(options: Options) -> Iterator[Row]:
    """The same tables with gaps filled by means or modes: the tests must see that this is wrong.

    `scores` and `tables` choose.
    """
    names = options.extra.get("scores", "BGe,BDeu").split(",")
    num_tables = 20 if options.quick else int(options.extra.get("tables", 800))
    for score in (score for score in _SCORES if type(score).__name__ in names):
        for way in _WAYS:
            setting = Setting(score, 5, 0.3, way)
            collected = Collected()
            for number in range(num_tables):
                rng = np.random.default_rng([options.seed, number])
                drawn = _drawn(setting, rng)
                _add(collected, drawn, setting, _exactly(_filled(drawn), setting, rng), rng)
            power = {f"seen_with_{n}": _seen(collected.groups(n)) for n in _GROUPS if n <= num_tables}
            yield {
                **_named(setting),
                "answer": "filled in",
                "tables": num_tables,
                **_tested(collected),
                **power,
            }


def _row(setting: Setting, num_tables: int, completions: int | None, seed: int) -> Row:
    collected = Collected()
    losses: dict[str, list[float]] = {"imputed": [], "dropped": [], "whole": []}
    seconds = dict.fromkeys(("imputed", "dropped"), 0.0)
    trusted, r_hats, between = 0, [], []
    for number in range(num_tables):
        rng = np.random.default_rng([seed, number])
        drawn = _drawn(setting, rng)
        started = time.process_time()
        post = gd.fit(
            drawn.data,
            method="exact",
            score=setting.score,
            prior="fair",
            num_samples=999,
            completions=completions,
            random_state=rng,
        )
        seconds["imputed"] += time.process_time() - started
        imputed = Answer(post.edge_probabilities().to_numpy(), post.samples)
        _add(collected, drawn, setting, imputed, rng)
        told = post.diagnostics().imputation
        assert told is not None
        r_hats.append(told.r_hat)
        between.append(told.between_share or 0.0)
        trusted += post.diagnostics().verdict == "trusted"
        started = time.process_time()
        dropped = _exactly(drawn.data.take(drawn.data.is_complete), setting, rng)
        seconds["dropped"] += time.process_time() - started
        whole = _exactly(_coded(drawn.whole, setting), setting, rng)
        for name, answer in (("imputed", imputed), ("dropped", dropped), ("whole", whole)):
            losses[name].append(_log_loss(answer.edges, drawn.truth))
    gain = np.array(losses["dropped"]) - np.array(losses["imputed"])
    return {
        **_named(setting),
        "tables": num_tables,
        **_tested(collected),
        **{f"log_loss_{name}": float(np.mean(values)) for name, values in losses.items()},
        "gain": float(gain.mean()),
        "gain_error": float(gain.std(ddof=1) / np.sqrt(num_tables)),
        "between_share": float(np.mean(between)),
        "r_hat_median": float(np.median(r_hats)),
        "trusted": trusted,
        "completions": completions or "default",
        **{f"cpu_seconds_{name}": value / num_tables for name, value in seconds.items()},
        "curve": collected.curve(),
    }


def _named(setting: Setting) -> Row:
    return {
        "score": type(setting.score).__name__,
        "variables": setting.num_variables,
        "rows": _SIZES[setting.num_variables],
        "share": setting.share,
        "way": setting.way,
    }


def _tested(collected: Collected) -> Row:
    found = collected.p_values()
    smallest = adjusted(list(found.values()))
    return {
        **{name: found[name] for name in TESTS},
        "adjusted": smallest,
        "calibrated": str(smallest > LIMIT),
    }


def _seen(groups: list[Collected]) -> str:
    """In how many groups of tables the answers are not calibrated."""
    seen = sum(adjusted(list(group.p_values().values())) <= LIMIT for group in groups)
    return f"{seen} of {len(groups)}"


def _drawn(setting: Setting, rng: np.random.Generator) -> Drawn:
    """A table and the same with gaps; one that is refused is drawn again."""
    while True:
        drawn = simulate.from_prior(
            setting.num_variables,
            _SIZES[setting.num_variables],
            score=setting.score,
            prior="fair",
            num_levels=setting.num_levels,
            random_state=rng,
        )
        holed = drawn.frame.mask(_gaps(drawn.frame, setting, rng))
        try:
            _coded(drawn.frame, setting)
            return Drawn(drawn.frame, holed, _coded(holed, setting), drawn.truth.to_numpy())
        except (DataError, ScoreError):
            continue


def _gaps(frame: pd.DataFrame, setting: Setting, rng: np.random.Generator) -> np.ndarray:
    """Which cells are lost, bool [n, d]."""
    lost = rng.random(frame.shape)
    if setting.way == "completely at random":
        return lost < setting.share
    first = frame.iloc[:, 0]
    numbers = first.cat.codes if isinstance(first.dtype, pd.CategoricalDtype) else first
    chance = 2 * setting.share * (rankdata(numbers) - 0.5) / len(frame)
    gaps = lost < chance[:, None]
    gaps[:, 0] = False
    return gaps


def _coded(frame: pd.DataFrame, setting: Setting) -> Dataset:
    kinds: Any = {
        name: "discrete" if levels else "continuous"
        for name, levels in zip(frame.columns, setting.num_levels, strict=True)
    }
    return Dataset.from_frame(frame, kinds=kinds, standardize=False)


def _filled(drawn: Drawn) -> Dataset:
    """The gaps filled by the mean of their column or its most frequent level."""
    values = drawn.data.values.copy()
    for column, kind in zip(values.T, drawn.data.kinds, strict=True):
        seen = column[~np.isnan(column)]
        fill = seen.mean() if kind == "continuous" else np.bincount(seen.astype(int)).argmax()
        column[np.isnan(column)] = fill
    return Dataset(drawn.data.columns, values)


def _exactly(data: Dataset, setting: Setting, rng: np.random.Generator) -> Answer:
    table = make_score(data, score=setting.score, prior="fair").dense_table()
    posterior = exact.posterior(table)
    return Answer(posterior.edge_probabilities, exact.sample(table, 999, rng, exact=posterior))


def _add(
    collected: Collected, drawn: Drawn, setting: Setting, answer: Answer, rng: np.random.Generator
) -> None:
    complete = drawn.data.take(drawn.data.is_complete)
    score = make_score(complete, score=setting.score, prior="fair")
    collected.add(Table(complete, drawn.truth, setting.score, score), answer, rng)


def _log_loss(edges: np.ndarray, truth: np.ndarray) -> float:
    """Mean over the ordered pairs, in nats."""
    off = ~np.eye(len(truth), dtype=bool)
    p = np.clip(edges[off], _NEAREST, 1 - _NEAREST)
    return float(-np.where(truth[off], np.log(p), np.log1p(-p)).mean())
