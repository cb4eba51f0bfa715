"""A finding: what does not fit the model, in which columns, what to do, and what that would change."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from gflowdag.data import Dataset
from gflowdag.data.read_options import Transform
from gflowdag.data.recoding import recoded
from gflowdag.errors import GFlowDAGError
from gflowdag.runtime.messages import shown
from gflowdag.runtime.place import Language, option, typed

if TYPE_CHECKING:
    from gflowdag.posterior.posterior import Posterior

Check = Literal[
    "skewness",
    "tails",
    "outliers",
    "curvature",
    "unequal variance",
    "serial dependence",
    "few rows",
    "deterministic",
    "rare levels",
    "few values",
]
_NAMED = 6  # columns that a sentence lists


@dataclass(frozen=True)
class Remedy:
    """Options for reading the table with which a finding should disappear.

    Attributes:
        transform: the transform of all continuous columns, or of some, as pairs.
        drop: columns to leave out.
        discrete: columns that are levels.
        discretize: how the continuous columns are cut into bins.
        max_parents: the largest number of parents.
        every: keep the first of so many rows.
    """

    transform: Transform | tuple[tuple[str, Transform], ...] = ()
    drop: tuple[str, ...] = ()
    discrete: tuple[str, ...] = ()
    discretize: Literal["quantile"] | None = None
    max_parents: int | None = None
    every: int = 1

    def text(self, to: Language | None = None) -> str:
        """The remedy as it is typed, in the language of the place where the user is unless one is given."""
        if self.every > 1:
            shell = f"awk 'NR % {self.every} == 1' TABLE.csv > THINNED.csv"
            return typed(python=f"df.iloc[::{self.every}]", command_line=shell, to=to)
        chosen: dict[str, Any] = {
            "transform": self._transforms,
            "drop": list(self.drop),
            "discrete": list(self.discrete),
            "discretize": self.discretize,
        }
        parts = [option(name, value, to=to) for name, value in chosen.items() if value]
        parts += [] if self.max_parents is None else [option("max_parents", self.max_parents, to=to)]
        return typed(python=", ".join(parts), command_line=" ".join(parts), to=to)

    def apply(self, data: Dataset) -> Dataset:
        """The data set as it would be with the remedy.

        Raises:
            DataError: the table cannot be read in this way.
        """
        return recoded(
            data,
            transform=self._transforms,
            drop=self.drop,
            discrete=self.discrete,
            discretize=self.discretize,
            max_parents=self.max_parents,
            every=self.every,
        )

    @property
    def _transforms(self) -> Transform | dict[str, Transform]:
        return self.transform if isinstance(self.transform, str) else dict(self.transform)

    def columns_transformed(self, data: Dataset) -> list[str]:
        """The columns that the remedy transforms."""
        if not isinstance(self.transform, str):
            return [name for name, _ in self.transform]
        return [column.name for column in data.columns if column.kind == "continuous"]


@dataclass(frozen=True)
class Change:
    """The edge whose probability changes most under a remedy."""

    source: str
    target: str
    before: float
    after: float

    @property
    def size(self) -> float:
        """By how much."""
        return abs(self.after - self.before)

    @classmethod
    def between(cls, before: Posterior, after: Posterior) -> Change | None:
        """The largest change among the variables that both have; None where there is no pair."""
        names = [name for name in before.names if name in after.names]
        if len(names) < 2:
            return None
        old, new = (_edges_among(names, posterior) for posterior in (before, after))
        i, j = np.unravel_index(np.abs(new - old).argmax(), old.shape)
        return cls(names[int(i)], names[int(j)], float(old[i, j]), float(new[i, j]))


@dataclass(frozen=True)
class Finding:
    """Something about a table that the model does not describe.

    Attributes:
        check: which check found it.
        columns: where, the worst first.
        statistic: what was computed, in words.
        values: its value for each of `columns`.
        problem: what is the matter and why it matters, a sentence without the columns.
        remedy: options that should remove it, or None.
        advice: what to do where no option helps.
        change: what the remedy changes, where that was tried.
        tried: why it was not tried, or `"tried"`.
    """

    check: Check
    columns: tuple[str, ...]
    statistic: str
    values: tuple[float, ...]
    problem: str
    remedy: Remedy | None = None
    advice: str = ""
    change: Change | None = None
    tried: str = "not tried"

    def sentence(self, language: Language | None = None) -> str:
        """Everything in a line or two, for the place where the user is."""
        return " ".join(filter(None, (self.what, self.mending(language))))

    @property
    def what(self) -> str:
        """What is the matter, and where."""
        worst = f"{self.statistic} {self.values[0]:.3g}" + (" at worst" if len(self.columns) > 1 else "")
        return f"{self.check.capitalize()} in {shown(self.columns, _NAMED)} ({worst}): {self.problem}."

    def mending(self, language: Language | None = None, *, of: Sequence[str] = ()) -> str:
        """What to do about it, and what that changes; `of` names all findings that the remedy is for."""
        named = f" for {shown(of)}" if of else ""
        remedy = "" if self.remedy is None else f"Remedy{named}: {self.remedy.text(language)}."
        advice = f"{self.advice}." if self.advice else ""
        return " ".join(filter(None, (remedy, advice, self.effect)))

    @property
    def effect(self) -> str:
        """How much the answer changes under the remedy, in a sentence."""
        if self.change is None:
            return "" if self.remedy is None or self.tried == "tried" else f"Its effect was {self.tried}."
        change = self.change
        return (
            f"With it the largest change of an edge probability is {change.size:.2f} "
            f"({change.source} → {change.target}: {change.before:.2f} to {change.after:.2f})."
        )


@dataclass(frozen=True)
class ModelFit:
    """All findings, and what could not be checked.

    Attributes:
        findings: the gravest first.
        not_checked: what was left out, and why, in sentences.
        given_parents: whether residuals given sampled parents were looked at, or the table alone.
    """

    findings: tuple[Finding, ...] = ()
    not_checked: tuple[str, ...] = ()
    given_parents: bool = False

    def with_changes(
        self, posterior: Posterior, data: Dataset, refit: Callable[[Dataset], Posterior]
    ) -> ModelFit:
        """The same findings with what each remedy changes, the largest change first.

        Args:
            posterior: the answer without a remedy.
            data: its table.
            refit: gives the answer for a table that was read in another way.
        """
        known: dict[Remedy, Finding] = {}
        found: list[Finding] = []
        for finding in self.findings:
            if finding.remedy is not None:
                if finding.remedy not in known:
                    known[finding.remedy] = _tried(finding, finding.remedy, posterior, data, refit)
                outcome = known[finding.remedy]
                finding = replace(finding, change=outcome.change, tried=outcome.tried)
            found.append(finding)
        found.sort(key=lambda finding: -(finding.change.size if finding.change else -1.0))
        return replace(self, findings=tuple(found))

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for a file."""
        return asdict(self)

    @classmethod
    def from_dict(cls, content: Any) -> ModelFit:
        """The inverse of `to_dict`.

        Raises:
            ValueError: it is none.
        """
        try:
            findings = tuple(_finding(entry) for entry in content["findings"])
            notes = _texts(content["not_checked"])
            return cls(findings, notes, bool(content["given_parents"]))
        except (TypeError, KeyError, AttributeError, OverflowError) as error:
            raise ValueError(f"no findings: {error}") from error


def _edges_among(names: list[str], posterior: Posterior) -> NDArray[np.float64]:
    place = [posterior.names.index(name) for name in names]
    return posterior.edge_probabilities().to_numpy()[np.ix_(place, place)]


def _tried(
    finding: Finding,
    remedy: Remedy,
    posterior: Posterior,
    data: Dataset,
    refit: Callable[[Dataset], Posterior],
) -> Finding:
    try:
        changed = Change.between(posterior, refit(remedy.apply(data)))
    except GFlowDAGError as error:
        return replace(finding, tried=f"not tried: {str(error).splitlines()[0]}")
    return replace(finding, change=changed, tried="tried")


def _finding(entry: Mapping[str, Any]) -> Finding:
    remedy, change = entry["remedy"], entry["change"]
    if remedy is not None:
        transform = remedy["transform"]
        if isinstance(transform, str):
            transform = _how(transform)
        else:
            transform = tuple((str(name), _how(how)) for name, how in transform)
        remedy = Remedy(
            transform,
            _texts(remedy["drop"]),
            _texts(remedy["discrete"]),
            "quantile" if remedy["discretize"] == "quantile" else None,
            None if remedy["max_parents"] is None else int(remedy["max_parents"]),
            int(remedy["every"]),
        )
    if change is not None:
        change = Change(
            str(change["source"]), str(change["target"]), float(change["before"]), float(change["after"])
        )
    texts = {name: str(entry[name]) for name in ("check", "statistic", "problem", "advice", "tried")}
    values = tuple(map(float, entry["values"]))
    columns = _texts(entry["columns"])
    if not columns or len(columns) != len(values):
        raise KeyError("columns")
    return Finding(columns=columns, values=values, remedy=remedy, change=change, **texts)  # pyright: ignore[reportArgumentType]


def _how(how: Any) -> Any:
    if how not in ("log", "rank"):
        raise KeyError("transform")
    return how


def _texts(values: Iterable[Any]) -> tuple[str, ...]:
    if isinstance(values, str):
        raise TypeError("a list of texts is needed")
    return tuple(map(str, values))
