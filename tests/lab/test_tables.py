"""Tables of the page on the paper's experiments."""

from __future__ import annotations

from gflowdag_lab.paper.tables import by_training, markdown


def test_rows_whose_training_the_clock_ended_stand_apart() -> None:
    rows = [
        {"method": "trained", "run": "full, 2 data sets, 9 s, 2,000 iterations"},
        {"method": "stopped", "run": "full, 2 data sets, 9 s, 130 of 100,000 iterations"},
        {"method": "without training", "run": "full, 2 data sets, 1 s"},
    ]
    finished, unfinished = by_training(rows, heading="Raw")
    assert finished.startswith("Raw\n\n| method")
    assert "| trained |" in finished
    assert "| without training |" in finished
    assert "stopped" not in finished
    assert "| stopped |" in unfinished
    assert "trained" not in unfinished
    assert by_training(rows[:1], heading="Raw")[1] == ""


def test_a_bar_in_a_cell_does_not_end_it() -> None:
    assert markdown([{"value": "P(a|b)"}]).splitlines()[-1] == r"| P(a\|b) |"
