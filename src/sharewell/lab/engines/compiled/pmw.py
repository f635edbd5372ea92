"""Private Multiplicative Weights over a stream (DESIGN 5.3), compiled.

The synthetic table has one weight for each group of cells that no question tells apart, in all 1 at
the start. Questions are runs of neighbouring groups, as boxes are in `mechanism.synthetic`: those of
question q are first[q] to first[q + 1], each from its start up to its stop.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray

Numbers = NDArray[np.float64]
Whole = NDArray[np.int64]

#: Sums may be added up in any order, several numbers at a time; nothing else about floats is relaxed.
REORDER = {"reassoc", "nsz"}


@njit(cache=True)
def serve(
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
