"""Domains, seeds and measured rows for the tests of reconstruction."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations

import numpy as np
import scipy.sparse as sp
from hypothesis import strategies as st

from sharewell import Domain, Integer, LinearQuery
from sharewell.mechanisms import seed
from sharewell.mechanisms.measurements import MeasurementBatch
from sharewell.mechanisms.reconstruction import Reconstruction
from sharewell.mechanisms.strategy import Rows, Strategy
from sharewell.query import workload
from sharewell.query.block import Block
from tests.mechanisms.oracle import Measured, dense, matrix_of


@lru_cache(maxsize=256)
def line_of(*shape: int) -> Domain:
    """A domain with attributes of these sizes."""
    return Domain([Integer(f"a{at}", 0, size - 1) for at, size in enumerate(shape)])


@lru_cache(maxsize=256)
def optimized(domain: Domain) -> Strategy:
    """The seed for the running totals of the first attribute, and for the total."""
    wanted = workload.prefixes(domain, domain.names[0])
    return seed.optimized(domain, Block(domain, [*wanted, LinearQuery.all(domain)]), starts=1)


def cells_and_marginals(domain: Domain, k: int = 1) -> Strategy:
    """Every cell and all k-way marginals with the same noise: `marginals(k)` of old ledgers."""
    k = min(k, len(domain.shape) - 1)
    levels = range(len(domain.shape))
    ones = [sp.csr_array(np.ones((1, size), dtype=np.int64)) for size in domain.shape]
    parts = tuple(
        tuple(Rows(n, None if at in kept else ones[at]) for at, n in enumerate(domain.shape))
        for kept in [tuple(levels), *combinations(levels, k)]
    )
    return Strategy(domain, parts, f"marginals({k})")


SEEDS: dict[str, Callable[[Domain], Strategy]] = {
    **seed.NAMED,
    "marginals(0)": lambda domain: cells_and_marginals(domain, 0),
    "marginals(1)": lambda domain: cells_and_marginals(domain, 1),
    "marginals(2)": lambda domain: cells_and_marginals(domain, 2),
    "optimized": optimized,
}


def random_query(domain: Domain, rng: np.random.Generator) -> LinearQuery:
    """A box, a product with weights of both signs, a union of boxes or any weights: never zero."""
    kind = rng.integers(5)
    if kind <= 1:
        return workload.random_ranges(domain, 1, rng)[0]
    if kind == 2:
        weights = {level: rng.integers(-2, 4, size) for level, size in enumerate(domain.shape)}
        found = LinearQuery.of_vectors(domain, weights)
    elif kind == 3:
        one, other = workload.random_ranges(domain, 2, rng)
        found = (one | other) if rng.integers(2) and not domain.measures else one - other * 3
    else:
        few = rng.integers(-3, 4, domain.size) * (rng.random(domain.size) < 6 / domain.size)
        found = LinearQuery.from_vector(domain, few.astype(np.int64))
    return LinearQuery.all(domain) if found.is_zero else found.primitive


@dataclass(frozen=True)
class Case:
    """A seed, measured so many times, then batches of rows, and queries to estimate."""

    strategy: Strategy
    seed_variances: tuple[float, ...]
    seed_values: tuple[np.ndarray, ...]
    batches: tuple[MeasurementBatch, ...]
    queries: tuple[LinearQuery, ...]

    @property
    def domain(self) -> Domain:
        return self.strategy.domain

    @property
    def dense(self) -> np.ndarray:
        return dense(self.queries)

    def start(self) -> Reconstruction:
        """A reconstruction that has seen the seed, and no rows yet."""
        known = Reconstruction(self.strategy)
        for values, variance in zip(self.seed_values, self.seed_variances, strict=True):
            known.observe_seed(values, variance)
        return known

    def reconstruction(self) -> Reconstruction:
        """A reconstruction that has seen everything."""
        known = self.start()
        for batch in self.batches:
            known.observe(batch.rows, batch.values, batch.variances)
        return known

    def measured(self, batches: int | None = None) -> Measured:
        """The same for the oracle, up to a number of batches."""
        known = Measured()
        matrix = matrix_of(self.strategy)
        for values, variance in zip(self.seed_values, self.seed_variances, strict=True):
            known.add(matrix, values.tolist(), [variance] * len(matrix))
        for batch in self.batches[:batches]:
            known.add(dense(batch.rows), batch.values.tolist(), batch.variances.tolist())
        return known


def make_case(
    strategy: Strategy, *, rows: int, queries: int, number: int, times: int = 1, largest_batch: int = 12
) -> Case:
    """A case from a seed number: a random table, measured with noise of many sizes."""
    rng = np.random.default_rng(number)
    domain = strategy.domain
    table = rng.integers(0, 50, domain.size)
    unit = strategy.l1_sensitivity("add-remove")
    variances = tuple(float(v) * unit**2 for v in 10 ** rng.uniform(0, 2.5, times))
    values = tuple(
        strategy.answers(table) + np.rint(rng.normal(0, v**0.5, len(strategy))) for v in variances
    )
    batches = []
    while rows > 0:
        chosen = [
            random_query(domain, rng) for _ in range(min(rows, int(rng.integers(1, largest_batch + 1))))
        ]
        noise = 10 ** rng.uniform(0, 2.5, len(chosen)) * [float(q.max_abs) ** 2 for q in chosen]
        answers = np.array([q.dot(table) for q in chosen]) + np.rint(rng.normal(0, noise**0.5))
        batches.append(MeasurementBatch(tuple(chosen), answers, noise))
        rows -= len(chosen)
    asked = [random_query(domain, rng) for _ in range(queries - 2)]
    asked += [LinearQuery.cell(domain, int(rng.integers(domain.size))), LinearQuery.all(domain)]
    if batches:
        asked[0] = batches[0].rows[0]
    return Case(strategy, variances, values, tuple(batches), tuple(asked))


@st.composite
def shapes(draw, most: int) -> tuple[int, ...]:
    """The sizes of one to three attributes whose product is at most `most`."""
    shape: list[int] = []
    for _ in range(draw(st.integers(1, 3))):
        room = most // int(np.prod(shape, dtype=int))
        shape.append(draw(st.integers(1, max(1, min(room, 40 if shape else room)))))
    return tuple(draw(st.permutations(shape)))


@st.composite
def cases(
    draw, *, most_cells: int = 512, most_rows: int = 300, queries: int = 8, least_times: int = 0
) -> Case:
    """Random domains, seeds and rows, the seed measured up to three times or never."""
    domain = line_of(*draw(shapes(most_cells)))
    name = draw(st.sampled_from(sorted(SEEDS)))
    return make_case(
        SEEDS[name](domain),
        rows=draw(st.integers(0, most_rows)),
        queries=queries,
        number=draw(st.integers(0, 2**32)),
        times=draw(st.sampled_from([t for t in (1, 1, 2, 3, 0) if t >= least_times])),
    )
