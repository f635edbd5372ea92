"""The p-Identity strategy of one attribute: its cells, and a few rows below them, for Laplace noise.

The rows [I; B] D, with D such that every column sums to 1, are chosen by gradient descent to minimise a
workload's total error (McKenna, Miklau, Hay and Machanavajjhala, 2018).
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.optimize import minimize

from sharewell.mechanisms.strategy import Rows

#: From this many cells on, an attribute keeps the identity: optimising costs the cube of its size.
MOST_OPTIMIZED = 1024
#: No row below the identity weighs a cell more than this many times as much as the cell's own row:
#: a workload that ignores an attribute would otherwise leave its cells undetermined.
MOST_BELOW = 8


def p_identity(gram: NDArray[np.float64], bits: int, starts: int = 3) -> Rows:
    """The best p-Identity strategy found for queries with a Gram matrix, on a grid of so many bits."""
    size = len(gram)
    if not 2 < size <= MOST_OPTIMIZED:
        return Rows(size)
    extra = max(1, size // 16 + 1)
    # The starts are fixed, so that a strategy is the same wherever and whenever it is computed.
    rng = np.random.default_rng(0)
    found = [
        minimize(
            _error_and_gradient,
            rng.random(extra * size),
            args=(gram / np.trace(gram),),
            jac=True,
            method="L-BFGS-B",
            bounds=[(0, MOST_BELOW)] * (extra * size),
            options={"maxiter": 500},
        )
        for _ in range(starts)
    ]
    best = min(found, key=lambda result: float(result.fun))
    if best.fun >= 1:  # The error of the identity, which the descent may miss.
        return Rows(size)
    below = np.vstack([np.eye(size), best.x.reshape(extra, size)])
    whole = np.rint(below / below.sum(axis=0) * 2**bits).astype(np.int64)
    whole[:size] = np.maximum(whole[:size], np.eye(size, dtype=np.int64))
    return Rows(size, sp.csr_array(whole[whole.any(axis=1)]))


def _error_and_gradient(
    flat: NDArray[np.float64], gram: NDArray[np.float64]
) -> tuple[float, NDArray[np.float64]]:
    """The error tr(G (A'A)^-1) of A = [I; B] D, and its gradient in B.

    With c = 1 + column sums of B and M = I + B'B, the error is the sum of G * cc' * M^-1.
    """
    size = len(gram)
    below = flat.reshape(-1, size)
    sums = 1 + below.sum(axis=0)
    small = np.linalg.inv(np.eye(len(below)) + below @ below.T)
    inverse = np.eye(size) - below.T @ small @ below
    weighted = gram * np.outer(sums, sums)
    error = float((weighted * inverse).sum())
    gradient = -2 * below @ (inverse @ weighted @ inverse) + 2 * ((gram * inverse) @ sums)
    return error, gradient.ravel()
