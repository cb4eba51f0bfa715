"""Prior knowledge: edges that must be there, edges that cannot be, tiers, and a limit on the parents."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from gflowdag.data.columns import plain_name
from gflowdag.data.patterns import matching
from gflowdag.data.toml import is_too_long, read_toml
from gflowdag.errors import KnowledgeError
from gflowdag.graph.closure import transitive_closure
from gflowdag.runtime.keywords import named_parameters
from gflowdag.runtime.messages import instead, unknown_name

_REGEX = "re:"


class Constraints(NamedTuple):
    """Knowledge about `d` named variables, as every method reads it."""

    required: np.ndarray  # bool [d, d], rows are sources
    forbidden: np.ndarray  # bool [d, d]: the diagonal, what the user forbids, what closes a required cycle
    max_parents: int | None

    @property
    def rules_out_edges(self) -> bool:
        """Whether any edge is required or forbidden; a required one forbids its reverse."""
        return bool(self.forbidden.sum() > len(self.forbidden))

    @property
    def rules_out_graphs(self) -> bool:
        """Whether any graph is ruled out."""
        limit = self.max_parents
        return self.rules_out_edges or (limit is not None and limit < len(self.forbidden) - 1)


@named_parameters
@dataclass(frozen=True)
class Knowledge:
    """What is known about the graph before seeing the data; it holds in every graph that any method returns.

    A variable is written as its exact name. An entry that starts with `re:` is a regular expression that must
    match a *whole* name, and stands for every variable that it matches: `("re:gene_.*", "outcome")` is one
    edge for each gene.

    Args:
        required: edges `(source, target)` that are in every graph.
        forbidden: edges `(source, target)` that are in no graph.
        tiers: groups of variables, causes first. An edge from a later tier to an earlier one is forbidden;
            edges inside a tier and edges of variables that are in no tier are free.
        max_parents: the largest number of parents of a variable, required ones included.
        exogenous: variables without parents, such as age or treatment in a trial.

    Raises:
        KnowledgeError: an entry is not of that form (contradictions are found by `resolve`).
    """

    required: Sequence[tuple[str, str]] = ()
    forbidden: Sequence[tuple[str, str]] = ()
    tiers: Sequence[Sequence[str]] = ()
    max_parents: int | None = None
    exogenous: Sequence[str] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "required", _as_edges(self.required, "required"))
        object.__setattr__(self, "forbidden", _as_edges(self.forbidden, "forbidden"))
        object.__setattr__(self, "tiers", _as_tiers(self.tiers))
        object.__setattr__(self, "exogenous", _as_names(self.exogenous))
        limit = self.max_parents
        if limit is not None and (
            isinstance(limit, bool)
            or not isinstance(limit, int | np.integer)
            or limit < 0
            or is_too_long(limit)
        ):
            given = "a longer one" if is_too_long(limit) else repr(limit)
            raise KnowledgeError(
                f"max_parents must be a whole number of at most 64 bits, 0 or more, or None; got {given}."
            )
        object.__setattr__(self, "max_parents", None if limit is None else int(limit))

    @classmethod
    def from_toml(cls, path: str | Path) -> Knowledge:
        """Read knowledge from a TOML file with any of the keys of this class.

        For example::

            required = [["PKC", "Raf"]]
            forbidden = [["Akt", "re:PIP.*"]]
            tiers = [["age", "sex"], ["re:gene_.*"], ["outcome"]]
            max_parents = 4
            exogenous = ["age", "sex"]
        """
        return cls.from_dict(read_toml(path, KnowledgeError))

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Knowledge:
        """The inverse of `to_dict`. Unknown keys are refused: a misspelt one would allow everything."""
        keys = [part.name for part in fields(cls)]
        for key in content:
            if key not in keys:
                raise KnowledgeError(f"Unknown key {key!r} in the knowledge: {instead(key, keys)}.")
        return cls(**content)

    def to_dict(self) -> dict[str, Any]:
        """Plain lists and numbers, for a configuration file."""
        return {
            "required": [list(edge) for edge in self.required],
            "forbidden": [list(edge) for edge in self.forbidden],
            "tiers": [list(tier) for tier in self.tiers],
            "max_parents": self.max_parents,
            "exogenous": list(self.exogenous),
        }

    def resolve(self, names: Sequence[str]) -> Constraints:
        """Turn names into masks over the variables `names`.

        Raises:
            KnowledgeError: an entry matches no variable, or the constraints contradict each other: an edge
                both required and forbidden, required edges that form a cycle or run against the tiers, more
                required parents than `max_parents`.
        """
        names = list(names)
        required = _edge_mask(self.required, names)
        forbidden = _edge_mask(self.forbidden, names)
        backwards = self._against_tiers(names)
        inward = np.zeros_like(forbidden)
        for entry in self.exogenous:
            inward[:, _matches(entry, names)] = True

        if (self_loops := required.diagonal()).any():
            raise KnowledgeError(
                f"A variable cannot cause itself: {_listed(np.diag(self_loops), names)} is required. Remove "
                "it."
            )
        if (both := required & forbidden).any():
            raise KnowledgeError(
                f"Both required and forbidden: {_listed(both, names)}. Remove one of the two entries."
            )
        if (both := required & backwards).any():
            raise KnowledgeError(
                f"Required edges run against the tiers: {_listed(both, names)}. Put the source into the tier "
                "of the target or an earlier one, or remove the requirement."
            )
        if (both := required & inward).any():
            raise KnowledgeError(
                f"Required edges into exogenous variables: {_listed(both, names)}. Remove one of the two."
            )
        reached = transitive_closure(required)
        if (on_cycle := required & reached.T).any():
            raise KnowledgeError(
                f"The required edges form a cycle: {_listed(on_cycle, names)}. Remove one of them."
            )
        self._check_max_parents(required, names)

        forbidden |= backwards | inward | reached.T | np.eye(len(names), dtype=bool)
        return Constraints(required, forbidden, self.max_parents)

    def _against_tiers(self, names: list[str]) -> np.ndarray:
        """Edges from a later tier to an earlier one, bool [d, d]."""
        tier_of = np.full(len(names), -1)
        for tier, entries in enumerate(self.tiers):
            for entry in entries:
                for index in _matches(entry, names):
                    if tier_of[index] not in (-1, tier):
                        raise KnowledgeError(
                            f"{names[index]!r} is in tier {tier_of[index] + 1} and in tier {tier + 1}. "
                            "A variable belongs to one tier."
                        )
                    tier_of[index] = tier
        placed = tier_of >= 0
        return (tier_of[:, None] > tier_of[None, :]) & placed[:, None] & placed[None, :]

    def _check_max_parents(self, required: np.ndarray, names: list[str]) -> None:
        if self.max_parents is None:
            return
        for target in np.flatnonzero(required.sum(axis=0) > self.max_parents):
            parents = np.zeros_like(required)
            parents[:, target] = required[:, target]
            raise KnowledgeError(
                f"{names[target]!r} has {parents.sum()} required parents, more than max_parents = "
                f"{self.max_parents}: {_listed(parents, names)}. Raise that limit or require fewer edges."
            )


def _as_edges(edges: Any, key: str) -> tuple[tuple[str, str], ...]:
    if isinstance(edges, str) or not isinstance(edges, Iterable):
        raise KnowledgeError(f"`{key}` is a list of edges (source, target); got {edges!r}.")
    result = []
    for edge in edges:
        is_pair = isinstance(edge, Sequence) and not isinstance(edge, str) and len(edge) == 2
        if not is_pair or not all(isinstance(end, str) for end in edge):
            raise KnowledgeError(
                f"`{key}` is a list of edges (source, target), two names each; got {edge!r}."
            )
        result.append((str(edge[0]), str(edge[1])))
    return tuple(result)


def _as_tiers(tiers: Any) -> tuple[tuple[str, ...], ...]:
    if isinstance(tiers, str) or not isinstance(tiers, Iterable):
        raise KnowledgeError(f"`tiers` is a list of lists of names, causes first; got {tiers!r}.")
    result = []
    for tier in tiers:
        if isinstance(tier, str) or not isinstance(tier, Iterable):
            raise KnowledgeError(
                f"Every tier is a list of names; got {tier!r}: write [{tier!r}] for a tier of one."
            )
        tier = tuple(tier)
        if not all(isinstance(entry, str) for entry in tier):
            raise KnowledgeError(f"Every tier is a list of names; got {tier!r}.")
        result.append(tier)
    return tuple(result)


def _as_names(names: Any) -> tuple[str, ...]:
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise KnowledgeError(f"`exogenous` is a list of names; got {names!r}. Write [{names!r}] for one.")
    names = tuple(names)
    if not all(isinstance(name, str) for name in names):
        raise KnowledgeError(f"`exogenous` is a list of names; got {names!r}.")
    return names


def _matches(entry: str, names: list[str]) -> list[int]:
    """Positions of the variables that `entry` stands for, at least one."""
    if (name := plain_name(entry)) in names:  # also one that is called "re:…"
        return [names.index(name)]
    if not entry.startswith(_REGEX):
        raise KnowledgeError(unknown_name(entry, names))
    found = matching(entry.removeprefix(_REGEX), names)
    if not found:
        raise KnowledgeError(f"No variable matches {entry!r}; the expression must match the whole name.")
    return found


def _edge_mask(edges: Iterable[tuple[str, str]], names: list[str]) -> np.ndarray:
    mask = np.zeros((len(names), len(names)), dtype=bool)
    for source, target in edges:
        is_pattern = source.startswith(_REGEX) or target.startswith(_REGEX)
        for i in _matches(source, names):
            for j in _matches(target, names):
                if i != j or not is_pattern:  # patterns that overlap do not ask for self-loops
                    mask[i, j] = True
    return mask


def _listed(mask: np.ndarray, names: list[str], limit: int = 8) -> str:
    edges = [f"{names[i]} → {names[j]}" for i, j in np.argwhere(mask)]
    return ", ".join(edges[:limit]) + (f" and {len(edges) - limit} more" if len(edges) > limit else "")
