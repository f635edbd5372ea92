"""Reconstruction by every solver, and the strategies under it, against dense matrices."""

from __future__ import annotations

import json
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sharewell import Domain, Integer, LinearQuery
from sharewell.errors import QueryError
from sharewell.mechanisms import optimization, reconstruction, seed
from sharewell.mechanisms.contrasts import Contrasts
from sharewell.mechanisms.dense import Dense
from sharewell.mechanisms.measurements import MeasurementBatch
from sharewell.mechanisms.reconstruction import Reconstruction
from sharewell.mechanisms.sparse import Sparse, sparse
from sharewell.mechanisms.strategy import Rows, Strategy
from sharewell.query import workload
from sharewell.query.block import Block, ParallelBlock
from tests.mechanisms.measurements import (
    SEEDS,
    Case,
    cases,
    cells_and_marginals,
    line_of,
    make_case,
    random_query,
    shapes,
)
from tests.mechanisms.oracle import dense, matrix_of

#: Up to this many cells a seed can be treated as vague in a short test.
FEW = 32
#: Variances like these say as little as infinite ones: rounding decides which of the two they are.
HOPELESS = 1e9


def solvers(case: Case):
    """The solvers that suit a case: two of them need a seed that determines everything."""
    determined = bool(case.seed_values) and case.strategy.covariance is not None
    yield Contrasts.of
    if case.domain.size <= FEW:
        yield Contrasts.of_all_rows
    if determined:
        yield Dense.of
    if determined and case.strategy.is_identity:
        yield Sparse


def made(solver, measurements):
    """A solver that has seen everything."""
    known = solver(measurements)
    for batch in measurements.batches:
        known.observe(batch)
    return known


def assert_same(found, expected, *, rel=1e-8):
    """Equal values and variances: relative to their size, and infinite in the same places."""
    (values, variances), (true_values, true_variances) = found, expected
    disputed = np.isinf(variances) != np.isinf(true_variances)
    assert (np.minimum(variances, true_variances)[disputed] > HOPELESS).all()
    np.testing.assert_allclose(variances[~disputed], true_variances[~disputed], rtol=rel)
    known = ~disputed & np.isfinite(true_variances)
    # A value near 0 is compared on the scale of its standard error.
    slack = rel * (np.abs(true_values) + np.sqrt(true_variances))[known]
    assert (np.abs(values - true_values)[known] <= slack).all()


def check_every_solver(case, *, rel=1e-8):
    expected = case.measured().estimate(case.dense)
    known = case.reconstruction()
    assert_same(known.estimate(case.queries), expected, rel=max(rel, 1e-7))
    for solver in solvers(case):
        found = made(solver, known.measurements).estimate(case.queries)
        assert_same(found, expected, rel=rel)


@given(cases(most_cells=64, most_rows=40))
@settings(max_examples=100)
def test_every_solver_gives_the_values_and_variances_of_the_pseudo_inverse(case):
    check_every_solver(case)


@given(cases())
@settings(max_examples=8)
def test_every_solver_still_does_with_hundreds_of_cells_and_rows(case):
    # A precise row leaves little of what a vague seed of that size says, and that is rounded.
    check_every_solver(case, rel=1e-5)


@pytest.mark.parametrize("name", SEEDS)
@pytest.mark.parametrize("shape", [(24,), (4, 6), (2, 3, 4)], ids=str)
def test_every_seed_is_reconstructed_from_by_every_solver(name, shape):
    case = make_case(SEEDS[name](line_of(*shape)), rows=9, queries=6, number=5, times=2)
    check_every_solver(case)
    expected = case.measured().estimate(case.dense)[1]
    assert np.isinf(expected).any() == (name == "total"), "only the total leaves something open"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "tried"),
    [("identity", (Dense.of, Contrasts.of)), ("optimized", (Dense.of, Contrasts.of))],
)
def test_a_thousand_cells_and_rows_are_reconstructed_from_by_every_solver(name, tried):
    """Too many for a pseudo-inverse: here the oracle solves the normal equations."""
    strategy = SEEDS[name](line_of(8, 8, 16))
    case = make_case(strategy, rows=1100, queries=6, number=7, largest_batch=60)
    known = case.measured()
    weighted = np.array(known.rows) / np.sqrt(known.variances)[:, None]
    precision = weighted.T @ weighted
    solved = np.linalg.solve(precision, case.dense.T)
    values = solved.T @ (weighted.T @ (np.array(known.values) / np.sqrt(known.variances)))
    expected = values, np.einsum("ij,ji->i", case.dense, solved)
    measurements = case.reconstruction().measurements
    for solver in tried:
        assert_same(made(solver, measurements).estimate(case.queries), expected)


@given(cases(most_cells=48, most_rows=30), st.randoms())
@settings(max_examples=60)
def test_what_was_learnt_bit_by_bit_is_what_is_computed_at_once(case, random):
    """To the last bit: a mechanism that starts again gives the very same answers."""
    for solver in solvers(case):
        measurements = case.start().measurements
        bit_by_bit = solver(measurements)
        for batch in case.batches:
            measurements.batches.append(batch)
            bit_by_bit.observe(batch)
            if random.random() < 0.2:
                bit_by_bit.estimate(case.queries[:1])
        asked = case.queries
        at_once = made(solver, case.reconstruction().measurements).estimate(asked)
        assert np.array_equal(bit_by_bit.estimate(asked), at_once, equal_nan=True)


@given(cases(most_cells=FEW, most_rows=30, least_times=1))
@settings(max_examples=40)
def test_changing_the_solver_as_rows_come_in_changes_nothing(case):
    with pytest.MonkeyPatch.context() as patch:
        for name, limit in (("FEW_CELLS", 0), ("MOST_CELLS", case.domain.size)):
            patch.setattr(reconstruction, name, limit)
        known = case.start()
        used = {type(known.choose().solver)}
        for at, batch in enumerate(case.batches):
            known.observe(batch.rows, batch.values, batch.variances)
            found = known.estimate(case.queries[:1])
            used.add(type(known.choose().solver))
            expected = case.measured(at + 1).estimate(case.dense[:1])
            assert_same(found, expected)
        assert len(known) == sum(len(batch.rows) for batch in case.batches)
        vague = known._is_vague()  # Then one solver is right for any number of rows.
        if known.measurements.determined and not vague and len(known) > case.domain.size:
            assert used == {Contrasts, Dense}


@pytest.mark.parametrize(
    ("shape", "name", "rows", "solver"),
    [
        ((256,), "h2", 0, Dense),
        ((257,), "h2", 257, Contrasts),
        ((257,), "h2", 258, Dense),
        ((256,), "total", 0, Contrasts),
        ((4097,), "identity", 6001, Contrasts),
        ((4097,), "total", 6001, Contrasts),
    ],
)
def test_the_solver_is_chosen_by_size(shape, name, rows, solver):
    strategy = SEEDS[name](line_of(*shape))
    known = Reconstruction(strategy)
    known.observe_seed(np.zeros(len(strategy)), 1.0)
    known.measurements.count = rows
    assert type(known.choose().solver) is solver


def test_an_estimate_is_remembered_until_something_is_learned_and_not_beyond_measure(monkeypatch):
    monkeypatch.setattr(reconstruction, "MOST_REMEMBERED", 2)
    case = make_case(SEEDS["h2"](line_of(12)), rows=1, queries=4, number=11, times=1)
    known = case.start()
    found = [known.estimate([query]) for query in case.queries]
    again = [known.estimate([query]) for query in case.queries]
    assert [one is other for one, other in zip(found, again, strict=True)] == [True, True, False, False]
    with pytest.raises(ValueError, match="read-only"):
        found[0][0][:] = 0
    known.observe(case.batches[0].rows, case.batches[0].values, case.batches[0].variances)
    assert known.estimate(case.queries[:1]) is not found[0]


@pytest.mark.parametrize("shape", [(12,), (300,)], ids=str)
def test_another_measurement_of_the_seed_counts_with_its_precision(shape):
    case = make_case(SEEDS["h2"](line_of(*shape)), rows=3, queries=5, number=11, times=1)
    known = case.reconstruction()
    before = known.estimate(case.queries)
    again = case.strategy.answers(np.arange(case.domain.size))
    known.observe_seed(again, 50.0)
    oracle = case.measured()
    oracle.add(matrix_of(case.strategy), again.tolist(), [50.0] * len(case.strategy))
    assert_same(known.estimate(case.queries), oracle.estimate(case.dense))
    assert (known.estimate(case.queries)[1] < before[1]).all()


def test_thousands_of_rows_far_more_precise_than_the_seed_are_not_lost_in_rounding():
    """Against the inverse of the information matrix, sharpened in extended precision."""
    chance = np.random.default_rng(7)
    domain = line_of(20)
    rows = [LinearQuery.from_vector(domain, row) for row in chance.integers(0, 2, (2000, 20))]
    rows = [row for row in rows if not row.is_zero]
    variances = 10 ** chance.uniform(-6, -3, len(rows))
    known = Reconstruction(seed.identity(domain))
    known.observe_seed(np.zeros(20), 1.0)
    known.estimate(rows[:1])
    for row, variance in zip(rows, variances, strict=True):
        known.observe([row.primitive], np.zeros(1), np.array([variance]))
    matrix = np.array([row.primitive.to_vector() for row in rows], dtype=np.longdouble)
    information = np.eye(20, dtype=np.longdouble) + (matrix.T / variances) @ matrix
    inverse = np.linalg.inv(information.astype(np.float64)).astype(np.longdouble)
    for _ in range(10):
        inverse = inverse @ (2 * np.eye(20) - information @ inverse)
    for row, weights in zip(rows[:20], matrix, strict=False):
        expected = float(weights @ inverse @ weights)
        assert known.estimate([row.primitive])[1].item() == pytest.approx(expected, rel=1e-7)


@given(cases(most_cells=64, most_rows=20), st.integers(0, 2**32), st.integers(1, 6))
@settings(max_examples=80)
def test_variances_after_are_those_of_really_observing(case, number, count):
    rng = np.random.default_rng(number)
    rows = [random_query(case.domain, rng) for _ in range(count)]
    noise = 10 ** rng.uniform(0, 2.5, count)
    known = case.reconstruction()
    before = known.estimate(case.queries)[1]
    promised = known.variances_after(case.queries, rows, noise)
    assert np.array_equal(known.estimate(case.queries)[1], before), "asking changes nothing"
    known.observe(rows, np.zeros(count), noise)
    really = known.estimate(case.queries)[1]
    assert np.array_equal(np.isinf(promised), np.isinf(really))
    finite = np.isfinite(really)
    np.testing.assert_allclose(promised[finite], really[finite], rtol=1e-8)
    assert (really <= before * (1 + 1e-9)).all()


# Many queries at a time


def grouped(domain: Domain, *levels: int) -> ParallelBlock:
    """Every combination of the cells of some attributes."""
    return ParallelBlock.group_by(
        LinearQuery.all(domain), {level: range(domain.shape[level]) for level in levels}
    )


@pytest.mark.parametrize("name", ["identity", "h2"])
@pytest.mark.parametrize("groups", [(0,), (0, 1), (1, 2)], ids=str)
def test_a_large_question_has_the_errors_of_its_rows_one_by_one(name, groups):
    """Quotes and answers of many groups, cached ranges before and after, against a dense covariance."""
    domain = line_of(20, 10, 3)
    case = make_case(SEEDS[name](domain), rows=12, queries=4, number=3, largest_batch=2)
    known, dense_solver = case.reconstruction(), made(Dense.of, case.reconstruction().measurements)
    block = grouped(domain, *groups)
    rng = np.random.default_rng(8)
    for part in (block.take(range(0, len(block), 2)), block, grouped(domain, 0, 2)):
        noise = 10 ** rng.uniform(0, 2, len(part))
        batch = MeasurementBatch(tuple(part), rng.normal(size=len(part)), noise)
        expected = dense_solver.variances_after(block, batch)
        np.testing.assert_allclose(known.variances_after(block, part, noise), expected, rtol=1e-9)
        known.observe(part, batch.values, noise)
        dense_solver.observe(batch)
        assert_same(known.estimate(block), dense_solver.estimate(block), rel=1e-9)
        assert_same(known.estimate(case.queries), dense_solver.estimate(case.queries), rel=1e-9)
    assert (type(known.choose(len(block) + 64).solver) is Sparse) == (name == "identity")


def test_rows_with_too_many_common_cells_are_left_to_another_solver(monkeypatch):
    monkeypatch.setattr("sharewell.mechanisms.sparse.MOST_PRODUCTS", 900)
    domain = line_of(300)
    known = Reconstruction(seed.identity(domain))
    known.observe_seed(np.zeros(300), 10.0)
    cells = list(workload.identity(domain))
    pairs = [one + other for one, other in zip(cells[::2], cells[1::2], strict=True)]
    assert type(known.choose(len(pairs)).solver) is Sparse
    known.observe(pairs, np.zeros(150), np.full(150, 5.0))
    assert type(known.choose(1).solver) is Sparse
    quote = known.variances_after([LinearQuery.all(domain)], [LinearQuery.all(domain)], np.array([5.0]))
    known.observe([LinearQuery.all(domain)], np.zeros(1), np.array([5.0]))
    assert type(known.choose(len(pairs)).solver) is Contrasts
    assert known.estimate([LinearQuery.all(domain)])[1] == pytest.approx(quote)


def test_many_queries_as_a_sparse_matrix_are_those_queries():
    rng = np.random.default_rng(2)
    domain = line_of(4, 3, 5)
    queries = [
        *(random_query(domain, rng) for _ in range(60)),
        LinearQuery.all(domain) * Fraction(-3, 2),
    ]
    queries.insert(7, LinearQuery.zero(domain))
    assert np.array_equal(sparse(queries).toarray(), dense(queries))


def test_a_quote_of_thousands_of_groups_takes_memory_for_its_cells_and_not_for_pairs_of_groups():
    domain = line_of(60, 50, 2)
    known = Reconstruction(seed.identity(domain))
    known.observe_seed(np.zeros(domain.size), 50.0)
    known.observe(
        list(workload.random_ranges(domain, 20, np.random.default_rng(1))), np.zeros(20), np.ones(20)
    )
    block = grouped(domain, 0, 1)
    tracemalloc.start()
    known.variances_after(block, block, np.full(3000, 20.0))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3000**2 * 8 / 4


def test_many_threads_read_one_snapshot():
    """Also where a solver for many queries has not seen the newest rows."""
    domain = line_of(20, 10, 3)
    case = make_case(SEEDS["identity"](domain), rows=30, queries=4, number=3, largest_batch=2)
    block = grouped(domain, 0, 1)
    known = case.start()
    known.estimate(block)
    for batch in case.batches:
        known.observe(batch.rows, batch.values, batch.variances)
    frozen = known.snapshot()
    noise = np.full(len(block), 3.0)
    with ThreadPoolExecutor(8) as pool:
        quotes = list(pool.map(lambda _: frozen.variances_after(block, block, noise), range(16)))
        answers = list(pool.map(lambda _: frozen.estimate(block), range(16)))
    assert all(np.array_equal(quote, known.variances_after(block, block, noise)) for quote in quotes)
    assert all(np.array_equal(answer, known.estimate(block)) for answer in answers)


SNAPSHOTS: list[tuple[str, tuple[int, ...], type]] = [
    ("total", (30,), Contrasts),
    ("h2", (30,), Dense),
    ("h2", (300,), Contrasts),
    ("identity", (300,), Sparse),
    ("marginals(1)", (20, 15), Contrasts),
]


@pytest.mark.parametrize(("name", "shape", "kind"), SNAPSHOTS)
def test_a_snapshot_stays_as_it_is_and_the_live_one_goes_on_as_if_there_were_none(name, shape, kind):
    case = make_case(SEEDS[name](line_of(*shape)), rows=24, queries=4, number=5, largest_batch=3)
    asked = list(case.queries)
    extra = list(grouped(case.domain, 0)) if kind is Sparse else []
    known, plain = case.start(), case.start()
    if extra:
        for each in (known, plain):
            each.observe(extra, np.zeros(len(extra)), np.full(len(extra), 9.0))
    middle = len(case.batches) // 2
    for batch in case.batches[:middle]:
        known.observe(batch.rows, batch.values, batch.variances)
        plain.observe(batch.rows, batch.values, batch.variances)
    frozen = known.snapshot()
    assert type(frozen.choose().solver) is kind
    then = plain.estimate(asked)
    quote = plain.variances_after(asked, asked[:1], np.ones(1))
    for batch in case.batches[middle:]:
        known.observe(batch.rows, batch.values, batch.variances)
        plain.observe(batch.rows, batch.values, batch.variances)
        known.estimate(asked)
    assert np.array_equal(frozen.variances_after(asked, asked[:1], np.ones(1)), quote)
    assert np.array_equal(frozen.estimate(asked), then, equal_nan=True)
    assert np.array_equal(known.estimate(asked), plain.estimate(asked), equal_nan=True)
    assert len(frozen) == len(extra) + sum(len(batch.rows) for batch in case.batches[:middle])


def test_with_nothing_measured_nothing_is_determined():
    known = Reconstruction(seed.identity(line_of(5)))
    values, variances = Contrasts.of(known.measurements).estimate([LinearQuery.all(line_of(5))])
    assert np.isnan(values).all()
    assert np.isinf(variances).all()
    with pytest.raises(ValueError, match="undetermined"):
        Dense.of(Reconstruction(seed.total(line_of(5))).measurements)


def test_a_variance_of_zero_gives_the_exact_value_and_no_division_by_zero():
    domain = line_of(6)
    known = Reconstruction(seed.identity(domain))
    known.observe_seed(np.arange(6), 4.0)
    known.observe([LinearQuery.all(domain)], np.array([100.0]), np.zeros(1))
    value, variance = known.estimate([LinearQuery.all(domain)])
    assert value == pytest.approx([100])
    assert variance == pytest.approx([0], abs=1e-9)


# Strategies


@given(shapes(60), st.sampled_from(sorted(SEEDS)), st.integers(0, 2**32))
@settings(max_examples=60)
def test_a_strategy_answers_and_goes_back_as_its_dense_matrix_does(shape, name, number):
    strategy = SEEDS[name](line_of(*shape))
    matrix = matrix_of(strategy)
    rng = np.random.default_rng(number)
    counts, values = rng.integers(0, 1000, strategy.domain.size), rng.normal(size=len(matrix))
    assert len(strategy) == len(matrix)
    assert np.array_equal(strategy.answers(counts), matrix @ counts)
    assert strategy.back(values).ravel() == pytest.approx(matrix.T @ values)
    assert strategy.back(values).shape == shape
    if strategy.covariance is not None:
        unit = np.eye(strategy.domain.size).reshape(*shape, -1)
        inverse = strategy.covariance.times(unit).reshape(strategy.domain.size, -1)
        assert inverse @ (matrix.T @ matrix) == pytest.approx(np.eye(len(inverse)), abs=1e-7)
    assert (strategy.covariance is None) == (np.linalg.matrix_rank(matrix) < strategy.domain.size)


@given(shapes(40), st.sampled_from(sorted(SEEDS)), st.integers(0, 2**32))
@settings(max_examples=60)
def test_a_query_is_found_among_the_rows_exactly_when_it_is_one(shape, name, number):
    strategy = SEEDS[name](line_of(*shape))
    matrix = matrix_of(strategy)
    for row in matrix:
        query = LinearQuery.from_vector(strategy.domain, row)
        at = strategy.row_of(query)
        if query.scale == 1:
            assert at is not None
            assert np.array_equal(matrix[at], row)
        else:
            assert at is None
    rng = np.random.default_rng(number)
    for _ in range(10):
        query = random_query(strategy.domain, rng)
        among = (matrix == query.to_vector()).all(axis=1).any()
        assert (strategy.row_of(query) is not None) == among
    assert strategy.row_of(LinearQuery.zero(strategy.domain)) is None


@given(shapes(40), st.sampled_from(sorted(SEEDS)))
@settings(max_examples=60)
def test_a_strategys_sensitivity_is_that_of_its_dense_matrix(shape, name):
    """Exact under add-remove; under replace-one a bound, never below the exact distance."""
    strategy = SEEDS[name](line_of(*shape))
    columns = matrix_of(strategy).T
    # A row of the table may also come from, or go to, outside every cell.
    apart = np.abs(np.vstack([columns, 0 * columns[:1]])[:, None, :] - columns[None, :, :])
    for power, claim in ((1, strategy.l1_sensitivity), (2, strategy.l2_sensitivity_squared)):
        largest = (np.abs(columns) ** power).sum(axis=1).max()
        assert claim("add-remove") == largest
        assert (apart**power).sum(axis=2).max() <= claim("replace-one") <= 2 * largest
    assert (strategy.units("add-remove") == 1).all()
    assert len(strategy.units("replace-one")) == len(strategy)


def signed(weights) -> Strategy:
    matrix = seed._rows(np.array(weights, dtype=np.int64))
    return Strategy(line_of(matrix.size), ((matrix,),), "signed")


def test_weights_of_both_signs_are_counted_in_full_under_replace_one():
    strategy = signed([[3, -3], [1, 1]])
    assert strategy.l1_sensitivity("replace-one") == 8
    assert strategy.l2_sensitivity_squared("replace-one") == 40
    assert (np.diff(matrix_of(strategy), axis=1) ** 2).sum() <= 40


def test_a_strategy_too_heavy_for_64_bits_is_refused():
    heavy = seed._rows(np.array([[2**16]], dtype=np.int64))
    with pytest.raises(QueryError, match="within 2,147,483,648"):
        Strategy(line_of(1, 1), ((heavy, heavy),), "heavy").l1_sensitivity("add-remove")


@pytest.mark.parametrize("name", SEEDS)
@pytest.mark.parametrize("shape", [(7,), (3, 4), (2, 3, 2)], ids=str)
def test_a_strategy_survives_json(name, shape):
    strategy = SEEDS[name](line_of(*shape))
    again = Strategy.from_json(strategy.domain, json.loads(json.dumps(strategy.to_json())))
    assert again.name == strategy.name
    assert len(again) == len(strategy)
    assert np.array_equal(matrix_of(again), matrix_of(strategy))
    assert again.to_json() == strategy.to_json()


# Seeds


@pytest.mark.parametrize("shape", [(1,), (5,), (8,), (3, 4)], ids=str)
def test_the_seeds_by_name_are_what_their_names_say(shape):
    domain = line_of(*shape)
    lines = [line_of(size) for size in shape]

    def product(family):
        matrix = np.ones((1, 1))
        for line in lines:
            matrix = np.kron(matrix, dense(family(line)))
        return matrix

    families = {
        "identity": workload.identity,
        "total": workload.total,
        "prefix": workload.prefixes,
        "h2": workload.h2,
        "hb": lambda line: workload.hierarchy(line, branching=seed.best_branching(line.size)),
    }
    assert set(families) == set(seed.NAMED)
    for name, family in families.items():
        strategy = seed.NAMED[name](domain)
        assert strategy.name == name
        assert np.array_equal(matrix_of(strategy), product(family))


def test_the_marginals_of_old_ledgers_are_the_cells_and_then_all_marginals():
    domain = line_of(2, 3, 4)
    for k in (0, 1, 2):
        rows = [*workload.identity(domain), *workload.marginals(domain, k)]
        assert np.array_equal(matrix_of(cells_and_marginals(domain, k)), dense(rows))


def error_of(matrix: np.ndarray, gram: np.ndarray) -> float:
    """The total error of a workload's queries, at equal privacy: squared sensitivity times trace."""
    return np.abs(matrix).sum(axis=0).max() ** 2 * np.trace(gram @ np.linalg.pinv(matrix.T @ matrix))


@pytest.mark.parametrize("size", [1, 2, 3, 4, 7, 16, 31, 64, 86])
def test_the_best_branching_factor_is_that_of_brute_force(size):
    line = line_of(size)
    ranges = dense(workload.ranges(line))
    gram = ranges.T @ ranges
    errors = {
        b: error_of(dense(workload.hierarchy(line, branching=b)), gram)
        for b in range(2, max(3, min(size, 32) + 1))
    }
    assert errors[seed.best_branching(size)] == pytest.approx(min(errors.values()), rel=1e-9)


AGES = Domain([Integer("age", 0, 85)])


@pytest.mark.parametrize(("family", "most"), [(workload.prefixes, 0.45), (workload.ranges, 0.7)])
def test_an_optimised_seed_beats_the_identity(family, most):
    wanted = family(AGES)
    gram = dense(wanted).T @ dense(wanted)
    found = matrix_of(seed.optimized(AGES, wanted, starts=1))
    assert error_of(found, gram) / error_of(np.eye(86), gram) < most


def test_an_optimised_seed_is_the_same_every_time():
    domain = line_of(30, 8)
    wanted = Block(domain, [*workload.prefixes(domain, "a0"), *workload.ranges(domain, "a1")])
    first, second = (seed.optimized(domain, wanted) for _ in range(2))
    assert first.to_json() == second.to_json()


@pytest.mark.parametrize("shape", [(20,), (20, 20), (4, 4, 4, 4), (2, 30)], ids=str)
@pytest.mark.parametrize("family", ["total", "prefixes", "ranges", "h2", "one cell"])
def test_an_optimised_seed_is_never_worse_than_the_identity_and_determines_every_cell(shape, family):
    domain = line_of(*shape)
    wanted = {
        "total": workload.total(domain),
        "one cell": Block(domain, [LinearQuery.cell(domain, 0)]),
    }.get(family) or getattr(workload, family)(domain, "a0")
    strategy = seed.optimized(domain, wanted, starts=1)
    assert strategy.covariance is not None
    for level, rows in enumerate(strategy.parts[0]):
        gram = seed.gram_of(wanted, level)
        matrix = np.eye(rows.size) if rows.matrix is None else rows.matrix.toarray()
        # Rounding to the grid may cost a little.
        assert error_of(matrix, gram) <= error_of(np.eye(rows.size), gram) * 1.05


def test_the_gradient_of_the_optimised_seed_is_that_of_finite_differences():
    rng = np.random.default_rng(3)
    ranges = dense(workload.ranges(line_of(6)))
    gram = ranges.T @ ranges / 10
    at = rng.random(12)
    error, gradient = optimization._error_and_gradient(at, gram)
    steps = np.eye(12) * 1e-6
    numeric = [
        (
            optimization._error_and_gradient(at + s, gram)[0]
            - optimization._error_and_gradient(at - s, gram)[0]
        )
        / 2e-6
        for s in steps
    ]
    assert gradient == pytest.approx(np.array(numeric), rel=1e-5)
    columns = np.vstack([np.eye(6), at.reshape(2, 6)])
    assert error == pytest.approx(error_of(columns / columns.sum(axis=0), gram))


def test_an_optimised_seed_needs_a_workload_over_its_own_domain():
    for wanted in (Block(AGES, []), Block(AGES, [LinearQuery.zero(AGES)]), workload.total(line_of(4))):
        with pytest.raises(QueryError, match="needs a workload"):
            seed.optimized(AGES, wanted)


def test_what_a_workload_asks_of_an_attribute_is_the_gram_matrix_of_its_weights_there():
    domain = line_of(3, 2)
    one = LinearQuery.product(domain, {"a0": [1, 2, 0], "a1": [1, 1]}) * 3
    other = LinearQuery.product(domain, {"a0": [0, 0, 1], "a1": [0, 5]})
    gram = seed.gram_of(Block(domain, [one, other]), 0)
    expected = 9 * 2 * np.outer([1, 2, 0], [1, 2, 0]) + 25 * np.outer([0, 0, 1], [0, 0, 1])
    assert gram == pytest.approx(expected)


def test_an_attribute_too_long_to_optimise_keeps_the_identity():
    gram = np.eye(optimization.MOST_OPTIMIZED + 1)
    assert optimization.p_identity(gram, 12, 1).matrix is None
    assert Rows(3).count == 3
