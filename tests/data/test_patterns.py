"""Patterns of names agree with Python's own matcher, and never keep anybody waiting."""

from __future__ import annotations

import contextlib
import re
import time

import numpy as np
import pytest

from gflowdag.data.patterns import matching
from gflowdag.errors import KnowledgeError

PATTERNS = [
    "",
    ".*",
    "gene_.*",
    "gene_[0-9]{2,3}",
    r"\w+\d",
    "[^ab]*(ab|ba)?",
    "(a|b)*abb",
    "a{0,3}b{2}",
    "(?:x|y+?)+z?",
    r"[\d\s-]+",
    "a|",
    r"\.|\*",
    "(a*)*b",
    r"(a|b)\1",
    "(?i:A)b*",
]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_patterns_match_what_pythons_own_matcher_matches(pattern: str) -> None:
    rng = np.random.default_rng(0)
    names = ["", "gene_12", "gene_1234", "gene_x", "ab 1-2", ".", "*", "xyz", "a\nb", "é1"]
    names += ["".join(rng.choice(list("abxyz1"), size=rng.integers(0, 7))) for _ in range(300)]
    assert [names[index] for index in matching(pattern, names)] == [
        name for name in names if re.fullmatch(pattern, name)
    ]


@pytest.mark.parametrize(
    "pattern",
    [
        "(a+)+b",
        "(a|a)*b",
        ".*.*.*.*.*.*.*.*x",
        "((((a*)*)*)*)*b",
        "(a?){50}a{50}",
        "(a{0,9000}){0,9000}b",
        r"(a+)(a+)(a+)(a+)\1\2\3\4b.*c",
        "[a-z]" * 100_000,
        "(" * 500 + ")" * 500,
    ],
)
def test_no_pattern_keeps_anybody_waiting(pattern: str) -> None:
    started = time.process_time()
    with contextlib.suppress(KnowledgeError):
        assert matching(pattern, ["a" * 2000 + "c"] * 20) == []
    # All names together are given a second of the processor; Python's own matcher needs 2^2000 steps.
    assert time.process_time() - started < 5


def test_an_expression_that_takes_too_long_is_named() -> None:
    with pytest.raises(KnowledgeError, match=r"'\(a\+\).*takes too long to match: write a simpler one"):
        matching(r"(a+)(a+)(a+)(a+)\1\2\3\4b.*c", ["a" * 2000 + "c"])


@pytest.mark.parametrize("pattern", ["(", "a{9000}{9000}", "[b-a]", "*a", "a{99999999999}"])
def test_what_is_no_regular_expression_is_refused(pattern: str) -> None:
    with pytest.raises(KnowledgeError, match="not a regular expression that can be used here"):
        matching(pattern, ["a"])
