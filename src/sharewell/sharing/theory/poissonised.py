"""The draws at the times of a Poisson process: then the analysts' counts are independent."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammainc, gammaincc

from sharewell.sharing.theory.quotas import Groups

#: A tail of less than exp(-60) is not computed: with 100,000 analysts it stays far below rounding.
FAR = 60.0


def log_all_met(groups: Groups, times: NDArray[np.float64]) -> NDArray[np.float64]:
    """The logarithm of the probability that all quotas are met, at each of the times.

    By logarithms of the smaller tail, so that both the probability and what it lacks of 1, which is
    `-expm1` of the result, keep their relative accuracy.
    """
    mean = np.multiply.outer(times, groups.probability)
    quota = np.broadcast_to(groups.quota, mean.shape)
    gap = mean - quota
    # Chernoff: a Poisson number is at least m > x with probability at most exp(-(m - x)^2 / 2m),
    # and less than m < x with probability at most exp(-(x - m)^2 / 2x).
    near = gap**2 <= 2 * FAR * np.maximum(mean, quota)
    logs = np.where(gap < 0, -np.inf, 0.0)
    above, below = near & (gap >= 0), near & (gap < 0)
    logs[above] = np.log1p(-gammaincc(quota[above], mean[above]))
    with np.errstate(divide="ignore"):
        logs[below] = np.log(gammainc(quota[below], mean[below]))
    total: NDArray[np.float64] = (logs * groups.count).sum(axis=1)
    return total
