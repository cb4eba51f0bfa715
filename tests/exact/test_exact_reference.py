"""References on disk: computed once for each table."""

from __future__ import annotations

import numpy as np
import pytest
from slow_exact import random_table

from gflowdag.exact import posterior, reference


def test_a_reference_is_computed_once_for_each_table(tmp_path, monkeypatch):
    table = random_table(5, np.random.default_rng(0))
    exact = posterior(table)
    first = reference(table, tmp_path)
    assert first.log_evidence == exact.log_evidence
    np.testing.assert_array_equal(first.edge_probabilities, exact.edge_probabilities)

    def refuse(*_, **__):
        raise AssertionError("computed again")

    monkeypatch.setattr("gflowdag.exact.references.posterior", refuse)
    again = reference(table, tmp_path)
    assert again.log_evidence == first.log_evidence
    np.testing.assert_array_equal(again.path_probabilities, exact.path_probabilities)
    table[0, 0] += 1e-9
    with pytest.raises(AssertionError, match="computed again"):
        reference(table, tmp_path)
