"""The summary on a terminal: it fits, says how far to trust itself, and takes names as text."""

from __future__ import annotations

import io

import numpy as np
import pytest
from report_posteriors import HOSTILE_NAMES, LONG_NAMES, hostile_posterior, noisy_posterior
from rich.cells import cell_len
from rich.console import Console

from gflowdag.display.console import print_posterior
from gflowdag.posterior.diagnostics import Diagnostics
from gflowdag.posterior.posterior import Posterior

WIDE_NAMES = (
    "収縮期血圧の平均値（安静時）",
    "拡張期血圧の平均値（安静時）",
    "血中グルコース濃度ミリモル毎リットル",
    "血中インスリン濃度ミリモル毎リットル",
    "年齢",
)


def printed(posterior: Posterior, width: int = 80, **options) -> list[str]:
    console = Console(file=io.StringIO(), width=width, highlight=False)
    print_posterior(posterior, console, **options)
    return console.file.getvalue().splitlines()  # type: ignore[attr-defined]


def test_the_verdict_comes_first_and_the_edges_follow_with_their_errors():
    diagnostics = Diagnostics("not converged", "R-hat is 1.3.", chosen="mc3: it is quick")
    lines = printed(noisy_posterior(5, 50, method="mc3", diagnosis=diagnostics, log_evidence=-3.0))
    assert lines[:3] == [
        "mc3 · 5 variables · 50 graphs drawn",
        "Computed  Not converged. R-hat is 1.3.",
        "Modelled  Not checked. Whether the data fit the model is not known.",
    ]
    assert lines[3].startswith("Causal    Assumed. An arrow is a cause only if there is")
    assert lines[6:8] == ["Method chosen: mc3: it is quick.", "Log evidence -3.0000"]
    assert lines[9].split() == ["edge", "probability", "reverse", "absent", "±", "error"]
    assert len(lines[10].split()) == 7
    assert lines[10].split()[-1] == "–"  # chains that did not mix have no error worth the name


def test_no_error_is_said_to_be_zero():
    graphs = np.zeros((100, 2, 2), bool)
    graphs[:, 0, 1] = True
    diagnosis = Diagnostics("trusted", "R-hat is 1.001.", edge_errors=np.zeros((2, 2)))
    chains = Posterior(graphs, ("a", "b"), diagnosis=diagnosis)
    (row,) = [line for line in printed(chains) if line.startswith("a → b")]
    assert row.split()[3:] == ["1.000", "0.000", "0.000", "<0.001"]


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


@pytest.mark.parametrize("width", [40, 60, 80, 120])
@pytest.mark.parametrize("names", [LONG_NAMES, WIDE_NAMES, tuple("abcde")], ids=["long", "wide", "short"])
def test_figures_are_whole_at_every_width_and_columns_left_out_are_named(width, names):
    posterior = noisy_posterior(5, 50, names=names)
    pairs = posterior.edge_table().head(3)
    lines = printed(posterior, width, max_rows=3)
    assert max(map(cell_len, lines)) <= width
    start = next(index for index, line in enumerate(lines) if line.startswith("edge"))
    left_out = " ".join(" ".join(lines).partition("too narrow for ")[2].partition(":")[0].split())
    expected = [column for column in ("probability", "reverse", "absent", "error") if column not in left_out]
    assert lines[start].replace("±", "").split() == ["edge", *expected]
    for line, (_, pair) in zip(lines[start + 1 :], pairs.iterrows(), strict=False):
        assert line.split()[3:] == [f"{pair[column]:.3f}" for column in expected]
    assert len(expected) >= (1 if width == 40 else 3)
    assert (left_out == "") == (width >= 80 or len(expected) == 4)


def test_a_very_narrow_terminal_wraps_names_and_keeps_figures_whole():
    lines = printed(noisy_posterior(5, 50, names=LONG_NAMES), 30, max_rows=1)
    assert max(map(cell_len, lines)) <= 30
    assert any(line.endswith(" 0.780") for line in lines)


@pytest.mark.parametrize("verdict", ["not converged", "unverified"])
def test_what_nothing_vouches_for_is_no_expectation(verdict):
    posterior = noisy_posterior(5, 50, diagnosis=Diagnostics(verdict=verdict, explanation=""))
    text = " ".join(printed(posterior))
    assert "4.9 edges on average in the samples; 6 in more than half of them." in text
    assert "expected" not in text
    vouched = noisy_posterior(5, 50, diagnosis=Diagnostics(verdict="trusted", explanation=""))
    assert "edges expected; 6 more likely than not." in " ".join(printed(vouched))


def test_rows_beyond_the_limit_are_counted():
    lines = printed(noisy_posterior(6, 80), max_rows=2)
    assert "13 less probable pairs are in the report." in " ".join(" ".join(lines).split())
