"""The second implementation on seeds of marginals, against pseudo-inverses over all cells."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from sharewell import Domain, Integer, LinearQuery
from sharewell.mechanisms import seed
from sharewell.mechanisms.marginal_seed import MarginalSeed
from sharewell.privacy.measurement import Measurement
from sharewell.query.block import Block, GroupedBlock, Measurable
from sharewell.query.measure import Measure
from sharewell.sharing import kriging
from sharewell.sharing import reference as second
from sharewell.sharing.merged_cells import MergedCells, marginals_of
from sharewell.sharing.reference import Reference

#: Limits on cells for long doubles and decimals, on rows, and whether small domains count as small.
WAYS = {
    "long doubles": {},
    "merged cells": {"MOST_CELLS": 255},
    "decimals": {"MOST_CELLS": 0},
    "rows": {"MOST_CELLS": 0, "MOST_DECIMAL_CELLS": 0},
    "iteration": {"MOST_CELLS": 0, "MOST_DECIMAL_CELLS": 0, "MOST_ROWS": -1},
}


def measured(block: Measurable, values: np.ndarray, variances: np.ndarray) -> Measurement:
    return Measurement(block, values, variances, Fraction(1), {"ann": Fraction(1)}, 0)


def random_domain(rng: np.random.Generator, measures: bool) -> Domain:
    count = int(rng.integers(1, 4 if measures else 5))
    attributes = [Integer(f"x{at}", 0, int(rng.integers(1, 4))) for at in range(count)]
    return Domain(attributes, [Measure("wage", "wage", 0, 10, 1, bool(rng.integers(2)))] * measures)


def random_query(rng: np.random.Generator, domain: Domain) -> LinearQuery:
    """One or two products, over few attributes, on one or several vectors."""
    total = LinearQuery.zero(domain)
    for _ in range(int(rng.integers(1, 3))):
        vectors = {}
        for level in range(len(domain.attributes)):
            if rng.random() < 0.5:
                vectors[level] = rng.integers(-1, 3, domain.shape[level])
        if domain.measures:
            vectors[len(domain.attributes)] = rng.integers(0, 2, domain.vectors)
        total = total + LinearQuery.of_vectors(domain, vectors)
    return LinearQuery.all(domain) if total.is_zero else total


def random_seed(rng: np.random.Generator, domain: Domain) -> MarginalSeed:
    levels = range(len(domain.attributes))
    every = [each for k in range(len(levels) + 1) for each in combinations(levels, k)]
    chosen = rng.choice(len(every), size=int(rng.integers(1, min(4, len(every)) + 1)), replace=False)
    vectors = [k for k in range(domain.vectors) if rng.random() < 0.7] or [0]
    return MarginalSeed.of(domain, [every[at] for at in chosen], vectors=vectors)


def rows_of(block: Any) -> np.ndarray:
    """Every row written out over all cells."""
    domain = block.domain
    if not isinstance(block, MarginalSeed):
        return np.array([row.to_vector() for row in block], dtype=np.float64)
    found = []
    for part in block.parts:
        for at in np.ndindex(*(domain.shape[level] for level in part.attributes)):
            tensor = np.zeros(domain.shape)
            index: list[slice | int] = [slice(None)] * len(domain.shape)
            for level, cell in zip(part.attributes, at, strict=True):
                index[level] = cell
            if domain.measures:
                index[-1] = part.vector
            tensor[tuple(index)] = 1
            found.append(tensor.ravel())
    return np.array(found)


def oracle(taken: list[Measurement], query: LinearQuery) -> tuple[float, float]:
    rows = np.concatenate([rows_of(each.block) for each in taken])
    values = np.concatenate([each.values for each in taken])
    errors = np.sqrt(np.concatenate([each.variances for each in taken]))
    weights = query.to_vector().astype(np.float64)
    solved, *_ = np.linalg.lstsq((rows / errors[:, None]).T, weights, rcond=1e-10)
    if np.abs((rows / errors[:, None]).T @ solved - weights).max() > 1e-6:
        return 0.0, math.inf
    return float(solved @ (values / errors)), float(solved @ solved)


def random_case(rng: np.random.Generator, measures: bool) -> tuple[Domain, list[Measurement]]:
    domain = random_domain(rng, measures)
    chosen, taken = random_seed(rng, domain), list[tuple[Measurable, np.ndarray]]()
    for _ in range(int(rng.integers(1, 3))):
        scale = rng.integers(1, 40, len(chosen.parts)).astype(np.float64)
        taken.append((chosen, np.repeat(scale, chosen.sizes)))
    for _ in range(int(rng.integers(0, 4))):
        block = Block(domain, [random_query(rng, domain).primitive for _ in range(2)])
        taken.append((block, rng.integers(1, 40, 2).astype(np.float64)))
    if rng.random() < 0.5:
        levels = rng.permutation(len(domain.attributes))[:2].tolist()
        one = {len(domain.attributes): np.eye(domain.vectors, dtype=int)[0]} if measures else {}
        base = LinearQuery.of_vectors(domain, one)
        block = GroupedBlock(base, {level: np.arange(domain.shape[level]) for level in levels})
        taken.append((block, np.full(len(block), 7.0)))
    return domain, [measured(b, rng.integers(-99, 99, len(v)), v) for b, v in taken]


@pytest.mark.parametrize("measures", [False, True], ids=["counts", "measures"])
@pytest.mark.parametrize("way", WAYS)
def test_estimates_equal_the_pseudo_inverse_over_all_cells(way, measures, monkeypatch):
    for name, limit in WAYS[way].items():
        monkeypatch.setattr(second, name, limit)
    rng = np.random.default_rng(15)
    finite = infinite = 0
    for _ in range(20):
        domain, taken = random_case(rng, measures)
        reference = Reference(domain)
        reference._small &= way == "long doubles"
        for each in taken:
            reference.observe(each)
        queries = [random_query(rng, domain) * Fraction(3, 2) for _ in range(3)]
        found = reference.estimate(queries)
        if found is None and way == "iteration":
            continue  # It converges too slowly to decide.
        assert found is not None
        assert reference.errors(queries) == pytest.approx([math.sqrt(v) for _, v in found], rel=1e-9)
        for query, (value, variance) in zip(queries, found, strict=True):
            wanted = oracle(taken, query)
            assert variance == pytest.approx(wanted[1], rel=1e-6)
            infinite += math.isinf(variance)
            finite += math.isfinite(variance)
            if math.isfinite(variance):
                assert value == pytest.approx(wanted[0], rel=1e-6, abs=1e-5)
    assert finite > 10
    assert infinite > 2


def wide(columns: int, size: int = 10) -> Domain:
    return Domain([Integer(f"x{at}", 0, size - 1) for at in range(columns)])


def test_a_domain_of_any_width_is_checked_by_cells_that_are_told_apart():
    domain = wide(40)
    chosen = MarginalSeed.of(domain, combinations(range(40), 2))
    values = np.ones(len(chosen), dtype=np.int64)
    reference = Reference(domain)
    reference.observe(measured(chosen, values, np.full(len(values), 100.0)))
    young = LinearQuery.of(domain, x0=range(3), x1=range(5))
    three = LinearQuery.of(domain, x0=range(3), x1=range(5), x2=[1])
    found = reference.estimate([young, three])
    assert found is not None
    [(value, variance), (_, infinite)] = found
    # The table of x0 and x1 sums these 15 rows; all others know of the total, and of x0 and x1 alone.
    assert math.isinf(infinite)
    assert variance < 15 * 100
    assert value == pytest.approx(15)
    assert MergedCells(domain, [young, three]).count == 8
    reference.observe(measured(Block(domain, [three]), np.array([7]), np.array([9.0])))
    assert np.array(reference.estimate([three])) == pytest.approx(np.array([[7, 9]]))


def test_many_columns_are_checked_by_rows():
    domain = wide(40)
    chosen = MarginalSeed.of(domain, combinations(range(40), 1))
    reference = Reference(domain)
    values = np.ones(len(chosen), dtype=np.int64)
    reference.observe(measured(chosen, values, np.full(len(values), 100.0)))
    bought = [LinearQuery.of(domain, **{f"x{at}": [0], f"x{at + 1}": [0]}) for at in range(39)]
    reference.observe(measured(Block(domain, bought), np.arange(39), np.full(39, 4.0)))
    assert MergedCells(domain, bought).count == 2**40
    either = bought[3] + bought[4] * 2
    found = reference.estimate([either, LinearQuery.of(domain, x0=[0], x2=[0])])
    assert found is not None
    assert np.array(found[0]) == pytest.approx(np.array([11, 20]))
    assert math.isinf(found[1][1])


def test_rows_that_the_digits_do_not_tell_apart_are_not_checked(monkeypatch):
    monkeypatch.setattr(kriging, "DIGITS", 64)
    domain = wide(40)
    reference = Reference(domain)
    bought = [LinearQuery.of(domain, **{f"x{at}": [0], f"x{at + 1}": [0]}) for at in range(20)]
    rows = [*bought, *bought]
    reference.observe(measured(Block(domain, rows), np.zeros(len(rows)), np.full(len(rows), 4.0)))
    assert reference.estimate([bought[0]]) is None


def test_what_is_too_large_for_every_way_is_not_checked(monkeypatch):
    monkeypatch.setattr(second, "MOST_ROWS", 3)
    domain = wide(40)
    reference = Reference(domain)
    bought = [LinearQuery.of(domain, **{f"x{at}": [0], f"x{at + 1}": [0]}) for at in range(39)]
    reference.observe(measured(Block(domain, bought), np.arange(39), np.full(39, 4.0)))
    assert reference.estimate([bought[0]]) is None


@pytest.mark.parametrize("name", ["identity", "total"])
def test_strategies_that_are_marginals_are_recognised(name):
    domain = wide(3, 4)
    strategy = seed.NAMED[name](domain)
    values = np.arange(len(strategy))
    [found] = marginals_of(measured(strategy, values, np.full(len(values), 2.0))) or []
    assert found.levels == ((0, 1, 2) if name == "identity" else ())
    assert found.table.ravel().tolist() == values.tolist()
    assert marginals_of(measured(seed.h2(domain), np.zeros(0), np.zeros(0))) is None


def test_a_hostile_share_of_three_in_a_billion_is_open():
    """Five equalities over 50 values each: only an exact decision sees what is left open."""
    domain = wide(5, 50)
    reference = Reference(domain)
    chosen = MarginalSeed.of(domain, combinations(range(5), 2))
    values = np.zeros(len(chosen), dtype=np.int64)
    reference.observe(measured(chosen, values, np.full(len(values), 1.0)))
    equal = LinearQuery.of(domain, x0=[1], x1=[1], x2=[1], x3=[1], x4=[1])
    assert reference.errors([~equal]) == [math.inf]
    reference.observe(measured(Block(domain, [equal]), np.array([3]), np.array([4.0])))
    [error] = reference.errors([~equal]) or [0.0]
    assert math.isfinite(error)
