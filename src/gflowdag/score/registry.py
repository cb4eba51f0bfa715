"""Scores by name, and the way from a table to a score. A new score is one file and one line in `SCORES`."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from gflowdag.errors import KnowledgeError, ScoreError
from gflowdag.runtime.messages import counted, instead
from gflowdag.runtime.place import option
from gflowdag.score.base import Score
from gflowdag.score.bdeu import BDeu
from gflowdag.score.bge import BGe
from gflowdag.score.conditional_gaussian import ConditionalGaussian
from gflowdag.score.degenerate_gaussian import DegenerateGaussian
from gflowdag.score.generalized_linear import GeneralizedLinear
from gflowdag.score.local_score import LocalScore, UnboundScore
from gflowdag.score.priors import Prior, make_prior
from gflowdag.score.score_files import ENDINGS, ScoreFile

if TYPE_CHECKING:
    from gflowdag.data import Constraints, Dataset, Knowledge

SCORES: dict[str, Callable[..., UnboundScore]] = {
    "bge": BGe,
    "bdeu": BDeu,
    "bde": partial(BDeu, ess=1.0, cells_per_row=None, edge_factor=1.0),  # as in the literature
    "conditional-gaussian": ConditionalGaussian,
    "degenerate-gaussian": DegenerateGaussian,
    "generalized-linear": GeneralizedLinear,
}


def make_score(
    data: Dataset,
    *,
    score: str | UnboundScore = "auto",
    prior: str | Prior = "fair",
    knowledge: Knowledge | None = None,
    **hyper: Any,
) -> Score:
    """The log score of every DAG over the columns of a table.

    Args:
        data: validated table; its own knowledge counts where none is given here.
        score: `"bge"` (continuous), `"bdeu"` (discrete), `"generalized-linear"` (both kinds), `"auto"` for
            the one of them that fits the columns, `"conditional-gaussian"` or `"degenerate-gaussian"` (both
            kinds, on other assumptions), `"bde"` (BDeu with equivalent sample size 1, no limit on cells and
            the structure prior as it is, as in the literature), the path of a file of local scores (`.jkl`),
            or an object with its hyper-parameters: `BGe(alpha_mu=2.0)`, `BDeu(ess=10)`, a `LocalScore` of
            your own.
        prior: `"fair"`, `"uniform"`, `"erdos-renyi"`, `"edge"`, or a prior object with its parameters.
        knowledge: required and forbidden edges, tiers, limit on the parents.
        **hyper: hyper-parameters of a score that is given by name: those of its class.
    """
    likelihood = bind_score(data, score, **hyper)
    return Score(
        names=tuple(data.names),
        likelihood=likelihood,
        prior=make_prior(prior),
        constraints=_constraints(data, knowledge, likelihood, score),
    )


def bind_score(data: Dataset, score: str | UnboundScore, **hyper: Any) -> LocalScore:
    """The local score of the columns of a table; arguments as for `make_score`."""
    if data.missing is not None:
        raise ScoreError(
            f"{counted(data.missing.sum(), 'cell')} of the table are missing, and a score needs all. A fit "
            f"imputes them; here leave out the rows that have any: {option('missing', 'drop')}."
        )
    bound = unbound_score(data, score, **hyper).bind(data)
    if data.intervened is not None and not bound.uses_interventions:
        raise ScoreError(
            f"{score!r} does not use interventions. Leave out the rows in which a variable was set from "
            "outside, or let its `local` leave them out for that variable and set `uses_interventions = "
            "True`."
        )
    return bound


def unbound_score(data: Dataset, score: object, **hyper: Any) -> UnboundScore:
    """The score object behind a name, or the object itself; anything else is refused."""
    if isinstance(score, type) or not isinstance(score, str | UnboundScore):
        instance = f" Give an instance: {score.__name__}()." if isinstance(score, type) else ""
        raise ScoreError(
            f"score must be one of auto, {', '.join(SCORES)}, or an object such as BGe(alpha_mu=2.0), not "
            f"{score!r}.{instance}"
        )
    if not isinstance(score, str):
        if hyper:
            raise ScoreError(
                f"{score!r} is an object with parameters of its own: give it {', '.join(sorted(hyper))}."
            )
        return score
    if score.endswith(ENDINGS):
        return ScoreFile(score)
    if score == "auto":
        score = fitting_score(data)
    return named_score(score, **hyper)


def named_score(name: str, **hyper: Any) -> UnboundScore:
    """The score of a name, with hyper-parameters."""
    if name not in SCORES:
        raise ScoreError(f"There is no score {name!r}: {instead(name, ['auto', *SCORES])}.")
    known = parameters_of(name)
    if unknown := sorted(set(hyper) - set(known)):
        raise ScoreError(f"Score {name!r} has no parameter {unknown}; its parameters are {', '.join(known)}.")
    return SCORES[name](**hyper)


def parameters_of(name: str) -> list[str]:
    """The hyper-parameters of a score of `SCORES`."""
    return list(inspect.signature(SCORES[name]).parameters)


def fitting_score(data: Dataset) -> str:
    """The score that `"auto"` takes for a table: by the kinds of its columns."""
    if data.is_continuous:
        return "bge"
    if data.is_discrete:
        return "bdeu"
    return "generalized-linear"


def _constraints(
    data: Dataset, knowledge: Knowledge | None, likelihood: LocalScore, score: object
) -> Constraints:
    """What the knowledge and the score rule out."""
    known = _knowledge(data, knowledge).resolve(data.names)
    excluded = likelihood.forbidden_edges
    if excluded is None:
        return known
    for source, target in zip(*np.nonzero(known.required & excluded), strict=True):
        raise KnowledgeError(
            f"{data.names[source]} → {data.names[target]} is required, and the score {score!r} has no "
            f"likelihood for this edge. Use {option('score', 'generalized-linear')}, or take it out of the "
            "knowledge."
        )
    return known._replace(forbidden=known.forbidden | excluded)


def _knowledge(data: Dataset, knowledge: Knowledge | None) -> Knowledge:
    from gflowdag.data import Knowledge

    if knowledge is not None and data.knowledge is not None and knowledge != data.knowledge:
        raise KnowledgeError("The Dataset has other prior knowledge than `knowledge`. Give it in one place.")
    return knowledge or data.knowledge or Knowledge()
