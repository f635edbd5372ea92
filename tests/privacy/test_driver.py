"""The driver: decisions see earlier reservations, charges come first, and answers in ledger order."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from fractions import Fraction
from typing import Any

import pytest

from sharewell.errors import LedgerUnavailable, OverBudget
from sharewell.privacy.driver import Batch, Step, run
from sharewell.privacy.dry_run import DryCurator, NullLedger
from sharewell.privacy.ledger import Charged, Done, Event, MemoryLedger, Refused, Released
from sharewell.privacy.measurement import MeasureRequest, SparseVectorTest
from sharewell.query import workload
from tests.privacy.tables import LINE, curator, table

TOTAL = workload.total(LINE)


class Question:
    """A question that stores one event, and keeps its answers or its error."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.answers: list[Any] | None = None
        self.error: Exception | None = None

    def finish(self, answers: list[Any]) -> Sequence[Event]:
        self.answers = answers
        return (Done(self.name),)

    def fail(self, error: Exception) -> Sequence[Event]:
        self.error = error
        return (Refused(0, "query.invalid", self.name),)


def buy(cost: str, log: list[str], payer: str = "ann") -> Step[int]:
    """Buys the total, notes what happens, and returns its value."""
    try:
        log.append(f"decides {cost}")
        bought = yield MeasureRequest(TOTAL, Fraction(cost), payer)
        log.append(f"resumes {cost}")
        return int(bought.values[0])
    except GeneratorExit:
        log.append(f"closes {cost}")
        raise


def kinds(ledger: MemoryLedger) -> list[type]:
    return [type(event) for event in ledger.events()][3:]


def test_a_step_alone_is_charged_measured_and_stored_request_by_request():
    ledger = MemoryLedger()
    kernel = curator(ledger=ledger)

    def twice() -> Step[list[int]]:
        first = yield MeasureRequest(TOTAL, Fraction(1, 10), "ann")
        nothing = yield None
        second = yield MeasureRequest(TOTAL, Fraction(1, 10), "bob")
        assert nothing is None
        return [int(first.values[0]), int(second.values[0])]

    assert run(twice(), kernel) == [13, 13]
    assert kinds(ledger) == [Charged, Released, Charged, Released]


def test_a_step_alone_may_test():
    kernel = curator()
    vector = kernel.sparse_vector(epsilon="1/10", threshold=5, positives=1, payer="ann")

    def test() -> Generator[Any, Any, bool]:
        return bool((yield SparseVectorTest(vector, TOTAL[0], 100.0)))

    assert run(test(), kernel)


def test_a_step_is_closed_when_the_ledger_fails():
    class Full(MemoryLedger):
        def append_many(self, events):
            if any(isinstance(event, Charged) for event in events):
                raise LedgerUnavailable("No space left.")
            return super().append_many(events)

    log: list[str] = []
    with pytest.raises(LedgerUnavailable):
        run(buy("1/10", log), curator(ledger=Full()))
    assert log == ["decides 1/10", "closes 1/10"]


def test_a_batch_decides_in_order_charges_once_and_answers_in_order():
    ledger, log = MemoryLedger(), list[str]()
    kernel = curator(ledger=ledger)
    batch, questions = Batch(kernel), [Question("one"), Question("two")]
    batch.add(questions[0], [buy("1/10", log), buy("1/5", log)])
    assert kernel.left("ann") == Fraction(1, 5), "reserved at the yield"
    batch.add(questions[1], [buy("1/20", log, "bob")])
    assert kinds(ledger) == [], "nothing is stored before the batch runs"
    batch.run([Done("before")])
    assert log == [
        f"{verb} {cost}" for verb in ("decides", "resumes") for cost in ("1/10", "1/5", "1/20")
    ]
    assert kinds(ledger) == [Done, *[Charged] * 3, Released, Released, Done, Released, Done]
    assert [question.answers for question in questions] == [[13, 13], [13]]


def test_a_batch_that_buys_nothing_is_one_commit():
    class Counting(MemoryLedger):
        commits = 0

        def append_many(self, events):
            self.commits += 1
            return super().append_many(events)

    def free() -> Step[str]:
        assert (yield None) is None
        return "free"

    ledger = Counting()
    batch, question = Batch(curator(ledger=ledger)), Question("one")
    before = ledger.commits
    batch.add(question, [free()])
    batch.run([Done("before")])
    assert ledger.commits == before + 1
    assert question.answers == ["free"]


def test_a_question_is_decided_whole_or_refused_whole_and_the_others_go_on():
    ledger, log = MemoryLedger(), list[str]()
    kernel = curator(ledger=ledger)
    batch, greedy, modest = Batch(kernel), Question("greedy"), Question("modest")
    batch.add(greedy, [buy("2/5", log), buy("1/5", log)])
    assert kernel.left("ann") == Fraction(1, 2), "the first reservation is released again"
    batch.add(modest, [buy("1/5", log)])
    batch.run()
    assert isinstance(greedy.error, OverBudget)
    assert modest.answers == [13]
    assert log[:4] == ["decides 2/5", "decides 1/5", "closes 1/5", "closes 2/5"]
    assert kinds(ledger) == [Charged, Refused, Released, Done]


def test_what_fails_after_its_charge_is_refused_and_the_others_are_answered():
    def failing() -> Step[int]:
        yield MeasureRequest(TOTAL, Fraction(1, 10), "ann")
        raise ZeroDivisionError

    def greedy() -> Step[int]:
        yield MeasureRequest(TOTAL, Fraction(1, 10), "ann")
        yield None
        return 0

    bad: list[Callable[[], Step[int]]] = [failing, greedy]
    for step in bad:
        ledger = MemoryLedger()
        batch, broken, fine = Batch(curator(ledger=ledger)), Question("broken"), Question("fine")
        batch.add(broken, [step()])
        batch.add(fine, [buy("1/5", [])])
        batch.run()
        assert batch.broken
        assert broken.error is not None
        assert fine.answers == [13]
        assert kinds(ledger) == [Charged, Charged, Released, Refused, Released, Done]


def test_questions_of_a_sequential_mechanism_are_stored_one_by_one():
    ledger, log = MemoryLedger(), list[str]()
    batch = Batch(curator(ledger=ledger), sequential=True)
    questions = [Question("one"), Question("two"), Question("over")]
    for question, cost in zip(questions, ("1/10", "1/5", "1/2"), strict=True):
        batch.add(question, [buy(cost, log)])
    batch.run([Done("before")])
    assert log[:4] == ["decides 1/10", "resumes 1/10", "decides 1/5", "resumes 1/5"]
    assert kinds(ledger) == [Done, Charged, Released, Done, Charged, Released, Done, Refused]
    assert isinstance(questions[2].error, OverBudget)


def test_a_test_in_a_batch_is_refused():
    kernel = curator()
    vector = kernel.sparse_vector(epsilon="1/10", threshold=5, positives=1, payer="ann")

    def test() -> Generator[Any, Any, bool]:
        return bool((yield SparseVectorTest(vector, TOTAL[0], 100.0)))

    batch, question = Batch(kernel), Question("one")
    batch.add(question, [test()])
    batch.run()
    assert "sequential" in str(question.error)
    assert vector.positives_left == 1


def test_a_dry_run_prices_like_the_real_one_reads_nothing_and_stores_nothing():
    ledger = NullLedger()
    real = curator()
    dry = DryCurator(table(5, 0, 7, 1), real.budget, {"ann": "1/2"}, ledger=ledger)
    measured = dry.measure(TOTAL, "1/10", "ann")
    assert measured.values.tolist() == [0]
    assert measured.variances.tolist() == real.variances(TOTAL, "1/10").tolist()
    assert dry.left("ann") == Fraction(2, 5)
    assert list(ledger.events()) == []
    with pytest.raises(OverBudget):
        dry.measure(TOTAL, "1/2", "ann")
