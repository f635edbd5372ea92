"""Weights chosen to destroy other analysts' answers, against exact fractions."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from sharewell import Budget, Curator, DataVector, Domain, Integer, LinearQuery, compile_sql
from sharewell.mechanisms import CacheReconstruct, seed
from sharewell.mechanisms.contrasts import LARGEST, Contrasts
from sharewell.mechanisms.marginal_prior import MarginalPrior
from sharewell.mechanisms.marginal_seed import MarginalSeed
from sharewell.mechanisms.measurements import MeasurementBatch
from sharewell.mechanisms.reconstruction import Reconstruction
from sharewell.privacy.ledger import MemoryLedger
from sharewell.query.block import ParallelBlock
from sharewell.service.answers import OPERATIONS_PER_SECOND
from sharewell.service.submissions import LARGE_SECONDS
from sharewell_lab.noise import SeededNoise
from tests.mechanisms.measurements import SEEDS, line_of
from tests.mechanisms.oracle import ExactMeasured, matrix_of

#: Seeds that leave something open, seeds that do not, and no seed at all.
KINDS = {
    "total": True,
    "total, unmeasured": False,
    "identity": True,
    "h2": True,
    "prefix, unmeasured": False,
}
NOISE = 200.0


def chain(cells: int, weight: int) -> list[np.ndarray]:
    """Each row determines one more cell, with about the square of the weight times the variance."""
    rows = np.zeros((cells - 1, cells), dtype=np.int64)
    for at, row in enumerate(rows):
        row[at], row[at + 1] = weight, 1
    return list(rows)


def hostile_rows(cells: int, rng: np.random.Generator) -> list[np.ndarray]:
    """A count, chains of heavy weights in any direction, and counts among them."""
    weights = [10**3, 10**4, 10**5, 10**6, int(rng.integers(2, 10**6)), 2**31]
    rows = [np.eye(cells, dtype=np.int64)[rng.integers(cells)]]
    for _ in range(rng.integers(1, 3)):
        order = rng.permutation(cells)
        rows += [row[order] for row in chain(cells, int(rng.choice(weights)))[: rng.integers(1, cells)]]
    for _ in range(rng.integers(0, 4)):
        rows.insert(int(rng.integers(len(rows) + 1)), rng.integers(0, 2, cells))
    return [row for row in rows if row.any()]


def queries_over(cells: int, rows: list[np.ndarray], rng: np.random.Generator) -> list[np.ndarray]:
    """Every cell, the total, what was measured, and combinations that almost are."""
    combined = [a * int(rng.integers(1, 4)) - b for a, b in zip(rows[1:], rows, strict=False)]
    near = [row + np.eye(cells, dtype=np.int64)[rng.integers(cells)] for row in rows]
    every = [*np.eye(cells, dtype=np.int64), np.ones(cells, dtype=np.int64), *rows, *combined, *near]
    return [query for query in every if 0 < np.abs(query).max() <= 2**31]


def primitive(domain: Domain, row: np.ndarray) -> LinearQuery:
    return LinearQuery.from_vector(domain, row).primitive


def buy_hostile_rows(
    known: Reconstruction,
    exact: ExactMeasured,
    rows: list[np.ndarray],
    table: np.ndarray,
    rng: np.random.Generator,
) -> None:
    """Measure rows one by one, each with noise for its largest weight."""
    for row in rows:
        query = primitive(known.measurements.strategy.domain, row)
        noise = NOISE * float(query.max_abs) ** 2
        value = float(query.dot(table) + round(rng.normal(0, noise**0.5)))
        known.observe([query], np.array([value]), np.array([noise]))
        exact.add(query.to_vector().tolist(), value, noise)
        variance = known.estimate([query])[1].item()
        assert 0 < variance <= noise * (1 + 1e-9), "a row just measured"


def assert_answers_are_exact(
    known: Reconstruction, exact: ExactMeasured, asked: list[LinearQuery], rel: float = 1e-9
) -> None:
    for query, value, variance in zip(asked, *known.estimate(asked), strict=True):
        expected = exact.estimate(query.to_vector().tolist())
        assert math.isinf(variance) == (expected is None), query
        if expected is not None:
            assert variance == pytest.approx(float(expected[1]), rel=rel)
            error = abs(Fraction(value) - expected[0])
            assert error <= rel * (abs(float(expected[0])) + math.sqrt(expected[1]))


def assert_quote_is_exact(
    known: Reconstruction, exact: ExactMeasured, asked: list[LinearQuery], rng: np.random.Generator
) -> None:
    """What a row would change, whatever its noise: far below its weights, too."""
    row, noise = asked[rng.integers(len(asked))], float(10 ** rng.uniform(0, 4))
    quoted = known.variances_after(asked, [row], np.array([noise]))
    exact.add(row.to_vector().tolist(), 0.0, noise)
    for query, variance in zip(asked, quoted, strict=True):
        expected = exact.estimate(query.to_vector().tolist())
        assert math.isinf(variance) == (expected is None), query
        if expected is not None:
            assert variance == pytest.approx(float(expected[1]), rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_answers_after_hostile_chains_are_those_of_exact_fractions(kind):
    """In all kinds together more than 10,000 answers; the decision what is determined is exact too."""
    rng = np.random.default_rng(list(KINDS).index(kind))
    answers = 0
    while answers < 2_100:
        cells = int(rng.integers(3, 8))
        domain = line_of(cells)
        strategy = SEEDS[kind.split(",")[0]](domain)
        known, exact = Reconstruction(strategy), ExactMeasured(cells)
        table = rng.integers(0, 3000, cells)
        if KINDS[kind]:
            values = strategy.answers(table) + rng.integers(-40, 40, len(strategy))
            known.observe_seed(values, 512.0)
            for row, value in zip(matrix_of(strategy).tolist(), values.tolist(), strict=True):
                exact.add(row, value, 512.0)
        rows = hostile_rows(cells, rng)
        buy_hostile_rows(known, exact, rows, table, rng)
        asked = [primitive(domain, query) for query in queries_over(cells, rows, rng)]
        assert_answers_are_exact(known, exact, asked)
        assert_quote_is_exact(known, exact, asked, rng)
        answers += len(asked)


@pytest.mark.slow
@pytest.mark.parametrize("sets", [[("a",)], [("a",), ("b",)], [()], [("b",), ()]], ids=str)
def test_answers_beside_vague_tables_are_those_of_exact_fractions(sets):
    """Hostile chains beside seeds of tables, of variances from 10^2 to 10^13."""
    rng = np.random.default_rng(len(str(sets)))
    for magnitude in (2, 7, 9, 13):
        domain = Domain([Integer("a", 0, 1), Integer("b", 0, 2)])
        known, exact = Reconstruction(MarginalSeed.of(domain, sets)), ExactMeasured(domain.size)
        cells = marginal_cells(domain, sets)
        variance = 10.0**magnitude
        values = np.rint(rng.normal(100, variance**0.5, len(cells)))
        known.observe_seed(values, np.full(len(cells), variance))
        for cell, value in zip(cells, values.tolist(), strict=True):
            exact.add(cell.to_vector().tolist(), value, variance)
        rows = hostile_rows(domain.size, rng)
        buy_hostile_rows(known, exact, rows, rng.integers(0, 3000, domain.size), rng)
        asked = [primitive(domain, query) for query in queries_over(domain.size, rows, rng)]
        assert_answers_are_exact(known, exact, asked, rel=1e-7)
        assert_quote_is_exact(known, exact, asked, rng)


def marginal_cells(domain: Domain, sets: list[tuple[str, ...]]) -> list[LinearQuery]:
    """The rows of some marginals."""
    found = []
    for names in sets:
        groups = {level: range(domain.shape[level]) for level in map(domain.index, names)}
        found += list(ParallelBlock.group_by(LinearQuery.all(domain), groups))
    return found


@pytest.mark.parametrize("weight", [10**3, 10**4, 10**5, 10**6])
@pytest.mark.parametrize("fraction", ["1/10", "0"])
def test_no_analyst_can_destroy_the_answers_of_another(weight, fraction):
    """Ben buys a count and a chain of sums; Ann's count is then what she has paid for."""
    domain = Domain([Integer("x", 0, 11)])
    counts = np.array([120, 7, 2021, 45, 310, 88, 0, 1, 640, 33, 95, 12])
    ledger = MemoryLedger()

    def started() -> CacheReconstruct:
        curator = Curator(
            DataVector(domain, counts),
            Budget.pure("10"),
            {"ann": "2", "ben": "8"},
            noise=SeededNoise(weight),
            ledger=ledger,
        )
        options = {"seed_fraction": fraction, "query_budget": "1/10"}
        return CacheReconstruct(curator, seed=seed.total(domain), **options)

    def asked(mechanism: CacheReconstruct, sql: str, analyst: str):
        [block] = compile_sql(sql, domain).blocks
        [answer] = mechanism.ask(block, analyst)
        return answer

    mechanism = started()
    asked(mechanism, "SELECT COUNT(*) FROM people WHERE x = 0", "ben")
    for at in range(8):
        case = f"CASE WHEN x = {at} THEN {weight} WHEN x = {at + 1} THEN 1 ELSE 0 END"
        asked(mechanism, f"SELECT SUM({case}) FROM people", "ben")
    for cell in (2, 5, 8):
        answer = asked(mechanism, f"SELECT COUNT(*) FROM people WHERE x = {cell}", "ann")
        assert answer.source == "measured"
        assert 0 < answer.standard_error <= math.sqrt(200) * (1 + 1e-9)
        # Seven standard errors of Laplace noise: the noise is seeded, so this does not vary.
        assert abs(answer.value - counts[cell]) < 7 * math.sqrt(200)
    again = started()
    for cell in range(12):
        query = LinearQuery.cell(domain, cell)
        assert again.ask(query, "ann", pay=False) == mechanism.ask(query, "ann", pay=False)


def test_rows_far_more_precise_than_the_seed_are_answered_exactly():
    """With a seed of next to no budget a covariance in doubles is worth nothing."""
    for cells in (40, 300):
        domain = line_of(cells)
        known = Reconstruction(seed.identity(domain))
        known.observe_seed(np.zeros(cells), 1e19)
        rows = [LinearQuery.of(domain, a0=range(at, at + 3)) for at in range(12)]
        for at, row in enumerate(rows):
            known.observe([row], np.array([100.0 + at]), np.array([2.0]))
            value, variance = (part.item() for part in known.estimate([row]))
            assert 0 < variance <= 2 * (1 + 1e-9)
            assert value == pytest.approx(100 + at, abs=4)
        promised = known.variances_after([rows[0] + rows[3]], [rows[0] + rows[3]], np.array([2.0]))
        assert promised.item() == pytest.approx(1 / (1 / 2 + 1 / 4), rel=1e-9)


@pytest.mark.parametrize(("few_cells", "seed_rows"), [(256, 512), (256, 0), (0, 0)])
@pytest.mark.parametrize("kind", ["identity", "h2"])
@pytest.mark.parametrize("variance", [1e6, 1.9e8, 2.1e8, 1e12, 1e18, 1e22])
def test_a_seed_of_any_precision_spoils_no_other_answer(
    variance, kind, few_cells, seed_rows, monkeypatch
):
    """Sums and differences of measured rows, by way of every solver, before and after a purchase."""
    monkeypatch.setattr("sharewell.mechanisms.reconstruction.FEW_CELLS", few_cells)
    monkeypatch.setattr("sharewell.mechanisms.measurements.MOST_SEED_ROWS", seed_rows)
    rng = np.random.default_rng(int(math.log10(variance)))
    cells = 8
    domain = line_of(cells)
    strategy = SEEDS[kind](domain)
    known, exact = Reconstruction(strategy), ExactMeasured(cells)
    table = rng.integers(0, 3000, cells)
    values = strategy.answers(table) + np.round(rng.normal(0, variance**0.5, len(strategy)))
    known.observe_seed(values, variance)
    for row, value in zip(matrix_of(strategy).tolist(), values.tolist(), strict=True):
        exact.add(row, value, 1 / known.measurements.seed_precision)
    bounds = [(0, 6), (3, 7), (1, 4), (2, 6), (0, 3)]
    rows = [LinearQuery.of(domain, a0=range(low, high)) for low, high in bounds]
    pairs = [(a, b) for at, a in enumerate(rows) for b in rows[:at]]
    asked = [*rows, *((a - b).primitive for a, b in pairs), *((a + b).primitive for a, b in pairs)]
    for row in rows:
        promised = known.variances_after(asked, [row], np.array([NOISE]))
        value = float(row.dot(table) + round(rng.normal(0, NOISE**0.5)))
        known.observe([row], np.array([value]), np.array([NOISE]))
        exact.add(row.to_vector().tolist(), value, NOISE)
        for query, before, value, after in zip(asked, promised, *known.estimate(asked), strict=True):
            expected = exact.estimate(query.to_vector().tolist())
            assert expected is not None
            assert after == pytest.approx(float(expected[1]), rel=1e-6)
            assert before == pytest.approx(float(expected[1]), rel=1e-6)
            assert abs(Fraction(value) - expected[0]) <= 1e-4 * math.sqrt(expected[1])


@pytest.mark.slow
@pytest.mark.parametrize("sets", [[("a",)], [("a",), ("b",)]], ids=["one table", "two tables"])
@pytest.mark.parametrize("variance", [1e7, 1e9, 1e14, 1e16, 1e20])
@pytest.mark.parametrize("seed_rows", [512, 0], ids=["written out", "by noise"])
def test_a_seed_with_open_parts_of_any_precision_spoils_no_other_answer(
    variance, sets, seed_rows, monkeypatch
):
    """Rows within the seed's tables and beside them, their differences, and what only both determine."""
    monkeypatch.setattr("sharewell.mechanisms.measurements.MOST_SEED_ROWS", seed_rows)
    rng = np.random.default_rng(int(math.log10(variance)))
    domain = Domain([Integer("a", 0, 5), Integer("b", 0, 2)])
    known, exact = Reconstruction(MarginalSeed.of(domain, sets)), ExactMeasured(domain.size)
    cells = marginal_cells(domain, sets)
    values = np.rint(rng.normal(100, variance**0.5, len(cells)))
    known.observe_seed(values, np.full(len(cells), variance))
    for cell, value in zip(cells, values.tolist(), strict=True):
        exact.add(cell.to_vector().tolist(), value, variance)
    rows = [LinearQuery.of(domain, a=range(low, high)) for low, high in ((0, 3), (2, 5), (3, 5), (0, 5))]
    rows += [LinearQuery.of(domain, a=range(low, 6), b=[1]) for low in (0, 2)]
    pairs = [(a, b) for at, a in enumerate(rows) for b in rows[:at]]
    asked = [*rows, *cells, *((a - b).primitive for a, b in pairs), LinearQuery.all(domain)]
    for row in rows:
        promised = known.variances_after(asked, [row], np.array([2.0]))
        value = float(rng.integers(50, 150))
        known.observe([row], np.array([value]), np.array([2.0]))
        exact.add(row.to_vector().tolist(), value, 2.0)
        for query, before, value, after in zip(asked, promised, *known.estimate(asked), strict=True):
            expected = exact.estimate(query.to_vector().tolist())
            assert math.isinf(after) == math.isinf(before) == (expected is None)
            if expected is not None:
                assert after == pytest.approx(float(expected[1]), rel=1e-6)
                assert before == pytest.approx(float(expected[1]), rel=1e-6)
                # Without what 10^-8 of its precision says, an estimate is 10^-4 of its error off.
                assert abs(Fraction(value) - expected[0]) <= 1e-3 * math.sqrt(expected[1])


@pytest.mark.parametrize("variance", [1e4, 1e8, 1e10, 1e14])
@pytest.mark.parametrize("most_rows", [512, 8], ids=["few rows", "many rows"])
def test_a_table_bought_whole_keeps_no_other_analyst_from_buying(variance, most_rows, monkeypatch):
    """Added to a vague seed it would be too large to be written out; so it stays rows."""
    monkeypatch.setattr("sharewell.mechanisms.measurements.MOST_SEED_ROWS", most_rows)
    domain = Domain([Integer("a", 0, 5), Integer("b", 0, 2)])
    known, exact = Reconstruction(MarginalSeed.of(domain, [("b",)])), ExactMeasured(domain.size)
    rng = np.random.default_rng(int(math.log10(variance)))
    table = [LinearQuery.of(domain, a=[at]) for at in range(6)]
    asked = [LinearQuery.of(domain, b=[0, 2]), LinearQuery.of(domain, b=[1], a=[3])]

    seed_rows = marginal_cells(domain, [("b",)])
    values = np.rint(rng.normal(100, variance**0.5, len(seed_rows)))
    known.observe_seed(values, np.full(len(seed_rows), variance))
    batches = [
        (table, np.arange(6) * 10.0),
        ([asked[0]], np.array([90.0])),
        ([asked[1]], np.array([7.0])),
    ]
    for row, value in zip(seed_rows, values.tolist(), strict=True):
        exact.add(row.to_vector().tolist(), value, variance)
    for rows, bought in batches:
        assert known.suits(rows, np.full(len(rows), 2.0))
        known.observe(rows, bought, np.full(len(rows), 2.0))
        for row, value in zip(rows, bought.tolist(), strict=True):
            exact.add(row.to_vector().tolist(), value, 2.0)
    queries = [*asked, *table, *seed_rows, LinearQuery.all(domain)]
    for query, value, after in zip(queries, *known.estimate(queries), strict=True):
        expected = exact.estimate(query.to_vector().tolist())
        assert expected is not None
        assert after == pytest.approx(float(expected[1]), rel=1e-6)
        assert abs(Fraction(value) - expected[0]) <= 1e-3 * math.sqrt(expected[1])
    absorbed = known.measurements.seed_count == 9
    assert absorbed == (most_rows == 512 or variance == 1e4)


# Seeds of more rows than are written out


def hostile_pattern(pattern: str, weight: int, count: int) -> list[list[tuple[int, int]]]:
    """Rows as pairs of a place and a weight, each made to spoil what the others say."""
    return {
        "chain": [[(0, 1)], *([(at, weight), (at + 1, 1)] for at in range(count - 2))],
        "star": [[(0, weight), (at, 1)] for at in range(1, count - 1)],
        "near": [
            [(0, weight), (1, weight - 1)],
            [(0, weight - 1), (1, weight - 2)],
            [(0, weight), (1, weight - 1), (2, 1)],
            [(2, weight), (3, 1)],
            [(2, weight), (3, 1), (4, 1)],
        ],
    }[pattern]


def beside_many_cells(cells: int, places: list[int], variance: float) -> tuple[Any, ...]:
    """A vague seed of many cells; the exact estimates need only the cells that are weighed."""
    domain = line_of(cells)
    known, exact = Reconstruction(seed.identity(domain)), ExactMeasured(len(places))
    values = np.rint(np.random.default_rng(cells).normal(100, variance**0.5, cells))
    known.observe_seed(values, variance)
    for at, place in enumerate(places):
        unit = [int(at == other) for other in range(len(places))]
        exact.add(unit, values[place], 1 / known.measurements.seed_precision)
    return known, exact, lambda weights: np.bincount(places, weights, cells)


def beside_a_large_table(cells: int, places: list[int], variance: float) -> tuple[Any, ...]:
    """A vague table of many rows that leaves two thirds of the cells open."""
    domain = Domain([Integer("a", 0, cells - 1), Integer("b", 0, 2)])
    known, exact = Reconstruction(MarginalSeed.of(domain, [("a",)])), ExactMeasured(3 * len(places))
    values = np.rint(np.random.default_rng(cells).normal(100, variance**0.5, cells))
    known.observe_seed(values, np.full(cells, variance))
    for at, place in enumerate(places):
        exact.add([int(other // 3 == at) for other in range(3 * len(places))], values[place], variance)
    every = [3 * place + b for place in places for b in range(3)]
    return known, exact, lambda weights: np.bincount(every, weights, 3 * cells)


@pytest.mark.parametrize("pattern", ["chain", "star", "near"])
@pytest.mark.parametrize(
    ("beside", "cells"),
    [(beside_many_cells, 600), (beside_many_cells, 4096), (beside_a_large_table, 600)],
    ids=["600 cells", "4,096 cells", "a table of 600 rows"],
)
@pytest.mark.parametrize(("spread", "suited"), [(2e6, True), (3e8, True), (1e10, False), (1e14, False)])
def test_beside_a_vague_seed_of_many_rows_answers_are_exact_or_not_sold(
    spread, suited, beside, cells, pattern
):
    """Up to a spread of 10^9 doubles suffice; beyond, no row is sold, and no variance is too small."""
    count = 6
    places = [5, 599, 17, 300, 41, 2][: count if beside is beside_many_cells else 2]
    for weight in (10**3, 10**6):
        known, exact, vector = beside(cells, places, 2.0 * spread)
        rows = [
            np.array([dict(pairs).get(at, 0) for at in range(exact.cells)])
            for pairs in hostile_pattern(pattern, weight, count)
        ]
        asked = [*rows, *np.eye(exact.cells, dtype=int), np.ones(exact.cells, dtype=int)]
        domain = known.measurements.strategy.domain
        queries = [LinearQuery.from_vector(domain, vector(row).astype(np.int64)) for row in asked]
        promised, suits = np.zeros(0), True
        for at, (row, query) in enumerate(zip(rows, queries, strict=False)):
            noise = np.array([2.0 * row.max() ** 2])
            suits &= known.suits([query], noise)
            if at == len(rows) - 1:
                promised = known.variances_after(queries, [query], noise)
            known.observe([query], np.array([1000.0 * at]), noise)
            exact.add(row.tolist(), 1000.0 * at, noise.item())
        assert suits == suited
        values, variances = known.estimate(queries)
        for row, value, *both in zip(asked, values, variances, promised, strict=True):
            expected = exact.estimate(row.tolist())
            if expected is None:
                assert both == [math.inf] * 2
            elif suits:
                assert both == pytest.approx([float(expected[1])] * 2, rel=1e-6)
                assert abs(Fraction(value) - expected[0]) <= 1e-5 * math.sqrt(expected[1])
            else:
                assert min(both) >= float(expected[1]) * (1 - 1e-6)


def test_a_measured_row_has_its_own_value_where_no_solver_can_do_better(monkeypatch):
    """After a charge there is always an answer: the row's own noisy value, with its own variance."""
    domain = line_of(300)
    known = Reconstruction(seed.identity(domain))
    known.observe_seed(np.zeros(300), 1e19)
    row, other = LinearQuery.of(domain, a0=range(3)), LinearQuery.of(domain, a0=range(1, 4))
    known.observe([row], np.array([100.0]), np.array([2.0]))
    monkeypatch.setattr(
        type(known.choose().solver),
        "estimate",
        lambda self, queries: (np.zeros(2), np.array([-1.0, np.nan])),
    )
    values, variances = known.estimate([row, other])
    assert (values[0], variances[0]) == (100.0, 2.0)
    assert math.isnan(values[1])
    assert math.isinf(variances[1])


# The basis


def test_the_rows_outside_the_basis_have_small_coefficients_in_it():
    """Which keeps the least-squares problem well-conditioned, whatever the weights are."""
    rng = np.random.default_rng(9)
    exchanged = 0
    for _ in range(30):
        cells = int(rng.integers(3, 9))
        domain = line_of(cells)
        solver = Contrasts(MarginalPrior(domain))
        for row in hostile_rows(cells, rng):
            query = primitive(domain, row)
            noise = np.array([NOISE * float(query.max_abs) ** 2])
            solver.observe(MeasurementBatch((query,), np.zeros(1), noise))
        scales = np.sqrt(solver._noise)
        for number, found in solver._combinations.items():
            exchanged += bool((found.rows > number).any())
            assert (np.abs(found.factors) * scales[found.rows] <= LARGEST * scales[number]).all()
    assert exchanged, "some rows have left the basis"


def solver_over(rows: int, weight: int) -> Contrasts:
    """The solver over rows of random weights up to a limit, in general position over as many cells."""
    rng = np.random.default_rng(rows)
    domain = line_of(rows + 20)
    solver = Contrasts(MarginalPrior(domain).with_marginal(0, 0, np.zeros(1), 1.0))
    for _ in range(rows):
        row = np.zeros(domain.size, dtype=np.int64)
        row[:rows] = rng.integers(0, weight, rows, endpoint=True)
        query = LinearQuery.from_vector(domain, row).primitive
        solver.observe(MeasurementBatch((query,), np.zeros(1), np.array([float(query.max_abs) ** 2])))
    return solver


def test_sums_of_random_heavy_weights_do_not_make_other_answers_expensive():
    """Work is estimated by the number of rows alone, and stays far below that of a large question."""
    heavy, counts = solver_over(80, 2**31 - 1), solver_over(80, 1)
    assert heavy.work(1, 1) == counts.work(1, 1)
    assert 50 * heavy.work(1, 1)[0] < LARGE_SECONDS * OPERATIONS_PER_SECOND


def test_an_answer_that_depends_on_all_heavy_sums_is_that_of_exact_fractions():
    """More rows than are solved for in fractions: in doubles, with whole residuals."""
    rows = 40
    solver, rng = solver_over(rows, 2**31 - 1), np.random.default_rng(rows)
    matrix = [rng.integers(0, 2**31 - 1, rows, endpoint=True).tolist() for _ in range(rows)]
    domain = line_of(rows + 20)
    cell = LinearQuery.cell(domain, 3)
    [_], [variance] = solver.estimate([cell])
    [found] = solver._starts([cell])
    assert found is not None
    assert len(found.rows) == rows
    scales = [max(map(abs, row)) for row in matrix]
    solved = solve_exactly([list(column) for column in zip(*matrix, strict=True)], [0] * 3 + [1])
    assert [float(value) for value in solved] == pytest.approx(found.factors.tolist(), rel=1e-12)
    expected = sum((value * scale) ** 2 for value, scale in zip(solved, scales, strict=True))
    assert variance == pytest.approx(float(expected), rel=1e-9)


def solve_exactly(matrix: list[list[int]], right: list[int]) -> list[Fraction]:
    """The solution of independent equations; further right sides are 0."""
    wanted = [*right, *[0] * (len(matrix) - len(right))]
    rows = [[Fraction(v) for v in [*row, last]] for row, last in zip(matrix, wanted, strict=True)]
    for at in range(len(rows)):
        pivot = next(other for other in range(at, len(rows)) if rows[other][at])
        rows[at], rows[pivot] = rows[pivot], rows[at]
        rows[at] = [value / rows[at][at] for value in rows[at]]
        for other in range(len(rows)):
            if other != at and rows[other][at]:
                factor = rows[other][at]
                rows[other] = [a - factor * b for a, b in zip(rows[other], rows[at], strict=True)]
    return [row[-1] for row in rows]
