"""The quoted errors of ratios, quantiles and functions: those that the results turn out to have."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from sharewell import Boolean, Budget, Category, DataVector, Domain, Integer, compile_sql
from sharewell.mechanisms.base import GAUSSIAN_CRITICAL, LAPLACE_CRITICAL, Answer
from sharewell.mechanisms.laplace import Laplace
from sharewell.privacy.curator import Curator
from sharewell.service import quotes
from sharewell.service.quotes import quote_message
from sharewell_lab.noise import SeededNoise
from tests.service.test_sums import ask, mechanism_on

DOMAIN = Domain([Category("town", ["a", "b", "c"]), Integer("age", 0, 9), Boolean("employed")])
PERCENT = "100.0 * COUNT(*) FILTER (WHERE employed) / COUNT(*)"
COMPUTED = [
    f"SELECT town, {PERCENT} FROM people GROUP BY town",
    f"SELECT ROUND({PERCENT}, 1), STDDEV(age) FROM people",
    "SELECT town, MEDIAN(age), QUANTILE_DISC(age, 0.9) FROM people GROUP BY town",
    "SELECT town, 100.0 * COUNT(*) / SUM(COUNT(*)) OVER () FROM people GROUP BY town",
]


@pytest.fixture(scope="module")
def data() -> DataVector:
    counts = np.random.default_rng(3).integers(20, 60, DOMAIN.size)
    return DataVector(DOMAIN, counts)


def widths(result) -> list[list[float]]:
    """Half the width of each interval, column by column."""
    rows = [[each for each in row if not isinstance(each, str)] for row in result.rows]
    return [[(n.interval[1] - n.interval[0]) / 2 for n in column] for column in zip(*rows, strict=True)]


@pytest.mark.parametrize("sql", COMPUTED)
def test_what_is_free_is_quoted_with_the_intervals_that_it_has(data, sql):
    mechanism = mechanism_on(data, SeededNoise(1), Budget.pure(4))
    statement = compile_sql(sql, DOMAIN)
    ask(mechanism, statement)
    quote = quotes.quote(mechanism, statement, "ann")
    found = widths(ask(mechanism, statement, pay=False))
    for offer in (quote.paid, quote.free):
        assert offer is not None
        assert offer.cost == 0
        for errors, own in zip(offer.errors, found, strict=True):
            assert errors is not None
            assert errors == pytest.approx((max(own) / LAPLACE_CRITICAL, min(own) / LAPLACE_CRITICAL))


@pytest.mark.parametrize("sql", COMPUTED)
def test_what_is_paid_for_is_quoted_about_as_wide_as_it_becomes(data, sql):
    mechanism = mechanism_on(data, SeededNoise(2), Budget.pure(4))
    statement = compile_sql(sql, DOMAIN)
    offer = quotes.quote(mechanism, statement, "ann").paid
    assert offer is not None
    assert offer.cost > 0
    found = widths(ask(mechanism, statement))
    for errors, own in zip(offer.errors, found, strict=True):
        assert errors is not None
        # A quantile of whole numbers is off by whole numbers.
        assert LAPLACE_CRITICAL * errors[0] == pytest.approx(max(own), rel=0.5, abs=1.0)


def test_where_nothing_is_released_counts_are_those_of_a_stated_group(data):
    curator = Curator(data, Budget.pure(4), {"ann": Fraction(4)}, noise=SeededNoise(5))
    mechanism = Laplace(curator, query_budget=Fraction(1, 10))
    sql = f"SELECT {PERCENT}, MEDIAN(age), ROUND({PERCENT}, 3), STDDEV(age) FROM people"
    statement = compile_sql(sql, DOMAIN)
    quote = quotes.quote(mechanism, statement, "ann")
    assert quote.free is None
    assert quote.paid is not None
    [percent, median, rounded, spread] = quote.paid.errors
    assert quote.paid.group_sizes == ((1000, 1000),) * 4
    # Of a group of 1,000 with 100 %: both counts have a standard error of sqrt(2) * 10.
    assert percent is not None
    assert percent[0] == pytest.approx(100 * math.hypot(14.1, 14.1) / 1000, rel=0.05)
    assert median is not None
    assert 0 < LAPLACE_CRITICAL * median[0] < 3
    assert rounded == pytest.approx(percent, rel=0.01)
    assert spread is not None
    # The ages are taken as spread evenly; the sum of squares has a standard error of sqrt(2) * 10 * 81.
    assert 0.1 < spread[0] < 0.5
    assert "for a group of 1,000" in repr(quote)


def test_the_error_of_a_ratio_is_unknown_where_that_of_a_part_is():
    statement = compile_sql(f"SELECT {PERCENT}, MEDIAN(age) FROM people WHERE town = 'a'", DOMAIN)
    count = statement.starts[-1]
    quote = quote_message(statement, Fraction(1), Fraction(1), (None,) * count, (math.inf,) * count)
    assert quote.paid is not None
    assert quote.paid.errors == (None, None)
    assert quote.free is None


def test_a_group_whose_divisor_may_be_0_leaves_the_errors_of_the_others_known():
    statement = compile_sql(f"SELECT town, {PERCENT} FROM people GROUP BY town", DOMAIN)
    count = statement.starts[-1]
    groups = len(statement.group_labels)
    released = [Answer(1000.0, 5.0, (990.0, 1010.0), "measured")] * count
    empty = count - 1
    released[empty] = Answer(3.0, 5.0, (-7.0, 13.0), "measured")
    quote = quote_message(
        statement, Fraction(1), Fraction(1), (5.0,) * count, (5.0,) * count, None, released
    )
    for offer in (quote.paid, quote.free):
        assert offer is not None
        assert offer.unknown == 1
        assert groups > offer.unknown
        assert offer.errors[0] is not None
        assert offer.group_sizes == ((1000, 1000),)
        assert "that of 1 number is not known in advance" in repr(quote)


def test_gaussian_noise_is_quoted_with_its_own_factor(data):
    mechanism = mechanism_on(data, SeededNoise(6), Budget.zcdp(1, "1e-6"))
    statement = compile_sql(f"SELECT COUNT(*), {PERCENT} FROM people WHERE town = 'a'", DOMAIN)
    ask(mechanism, statement)
    quote = quotes.quote(mechanism, statement, "ann")
    assert quote.critical == mechanism.critical == GAUSSIAN_CRITICAL
    assert quote.free is not None
    for errors, [own] in zip(
        quote.free.errors, widths(ask(mechanism, statement, pay=False)), strict=True
    ):
        assert errors is not None
        assert quote.critical * errors[0] == pytest.approx(own, rel=1e-3)
