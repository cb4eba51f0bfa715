"""Patterns of names agree with Python's own matcher, and never keep anybody waiting."""

from __future__ import annotations

import re
import time

import numpy as np
import pytest

from gflowdag.data.patterns import Pattern

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
]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_patterns_match_what_pythons_own_matcher_matches(pattern: str) -> None:
    rng = np.random.default_rng(0)
    names = ["", "gene_12", "gene_1234", "gene_x", "ab 1-2", ".", "*", "xyz", "a\nb", "é1"]
    names += ["".join(rng.choice(list("abxyz1"), size=rng.integers(0, 7))) for _ in range(300)]
    ours = Pattern(pattern)
    assert [name for name in names if ours.matches(name)] == [
        name for name in names if re.fullmatch(pattern, name)
    ]


@pytest.mark.parametrize(
    "pattern", ["(a+)+b", "(a|a)*b", ".*.*.*.*.*.*.*.*x", "((((a*)*)*)*)*b", "(a?){50}a{50}"]
)
def test_no_pattern_keeps_anybody_waiting(pattern: str) -> None:
    started = time.process_time()
    assert not Pattern(pattern).matches("a" * 2000 + "c")
    # A tenth of this, measured; Python's own matcher would need more than 2^2000 steps for the first.
    assert time.process_time() - started < 5


@pytest.mark.parametrize(
    "pattern", [r"(a)\1", "(?=a)a", "^a$", r"a\b", "(?i)a", "(?i:a)", "(", "a{9000}{9000}"]
)
def test_what_needs_more_than_an_automaton_is_refused(pattern: str) -> None:
    with pytest.raises(re.error):
        Pattern(pattern)
