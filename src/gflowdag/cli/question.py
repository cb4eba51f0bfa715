"""What a run was asked: all that decides its answer, by content and not by the names of files."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, is_dataclass
from typing import Any

import numpy as np
import pandas as pd

from gflowdag.data import Dataset, Knowledge
from gflowdag.posterior.runs import NOT_ASKED
from gflowdag.posterior.truth import align_dag
from gflowdag.runtime.strict_json import dumps, standard
from gflowdag.score import ScoreFile, UnboundScore
from gflowdag.score.priors import make_prior
from gflowdag.score.registry import unbound_score


def question(
    config: Mapping[str, Any], data: Dataset, truth: pd.DataFrame | None, score: str | UnboundScore
) -> dict[str, Any]:
    """The settings of a run, with the content of its files, and a hash over all that decides the answer.

    Args:
        config: what the user typed.
        data: the table, with the knowledge that holds for it.
        truth: 0/1 frame [source, target], or None.
        score: with the hyper-parameters that the user set.
    """
    asked = {
        **config,
        "score_parameters": _parameters(unbound_score(data, score)),
        "prior_parameters": _parameters(make_prior(config["prior"])),
        "knowledge": None if data.knowledge is None else data.knowledge.to_dict(),
        "truth": None if truth is None else _edges(truth),
        "data_sha256": data.sha256,
    }
    asked = standard(asked)  # as it will be read from the file
    decides = {name: value for name, value in sorted(asked.items()) if name not in NOT_ASKED}
    return {**asked, "question_sha256": hashlib.sha256(dumps(decides).encode()).hexdigest()}


def stored_knowledge(config: Mapping[str, Any]) -> Knowledge | None:
    """The knowledge of a run; version 0.2 stored the path of a file, whose content of then is not known."""
    content = config.get("knowledge")
    return Knowledge.from_dict(content) if isinstance(content, dict) else None


def stored_truth(config: Mapping[str, Any], names: Sequence[str]) -> pd.DataFrame | None:
    """The true graph of a run as a 0/1 frame [source, target]; None where a path alone was stored."""
    edges = config.get("truth")
    if not isinstance(edges, list):
        return None
    graph = align_dag([(source, target) for source, target in edges], names)
    return pd.DataFrame(graph, index=list(names), columns=list(names))


def _edges(truth: pd.DataFrame) -> list[list[str]]:
    names = list(truth.columns)
    return [[names[i], names[j]] for i, j in np.argwhere(truth.to_numpy())]


def _parameters(made: Any) -> dict[str, Any]:
    """Hyper-parameters of a score or a prior by name; None is a default that depends on the table."""
    if isinstance(made, ScoreFile):
        return {"sha256": made.sha256}
    return asdict(made) if is_dataclass(made) and not isinstance(made, type) else {}
