"""The sparse vector, against its definition; its privacy is audited in test_audit.py."""

import math
from fractions import Fraction
from typing import ClassVar

import pytest

from sharewell import Domain, Integer, LinearQuery
from sharewell.errors import Exhausted, PrivacyError
from sharewell.privacy.ledger import MemoryLedger
from sharewell.privacy.sparse_vector import SparseVector, SparseVectorPlan
from sharewell_lab.noise import NoNoise, SeededNoise
from tests.privacy.tables import LINE, curator

ALL = LinearQuery.all(LINE)


def sparse_vector(truth: int, noise=None, **plan) -> SparseVector:
    plan = {"epsilon": Fraction(1), "threshold": 10, "positives": 3, **plan}
    made, noise = SparseVectorPlan(**plan), noise or NoNoise()
    return SparseVector(
        made, LINE, lambda _: truth, noise, lambda *_: None, made.arm(noise), made.positives
    )


def test_without_noise_it_says_which_guesses_are_far():
    test = sparse_vector(100, positives=99)
    assert [test.exceeds(ALL, g) for g in (90, 91, 100, 109, 110, -500)] == [
        True,
        False,
        False,
        False,
        True,
        True,
    ]


def test_it_stops_for_good_after_its_positives():
    test = sparse_vector(100, positives=2)
    answers = [test.exceeds(ALL, g) for g in (100, 0, 100, 0)]
    assert answers == [False, True, False, True]
    for _ in range(2):
        with pytest.raises(Exhausted, match="its 2 positive answers"):
            test.exceeds(ALL, 100)


@pytest.mark.parametrize("positives", [1, 7, 60])
def test_the_scales_are_those_of_the_corrected_algorithm(positives):
    plan = SparseVectorPlan(Fraction(1, 2), 10, positives, sensitivity=3)
    e1, e2 = plan.parts
    assert e1 + e2 == Fraction(1, 2)
    assert float(e2 / e1) == pytest.approx((2 * positives) ** (2 / 3), abs=1e-3)
    assert plan.threshold_scale == pytest.approx(3 / float(e1))
    assert plan.query_scale == pytest.approx(2 * positives * 3 / float(e2))


def test_the_threshold_noise_is_drawn_once_and_the_test_noise_each_time():
    drawn = []

    class Counting(SeededNoise):
        def laplace(self, scale, size):
            drawn.append(scale)
            return super().laplace(scale, size)

    test = sparse_vector(0, Counting(1), threshold=10_000)
    for _ in range(5):
        test.exceeds(ALL, 0)
    assert drawn == [test.plan.threshold_scale] + [test.plan.query_scale] * 5


def test_a_query_that_one_row_changes_by_more_than_was_paid_for_is_refused():
    test = sparse_vector(0)
    with pytest.raises(PrivacyError, match="more than the 1 paid for"):
        test.exceeds(LinearQuery.product(LINE, {"age": [0, 1, 2, 3]}), 0)
    wide = sparse_vector(0, sensitivity=3)
    assert not wide.exceeds(LinearQuery.product(LINE, {"age": [0, 1, 2, 3]}), 0)
    difference = LinearQuery.product(LINE, {"age": [1, -1, 0, 0]})
    assert not sparse_vector(0).exceeds(difference, 0)
    with pytest.raises(PrivacyError, match="more than the 1 paid for"):
        sparse_vector(0, neighbours="replace-one").exceeds(difference, 0)


def test_a_query_over_another_domain_is_refused():
    other = Domain([Integer("age", 0, 3, other="other")])
    with pytest.raises(PrivacyError, match="different domains"):
        sparse_vector(0).exceeds(LinearQuery.all(other), 0)


class Spy(LinearQuery):
    """A query of weight 1 that answers with its own code."""

    seen: ClassVar[list[object]] = []

    def dot(self, array):
        self.seen.append(array)
        return super().dot(array) * 1000


def test_the_code_of_a_query_never_sees_the_counts():
    ledger = MemoryLedger()
    test = curator(ledger=ledger).sparse_vector(epsilon="0.1", threshold=3, positives=5, payer="ann")
    events = len(list(ledger.events()))
    with pytest.raises(PrivacyError, match="Cannot measure a Spy"):
        test.exceeds(Spy.cell(LINE, 2), 0)
    assert Spy.seen == []
    assert test.positives_left == 5
    assert len(list(ledger.events())) == events


def test_what_a_query_remembers_about_itself_is_not_believed():
    heavy = LinearQuery.product(LINE, {"age": [0, 1, 2, 3]})
    heavy.__dict__["key"] = ALL.key  # as if it had computed it
    test = sparse_vector(0)
    assert not test.exceeds(ALL, 0)
    with pytest.raises(PrivacyError, match="more than the 1 paid for"):
        test.exceeds(heavy, 0)


@pytest.mark.parametrize("guess", [math.nan, math.inf, -math.inf, 1e300])
def test_a_guess_that_is_no_number_is_refused_and_costs_no_positive(guess):
    test = sparse_vector(0)
    with pytest.raises(PrivacyError, match="finite"):
        test.exceeds(ALL, guess)
    assert test.positives_left == 3


def test_a_guess_is_rounded_to_a_whole_number():
    assert sparse_vector(100).exceeds(ALL, 90.4)
    assert not sparse_vector(100).exceeds(ALL, 90.6)


def test_a_positive_is_recorded_before_it_is_told_or_not_told_at_all():
    def fail(*_):
        raise OSError("disk full")

    plan = SparseVectorPlan(Fraction(1), 10, 1)
    test = SparseVector(plan, LINE, lambda q: 0, NoNoise(), fail, 10, 1)
    assert not test.exceeds(ALL, 100), "an error would tell a yes that the ledger does not count"
    assert test.positives_left == 0, "an answer that was decided is spent, told or not"


def test_it_reads_the_curators_data():
    test = curator(5, 0, 7, 1).sparse_vector(epsilon="0.1", threshold=3, positives=5, payer="ann")
    assert [test.exceeds(LinearQuery.cell(LINE, 2), g) for g in (7, 5, 4, 10)] == [
        False,
        False,
        True,
        True,
    ]
