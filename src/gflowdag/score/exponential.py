"""Exponentials of many numbers at once, in a form that compilers turn into vector instructions."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gflowdag.runtime.compiled import compiled

LEAST = -700.0  # what is below counts as this: e^-700 is 1e-304
_LOG2_E = 1.4426950408889634
_LN2_HIGH, _LN2_LOW = 0.6931471803691238, 1.9082149292705877e-10  # their sum is ln 2, to 90 bits
_MAGIC = 6755399441055744.0  # 1.5 · 2^52: a number added to it is rounded to a whole one, in its last bits
_BIAS = 1023  # of exponents in a float64


@compiled
def exponentials(x: NDArray[np.float64], scratch: NDArray[np.float64]) -> None:
    """Replace numbers that are zero or negative by their exponentials, to two units of the last place.

    `x = k ln 2 + r` with `|r| ≤ ½ ln 2`; `e^r` is a Taylor polynomial, and `2^k` made of bits.

    Args:
        x: float64 [n].
        scratch: float64 [n], for use in between.
    """
    for row in range(len(x)):
        value = max(x[row], LEAST)
        shifted = value * _LOG2_E + _MAGIC
        whole = shifted - _MAGIC
        r = (value - whole * _LN2_HIGH) - whole * _LN2_LOW
        polynomial = 1.0 / 479001600.0
        polynomial = polynomial * r + 1.0 / 39916800.0
        polynomial = polynomial * r + 1.0 / 3628800.0
        polynomial = polynomial * r + 1.0 / 362880.0
        polynomial = polynomial * r + 1.0 / 40320.0
        polynomial = polynomial * r + 1.0 / 5040.0
        polynomial = polynomial * r + 1.0 / 720.0
        polynomial = polynomial * r + 1.0 / 120.0
        polynomial = polynomial * r + 1.0 / 24.0
        polynomial = polynomial * r + 1.0 / 6.0
        polynomial = polynomial * r + 0.5
        polynomial = polynomial * r + 1.0
        scratch[row] = shifted
        x[row] = polynomial * r + 1.0
    bits = scratch.view(np.int64)
    for row in range(len(x)):
        bits[row] = (bits[row] + _BIAS) << 52
    for row in range(len(x)):
        x[row] *= scratch[row]
