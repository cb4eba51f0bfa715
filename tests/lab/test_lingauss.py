"""The section of the linear-Gaussian experiments says what was not run to its end."""

import pandas as pd

from gflowdag_lab.paper import lingauss

VALUES = {"e_edges": 50.0, "e_shd": 30.0, "auroc": 0.9, "marginal_auroc": 0.9, "seconds": 10.0}
VALUES |= {"edge_r": 0.7, "ess": 0.02}


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
            **VALUES,
        }
    )
    return lingauss.section({"lingauss20": fits, "lingauss20-held-out": pd.DataFrame()}, d=20).text


def test_training_that_the_clock_ended_is_named():
    assert "(fast) after 1,000 of 2,000 iterations. An ESS" in section(1000)


def test_a_network_that_was_trained_far_longer_is_named_with_its_fidelity():
    said = section(10, 1000, 10)
    assert "after 10 of 2,000 iterations (d20-n100-s1-raw for 1,000: " in said
    assert "correlation with the reference 0.70, ESS 0.020)" in said


def test_training_that_came_to_its_end_is_not():
    assert "by the clock" not in section(2000)


def test_boxes_share_one_evidence_the_exact_one_or_else_the_largest():
    box = dict.fromkeys(lingauss._BOX, 10.0)
    evidence = {
        "raw": {"exact": 5.0, "order-gflownet": 7.0, "truth": None},
        "standardised": {"dibs": None, "dag-gflownet": 1.0, "order-gflownet": 3.0},
        "none": {"dibs": None},
    }
    rows = [
        {"scaling": scaling, "method": method, "log_evidence": value} | box
        for scaling, methods in evidence.items()
        for method, value in methods.items()
    ]
    shown = lingauss._given_the_data(pd.DataFrame(rows)).set_index(["scaling", "method"])
    assert shown["median"].tolist() == [5.0, 5.0, 5.0, 7.0, 7.0, 7.0]  # the log joint without it
    assert shown["evidence_from"].tolist() == ["exact"] * 3 + ["order-gflownet"] * 3
