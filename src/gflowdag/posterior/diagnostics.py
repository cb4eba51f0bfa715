"""`Diagnostics`: how far an answer can be trusted, as every method reports it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, field, fields
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from gflowdag.posterior.imputation import Imputation
    from gflowdag.posterior.model_fit import ModelFit

Verdict = Literal["exact", "trusted", "not converged", "unverified"]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
VOUCHED_FOR: tuple[Verdict, ...] = ("exact", "trusted")  # conclusions may be drawn


@dataclass(frozen=True, eq=False, repr=False)
class Diagnostics(Mapping[str, Any]):
    """How far to trust a posterior: a verdict, its explanation, and the values behind them.

    A value that a method does not have is None. The object is also a read-only mapping of what it does have:
    `diagnostics["verdict"]`, `.get("ess")`, `.keys()` and `dict(diagnostics)` work; `extra` is part of it
    under its own names.

    Attributes:
        verdict: `"exact"`, `"trusted"`, `"not converged"` or `"unverified"`.
        explanation: the verdict in a sentence or two.
        notes: how the table was read, in sentences.
        chosen: which method `"auto"` chose, and why.
        interventional: whether some variables were set from outside in the data.
        knowledge: whether prior knowledge rules out any graph.
        uses_prior: False where the method uses no structure prior.
        seconds: time of the computation.
        phases: time of each part of it.
        share_done: share of the planned work that was done when a budget ended it.
        iterations: steps of training, or of each chain.
        ess: effective sample size as a share of the samples.
        pareto_k: shape of the tail of the importance weights; −inf where there is none.
        r_hat: the largest split R-hat of any edge or of the score.
        effective_samples: effective number of samples of the least well estimated quantity.
        independent_samples: how many independent samples these are worth, where they were drawn from others.
        unseen_share: share of held-out graphs of another sampler that the policy all but never draws.
        acceptance: share of the proposed moves that the chains made, overall or for each kind.
        best_log_score: highest log score of any graph.
        assumed_directions: edges whose direction the score forces, or that have it because of such edges: the
            data did not choose it; bool [d, d].
        edge_errors: Monte-Carlo standard error of each edge probability, float64 [d, d].
        raw_edge_probabilities: edge probabilities before importance weights corrected them, float64 [d, d].
        weighted_edge_probabilities: and after, float64 [d, d].
        score_traces: log scores along the first chains, float64 [chains, draws].
        model_fit: what speaks against the model: residuals given sampled parents. The verdict says nothing
            about it.
        imputation: what missing cells did to the answer, where some were imputed.
        extra: what a method has to say beyond these, by name.
    """

    verdict: Verdict = "unverified"
    explanation: str = "These samples were not checked."
    _: KW_ONLY
    notes: tuple[str, ...] = ()
    chosen: str | None = None
    interventional: bool | None = None
    knowledge: bool | None = None
    uses_prior: bool | None = None
    seconds: float | None = None
    phases: Mapping[str, float] | None = None
    share_done: float | None = None
    iterations: int | None = None
    ess: float | None = None
    pareto_k: float | None = None
    r_hat: float | None = None
    effective_samples: float | None = None
    independent_samples: float | None = None
    unseen_share: float | None = None
    acceptance: float | Mapping[str, float] | None = None
    best_log_score: float | None = None
    assumed_directions: NDArray[np.bool] | None = None
    edge_errors: NDArray[np.float64] | None = None
    raw_edge_probabilities: NDArray[np.float64] | None = None
    weighted_edge_probabilities: NDArray[np.float64] | None = None
    score_traces: NDArray[np.float64] | None = None
    model_fit: ModelFit | None = None
    imputation: Imputation | None = None
    extra: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def __post_init__(self) -> None:
        if self.verdict not in VERDICTS:
            raise ValueError(f"the verdict must be one of {', '.join(VERDICTS)}, got {self.verdict!r}")
        if clash := sorted(DIAGNOSTIC_NAMES & self.extra.keys()):
            raise ValueError(f"give {', '.join(clash)} under that name, not in `extra`")
        object.__setattr__(self, "notes", tuple(self.notes))

    @property
    def is_vouched_for(self) -> bool:
        """Whether conclusions may be drawn: the verdict is `"exact"` or `"trusted"`."""
        return self.verdict in VOUCHED_FOR

    @property
    def has_errors(self) -> bool:
        """Whether Monte-Carlo errors say anything: those of chains that did not mix do not."""
        return self.verdict != "not converged"

    def __getitem__(self, name: str) -> Any:
        value = getattr(self, name) if name in DIAGNOSTIC_NAMES else self.extra[name]
        if value is None:
            raise KeyError(name)
        return value

    def __iter__(self) -> Iterator[str]:
        yield from (name for name in _ORDER if getattr(self, name) is not None)
        yield from (name for name, value in self.extra.items() if value is not None)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __repr__(self) -> str:
        shown = (f"{name}={value!r}" for name, value in self.items() if not isinstance(value, np.ndarray))
        return f"Diagnostics({', '.join(shown)})"


_ORDER = tuple(part.name for part in fields(Diagnostics) if part.name != "extra")
DIAGNOSTIC_NAMES = frozenset(_ORDER)
