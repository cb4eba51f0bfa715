"""The linear assignment problem inside `jit`, solved by SciPy on the host.

SciPy is several times faster at 50 variables than the compiled Hungarian algorithm of optax, the way to
the host and back included (docs/laboratory/variational.md).
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from scipy.optimize import linear_sum_assignment


def max_assignment(weights: Array) -> Array:
    """The permutation with the largest total weight.

    Args:
        weights: float [d, d]; under `vmap` all matrices go to the host at once.

    Returns:
        The column of each row, int32 [d].
    """
    columns = jax.ShapeDtypeStruct(weights.shape[:-1], jnp.int32)
    return jax.pure_callback(_columns, columns, weights, vmap_method="expand_dims")


def _columns(weights: Array) -> np.ndarray:
    matrices = np.nan_to_num(np.asarray(weights))  # numbers that diverged are reported where they arise
    flat = matrices.reshape(-1, *matrices.shape[-2:])
    found = [linear_sum_assignment(matrix, maximize=True)[1] for matrix in flat]
    return np.array(found, np.int32).reshape(matrices.shape[:-1])
