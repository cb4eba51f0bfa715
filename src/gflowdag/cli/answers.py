"""Answers about finished runs, as the command line prints them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pandas as pd
from rich.table import Table
from rich.text import Text

from gflowdag.errors import DataError
from gflowdag.posterior import runs
from gflowdag.posterior.difference import Difference, difference
from gflowdag.posterior.effect import DiscreteEffect, LinearEffect, checked_level, named_setting
from gflowdag.posterior.mean_effect import MeanEffect
from gflowdag.posterior.posterior import Posterior
from gflowdag.runtime.messages import one_line, told_together

Effects = pd.DataFrame | list[LinearEffect | DiscreteEffect | MeanEffect]  # means of all pairs, or some pairs
Settings = tuple[str, str]  # of the cause, as they are written: the new one, and what it is compared with
_MOST_ROWS = 20  # of the effects of all pairs that are printed

if TYPE_CHECKING:
    from rich.console import Console


def difference_of_runs(first: Path, second: Path) -> Difference:
    """The difference of two runs, with the settings that differ where both are run folders."""
    posteriors = [Posterior.load(path) for path in (first, second)]
    settings = None
    if all((path / runs.CONFIG).exists() for path in (first, second)):
        settings = runs.differing_settings(runs.read_config(first), runs.read_config(second))
    return difference(*posteriors, settings=settings)


def difference_as_json(found: Difference) -> dict[str, Any]:
    """All of a difference, for a machine."""
    return {
        "summary": found.summary(),
        "edges": found.edges.to_dict(orient="records"),
        "settings": found.settings.to_dict(orient="records"),
        "only_first": found.only_first,
        "only_second": found.only_second,
        "unvouched": found.unvouched,
        "recoded": found.recoded,
    }


def print_difference(found: Difference, console: Console, rows: int) -> None:
    """The settings that differ, then the edges that differ by more than noise."""
    for setting, first, second in found.settings.itertuples(index=False, name=None):
        what = runs.HASHED.get(setting, setting)
        console.print(Text(one_line(f"{what}: {runs.brief(first)} → {runs.brief(second)}")))
    console.print(Text(one_line(found.summary())))
    changed = cast(Any, found.edges[found.edges["more_than_noise"]])
    if not len(changed):
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("edge", overflow="fold")
    for title in ("first", "second", "difference", "± error"):
        table.add_column(title, justify="right", no_wrap=True)
    for row in changed.head(rows).to_dict(orient="records"):
        table.add_row(
            Text(one_line(f"{row['source']} → {row['target']}")),
            f"{row['first']:.3f}",
            f"{row['second']:.3f}",
            f"{row['difference']:+.3f}",
            f"{row['error']:.3f}",
        )
    console.print(table)
    if len(changed) > rows:
        console.print(f"{len(changed) - rows:,} more: --rows, or --json for all.", style="dim")


def prepared(posterior: Posterior, table: Path | None, given: str | None) -> Posterior:
    """The posterior with what effects need, and with the graphs of a statement alone."""
    if table is not None:
        from gflowdag.data.formats import read_table

        posterior = posterior.with_parameters(read_table(table))
    return posterior if given is None else posterior.given(given)


def effects(
    posterior: Posterior, cause: str | None, outcome: str | None, draws: int | None, seed: int
) -> Effects:
    """Effects of one variable on another, of one on all others, or of all on all."""
    if cause is None:
        return posterior.effect_matrix(num_draws=min(draws or 1000, 1000), random_state=seed)
    outcomes = [outcome] if outcome is not None else [name for name in posterior.names if name != cause]
    if not outcomes:
        raise DataError("there is no other variable")
    return [posterior.effect(cause, name, num_draws=draws, random_state=seed) for name in outcomes]


def effects_as_json(found: Effects, level: float, settings: Settings | None = None) -> Any:
    """All of the effects, for a machine; of one pair the density too."""
    checked_level(level)
    if isinstance(found, pd.DataFrame):
        return [
            {"cause": found.index[i], "outcome": found.columns[j], "mean": float(found.to_numpy()[i, j])}
            for i, j in _largest_first(found)
        ]
    if settings is not None:
        return [row for one in found for row in contrasts(one, settings, level)]
    rows = [one.to_dict(level) for one in found]
    if len(found) == 1:
        draws = found[0].draws if isinstance(found[0], LinearEffect) else found[0].largest_change()
        rows[0]["density"] = draws.density().to_dict(orient="list") | {
            "none": draws.none,
            "mass_at_none": 1 - draws.probability,
        }
    return rows


def contrasts(one: Any, settings: Settings, level: float) -> list[dict[str, Any]]:
    """How the outcome differs between two settings of the cause: differences and ratios."""
    if isinstance(one, LinearEffect):
        raise DataError(
            f"The effect of {one.cause} is linear, the same from any value: leave --to and --base out"
        )
    is_discrete = isinstance(one, DiscreteEffect)
    known = one.cause_levels if is_discrete else one.settings
    to, base = (named_setting(one.cause, known, text) for text in settings)
    levels = [(outcome,) for outcome in one.outcome_levels] if is_discrete else [()]
    return [
        {
            "cause": one.cause,
            "outcome": one.outcome,
            **({"level": outcome[0]} if outcome else {}),
            "to": to,
            "base": base,
            "difference": one.difference(*outcome, to, base).to_dict(level),
            "ratio": one.ratio(*outcome, to, base).to_dict(level),
        }
        for outcome in levels
    ]


def print_effects(found: Effects, console: Console, level: float, settings: Settings | None = None) -> None:
    """Effects in sentences and tables."""
    checked_level(level)
    if isinstance(found, pd.DataFrame):
        _print_matrix(found, console)
        return
    for one in found:
        if settings is not None:
            _print_contrasts(contrasts(one, settings, level), console, level)
        elif isinstance(one, LinearEffect):
            _print_linear(one, console, level)
        elif isinstance(one, MeanEffect):
            _print_means(one, console, level)
        else:
            _print_discrete(one, console, level)
        if one.assumed:
            edges = ", ".join(f"{a} → {b}" for a, b in one.assumed)
            console.print(Text(one_line(f"Assumed by the score, not learnt from the data: {edges}")))


def print_trust_in_effects(posterior: Posterior, console: Console) -> None:
    """How far the graphs are to be trusted, and what an effect assumes beyond them."""
    found = posterior.diagnosis
    console.print(Text(f"{found.verdict.capitalize()}: {one_line(found.explanation)}"))
    console.print("Effects assume that these variables have no hidden common cause and no feedback.")


def _print_linear(one: LinearEffect, console: Console, level: float) -> None:
    draws = one.draws
    values = (draws.mean(), draws.median(), *draws.interval(level), draws.mean_if_present())
    mean, median, lower, upper, if_present = told_together(values)
    console.print(Text(one_line(f"{one.cause} on {one.outcome}: {one.meaning}")))
    console.print(
        f"  any effect with probability {one.probability:.4f}; mean {mean}, median {median}, {level:.0%} in "
        f"[{lower}, {upper}]; mean where there is one {if_present}"
    )


def _print_discrete(one: DiscreteEffect, console: Console, level: float) -> None:
    how = "" if one.is_exact else "; followed by simulated rows"
    console.print(
        Text(
            one_line(f"{one.cause} on {one.outcome}: any effect with probability {one.probability:.4f}{how}")
        )
    )
    printed = Table(box=None, pad_edge=False, header_style="bold")
    printed.add_column(Text(one_line(f"P({one.outcome} = … | do({one.cause} = …))")), overflow="fold")
    printed.add_column("mean", justify="right", no_wrap=True)
    printed.add_column(f"{level:.0%} interval", justify="right", no_wrap=True)
    rows: Any = one.table(level)
    for row in rows.to_dict(orient="records"):
        printed.add_row(
            Text(one_line(f"{row['level']} | {row['setting']}")),
            f"{row['mean']:.3f}",
            Text(f"[{row['lower']:.3f}, {row['upper']:.3f}]"),
        )
    console.print(printed)


def _print_means(one: MeanEffect, console: Console, level: float) -> None:
    told = f"any effect with probability {one.probability:.4f}. {one.meaning}"
    console.print(Text(one_line(f"{one.cause} on {one.outcome}: {told}")))
    printed = Table(box=None, pad_edge=False, header_style="bold")
    printed.add_column(Text(one_line(f"{one.outcome} | do({one.cause} = …)")), overflow="fold")
    printed.add_column("mean", justify="right", no_wrap=True)
    printed.add_column(f"{level:.0%} interval", justify="right", no_wrap=True)
    rows: Any = one.table(level)
    for row in rows.to_dict(orient="records"):
        mean, lower, upper = told_together([row["mean"], row["lower"], row["upper"]])
        printed.add_row(Text(one_line(str(row["setting"]))), mean, Text(f"[{lower}, {upper}]"))
    console.print(printed)


def _print_contrasts(rows: list[dict[str, Any]], console: Console, level: float) -> None:
    first = rows[0]
    told = f"any effect with probability {first['difference']['probability']:.4f}"
    what = f"{first['cause']} set to {first['to']}, compared with {first['base']}: {told}"
    console.print(Text(one_line(what)))
    printed = Table(box=None, pad_edge=False, header_style="bold")
    printed.add_column("", overflow="fold")
    for title in ("difference", f"{level:.0%} interval", "ratio, median", f"{level:.0%} interval"):
        printed.add_column(title, justify="right")
    for row in rows:
        name = f"P({row['outcome']} = {row['level']})" if "level" in row else row["outcome"]
        cells: list[Text] = []
        for draws, middle in ((row["difference"], "mean"), (row["ratio"], "median")):
            value, lower, upper = told_together([draws[middle], draws["lower"], draws["upper"]])
            cells += [Text(value), Text(f"[{lower}, {upper}]")]
        printed.add_row(Text(one_line(name)), *cells)
    console.print(printed)


def _print_matrix(means: pd.DataFrame, console: Console) -> None:
    printed = Table(box=None, pad_edge=False, header_style="bold")
    printed.add_column("effect", overflow="fold")
    printed.add_column("posterior mean", justify="right", no_wrap=True)
    pairs = _largest_first(means)
    console.print(Text(one_line(means.attrs["meaning"])))
    for i, j in pairs[:_MOST_ROWS]:
        name = one_line(f"{means.index[i]} on {means.columns[j]}")
        printed.add_row(Text(name), f"{means.to_numpy()[i, j]:.4g}")
    console.print(printed)
    if len(pairs) > _MOST_ROWS:
        console.print(f"{len(pairs) - _MOST_ROWS:,} more: --json has all.", style="dim")


def _largest_first(means: pd.DataFrame) -> list[tuple[int, int]]:
    """The ordered pairs by the size of their mean effect."""
    none = [1.0 if name in means.attrs["factors"] else 0.0 for name in means.columns]
    values = np.abs(means.to_numpy() - none)
    order = [divmod(int(flat), len(values)) for flat in np.argsort(-values, axis=None, kind="stable")]
    return [(i, j) for i, j in order if i != j]
