"""The loops of the players over a stream, compiled with Numba.

PMW: the synthetic table has one weight for each group of cells that no question separates, with sum 1 at
the start. A question q is the runs of neighbouring groups first[q] to first[q + 1], each from its start
to its stop, as the boxes of `sharewell.mechanisms.pmw`.

SCR, Algorithm 1 of the paper with an identity seed: with seed variance s, the rows measured so far C and
their noise V, Woodbury's identity gives

    Var(q) = s q'q - g' (V + s C C')^-1 g,   g = s C q.

The row of the triangular factor L of V + s C C' that belongs to a measured query is the solution of
L u = g at the time of its measurement. So it is enough to keep `column` u for every question, and to
extend it by what was measured since the question was last visited.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray

from sharewell_lab.engines.world import NO_PAYER

Numbers = NDArray[np.float64]
Whole = NDArray[np.int64]

#: Sums may be added up in any order, several numbers at a time; nothing else about floats is relaxed.
REORDER = {"reassoc", "nsz"}


@njit(cache=True)
def serve_pmw(
    served: Whole,
    truth: Numbers,
    first: Whole,
    start: Whole,
    stop: Whole,
    uniform: Numbers,
    population: float,
    passes: int,
    max_step: float,
    noisy_threshold: float,
    test_noise: Numbers,
    measurement_noise: Numbers,
) -> tuple[Numbers, NDArray[np.bool_]]:
    """The value of every step, and whether it was measured; else it is a guess."""
    steps, updates = len(served), len(measurement_noise)
    value, measured = np.empty(steps), np.zeros(steps, dtype=np.bool_)
    weights, total = uniform.copy(), 1.0
    row, answer, done = np.empty(updates, dtype=np.int64), np.empty(updates), 0
    tests = 0

    for step in range(steps):
        q = served[step]
        guess = _held(weights, q, first, start, stop) * population / total
        value[step] = guess
        if done == updates:
            continue
        distance = abs(truth[q] - np.rint(guess)) + test_noise[tests]
        tests += 1
        if distance < noisy_threshold:
            continue
        row[done], answer[done] = q, truth[q] + measurement_noise[done]
        value[step], measured[step] = answer[done], True
        done += 1
        for _ in range(passes):
            for at in range(done):
                held = _held(weights, row[at], first, start, stop)
                miss = answer[at] - held * population / total
                bend = min(max(miss / (2 * population), -max_step), max_step)
                _multiply(weights, row[at], math.exp(bend), first, start, stop)
                total += held * math.expm1(bend)
                # The running sum keeps its absolute error, so it must not be left to shrink for long.
                if not 1e-3 < total < 1e3:
                    weights /= weights.sum()
                    total = 1.0
    return value, measured


@njit(cache=True, fastmath=REORDER)
def _held(weights: Numbers, q: int, first: Whole, start: Whole, stop: Whole) -> float:
    """The part of the table that a question counts."""
    held = 0.0
    for run in range(first[q], first[q + 1]):
        for group in range(start[run], stop[run]):
            held += weights[group]
    return held


@njit(cache=True)
def _multiply(weights: Numbers, q: int, factor: float, first: Whole, start: Whole, stop: Whole) -> None:
    """Multiply what a question counts by a factor."""
    for run in range(first[q], first[q + 1]):
        for group in range(start[run], stop[run]):
            weights[group] *= factor


@njit(cache=True)
def serve_scr(
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
    payer_of = np.full(different, NO_PAYER)
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
        if has_budget and payer_of[q] == NO_PAYER and not is_seed_row[q]:
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
