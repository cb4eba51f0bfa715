"""Methods that fit a table as a whole, on tables with gaps: some completed tables, each fitted by itself.

The tables come from chains that draw graphs and missing cells in turn (`augmentation`), far enough apart. The
posterior given what was observed is the mean of those of the completed tables, and its variance that within
them plus that between them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from gflowdag.errors import GFlowDAGError
from gflowdag.estimators.augmentation import NUM_CHAINS, Augmentation, Completions, run
from gflowdag.estimators.cost import EXPECTED_FITS
from gflowdag.estimators.imputed_posterior import imputed_cells
from gflowdag.estimators.sweeps import Sweeps
from gflowdag.posterior.diagnostics import Diagnostics, Verdict
from gflowdag.posterior.imputation import ASSUMPTION, Imputation
from gflowdag.posterior.posterior import Posterior
from gflowdag.runtime.convergence import MAXIMAL_ERROR, MAXIMAL_R_HAT
from gflowdag.runtime.messages import counted, was
from gflowdag.runtime.place import option
from gflowdag.runtime.progress import Progress, begin_phase

if TYPE_CHECKING:
    from gflowdag.estimators.base import StructureLearner

_ROUNDS = 400  # of all chains together, from which the tables are taken
_SHARE_OF_CHAINS = 0.2  # of a budget
_WORST_FIRST: tuple[Verdict, ...] = ("not converged", "unverified", "trusted", "exact")


def fit_completed_tables(
    learner: StructureLearner, augmentation: Augmentation, seed: int, progress: Progress
) -> Posterior:
    """The mixture of the posteriors of some completed tables."""
    if getattr(learner, "resume", False):
        raise GFlowDAGError(
            f"{learner.method} cannot go on where cells are missing: leave out {option('resume')}, or the "
            f"rows with missing cells ({option('missing', 'drop')})."
        )
    num_fits = learner.completions or EXPECTED_FITS
    chain_seed, *seeds = (int(x) for x in np.random.SeedSequence(seed).generate_state(1 + num_fits))
    begin_phase(progress, "imputing")
    sweeps = Sweeps(augmentation, chain_seed, deadline=learner.deadline.share(_SHARE_OF_CHAINS))
    found = run(
        augmentation,
        sweeps,
        seed=chain_seed,
        starts=sweeps.starts,
        num_rounds=-(-_ROUNDS // NUM_CHAINS),
        deadline=learner.deadline.share(_SHARE_OF_CHAINS),
        max_error=MAXIMAL_ERROR,
        progress=progress,
    )
    chosen = np.linspace(0, len(found.cells) - 1, num_fits).round().astype(int)
    posteriors: list[Posterior] = []
    for number, (table, fit_seed) in enumerate(zip(found.cells[chosen], seeds, strict=True)):
        begin_phase(progress, f"table {number + 1} of {num_fits}")
        values = augmentation.filled()
        values[augmentation.missing] = table
        fit = learner.for_completed_table(augmentation.completed(values), 1 / (num_fits - number), num_fits)
        posteriors.append(fit._infer(augmentation.score(values), fit_seed, progress))
    mixed = mixture(posteriors)
    of_sample = np.repeat(np.arange(num_fits), [post.num_samples for post in posteriors])
    return replace(
        mixed,
        diagnosis=_diagnosis(posteriors, found, augmentation),
        imputed_cells=imputed_cells(augmentation, found.cells[chosen], of_sample),
    )


def mixture(posteriors: Sequence[Posterior]) -> Posterior:
    """The mean of posteriors, each with the same weight."""
    first = posteriors[0]
    return Posterior(
        np.concatenate([post.samples for post in posteriors]),
        first.names,
        method=first.method,
        log_weights=np.concatenate([post.log_weights - logsumexp(post.log_weights) for post in posteriors]),
        marginals=_mean([post.marginals for post in posteriors]),
        path_marginals=_mean([post.path_marginals for post in posteriors]),
    )


def _mean(values: Sequence[NDArray[np.float64] | None]) -> NDArray[np.float64] | None:
    known = [value for value in values if value is not None]
    return np.mean(known, axis=0) if len(known) == len(values) else None


def _diagnosis(
    posteriors: Sequence[Posterior], found: Completions, augmentation: Augmentation
) -> Diagnostics:
    """The worst verdict of any fit, and of the chains that imputed."""
    number = len(posteriors)
    worst = min((post.diagnosis for post in posteriors), key=lambda one: _WORST_FIRST.index(one.verdict))
    verdict: Verdict = "trusted" if worst.verdict == "exact" else worst.verdict
    chains_agree = found.verdict.r_hat <= MAXIMAL_R_HAT
    if not chains_agree:
        verdict = "not converged"
    edges = np.array([post.edge_probabilities().to_numpy() for post in posteriors])
    mean = edges.mean(axis=0)
    total = float((mean * (1 - mean)).sum())
    between = float(edges.var(axis=0).sum() / total) if total > 0 else 0.0
    within = np.mean([post.edge_errors() ** 2 for post in posteriors], axis=0)
    of_mean = edges.var(axis=0, ddof=1) if number > 1 else np.zeros_like(within)
    missing = int(augmentation.missing.sum())
    agree = (
        "" if chains_agree else " The chains that imputed them do not agree: give them more time (budget)."
    )
    return Diagnostics(
        verdict,
        f"{counted(missing, 'missing cell')} {was(missing)} imputed {counted(number, 'time')}, by "
        f"{len(found.traces)} chains (R-hat {found.verdict.r_hat:.3f}), and each completed table was fitted "
        f"by itself.{agree} "
        f"{between:.0%} of the uncertainty about edges is between completed tables. It is assumed that "
        f"{ASSUMPTION}. Of the worst fit: {worst.explanation}",
        r_hat=max((post.diagnosis.r_hat or 1.0 for post in posteriors), default=None),
        edge_errors=np.sqrt(within / number + of_mean / number),
        independent_samples=_total([post.diagnosis.independent_samples for post in posteriors]),
        imputation=Imputation(missing, number, len(found.traces), found.verdict.r_hat, between),
        extra={"verdicts": [post.diagnosis.verdict for post in posteriors]},
    )


def _total(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(sum(known)) if len(known) == len(values) else None
