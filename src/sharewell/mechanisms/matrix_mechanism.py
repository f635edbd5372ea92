"""The matrix mechanism: how precise every query is when a strategy is all that was measured."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sharewell.mechanisms.reconstruction import Reconstruction
from sharewell.mechanisms.strategy import Strategy
from sharewell.query.linear import LinearQuery


def matrix_mechanism_variances(
    workload: Sequence[LinearQuery], strategy: Strategy, noise_variance: float
) -> NDArray[np.float64]:
    """The matrix mechanism's error formula: each query's variance from a strategy's noisy rows alone.

    Li, Miklau, Hay, McGregor and Rastogi (2015): noise variance times q' (A'A)^+ q.
    """
    known = Reconstruction(strategy)
    known.observe_seed(np.zeros(len(strategy)), noise_variance)
    return known.estimate(workload)[1]
