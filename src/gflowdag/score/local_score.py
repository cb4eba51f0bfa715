"""Local scores: what a score has to offer, and what follows from it.

A score comes in two forms. *Unbound* it holds hyper-parameters (`BGe(alpha_mu=2.0)`); `bind(data)` makes the
`LocalScore` of one table, which is ready to compute. A score of one's own is one class: a subclass of
`LocalScore` with `prepare`, what to keep of a table, and `local`, the score of parent sets. Everything else
that a method asks for is computed from `local`, and a subclass that knows a faster way overrides it.
"""

from __future__ import annotations

import copy
import inspect
from abc import ABC, abstractmethod
from numbers import Real
from typing import TYPE_CHECKING, Any, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from gflowdag.errors import GFlowDAGError, ScoreError
from gflowdag.runtime.progress import Progress, silent

if TYPE_CHECKING:
    from gflowdag.data import Dataset
    from gflowdag.score.cell_limit import CellLimit
    from gflowdag.score.conjugate import ParameterPosterior
    from gflowdag.score.normal_wishart import NormalWishart

_CHUNK = 1 << 14  # parent sets that `local` is asked for at a time


@runtime_checkable
class UnboundScore(Protocol):
    """Hyper-parameters of a score; `repr` tells them, and a checkpoint is of one `repr`."""

    def bind(self, data: Dataset, /) -> LocalScore:
        """The local score of a table."""
        ...


class LocalScore(ABC):
    """Base of a score of your own.

    A subclass has `prepare` and `local`. Its constructor stores the hyper-parameters under their own names (a
    dataclass does), so that `repr` can tell them::

        @dataclass
        class BIC(gd.LocalScore):
            penalty: float = 1.0

            def prepare(self, data):
                self._values = data.values

            def local(self, node, parents):
                return np.array([... for row in parents])

    What it costs: up to 20 variables most methods ask once for all `d 2^(d−1)` local scores. Beyond that,
    methods on orders ask for all subsets of each node's candidate parents, and the others for sets as they
    meet them: MC3 and DAG-GFlowNet for the `d` neighbours of every parent set that they visit, DiBS for the
    parents in each of its random graphs (thousands a step). Answers are kept while there is room, but they
    are computed on the host, one Python call for many sets: hours where `local` takes a millisecond a set.

    `local` may be called from several threads at once, and with any parent sets, large ones too; it must be
    finite for all of them (knowledge, not the score, rules sets out). It is called from inside compiled
    loops, so it must not use JAX: NumPy, SciPy and numba are fine.

    Attributes:
        num_variables: columns of the table; set by `bind`.
        uses_interventions: whether `local` leaves out the rows in which the node was set from outside.
            Interventional data are refused where it does not.
        score_equivalent: whether all DAGs of an equivalence class score alike.
        forbidden_edges: edges that the model has no likelihood for, bool [d, d], rows are sources; None where
            it has one for all. They are in no graph, whatever the knowledge says.
        normal_wishart: the posterior of a Gaussian model in closed form, None for other scores. Methods that
            have a faster way for it take that way.
        edge_factor: every edge multiplies the structure prior by it: one number for all, or one for each,
            float64 [d, d], rows are sources.
    """

    num_variables: int
    edge_factor: float | NDArray[np.float64] = 1.0
    uses_interventions: bool = False
    forbidden_edges: NDArray[np.bool_] | None = None

    @abstractmethod
    def local(self, node: int, parents: NDArray[np.bool_], /) -> NDArray[np.float64]:
        """Score of `node` given each parent set, bool [m, d] -> float64 [m]; the node is in none of them."""

    def prepare(self, data: Dataset, /) -> None:  # noqa: B027  (nothing, unless a subclass needs it)
        """Keep what `local` needs of a table, and refuse a table that the score is not for."""

    def bind(self, data: Dataset, /) -> Self:
        """A copy that is ready to compute on `data`."""
        bound = copy.copy(self)
        bound.num_variables = data.num_variables
        bound.prepare(data)
        return bound

    @property
    def score_equivalent(self) -> bool:
        return False

    @property
    def notes(self) -> tuple[str, ...]:
        """What the user of a fit has to know about this score, in sentences."""
        return ()

    @property
    def cautions(self) -> tuple[str, ...]:
        """What speaks against this score as it is set, in sentences; a fit warns of it."""
        return ()

    def cell_limit(self, required: NDArray[np.bool_], /) -> CellLimit | None:
        """Limit on the cells of a family where edges are `required`, bool [d, d]; None for no limit."""
        return None

    @property
    def normal_wishart(self) -> NormalWishart | None:
        return None

    @property
    def parameter_posterior(self) -> ParameterPosterior | None:
        """The posterior of the parameters given the graph, for effects; None where it is not conjugate."""
        return None

    def extended_local(self, node: int, parents: NDArray[np.bool_], /) -> NDArray[np.float64]:
        """Score of `node` given each set and one more parent, bool [m, d] -> [m, d].

        Finite and meaningless where the parent is in the set, and for the node itself.
        """
        out = np.zeros(parents.shape)
        addable = ~parents
        addable[:, node] = False
        rows, added = np.nonzero(addable)
        larger = parents[rows]
        larger[np.arange(len(rows)), added] = True
        out[rows, added] = local_values(self, node, larger)
        return out

    def local_subsets(self, node: int, candidates: NDArray[np.integer[Any]], /) -> NDArray[np.float64]:
        """Score of `node` given every subset of `candidates` [k] -> [2^k]; bit `i` is `candidates[i]`."""
        return self.local_blocks(node, candidates, np.zeros((1, self.num_variables), bool))[0]

    def local_blocks(
        self, node: int, candidates: NDArray[np.integer[Any]], beside: NDArray[np.bool_], /
    ) -> NDArray[np.float64]:
        """`local_subsets` with further parents `beside` them, bool [m, d] -> [m, 2^k]."""
        index = np.arange(1 << len(candidates))
        subsets = np.zeros((len(index), self.num_variables), bool)
        subsets[:, candidates] = index[:, None] >> np.arange(len(candidates)) & 1
        parents = (beside[:, None] | subsets).reshape(-1, self.num_variables)
        return local_values(self, node, parents).reshape(len(beside), -1)

    def tables(self, progress: Progress = silent) -> NDArray[np.float64]:
        """Score of every node given every parent set, [d, 2^(d−1)] in compressed index."""
        d = self.num_variables
        out = np.empty((d, 1 << (d - 1)))
        for node in range(d):
            out[node] = self.local_subsets(node, np.delete(np.arange(d), node))
            progress(node + 1, d)
        return out

    def __repr__(self) -> str:
        """The call that makes this score again."""
        names = [name for name in inspect.signature(type(self)).parameters if hasattr(self, name)]
        return f"{type(self).__name__}({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"


def local_values(score: LocalScore, node: int, parents: NDArray[np.bool_]) -> NDArray[np.float64]:
    """`score.local`, a bounded number of sets at a time, or an error where it breaks its promise."""
    out = np.empty(len(parents))
    for start in range(0, len(parents), _CHUNK):
        part = parents[start : start + _CHUNK]
        try:
            values = np.asarray(score.local(node, part), np.float64)
        except GFlowDAGError:
            raise
        except Exception as error:
            name = type(score).__name__
            raise ScoreError(
                f"{name}.local failed for node {node}: {type(error).__name__}: {error}"
            ) from error
        if values.shape != (len(part),):
            raise ScoreError(
                f"{type(score).__name__}.local gave an array of shape {values.shape} for {len(part)} parent "
                f"sets: it must give one number for each row of `parents`, shape ({len(part)},)."
            )
        if not np.isfinite(values).all():
            row = int(np.flatnonzero(~np.isfinite(values))[0])
            raise ScoreError(
                f"{type(score).__name__}.local gave {values[row]} for node {node} with the parents "
                f"{np.flatnonzero(part[row]).tolist()}: scores must be finite; rule parent sets out by "
                "Knowledge."
            )
        out[start : start + len(part)] = values
    return out


def positive(name: str, value: Any) -> float:
    """The hyper-parameter `name` as a number, or an error where it is none, not positive or infinite."""
    if not isinstance(value, Real) or not 0 < float(value) < np.inf:
        raise ScoreError(f"{name} = {value!r} must be a positive number.")
    return float(value)
