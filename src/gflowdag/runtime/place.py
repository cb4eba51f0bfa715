"""Where the user is, on the command line or in Python: messages name options as they are typed there."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Literal

Language = Literal["command line", "python"]
_OF_KNOWLEDGE = ("max_parents", "exogenous")  # options of the command line that are knowledge in Python
_SHORTER = {"num_samples": "samples", "random_state": "seed"}  # names that are others on the command line
_NOTHING = object()  # no value: an option is named, and not set
_spoken: Language = "python"  # of the whole process, its threads included


def language() -> Language:
    """The language of the place where the user is."""
    return _spoken


@contextmanager
def speaking(to: Language) -> Iterator[None]:
    """Messages that are made inside are for this place."""
    global _spoken
    before, _spoken = _spoken, to
    try:
        yield
    finally:
        _spoken = before


def typed(*, python: str, command_line: str, to: Language | None = None) -> str:
    """What a user types, in the language of the place (of `to`, if it is given)."""
    return python if (to or _spoken) == "python" else command_line


def option(name: str, value: Any = _NOTHING, *, to: Language | None = None) -> str:
    """An option as a user types it: `drop=['a']` in Python, `--drop a` on the command line.

    Args:
        name: in Python.
        value: text, a number, a truth value, a list of names, or a mapping from names; without one, the
            option is only named.
        to: the language, by default that of the place.
    """
    flag = f"--{_SHORTER.get(name, name).replace('_', '-')}"
    if value is _NOTHING:
        return typed(python=name, command_line=flag, to=to)
    plain = list(value) if isinstance(value, tuple) else value
    argument = f"knowledge=gd.Knowledge({name}={plain!r})" if name in _OF_KNOWLEDGE else f"{name}={plain!r}"
    return typed(python=argument, command_line=_on_command_line(flag, plain), to=to)


def _on_command_line(flag: str, value: Any) -> str:
    if isinstance(value, bool):
        return flag if value else f"--no-{flag.removeprefix('--')}"
    entries = [value]
    if isinstance(value, Mapping):
        entries = [f"{name}={of_one}" for name, of_one in value.items()]
    elif isinstance(value, list):  # names with a comma in them cannot share an entry
        entries = value if any("," in name for name in value) else [",".join(value)]
    return " ".join(f"{flag} {shlex.quote(str(entry))}" for entry in entries)
