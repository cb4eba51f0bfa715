"""Two posteriors compared: aligned by name, and noise told from change."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import gflowdag as gd
from gflowdag.errors import DataError
from gflowdag.graph import all_dags
from gflowdag.posterior.diagnostics import Diagnostics
from gflowdag.posterior.posterior import Posterior

DAGS = all_dags(3)


def _sampled(rng: np.random.Generator, p: np.ndarray | None = None, n: int = 400) -> Posterior:
    diagnosis = Diagnostics("trusted", "Independent draws.")
    return Posterior(DAGS[rng.choice(len(DAGS), n, p=p)], "ABC", diagnosis=diagnosis)


def test_sampling_noise_is_no_change() -> None:
    """Of 200 pairs of samples from one law, about 1 % may show a change: 6 or more of 200 has p = 0.016."""
    rng = np.random.default_rng(0)
    alarms = sum(_sampled(rng).difference(_sampled(rng)).num_changed > 0 for _ in range(200))
    assert alarms <= 5


def test_a_change_is_found_and_stands_on_top() -> None:
    rng = np.random.default_rng(1)
    tilted = np.where(DAGS[:, 0, 1], 3.0, 1.0)
    found = _sampled(rng).difference(_sampled(rng, tilted / tilted.sum()))
    top = found.edges.iloc[0]
    assert (top["source"], top["target"], bool(top["more_than_noise"])) == ("A", "B", True)
    assert top["difference"] == pytest.approx(top["second"] - top["first"])
    assert "differ" in found.summary()


def test_edges_are_aligned_by_name() -> None:
    rng = np.random.default_rng(2)
    first = _sampled(rng)
    order = [2, 0, 1]
    second = replace(first, samples=first.samples[:, order][:, :, order], names=["C", "A", "B"])
    found = first.difference(second)
    assert (found.edges["difference"] == 0).all()
    assert found.num_changed == 0
    smaller = replace(second, samples=second.samples[:, 1:, 1:], names=["A", "B"])
    found = first.difference(smaller)
    assert (len(found.edges), found.only_first, found.only_second) == (2, ("C",), ())
    with pytest.raises(DataError, match="no variable in common"):
        first.difference(replace(smaller, names=["X", "Y"]))


def test_exact_posteriors_differ_wherever_they_do_and_name_the_settings_that_differ() -> None:
    frame = gd.simulate.linear_gaussian(3, 50, random_state=0).frame
    first, again = (gd.fit(frame, method="exact", num_samples=20, random_state=seed) for seed in (0, 1))
    assert first.difference(again).num_changed == 0
    assert not len(first.difference(again).settings)
    other = gd.fit(frame.iloc[:40], method="exact", num_samples=20, random_state=0)
    found = first.difference(other)
    assert found.num_changed > 0
    assert set(found.settings["setting"]) == {"table", "rows"}


def test_errors_of_an_unvouched_posterior_are_not_believed() -> None:
    rng = np.random.default_rng(3)
    doubtful = replace(_sampled(rng), diagnosis=Diagnostics("not converged", "Chains disagree."))
    assert "neither exact nor trusted" in _sampled(rng).difference(doubtful).summary()


def test_one_table_under_other_transforms_is_told_from_another_table() -> None:
    frame = np.exp(gd.simulate.linear_gaussian(3, 50, random_state=0).frame)
    plain, logs = (
        gd.fit(frame, method="exact", transform=transform, num_samples=20, random_state=0)
        for transform in (None, {"X2": "log"})
    )
    found = plain.difference(logs)
    assert found.recoded == ("X2",)
    assert "one table, in which X2 had another transform" in found.summary()
    assert list(found.settings["setting"]) == ["scale of X2"]
    changed = frame.assign(X1=frame["X1"] * 2 + 1)
    other = gd.fit(changed, method="exact", transform={"X2": "log"}, num_samples=20, random_state=0)
    assert plain.difference(other).recoded == ()
    assert "table" in list(plain.difference(other).settings["setting"])
