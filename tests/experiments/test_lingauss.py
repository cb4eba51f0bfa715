"""The section of the linear-Gaussian experiments says what was not run to its end."""

import pandas as pd

from gflowdag.experiments import lingauss

FIGURES = {"e_edges": 50.0, "e_shd": 30.0, "auroc": 0.9, "marginal_auroc": 0.9, "seconds": 10.0}
FIGURES |= {"edge_r": 0.7, "ess": 0.02}


def section(*iterations: int) -> str:
    """With `fast`, which takes 2,000 iterations, on as many data sets."""
    fits = pd.DataFrame(
        {
            "method": "dag-gflownet",
            "size": "full",
            "iterations": iterations,
            "scaling": "raw",
            "problem": [f"d20-n100-s{seed}-raw" for seed in range(len(iterations))],
            "num_variables": 20,
            **FIGURES,
        }
    )
    return lingauss.section({"lingauss20": fits, "lingauss20-held-out": pd.DataFrame()}, d=20)


def test_training_that_the_clock_ended_is_named():
    assert "(fast) after 1,000 of 2,000 iterations. An ESS" in section(1000)


def test_a_network_that_was_trained_far_longer_is_named_with_its_fidelity():
    said = section(10, 1000, 10)
    assert "after 10 of 2,000 iterations (d20-n100-s1-raw for 1,000: " in said
    assert "correlation with the reference 0.70, ESS 0.020)" in said


def test_training_that_came_to_its_end_is_not():
    assert "by the clock" not in section(2000)


def test_boxes_that_were_computed_at_different_times_share_one_evidence():
    box = dict.fromkeys(lingauss._BOX, 10.0)
    rows = [
        {"scaling": "raw", "method": "mc3", "log_evidence": 5.0, "evidence_from": "exact"} | box,
        {"scaling": "raw", "method": "truth", "log_evidence": 7.0, "evidence_from": "order-gflownet"} | box,
        {"scaling": "standardised", "method": "mc3", "log_evidence": 1.0, "evidence_from": "dibs"} | box,
        {"scaling": "standardised", "method": "truth", "log_evidence": 3.0, "evidence_from": "mc3"} | box,
    ]
    shown = lingauss._one_evidence(pd.DataFrame(rows))
    # The exact evidence, else the largest; log P(G, D'|D) is the log joint without it.
    assert shown["log_evidence"].tolist() == [5.0, 5.0, 3.0, 3.0]
    assert shown["held_out_median"].tolist() == [10.0, 12.0, 8.0, 10.0]
    assert shown["evidence_from"].tolist() == ["exact", "exact", "mc3", "mc3"]
