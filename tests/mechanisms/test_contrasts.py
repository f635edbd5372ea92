"""Reconstruction beside seeds of marginals: what is determined, how well, and at which price."""

from __future__ import annotations

import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from functools import reduce
from itertools import combinations
from operator import and_

import numpy as np
import pytest

from sharewell import Domain, Integer, LinearQuery
from sharewell.mechanisms import exact_products, open_parts
from sharewell.mechanisms.contrasts import BlockFactor, Contrasts
from sharewell.mechanisms.marginal_prior import MarginalPrior
from sharewell.mechanisms.marginal_seed import MarginalSeed
from sharewell.mechanisms.measurements import MeasurementBatch
from sharewell.mechanisms.open_parts import ModularInverse, OpenParts
from sharewell.mechanisms.reconstruction import Reconstruction
from sharewell.query.block import ParallelBlock
from tests.mechanisms.measurements import line_of, random_query
from tests.mechanisms.oracle import ExactMeasured
from tests.mechanisms.test_hostile_weights import NOISE, hostile_rows, primitive, queries_over
from tests.mechanisms.test_marginal_seed import MeasuredWorld, WithVectors

RANDOM_PRIMES = exact_products.random_primes


def one(query: LinearQuery, value: float = 0.0, variance: float = 1.0) -> MeasurementBatch:
    return MeasurementBatch((query,), np.array([value]), np.array([variance]))


def check(domain: Domain, rng: np.random.Generator, *, hostile: bool, batched: bool = False) -> int:
    """Measure some marginals and rows, and compare with exact fractions."""
    world, exact = MeasuredWorld(domain, rng), ExactMeasured(domain.size)
    for row, value, variance in zip(world.rows, world.values, world.noise, strict=True):
        exact.add([int(weight) for weight in row], value, variance)
    count = int(rng.integers(0, 12))
    vectors = [random_query(domain, rng).to_vector() for _ in range(count)]
    rows = hostile_rows(domain.size, rng) if hostile and domain.size > 2 else vectors
    queries = [primitive(domain, row) for row in rows]
    noise = np.array([NOISE * float(query.max_abs) ** 2 for query in queries])
    truth = np.array([float(query.dot(world.table)) for query in queries])
    values = truth + np.rint(rng.normal(0, 1, len(queries)) * np.sqrt(noise))
    solver = Contrasts(world.prior)
    batch = MeasurementBatch(tuple(queries), values, noise)
    if batched and queries:
        solver.observe(batch)
    for query, value, variance in zip(queries, values.tolist(), noise.tolist(), strict=True):
        if not batched:
            solver.observe(one(query, value, variance))
        exact.add(query.to_vector().tolist(), value, variance)
    asked = [primitive(domain, query) for query in queries_over(domain.size, rows, rng)]
    for query, value, variance in zip(asked, *solver.estimate(asked), strict=True):
        expected = exact.estimate(query.to_vector().tolist())
        assert math.isinf(variance) == (expected is None), query
        if expected is None:
            assert math.isnan(value)
        else:
            assert variance == pytest.approx(float(expected[1]), rel=1e-9)
            error = abs(Fraction(value) - expected[0])
            assert error <= 1e-9 * (abs(float(expected[0])) + math.sqrt(expected[1]))
    return len(asked)


@pytest.mark.slow
@pytest.mark.parametrize("hostile", [False, True])
@pytest.mark.parametrize("batched", [False, True])
def test_answers_beside_open_marginals_are_those_of_exact_fractions(hostile, batched):
    rng = np.random.default_rng(2 * hostile + batched)
    for _ in range(15):
        sizes = rng.integers(1, 4, rng.integers(1, 4)).tolist()
        if math.prod(sizes) <= 12:
            check(line_of(*sizes), rng, hostile=hostile, batched=batched)


def test_answers_over_several_data_vectors_are_those_of_exact_fractions():
    rng = np.random.default_rng(8)
    for _ in range(6):
        domain = WithVectors([Integer("a", 0, 1), Integer("b", 0, int(rng.integers(0, 2)))])
        check(domain, rng, hostile=bool(rng.integers(2)))


# What is determined


def wide() -> Domain:
    """A domain of more than 10^30 cells."""
    return Domain([Integer(f"a{at}", 0, 49) for at in range(18)])


def five(domain: Domain, *at: int) -> LinearQuery:
    return reduce(and_, (LinearQuery.of(domain, **{f"a{i}": [cell]}) for i, cell in enumerate(at)))


def test_not_all_of_five_equalities_is_undetermined_until_it_is_paid_for():
    domain = wide()
    prior = MarginalPrior(domain)
    for left, right in combinations(range(5), 2):
        prior = prior.with_marginal(1 << left | 1 << right, 0, np.zeros(50**2), 100.0)
    solver = Contrasts(prior)
    cell = five(domain, 1, 2, 3, 4, 5)
    assert np.isinf(solver.estimate([~cell, cell])[1]).all()
    assert np.isfinite(solver.estimate([five(domain, 1, 2), LinearQuery.all(domain)])[1]).all()
    quote = solver.variances_after([~cell, cell], one(cell, 0.0, 7.0))
    assert quote[1] == pytest.approx(7, rel=1e-9)
    assert math.isfinite(quote[0])
    solver.observe(one(cell, 20.0, 7.0))
    values, variances = solver.estimate([~cell, cell, five(domain, 1, 2, 3, 4, 6)])
    assert values[:2] == pytest.approx([-20, 20], abs=1e-6)
    assert variances[:2] == pytest.approx(quote)
    assert math.isinf(variances[2])


def test_all_other_cells_together_determine_the_last_one():
    """A sum of 49 bought rows and a seed row: coefficients read off the residues."""
    domain = wide()
    prior = MarginalPrior(domain).with_marginal(0b01, 0, np.full(50, 100.0), 4.0)
    solver = Contrasts(prior)
    rows = [LinearQuery.of(domain, a0=[3], a1=[at]) for at in range(49)]
    last = LinearQuery.of(domain, a0=[3], a1=[49])
    for at, row in enumerate(rows):
        assert math.isinf(solver.estimate([last])[1].item())
        solver.observe(one(row, 2.0, 1.0))
        assert solver.estimate([row])[0].item() == pytest.approx(2)
        assert solver._parts is not None
        assert len(solver._parts.basis) == at + 1
    [value], [variance] = solver.estimate([last])
    assert (value, variance) == pytest.approx((100 - 49 * 2, 4 + 49))


def small_primes(
    number: int, shape: Sequence[int], least: int = exact_products.LEAST_PRIME
) -> list[int]:
    """Two primes that divide many numbers, and as many others as are wanted."""
    small = [p for p in (5, 7, 11) if all(n % p for n in shape)][:2]
    return (
        [*small, *RANDOM_PRIMES(number - 2, shape)]
        if number == 2 + open_parts.CHECKS
        else (RANDOM_PRIMES(number, shape, least))
    )


def test_unlucky_primes_are_replaced_and_change_no_answer(monkeypatch):
    rng, drawn = np.random.default_rng(12), []

    def unlucky(number, *arguments):
        drawn.append(number == 2 + open_parts.CHECKS)
        return (small_primes if sum(drawn) % 2 else RANDOM_PRIMES)(number, *arguments)

    monkeypatch.setattr(open_parts, "random_primes", unlucky)
    for at in range(8):
        check(line_of(int(rng.integers(2, 5)), 2), rng, hostile=at % 2 == 0)
    assert sum(drawn) > 8


def test_what_two_primes_claim_wrongly_is_refuted(monkeypatch):
    """Modulo 5 and 7 every thirty-fifth open part is 0: the checks find all that are not."""
    monkeypatch.setattr(open_parts, "random_primes", small_primes)
    rng, domain = np.random.default_rng(4), line_of(4)
    prior = MarginalPrior(domain).with_marginal(0, 0, np.zeros(1), 1.0)
    parts, exact = OpenParts(prior), ExactMeasured(4)
    exact.add([1, 1, 1, 1], 0.0, 1.0)
    exact.add([1, 0, 0, 0], 0.0, 1.0)
    assert parts.append([LinearQuery.cell(domain, 0)]) == [None]
    queries = [primitive(domain, rng.integers(-9, 10, 4)) for _ in range(600)]
    queries += [primitive(domain, np.append(rng.integers(-9, 10, 1), [3, 3, 3])) for _ in range(20)]
    determined = [exact.estimate(query.to_vector().tolist()) is not None for query in queries]
    claimed = np.ones(len(queries), dtype=bool)
    for which in (0, 1):
        claimed &= parts._residues(queries, which).left == 0
    assert claimed[determined].all()
    assert claimed.sum() > sum(determined) + 5
    assert [found is not None for found in parts.combinations(queries)] == determined


def test_an_inverse_modulo_a_prime_follows_rows_that_come_and_are_exchanged(monkeypatch):
    monkeypatch.setattr(open_parts, "MOST_PENDING", 5)
    rng, prime = np.random.default_rng(5), 2**26 - 5
    rows = rng.integers(0, prime, (23, 30)).astype(object)
    inverse = ModularInverse(prime)
    for at in range(20):
        gram = rows[: at + 1] @ rows[: at + 1].T % prime
        solution = inverse.solve(gram[:at, [at]].astype(np.int64))[:, 0]
        left = (int(gram[at, at]) - int((gram[at, :at] * solution).sum())) % prime
        inverse = inverse.extended(solution, left)
    members = rows[:20].copy()
    for place in (3, 19, 0):
        mixed = rng.integers(1, prime, 20)
        inverse = inverse.exchanged(place, mixed)
        members[place] = mixed.astype(object) @ members % prime
    right = rng.integers(0, prime, (20, 3))
    found = inverse.solve(right).astype(object)
    assert ((members @ members.T % prime) @ found % prime == right).all()


def test_a_factor_that_grew_by_blocks_solves_as_the_whole_does(monkeypatch):
    monkeypatch.setattr("sharewell.mechanisms.contrasts.LARGEST_BLOCK", 8)
    monkeypatch.setattr("sharewell.mechanisms.contrasts.COLUMNS", 3)
    rng = np.random.default_rng(1)
    root = rng.normal(size=(40, 60))
    matrix = root @ root.T
    factor, sizes = BlockFactor(), [1, 1, 1, 5, 1, 9, 1, 1, 20]
    for size in sizes:
        known = factor.size
        between = factor.solve(matrix[:known, known : known + size])
        corner = matrix[known : known + size, known : known + size] - between.T @ between
        factor = factor.extended(between, np.linalg.cholesky(corner).astype(np.float64))
    assert factor.size == sum(sizes)
    whole = np.linalg.cholesky(matrix)
    right = rng.normal(size=(40, 7))
    assert factor.solve(right) == pytest.approx(np.linalg.solve(whole, right))
    assert factor.solve(right[:, 0]) == pytest.approx(np.linalg.solve(whole, right[:, 0]))
    assert len(factor._blocks) < len(sizes)


def test_many_threads_read_one_snapshot_while_rows_come_in():
    domain = line_of(30)
    rng = np.random.default_rng(3)
    solver = Contrasts(MarginalPrior(domain).with_marginal(0, 0, np.array([900.0]), 9.0))
    for _ in range(28):
        weights = rng.integers(0, 2**31, 30)
        query = primitive(domain, weights)
        solver.observe(one(query, 1.0, float(query.max_abs) ** 2))
    asked = [random_query(domain, rng) for _ in range(12)]
    frozen, alone = solver.snapshot(), solver.snapshot().estimate(asked)
    with ThreadPoolExecutor(4) as pool:
        jobs = [pool.submit(frozen.estimate, asked) for _ in range(8)]
        for at in range(4):
            solver.observe(one(LinearQuery.cell(domain, at), 30.0, 2.0))
        found = [job.result() for job in jobs]
    assert all(np.array_equal(each, alone, equal_nan=True) for each in found)
    assert np.isfinite(solver.estimate(asked)[1]).sum() > np.isfinite(alone[1]).sum()
    quote = solver.variances_after(asked, one(LinearQuery.cell(domain, 9)))
    assert np.array_equal(quote, solver.variances_after(asked, one(LinearQuery.cell(domain, 9))))


def test_an_open_part_of_zero_is_determined_though_no_product_is():
    """A query whose products are open, and cancel each other's open parts."""
    domain = line_of(3, 3)
    prior = MarginalPrior(domain)
    for mask in (0b01, 0b10):
        prior = prior.with_marginal(mask, 0, np.zeros(3), 1.0)
    both = LinearQuery.of(domain, a0=[0]) + LinearQuery.of(domain, a1=[1])
    assert not prior.determines(both)
    [found] = OpenParts(prior).combinations([both.primitive])
    assert found is not None
    assert len(found.rows) == 0


# Completed marginals


def by_cells(domain: Domain, *levels: int) -> ParallelBlock:
    return ParallelBlock.group_by(
        LinearQuery.all(domain), {level: range(domain.shape[level]) for level in levels}
    )


@pytest.mark.parametrize("sizes", [(4, 3, 2), (3, 2, 4)])
def test_a_marginal_whose_last_row_is_bought_becomes_part_of_the_seed(sizes):
    """Row by row and in blocks; estimates and variances are those of the rows."""
    domain = line_of(*sizes)
    rng = np.random.default_rng(sizes[0])
    marginals = MarginalSeed.of(domain, [(0,), (2,)], weights=[1, 3])
    known, rows = Reconstruction(marginals), Reconstruction(marginals)
    values = rng.normal(50, 9, len(marginals))
    noise = np.repeat([90.0, 10.0], marginals.sizes)
    for each in (known, rows):
        each.observe_seed(values, noise)
        assert each.measurements.seed_row(sizes[0] + 1) == pytest.approx((values[sizes[0] + 1], 10))
    rows.measurements.completed_by = lambda batch: set()  # type: ignore[method-assign]
    block = by_cells(domain, 0, 1)
    others = [random_query(domain, rng) for _ in range(6)]
    again = sum(query in list(block) for query in others)
    asked = [*block, *by_cells(domain, 1, 2), *others, *(random_query(domain, rng) for _ in range(10))]
    batches = [others[:3], block[:1], block[1:4], others[3:], block[4:]]
    for at, chosen in enumerate(batches):
        chosen = list(chosen)
        noise = np.full(len(chosen), 20.0)
        values = rng.normal(20, 4, len(chosen))
        promised = known.variances_after(asked, chosen, noise)
        for each in (known, rows):
            each.observe(chosen, values, noise)
        found, expected = known.estimate(asked), rows.estimate(asked)
        assert np.array_equal(np.isinf(found[1]), np.isinf(expected[1]))
        np.testing.assert_allclose(found[1], expected[1], rtol=1e-9)
        np.testing.assert_allclose(promised, expected[1], rtol=1e-9)
        np.testing.assert_allclose(found[0], expected[0], rtol=1e-9, atol=1e-7)
        left = sum(len(batch.rows) for batch in known.measurements.batches)
        assert left == (6 if at == 4 else len(known)), "the rows are gone once the last was bought"
    assert bool(again) == (sizes == (3, 2, 4)), "a row that was measured twice stays one once"
    assert len(known) == len(rows) == 6 + len(block)
    frozen = known.snapshot()
    assert np.array_equal(frozen.estimate(asked), known.estimate(asked), equal_nan=True)


def test_rows_with_different_noise_stay_rows():
    domain = line_of(3, 2)
    known = Reconstruction(MarginalSeed.of(domain, [()]))
    known.observe_seed(np.array([10.0]), 1.0)
    rows = list(by_cells(domain, 0))
    known.observe(rows, np.zeros(3), np.array([2.0, 2.0, 3.0]))
    assert len(known.measurements.batches) == 1
    assert known.measurements.marginals is not None
    assert known.measurements.marginals.measured_row(0b01, 0, 0) is None


def test_a_bought_marginal_of_a_wide_domain_answers_for_next_to_nothing():
    """Thousands of rows in closed form: the solver has no rows at all."""
    domain = wide()
    known = Reconstruction(MarginalSeed.of(domain, [("a0",), ("a1",)]))
    table = np.arange(2500.0).reshape(50, 50)
    known.observe_seed(np.concatenate([table.sum(axis=1), table.sum(axis=0)]), 50.0)
    block = by_cells(domain, 0, 1)
    known.observe(list(block), table.ravel(), np.full(2500, 8.0))
    assert not known.measurements.batches
    value, variance = (part.item() for part in known.estimate([block[51]]))
    assert value == pytest.approx(51)
    assert 0 < variance < 8
    three = LinearQuery.of(domain, a0=[1], a1=[1], a2=[1])
    assert math.isinf(known.estimate([three])[1].item())
    assert known.variances_after([three], [three], np.array([8.0])).item() == pytest.approx(8)
