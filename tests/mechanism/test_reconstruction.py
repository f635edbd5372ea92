"""Reconstruction in all three ways, and the strategies under it, against dense matrices."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sharewell import Domain, Integer, LinearQuery
from sharewell.errors import QueryError
from sharewell.mechanism import reconstruction, seed
from sharewell.mechanism.by_cells import ByCells
from sharewell.mechanism.by_iteration import ByIteration
from sharewell.mechanism.by_rows import ByRows
from sharewell.mechanism.reconstruction import Reconstruction
from sharewell.mechanism.strategy import Rows, Strategy
from sharewell.query import workload
from sharewell.query.block import Block
from tests.mechanism.evidence import SEEDS, Case, cases, line_of, make_case, random_query, shapes
from tests.mechanism.oracle import dense, matrix_of

#: Conjugate gradients take thousands of steps to find that nothing determines a query.
FEW = 32
#: Variances like these say as little as infinite ones: rounding decides which of the two they are.
HOPELESS = 1e9


def ways(case: Case):
    """The ways that a case can be computed in: from rows only with a seed that determines all."""
    determined = bool(case.seed_values) and case.strategy.covariance is not None
    yield ByCells
    if determined:
        yield ByRows
    if determined or case.domain.size <= FEW:
        yield ByIteration


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


def part_of(both, count):
    return both[0][:count], both[1][:count]


def check_every_way(case, *, rel=1e-8):
    if not case.seed_values or case.strategy.covariance is None:
        # Rows determine one direction after the other, some of them at first by next to nothing.
        # Rounding is relative to the largest variance on the way: millionths were seen to be left of it.
        rel = 1e-4
    expected = case.measured().estimate(case.dense)
    known = case.reconstruction()
    for way in ways(case):
        count = 2 if way is ByIteration else len(case.queries)
        found = way(known.evidence).estimate(case.queries[:count])
        assert_same(found, part_of(expected, count), rel=rel)


@given(cases(most_cells=64, most_rows=40))
@settings(max_examples=100)
def test_every_way_gives_the_values_and_variances_of_the_pseudo_inverse(case):
    check_every_way(case)


@given(cases())
@settings(max_examples=12)
def test_every_way_still_does_with_hundreds_of_cells_and_rows(case):
    # A precise row leaves little of what a vague seed of that size says, and that is rounded.
    check_every_way(case, rel=1e-5)


@pytest.mark.parametrize("name", SEEDS)
@pytest.mark.parametrize("shape", [(24,), (4, 6), (2, 3, 4)], ids=str)
def test_every_seed_is_reconstructed_from_in_every_way(name, shape):
    case = make_case(SEEDS[name](line_of(*shape)), rows=9, queries=6, number=5, times=2)
    check_every_way(case)
    expected = case.measured().estimate(case.dense)[1]
    assert np.isinf(expected).any() == (name == "total"), "only the total leaves something open"


@pytest.mark.parametrize(
    ("name", "tried"),
    [("identity", (ByCells, ByRows, ByIteration)), ("optimized", (ByCells, ByRows))],
)
def test_a_thousand_cells_and_rows_are_reconstructed_from_in_every_way(name, tried):
    """Too many for a pseudo-inverse: here the oracle solves the normal equations."""
    strategy = SEEDS[name](line_of(8, 8, 16))
    case = make_case(strategy, rows=1100, queries=6, number=7, largest_batch=60)
    known = case.measured()
    weighted = np.array(known.rows) / np.sqrt(known.variances)[:, None]
    precision = weighted.T @ weighted
    solved = np.linalg.solve(precision, case.dense.T)
    values = solved.T @ (weighted.T @ (np.array(known.values) / np.sqrt(known.variances)))
    expected = values, np.einsum("ij,ji->i", case.dense, solved)
    evidence = case.reconstruction().evidence
    for way in tried:
        assert_same(way(evidence).estimate(case.queries), expected)


@given(cases(most_cells=48, most_rows=30), st.randoms())
@settings(max_examples=60)
def test_what_was_learnt_bit_by_bit_is_what_is_computed_at_once(case, random):
    """To the last bit: a mechanism that starts again gives the very same answers."""
    for way in ways(case):
        if way is ByIteration and case.strategy.covariance is None:
            continue
        evidence = case.start().evidence
        bit_by_bit = way(evidence)
        for batch in case.batches:
            evidence.batches.append(batch)
            bit_by_bit.observe(batch)
            if random.random() < 0.2:
                bit_by_bit.estimate(case.queries[:1])
        asked = case.queries[:1] if way is ByIteration else case.queries
        at_once = way(case.reconstruction().evidence).estimate(asked)
        assert np.array_equal(bit_by_bit.estimate(asked), at_once)


@given(cases(most_cells=FEW, most_rows=30, least_times=1))
@settings(max_examples=40)
def test_changing_the_way_as_rows_come_in_changes_nothing(case):
    for limits, later in (((0, case.domain.size, 10**6), ByCells), ((0, 0, 6), ByIteration)):
        with pytest.MonkeyPatch.context() as patch:
            for name, limit in zip(("FEW_CELLS", "MOST_CELLS", "MOST_ROWS"), limits, strict=True):
                patch.setattr(reconstruction, name, limit)
            known = case.start()
            used = {type(known._ready())}
            for at, batch in enumerate(case.batches):
                known.observe(batch.rows, batch.values, batch.variances)
                found = known.estimate(case.queries[:1])
                used.add(type(known._ready()))
                expected = case.measured(at + 1).estimate(case.dense[:1])
                assert_same(found, expected)
            assert len(known) == sum(len(batch.rows) for batch in case.batches)
            enough = len(known) > (case.domain.size if later is ByCells else 6)
            if case.strategy.covariance is not None and enough:
                assert used == {ByRows, later}


@pytest.mark.parametrize(
    ("shape", "name", "rows", "way"),
    [
        ((256,), "h2", 0, ByCells),
        ((257,), "h2", 257, ByRows),
        ((257,), "h2", 258, ByCells),
        ((257,), "total", 0, ByCells),
        ((4097,), "identity", 6000, ByRows),
        ((4097,), "identity", 6001, ByIteration),
        ((4097,), "total", 1, ByIteration),
    ],
)
def test_the_way_is_chosen_by_size(shape, name, rows, way):
    known = Reconstruction(SEEDS[name](line_of(*shape)))
    known.observe_seed(np.zeros(len(known.evidence.strategy)), 1.0)
    known.evidence.count = rows
    assert known._best_way() is way


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


@given(cases(most_cells=64, most_rows=20))
@settings(max_examples=60)
def test_covariances_are_symmetric_and_those_of_the_pseudo_inverse(case):
    expected = case.measured().covariance(case.dense)
    known = np.isfinite(expected.diagonal())
    spread = np.sqrt(expected.diagonal()[known])
    for way in ways(case):
        few = 3 if way is ByIteration else len(case.queries)
        found = way(case.reconstruction().evidence).covariance(case.queries[:few])
        here = known[:few]
        assert np.array_equal(np.isfinite(found.diagonal()), here)
        part = found[np.ix_(here, here)]
        scale = np.outer(spread, spread)[: len(part), : len(part)]
        true = expected[:few, :few][np.ix_(here, here)]
        assert (np.abs(part - true) <= 1e-8 * scale).all()
        assert (np.abs(part - part.T) <= 1e-8 * scale).all()


@pytest.mark.parametrize("way", [ByCells, ByIteration])
def test_with_nothing_measured_nothing_is_determined(way):
    known = Reconstruction(seed.identity(line_of(5)))
    assert np.isinf(way(known.evidence).estimate([LinearQuery.all(line_of(5))])[1]).all()
    with pytest.raises(ValueError, match="undetermined"):
        ByRows(Reconstruction(seed.total(line_of(5))).evidence)


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


def test_a_seed_of_marginals_is_the_cells_and_then_all_marginals():
    domain = line_of(2, 3, 4)
    for k in (0, 1, 2):
        rows = [*workload.identity(domain), *workload.marginals(domain, k)]
        assert np.array_equal(matrix_of(seed.marginals(domain, k)), dense(rows))
    for k in (-1, 3):
        with pytest.raises(QueryError, match="from 0 to 2"):
            seed.marginals(domain, k)


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
    error, gradient = seed._error_and_gradient(at, gram)
    steps = np.eye(12) * 1e-6
    numeric = [
        (seed._error_and_gradient(at + s, gram)[0] - seed._error_and_gradient(at - s, gram)[0]) / 2e-6
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
    gram = np.eye(seed.MOST_OPTIMIZED + 1)
    assert seed._optimize(gram, 12, 1).matrix is None
    assert Rows(3).count == 3
