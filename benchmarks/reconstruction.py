"""Reconstruction with 1,000 cached queries, against a from-scratch solve and passes over the data."""

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from benchmarks.ratio import Ratio, best_of
from sharewell import Domain, Integer
from sharewell.mechanisms import seed
from sharewell.mechanisms.reconstruction import Reconstruction
from sharewell.query import workload

CACHED = 1000
ASKED = 50


def run() -> list[Ratio]:
    return [
        against_cholesky(Domain([Integer("a", 0, 4095)]), "one attribute of 4,096 cells"),
        against_cholesky(Domain([Integer("a", 0, 63), Integer("b", 0, 63)]), "64 x 64 cells"),
        against_passes(),
    ]


def filled(domain: Domain) -> tuple[Reconstruction, list]:
    queries = list(workload.random_ranges(domain, CACHED + ASKED, np.random.default_rng(1)))
    known = Reconstruction(seed.h2(domain))
    known.observe_seed(np.zeros(len(known.measurements.strategy)), 1e4)
    known.observe(queries[:CACHED], np.zeros(CACHED), np.full(CACHED, 50.0))
    return known, queries[CACHED:]


def against_cholesky(domain: Domain, what: str) -> Ratio:
    """Compare an answer and its variance with building and factorizing the normal equations."""
    known, asked = filled(domain)
    rows = np.array([q.to_vector() for q in known.measurements.batches[0].rows], dtype=float)
    factors = [rows_of.gram for rows_of in known.measurements.strategy.parts[0]]
    gram = factors[0] if len(factors) == 1 else np.kron(*factors)
    query = asked[0].to_vector().astype(float)

    def from_scratch() -> float:
        normal = gram / 1e4 + rows.T @ rows / 50.0
        return float(query @ cho_solve(cho_factor(normal, overwrite_a=True), query))

    exact = from_scratch()
    value = known.estimate(asked[:1])[1][0]
    if abs(value / exact - 1) > 1e-8:
        raise ValueError("the fast way disagrees with the slow one")
    fast, slow = best_of(3, lambda: known.choose().solver.estimate(asked), from_scratch)
    return Ratio(f"SCR answer, {what}", fast / ASKED, "Cholesky from scratch", slow, 200, at_most=False)


def against_passes() -> Ratio:
    domain = Domain([Integer(name, 0, 99) for name in "abc"])
    known, asked = filled(domain)
    counts = np.arange(domain.size, dtype=np.int64)
    fast, passed = best_of(5, lambda: known.choose().solver.estimate(asked), counts.sum)
    return Ratio("SCR answer, 100 x 100 x 100 cells", fast / ASKED, "x.sum() over the cells", passed, 5)
