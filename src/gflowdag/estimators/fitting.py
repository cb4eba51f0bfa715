"""`fit`: from a table to the posterior in one call."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, Unpack

from gflowdag.data.read_options import ColumnKeywords
from gflowdag.errors import GFlowDAGError
from gflowdag.estimators.fit_keywords import FitOptions
from gflowdag.estimators.registry import estimator_class
from gflowdag.runtime.messages import instead

if TYPE_CHECKING:
    import numpy as np

    from gflowdag.data import Knowledge
    from gflowdag.posterior.posterior import Posterior
    from gflowdag.score import Prior, UnboundScore

_READING = tuple(ColumnKeywords.__annotations__)


def fit(
    X: Any,
    *,
    method: str = "auto",
    score: str | UnboundScore = "auto",
    prior: str | Prior = "auto",
    knowledge: Knowledge | None = None,
    interventions: Any = None,
    standardize: bool = True,
    num_samples: int = 1000,
    random_state: int | np.random.Generator | None = 0,
    verbose: bool = False,
    budget: float | None = None,
    completions: int | None = None,
    **options: Unpack[FitOptions],
) -> Posterior:
    """The posterior over the graphs that could have produced the table `X`.

    Args:
        X: `Dataset`, pandas or polars DataFrame, or array, shape [rows, variables].
        method: the name of a method; `"auto"` takes the exact posterior where that needs about two minutes or
            less, or no more than the budget, and otherwise parent-set MCMC.
        score: `"auto"`, `"bge"` (continuous columns), `"bdeu"` (discrete ones), `"generalized-linear"`,
            `"conditional-gaussian"` or `"degenerate-gaussian"` (both kinds), or a score object:
            `BGe(alpha_w=20)`, `BDeu(ess=10)`, a `LocalScore` of your own.
        prior: structure prior: `"auto"` (`"fair"`; `"uniform"` with `preset="paper"`), `"fair"`,
            `"uniform"`, `"erdos-renyi"`, `"edge"`, or an object with
            `log_weights(d)`, the log weight of each number of parents.
        knowledge: a `Knowledge` object.
        interventions: which variable was set from outside in which row; see `Dataset.from_frame`.
        standardize: scale continuous columns to mean 0 and standard deviation 1.
        num_samples: number of graphs to return.
        random_state: seed.
        verbose: show progress.
        budget: seconds that the whole call may take; what has begun is finished (a step of the chains, say).
        completions: number of completed tables, where cells are missing; by default as many as are needed for
            small errors, or 10 where each of them is fitted by itself.
        **options: how the table is read (the attributes of `ReadOptions`, such as `kinds`, `missing` and
            `transform`), and further parameters of the method's estimator.
    """
    reading = {name: value for name, value in options.items() if name in _READING}
    own = {name: value for name, value in options.items() if name not in _READING}
    chosen = estimator_class(method)
    parameters = inspect.signature(chosen).parameters
    if unknown := sorted(own.keys() - parameters.keys()):
        known = ("method", *sorted(parameters), *_READING, "interventions")
        there = _other_place(unknown[0]) or instead(unknown[0], known)
        raise GFlowDAGError(f"{method} has no option {unknown[0]!r}: {there}")
    estimator = chosen(
        score=score,
        prior=prior,
        knowledge=knowledge,
        standardize=standardize,
        num_samples=num_samples,
        random_state=random_state,
        verbose=verbose,
        budget=budget,
        completions=completions,
        **own,  # pyright: ignore[reportArgumentType] (checked above)
    )
    if reading:
        from gflowdag.data import Dataset

        if isinstance(X, Dataset):
            raise GFlowDAGError(
                f"a Dataset has been read already: give {', '.join(reading)} where it is made"
            )
        X = Dataset.as_dataset(
            X, interventions=interventions, knowledge=knowledge, standardize=standardize, **reading
        )
        interventions = None
    return estimator.fit(X, interventions=interventions).posterior_


def _other_place(name: str) -> str | None:
    """Where a parameter belongs that is not one of `fit`: to the score or to the knowledge, if to either."""
    from gflowdag.data import Knowledge
    from gflowdag.score import SCORES

    if name in inspect.signature(Knowledge).parameters:
        return f"give it as knowledge=Knowledge({name}=...)"
    for score in SCORES.values():
        if inspect.isclass(score) and name in inspect.signature(score).parameters:
            return f"give it to the score, as in score={score.__name__}({name}=...)"
    return None
