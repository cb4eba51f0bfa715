"""Tables of the page on the paper's experiments."""

from __future__ import annotations

from gflowdag_lab.paper.tables import by_training


def test_rows_whose_training_the_clock_ended_stand_apart() -> None:
    rows = [
        {"method": "trained", "run": "full, 2 data sets, 9 s, 2,000 iterations"},
        {"method": "stopped", "run": "full, 2 data sets, 9 s, 130 of 100,000 iterations"},
        {"method": "without training", "run": "full, 2 data sets, 1 s"},
    ]
    above, below = by_training(rows).split("*Training not finished*")
    assert "trained" in above
    assert "without training" in above
    assert "stopped" not in above
    assert "stopped" in below
