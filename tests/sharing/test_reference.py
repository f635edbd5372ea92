"""The second implementation against exact rationals, hostile weights included."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharewell import Domain, Integer, LinearQuery
from sharewell.mechanisms import seed
from sharewell.privacy.measurement import Measurement
from sharewell.query.block import Block, Measurable
from sharewell.sharing import reference as second
from sharewell.sharing.reference import AGREEMENT, Reference, Sample

Rows = list[tuple[list[int], int, float]]


def line(cells: int) -> Domain:
    return Domain([Integer("x", 0, cells - 1)])


def measurement(block: Measurable, values: list[int], variance: float) -> Measurement:
    spread = np.full(len(values), variance)
    return Measurement(block, np.array(values), spread, Fraction(1), {"ann": Fraction(1)}, 0)


def observed(domain: Domain, rows: Rows) -> Reference:
    reference = Reference(domain)
    for weights, value, variance in rows:
        # A row is measured as it is stored: without its common factor.
        block = Block(domain, [LinearQuery.from_vector(domain, weights)])
        reference.observe(measurement(block, [value], variance))
    return reference


def exact(rows: Rows, query: list[int]) -> tuple[float, float]:
    """The least-squares estimate and its variance in rationals, by Gauss-Jordan."""
    size = len(query)
    table = [[Fraction(0)] * size + [Fraction(q), Fraction(0)] for q in query]
    for weights, answer, noise in rows:
        for i in range(size):
            for j in range(size):
                table[i][j] += Fraction(weights[i] * weights[j]) / Fraction(noise)
            table[i][size + 1] += Fraction(weights[i] * answer) / Fraction(noise)
    pivots: list[int] = []
    for column in range(size):
        at = len(pivots)
        found = next((r for r in range(at, size) if table[r][column]), None)
        if found is None:
            continue
        table[at], table[found] = table[found], table[at]
        table[at] = [entry / table[at][column] for entry in table[at]]
        for r in range(size):
            if r != at and table[r][column]:
                factor = table[r][column]
                table[r] = [a - factor * b for a, b in zip(table[r], table[at], strict=True)]
        pivots.append(column)
    if any(row[size] for row in table[len(pivots) :]):
        return 0.0, math.inf
    solved = {column: table[at] for at, column in enumerate(pivots)}
    value, variance = (
        float(sum((query[c] * row[at] for c, row in solved.items()), Fraction(0)))
        for at in (size + 1, size)
    )
    return value, variance


def primitive(weights: list[int]) -> list[int]:
    return [weight // math.gcd(*weights) for weight in weights]


WEIGHTS = st.sampled_from([0, 0, 1, 1, 1, 2, -1, 1000, 10**6])
ROW = st.lists(WEIGHTS, min_size=5, max_size=5).filter(any).map(primitive)
MEASURED = st.tuples(ROW, st.integers(-1000, 1000), st.sampled_from([0.5, 200.0, 1e6]))


@given(st.lists(MEASURED, min_size=1, max_size=8), ROW)
def test_estimates_and_variances_are_those_of_exact_rationals(rows, query):
    asked = LinearQuery.from_vector(line(5), query)
    found = observed(line(5), rows).estimate([asked])
    assert found is not None
    value, variance = exact(rows, query)
    assert found[0][1] == pytest.approx(variance, rel=1e-9)
    if math.isfinite(variance):
        assert abs(found[0][0] - value) <= 1e-9 * (math.sqrt(variance) + abs(value))


@pytest.mark.parametrize("weight", [10**3, 10**6, 2**31 - 1])
def test_a_chain_of_hostile_weights_is_solved_exactly(weight):
    """Each row leaves the next cell with about the square of the weight times the variance."""
    size = 6
    rows: Rows = [([1] * size, 2021, 200.0)]
    for at in range(size - 1):
        row = [0] * size
        row[at], row[at + 1] = weight, 1
        rows.append((row, 7, 200.0))
    for query in ([1] * size, [1, *[0] * (size - 1)], [*[0] * (size - 1), 1]):
        [(value, variance)] = observed(line(size), rows).estimate(
            [LinearQuery.from_vector(line(size), query)]
        ) or [(0.0, 0.0)]
        wanted = exact(rows, query)
        assert variance == pytest.approx(wanted[1], rel=1e-9)
        assert value == pytest.approx(wanted[0], rel=1e-9)
    del rows[1]
    [(_, variance)] = observed(line(size), rows).estimate([LinearQuery.cell(line(size), 0)]) or [(0, 0)]
    assert variance == exact(rows, [1, *[0] * (size - 1)])[1]


@pytest.mark.parametrize("name", ["identity", "h2", "prefix"])
def test_long_doubles_decimals_and_iteration_agree(name, monkeypatch):
    domain = line(24)
    strategy = seed.NAMED[name](domain)
    queries = [LinearQuery.of(domain, x=range(at, 24 - at)) * 3 for at in range(0, 12, 3)]
    found = []
    for most in ((256, 128), (0, 128), (0, 0)):
        monkeypatch.setattr(second, "MOST_CELLS", most[0])
        monkeypatch.setattr(second, "MOST_DECIMAL_CELLS", most[1])
        reference = Reference(domain)
        reference.observe(measurement(strategy, list(range(len(strategy))), 50.0))
        reference.observe(measurement(Block(domain, [LinearQuery.of(domain, x=range(7))]), [9], 2.0))
        found.append(np.array(reference.estimate(queries)))
    assert found[0] == pytest.approx(found[1], rel=1e-12)
    assert found[0] == pytest.approx(found[2], rel=AGREEMENT / 10)


def test_what_nothing_determines_is_infinite_in_every_way(monkeypatch):
    domain = line(8)
    asked = [LinearQuery.cell(domain, 0), LinearQuery.all(domain), LinearQuery.zero(domain)]
    for most in ((256, 128), (0, 128), (0, 0)):
        monkeypatch.setattr(second, "MOST_CELLS", most[0])
        monkeypatch.setattr(second, "MOST_DECIMAL_CELLS", most[1])
        reference = Reference(domain)
        reference.observe(measurement(seed.total(domain), [100], 50.0))
        assert reference.errors(asked) == [math.inf, pytest.approx(math.sqrt(50)), 0.0]


def test_before_anything_is_measured_nothing_is_known():
    assert Reference(line(4)).errors([LinearQuery.all(line(4))]) == [math.inf]


def test_a_sample_takes_everything_while_it_is_cheap_and_ever_less_afterwards():
    sample = Sample(allowance=10.0)
    chosen = 0
    for at in range(4000):
        taken = sample.chooses()
        assert taken or at > 10, "nothing is left out before the allowance is used up"
        if taken:
            sample.count(1.0)
            chosen += 1
    # Eleven of each level: 11 + 44 + 176 + 704 + 2,816 entries are about 55 checks. The chance that all
    # of a level are missed is below (3/4)^1000.
    assert 11 < sample.checked == chosen < 200
