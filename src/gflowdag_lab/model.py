"""The model under which the laboratory measures, by name: what was measured stays comparable.

It is that of the paper, and what version 0.2 did by default: every DAG is equally likely; BGe for continuous
columns; BDeu with equivalent sample size 1 and no limit on cells for discrete ones.
"""

from __future__ import annotations

from typing import Any

from gflowdag.data import Dataset
from gflowdag.score import Score, make_score

PRIOR = "uniform"


def paper_score(data: Dataset, *, prior: Any = PRIOR) -> Score:
    """The score of a table under the paper's model."""
    return make_score(data, score=score_name(data), prior=prior)


def score_name(data: Dataset) -> str:
    """The paper's score for the columns of a table."""
    return "bge" if data.is_continuous else "bde"
