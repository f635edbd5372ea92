"""Rows along attributes whose cells have an order, for ranges and prefixes, under zCDP.

Of a Gram matrix G, the best rows are those of the matrix X with unit diagonal for which tr(G X^-1) is
least (Li, Miklau, Hay, McGregor and Rastogi, 2015); the descent is on X = C C'. For several attributes X
is a weighted union of Kronecker products.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp
from scipy.optimize import minimize

from sharewell.mechanisms.kronecker import written_out
from sharewell.mechanisms.strategy import Rows
from sharewell.mechanisms.workload_terms import Vector

#: Rows are rounded to so many bits.
BITS = 8
#: What is added to Gram matrices so that no direction is free, and rounds of weights for unions.
RIDGE, ROUNDS = 1e-3, 12
#: A product with a smaller weight is not worth measuring.
LEAST_WEIGHT = 1e-4


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
    found = minimize(variance, start.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": 150})
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
