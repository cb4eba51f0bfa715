"""The section of the linear-Gaussian experiments says what was not run to its end."""

import pandas as pd
import pytest

from gflowdag.experiments import lingauss

FIGURES = {"e_edges": 50.0, "e_shd": 30.0, "auroc": 0.9, "marginal_auroc": 0.9, "seconds": 10.0}


def section(options: str, iterations: int) -> str:
    row = {"method": "dag-gflownet", "size": "full", "options": options, "iterations": iterations}
    problem = {"scaling": "raw", "problem": "d20-n100-s0-raw", "num_variables": 20}
    fits = pd.DataFrame([row | FIGURES | problem])
    return lingauss.section({"lingauss20": fits, "lingauss20-held-out": pd.DataFrame()}, d=20)


@pytest.mark.parametrize(
    ("iterations", "said"), [(1000, "1,000 of 2,000 iterations, with 3 minutes"), (10, "with 9.9 hours")]
)
def test_training_that_the_clock_ended_is_named_with_what_was_left(iterations: int, said: str):
    # `fast` takes 2,000 iterations: 180 s for a half leave 180 s, 180 s for ten leave 199 times as much.
    assert said in section("preset=fast, budget=180.0", iterations)


def test_training_that_came_to_its_end_is_not():
    assert "by the clock" not in section("preset=fast", 2000)
