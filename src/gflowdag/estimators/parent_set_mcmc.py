"""The estimator of chains over all DAGs that draw whole parent sets."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from gflowdag.data import Dataset
from gflowdag.errors import GFlowDAGError, TooLargeError
from gflowdag.estimators.augmentation import Augmentation
from gflowdag.estimators.base import SHARE_OF_SEARCH, StructureLearner
from gflowdag.estimators.chain_verdict import shown_traces
from gflowdag.estimators.imputed_posterior import augmented_posterior
from gflowdag.estimators.method import Method, mebibytes, power_law
from gflowdag.estimators.parameters import keyword_parameters, positive, whole
from gflowdag.estimators.sweeps import Sweeps
from gflowdag.mcmc.unrestricted.run import FEWEST_SWEEPS, Result, Verdict, run
from gflowdag.mcmc.unrestricted.saved import Saver, load_state
from gflowdag.posterior.diagnostics import Diagnostics
from gflowdag.posterior.posterior import Posterior
from gflowdag.runtime.convergence import (
    FEWEST_SCATTERED_CHAINS,
    MAXIMAL_ERROR,
    MAXIMAL_R_HAT,
    MINIMAL_EFFECTIVE_SAMPLES,
)
from gflowdag.runtime.deadline import Deadline
from gflowdag.runtime.memory import total_memory
from gflowdag.runtime.messages import memory, shown
from gflowdag.runtime.place import option, typed
from gflowdag.runtime.progress import Progress
from gflowdag.score import Score

_COPIES = 0.95  # correlation from which on two columns are said to be nearly copies
_LONG = 128  # sweeps after which chains that never cross over are said to stay apart
LONGEST = 1800.0  # seconds that a fit takes at most where nobody has set a budget
_MEASURED_BYTES = mebibytes({5: 58, 20: 76, 30: 150, 50: 246})
_BYTES_OF_A_PAIR = 4 * 8 * 128 + 2 * 1000  # what 8 chains have seen of an edge, and 1,000 samples, twice


def _num_bytes(num_variables: int) -> float:
    """As measured, and no less than what all pairs of variables take in the end."""
    return max(_MEASURED_BYTES(num_variables), _BYTES_OF_A_PAIR * float(num_variables) ** 2)


@keyword_parameters
class ParentSetMCMC(StructureLearner):
    """Chains over all DAGs that draw whole parent sets and reverse edges, until they agree.

    Each sweep draws a few candidate parents of every node as an auxiliary variable, so no parent set is left
    out, of whatever size. Chains start at scattered graphs, and stop by themselves when they agree: the
    rank-normalised R-hat of every edge and of the score is at most 1.05, effective samples are 400 or more,
    and no Monte-Carlo error of an edge probability is above `max_error`. They run in threads, on all cores.

    Args:
        budget: seconds that `fit` may take; half an hour by default.
        iterations: sweeps of each chain at most, those before a resumption included; no limit by default.
        max_error: the largest Monte-Carlo error of an edge probability at which chains stop; an answer above
            0.01 is never trusted.
        num_chains: chains from scattered starts.
        core_size: likely parents of each node that are considered in every sweep; three more where many are
            likely.
        num_outsiders: others considered beside them, drawn anew for every sweep.
        folder: where the state of the chains is kept, at most every ten seconds.
        resume: continue the chains in `folder`.

    The other parameters are those of `StructureLearner`.
    """

    record = Method(
        name="parent-set-mcmc",
        rank=30,
        label="MCMC over all DAGs by whole parent sets",
        answer="chains, checks itself",
        gives="marginals",
        checked_by="rank-normalised R-hat and errors of chains from scattered starts",
        use_when="more than 20 variables",
        continues=True,
        # To a trusted verdict, on sparse tables of 100 rows with one edge a variable.
        seconds=power_law({5: 1.0, 20: 5.0, 30: 17.8, 50: 21.7}),
        num_bytes=_num_bytes,
        needs_its_memory=True,
    )

    iterations: int | None = whole(None, least=FEWEST_SWEEPS)
    max_error: float = positive(MAXIMAL_ERROR)
    num_chains: int = whole(8, least=4)
    core_size: int = whole(5, least=0)
    num_outsiders: int = whole(2)
    folder: str | Path | None = None
    resume: bool = False

    def _infer(self, score: Score, seed: int, progress: Progress) -> Posterior:
        check_number_of_columns(score.num_variables)
        fingerprint = self._fingerprint(score, seed, self.num_chains, self.core_size, self.num_outsiders)
        saver = None if self.folder is None else Saver(self.folder, fingerprint)
        state = load_state(self.folder, fingerprint) if self.resume and self.folder is not None else None
        deadline = self._deadline if self._deadline.is_set else Deadline.after(LONGEST)
        result = run(
            score,
            seed=seed,
            state=state,
            num_chains=self.num_chains,
            core_size=self.core_size,
            num_outsiders=self.num_outsiders,
            deadline=deadline.share(SHARE_OF_SEARCH),
            max_sweeps=self.iterations,
            stop_when=self._is_done,
            after_segment=lambda state: None if saver is None else saver(state),
            progress=progress,
        )
        if saver is not None:
            saver.save(result.state)
        d = score.num_variables
        graphs, log_scores = result.graphs.reshape(-1, d, d), result.log_scores.ravel()
        kept = np.random.default_rng(seed).choice(
            len(graphs), self.num_samples, replace=self.num_samples > len(graphs)
        )
        return Posterior(
            samples=graphs[kept],
            names=score.names,
            method=self.method,
            log_scores=log_scores[kept],
            marginals=result.edge_probabilities,
            best_graph=graphs[np.argmax(log_scores)],
            diagnosis=self._diagnostics(result, score),
        )

    def _infer_with_gaps(self, augmentation: Augmentation, seed: int, progress: Progress) -> Posterior:
        if self.resume:
            raise GFlowDAGError(
                "chains cannot go on where cells are missing, since those are not kept: leave out "
                f"{option('resume')}, or the rows with missing cells: {option('missing', 'drop')}"
            )
        check_number_of_columns(augmentation.data.num_variables)
        sweeps = Sweeps(
            augmentation,
            seed,
            core_size=self.core_size,
            num_outsiders=self.num_outsiders,
            deadline=self._deadline,
        )
        return augmented_posterior(
            self,
            augmentation,
            sweeps,
            seed=seed,
            progress=progress,
            starts=sweeps.starts,
            max_error=self.max_error,
        )

    def _is_done(self, verdict: Verdict) -> bool:
        return verdict.trusted and verdict.error <= self.max_error

    def _diagnostics(self, result: Result, score: Score) -> Diagnostics:
        verdict = result.verdict
        proposed, accepted = result.state.reversals
        fewest = min(verdict.bulk_ess, verdict.tail_ess)
        excess = max(verdict.error / self.max_error, 1.0)
        done = min(fewest / MINIMAL_EFFECTIVE_SAMPLES, 1 / excess**2)
        return Diagnostics(
            "trusted" if verdict.trusted else "not converged",
            _explanation(verdict, self.num_chains) + self._remedy(verdict, result.state.num_sweeps, score),
            r_hat=verdict.r_hat,
            ess=min(fewest / result.log_scores.size, 1.0),
            effective_samples=fewest,
            independent_samples=fewest,
            acceptance={"reversal": float(accepted / max(proposed, 1))},
            best_log_score=float(result.log_scores.max()),
            edge_errors=result.edge_errors,
            iterations=result.state.num_sweeps,
            share_done=1.0 if self._is_done(verdict) else min(done, 0.99),
            score_traces=shown_traces(result.log_scores),
            extra={"num_chains": self.num_chains, "largest_error": verdict.error},
        )

    def _remedy(self, verdict: Verdict, num_sweeps: int, score: Score) -> str:
        """What to do about chains that are not trusted: more time, or fewer columns."""
        if verdict.trusted:
            return ""
        go_on = typed(
            python="with the same folder, resume=True and a larger budget they go on where they stopped",
            command_line="--resume with a larger --budget goes on where they stopped",
        )
        more_time = f" Give the chains more time: {go_on}."
        if verdict.slowest is None:
            return more_time
        source, target = (score.names[node] for node in verdict.slowest)
        where = f" The edge on which they agree least is {source} → {target}."
        are_apart = not math.isfinite(verdict.r_hat) and num_sweeps >= _LONG
        copies = _near_copies(self._data, range(score.num_variables) if are_apart else verdict.slowest)
        remedies = ""
        if copies is not None:
            names, correlation = copies
            remedies = (
                f" The columns {shown(names)} are nearly copies, with a correlation of "
                f"{correlation:.3f}{'' if len(names) == 2 else ' at most'}: they can take each other's place "
                "in every graph, and chains change them over only rarely. More time alone may not help. If "
                f"the question allows it, keep only one of them: {option('drop', names[1:])}."
            )
        if are_apart:
            remedies += (
                f" Each chain kept to graphs of its own for {num_sweeps:,} sweeps, which more time rarely "
                "changes. With fewer columns, about 23, the exact posterior answers, which needs no chains."
            )
        return where + (remedies or more_time)


def check_number_of_columns(num_variables: int) -> None:
    """Refuse more columns than chains have memory for."""
    needed, there = _num_bytes(num_variables), total_memory()
    if needed <= there:
        return
    most = math.isqrt(int(there / _BYTES_OF_A_PAIR))
    raise TooLargeError(
        f"{num_variables:,} variables are too many for parent-set-mcmc, the method that goes furthest: it "
        f"needs {memory(round(needed))}, and this machine has {memory(there)}, enough for {most:,}. Choose "
        "the variables that the question is about and leave out the others "
        f"({option('drop')}), or take averages "
        "of those that move together."
    )


def _near_copies(data: Dataset, nodes: Iterable[int]) -> tuple[list[str], float] | None:
    """One of `nodes` with the columns that nearly copy it, or one of these; their largest correlation."""
    continuous = [node for node, kind in enumerate(data.kinds) if kind == "continuous"]
    here = [continuous.index(node) for node in nodes if node in continuous]
    if not here:
        return None
    correlations = np.abs(np.atleast_2d(np.corrcoef(data.values[:, continuous].T)))
    np.fill_diagonal(correlations, 0.0)
    group = [here[int(correlations[here].max(axis=1).argmax())]]
    for column in group:  # which grows on the way
        near = np.flatnonzero(correlations[column] >= _COPIES).tolist()
        group += [other for other in near if other not in group]
    if len(group) == 1:
        return None
    return [data.names[continuous[column]] for column in group], float(
        correlations[np.ix_(group, group)].max()
    )


def _explanation(verdict: Verdict, num_chains: int) -> str:
    if verdict.is_frozen:
        others = f"{FEWEST_SCATTERED_CHAINS} further scattered starts"
        found = f"{others} ended there too" if verdict.trusted else f"not all of {others} ended there"
        return f"{num_chains} chains from scattered starts all keep the same score, and {found}."
    r_hat = f"{verdict.r_hat:.3f}" if math.isfinite(verdict.r_hat) else "infinite: some edge never changes"
    return (
        f"{num_chains} chains from scattered starts: the largest rank-normalised R-hat of any edge or of the "
        f"score is {r_hat} ({MAXIMAL_R_HAT} or less is needed), the smallest effective sample "
        f"size {min(verdict.bulk_ess, verdict.tail_ess):.0f} ({MINIMAL_EFFECTIVE_SAMPLES} or more), and the "
        f"largest Monte-Carlo error of an edge probability {verdict.error:.4f} ({MAXIMAL_ERROR} or less)."
    )
