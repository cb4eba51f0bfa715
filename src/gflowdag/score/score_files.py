"""Local scores in files: the format `.jkl` of GOBNILP and others, written, and read as a score.

The first line has the number of variables. For each there is a line with its name and its number of parent
sets, and then as many lines: the score, the number of parents, their names.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import numpy as np
from numpy.typing import NDArray

from gflowdag.data.contents import read_text
from gflowdag.errors import DataError, FileFormatError, ScoreError
from gflowdag.runtime.files import atomic_write
from gflowdag.runtime.messages import shown
from gflowdag.score.base import Score
from gflowdag.score.local_score import LocalScore, local_values

if TYPE_CHECKING:
    from gflowdag.data import Dataset

ENDINGS = (".jkl", ".jaa")
UNLISTED = 10_000.0  # nats below the worst listed set of a variable: sets that a file does not have
_MOST_SETS = 20_000_000


@dataclass(frozen=True)
class ScoreFile:
    """The local scores of a file, for tables of the same variables.

    Parent sets that the file does not have get a score so low that no graph has them. Structure prior and
    knowledge are added as to any score: where the file has a prior in it, take `prior="uniform"`.

    Args:
        path: a file in the format `.jkl`.
    """

    path: str | Path
    sha256: str = field(init=False, default="")

    def __post_init__(self) -> None:
        # Read once: a pipe has nothing to give a second time, and a file may change.
        text = read_text(Path(self.path), ScoreError)
        object.__setattr__(self, "path", str(self.path))
        object.__setattr__(self, "sha256", hashlib.sha256(text.encode()).hexdigest())
        object.__setattr__(self, "_text", text)

    @property
    def text(self) -> str:
        """What the file held when it was read."""
        return self.__dict__["_text"]

    def bind(self, data: Dataset, /) -> ListedScores:
        """The scores for the variables of a table; their order may differ."""
        return ListedScores(self, list(data.names))


class ListedScores(LocalScore):
    """Scores that are looked up."""

    def __init__(self, file: ScoreFile, names: list[str]):
        listed = read_local_scores(file.path, file.text)
        if missing := sorted(set(names) - set(listed)):
            raise DataError(f"{file.path} has no scores of {shown(missing)}.")
        if more := sorted(set(listed) - set(names)):
            raise DataError(f"{file.path} has scores of {shown(more)}, which the table lacks.")
        self.num_variables = len(names)
        place = {name: index for index, name in enumerate(names)}
        self._known: list[dict[bytes, float]] = []
        self._least: list[float] = []
        for name in names:
            known: dict[bytes, float] = {}
            for parents, score in listed[name].items():
                chosen = np.zeros(len(names), bool)
                chosen[[place[parent] for parent in parents]] = True
                known[chosen.tobytes()] = score
            self._known.append(known)
            self._least.append(min(known.values()) - UNLISTED)
        self._file = file

    def local(self, node: int, parents: NDArray[np.bool_]) -> NDArray[np.float64]:
        known, least = self._known[node], self._least[node]
        return np.array([known.get(chosen.tobytes(), least) for chosen in np.asarray(parents, bool)])

    @property
    def notes(self) -> tuple[str, ...]:
        number = sum(map(len, self._known))
        return (f"Local scores are those of {Path(self._file.path).name}: {number:,} parent sets.",)

    def __repr__(self) -> str:
        return repr(self._file)


def read_local_scores(path: str | Path, text: str) -> dict[str, dict[frozenset[str], float]]:
    """The scores in the text of a `.jkl` file: for each variable those of its parent sets.

    Raises:
        FileFormatError: with the path and the line at which it stops being one.
    """
    lines = _lines(text)
    number, words = next(lines, (1, list[str]()))
    count = _whole(path, number, words[0]) if len(words) == 1 else -1
    if count < 1:
        _fail(path, number, "the number of variables is expected here")
    found: dict[str, dict[frozenset[str], float]] = {}
    for _ in range(count):
        number, words = next(lines, (number + 1, list[str]()))
        if len(words) != 2 or words[0] in found:
            _fail(path, number, "the name of a further variable and its number of parent sets are expected")
        sets: dict[frozenset[str], float] = {}
        for _ in range(_whole(path, number, words[1])):
            number, line = next(lines, (number + 1, list[str]()))
            if len(line) < 2 or len(line) != 2 + _whole(path, number, line[1]):
                _fail(path, number, "a score, a number of parents and their names are expected")
            try:
                score = float(line[0])
            except ValueError:
                _fail(path, number, f"{line[0]!r} is not a number")
            parents = frozenset(line[2:])
            if not np.isfinite(score) or len(parents) < len(line) - 2 or words[0] in parents:
                _fail(path, number, "a finite score of different parents, none of them the variable itself")
            sets[parents] = score
        if not sets:
            _fail(path, number, f"{words[0]} has no parent sets")
        found[words[0]] = sets
    if (rest := next(lines, None)) is not None:
        _fail(path, rest[0], "the file goes on after the last variable")
    for name, sets in found.items():
        if unknown := sorted(frozenset[str]().union(*sets) - set(found)):
            raise FileFormatError(f"{path}: {name} has the parent {unknown[0]}, which has no scores.")
    return found


def write_local_scores(score: Score, path: str | Path, *, max_parents: int = 3) -> int:
    """Write the log marginal likelihood of every node with every allowed set of a few parents.

    The structure prior is left out. Knowledge and limits of the score count: the file has no sets that they
    rule out.

    Returns:
        How many sets the file has.
    """
    names, d = score.names, score.num_variables
    for name in names:
        if not name or any(mark.isspace() for mark in name) or name.startswith("#"):
            raise DataError(f"The format separates names by blanks, so it cannot hold {name!r}: rename it.")
    sets = [
        list(chosen) for size in range(min(max_parents, d - 1) + 1) for chosen in combinations(range(d), size)
    ]
    if len(sets) * d > _MOST_SETS:
        raise DataError(f"{len(sets) * d:,} parent sets are too many: allow fewer parents.")
    members = np.zeros((len(sets), d), bool)
    for row, chosen in enumerate(sets):
        members[row, chosen] = True
    total = 0
    with atomic_write(Path(path)) as stream:
        stream.write(f"{d}\n")
        for node, name in enumerate(names):
            own = members[~members[:, node]]
            own = own[score.allows(node, own)]
            values = local_values(score.likelihood, node, own)
            total += len(own)
            stream.write(f"{name} {len(own)}\n")
            for value, chosen in zip(values.tolist(), own, strict=True):
                parents = [names[int(parent)] for parent in np.flatnonzero(chosen)]
                stream.write(" ".join([repr(value), str(len(parents)), *parents]) + "\n")
    return total


def _lines(text: str) -> Iterator[tuple[int, list[str]]]:
    """The words of each line that is neither empty nor a comment, with its number."""
    for number, line in enumerate(text.splitlines(), start=1):
        if (words := line.split()) and not words[0].startswith("#"):
            yield number, words


def _whole(path: str | Path, number: int, word: str) -> int:
    if not word.isdecimal() or len(word) > 9:
        _fail(path, number, f"{word!r} is not a whole number, 0 or more")
    return int(word)


def _fail(path: str | Path, number: int, problem: str) -> NoReturn:
    raise FileFormatError(f"{path} is not a file of local scores: line {number}: {problem}.")
