"""Regular expressions that take linear time, whoever wrote them.

Python's own matcher tries one way of reading a name after another, and `(a+)+b` keeps it busy for centuries.
This one walks all ways at once: the expression becomes a nondeterministic automaton (Thompson 1968), and a
set of its states is carried along the name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from re import _constants as code  # pyright: ignore[reportAttributeAccessIssue]
from re import _parser as parser  # pyright: ignore[reportAttributeAccessIssue]
from typing import Any

MAX_STATES = 10_000  # of an automaton: repetitions of repetitions multiply

Test = Callable[[str], bool]
_CLASSES = {
    code.CATEGORY_DIGIT: r"\d",
    code.CATEGORY_NOT_DIGIT: r"\D",
    code.CATEGORY_SPACE: r"\s",
    code.CATEGORY_NOT_SPACE: r"\S",
    code.CATEGORY_WORD: r"\w",
    code.CATEGORY_NOT_WORD: r"\W",
}


class Pattern:
    """A regular expression that must match a *whole* name.

    Characters, classes, groups, alternatives and repetitions are understood; what looks around or back
    (`(?=…)`, `^`, `\\b`, `\\1`) and flags are not: they mean nothing for a whole name, or need more than an
    automaton.

    Raises:
        re.error: it is no regular expression, or one that needs more than that.
    """

    def __init__(self, pattern: str) -> None:
        parsed = parser.parse(pattern)
        _refuse_flags(parsed.state.flags & ~re.UNICODE)
        self._steps: list[list[tuple[Test, int]]] = []  # by state: read a character that passes, and go on
        self._jumps: list[list[int]] = []  # by state: go on without reading
        self._last = self._read(parsed, self._state())

    def matches(self, name: str) -> bool:
        """Whether the whole of `name` is of this form."""
        states = self._reached({0})
        for character in name:
            states = self._reached(
                {after for state in states for test, after in self._steps[state] if test(character)}
            )
        return self._last in states

    def _reached(self, states: set[int]) -> set[int]:
        """The states and those that follow from them without reading."""
        waiting = list(states)
        while waiting:
            new = [after for after in self._jumps[waiting.pop()] if after not in states]
            states.update(new)
            waiting.extend(new)
        return states

    def _state(self) -> int:
        if len(self._steps) == MAX_STATES:
            raise re.error(f"it repeats too much (more than {MAX_STATES} states)")
        self._steps.append([])
        self._jumps.append([])
        return len(self._steps) - 1

    def _read(self, items: Iterable[tuple[Any, Any]], start: int) -> int:
        """Add what reads `items` from the state `start` on; returns the state that it ends in."""
        state = self._state()
        self._jumps[start].append(state)
        for kind, argument in items:
            state = self._read_item(kind, argument, state)
        return state

    def _read_item(self, kind: Any, argument: Any, start: int) -> int:
        if kind is code.SUBPATTERN:
            _group, added, removed, items = argument
            _refuse_flags(added | removed)
            return self._read(items, start)
        if kind in (code.MAX_REPEAT, code.MIN_REPEAT):  # greedy or not: for a whole name it is the same
            least, most, items = argument
            return self._read_repeatedly(least, most, items, start)
        end = self._state()
        if kind is code.BRANCH:
            for branch in argument[1]:
                self._jumps[self._read(branch, start)].append(end)
        else:
            self._steps[start].append((_test(kind, argument), end))
        return end

    def _read_repeatedly(self, least: int, most: int, items: Any, start: int) -> int:
        for _ in range(least):
            start = self._read(items, start)
        end = self._state()
        self._jumps[start].append(end)
        if most == code.MAXREPEAT:
            self._jumps[self._read(items, end)].append(end)
            return end
        for _ in range(most - least):
            start = self._read(items, start)
            self._jumps[start].append(end)
        return end


def _refuse_flags(flags: int) -> None:
    if flags:
        raise re.error("flags such as (?i) are not understood; write [Aa]")


def _test(kind: Any, argument: Any) -> Test:
    """The test of an item that stands for one character."""
    if kind is code.LITERAL:
        return lambda character: ord(character) == argument
    if kind is code.NOT_LITERAL:
        return lambda character: ord(character) != argument
    if kind is code.ANY:
        return lambda character: character != "\n"
    if kind is code.RANGE:
        return lambda character: argument[0] <= ord(character) <= argument[1]
    if kind is code.CATEGORY:
        return lambda character: re.match(_CLASSES[argument], character) is not None
    if kind is code.IN:
        negated = argument[0][0] is code.NEGATE
        tests = [_test(*item) for item in argument[negated:]]
        return lambda character: negated != any(test(character) for test in tests)
    raise re.error(f"{str(kind).lower()} is not understood here")
