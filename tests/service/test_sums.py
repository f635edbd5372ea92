"""Sums and averages of measures and over bins, from SQL to the result: their values and intervals."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.table import Table

from sharewell import (
    Binned,
    Boolean,
    Budget,
    Category,
    Curator,
    DataVector,
    Domain,
    Integer,
    LinearQuery,
    compile_sql,
    parse_config,
    wire,
)
from sharewell.cli.render import render_dataset
from sharewell.datasets import movers_by_age
from sharewell.mechanisms import seed as seeds
from sharewell.mechanisms.base import GAUSSIAN_CRITICAL, LAPLACE_CRITICAL, Answer, reach_of
from sharewell.mechanisms.cache_reconstruct import CacheReconstruct
from sharewell.mechanisms.independent import Independent
from sharewell.mechanisms.laplace import Laplace
from sharewell.privacy.noise import NoNoise
from sharewell.query.measure import Measure
from sharewell.service import quotes, results, serialization
from sharewell.service.answers import from_plain, to_plain
from sharewell.service.intervals import fieller, quotient
from sharewell_lab.noise import SeededNoise
from tests.service.services import answered

WAGE = Measure("wage", "wage", 0, 100, Fraction(1, 10))
PEOPLE = Domain([Category("state", ["AL", "NY"]), Boolean("employed")], [WAGE])
BINS = Domain([Binned("stay", [0, 1, 10, 100]), Category("sex", ["F", "M"])])


def table(domain: Domain, people: list[tuple[int, int, float | None]]) -> DataVector:
    """A table of PEOPLE: state, employed and wage of each person."""
    sums = np.zeros(domain.shape, dtype=np.int64)
    for state, employed, wage in people:
        sums[state, employed, 0] += 1
        if wage is not None:
            steps = round(min(max(wage, 0), 100) * 10) - 500
            sums[state, employed, 1:] += (1, steps)
    return DataVector(domain, sums.ravel())


def wages(seed: int, size: int) -> list[tuple[int, int, float | None]]:
    """A skewed made-up table: few people of NY, most wages small, a fifth of them missing."""
    rng = np.random.default_rng(seed)
    return [
        (
            int(rng.random() < 0.03),
            int(rng.random() < 0.6),
            None if rng.random() < 0.2 else round(float(rng.lognormal(2.0, 0.8)), 1),
        )
        for _ in range(size)
    ]


def mechanism_on(data: DataVector, noise, budget: Budget, **more) -> CacheReconstruct:
    curator = Curator(data, budget, {"ann": budget.total}, noise=noise)
    options = {"seed_fraction": "1/2", "query_budget": budget.total / 100, **more}
    return CacheReconstruct(curator, seed=seeds.identity(data.domain), **options)


def ask(mechanism, statement, *, pay: bool = True) -> wire.Result:
    """The result of a statement, as it is stored and read again."""
    answers = answered(mechanism, statement, "ann", pay=pay)
    stored = [from_plain(to_plain(answer)) for answer in answers]
    assert tuple(stored) == answers
    return results.result(statement, stored, pay=pay)


def test_without_noise_sums_and_averages_are_those_of_the_rows():
    people = wages(1, 500)
    mechanism = mechanism_on(table(PEOPLE, people), NoNoise(), Budget.pure(1))
    found = ask(
        mechanism,
        compile_sql(
            "SELECT state, SUM(wage), AVG(wage), COUNT(wage), COUNT(*) FROM people "
            "WHERE employed GROUP BY state",
            PEOPLE,
        ),
    )
    for at, row in enumerate(found.rows):
        chosen = [wage for state, employed, wage in people if employed and state == at]
        known = [min(wage, 100) for wage in chosen if wage is not None]
        expected = [sum(known), sum(known) / len(known), len(known), len(chosen)]
        assert [each.value for each in row[1:]] == pytest.approx(expected)
        for each, truth in zip(row[1:], expected, strict=True):
            assert each.interval[0] - 1e-6 <= truth <= each.interval[1] + 1e-6


def test_sums_of_survey_weights_estimate_the_population():
    """Each respondent stands for as many people as their weight says; none are counted twice."""
    weight = Measure("weight", "weight", 0, 5_000, Fraction(1, 100), nullable=False)
    domain = Domain([Category("state", ["AL", "NY"]), Boolean("employed")], [weight])
    rng = np.random.default_rng(4)
    respondents = [
        (int(rng.integers(2)), int(rng.integers(2)), Fraction(int(rng.integers(1, 500_000)), 100))
        for _ in range(200)
    ]
    sums = np.zeros(domain.shape, dtype=np.int64)
    for state, employed, own in respondents:
        sums[state, employed] += (1, int((own - 2_500) * 100))
    mechanism = mechanism_on(DataVector(domain, sums.ravel()), NoNoise(), Budget.pure(1))
    text = "SELECT state, SUM(weight), COUNT(*) FROM people WHERE employed GROUP BY state"
    for at, (_, total, count) in enumerate(ask(mechanism, compile_sql(text, domain)).rows):
        chosen = [own for state, employed, own in respondents if employed and state == at]
        assert total.value == pytest.approx(float(sum(chosen)))
        assert count.value == pytest.approx(len(chosen))
        assert total.interval[0] <= sum(chosen) <= total.interval[1]


# Covariances


@pytest.mark.parametrize("make", [seeds.identity, seeds.h2], ids=["identity", "h2"])
def test_covariances_are_those_of_the_estimator(make):
    """Against the dense inverse of the precision of everything that was measured."""
    domain = Domain([Integer("age", 0, 5), Category("sex", ["F", "M"])])
    data = DataVector(domain, np.arange(12, dtype=np.int64))
    curator = Curator(data, Budget.pure(4), {"ann": Fraction(4)}, noise=SeededNoise(3))
    seed = make(domain)
    mechanism = CacheReconstruct(curator, seed=seed, seed_fraction="1/2", query_budget=Fraction(1, 10))
    statements = [
        compile_sql(text, domain)
        for text in (
            "SELECT sex, SUM(age), COUNT(*) FROM people GROUP BY sex",
            "SELECT sex, COUNT(*) FILTER (WHERE age > 2), SUM(age) FROM people WHERE age < 5 GROUP BY 1",
        )
    ]
    for statement in statements:
        for block in statement.blocks:
            mechanism.ask(block, "ann")
    precision = np.zeros((12, 12))
    known = mechanism._reconstruction.measurements
    rows = seed.matrix.toarray()
    precision += known.seed_precision * rows.T @ rows
    for batch in known.batches:
        rows = np.array([query.to_vector() for query in batch.rows])
        precision += rows.T @ (rows / batch.variances[:, None])
    inverse = np.linalg.inv(precision)
    for statement in statements:
        left, right = statement.blocks[:2]
        expected = [a.to_vector() @ inverse @ b.to_vector() for a, b in zip(left, right, strict=True)]
        assert mechanism.covariances(left, right, "ann") == pytest.approx(expected, rel=1e-6)
        own = [a.to_vector() @ inverse @ a.to_vector() for a in left]
        assert mechanism.covariances(left, left, "ann") == pytest.approx(own, rel=1e-6)


def test_covariances_that_are_not_known_are_none():
    data = DataVector(BINS, np.arange(6, dtype=np.int64))
    block = compile_sql("SELECT COUNT(*) FROM people", BINS).blocks[0]
    curator = Curator(data, Budget.pure(1), {"ann": Fraction(1)}, noise=SeededNoise(1))
    assert Laplace(curator, query_budget=Fraction(1, 10)).covariances(block, block, "ann") is None
    printed = mechanism_on(data, SeededNoise(1), Budget.pure(1), answers="as-printed")
    assert printed.covariances(block, block, "ann") is None
    alone = Independent(
        Curator(data, Budget.pure(1), {"ann": Fraction(1)}, noise=SeededNoise(1)),
        lambda own: CacheReconstruct(
            own, seed=seeds.identity(BINS), seed_fraction="1/2", query_budget=Fraction(1, 100)
        ),
    )
    covariances = alone.covariances(block, block, "ann")
    assert covariances is not None
    [variance] = covariances
    assert math.sqrt(variance) == pytest.approx(alone.ask(block, "ann", pay=False)[0].standard_error)


def test_an_undetermined_estimate_has_no_covariance():
    data = table(PEOPLE, wages(2, 50))
    curator = Curator(data, Budget.pure(4), {"ann": Fraction(4)}, noise=SeededNoise(2))
    mechanism = CacheReconstruct(
        curator, seed=seeds.total(PEOPLE), seed_fraction="1/2", query_budget=Fraction(1, 10)
    )
    statement = compile_sql("SELECT SUM(wage), AVG(wage), COUNT(*) FROM people", PEOPLE)
    left, right = statement.blocks[:2]
    covariances = mechanism.covariances(left, right, "ann")
    assert covariances is not None
    assert np.isnan(covariances).all()
    free = ask(mechanism, statement, pay=False)
    assert [each.value for each in free.rows[0]] == [None, None, None]
    assert results.UNDETERMINED in free.notes
    quote = quotes.quote(mechanism, statement, "ann")
    assert quote.free is None
    assert quote.needs_paying
    paid = ask(mechanism, statement)
    assert all(math.isfinite(float(each)) for each in paid.rows[0])
    assert quotes.quote(mechanism, statement, "ann").cost == 0


# Quotes


def test_an_average_is_quoted_in_its_own_unit():
    data = table(PEOPLE, wages(4, 5000))
    mechanism = mechanism_on(data, SeededNoise(4), Budget.pure(4))
    statement = compile_sql("SELECT AVG(wage), SUM(wage) FROM people", PEOPLE)
    quote = quotes.quote(mechanism, statement, "ann")
    assert quote.paid is not None
    [average, total] = quote.paid.errors
    assert average is not None
    assert total is not None
    [sizes, no_sizes] = quote.paid.group_sizes
    assert sizes is not None
    assert no_sizes is None
    [size] = set(sizes)  # one group has both the largest and the smallest error
    # About 4,000 of 5,000 have a wage, as the seed tells for nothing.
    assert 3500 < size < 4500
    found = ask(mechanism, statement)
    low, high = found.rows[0][0].interval
    # The seed knows the average vaguely: the quote is for the largest that it may be.
    assert 1 <= mechanism.critical * average[0] / ((high - low) / 2) <= 1.5
    assert found.rows[0][1].standard_error == pytest.approx(total[0], rel=0.01)
    assert f"for a group of {size:,}" in repr(quote)


def test_where_nothing_is_released_the_population_gives_the_size_of_a_group():
    data = table(PEOPLE, wages(5, 100))
    curator = Curator(data, Budget.pure(4), {"ann": Fraction(4)}, noise=SeededNoise(5))
    mechanism = Laplace(curator, query_budget=Fraction(1, 100))
    statement = compile_sql("SELECT state, AVG(wage) FROM people GROUP BY state", PEOPLE)
    for population, size in ((None, 1000), (600, 300), (1_000_000, 1000)):
        quote = quotes.quote(mechanism, statement, "ann", population=population)
        assert quote.paid is not None
        assert quote.paid.group_sizes == ((size, size),)


# Intervals


@given(
    st.floats(-1e6, 1e6),
    st.floats(0.01, 1e6),
    st.floats(0, 1e3),
    st.floats(0, 1e3),
    st.floats(-1, 1),
    st.floats(0.1, 3),
)
def test_the_ends_of_fiellers_interval_are_just_within_reach(total, count, a, b, correlation, z):
    both = correlation * a * b
    found = fieller(total, count, a * a, b * b, both, z)
    if count * count - z * z * b * b <= 0:
        assert found is None
        return
    if found is None:
        return
    low, high = found
    assert low <= high
    scale = abs(total) + z * a + (abs(low) + abs(high)) * (count + z * b)
    for end in found:
        away = abs(total - end * count)
        reach = z * math.sqrt(max(a * a - 2 * end * both + end * end * b * b, 0.0))
        assert away == pytest.approx(reach, abs=1e-5 * scale + 1e-9)


def test_an_interval_that_is_not_finite_is_none():
    assert quotient((1.0, 2.0), (5e-324, 1.0)) is None
    assert quotient((1.0, 1e308), (1e-300, 1.0)) is None
    assert fieller(1e308, 1e-200, 1.0, 0.0, 0.0, 1.96) is None


def test_an_average_of_a_count_that_may_be_zero_has_all_possible_values():
    mechanism = mechanism_on(table(PEOPLE, wages(6, 3)), SeededNoise(6), Budget.pure("1/10"))
    found = ask(mechanism, compile_sql("SELECT AVG(wage) FROM people WHERE state = 'NY'", PEOPLE))
    assert found.rows[0][0].interval == (0.0, 100.0)


def test_a_sum_over_bins_is_never_outside_of_its_interval_by_its_bins():
    counts = np.array([[500, 100], [300, 0], [40, 7]], dtype=np.int64)
    mechanism = mechanism_on(DataVector(BINS, counts.ravel()), NoNoise(), Budget.pure(50))
    statement = compile_sql("SELECT sex, SUM(stay), AVG(stay) FROM people GROUP BY sex", BINS)
    for at, (_, total, average) in enumerate(ask(mechanism, statement).rows):
        own = counts[:, at]
        lower, upper = own @ [0, 1, 10], own @ [1, 10, 100]
        assert total.interval[0] == pytest.approx(lower, abs=8)
        assert total.interval[1] == pytest.approx(upper, abs=80)
        assert total.interval[0] <= lower < upper <= total.interval[1]
        assert 0 <= average.interval[0] <= lower / own.sum()
        assert upper / own.sum() <= average.interval[1] <= 100


def test_a_midpoint_sum_that_is_zero_has_the_limits_of_its_bins():
    domain = Domain([Binned("x", [-5, 5]), Boolean("b")])
    mechanism = mechanism_on(DataVector(domain, np.array([60, 40])), NoNoise(), Budget.pure(100))
    [[total, average]] = ask(mechanism, compile_sql("SELECT SUM(x), AVG(x) FROM people", domain)).rows
    assert total.value == 0
    assert total.interval == pytest.approx((-500, 500), abs=10)
    assert average.interval == (-5, 5)


def test_sums_over_bins_that_cannot_be_estimated_for_nothing_have_no_interval():
    data = DataVector(BINS, np.full(6, 100, dtype=np.int64))
    curator = Curator(data, Budget.pure(4), {"ann": Fraction(4)}, noise=SeededNoise(7))
    mechanism = Laplace(curator, query_budget=Fraction(1, 10))
    [[total, average]] = ask(
        mechanism, compile_sql("SELECT SUM(stay), AVG(stay) FROM people", BINS)
    ).rows
    assert total.interval is None
    assert average.interval == (0, 100)


# Coverage

RUNS = 2_000


def holds(number: Answer | wire.Number, truth: float) -> bool:
    """Whether a number's interval has the truth."""
    assert number.interval is not None
    low, high = number.interval
    return low - 1e-9 <= truth <= high + 1e-9


def coverage(runs: Iterable[Sequence[Answer | wire.Number]], truths: Sequence[float]) -> list[float]:
    """How often the interval of each number holds the truth."""
    held = [list(map(holds, numbers, truths)) for numbers in runs]
    assert len(held) == RUNS
    return np.mean(held, axis=0).tolist()


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("budget", "size"),
    [(Budget.pure(4), 3_000), (Budget.zcdp(4, "1e-6"), 200)],
    ids=["pure", "zcdp"],
)
def test_intervals_on_a_skewed_table_hold_95_times_in_100(budget, size):
    """In NY there are few people, of 200 so few that the count may be 0.

    The noise is seeded, so it fails always or never. 2,000 runs scatter by 0.5 around 95 in 100.
    """
    people = wages(8, size)
    data = table(PEOPLE, people)
    text = "SELECT state, SUM(wage), AVG(wage), COUNT(wage) FROM people GROUP BY state"
    statement = compile_sql(text, PEOPLE)
    truths = []
    for at in range(2):
        known = [min(wage, 100) for own, _, wage in people if own == at and wage is not None]
        truths += [sum(known), sum(known) / len(known), len(known)]
    runs = (
        [each for _, *numbers in ask(mechanism, statement).rows for each in numbers]
        for mechanism in (mechanism_on(data, SeededNoise(seed), budget) for seed in range(RUNS))
    )
    found = coverage(runs, truths)
    assert min(found) >= 0.94
    for average in (4, 1):
        del found[average]
    assert max(found) <= 0.97


@pytest.mark.statistical
@pytest.mark.parametrize(
    "budget", [Budget.pure(1), Budget.zcdp(1, "1e-6")], ids=lambda budget: budget.currency
)
def test_intervals_on_the_bundled_table_hold_95_times_in_100(budget):
    """Rows that are bought, reconstructed from the seed, and from what was bought as well."""
    data = movers_by_age()
    seed = seeds.identity(data.domain)
    young, some, most, all_ages = (
        LinearQuery.of(data.domain, age=ages) for ages in (range(18), [30], range(18, 86), range(86))
    )
    truths = [data.answer(query) for query in (young, some, most, all_ages)]
    runs = []
    for at in range(RUNS):
        curator = Curator(data, budget, {"ann": budget.total}, noise=SeededNoise(at))
        mechanism = CacheReconstruct(
            curator, seed=seed, seed_fraction="1/8", query_budget=budget.total / 20
        )
        bought = mechanism.ask(young, "ann")
        free = [mechanism.ask(query, "ann", pay=False) for query in (some, most, all_ages)]
        runs.append([bought, *free])
    assert min(answer.standard_error or 0 for answer in runs[0]) > 3
    found = coverage(runs, truths)
    assert 0.94 <= min(found) <= max(found) <= 0.97


@pytest.mark.statistical
@pytest.mark.parametrize("size", [8, 60])
def test_an_average_over_bins_holds_95_times_in_100_wherever_the_values_are(size):
    """Each value may be the lowest or the highest of its bin."""
    counts = np.array([[size // 2, 1], [size // 2, 2], [0, 1]], dtype=np.int64)
    data = DataVector(BINS, counts.ravel())
    statement = compile_sql("SELECT AVG(stay) FROM people WHERE sex = 'F'", BINS)
    own = counts[:, 0]
    limits = [own @ edges / own.sum() for edges in ([0, 1, 10], [1, 10, 100])]
    budget = Budget.pure(4)
    found, widths = [], []
    for seed in range(RUNS):
        [[average]] = ask(mechanism_on(data, SeededNoise(seed), budget), statement).rows
        low, high = average.interval
        found.append([low <= limits[0] + 1e-9, high >= limits[1] - 1e-9])
        widths.append(high - low)
    assert np.all(np.mean(found, axis=0) >= 0.97)
    assert np.mean(np.all(found, axis=1)) >= 0.94
    if size == 60:
        # Not by stating every possible value: that is 100 wide.
        assert np.median(widths) < 30


def test_one_draw_of_noise_of_any_size_is_within_its_interval():
    """Exactly, from the distributions: also where the noise is a few whole numbers."""
    for deviation in np.geomspace(0.2, 100, 500):
        k = np.arange(-int(40 * deviation) - 5, int(40 * deviation) + 6)
        ratio = 1 + (1 - math.sqrt(1 + 2 * deviation**2)) / deviation**2
        laplace, gaussian = ratio ** np.abs(k), np.exp(-(k**2) / (2 * deviation**2))
        for weights, critical in ((laplace, LAPLACE_CRITICAL), (gaussian, GAUSSIAN_CRITICAL)):
            error = math.sqrt((weights * k**2).sum() / weights.sum())
            inside = weights[np.abs(k) <= reach_of(error, 1.0, critical)].sum() / weights.sum()
            assert inside >= 0.941
            assert inside <= 0.971 or error < 3


def test_an_interval_scales_with_its_query():
    assert reach_of(40.0, 10.0, 2.0) == pytest.approx(10 * reach_of(4.0, 1.0, 2.0))
    assert reach_of(0.0, 1.0, 2.0) == reach_of(0.0, 0.0, 2.0) == 0.0


def test_analysts_are_told_which_columns_are_summed_and_within_which_bounds():
    config = parse_config("""
        [dataset]
        source = "people.csv"
        population = 1000
        [budget]
        epsilon = 1
        error_threshold = 10
        [attributes.sex]
        type = "category"
        categories = ["F", "M"]
        [measures.wage]
        low = 0
        high = 5000
        step = 0.01
        [measures.hours]
        low = 0
        high = 80
        step = 1
        nullable = false
        [analysts.ann]
        share = 1
    """)
    told = serialization.dataset_info(config)
    assert wire.DatasetInfo.model_validate_json(told.model_dump_json()) == told
    assert [each.values for each in told.measures] == [
        "0 to 5,000 in steps of 0.01, or NULL",
        "0 to 80 in steps of 1",
    ]
    table, *_ = render_dataset(told)
    assert isinstance(table, Table)
    assert [list(map(str, column.cells))[-2:] for column in table.columns[:2]] == [
        ["wage", "hours"],
        ["measure", "measure"],
    ]
