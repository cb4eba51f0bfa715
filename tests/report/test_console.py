"""The summary on a terminal: it fits, says how far to trust itself, and takes names as text."""

from __future__ import annotations

import io

from report_posteriors import HOSTILE_NAMES, LONG_NAMES, hostile_posterior, noisy_posterior
from rich.cells import cell_len
from rich.console import Console

from gflowdag.console import print_posterior
from gflowdag.posterior import Posterior


def printed(posterior: Posterior, **options) -> list[str]:
    console = Console(file=io.StringIO(), width=80, highlight=False)
    print_posterior(posterior, console, **options)
    return console.file.getvalue().splitlines()  # type: ignore[attr-defined]


def test_the_verdict_comes_first_and_the_edges_follow_with_their_errors():
    facts = {"verdict": "not converged", "explanation": "R-hat is 1.3.", "chosen": "mc3: it is quick"}
    lines = printed(noisy_posterior(5, 50, method="mc3", details=facts, log_evidence=-3.0))
    assert lines[:4] == [
        "Not converged · mc3 · 5 variables · 50 graphs drawn",
        "R-hat is 1.3.",
        "Method chosen: mc3: it is quick.",
        "Log evidence -3.0000",
    ]
    assert lines[5].split() == ["edge", "probability", "reverse", "absent", "±", "error"]
    assert len(lines[6].split()) == 7


def test_hostile_names_stay_on_their_line_and_in_80_columns():
    lines = printed(hostile_posterior())
    assert max(map(cell_len, lines)) <= 80
    assert any(HOSTILE_NAMES[0][:9] in line for line in lines)


def test_rows_of_long_names_fit_into_80_columns_whole_and_differ_from_each_other():
    posterior = noisy_posterior(5, 50, names=LONG_NAMES)
    lines = printed(posterior)
    start = next(index for index, line in enumerate(lines) if line.startswith("edge"))
    assert lines[start].split() == ["edge", "probability", "reverse", "absent", "±", "error"]
    shown = (posterior.edge_table()["probability"] >= 0.01).sum()
    rows = lines[start + 1 : start + 1 + shown]
    assert max(map(len, rows)) <= 80
    assert all(len(row.split()) == 7 for row in rows)
    assert {name for row in rows for name in row.split()[:3:2]} == {
        "mean_arte…_systolic",
        "mean_arte…diastolic",
        "mean_arte…e_at_rest",
        "concen…glucose_in_…",
        "concen…insulin_in_…",
    }


def test_rows_beyond_the_limit_are_counted():
    lines = printed(noisy_posterior(6, 80), max_rows=2)
    assert "13 less probable pairs are in the report." in " ".join(" ".join(lines).split())
