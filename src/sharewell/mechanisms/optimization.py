"""What optimizers find for a workload: the rows to measure along attributes, and amounts for marginals.

*p-Identity* rows are for one attribute and Laplace noise: its cells, and a few rows below them. The rows
[I; B] D, with D such that every column sums to 1, are chosen by gradient descent to minimise the total
error of a workload (McKenna, Miklau, Hay and Machanavajjhala, 2018).

*Unions* are for attributes whose cells have an order, under zCDP. Of a Gram matrix G, the best rows are
those of the matrix X with unit diagonal for which tr(G X^-1) is least (Li, Miklau, Hay, McGregor and
Rastogi, 2015); the descent is on X = C C'. For several attributes X is a weighted union of Kronecker
products.

*Amounts* are for weighted marginals with Laplace noise: precision grows with the square of an amount.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
import scipy
import scipy.sparse as sp
from numpy.typing import NDArray

from sharewell.mechanisms.kronecker import written_out
from sharewell.mechanisms.strategy import Rows
from sharewell.mechanisms.workload_terms import Vector

#: From this many cells on, an attribute keeps the identity: optimising costs the cube of its size.
MOST_OPTIMIZED = 1024
#: No row below the identity weighs a cell more than this many times as much as the cell's own row:
#: a workload that ignores an attribute would otherwise leave its cells undetermined.
MOST_BELOW = 8
#: Rows along ordered attributes are rounded to so many bits.
BITS = 8
#: What is added to Gram matrices so that no direction is free, and rounds of weights for unions.
RIDGE, ROUNDS = 1e-3, 12
#: A product with a smaller weight is not worth measuring.
LEAST_WEIGHT = 1e-4
#: Amounts differ at most by a factor of e to this.
LARGEST_LOG = 100.0
#: A part with a smaller fraction is not worth measuring where others tell the same.
LEAST_AMOUNT = 1e-4


def p_identity(gram: Vector, bits: int, starts: int = 3) -> Rows:
    """The best p-Identity strategy found for queries with a Gram matrix, on a grid of so many bits."""
    size = len(gram)
    if not 2 < size <= MOST_OPTIMIZED:
        return Rows(size)
    extra = max(1, size // 16 + 1)
    # The starts are fixed, so that a strategy is the same wherever and whenever it is computed.
    rng = np.random.default_rng(0)
    found = [
        scipy.optimize.minimize(
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


def _error_and_gradient(flat: Vector, gram: Vector) -> tuple[float, Vector]:
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


def least_alike(gram: Vector) -> float:
    """The least variance with rows that treat all cells of an attribute alike."""
    size = len(gram)
    square = max(float(gram.sum()) / size**2, 0.0)
    covariance = max(float(np.trace(gram)) / size - square, 0.0)
    return (math.sqrt(square) + math.sqrt((size - 1) * covariance)) ** 2


def best_matrix(gram: Vector) -> Vector:
    """The matrix X with unit diagonal for which tr(G X^-1) is about the least."""
    size = len(gram)
    gram = gram / (np.trace(gram) / size) + RIDGE * np.eye(size)

    def variance(flat: Vector) -> tuple[float, Vector]:
        rows = flat.reshape(size, size)
        norms = np.linalg.norm(rows, axis=1, keepdims=True)
        rows = rows / norms
        inverse = np.linalg.inv(rows @ rows.T)
        middle = inverse @ gram @ inverse
        slope = -2 * middle @ rows
        slope -= (slope * rows).sum(axis=1, keepdims=True) * rows
        return float((inverse * gram).sum()), (slope / norms).ravel()

    # The square root of G is optimal but for its diagonal.
    values, vectors = np.linalg.eigh(gram)
    start = (vectors * np.maximum(values, RIDGE) ** 0.25) @ vectors.T
    start /= np.linalg.norm(start, axis=1, keepdims=True)
    found = scipy.optimize.minimize(
        variance, start.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": 150}
    )
    rows = found.x.reshape(size, size)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows @ rows.T)


def best_union(gram: Vector, sizes: Sequence[int]) -> list[tuple[tuple[Rows, ...], float]]:
    """Rows along ordered attributes, with weights that sum to 1, for the least tr(G X^-1).

    For one attribute, those of the best matrix. For several, a weighted union of Kronecker products of
    sums, cells and each attribute's own best rows: each weight is multiplied by the root of what more of
    its product would gain, over and over (a fixed point of that is optimal).
    """
    if len(sizes) == 1:
        return [((_rounded(best_matrix(gram)),), 1.0)]
    tensor = gram.reshape(*sizes, *sizes)
    own = []
    for level, size in enumerate(sizes):
        moved = np.moveaxis(tensor, (level, len(sizes) + level), (0, 1)).reshape(size, size, -1)
        rest = math.isqrt(moved.shape[2])
        traced = np.trace(moved.reshape(size, size, rest, rest), axis1=2, axis2=3)
        total = Rows(size, sp.csr_array(np.ones((1, size), dtype=np.int64)))
        own.append([total, Rows(size), _rounded(best_matrix(traced))])
    products = list(itertools.product(*own))
    weights = np.full(len(products), 1 / len(products))
    units = [unit_gram(rows) for rows in products]
    for _ in range(ROUNDS):
        inverse = np.linalg.inv(sum(w * unit for w, unit in zip(weights, units, strict=True)))
        gains = inverse @ gram @ inverse
        weights *= np.sqrt([max(float((gains * unit).sum()), 0.0) for unit in units])
        weights /= weights.sum()
    chosen = [(r, float(w)) for r, w in zip(products, weights, strict=True) if w > LEAST_WEIGHT]
    return [(rows, weight / sum(w for _, w in chosen)) for rows, weight in chosen]


def _rounded(matrix: Vector) -> Rows:
    """Whole-number rows whose Gram matrix is about a multiple of a matrix with unit diagonal."""
    root = np.linalg.cholesky(matrix).T
    whole = np.rint(root * 2**BITS).astype(np.int64)
    return Rows(len(matrix), sp.csr_array(whole[whole.any(axis=1)]))


def unit_gram(rows: Sequence[Rows]) -> Vector:
    """The Gram matrix of a Kronecker product of rows, divided by its largest diagonal entry."""
    return written_out(each.gram for each in rows) / largest_square(rows)


def largest_square(rows: Sequence[Rows]) -> int:
    """The largest diagonal entry of the Gram matrix of a Kronecker product of rows."""
    return math.prod(int(each.norms(2).max()) for each in rows)


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
    found = [scipy.optimize.minimize(variance, start, jac=True, method="L-BFGS-B") for start in starts]
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
