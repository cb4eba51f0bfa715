"""Matrices of a report as text: 32-bit floats, rounded, compressed and in base 64.

As numbers in JSON the six matrices of 500 variables would take more than ten megabytes.
"""

from __future__ import annotations

import base64
import zlib

import numpy as np
from numpy.typing import ArrayLike, NDArray


def packed(values: ArrayLike, digits: int) -> str:
    """A matrix [d, d] of numbers with `digits` significant digits, NaN for what is not known.

    The first, second, third and fourth bytes of all floats stand together (little-endian), which compresses
    several times better. `unpack` in `dom.js` is the other direction.
    """
    rounded = _significant(np.asarray(values, dtype=np.float64), digits).astype("<f4")
    planes = rounded.reshape(-1, 1).view(np.uint8).T.tobytes()
    return base64.b64encode(zlib.compress(planes, 9)).decode("ascii")


def _significant(values: NDArray[np.float64], digits: int) -> NDArray[np.float64]:
    """Rounded to so many binary digits that at least `digits` decimal ones are right."""
    mantissa, exponent = np.frexp(values)
    steps = 2.0 ** np.ceil(digits * np.log2(10) + 1)
    return np.ldexp(np.round(mantissa * steps) / steps, exponent)
