"""Amounts for weighted marginals with Laplace noise: precision grows with the square of an amount."""

from __future__ import annotations

import math

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.optimize import minimize

from sharewell.mechanisms.workload_terms import Vector

#: Amounts differ at most by a factor of e to this.
LARGEST_LOG = 100.0
#: A part with a smaller fraction is not worth measuring where others tell the same.
LEAST_AMOUNT = 1e-4


def best_amounts(
    precision: sp.csr_array, wanted: Vector, widths: NDArray[np.int64]
) -> tuple[Vector, float]:
    """The parts of a donation for marginals of these widths, and the total variance at a donation of 1.

    A marginal that gets a part `a` knows what it covers with `precision` times a^2. Not convex: the best
    of several starts.
    """

    def variance(logs: Vector) -> tuple[float, Vector]:
        # An amount never becomes 0, nor does the square of its square.
        amounts = np.exp(np.maximum(logs - logs.max(), -LARGEST_LOG))
        amounts /= amounts.sum()
        known_by = precision @ amounts**2
        slope = -2 * amounts * (precision.T @ (wanted / known_by**2))
        total = float((wanted / known_by).sum())
        return math.log(total), amounts * (slope - slope @ amounts) / total

    starts = [np.zeros(len(widths)), *(-4.0 * (widths != width) for width in np.unique(widths)[-4:])]
    found = [minimize(variance, start, jac=True, method="L-BFGS-B") for start in starts]
    best = min(found, key=lambda each: float(each.fun))
    amounts = np.exp(best.x - best.x.max())
    return amounts / amounts.sum(), math.exp(float(best.fun))


def still_covering(amounts: Vector, precision: sp.csr_array) -> list[int]:
    """The marginals worth measuring: small amounts are left out where others cover the same parts."""
    covers = (precision > 0).astype(np.int64).tocsc()
    count, kept = np.asarray(covers.sum(axis=1)).ravel(), list[int]()
    for at in np.argsort(amounts).tolist():
        own = covers.indices[covers.indptr[at] : covers.indptr[at + 1]]
        if amounts[at] < LEAST_AMOUNT and (count[own] > 1).all():
            count[own] -= 1
        else:
            kept.append(at)
    return sorted(kept)
