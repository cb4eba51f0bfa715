"""The findings speak with the numbers of rows that were run at full size, by today's methods."""

import pandas as pd
import pytest

from gflowdag import __version__
from gflowdag_lab.paper import findings


def text(size: str, version: str) -> str:
    row = {"method": "dag-gflownet-paper", "problem": "sachs", "reference_edges": 17, "iterations": 60_000}
    table = pd.DataFrame(
        [
            {**row, "alignment": "by name", "e_shd": 14.0, "e_edges": 9.5, "auroc": 0.7, "edge_r": 0.8},
            {**row, "alignment": "by position", "e_shd": 22.5, "e_edges": 9.5, "auroc": 0.4, "edge_r": 0.8},
        ]
    )
    return findings.text({"sachs": table.assign(size=size, version=version)})


def test_the_papers_recipe_is_shown_in_both_alignments() -> None:
    said = text("full", __version__)
    assert "on `sachs` E-SHD 14.00 by name (AUROC 0.700) and 22.50 by position (AUROC 0.400)" in said
    assert (
        "after 60,000 of 100,000 iterations, where its edges correlate with the exact ones by 0.800" in said
    )


@pytest.mark.parametrize(("size", "version"), [("quick", __version__), ("full", "0.1.0")])
def test_a_recipe_that_was_run_briefly_or_in_another_form_is_not(size: str, version: str) -> None:
    assert "run here:" not in text(size, version)
