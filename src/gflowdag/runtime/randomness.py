"""A random generator from what users call `random_state`."""

from __future__ import annotations

from typing import Any

import numpy as np

from gflowdag.errors import OptionError


def generator(random_state: Any) -> np.random.Generator:
    """The generator of a seed, or the generator itself.

    Raises:
        OptionError: neither.
    """
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError) as error:
        raise OptionError(
            "random_state must be a whole number, 0 or more, a numpy Generator, or None (another answer each "
            f"time); got {random_state!r}"
        ) from error
