"""Parent sets drawn exactly from all that contain one candidate, out of sums that the order weights hold."""

from __future__ import annotations

import numpy as np
from numba import njit

from gflowdag.graph.bits import compress

squeeze = njit(cache=True, nogil=True)(compress)
_NEVER = 1e-12  # probability below which a candidate is left out: there its sums may be nothing but rounding


@njit(cache=True, nogil=True)
def subset_with(scores, containing, sequence, parent, others, uniform):
    """A set of the candidate `parent` and some of `others`, drawn ∝ its weight.

    One candidate after another is decided on, and one uniform number serves all decisions: what is left of
    it after one is uniform again. The sets that contain several candidates are summed by inclusion and
    exclusion. What cancels there belongs to a set of decisions that is just as improbable, so that rounding
    does not reach the law of the draws. Where the sets that are left are fewer than the terms, they are
    enumerated.

    Args:
        scores: of all sets of candidates, float64 [2^K].
        containing: log-sums over the sets that contain `parent`, float64 [2^(K−1)].
        sequence: the order of decisions, int [K].
        parent: place of the candidate.
        others: local index; bit `parent` is not set.
        uniform: between 0 and 1.

    Returns:
        Local index.
    """
    log_scale = containing[squeeze(others, parent)]
    chosen, undecided, num_undecided = 1 << parent, others, 0
    for k in sequence:
        num_undecided += others >> k & 1
    members = np.empty(len(sequence), np.int64)
    num_members = 0
    total, left = 1.0, uniform  # weight of the sets that are still possible, relative to `log_scale`
    for k in sequence:
        if num_undecided + num_members < 4 or 1 << num_undecided <= num_undecided << num_members:
            break
        if undecided >> k & 1:
            undecided &= ~(1 << k)
            num_undecided -= 1
            total_without = _weight_of_all(containing, parent, members, num_members, undecided, log_scale)
            without = total_without / total
            if left < without or without > 1 - _NEVER:
                left, total = min(left / without, 1.0), total_without
            else:
                left, total = (left - without) / (1 - without), total - total_without
                members[num_members] = k
                num_members += 1
                chosen |= 1 << k
    chosen |= subset_at(scores, chosen, undecided, log_scale + np.log(total), left)
    if scores[chosen] == -np.inf:  # rounding made an impossible set of it
        chosen = 1 << parent
        chosen |= subset_at(scores, chosen, others, log_scale, uniform)
    return chosen


@njit(cache=True, nogil=True)
def _weight_of_all(containing, parent, members, num_members, undecided, log_scale):
    """Weight of the sets of `parent`, all members and some of `undecided`, relative to `log_scale`."""
    weight = 0.0
    for kept in range(1 << num_members):
        subset, sign = undecided, 1.0
        for m in range(num_members):
            if kept >> m & 1:
                subset |= 1 << members[m]
            else:
                sign = -sign
        weight += sign * np.exp(containing[squeeze(subset, parent)] - log_scale)
    return max(weight, 0.0)


@njit(cache=True, nogil=True)
def subset_at(scores, chosen, others, log_total, uniform):
    """The subset of `others` beside `chosen` at which the running share of `log_total` passes `uniform`."""
    share, best, subset = 0.0, 0, others
    while True:
        score = scores[subset | chosen]
        if score > -np.inf:
            share += np.exp(score - log_total)
            best = subset
            if share >= uniform:
                return best
        if subset == 0:
            return best  # rounding: the last set of positive weight
        subset = (subset - 1) & others
