"""Random numbers whose whole state is an array, so that a chain can be saved and goes on bit for bit.

xoshiro256++ (Blackman & Vigna 2021). NumPy's generator inside numba is hidden and belongs to a thread.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray


def random_states(seed: int, num_chains: int) -> NDArray[np.uint64]:
    """Independent states, uint64 [chains, 4]."""
    children = np.random.SeedSequence(seed).spawn(num_chains)
    return np.array([child.generate_state(4, np.uint64) for child in children], np.uint64)


@njit(cache=True, nogil=True)
def _rotated(word, by):
    return (word << np.uint64(by)) | (word >> np.uint64(64 - by))


@njit(cache=True, nogil=True)
def next_word(state):
    """The next 64 random bits; `state` [4] advances."""
    result = _rotated(state[0] + state[3], 23) + state[0]
    shifted = state[1] << np.uint64(17)
    state[2] ^= state[0]
    state[3] ^= state[1]
    state[1] ^= state[2]
    state[0] ^= state[3]
    state[2] ^= shifted
    state[3] = _rotated(state[3], 45)
    return result


@njit(cache=True, nogil=True)
def uniform(state):
    """A number in [0, 1)."""
    return np.float64(next_word(state) >> np.uint64(11)) * 2.0**-53


@njit(cache=True, nogil=True)
def integer(state, bound):
    """A number in 0 … bound − 1."""
    return min(int(uniform(state) * bound), bound - 1)
