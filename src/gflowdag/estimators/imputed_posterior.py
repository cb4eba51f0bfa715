"""The posterior of a table with gaps, from chains of completed tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gflowdag.estimators.augmentation import LONGEST, NUM_CHAINS, Augmentation, Completions, DrawGraphs, run
from gflowdag.estimators.chain_verdict import shown_traces
from gflowdag.posterior.diagnostics import Diagnostics
from gflowdag.posterior.imputation import ASSUMPTION, Imputation, ImputedCells
from gflowdag.posterior.posterior import Posterior
from gflowdag.runtime.convergence import MAXIMAL_ERROR, MAXIMAL_R_HAT, MINIMAL_EFFECTIVE_SAMPLES
from gflowdag.runtime.deadline import Deadline
from gflowdag.runtime.messages import counted, was
from gflowdag.runtime.progress import Progress

if TYPE_CHECKING:
    from gflowdag.estimators.base import StructureLearner

_MOST_STORED = 4_000_000  # numbers: beyond, draws of the missing cells are thinned
_SHARE_OF_CHAINS = 0.9  # of a budget; the rest is for what follows


def rounds_of_chain(completions: int | None, num_chains: int = NUM_CHAINS) -> int | None:
    """How long each chain runs for so many completed tables that count, or None where nobody says."""
    return None if completions is None else max(-(-completions // num_chains) * 4 // 3, 6)


def augmented_posterior(
    learner: StructureLearner,
    augmentation: Augmentation,
    draw_graphs: DrawGraphs,
    *,
    seed: int,
    progress: Progress,
    starts: list[NDArray[np.float64]] | None = None,
    max_error: float = MAXIMAL_ERROR,
) -> Posterior:
    """The mixture over completed tables.

    Args:
        learner: whose answer it is.
        augmentation: the table with gaps.
        draw_graphs: its step over graphs.
        seed: of the chains and of the choice of samples.
        progress: told how far they are.
        starts: completed tables that the chains start at; scattered ones by default.
        max_error: the largest Monte-Carlo error at which the chains stop.
    """
    deadline = learner.deadline if learner.deadline.is_set else Deadline.after(LONGEST)
    chain_seed, start_seed, sample_seed = (int(x) for x in np.random.SeedSequence(seed).generate_state(3))
    found = run(
        augmentation,
        draw_graphs,
        seed=chain_seed,
        starts=augmentation.starts(NUM_CHAINS, start_seed) if starts is None else starts,
        num_rounds=rounds_of_chain(learner.completions),
        deadline=deadline.share(_SHARE_OF_CHAINS),
        max_error=max_error,
        progress=progress,
    )
    rng = np.random.default_rng(sample_seed)
    graphs, of_sample = _samples(found, learner.num_samples, rng)
    return Posterior(
        graphs,
        augmentation.data.names,
        method=learner.method,
        marginals=found.edges,
        path_marginals=found.paths,
        diagnosis=_diagnostics(augmentation, found),
        imputed_cells=imputed_cells(augmentation, found.cells, of_sample),
    )


def imputed_cells(
    augmentation: Augmentation, cells: NDArray[np.float64], of_sample: NDArray[np.int64] | None
) -> ImputedCells | None:
    """What a posterior keeps of the completed tables; None where even few are too much."""
    rows, columns = np.nonzero(augmentation.missing)
    most = _MOST_STORED // max(cells.shape[1], 1)
    if most < len(cells):
        if most == 0:
            return None
        cells, of_sample = cells[np.linspace(0, len(cells) - 1, most).round().astype(int)], None
    return ImputedCells(rows, columns, cells, of_sample)


def _samples(
    found: Completions, num_samples: int, rng: np.random.Generator
) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Graphs, as evenly as can be from the completed tables that were kept, and which each belongs to."""
    num_tables, per_table = found.graphs.shape[:2]
    d = found.graphs.shape[-1]
    if num_samples >= num_tables * per_table:
        chosen = rng.integers(num_tables * per_table, size=num_samples)
    else:
        rounds = [np.arange(num_tables) * per_table + k for k in range(per_table)]
        chosen = np.concatenate([rng.permutation(one) for one in rounds])[:num_samples]
    return found.graphs.reshape(-1, d, d)[chosen], chosen // per_table


def _diagnostics(augmentation: Augmentation, found: Completions) -> Diagnostics:
    verdict = found.verdict
    fewest = min(verdict.bulk_ess, verdict.tail_ess)
    missing = int(augmentation.missing.sum())
    advice = "" if verdict.trusted else " Give the chains more time: a larger budget, or more completions."
    return Diagnostics(
        "trusted" if verdict.trusted else "not converged",
        f"{counted(missing, 'missing cell')} {was(missing)} imputed {found.num_rounds:,} times, by "
        f"{len(found.traces)} chains from scattered starts: the largest rank-normalised R-hat of any edge or "
        f"of the score is "
        f"{verdict.r_hat:.3f} ({MAXIMAL_R_HAT} or less is needed), the smallest effective sample size "
        f"{fewest:.0f} ({MINIMAL_EFFECTIVE_SAMPLES} or more), and the largest Monte-Carlo error of an edge "
        f"probability {verdict.error:.4f} ({MAXIMAL_ERROR} or less).{advice}{_share(found.between_share)} "
        f"It is assumed that {ASSUMPTION}.",
        r_hat=verdict.r_hat,
        effective_samples=fewest,
        independent_samples=fewest,
        edge_errors=found.errors,
        iterations=found.traces.shape[1],
        share_done=found.share_done,
        score_traces=shown_traces(found.traces),
        imputation=Imputation(
            missing, found.num_rounds, len(found.traces), verdict.r_hat, found.between_share
        ),
    )


def _share(between: float | None) -> str:
    if between is None:
        return ""
    return f" {between:.0%} of the uncertainty about edges is between completed tables."
