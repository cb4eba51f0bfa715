"""`method="auto"`: the best answer that is within reach, and which one that was."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from gflowdag.estimators.base import StructureLearner, TrainedLearner
from gflowdag.estimators.exact import ExactPosterior, seconds_of_exact
from gflowdag.estimators.method import Method
from gflowdag.posterior.importance import MAXIMAL_PARETO_K
from gflowdag.posterior.posterior import Posterior
from gflowdag.runtime.devices import count_devices
from gflowdag.runtime.messages import duration
from gflowdag.runtime.progress import Progress, begin_phase
from gflowdag.score import Score

Learner = TypeVar("Learner", bound=StructureLearner)

HANDOVER_ESS = 0.05  # an order GFlowNet below this effective sample size hands over to order MCMC
_SHARE_OF_FIRST = 0.6  # of a budget for the order GFlowNet; the chains have the rest if they are needed


@dataclass(kw_only=True, eq=False, repr=False)
class AutoPosterior(TrainedLearner):
    """Exact where that is possible; else the order GFlowNet; else, where its weights fail, order MCMC.

    The diagnostics name the method that answered and why (`chosen`).

    Args:
        score: `"auto"` (BGe for continuous, BDeu for discrete data), `"bge"` or `"bde"`.
        prior: structure prior, `"uniform"`, `"erdos-renyi"`, `"edge"`, `"fair"`, or a prior object.
        knowledge: required and forbidden edges, tiers, maximum number of parents.
        standardize: scale continuous columns to mean 0 and standard deviation 1.
        num_samples: number of graphs to return.
        random_state: seed; the same seed gives the same samples.
        verbose: show progress.
        iterations: training steps, where something is trained.
        budget: seconds that `fit` may take, which end the training; given with `iterations`, the first of the
            two ends it.
        devices: number of devices that share each batch, or `"all"`; one by default.
        folder: where checkpoints and metrics are written.
        resume: continue from the checkpoint in `folder`.
    """

    record = Method(
        name="auto",
        label="automatic choice",
        answer="of the method chosen",
        gives="the answer of the method that it chooses",
        checked_by="what checks that method",
        use_when="you want the best answer within reach",
        least_variables=1,
        trains=True,
        delegates=True,
    )

    def _infer(self, score: Score, seed: int, progress: Progress) -> Posterior:
        if self.devices is not None:
            count_devices(self.devices)  # a mistake is told, also where one device will do
        exact = self._with_my_parameters(ExactPosterior)
        d = score.num_variables
        seconds = seconds_of_exact(self._data) if d <= exact.max_variables else math.inf
        if seconds <= self._deadline.seconds_left:
            reason = f"{d} variables are within reach of the exact posterior"
            return _chosen(exact._infer(score, seed, progress), reason)

        from gflowdag.estimators.order_gflownet import OrderGFlowNet
        from gflowdag.estimators.order_mcmc import OrderMCMC

        learner = self._with_my_parameters(OrderGFlowNet)
        learner._deadline = self._deadline.share(_SHARE_OF_FIRST)
        learnt = learner._infer(score, seed, progress)
        ess, k = learnt.diagnosis.ess, learnt.diagnosis.pareto_k
        assert ess is not None
        assert k is not None
        if ess < HANDOVER_ESS or k > MAXIMAL_PARETO_K:
            reason = (
                "the order GFlowNet's weights do not vouch for it (effective sample size "
                f"{ess:.1%}, Pareto k {k:.2f})"
            )
        elif learnt.diagnosis.verdict == "not converged":
            reason = "the order GFlowNet has not converged, whatever its weights say"
        else:
            why = "variables are too many for the exact posterior"
            why += f" within {duration(self.budget)}" if self.budget and seconds < math.inf else ""
            return _chosen(learnt, f"{d} {why}")
        chains = self._with_my_parameters(OrderMCMC, but=("iterations",))  # those of training
        begin_phase(progress, chains.method)
        return _chosen(chains._infer(score, seed, progress), reason)

    def _with_my_parameters(self, estimator: type[Learner], but: Sequence[str] = ()) -> Learner:
        known = set(estimator._get_param_names()) - set(but)
        chosen = estimator(**{name: value for name, value in self.get_params().items() if name in known})
        chosen._data, chosen._deadline = self._data, self._deadline
        return chosen


def _chosen(posterior: Posterior, reason: str) -> Posterior:
    return posterior.with_diagnostics(chosen=f"{posterior.method}: {reason}")
