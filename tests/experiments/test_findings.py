"""The findings speak with the numbers of rows that were run at full size, by today's methods."""

import pandas as pd
import pytest

from gflowdag import __version__
from gflowdag.experiments import findings


def text(size: str, version: str) -> str:
    row = {"method": "dag-gflownet-paper", "problem": "sachs", "reference_edges": 17, "iterations": 60_000}
    table = pd.DataFrame(
        [
            {**row, "alignment": "by name", "e_shd": 14.0, "e_edges": 9.5},
            {**row, "alignment": "by position", "e_shd": 22.5, "e_edges": 9.5},
        ]
    )
    return findings.text({"sachs": table.assign(size=size, version=version)})


def test_the_papers_recipe_is_shown_in_both_alignments() -> None:
    said = "on `sachs` E-SHD 14.00 by name and 22.50 by position, with 9.50 expected edges after 60,000"
    assert said in text("full", __version__)


@pytest.mark.parametrize(("size", "version"), [("quick", __version__), ("full", "0.1.0")])
def test_a_recipe_that_was_run_briefly_or_in_another_form_is_not(size: str, version: str) -> None:
    assert "run here:" not in text(size, version)
