"""Algorithm 1 of the paper over a stream, with an identity seed (DESIGN 5.2), compiled.

With seed variance s, the rows measured so far C and their noise V (Woodbury's identity):

    Var(q) = s q'q - g' (V + s C C')^-1 g,   g = s C q.

Of the triangular factor L of V + s C C', the row that belongs to a measured query is what solving
L u = g for that query gave when it was measured. So it is enough to keep, for every question, its
`column` u, and to extend it by what was measured since the question was last looked at.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from sharewell.lab.engines.run import NOBODY

Numbers = NDArray[np.float64]
Whole = NDArray[np.int64]

#: Sums may be added up in any order, several numbers at a time; nothing else about floats is relaxed.
REORDER = {"reassoc", "nsz"}


@njit(cache=True)
def serve(
    served: Whole,
    asker: Whole,
    affordable: Whole,
    is_seed_row: NDArray[np.bool_],
    truth: Numbers,
    from_seed: Numbers,
    overlaps: Numbers,
    seed_variance: float,
    row_variance: float,
    tiny: float,
    noise: Numbers,
) -> tuple[Numbers, Numbers, Numbers, Numbers, Whole]:
    """Value and variance of every step, as estimates and as printed, and who paid for the row."""
    steps, different, most_rows = len(served), len(truth), len(noise)
    value, variance = np.empty(steps), np.empty(steps)
    printed, printed_variance = np.empty(steps), np.empty(steps)
    payer = np.empty(steps, dtype=np.int64)

    # What is known of every different question: its estimate and variance from the seed and the first
    # `known` rows, and what it was measured as.
    estimate, spread = from_seed.copy(), seed_variance * np.diag(overlaps)
    known = np.zeros(different, dtype=np.int64)
    column = np.empty((different, most_rows))
    cached = from_seed.copy()
    payer_of = np.full(different, NOBODY)
    # What was measured: which question, the factor's corner, and how far the value was from expected.
    row, rows = np.empty(most_rows, dtype=np.int64), 0
    corner, residual = np.empty(most_rows), np.empty(most_rows)
    paid = np.zeros_like(affordable)

    for step in range(steps):
        q, analyst = served[step], asker[step]
        _take_in(
            q, rows, row, column, corner, residual, overlaps, seed_variance, known, estimate, spread
        )
        has_budget = paid[analyst] < affordable[analyst]
        if has_budget and payer_of[q] == NOBODY and not is_seed_row[q]:
            cached[q] = truth[q] + noise[rows]
            payer_of[q] = analyst
            paid[analyst] += 1
            row[rows] = q
            corner[rows] = np.sqrt(max(spread[q] + max(row_variance, tiny), 1e-300))
            residual[rows] = (cached[q] - estimate[q]) / corner[rows]
            rows += 1
            _take_in(
                q, rows, row, column, corner, residual, overlaps, seed_variance, known, estimate, spread
            )
        value[step], variance[step] = estimate[q], max(spread[q], 0.0)
        payer[step] = payer_of[q]
        if has_budget:
            printed[step] = cached[q]
            printed_variance[step] = seed_variance if is_seed_row[q] else row_variance
        else:
            printed[step], printed_variance[step] = value[step], variance[step]
    return value, variance, printed, printed_variance, payer


@njit(cache=True, fastmath=REORDER)
def _take_in(
    q: int,
    rows: int,
    row: Whole,
    column: Numbers,
    corner: Numbers,
    residual: Numbers,
    overlaps: Numbers,
    seed_variance: float,
    known: Whole,
    estimate: Numbers,
    spread: Numbers,
) -> None:
    """Let a question's estimate learn from the rows that were measured since it was last looked at."""
    for new in range(known[q], rows):
        other = row[new]
        shared = seed_variance * overlaps[q, other]
        for old in range(new):
            shared -= column[q, old] * column[other, old]
        entry = shared / corner[new]
        column[q, new] = entry
        estimate[q] += entry * residual[new]
        spread[q] -= entry * entry
    known[q] = rows
