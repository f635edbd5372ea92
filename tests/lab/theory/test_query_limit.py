"""The query limit: what all could have alone cannot be had together, and the streams that show it."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharewell import Boolean, Domain, Integer
from sharewell.errors import PrivacyError, SharewellError, SharingError
from sharewell_lab.theory.query_limit import QueryLimit, hard_queries

DOMAIN = Domain([Integer("age", 0, 6), Boolean("moved")])

limits = st.builds(
    QueryLimit,
    alpha=st.floats(1e-3, 1e6),
    epsilon=st.fractions(Fraction(1, 1000), 100),
    analysts=st.integers(1, 1000),
)


def test_the_limits_of_a_small_case_come_out():
    limit = QueryLimit(alpha=1000, epsilon="1", analysts=8)
    assert limit.alone == pytest.approx(25)
    assert limit.together == pytest.approx(100)
    assert limit.all_alone == pytest.approx(200)
    assert limit.shortfall == pytest.approx(100)


@given(limits)
def test_all_alone_would_have_the_cube_root_of_their_number_times_as_many(limit):
    assert limit.all_alone == pytest.approx(limit.analysts ** (1 / 3) * limit.together)
    assert limit.shortfall == pytest.approx(limit.all_alone - limit.together)
    assert limit.shortfall > 0 or limit.analysts == 1


@given(limits)
def test_what_is_held_back_and_what_is_usable_are_the_whole_joint_limit(limit):
    assert limit.held_back + limit.usable == pytest.approx(limit.together)
    assert 0 <= limit.usable <= limit.together
    others = (limit.analysts - 1) * limit.alone
    assert limit.held_back == pytest.approx(min(others, limit.together))


@pytest.mark.parametrize(("analysts", "part"), [(1, 1), (2, 0.370), (3, 0.0385), (4, 0), (10, 0)])
def test_from_four_analysts_on_nothing_is_left_for_the_first(analysts, part):
    limit = QueryLimit(500, "2", analysts)
    assert limit.usable / limit.together == pytest.approx(part, abs=5e-4)


@pytest.mark.parametrize("domain", [DOMAIN, Domain([Integer("odd", 0, 4)])], ids=["even", "odd"])
def test_hard_queries_count_over_half_of_the_cells(domain):
    queries = hard_queries(domain, 40, np.random.default_rng(1))
    assert len(queries) == 40
    assert all(query.is_predicate and query.l1_norm == domain.size // 2 for query in queries)
    assert len(set(queries)) > 5, "different ones"


def test_hard_queries_are_those_of_the_generator_given():
    first, again, other = (hard_queries(DOMAIN, 9, np.random.default_rng(s)) for s in (4, 4, 5))
    assert first == again != other


def test_every_cell_is_as_likely_as_any_other_to_be_counted():
    """Fails once in about 1e7 runs with another seed: 14 cells, 6 standard errors each."""
    queries = hard_queries(DOMAIN, 2000, np.random.default_rng(6))
    often = sum(query.to_vector() for query in queries)
    assert np.abs(often - 1000).max() < 6 * math.sqrt(2000 / 4)


@pytest.mark.parametrize("analysts", [1, 2, 5])
def test_the_streams_cannot_be_told_apart_before_the_others_come(analysts):
    limit = QueryLimit(60, "1", analysts)
    streams = limit.streams(DOMAIN, np.random.default_rng(2))
    first, each = int(limit.together), int(limit.alone)
    assert streams.same_until == first
    assert streams.one_asks[:first] == streams.others_come[:first]
    assert [query for _, query in streams.one_asks] == streams.hard
    assert [query for _, query in streams.others_come] == streams.hard
    assert {analyst for analyst, _ in streams.one_asks} == {"analyst 1"}
    came = [analyst for analyst, _ in streams.others_come[first:]]
    assert came == [f"analyst {i}" for i in range(2, analysts + 1) for _ in range(each)]
    assert each >= 1


def test_a_limit_that_is_a_whole_number_is_not_rounded_down_past_it():
    limit = QueryLimit(1000, "1", 8)
    assert limit.together < 100
    streams = limit.streams(DOMAIN, np.random.default_rng(2))
    assert streams.same_until == 100
    assert len(streams.hard) == 100 + 7 * 25


def test_the_streams_bear_the_names_that_are_given():
    streams = QueryLimit(60, "1", 2).streams(DOMAIN, np.random.default_rng(2), ["ann", "ben"])
    assert [name for name, _ in streams.others_come].count("ben") == int(QueryLimit(60, "1", 2).alone)
    with pytest.raises(SharingError, match="2 different names"):
        QueryLimit(60, "1", 2).streams(DOMAIN, np.random.default_rng(2), ["ann", "ann"])


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((math.inf, "1", 2), "alpha must be"),
        ((math.nan, "1", 2), "alpha must be"),
        ((0, "1", 2), "alpha must be"),
        ((-1.0, "1", 2), "alpha must be"),
        (("9", "1", 2), "alpha must be"),
        ((1e300, "1", 2), "alpha must be"),
        ((1, 0.5, 2), "epsilon must be an exact number"),
        ((1, "0", 2), "epsilon must be greater than 0"),
        ((1, "nan", 2), "epsilon must be a plain number"),
        ((1, "1e50", 2), "epsilon must be"),
        ((1, "1", 0), "number of analysts"),
        ((1, "1", 2.5), "number of analysts"),
        ((1, "1", 10**9), "number of analysts"),
    ],
)
def test_limits_that_make_no_sense_are_refused(arguments, says):
    with pytest.raises(SharewellError, match=says) as refused:
        QueryLimit(*arguments)
    assert isinstance(refused.value, SharingError | PrivacyError)


def test_streams_that_would_be_empty_or_endless_are_refused():
    for alpha in (0.5, 1e9):
        with pytest.raises(SharingError, match="streams would have"):
            QueryLimit(alpha, "1", 2).streams(DOMAIN, np.random.default_rng(2))


def test_one_cell_has_no_halves():
    with pytest.raises(SharingError, match="no halves"):
        hard_queries(Domain([Integer("one", 3, 3)]), 1, np.random.default_rng(1))
