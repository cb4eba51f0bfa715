"""The language of statements about a graph, and its parser.

    statement  = conjunction { "or" conjunction }
    conjunction = negation { "and" negation }
    negation   = "not" negation | "(" statement ")" | relation
    relation   = name arrow name { arrow name } | names "_||_" names [ "|" names ]
    names      = name { "," name }
    arrow      = "->" | "<-" | "~>" | "<~" | "-"

`A -> B` is an edge, `A ~> B` a directed path, `A - B` an edge in either direction, `A _||_ B | C` a
d-separation. A chain of arrows holds where all of its links do. A name with blanks or signs of the language
in it stands in quotes, with a quote of the same kind doubled. A hyphen inside of a name is part of it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple, NoReturn

from gflowdag.errors import StatementError
from gflowdag.posterior.statements import Adjacent, All, Any, Edge, Not, Path, Separated, Statement
from gflowdag.runtime.messages import one_line, unknown_name

_ARROWS = ("->", "<-", "~>", "<~", "-")
_SAME = {"→": "->", "←": "<-", "⇝": "~>", "⇜": "<~", "—": "-", "–": "-", "⫫": "_||_", "⊥": "_||_"}
_TOKEN = re.compile(
    r"""
    (?P<blank>\s+)
  | (?P<quoted> "(?:[^"]|"")*" | '(?:[^']|'')*' )
  | (?P<sign> _\|\|_ | -> | <- | ~> | <~ | [→←⇝⇜—–⫫⊥(),|] | -(?!\S) )
  | (?P<word> (?: (?!_\|\|_|->|<-|~>|<~) [^\s"'(),|→←⇝⇜—–⫫⊥] )+ )
    """,
    re.VERBOSE,
)
_KEYWORDS = ("and", "or", "not")
_DEEPEST = 100  # nested parentheses and negations


class _Token(NamedTuple):
    kind: str  # "name", "sign", "keyword" or "end"
    text: str
    place: int


def parse_statement(text: str, names: Sequence[str]) -> Statement:
    """The statement that `text` makes about graphs over `names`.

    Raises:
        StatementError: it makes none; the message shows the place.
    """
    return _Parser(text, names).read()


def written(name: str) -> str:
    """The name as the language takes it, in quotes where it needs them."""
    plain = _TOKEN.fullmatch(name)
    if plain is not None and plain.lastgroup == "word" and name not in _KEYWORDS:
        return name
    return '"' + name.replace('"', '""') + '"'


class _Parser:
    """Recursive descent: one method for each rule of the grammar."""

    def __init__(self, text: str, names: Sequence[str]):
        self._text = text
        self._index = {name: position for position, name in enumerate(names)}
        self._names = names
        self._tokens = list(self._split())
        self._next = 0
        self._depth = 0

    def read(self) -> Statement:
        found = self._statement()
        if self._token.kind != "end":
            self._refuse("expected `and`, `or` or the end")
        return found

    # -- rules ---------------------------------------------------------------------------------------------

    def _statement(self) -> Statement:
        members = [self._conjunction()]
        while self._take("keyword", "or"):
            members.append(self._conjunction())
        return members[0] if len(members) == 1 else Any(tuple(members))

    def _conjunction(self) -> Statement:
        members = [self._negation()]
        while self._take("keyword", "and"):
            members.append(self._negation())
        return members[0] if len(members) == 1 else All(tuple(members))

    def _negation(self) -> Statement:
        if self._depth == _DEEPEST:
            self._refuse(f"more than {_DEEPEST} parentheses and negations in each other")
        self._depth += 1
        if self._take("keyword", "not"):
            found: Statement = Not(self._negation())
        elif self._take("sign", "("):
            found = self._statement()
            if not self._take("sign", ")"):
                self._refuse("expected `)`")
        else:
            found = self._relation()
        self._depth -= 1
        return found

    def _relation(self) -> Statement:
        start = self._next
        first = self._set()
        if self._take("sign", "_||_"):
            return self._separation(first, start)
        left, *others = first
        if others:
            self._refuse("expected `_||_` after a list of variables; an arrow has one on each side")
        links: list[Statement] = []
        while self._token.kind == "sign" and self._token.text in _ARROWS:
            arrow = self._token.text
            self._next += 1
            right = self._name()
            if left == right:
                self._refuse("a variable has no edge and no path to itself", self._tokens[self._next - 1])
            links.append(_link(left, arrow, right))
            left = right
        if not links:
            self._refuse("expected a relation, one of `->`, `~>`, `-` between blanks, `_||_`")
        return links[0] if len(links) == 1 else All(tuple(links))

    def _separation(self, first: tuple[int, ...], start: int) -> Statement:
        second = self._set()
        given = self._set() if self._take("sign", "|") else ()
        listed = [*first, *second, *given]
        if len(set(listed)) < len(listed):
            self._refuse("a variable stands twice in this d-separation", self._tokens[start])
        return Separated(first, second, given)

    def _set(self) -> tuple[int, ...]:
        found = [self._name()]
        while self._take("sign", ","):
            found.append(self._name())
        return tuple(found)

    def _name(self) -> int:
        token = self._token
        if token.kind != "name":
            hint = f"; a variable called {token.text} stands in quotes" if token.kind == "keyword" else ""
            self._refuse(f"expected a variable{hint}")
        if token.text not in self._index:
            self._refuse(unknown_name(token.text, self._names).removesuffix("."))
        self._next += 1
        return self._index[token.text]

    # -- tokens --------------------------------------------------------------------------------------------

    def _split(self) -> list[_Token]:
        tokens: list[_Token] = []
        place = 0
        while place < len(self._text):
            match = _TOKEN.match(self._text, place)
            if match is None:  # all other signs are part of a word
                self._refuse("this quote is not closed", _Token("sign", "", place))
            kind, text = str(match.lastgroup), match.group()
            if kind == "quoted":
                tokens.append(_Token("name", text[1:-1].replace(text[0] * 2, text[0]), place))
            elif kind == "sign":
                tokens.append(_Token("sign", _SAME.get(text, text), place))
            elif kind == "word":
                tokens.append(_Token("keyword" if text in _KEYWORDS else "name", text, place))
            place = match.end()
        return [*tokens, _Token("end", "", len(self._text))]

    @property
    def _token(self) -> _Token:
        return self._tokens[self._next]

    def _take(self, kind: str, text: str) -> bool:
        """Whether the next token is this one, which is then behind us."""
        if (self._token.kind, self._token.text) != (kind, text):
            return False
        self._next += 1
        return True

    def _refuse(self, problem: str, token: _Token | None = None) -> NoReturn:
        place = (self._token if token is None else token).place
        rest = one_line(self._text[place:]).strip()
        where = f"at character {place + 1}, before {rest!r}" if rest else "at the end"
        raise StatementError(f"In the statement {one_line(self._text)!r}, {where}: {problem}.")


def _link(left: int, arrow: str, right: int) -> Statement:
    if arrow == "-":
        return Adjacent(left, right)
    kind = Edge if arrow in ("->", "<-") else Path
    return kind(right, left) if arrow.startswith("<") else kind(left, right)
