"""Two posteriors compared: which edges changed, by more than sampling noise or not, and which settings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import pandas as pd  # pyright: ignore[reportMissingTypeStubs]
from numpy.typing import NDArray
from scipy.special import ndtri

from gflowdag.data.columns import Column
from gflowdag.data.description import TableDescription
from gflowdag.errors import DataError
from gflowdag.posterior.estimates import ROUNDING
from gflowdag.posterior.posterior import Posterior
from gflowdag.runtime.messages import counted, shown

FALSE_ALARM = 0.01  # probability that noise alone makes any edge of the table "more than noise"


@dataclass(frozen=True)
class Difference:
    """What changed from one posterior to another.

    Attributes:
        edges: one row for each ordered pair of variables that both have, largest difference first: `source`,
            `target`, `first` and `second` probability, `difference` (second − first), `error`, its
            Monte-Carlo standard error, and `more_than_noise`.
        settings: those that differ: `setting`, `first`, `second`.
        only_first: variables that the second lacks.
        only_second: variables that the first lacks.
        unvouched: which of the two are neither exact nor trusted: their errors say little.
        recoded: columns with another transform, scale or kind, where all else of the two tables agrees.
    """

    edges: pd.DataFrame
    settings: pd.DataFrame
    only_first: tuple[str, ...]
    only_second: tuple[str, ...]
    unvouched: tuple[str, ...]
    recoded: tuple[str, ...] = ()

    @property
    def num_changed(self) -> int:
        """How many edges differ by more than noise."""
        return int(np.count_nonzero(np.asarray(self.edges["more_than_noise"], bool)))

    def summary(self) -> str:
        """The difference in a few sentences."""
        if not len(self.edges):
            return "The two posteriors have fewer than two variables in common."
        most = float(np.abs(np.asarray(self.edges["difference"], np.float64)).max())
        told = [
            f"{counted(self.num_changed, 'edge')} of {len(self.edges):,} "
            f"{'differs' if self.num_changed == 1 else 'differ'} by more than sampling noise; "
            f"the largest difference is {most:.3f}."
        ]
        if self.unvouched:
            which = " and the ".join(self.unvouched)
            told.append(
                f"The {which} posterior is neither exact nor trusted: it may be noisier than its errors say."
            )
        if self.recoded:
            told.append(
                f"It seems to be one table, in which {shown(self.recoded)} had another transform, scale or "
                "kind: the number of rows and the other columns' means and levels agree."
            )
        for names, other in ((self.only_first, "first"), (self.only_second, "second")):
            if names:
                told.append(
                    f"Only the {other} has {', '.join(names)}: a part of the difference may come from "
                    "leaving variables out."
                )
        return " ".join(told)


def difference(
    first: Posterior, second: Posterior, *, settings: list[tuple[str, Any, Any]] | None = None
) -> Difference:
    """Compare two posteriors edge by edge, aligned by the names of the variables.

    A difference is more than noise where it exceeds its standard error so far that sampling would do that for
    any edge of the table once in a hundred comparisons (normal, Bonferroni); where both are exact, wherever
    there is one.

    Args:
        first: a posterior.
        second: another.
        settings: those that differ: name, of the first, of the second. Without them, what the posteriors
            remember is compared: method, table, scales and kinds of the columns.
    """
    names = [name for name in first.names if name in second.names]
    (p, e), (q, f) = (_of(posterior, names) for posterior in (first, second))
    source, target = np.nonzero(~np.eye(len(names), dtype=bool))
    order = np.argsort(-np.abs(q - p)[source, target], kind="stable")
    source, target = source[order], target[order]
    change, error = (q - p)[source, target], np.hypot(e, f)[source, target]
    limit = -ndtri(FALSE_ALARM / 2 / max(len(source), 1))
    labels = np.array(names, dtype=object)
    edges = pd.DataFrame(
        {
            "source": labels[source],
            "target": labels[target],
            "first": p[source, target],
            "second": q[source, target],
            "difference": change,
            "error": error,
            "more_than_noise": np.abs(change) > np.maximum(limit * error, ROUNDING),
        }
    )
    settings = _remembered(first, second) if settings is None else settings
    recoded = _recoded(first.table, second.table)
    if recoded:
        settings = [one for one in settings if one[0] not in ("table", "data_sha256")]
    return Difference(
        edges,
        pd.DataFrame(settings, columns=cast(Any, ["setting", "first", "second"]), dtype=object),
        tuple(name for name in first.names if name not in second.names),
        tuple(name for name in second.names if name not in first.names),
        tuple(
            which
            for which, posterior in (("first", first), ("second", second))
            if not posterior.diagnosis.is_vouched_for
        ),
        recoded,
    )


def _of(posterior: Posterior, names: list[str]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Edge probabilities and their errors in the order of `names`, two arrays [k, k]."""
    if not names:
        raise DataError("the two posteriors have no variable in common")
    order = [posterior.names.index(name) for name in names]
    square = np.ix_(order, order)
    return posterior.edge_probabilities().to_numpy()[square], posterior.edge_errors()[square]


def _remembered(first: Posterior, second: Posterior) -> list[tuple[str, Any, Any]]:
    """What two posteriors say of themselves and differ in."""
    pairs: list[tuple[str, Any, Any]] = [("method", first.method, second.method)]
    mine, others = first.table, second.table
    if mine is not None and others is not None:
        pairs.append(("table", mine.sha256[:12], others.sha256[:12]))
        pairs.append(("rows", mine.num_rows, others.num_rows))
        pairs += [
            (f"scale of {name}", _scale(mine, name), _scale(others, name))
            for name in mine.names
            if name in others.names
        ]
    pairs += [
        (name, getattr(first.diagnosis, name), getattr(second.diagnosis, name))
        for name in ("interventional", "knowledge", "uses_prior")
    ]
    return [(name, a, b) for name, a, b in pairs if a != b]


def _recoded(mine: TableDescription | None, others: TableDescription | None) -> tuple[str, ...]:
    """Columns that were coded otherwise, if the tables agree in rows, names and what describes the others."""
    if mine is None or others is None or mine.sha256 == others.sha256:
        return ()
    if sorted(mine.names) != sorted(others.names) or mine.num_rows != others.num_rows:
        return ()
    pairs = [(column, others.columns[others.names.index(column.name)]) for column in mine.columns]
    alike = [one == other for one, other in pairs if _coding(one) == _coding(other)]
    different = tuple(one.name for one, other in pairs if _coding(one) != _coding(other))
    return different if alike and all(alike) else ()


def _coding(column: Column) -> tuple[Any, ...]:
    """How a column was coded, without what depends on its values."""
    parts = (column.scores, column.scaling, column.cuts)
    return column.kind, column.log, *(part is None for part in parts)


def _scale(table: TableDescription, name: str) -> str:
    """The kind and the transform of a column in words."""
    column = table.columns[table.names.index(name)]
    if column.kind == "discrete":
        return "discrete"
    return "log" if column.log else "rank" if column.scores is not None else "continuous"
