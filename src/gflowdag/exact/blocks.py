"""The recurrences for one block of sets, as products of small matrices.

Nodes are split in two halves, and sets with them. A block has one set of high nodes and all sets of low ones.
What a *source* set s adds to the sums for all R of one half of the nodes is an outer product: with those
nodes in two groups A and B, and the sources all sets of the other half,

    Σ_s [start_s Π_{j∈R∩A} −β_j(s)] · [Π_{j∈R∩B} −β_j(s)]

is a product of two matrices, for all R at once. It runs in ordinary doubles. Of the factors β_j the power of
two of the largest source is taken out. With the potentials, what is taken out over all of R is a power of two
that depends on R alone, is at most one, and is put back in the end; the factors are at most two, and the
start is at most the weight of its source. So nothing overflows, and what underflows is nothing beside the
sum.
"""

from __future__ import annotations

import numba
import numpy as np

from gflowdag.exact.scaled import FAR, compress, power_of_two

_FAST = {"reassoc", "contract", "nsz"}


@numba.njit(inline="always")
def _members(of, first, last):
    """The nodes `first … last − 1` in a set, ascending."""
    found = np.empty(last - first, dtype=np.int64)
    count = 0
    for j in range(first, last):
        found[count] = j
        count += of >> j & 1
    return found[:count]


@numba.njit(inline="always")
def _between(smallest, nodes, out):
    """`smallest` with all sets of `nodes` in ascending order, into `out`; their number."""
    out[0] = smallest
    for i in range(nodes.size):
        for s in range(1 << i):
            out[(1 << i) + s] = out[s] | 1 << nodes[i]
    return 1 << nodes.size


@numba.njit(inline="always")
def _starts(sources, n, nodes, sign, mantissa, exponent, power, start):
    """`sign` · 2^`power` · Π −β_j(source) over those of `nodes` that are not in the source, [s].

    Args:
        sources: sets that differ in `nodes` alone, as `_between` lists them; `n` of them.
        power: float64 [s], overwritten.
        start: float64 [s], filled.
    """
    start[:n] = sign
    for i in range(nodes.size):
        j = nodes[i]
        for first in range(0, n, 2 << i):
            for s in range(first, first + (1 << i)):
                position = compress(sources[s], j)
                start[s] *= -mantissa[j, position]
                power[s] += exponent[j, position]
    for s in range(n):
        start[s] *= power_of_two(power[s])


@numba.njit(inline="always")
def _factors(sources, n, placed, nodes, mantissa, exponent, factor, power, index):
    """β_j(source) of all `nodes`, over 2^exponent of β_j(placed), which is at least as large: [node, s].

    Also the sets of placed ∪ R for all R of `nodes`, in `index`, and the sums of what was taken out, added to
    `power[0]`, in `power`, [2^m].
    """
    index[0] = placed
    for k in range(nodes.size):
        j = nodes[k]
        largest = float(exponent[j, compress(placed, j)])
        for r in range(1 << k):
            index[(1 << k) + r] = index[r] | 1 << j
            power[(1 << k) + r] = power[r] + largest
        for s in range(n):
            position = compress(sources[s], j)
            factor[k, s] = mantissa[j, position] * power_of_two(exponent[j, position] - largest)


@numba.njit(inline="always")
def _fill(rows, columns, start, n):
    """What `_multiply_out` begins with; assigned as arrays, numba would compile for seconds."""
    for s in range(n):
        rows[0, s] = start[s]
        columns[0, s] = 1.0


@numba.njit(inline="always")
def _multiply_out(factor, first, last, n, out):
    """Products of −factor over all sets of the nodes `first … last − 1`, [2^m, s]; row 0 is given."""
    size = 1
    for k in range(first, last):
        for r in range(size):
            for s in range(n):
                out[size + r, s] = -factor[k, s] * out[r, s]
        size *= 2


@numba.njit(inline="always")
def _sum_over_sources(rows, num_rows, columns, num_columns, n, out):
    """`out[c · num_rows + r]` = Σ_s columns[c, s] · rows[r, s]."""
    for c in range(num_columns):
        r = 0
        while r + 4 <= num_rows:
            w, x, y, z = 0.0, 0.0, 0.0, 0.0
            for s in range(n):
                column = columns[c, s]
                w += column * rows[r, s]
                x += column * rows[r + 1, s]
                y += column * rows[r + 2, s]
                z += column * rows[r + 3, s]
            at = c * num_rows + r
            out[at], out[at + 1], out[at + 2], out[at + 3] = w, x, y, z
            r += 4
        while r < num_rows:
            w = 0.0
            for s in range(n):
                w += columns[c, s] * rows[r, s]
            out[c * num_rows + r] = w
            r += 1


@numba.njit(inline="always")
def _sum_over_targets(matrix, row_step, column_step, num_rows, num_columns, columns, n, out):
    """`out[r, s]` = Σ_c matrix[r · row_step + c · column_step] · columns[c, s]."""
    for r in range(num_rows):
        out[r, :n] = 0.0
        at = r * row_step
        c = 0
        while c + 4 <= num_columns:
            w, x = matrix[at], matrix[at + column_step]
            y, z = matrix[at + 2 * column_step], matrix[at + 3 * column_step]
            for s in range(n):
                out[r, s] += (
                    w * columns[c, s] + x * columns[c + 1, s] + y * columns[c + 2, s] + z * columns[c + 3, s]
                )
            at += 4 * column_step
            c += 4
        while c < num_columns:
            for s in range(n):
                out[r, s] += matrix[at] * columns[c, s]
            at += column_step
            c += 1


@numba.njit(cache=True, nogil=True, fastmath=_FAST)
def weigh_block(high, low_bits, mantissa, exponent, before, weight):
    d = mantissa.shape[0]
    size = 1 << low_bits
    block = high * size
    inside = _members(block, low_bits, d)
    offsets = np.empty(1 << inside.size, dtype=np.int64)
    n = _between(0, inside, offsets)
    sources, start = np.empty_like(offsets), np.empty(n)
    factor, source_power = np.empty((low_bits, n)), np.empty(n)
    rows, columns = np.empty((1 << low_bits // 2, n)), np.empty((1 << (low_bits - low_bits // 2), n))
    power, index, totals = np.empty(size), np.empty(size, dtype=np.int64), np.empty(size)
    for placed in range(block, block + size):
        if before[placed] == FAR:
            continue
        for s in range(n):
            sources[s] = offsets[s] | (placed - block)
            source_power[s] = before[sources[s]] - before[placed]
        _starts(sources, n, inside, -1.0, mantissa, exponent, source_power, start)
        for s in range(n - 1):
            start[s] *= weight[sources[s]]
            weight[placed] += start[s]
        start[n - 1] = -weight[placed]  # now it is complete
        nodes = _members(~placed, 0, low_bits)
        m, a = nodes.size, nodes.size // 2
        power[0] = before[placed]
        _factors(sources, n, placed, nodes, mantissa, exponent, factor, power, index)
        _fill(rows, columns, start, n)
        _multiply_out(factor, 0, a, n, rows)
        _multiply_out(factor, a, m, n, columns)
        _sum_over_sources(rows, 1 << a, columns, 1 << (m - a), n, totals)
        for r in range(1, 1 << m):
            weight[index[r]] += totals[r] * power_of_two(power[r] - before[index[r]])


@numba.njit(cache=True, nogil=True, fastmath=_FAST)
def complete_block(high, low_bits, mantissa, exponent, after, weight, only_root):
    d = mantissa.shape[0]
    size = 1 << low_bits
    block = high * size
    nodes = _members(~block, low_bits, d)
    m, a = nodes.size, nodes.size // 2
    num_rows, num_columns = 1 << a, 1 << (m - a)
    rows, columns = np.empty((num_rows, size)), np.empty((num_columns, size))
    row_sums, column_sums = np.empty((num_rows, size)), np.empty((num_columns, size))
    factor, start, whole = np.empty((m, size)), np.empty(size), np.empty(size)
    matrix, power, index = np.empty(1 << m), np.empty(1 << m), np.empty(1 << m, dtype=np.int64)
    sources = np.empty(size, dtype=np.int64)
    for placed in range(block + size - 1, block - 1, -1):
        if after[placed] == -FAR:
            continue
        inside = _members(placed, 0, low_bits)
        n = _between(block, inside, sources)
        power[0] = -after[placed]
        _factors(sources, n, placed, nodes, mantissa, exponent, factor, power, index)
        matrix[0] = 0.0  # not complete yet
        for r in range(1, 1 << m):
            matrix[r] = weight[index[r]] * power_of_two(power[r] + after[index[r]])
        for s in range(n):
            whole[s] = after[placed] - after[sources[s]]
        _starts(sources, n, inside, -1.0, mantissa, exponent, whole, start)
        _fill(rows, columns, start, n)
        _multiply_out(factor, 0, a, n, rows)
        _multiply_out(factor, a, m, n, columns)
        _sum_over_targets(matrix, 1, num_rows, num_rows, num_columns, columns, n, row_sums)
        _sum_over_targets(matrix, num_rows, 1, num_columns, num_rows, rows, n, column_sums)
        for r in range(num_rows):
            for s in range(n):
                row_sums[r, s] *= rows[r, s]
        for c in range(num_columns):
            for s in range(n):
                column_sums[c, s] *= columns[c, s]
        for k in range(m):
            if k < a:
                _fold(row_sums, a - 1 - k, n, whole)
                j = nodes[a - 1 - k]
            else:
                _fold(column_sums, m - 1 - k, n, whole)
                j = nodes[a + m - 1 - k]
            for s in range(n):
                only_root[j, compress(sources[s], j)] += whole[s]
        weight[placed] += row_sums[0, n - 1]
        for s in range(n - 1):
            whole[s] = row_sums[0, s] + start[s] * weight[placed]
            weight[sources[s]] += whole[s]
        for i in range(inside.size):
            j = inside[i]
            for first in range(0, n, 2 << i):
                for s in range(first, first + (1 << i)):
                    only_root[j, compress(sources[s], j)] += whole[s]


@numba.njit(inline="always")
def _fold(sums, k, n, whole):
    """Add the half with node k to the half without it; `whole` is its total, [s]."""
    half = 1 << k
    whole[:n] = 0.0
    for r in range(half):
        for s in range(n):
            whole[s] += sums[half + r, s]
            sums[r, s] += sums[half + r, s]
