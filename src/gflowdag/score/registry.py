"""Scores by name. A new likelihood is one file with a `MarginalLikelihood` and one line here."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from gflowdag.errors import KnowledgeError, ScoreError
from gflowdag.score.base import Score
from gflowdag.score.bdeu import BDeu
from gflowdag.score.bge import BGe
from gflowdag.score.likelihood import MarginalLikelihood
from gflowdag.score.priors import Prior, make_prior

if TYPE_CHECKING:
    from gflowdag.data import Dataset, Knowledge

LIKELIHOODS: dict[str, Callable[..., MarginalLikelihood]] = {"bge": BGe, "bde": BDeu, "bdeu": BDeu}


def make_score(
    data: Dataset,
    *,
    score: str = "auto",
    prior: str | Prior = "uniform",
    knowledge: Knowledge | None = None,
    **hyper: Any,
) -> Score:
    """The log score of every DAG over the columns of a table.

    Args:
        data: validated table; its own knowledge counts where none is given here.
        score: `"bge"` (continuous), `"bde"` (discrete), or `"auto"` for the one that fits the columns.
        prior: `"uniform"`, `"erdos-renyi"`, `"edge"`, `"fair"`, or a prior object with its parameters.
        knowledge: required and forbidden edges, tiers, limit on the parents.
        **hyper: hyper-parameters of the likelihood: `alpha_mu`, `alpha_w`, `scale`, `prior_mean` of BGe,
            `ess` of BDeu.
    """
    return Score(
        names=tuple(data.names),
        likelihood=make_likelihood(data, score, **hyper),
        prior=make_prior(prior),
        constraints=_knowledge(data, knowledge).resolve(data.names),
    )


def make_likelihood(data: Dataset, score: str, **hyper: Any) -> MarginalLikelihood:
    """The marginal likelihood of the columns of a table; arguments as for `make_score`."""
    if score == "auto":
        score = _fitting_score(data)
    if score not in LIKELIHOODS:
        raise ScoreError(f"There is no score {score!r}; the scores are auto, {', '.join(LIKELIHOODS)}.")
    likelihood = LIKELIHOODS[score]
    known = [name for name in inspect.signature(likelihood).parameters if name != "data"]
    if unknown := sorted(set(hyper) - set(known)):
        raise ScoreError(
            f"Score {score!r} has no parameter {unknown}; its parameters are {', '.join(known)}."
        )
    return likelihood(data, **hyper)


def _fitting_score(data: Dataset) -> str:
    if data.is_continuous:
        return "bge"
    if data.is_discrete:
        return "bde"
    continuous = [name for name, kind in zip(data.names, data.kinds, strict=True) if kind == "continuous"]
    raise ScoreError(
        f"No score handles a mix of kinds: {continuous} are continuous, the other columns discrete. "
        "Discretise the continuous columns (discretize='quantile')."
    )


def _knowledge(data: Dataset, knowledge: Knowledge | None) -> Knowledge:
    from gflowdag.data import Knowledge

    if knowledge is not None and data.knowledge is not None and knowledge != data.knowledge:
        raise KnowledgeError(
            "The data set carries knowledge and other knowledge was given as well: pass it in one place only."
        )
    return knowledge or data.knowledge or Knowledge()
