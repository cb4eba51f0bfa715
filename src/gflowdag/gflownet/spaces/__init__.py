"""What a GFlowNet walks through: the protocol of all state spaces, and what a policy says about a state.

A state grows from a common start by one action at a time until a trajectory ends. Functions take one state;
`jax.vmap` makes batches. Rollouts, ways back, samples and their weights are written once, for this protocol:
a new space is one new class with these methods.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from jax import Array

NEVER = -1e9  # log probability of what cannot happen: finite, so that gradients of masked entries are zero


class Decision(NamedTuple):
    """What a policy says about a state; actions are numbered from 0."""

    log_forward: Array  # float32 [actions], log probability of each to be taken next
    log_backward: Array  # float32 [actions], of each to be the one that led here
    log_flow: Array  # float32 [], of the state, less what is known of it (its log reward, or a guess)


Policy = Callable[[Any], Decision]  # told an observation


class StateSpace(Protocol):
    """A graded, acyclic state space with a reward. States and observations are pytrees of the space's own."""

    @property
    def max_steps(self) -> int:
        """Actions in the longest trajectory, a stop included."""
        ...

    @property
    def stop(self) -> int | None:
        """The action that ends a trajectory wherever it is legal; None: all end after `max_steps` actions."""
        ...

    def start(self) -> Any:
        """The state in which every trajectory begins."""
        ...

    def state_of(self, built: Any) -> Any:
        """The state of a given object."""
        ...

    def built(self, state: Any) -> Any:
        """The object that a state stands for: all that is kept of the end of a trajectory."""
        ...

    def size(self, state: Any) -> Array:
        """A count that grows by one with every action but stop, int32 []."""
        ...

    def observe(self, state: Any) -> Any:
        """What a policy sees."""
        ...

    def legal(self, state: Any) -> Array:
        """Which actions may be taken, bool [actions]."""
        ...

    def step(self, state: Any, action: Array) -> Any:
        """The state after a legal action that is not to stop."""
        ...

    def undo(self, state: Any, action: Array) -> Any:
        """The state before `action`, which led here."""
        ...

    def log_reward(self, state: Any) -> Array:
        """Log reward of the object, float64 [], up to a constant that all states of a trajectory share."""
        ...
