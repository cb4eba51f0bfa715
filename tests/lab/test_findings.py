"""The findings speak with the numbers of rows that were run at full size, by today's methods."""

from pathlib import Path

import pandas as pd
import pytest

from gflowdag import __version__
from gflowdag_lab.paper import findings, structure_prior, target_network

LABORATORY = Path(__file__).parents[2] / "docs" / "laboratory"


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


def under_both_priors(uniform: float, sparse: float, extra: float = 1000.0) -> dict[str, pd.DataFrame]:
    """Exact fits of raw data with these E-SHD, and one more data set that `uniform` alone was run on."""
    row = {"method": "exact", "scaling": "raw", "size": "full", "e_edges": 50.0, "auroc": 0.99}
    fits = [row | {"task": f"s{seed}--exact", "problem": f"s{seed}", "seed": seed} for seed in range(3)]
    sparse_fits = [fit | {"e_shd": sparse, "held_out_gap": -fit["seed"]} for fit in fits[:2]]
    uniform_fits = [fit | {"e_shd": uniform, "held_out_gap": fit["seed"]} for fit in fits]
    uniform_fits[2]["e_shd"] = extra
    return {
        "lingauss20": pd.DataFrame(uniform_fits),
        "lingauss20-erdos-renyi": pd.DataFrame(sparse_fits),
    }


def test_a_published_row_is_near_a_prior_if_the_exact_posterior_lies_within_its_quartiles() -> None:
    """Published E-SHD of MC3: 54.19 to 63.56."""
    for sparse, near in ((54.0, False), (54.2, True), (63.5, True), (63.6, False)):
        compared = structure_prior.comparisons(under_both_priors(110.0, sparse))
        found = next(one for one in compared if (one.published, one.measure) == ("mc3", "e_shd"))
        assert (found.near("uniform"), found.near("erdos-renyi")) == (False, near)
        assert found.exact == {"uniform": 110.0, "erdos-renyi": sparse}  # without the third data set


def test_the_finding_lists_what_fits_and_what_does_not() -> None:
    said = structure_prior.text(under_both_priors(110.0, 60.0))
    near = next(line for line in said.splitlines() if line.startswith("- near under `erdos-renyi`"))
    assert (
        "E-SHD of MC3 (published 58.8, quartiles 54.2 to 63.6; exact 110.0 under `uniform` and 60.0" in near
    )
    assert "AUROC" not in near
    assert "- near under `uniform`: nothing;" in said
    assert "2 data sets: under `uniform` 0.5 (0.0 to 1.0), 0 of 2 below the true graph; under" in said
    assert "`erdos-renyi` -0.5 (-1.0 to 0.0), 1 of 2 below the true graph. Of the 7 published rows 7" in said


def test_without_rows_under_both_priors_the_finding_has_no_numbers() -> None:
    tables = under_both_priors(110.0, 60.0)
    del tables["lingauss20-erdos-renyi"]
    assert "published" not in structure_prior.text(tables)
    assert structure_prior.line(tables) is None


def test_the_rows_of_the_target_network_are_those_of_its_files() -> None:
    """On the page of DAG-GFlowNet, written by hand."""
    said = (LABORATORY / "dag-gflownet.md").read_text(encoding="utf-8")
    section = said.split("## The target network\n")[1].split("\n## ")[0]
    rows = target_network.tables(LABORATORY / "reproduction")["target-network"].to_dict(orient="records")
    assert {row["lever"] for row in rows} >= {"retuned", "no target network"}
    for row in rows:
        measured = (
            f"{row['r_edges']:.4f} | {row['max_error']:.3f} | {row['jsd']:.4f} | {row['cpu_seconds']:.0f}"
        )
        assert f"| {row['network']} {row['data']} | {row['iterations']:,} | " in section
        assert measured in section, row
