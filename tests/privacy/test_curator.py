"""The curator: charge, store, only then touch the data; and never past a share."""

import json
import logging
import threading
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharewell import Block, DataVector, Domain, Integer, LinearQuery
from sharewell.errors import LedgerUnavailable, OverBudget, PrivacyError, SharewellError, UnknownPayer
from sharewell.privacy import measurement
from sharewell.privacy.budget import Budget
from sharewell.privacy.curator import Curator
from sharewell.privacy.history import stored_scales
from sharewell.privacy.kronecker import ComposedRows
from sharewell.privacy.ledger import (
    Armed,
    Charged,
    Done,
    Event,
    Exceeded,
    Granted,
    MemoryLedger,
    Opened,
    Released,
)
from sharewell.privacy.measurement import MeasureRequest, Reservation, scale_runs
from sharewell.query import workload
from sharewell.query.block import ParallelBlock
from sharewell.query.measure import Measure
from sharewell_lab.noise import NoNoise, SeededNoise
from tests.privacy.tables import LINE, curator, table

HISTOGRAM = workload.identity(LINE)
TOTAL = workload.total(LINE)


def test_without_noise_a_measurement_is_the_exact_answer():
    measured = curator(5, 0, 7, 1).measure(workload.prefixes(LINE), "1/10", "ann")
    assert measured.values.tolist() == [5, 5, 12, 13]


def test_a_single_query_can_be_measured_without_a_block():
    assert curator(5, 0, 7, 1).measure(LinearQuery.cell(LINE, 2), "1/10", "ann").values.tolist() == [7]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"shares": ["ann"]}, "a mapping from names"),
        ({"budget": "1"}, "needs a data vector and a budget"),
    ],
)
def test_a_curator_made_of_the_wrong_things_says_what_it_needs(options, says):
    with pytest.raises(PrivacyError, match=says):
        curator(**options)


def test_a_measurement_charges_its_payer_alone():
    kernel = curator()
    measured = kernel.measure(TOTAL, "0.1", "ann")
    assert measured.cost == Fraction(1, 10)
    assert kernel.spent("ann") == Fraction(1, 10)
    assert kernel.left("ann") == Fraction(4, 10)
    assert kernel.spent("bob") == 0


def test_several_payers_can_share_a_bill():
    kernel = curator()
    bill = {"ann": Fraction(1, 10), "bob": Fraction(1, 5)}
    kernel.measure(HISTOGRAM, "3/10", bill)
    assert (kernel.spent("ann"), kernel.spent("bob")) == (Fraction(1, 10), Fraction(1, 5))
    with pytest.raises(PrivacyError, match="do not sum to the cost"):
        kernel.measure(HISTOGRAM, "0.5", bill)


def test_the_noise_is_that_of_sensitivity_over_cost():
    noise = SeededNoise(3)
    kernel = curator(noise=noise, total="1000000", shares={"ann": "1000000"})
    prefixes = workload.prefixes(LINE)  # sensitivity 4
    runs = np.array([kernel.measure(prefixes, "2", "ann").values for _ in range(4000)])
    reported = kernel.variances(prefixes, "2")
    assert reported == pytest.approx([2 * 2.0**2] * 4, rel=0.05)
    assert runs.var(axis=0) == pytest.approx(reported, rel=0.15)
    assert runs.mean(axis=0) == pytest.approx([5, 5, 12, 13], abs=0.3)


def test_the_gaussian_currency_uses_the_l2_norm():
    kernel = curator(budget=Budget.zcdp("50", "1e-6"), shares={"ann": "1"}, noise=SeededNoise(4))
    prefixes = workload.prefixes(LINE)
    assert kernel.variances(prefixes, "1/100") == pytest.approx([4 / (2 * 0.01)] * 4)
    values = [kernel.measure(HISTOGRAM, "1/100000", "ann").values[1] for _ in range(3000)]
    assert np.var(values) == pytest.approx(1 / (2 * 0.00001), rel=0.15)


def test_replace_one_doubles_the_noise_of_a_histogram():
    near, far = curator(), curator(neighbours="replace-one")
    assert np.array_equal(far.scales(HISTOGRAM, "1/10"), 2 * near.scales(HISTOGRAM, "1/10"))


def test_rows_that_share_no_cell_are_each_measured_as_if_alone():
    by_age = [0, 0, 1, 2]
    sums = ParallelBlock.group_by(LinearQuery.product(LINE, {"age": [1, 2, 30, 4]}), {0: by_age})
    whole = ParallelBlock(LINE, [query.primitive for query in sums])
    kernel = curator(noise=SeededNoise(6), total="100000", shares={"ann": "100000"})
    assert kernel.scales(whole, "1").tolist() == [2.0, 1.0, 1.0]
    runs = np.array([kernel.measure(whole, "1", "ann").values for _ in range(4000)])
    assert runs.var(axis=0) == pytest.approx(kernel.variances(whole, "1"), rel=0.15)


def test_a_charge_beyond_the_share_is_refused_and_changes_nothing():
    ledger = MemoryLedger()
    kernel = curator(ledger=ledger)
    kernel.measure(TOTAL, "0.45", "ann")
    before = list(ledger.events())
    with pytest.raises(OverBudget, match=r"ann has 0\.05 left, and this costs 0\.1"):
        kernel.measure(TOTAL, "0.1", "ann")
    assert list(ledger.events()) == before
    assert kernel.left("ann") == Fraction(1, 20)
    kernel.measure(TOTAL, "0.05", "ann")
    assert kernel.left("ann") == 0


def test_a_bill_is_refused_whole_when_one_payer_cannot_pay():
    kernel = curator()
    kernel.measure(TOTAL, "0.5", "bob")
    with pytest.raises(OverBudget, match="bob"):
        kernel.measure(TOTAL, "0.2", {"ann": Fraction(1, 10), "bob": Fraction(1, 10)})
    assert kernel.spent("ann") == 0


@pytest.mark.parametrize(
    ("ask", "says"),
    [
        (lambda k: k.measure(TOTAL, "0.1", "eve"), "No payer 'eve'"),
        (lambda k: k.measure(TOTAL, "0", "ann"), "greater than 0"),
        (lambda k: k.measure(TOTAL, "-1", "ann"), "greater than 0"),
        (lambda k: k.measure(TOTAL, 0.1, "ann"), "must be an exact number"),
        (lambda k: k.measure(TOTAL, "1e-30", "ann"), "too small"),
        (lambda k: k.measure(Block(LINE, []), "0.1", "ann"), "without rows"),
        (lambda k: k.measure(TOTAL, "0.1", {}), "do not sum to the cost"),
        (
            lambda k: k.measure(TOTAL, "0.1", {"ann": Fraction(1), "bob": Fraction(-9, 10)}),
            "greater than 0",
        ),
        (
            lambda k: k.measure(workload.total(Domain([Integer("age", 0, 4)])), "0.1", "ann"),
            "different domains",
        ),
        (
            lambda k: k.measure(Block(LINE, [LinearQuery.all(LINE) * Fraction(1, 2)]), "0.1", "ann"),
            "primitive",
        ),
        (lambda k: k.measure("SELECT COUNT(*)", "0.1", "ann"), "Cannot measure a str"),
        (lambda k: k.measure(TOTAL, "0.1", None), "needs a payer"),
        (lambda k: k.measure(TOTAL, "0.1", ["ann"]), "needs a payer"),
        (lambda k: k.grant("ann", "0.1"), "already holds"),
        (lambda k: k.grant("eve", "0.1"), "exceeds the unallocated"),
        (lambda k: k.grant("", "0.1"), "non-empty string"),
        (
            lambda k: k.sparse_vector(epsilon="0.1", threshold=5, positives=0, payer="ann"),
            "positives",
        ),
        (
            lambda k: k.sparse_vector(epsilon="0.1", threshold=-5, positives=1, payer="ann"),
            "threshold",
        ),
        (
            lambda k: k.sparse_vector(epsilon="0.6", threshold=5, positives=1, payer="ann"),
            "ann has 0.5",
        ),
    ],
)
def test_bad_input_is_refused_before_anything_is_charged(ask, says):
    ledger = MemoryLedger()
    kernel = curator(ledger=ledger)
    before = list(ledger.events())
    with pytest.raises(SharewellError, match=says):
        ask(kernel)
    assert list(ledger.events()) == before
    assert kernel.spent("ann") == kernel.spent("bob") == 0


def test_unknown_payers_have_their_own_error():
    with pytest.raises(UnknownPayer):
        curator().left("eve")


DISK_FULL = OSError("disk full")


class WatchfulLedger(MemoryLedger):
    """A ledger that may fail, and that notes whether the data had been read when it was called."""

    def __init__(self, fail_on: type | None = None, failure: Exception = DISK_FULL) -> None:
        super().__init__()
        self.fail_on = fail_on
        self.failure = failure
        self.read_before_charge: list[bool] = []
        self.batches: list[list[Event]] = []
        self.data = WatchedData(LINE, np.array([5, 0, 7, 1]))
        object.__setattr__(self.data, "was_read", False)

    def append_many(self, events):
        for event in events:
            if isinstance(event, Charged):
                self.read_before_charge.append(self.data.was_read)
            if self.fail_on and isinstance(event, self.fail_on):
                raise self.failure
        self.batches.append([*events])
        return super().append_many(events)


class WatchedData(DataVector):
    """Data that notes when its counts are read."""

    was_read = False

    def __getattribute__(self, name):
        if name == "counts":
            object.__setattr__(self, "was_read", True)
        return super().__getattribute__(name)


def test_the_charge_is_stored_before_the_data_is_read():
    ledger = WatchfulLedger()
    kernel = curator(data=ledger.data, ledger=ledger)
    kernel.measure(HISTOGRAM, "0.1", "ann")
    assert ledger.read_before_charge == [False]
    assert ledger.data.was_read
    kinds = [type(event) for event in ledger.events()]
    assert kinds == [Opened, Granted, Granted, Charged, Released]


def test_a_ledger_that_cannot_store_the_charge_stops_everything():
    ledger = WatchfulLedger(fail_on=Charged)
    kernel = curator(data=ledger.data, ledger=ledger)
    with pytest.raises(OSError, match="disk full"):
        kernel.measure(HISTOGRAM, "0.1", "ann")
    assert not ledger.data.was_read
    assert kernel.spent("ann") == Fraction(1, 10), "nobody knows whether it reached the disk: no refund"


def test_a_ledger_that_cannot_store_the_release_lets_nothing_out_and_refunds_nothing():
    ledger = WatchfulLedger(fail_on=Released)
    kernel = curator(data=ledger.data, ledger=ledger)
    with pytest.raises(OSError, match="disk full"):
        kernel.measure(HISTOGRAM, "0.1", "ann")
    assert kernel.spent("ann") == Fraction(1, 10)


def test_what_the_ledger_is_certain_not_to_have_stored_is_not_charged():
    failure = LedgerUnavailable("There is no room.")
    ledger = WatchfulLedger(fail_on=Charged, failure=failure)
    kernel = curator(data=ledger.data, ledger=ledger)
    with pytest.raises(LedgerUnavailable):
        kernel.measure(HISTOGRAM, "0.1", "ann")
    assert not ledger.data.was_read
    assert kernel.spent("ann") == 0
    failure.uncertain = True
    with pytest.raises(LedgerUnavailable):
        kernel.measure(HISTOGRAM, "0.1", "ann")
    assert kernel.spent("ann") == Fraction(1, 10), "it may have been stored after all"


def reserve(kernel, block=TOTAL, cost="0.1", payer="ann") -> Reservation:
    return kernel.reserve(MeasureRequest(block, Fraction(cost), payer))


def test_several_reservations_are_charged_in_one_commit_before_any_data_is_read():
    ledger = WatchfulLedger()
    kernel = curator(data=ledger.data, ledger=ledger)
    reserved = [reserve(kernel, HISTOGRAM), reserve(kernel, TOTAL, "0.2", "bob")]
    assert (kernel.spent("ann"), kernel.spent("bob")) == (Fraction(1, 10), Fraction(1, 5))
    assert len(list(ledger.events())) == 3, "a reservation is not a charge"
    first, second = kernel.charge(reserved, [Done("cem")])
    kernel.store([first, second])
    assert ledger.read_before_charge == [False, False]
    kinds = [type(event) for event in ledger.events()]
    assert kinds[3:] == [Done, Charged, Charged, Released, Released]
    assert [first.charge, second.charge] == [4, 5]
    assert (kernel.spent("ann"), kernel.spent("bob")) == (Fraction(1, 10), Fraction(1, 5))
    assert [m.values.tolist() for m in curator(ledger=ledger).history(Block.from_json)] == [
        first.values.tolist(),
        second.values.tolist(),
    ]


def test_a_reservation_is_charged_once_or_released_once():
    kernel = curator()
    charged, released = reserve(kernel), reserve(kernel)
    kernel.charge([charged])
    kernel.release(released)
    assert kernel.spent("ann") == Fraction(1, 10)
    for used in (charged, released):
        with pytest.raises(PrivacyError, match="used once"):
            kernel.charge([used])
        with pytest.raises(PrivacyError, match="used once"):
            kernel.release(used)


def test_what_is_reserved_cannot_be_reserved_again():
    kernel = curator()
    reserve(kernel, TOTAL, kernel.left("ann"))
    with pytest.raises(OverBudget):
        reserve(kernel, TOTAL, "0.01")


def test_events_may_be_stored_beside_what_was_released_which_must_be_kept():
    ledger = MemoryLedger()
    kernel = curator(ledger=ledger)
    [found] = kernel.charge([reserve(kernel)])
    for lossy in ([], [Done("ann")], [Released(found.charge, (7,))], found.released * 2):
        with pytest.raises(PrivacyError, match="stored as it was released"):
            kernel.store([found], lossy)
    kernel.store([found], [Done("ann"), *found.released, Done("bob")])
    assert [type(event) for event in list(ledger.events())[-3:]] == [Done, Released, Done]
    with pytest.raises(PrivacyError, match="Only the kernel"):
        kernel.record([Granted("eve", Fraction(1))])


def test_an_observer_sees_every_event_once_in_order_as_it_is_read_and_as_it_is_stored():
    ledger, seen, again = MemoryLedger(), [], []
    kernel = curator(ledger=ledger, observer=lambda *each: seen.append(each))
    kernel.measure(TOTAL, "0.1", "ann")
    kernel.record([Done("ann")])
    assert seen == list(enumerate(ledger.events()))
    curator(ledger=ledger, observer=lambda *each: again.append(each))
    assert again == seen


@given(st.lists(st.tuples(st.sampled_from(["ann", "bob"]), st.integers(1, 9)), max_size=30))
def test_no_sequence_of_charges_passes_a_share_and_the_ledger_remembers_all(charges):
    ledger = MemoryLedger()
    kernel = curator(ledger=ledger)
    for payer, twentieths in charges:
        affordable = kernel.left(payer) >= Fraction(twentieths, 20)
        try:
            kernel.measure(TOTAL, Fraction(twentieths, 20), payer)
        except OverBudget:
            assert not affordable
        else:
            assert affordable
    for payer in ("ann", "bob"):
        charged = sum(e.bill.get(payer, 0) for e in ledger.events() if isinstance(e, Charged))
        assert kernel.spent(payer) == charged <= Fraction(1, 2)
    reopened = curator(ledger=ledger)
    assert [reopened.spent(p) for p in ("ann", "bob")] == [kernel.spent(p) for p in ("ann", "bob")]


def test_a_ledger_opens_only_for_the_dataset_it_began_with():
    ledger = MemoryLedger()
    curator(ledger=ledger)
    for options, told in (
        ({"total": "2"}, "begun with epsilon = 1; it cannot be opened with epsilon = 2."),
        ({"neighbours": "replace-one"}, "begun with neighbours = add-remove; it cannot"),
        ({"shares": {"ann": "1/3", "bob": "1/2"}}, "granted ann a share of 1/2, not 1/3"),
    ):
        with pytest.raises(PrivacyError, match=told):
            curator(ledger=ledger, **options)
    other = DataVector(Domain([Integer("age", 0, 99)]), np.zeros(100, dtype=np.int64))
    with pytest.raises(PrivacyError, match="begun with other attributes"):
        Curator(other, Budget.pure("1"), {"ann": "1/2"}, ledger=ledger)


def test_over_budget_charges_from_many_threads_never_pass():
    ledger = MemoryLedger()
    kernel = curator(ledger=ledger)
    start = threading.Barrier(16)
    passed: list[int] = []

    def spend() -> None:
        start.wait()
        for _ in range(40):
            try:
                kernel.measure(TOTAL, "1/100", "ann")
                passed.append(1)
            except OverBudget:
                pass

    threads = [threading.Thread(target=spend) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(passed) == 50, "exactly the fifty that the share of 1/2 pays for"
    assert kernel.left("ann") == 0
    assert sum(isinstance(e, Released) for e in ledger.events()) == 50


def test_a_share_can_be_granted_later_from_what_nobody_holds():
    kernel = curator(shares={"ann": "1/2"})
    kernel.grant("cem", "1/4")
    kernel.measure(TOTAL, "1/4", "cem")
    with pytest.raises(OverBudget, match=r"At most 0\.25"):
        kernel.grant("dan", "1/3")


def test_a_sparse_vector_is_paid_for_in_full_and_its_positives_are_recorded():
    ledger = MemoryLedger()
    kernel = curator(ledger=ledger)
    test = kernel.sparse_vector(epsilon="0.2", threshold=5, positives=1, payer="ann")
    assert kernel.spent("ann") == Fraction(1, 5)
    assert not test.exceeds(TOTAL[0], 10)
    assert test.exceeds(TOTAL[0], 100)
    assert [e.guess for e in ledger.events() if isinstance(e, Exceeded)] == [100]
    assert kernel.spent("ann") == Fraction(1, 5)


def test_a_sparse_vector_goes_on_after_a_restart_where_it_stopped():
    ledger = MemoryLedger()
    kernel = curator(ledger=ledger, noise=SeededNoise(8))
    test = kernel.sparse_vector(epsilon="0.2", threshold=1000, positives=3, payer="ann")
    assert test.exceeds(TOTAL[0], 100_000)
    assert not test.exceeds(TOTAL[0], 13)
    [again] = curator(ledger=ledger).sparse_vectors()
    assert again.positives_left == 2
    assert again._noisy_threshold == test._noisy_threshold, "redrawing it would cost its epsilon again"
    assert again.plan == test.plan
    armed = next(e for e in ledger.events() if isinstance(e, Armed))
    assert str(armed.noisy_threshold) not in repr(armed)


def test_under_zcdp_a_sparse_vector_costs_half_its_epsilon_squared():
    kernel = curator(budget=Budget.zcdp("5", "1e-6"), shares={"ann": "1/10"})
    kernel.sparse_vector(epsilon="0.2", threshold=5, positives=1, payer="ann")
    assert kernel.spent("ann") == Fraction(1, 50)


CANARY = 7_654_321


def test_a_canary_count_never_appears_in_a_log_a_repr_or_an_error(caplog, capsys):
    """True counts of 7654321 everywhere, real noise, everything shown that a person could see."""
    caplog.set_level(logging.DEBUG)
    shown: list[str] = []
    ledger = MemoryLedger()
    data = table(CANARY, CANARY, CANARY, CANARY)
    # Noise wide enough that a released value begins with the canary's digits about never.
    kernel = Curator(data, Budget.pure("1"), {"ann": "1"}, ledger=ledger)
    measured = kernel.measure(TOTAL, "1/1000000", "ann")
    test = kernel.sparse_vector(epsilon="1/10", threshold=5, positives=1, payer="ann")
    test.exceeds(TOTAL[0], 10)
    for bad in (
        lambda: kernel.measure(TOTAL, "5", "ann"),
        lambda: kernel.measure(TOTAL, "0.1", "eve"),
        lambda: kernel.measure(Block(LINE, []), "0.1", "ann"),
        lambda: test.exceeds(TOTAL[0], float("nan")),
        lambda: test.exceeds(TOTAL[0], 10),
    ):
        with pytest.raises(SharewellError) as refused:
            bad()
        shown += [str(refused.value), repr(refused.value), repr(refused.value.args)]
    shown += [repr(o) for o in (kernel, data, test, measured, ledger, *ledger.events())]
    shown += [str(o) for o in (kernel, data, test)]
    shown += [caplog.text, *capsys.readouterr()]
    for text in shown:
        for secret in (CANARY, 4 * CANARY):
            assert str(secret) not in text.replace(",", "").replace("_", "")


def test_those_who_left_can_neither_pay_nor_leave_again():
    ledger = MemoryLedger()
    kernel = curator(ledger=ledger)
    kernel.retire("ann")
    assert kernel.left("ann") == 0
    for again in (kernel, curator(ledger=ledger)):
        assert again.payers == ("bob",)
        with pytest.raises(UnknownPayer, match="ann has left"):
            again.measure(TOTAL, "0.1", "ann")
        with pytest.raises(UnknownPayer, match="ann has left"):
            again.retire("ann")


def test_history_repeats_every_measurement_as_it_was_released():
    ledger = MemoryLedger()
    kernel = curator(ledger=ledger, noise=SeededNoise(2))
    both = {"ann": Fraction(1, 10), "bob": Fraction(1, 10)}
    made = [
        kernel.measure(HISTOGRAM, "0.1", "ann"),
        kernel.measure(TOTAL, "0.2", both),
        kernel.measure(ParallelBlock.of(HISTOGRAM), "0.1", "bob"),
    ]
    again = curator(ledger=ledger).history(Block.from_json)
    for old, new in zip(made, again, strict=True):
        assert new.block.to_json() == old.block.to_json()
        assert np.array_equal(new.values, old.values)
        assert np.array_equal(new.variances, old.variances)
        assert (new.cost, new.bill, new.charge) == (old.cost, old.bill, old.charge)
    view = curator(ledger=ledger).alone("bob")
    assert [m.charge for m in view.history(Block.from_json)] == [made[2].charge]
    assert view.history(Block.from_json) == [], "handed over once"


def test_a_seed_of_many_rows_is_charged_with_one_scale_for_each_part():
    domain = Domain([Integer("a", 0, 499), Integer("b", 0, 499)])
    cells, by_a = ({0: None, 1: None}, Fraction(3, 4)), ({0: None}, Fraction(1, 4))
    rows = ComposedRows(domain, [cells, by_a], "cells and one marginal")
    empty = DataVector(domain, np.zeros(domain.size, dtype=np.int64))
    kernel = curator(data=empty, ledger=MemoryLedger())
    reserved = kernel.reserve(MeasureRequest(rows, Fraction(1, 10), "ann"))
    charged = reserved.charged
    assert len(reserved.scales) == 250_500
    assert [count for _, count in charged.purpose["scales"]] == [250_000, 500]
    assert len(json.dumps(charged.purpose)) < 1_000
    assert np.array_equal(stored_scales(charged, 250_500), reserved.scales)


@given(st.lists(st.tuples(st.sampled_from([0.0, 0.5, 2.0, 1e300, 5e-324]), st.integers(1, 4))))
def test_runs_of_scales_give_every_scale_again(parts):
    scales = np.array([scale for scale, count in parts for _ in range(count)], dtype=np.float64)
    runs = scale_runs(scales)
    assert all(one[0] != other[0] for one, other in pairwise(runs))
    charged = Charged({}, {"scales": json.loads(json.dumps(runs))})
    assert stored_scales(charged, len(scales)).tolist() == scales.tolist()


@pytest.fixture
def few_values_per_event(monkeypatch):
    monkeypatch.setattr(measurement, "MAX_VALUES", 3)


@pytest.mark.usefixtures("few_values_per_event")
def test_many_values_are_released_in_several_events_of_one_commit():
    ledger = WatchfulLedger()
    kernel = curator(ledger=ledger, noise=SeededNoise(3))
    made = kernel.measure(HISTOGRAM, "0.1", "ann")
    parts = [event for event in ledger.events() if isinstance(event, Released)]
    assert [(len(part.values), part.rest) for part in parts] == [(3, 1), (1, 0)]
    assert list(ledger.events())[-2:] == parts == made.released
    assert sum(any(isinstance(each, Released) for each in batch) for batch in ledger.batches) == 1
    [again] = curator(ledger=ledger).history(Block.from_json)
    assert again.values.tolist() == made.values.tolist()


@pytest.mark.usefixtures("few_values_per_event")
def test_what_a_crash_left_unreleased_is_completed_in_several_events():
    ledger = MemoryLedger()
    kernel = curator(ledger=ledger)
    kernel.charge([reserve(kernel, HISTOGRAM)])
    again = curator(ledger=ledger)
    [found] = again.complete(Block.from_json)
    assert list(ledger.events())[-2:] == found.released
    for history in (again.history, curator(ledger=ledger).history):
        assert [each.values.tolist() for each in history(Block.from_json)] == [found.values.tolist()]


@pytest.mark.usefixtures("few_values_per_event")
def test_a_ledger_with_a_part_of_a_release_is_refused_and_releases_nothing_more():
    ledger = MemoryLedger()
    kernel = curator(ledger=ledger)
    [found] = kernel.charge([reserve(kernel, HISTOGRAM)])
    ledger.append(found.released[0])
    again = curator(ledger=ledger)
    assert again.complete(Block.from_json) == [], "its values have left the kernel"
    with pytest.raises(PrivacyError, match="a part of a release"):
        again.history(Block.from_json)
    for wrong in (found.released[0], Released(found.charge, (1, 2)), Released(found.charge, (), 1)):
        broken = MemoryLedger()
        broken.append_many([*ledger.events(), wrong, wrong])
        with pytest.raises(PrivacyError):
            curator(ledger=broken).history(Block.from_json)


def test_a_view_shares_the_budget_and_shows_one_payer():
    kernel = curator()
    view = kernel.alone("ann")
    assert view.payers == ("ann",)
    view.measure(TOTAL, "0.3", "ann")
    assert kernel.left("ann") == Fraction(1, 5)
    with pytest.raises(UnknownPayer):
        view.measure(TOTAL, "0.1", "bob")


def test_a_view_of_somebody_who_left_pays_nothing():
    kernel = curator()
    view = kernel.alone("ann")
    kernel.retire("ann")
    assert view.payers == ()
    with pytest.raises(UnknownPayer, match="ann has left"):
        view.measure(TOTAL, "0.1", "ann")


def test_shares_beyond_the_total_leave_the_ledger_untouched():
    ledger = MemoryLedger()
    with pytest.raises(OverBudget, match="sum to more"):
        curator(ledger=ledger, shares={"ann": "0.7", "bob": "0.7"})
    assert list(ledger.events()) == []
    curator(ledger=ledger, shares={"ann": "0.7", "bob": "0.3"})


def test_a_grant_that_the_ledger_may_have_stored_counts_as_given():
    class Forgetful(MemoryLedger):
        def append_many(self, events):
            number = super().append_many(events)
            if isinstance(events[0], Granted) and events[0].payer == "cem":
                raise OSError("the connection broke after the commit")
            return number

    ledger = Forgetful()
    kernel = curator(ledger=ledger, shares={"ann": "1/2"})
    with pytest.raises(OSError, match="connection"):
        kernel.grant("cem", "1/2")
    with pytest.raises(OverBudget):
        kernel.grant("dan", "1/2")


def test_what_is_unallocated_is_the_total_without_every_share_also_after_a_restart():
    ledger, shares = MemoryLedger(), {f"p{at}": Fraction(1, 50 + at) for at in range(30)}
    kernel = curator(ledger=ledger, shares=shares)
    kernel.grant("eve", "1/10")
    for each in (kernel, curator(ledger=ledger, shares=shares)):
        assert each.unallocated == 1 - sum(shares.values()) - Fraction(1, 10)


def test_a_ledger_that_spent_more_than_there_is_is_not_opened():
    ledger = MemoryLedger()
    curator(ledger=ledger)
    ledger.append(Charged({"ann": Fraction(3, 4)}, {}))
    with pytest.raises(PrivacyError, match="more than its budget"):
        curator(ledger=ledger)


def test_a_bill_cannot_be_changed_afterwards():
    kernel = curator()
    measured = kernel.measure(TOTAL, "0.1", "ann")
    with pytest.raises(TypeError):
        measured.bill["ann"] = Fraction(0)  # type: ignore[index]


def test_a_query_too_heavy_for_64_bits_is_refused_before_the_charge():
    kernel = curator(2**22, 0, 0, 0)
    with pytest.raises(SharewellError, match="not exceed 2,147,483,648"):
        kernel.measure(Block(LINE, [LinearQuery.all(LINE) * 2**41]), "0.1", "ann")
    assert kernel.spent("ann") == 0
    heaviest = Block(LINE, [LinearQuery.all(LINE) * 2**31])
    assert kernel.measure(heaviest, "0.1", "ann").values.tolist() == [2**53]


def test_a_sum_too_heavy_for_64_bits_is_refused_before_the_charge():
    """Rows, times weight, times bound: of 2^31 rows each may change a sum by 2^31."""
    domain = Domain(
        [Integer("age", 0, 1)], [Measure("wage", "wage", -(2**30), 2**30, 1, nullable=False)]
    )
    data = DataVector(domain, np.array([2**31, 2**61, 0, 0]))
    budget = Budget.pure(1)
    kernel = Curator(data, budget, {"ann": budget.total}, noise=NoNoise())
    total = LinearQuery.of_vectors(domain, {1: np.array([0, 1])})
    with pytest.raises(SharewellError, match="not exceed 2,147,483,648"):
        kernel.measure(ParallelBlock(domain, [total * 3]), "0.1", "ann")
    assert kernel.spent("ann") == 0
    heaviest = ParallelBlock(domain, [total * 2])
    assert kernel.measure(heaviest, "0.1", "ann").values.tolist() == [2**62]


def test_what_was_charged_and_never_released_is_measured_once_after_a_crash():
    ledger = WatchfulLedger(fail_on=Released)
    with pytest.raises(OSError, match="disk full"):
        curator(ledger=ledger).measure(TOTAL, "0.1", "ann")
    ledger.fail_on = None
    again = curator(ledger=ledger)
    [found] = again.complete(Block.from_json)
    assert again.spent("ann") == Fraction(1, 10), "it was charged before"
    assert found.charge == 3
    assert again.complete(Block.from_json) == [], "and is released once"
    assert [m.values.tolist() for m in again.history(Block.from_json)] == [found.values.tolist()]


def test_a_view_completes_only_what_is_its_own():
    ledger = WatchfulLedger(fail_on=Released)
    with pytest.raises(OSError, match="disk full"):
        curator(ledger=ledger).measure(TOTAL, "0.1", "ann")
    ledger.fail_on = None
    again = curator(ledger=ledger)
    assert again.alone("bob").complete(Block.from_json) == []
    assert len(again.alone("ann").complete(Block.from_json)) == 1


def test_a_reservation_is_used_only_by_the_curator_that_made_it():
    ours, theirs = curator(), curator()
    reserved = reserve(theirs)
    for use in (ours.release, lambda each: ours.charge([each])):
        with pytest.raises(PrivacyError, match="that made it"):
            use(reserved)
    forged = Reservation(reserved.block, reserved.rows, np.zeros(1), reserved.cost, {})
    with pytest.raises(PrivacyError, match="that made it"):
        theirs.charge([forged])
    with pytest.raises(ValueError, match="read-only"):
        reserved.scales[:] = 0
    assert ours.spent("ann") == 0
    theirs.charge([reserved])


def test_one_reservation_that_cannot_be_charged_leaves_the_others_open():
    kernel = curator()
    good, used = reserve(kernel), reserve(kernel)
    kernel.charge([used])
    with pytest.raises(PrivacyError):
        kernel.charge([good, used])
    with pytest.raises(PrivacyError):
        kernel.charge([good, good])
    kernel.charge([good])


def test_what_is_being_measured_is_not_completed_too():
    """Between a charge and its release, only what was charged before the curator was opened is open."""
    ledger = MemoryLedger()
    kernel = curator(ledger=ledger)
    found = kernel.charge([reserve(kernel)])
    assert kernel.complete(Block.from_json) == []
    kernel.store(found)
    assert [type(event) for event in ledger.events()].count(Released) == 1


def test_a_ledger_that_has_released_a_charge_twice_is_refused():
    ledger = MemoryLedger()
    found = curator(ledger=ledger).measure(TOTAL, "0.1", "ann")
    ledger.append(Released(found.charge, (7,)))
    with pytest.raises(PrivacyError, match="twice"):
        curator(ledger=ledger)


def test_a_share_that_the_ledger_does_not_know_of_pays_for_nothing():
    for uncertain in (False, True):
        failure = LedgerUnavailable("There is no room.")
        failure.uncertain = uncertain
        ledger = WatchfulLedger(fail_on=Granted, failure=failure)
        ledger.fail_on = None
        kernel = curator(ledger=ledger, shares={"ann": "1/2"})
        ledger.fail_on = Granted
        with pytest.raises(LedgerUnavailable):
            kernel.grant("cem", "1/2")
        with pytest.raises(UnknownPayer):
            kernel.measure(TOTAL, "0.1", "cem")
        ledger.fail_on = None
        if uncertain:
            with pytest.raises(PrivacyError):
                kernel.grant("dee", "1/2")
        else:
            kernel.grant("dee", "1/2")


def test_a_yes_that_cannot_be_stored_is_not_told():
    ledger = WatchfulLedger()
    kernel = curator(ledger=ledger, noise=NoNoise())
    test = kernel.sparse_vector(epsilon="0.1", threshold=1, positives=3, payer="ann")
    assert test.exceeds(LinearQuery.all(LINE), -1000)
    ledger.fail_on = Exceeded
    assert not test.exceeds(LinearQuery.all(LINE), -1000), "no error, and no yes"
    assert test.positives_left == 1


def test_a_sparse_vector_that_was_charged_before_a_crash_is_armed_after_it():
    ledger = WatchfulLedger(fail_on=Armed)
    with pytest.raises(OSError, match="disk full"):
        curator(ledger=ledger).sparse_vector(epsilon="0.1", threshold=1, positives=3, payer="ann")
    ledger.fail_on = None
    again = curator(ledger=ledger)
    assert again.sparse_vectors() == []
    assert again.complete(Block.from_json) == []
    [test] = again.sparse_vectors()
    assert test.positives_left == 3
    assert again.spent("ann") == Fraction(1, 10)
