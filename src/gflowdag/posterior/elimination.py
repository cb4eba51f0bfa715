"""Distributions under an intervention in a discrete network: exactly, by eliminating variables one by one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

MAX_CELLS = 1 << 22  # of one product of tables, for one draw of the parameters
_AT_ONCE = 1 << 23  # cells of products for all draws together
_SIMULATED = 4096  # rows for each draw and each level, where no product fits


class Factor(NamedTuple):
    """A table over some variables, for each draw of the parameters."""

    scope: tuple[int, ...]
    values: NDArray[np.float64]  # [m, r of each variable in the scope]


def outcome_given_setting(
    factors: Sequence[Factor], cause: int, outcome: int, levels: NDArray[np.int64]
) -> NDArray[np.float64] | None:
    """`P(outcome | do(cause))` from the conditional tables of all ancestors of the outcome but the cause.

    The truncated factorisation: the cause has no table, its level is given.

    Args:
        factors: the conditional tables, each over parents and node.
        cause: what is set; may be in no table.
        outcome: what is asked for.
        levels: number of levels of every variable, [d].

    Returns:
        float64 [m, r of the cause, r of the outcome]; None where a product has too many cells.
    """
    order = _elimination_order(factors, (cause, outcome), levels)
    if order is None:
        return None
    nodes, widest = order
    size = len(factors[0].values)
    out = np.empty((size, int(levels[cause]), int(levels[outcome])))
    step = max(_AT_ONCE // widest, 1)
    for start in range(0, size, step):
        left = [Factor(scope, values[start : start + step]) for scope, values in factors]
        for node in nodes:
            touched = [factor for factor in left if node in factor.scope]
            left = [factor for factor in left if node not in factor.scope]
            product = _product(touched, tuple(sorted({v for factor in touched for v in factor.scope})))
            axis = product.scope.index(node)
            rest = product.scope[:axis] + product.scope[axis + 1 :]
            left.append(Factor(rest, product.values.sum(axis=1 + axis)))
        out[start : start + step] = _product(left, (cause, outcome)).values
    return out / out.sum(axis=-1, keepdims=True)  # the sum is one but for rounding


def simulated_outcome(
    factors: Sequence[Factor],
    cause: int,
    outcome: int,
    levels: NDArray[np.int64],
    rng: np.random.Generator,
) -> NDArray[np.float64]:
    """As `outcome_given_setting`, by simulated rows; `factors` must be in a topological order."""
    size = len(factors[0].values)
    out = np.zeros((size, int(levels[cause]), int(levels[outcome])))
    for draw in range(size):
        for level in range(int(levels[cause])):
            rows = {cause: np.full(_SIMULATED, level)}
            for scope, values in factors:
                table = values[draw][tuple(rows[parent] for parent in scope[:-1])]
                upper = np.cumsum(np.broadcast_to(table, (_SIMULATED, table.shape[-1])), axis=-1)
                rows[scope[-1]] = (rng.random((_SIMULATED, 1)) > upper[:, :-1]).sum(axis=-1)
            out[draw, level] = np.bincount(rows[outcome], minlength=int(levels[outcome])) / _SIMULATED
    return out


def _elimination_order(
    factors: Sequence[Factor], kept: tuple[int, ...], levels: NDArray[np.int64]
) -> tuple[list[int], int] | None:
    """The variables to sum out, each time the one with the smallest product, and the largest product."""
    scopes = [set(factor.scope) for factor in factors]
    rest = set[int]().union(*scopes) - set(kept)

    def cells(scope: set[int]) -> int:
        return math.prod(levels[sorted(scope)].tolist())

    order: list[int] = []
    widest = cells(set(kept))
    while rest:
        joined = {node: set[int]().union(*(scope for scope in scopes if node in scope)) for node in rest}
        node = min(sorted(rest), key=lambda node: cells(joined[node]))
        widest = max(widest, cells(joined[node]))
        if widest > MAX_CELLS:
            return None
        scopes = [scope for scope in scopes if node not in scope] + [joined[node] - {node}]
        order.append(node)
        rest.remove(node)
    widest = max(widest, *(cells(scope) for scope in scopes))
    return (order, widest) if widest <= MAX_CELLS else None


def _product(factors: Sequence[Factor], scope: tuple[int, ...]) -> Factor:
    """The product of tables as a table over `scope`, which holds all of their variables."""
    product = np.ones((1,) * (1 + len(scope)))
    for factor in factors:
        order = sorted(range(len(factor.scope)), key=lambda place: scope.index(factor.scope[place]))
        values = factor.values.transpose(0, *(1 + place for place in order))
        present = [variable in factor.scope for variable in scope]
        sizes = iter(values.shape[1:])
        product = product * values.reshape(len(values), *(next(sizes) if here else 1 for here in present))
    return Factor(scope, product)
