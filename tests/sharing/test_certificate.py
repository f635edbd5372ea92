"""The certificate against the naive oracle, its report, and the process that keeps it up."""

import json
import math
import os
from collections.abc import Iterable
from fractions import Fraction
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings

from sharewell import Budget, Domain, Integer, LinearQuery
from sharewell.errors import SharewellError, SharingError
from sharewell.mechanisms import seed
from sharewell.mechanisms.cache_reconstruct import CacheReconstruct
from sharewell.mechanisms.independent import Independent
from sharewell.mechanisms.laplace import Laplace
from sharewell.mechanisms.pmw import PrivateMultiplicativeWeights
from sharewell.query.block import ParallelBlock
from sharewell.schedulers import InOrder, Randomized, RoundRobin, WeightedRoundRobin
from sharewell.service.serialization import certificate_report
from sharewell.sharing.certificate import MEANINGS, Certificate, Report, promises, ratio
from sharewell.sharing.collective import Ask, Collective, Entry, Join, Leave
from tests.sharing.streams import Stream, streams
from tests.sharing.test_monotonicity import BOB_FIRST

LINE = Domain([Integer("age", 0, 15)])
RANGES = [LinearQuery.of(LINE, age=range(low, low + 5)) for low in range(11)]
SHARES = {"ann": Fraction(1, 4), "bob": Fraction(1, 4)}
SCR = partial(CacheReconstruct, seed=seed.identity(LINE), seed_fraction="1/2", query_budget="1/20")
PMW = partial(PrivateMultiplicativeWeights, threshold=50, updates=4, population=100)
COLLECTIVE = Collective(LINE, Budget.pure("1"), SHARES, SCR)
HAPPENED: list[Entry] = [
    Ask("ann", RANGES[0]),
    Ask("bob", RANGES[0]),
    Ask("bob", RANGES[3]),
    Join("cem", Fraction(1, 4)),
    Ask("cem", RANGES[3]),
    Ask("ann", RANGES[3], pay=False),
    Leave("bob", donate=True),
    Ask("ann", RANGES[7]),
]

#: The search of test_monotonicity plays more streams; here every entry is played in many worlds.
FEW = settings(max_examples=20)


def certified(collective: Collective, entries: Iterable[Entry], **options: Any) -> Report:
    """The certificate of a whole stream."""
    certificate = Certificate(collective, **options)
    for entry in entries:
        certificate.record(entry)
    return certificate.report()


def expected_counts(stream: Stream, analyst: str, present, threshold: float) -> int:
    """How many of an analyst's answers the oracle says are within a threshold, with those present."""
    events: Any = stream.events
    variances = stream.simulate(present).variances
    return sum(
        math.sqrt(variance) <= threshold * max(map(abs, row))
        for at, found in variances.items()
        if events[at].analyst == analyst
        for row, variance in zip(filter(any, (*events[at].rows, *events[at].then)), found, strict=True)
    )


@FEW
@given(streams())
def test_every_figure_is_that_of_the_naive_oracle(stream):
    threshold = 7.123  # hardly ever the error of any answer
    certificate = Certificate(stream.collective(), error_threshold=threshold)
    for entry in stream.entries.values():
        certificate.record(entry)
    everybody = stream.analysts
    for standing in certificate.report().standings:
        analyst = standing.analyst

        def count(present, analyst=analyst):
            return expected_counts(stream, analyst, present, threshold)

        assert standing.here == count(everybody)
        assert standing.alone == count([analyst])
        for other, found in standing.without.items():
            assert found == count([name for name in everybody if name != other])
        assert set(standing.without) == set(everybody) - {analyst}
        assert standing.worse_answers == 0


@FEW
@given(streams())
def test_nobody_is_ever_worse_off_and_the_certificate_says_so(stream):
    report = certified(stream.collective(), stream.entries.values(), error_threshold=7.123)
    answered = any(standing.answers for standing in report.standings)
    assert report.holds is (True if answered else None)
    assert report.contradicted == 0
    assert report.worst_ratio <= 1
    assert report.worst_interference <= 1


def test_the_certificate_catches_the_printed_algorithm():
    for answers, worse in (("estimate", 0), ("as-printed", 1)):
        certificate = Certificate(BOB_FIRST.collective(answers), error_threshold=10.0)
        for entry in BOB_FIRST.entries.values():
            certificate.record(entry)
        report = certificate.report()
        assert report.of("ann").worse_answers == worse
        assert report.holds is not bool(worse)


def test_laplace_is_seen_to_let_the_busy_take_from_the_others():
    make = partial(Laplace, query_budget="1/20")
    collective = Collective(LINE, Budget.pure("1/2"), SHARES, make)
    report = certified(
        collective, [Ask("ann", RANGES[0])] * 10 + [Ask("bob", RANGES[0])] * 5, error_threshold=100.0
    )
    assert report.of("bob").here == 0
    assert report.of("bob").alone == 5
    assert report.worst_ratio == math.inf
    assert not report.holds
    assert certificate_report(report).worst_ratio is None


def test_any_utility_can_be_certified():
    def precision(outcome):
        return 1 / outcome.error**2

    report = certified(COLLECTIVE, HAPPENED, error_threshold=20.0, utility=precision)
    assert report.holds
    assert 0 < report.of("bob").alone < report.of("bob").here


def test_a_report_is_plain_data_too():
    report = certified(COLLECTIVE, HAPPENED, error_threshold=20.0)
    plain = json.loads(certificate_report(report).model_dump_json())
    assert [row["analyst"] for row in plain["analysts"]] == ["ann", "bob", "cem"]
    assert plain["entries"] == len(HAPPENED)
    ann = report.of("ann")
    assert ann.answers == 3
    assert ann.ratio == ratio(ann.alone, ann.here)
    with pytest.raises(SharingError, match="zoe"):
        report.of("zoe")


def test_what_cannot_happen_changes_nothing():
    certificate = Certificate(COLLECTIVE, error_threshold=20.0)
    certificate.record(HAPPENED[0])
    before = certificate.report()
    wrongs: list[Entry] = [
        Ask("zoe", RANGES[0]),
        Join("cem", Fraction(3)),
        Join("ann", Fraction(1, 8)),
    ]
    for wrong in wrongs:
        with pytest.raises(SharewellError):
            certificate.record(wrong)
    assert certificate.report() == before


def test_a_certificate_keeps_what_was_bought_and_not_what_was_asked():
    certificate = Certificate(COLLECTIVE, error_threshold=20.0)
    for entry in HAPPENED:
        certificate.record(entry)
    kept = len(certificate._changes)
    assert kept == 5, "three questions that bought something, who joined and who left"
    for at in range(500):
        certificate.record(Ask("ann", RANGES[at % 11], pay=False))
    assert len(certificate._changes) == kept
    assert certificate.report().of("ann").answers == 503


@FEW
@given(streams())
def test_analysts_who_join_late_are_compared_from_the_first_question_on(stream):
    """What others would have had without the newcomer is as if the newcomer had been expected."""
    certificate = Certificate(stream.collective(), error_threshold=7.123)
    for entry in stream.entries.values():
        certificate.record(entry)
        if isinstance(entry, Join):
            for standing in certificate.report().standings:
                if standing.analyst != entry.analyst:
                    assert standing.without[entry.analyst] == standing.here


def test_where_errors_are_secret_there_are_promises_and_no_figures():
    certificate = Certificate(Collective(LINE, Budget.pure("1"), SHARES, PMW), error_threshold=20.0)
    certificate.record(Ask("ann", RANGES[0]))
    report = certificate.report()
    assert report.standings == ()
    assert not report.exact
    assert report.holds is None
    assert {promise.status for promise in report.promises} == {"not promised"}
    assert certificate_report(report).holds is None
    assert certificate_report(report).worst_ratio is None


def test_a_question_of_several_blocks_is_answered_as_a_whole_or_not_at_all():
    halves = tuple(ParallelBlock(LINE, [half]) for half in (RANGES[0], RANGES[5]))
    make = partial(Laplace, query_budget="1/20")
    collective = Collective(
        LINE, Budget.pure("3/20"), dict.fromkeys(("ann", "bob"), Fraction(3, 40)), make
    )
    report = certified(
        collective,
        [Ask("ann", halves), Ask("ann", halves), Ask("bob", RANGES[3])],
        error_threshold=100.0,
    )
    assert report.of("ann").here == 2, "the second question would have had one answer of two"
    assert report.of("bob").here == 1, "what it did not take is still there"


# Promises


def made(make):
    return Collective(LINE, Budget.pure("1"), SHARES, make).open(COLLECTIVE.empty)


def statuses(make, scheduler=None):
    return {promise.desideratum: promise.status for promise in promises(made(make), scheduler)}


SCHEDULERS: list[Any] = [None, InOrder(SHARES), RoundRobin(SHARES), Randomized(list(SHARES))]


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_what_is_proven_of_sharing_by_estimates_is_proven_under_every_scheduler(scheduler):
    assert set(statuses(SCR, scheduler).values()) == {"proven"}
    assert set(statuses(partial(Independent, make=PMW), scheduler).values()) == {"proven"}
    printed = partial(SCR, answers="as-printed")
    assert set(statuses(printed, scheduler).values()) == {"not promised"}


@pytest.mark.parametrize("make", [PMW, partial(Laplace, query_budget="1/20")])
def test_turns_promise_the_sharing_incentive_of_a_pot_under_conditions(make):
    assert set(statuses(make).values()) == {"not promised"}
    in_turns: list[Any] = [RoundRobin(SHARES), WeightedRoundRobin({"ann": 2, "bob": 1})]
    for scheduler in (*in_turns, Randomized(list(SHARES))):
        assert statuses(make, scheduler) == {
            "sharing incentive": "under conditions",
            "analyst monotonicity": "not promised",
            "non-interference": "not promised",
        }


def test_passing_over_the_silent_is_told_as_a_weaker_promise():
    strict, lax = (promises(made(PMW), RoundRobin(SHARES, idle_after=after))[0] for after in (None, 5))
    assert set(strict.assumptions) < set(lax.assumptions)


def test_every_promise_says_what_it_means_and_where_its_page_is():
    for promise in promises(made(SCR), RoundRobin(SHARES)):
        assert promise.meaning == MEANINGS[promise.desideratum]
        assert promise.assumptions
        assert os.path.exists(os.path.join("docs", promise.page))
