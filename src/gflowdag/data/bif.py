"""Discrete networks in the Bayesian Interchange Format, as the bnlearn repository has them."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator
from typing import NamedTuple, NoReturn

import numpy as np

from gflowdag.data.networks import DiscreteNetwork
from gflowdag.errors import FileFormatError
from gflowdag.graph.closure import is_acyclic

_MOST_VARIABLES = 2000  # the largest network of the repository has 1041
MAX_TABLE_ENTRIES = 10_000_000  # in all: a short file can declare tables that fill the memory
_SUM_TOLERANCE = 1e-3  # probabilities are written with few digits

_TOKEN = re.compile(
    r"""(?P<skip>\s+|//[^\n]*|/\*.*?\*/)
      | (?P<unclosed>/\*)
      | "(?P<quoted>[^"\n]*)"
      | (?P<mark>[{}()\[\],;|])
      | (?P<word>[^\s{}()\[\],;|"]+)""",
    re.VERBOSE | re.DOTALL,
)


def parse_bif(text: str, source: str = "the text") -> DiscreteNetwork:
    """Parse the text of a `.bif` file; `source` is its name in messages.

    Raises:
        FileFormatError: with the line at which the text stops being a network.
    """
    return _Parser(text, source).network()


class _Token(NamedTuple):
    text: str
    line: int
    kind: str  # "quoted", "mark", "word" or "end"


class _Distribution(NamedTuple):
    line: int
    name: str
    parents: list[str]
    rows: list[tuple[tuple[str, ...], list[float]]]  # levels of the parents, probabilities
    default: list[float] | None


def _shape(distribution: _Distribution, levels: dict[str, tuple[str, ...]]) -> list[int]:
    return [len(levels[name]) for name in (*distribution.parents, distribution.name)]


class _Parser:
    """Recursive descent over the tokens of one file."""

    def __init__(self, text: str, source: str) -> None:
        self.source = source
        self.tokens = self._tokenize(text)
        self.token = next(self.tokens)

    def network(self) -> DiscreteNetwork:
        levels: dict[str, tuple[str, ...]] = {}
        distributions: dict[str, _Distribution] = {}
        while self.token.kind != "end":
            keyword = self._word()
            if keyword == "network":
                self._word()
                self._take("{")
                while not self._accept("}"):
                    self._skip_statement()
            elif keyword == "variable":
                name = self._word()
                if name in levels:
                    self._fail(f"variable {name!r} is declared twice")
                levels[name] = self._levels()
            elif keyword == "probability":
                distribution = self._distribution()
                if distribution.name in distributions:
                    self._fail(f"{distribution.name!r} has two distributions", distribution.line)
                distributions[distribution.name] = distribution
            else:
                self._fail(f"expected network, variable or probability, found {keyword!r}")
        return self._assembled(levels, distributions)

    # ------------------------------------------------------------------ statements

    def _levels(self) -> tuple[str, ...]:
        levels: list[str] | None = None
        self._take("{")
        while not self._accept("}"):
            if self.token.text != "type":
                self._skip_statement()
                continue
            self._word()
            if (kind := self._word()) != "discrete":
                self._fail(f"only discrete variables can be read, not {kind!r}")
            self._take("[")
            count = self._word()
            self._take("]")
            self._take("{")
            levels = self._words("}")
            self._take(";")
            if str(len(levels)) != count or len(set(levels)) != len(levels) or len(levels) < 1:
                self._fail(f"{count} different levels are declared, {len(levels)} listed")
        if levels is None:
            self._fail("a variable has no type")
        return tuple(levels)

    def _distribution(self) -> _Distribution:
        line = self.token.line
        self._take("(")
        name, parents = self._word(), []
        if self._accept("|"):
            parents = self._words(")")
        else:
            self._take(")")
        rows: list[tuple[tuple[str, ...], list[float]]] = []
        default = None
        self._take("{")
        while not self._accept("}"):
            if self._accept("("):
                rows.append((tuple(self._words(")")), self._numbers()))
            elif self.token.text == "table":
                self._word()
                if parents:
                    self._fail("a table of a variable with parents: write one line for each of their levels")
                rows.append(((), self._numbers()))
            elif self.token.text == "default":
                self._word()
                default = self._numbers()
            else:
                self._skip_statement()
        return _Distribution(line, name, parents, rows, default)

    # ------------------------------------------------------------------ from statements to the network

    def _assembled(
        self, levels: dict[str, tuple[str, ...]], distributions: dict[str, _Distribution]
    ) -> DiscreteNetwork:
        names = list(levels)
        if not names:
            self._fail("there are no variables")
        if len(names) > _MOST_VARIABLES:
            self._fail(f"there are {len(names)} variables, more than {_MOST_VARIABLES}")
        for name, distribution in distributions.items():
            for mentioned in (name, *distribution.parents):
                if mentioned not in levels:
                    self._fail(f"there is no variable {mentioned!r}", distribution.line)
            if len({name, *distribution.parents}) <= len(distribution.parents):
                self._fail(f"a parent of {name!r} is repeated or is {name!r} itself", distribution.line)
        if without := [name for name in names if name not in distributions]:
            self._fail(f"{without[0]!r} has no distribution")
        entries = sum(math.prod(_shape(distribution, levels)) for distribution in distributions.values())
        if entries > MAX_TABLE_ENTRIES:
            self._fail(f"the tables have {entries} entries, more than {MAX_TABLE_ENTRIES}")
        network = DiscreteNetwork(
            names=tuple(names),
            levels=tuple(levels.values()),
            parents=tuple(
                tuple(names.index(parent) for parent in distributions[name].parents) for name in names
            ),
            tables=tuple(self._table(distributions[name], levels) for name in names),
        )
        if not is_acyclic(network.adjacency):
            self._fail("the edges form a cycle")
        return network

    def _table(self, distribution: _Distribution, levels: dict[str, tuple[str, ...]]) -> np.ndarray:
        shape = _shape(distribution, levels)
        table = np.full(shape, np.nan)
        if distribution.default is not None:
            self._check_length(distribution, distribution.default, shape[-1])
            table[...] = distribution.default
        for given, probabilities in distribution.rows:
            self._check_length(distribution, probabilities, shape[-1])
            try:
                index = tuple(
                    levels[parent].index(level)
                    for parent, level in zip(distribution.parents, given, strict=True)
                )
            except ValueError:
                self._fail(f"({', '.join(given)}) are not levels of the parents", distribution.line)
            table[index] = probabilities
        sums = table.sum(axis=-1, keepdims=True)
        if not (np.abs(sums - 1) < _SUM_TOLERANCE).all():  # NaN where a row is missing
            problem = "lacks a row" if np.isnan(sums).any() else "has a row that does not sum to 1"
            self._fail(f"the distribution of {distribution.name!r} {problem}", distribution.line)
        return table / sums

    def _check_length(self, distribution: _Distribution, probabilities: list[float], length: int) -> None:
        if len(probabilities) != length:
            self._fail(
                f"{distribution.name!r} has {length} levels but a row of {len(probabilities)} probabilities",
                distribution.line,
            )

    # ------------------------------------------------------------------ tokens

    def _tokenize(self, text: str) -> Iterator[_Token]:
        position, line = 0, 1
        while position < len(text):
            match = _TOKEN.match(text, position)
            if match is None or match.lastgroup == "unclosed":
                raise FileFormatError(
                    f"{self.source} is not a BIF file: line {line}: a quote or comment is not closed."
                )
            if match.lastgroup != "skip":
                yield _Token(match.group(match.lastgroup or 0), line, match.lastgroup or "word")
            line += match.group().count("\n")
            position = match.end()
        yield from itertools.repeat(_Token("the end of the file", line, "end"))

    def _advance(self) -> _Token:
        token, self.token = self.token, next(self.tokens)
        return token

    def _accept(self, mark: str) -> bool:
        if self.token.kind != "mark" or self.token.text != mark:
            return False
        self._advance()
        return True

    def _take(self, mark: str) -> None:
        if not self._accept(mark):
            self._fail(f"expected {mark!r}, found {self.token.text!r}")

    def _word(self) -> str:
        if self.token.kind in ("mark", "end"):
            self._fail(f"expected a word, found {self.token.text!r}")
        return self._advance().text

    def _words(self, end: str) -> list[str]:
        """Words up to the mark `end`, with or without commas between them."""
        words = []
        while not self._accept(end):
            words.append(self._word())
            self._accept(",")
        return words

    def _numbers(self) -> list[float]:
        numbers = []
        for word in self._words(";"):
            try:
                numbers.append(float(word))
            except ValueError:
                self._fail(f"{word!r} is not a number")
            if not 0 <= numbers[-1] <= 1:
                self._fail(f"{word} is not a probability")
        return numbers

    def _skip_statement(self) -> None:
        if self._word() != "property":
            self._fail("expected a property")
        while not self._accept(";"):
            if self.token.kind == "end":
                self._fail("the file ends inside a property")
            self._advance()

    def _fail(self, problem: str, line: int | None = None) -> NoReturn:
        raise FileFormatError(f"{self.source} is not a BIF file: line {line or self.token.line}: {problem}.")
