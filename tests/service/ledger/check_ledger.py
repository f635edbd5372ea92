"""What every ledger must do: `CHECKS` for all of them, `DURABLE` for those that outlive the process.

A ledger's own test gives a `Kind`, which opens one at a place; see `test_ledgers.py`.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from hashlib import sha256
from typing import Any

import numpy as np
import pytest

from sharewell import Budget, Curator, DataVector, Domain, Integer, LinearQuery
from sharewell.errors import LedgerError, LedgerInUse, LedgerMissing, LedgerUnavailable
from sharewell.mechanisms.base import decode as block_of
from sharewell.privacy.ledger import (
    Answered,
    Armed,
    Asked,
    Done,
    Event,
    Ledger,
    Refused,
    Released,
    SourceSeen,
    StoredQuestion,
    public_events,
)
from sharewell.service.ledger import DurableLedger, Head, store, verify_chain
from sharewell.service.ledger.codec import free_answers, read_answers
from sharewell.service.ledger.store import Row, SideRows, Store
from sharewell_lab.noise import SeededNoise
from tests.service.ledger.events import SAMPLES, numbered

THREADS = 16
DOMAIN = Domain([Integer("age", 0, 5)])


@dataclass(frozen=True)
class Kind:
    """A way to open a ledger at one place, again and again; `where` is what `verify_chain` is told."""

    open: Callable[..., Any]
    reopen: Callable[[Any], Any]
    where: str = ""
    name: str = "default"
    #: The same place as a store of a class, whose methods a test may wrap.
    store: type[Store] | None = None
    #: The rows as they are stored, read without any code of ours.
    rows: Callable[[], list[tuple[int, bytes, bytes]]] = list

    def custom(self, store: type[Store], **options: Any) -> DurableLedger:
        """The ledger over a store that was made for a test."""
        names = {} if self.name == "default" else {"name": self.name}
        return DurableLedger(store(self.where, create=True, **names), **options)  # type: ignore[call-arg]

    def findings(self, **options: Any) -> list[Any]:
        return verify_chain(self.where, name=self.name, **options)


def numbers_count_from_zero_and_events_stay_in_order(kind: Kind) -> None:
    ledger = kind.open()
    assert list(ledger.events()) == []
    assert [ledger.append(event) for event in SAMPLES] == list(range(len(SAMPLES)))
    assert list(ledger.events()) == list(SAMPLES)
    ledger = kind.reopen(ledger)
    assert list(ledger.events()) == list(SAMPLES)
    assert ledger.append(Done("ann")) == len(SAMPLES)


def several_events_are_stored_in_a_row(kind: Kind) -> None:
    ledger = kind.open()
    assert ledger.append_many([]) == 0
    assert ledger.append_many(SAMPLES) == 0
    assert ledger.append_many([]) == len(SAMPLES)
    assert ledger.append_many([numbered(0), numbered(1)]) == len(SAMPLES)
    assert list(kind.reopen(ledger).events()) == [*SAMPLES, numbered(0), numbered(1)]


def however_many_come_at_once_they_stay_in_order(kind: Kind) -> None:
    ledger = kind.open()
    events: list[Event] = []
    for many in (1, 3, 4, 5, 64, 171):
        batch = [numbered(len(events) + at) for at in range(many)]
        assert ledger.append_many(batch) == len(events)
        events += batch
    assert list(kind.reopen(ledger).events()) == events


def events_are_those_that_were_there_when_asked_for(kind: Kind) -> None:
    ledger = kind.open()
    ledger.append(numbered(0))
    so_far = ledger.events()
    ledger.append(numbered(1))
    assert list(so_far) == [numbered(0)]


def what_is_secret_is_shown_to_nobody(kind: Kind) -> None:
    ledger = kind.open()
    ledger.append_many(SAMPLES)
    shown = list(public_events(ledger))
    secret = Armed | SourceSeen
    assert shown == [(n, event) for n, event in enumerate(SAMPLES) if not isinstance(event, secret)]
    assert len(shown) == len(SAMPLES) - 2
    for each in ("314159", "c0ffee"):
        assert each not in repr(shown) + repr(list(ledger.events()))


def many_threads_get_numbers_of_their_own(kind: Kind) -> None:
    ledger = kind.open()
    together = threading.Barrier(THREADS)

    def work(thread: int) -> list[tuple[int, str]]:
        together.wait()
        found = []
        for i in range(12):
            names = [f"{thread} {i} {part}" for part in range(1 + i % 3)]
            if len(names) == 1:
                found.append((ledger.append(Done(names[0])), names[0]))
            else:
                first = ledger.append_many([Done(name) for name in names])
                found += [(first + part, name) for part, name in enumerate(names)]
        assert found == sorted(found), "what one thread stores stays in its order"
        return found

    with ThreadPoolExecutor(THREADS) as pool:
        promised = dict(pair for pairs in pool.map(work, range(THREADS)) for pair in pairs)
    events = list(kind.reopen(ledger).events())
    assert len(events) == THREADS * 24
    assert promised == {n: event.analyst for n, event in enumerate(events)}


def a_curator_takes_up_where_it_left_off(kind: Kind) -> None:
    def curator(ledger: Ledger) -> Curator:
        data = DataVector(DOMAIN, np.arange(6))
        shares = {"ann": "1/2", "bob": "1/3"}
        return Curator(data, Budget.pure("1"), shares, ledger=ledger, noise=SeededNoise(5))

    ledger = kind.open()
    before = curator(ledger)
    measured = before.measure(LinearQuery.of(DOMAIN, age=[1, 2]), "1/7", "ann")
    before.sparse_vector(epsilon="1/8", threshold=9, positives=2, payer="bob")
    after = curator(kind.reopen(ledger))
    assert after.left("ann") == Fraction(1, 2) - Fraction(1, 7)
    assert after.left("bob") == Fraction(1, 3) - Fraction(1, 8)
    (again,) = after.history(block_of)
    assert (again.block, again.charge, again.bill) == (measured.block, measured.charge, measured.bill)
    assert again.values.tolist() == measured.values.tolist()
    assert len(after.sparse_vectors()) == 1


def questions_are_found_by_key_by_number_and_by_analyst(kind: Kind) -> None:
    ledger = kind.open()
    names, keys = ("ann", "\0", "Änne 🙂"), ("k", "\0", "clé\n'\"\\")
    asked = [Asked(key, name, {"sql": f"{name} {key}"}, pay=True) for name in names for key in keys]
    first = ledger.append_many([numbered(0), *asked]) + 1
    answers = [{"value": 0.5, "source": "cached"}] * 3
    endings: list[Any] = [
        free_answers(first, answers),
        Answered(first + 1, ({"value": 1.0},)),
        Refused(first + 2, "privacy.over-budget", "No."),
    ]
    ledger.append_many(endings)
    ledger.append(Refused(first, "too.late", "It has ended."))
    for _ in range(2):
        for at, event in enumerate(asked):
            found = StoredQuestion(first + at, event, endings[at] if at < 3 else None)
            assert ledger.question(first + at) == found
            assert ledger.find([("ann", "other"), (event.analyst, event.key)]) == [found]
        assert read_answers(ledger.question(first).ending) == tuple(answers)
        everything = [(event.analyst, event.key) for event in reversed(asked)]
        assert [each.asked for each in ledger.find(everything)] == asked[::-1]
        assert ledger.find([]) == ledger.find([("bob", "k"), ("an", "nk")]) == []
        assert [ledger.question(number) for number in (-1, 0, len(ledger) - 1, len(ledger), 2**40)] == [
            None
        ] * 5
        for at, name in enumerate(names):
            numbers = [first + 3 * at + place for place in range(3)]
            assert [each.number for each in ledger.questions(name)] == numbers
            assert [each.number for each in ledger.questions(name, numbers[0])] == numbers[1:]
        assert list(ledger.questions("bob")) == []
        ledger = kind.reopen(ledger)


def many_questions_are_listed_in_order(kind: Kind) -> None:
    ledger = kind.open()
    asked = [Asked(f"{at}", ("ann", "bob")[at % 2], {"sql": ""}, pay=False) for at in range(90)]
    ledger.append_many(asked)
    assert [each.number for each in ledger.questions("ann", 9)] == list(range(10, 90, 2))
    found = ledger.find([("ann", f"{at}") for at in range(0, 90, 2)])
    assert [each.asked for each in found] == asked[::2]


CHECKS = [
    questions_are_found_by_key_by_number_and_by_analyst,
    many_questions_are_listed_in_order,
    numbers_count_from_zero_and_events_stay_in_order,
    several_events_are_stored_in_a_row,
    however_many_come_at_once_they_stay_in_order,
    events_are_those_that_were_there_when_asked_for,
    what_is_secret_is_shown_to_nobody,
    many_threads_get_numbers_of_their_own,
    a_curator_takes_up_where_it_left_off,
]


def a_second_writer_is_refused_and_told_who_the_first_is(kind: Kind) -> None:
    first = kind.open()
    first.append(numbered(0))
    for _ in range(2):
        with pytest.raises(LedgerInUse, match=f"process {os.getpid()} on ") as caught:
            kind.open()
        assert "read_only" in caught.value.hint
    assert first.append(numbered(1)) == 1
    assert list(kind.reopen(first).events()) == [numbered(0), numbered(1)]


def a_second_writer_may_wait_for_the_first_to_end(kind: Kind) -> None:
    first = kind.open()
    first.append(numbered(0))
    with pytest.raises(LedgerInUse):
        kind.open(wait=0.1)
    with ThreadPoolExecutor(1) as pool:
        second = pool.submit(kind.open, wait=120)
        with pytest.raises(TimeoutError):
            second.result(timeout=0.2)
        first.close()
        assert second.result(timeout=120).append(numbered(1)) == 1
        second.result().close()


def a_reader_reads_beside_the_writer_and_changes_nothing(kind: Kind) -> None:
    writer = kind.open()
    writer.append(numbered(0))
    with kind.open(read_only=True) as reader:
        assert list(reader.events()) == [numbered(0)]
        writer.append(numbered(1))
        assert list(reader.events()) == [numbered(0), numbered(1)]
        assert reader.head == writer.head
        with pytest.raises(LedgerError, match="open read-only"):
            reader.append(numbered(2))
    assert writer.append(numbered(2)) == 2


def there_is_nothing_to_read_where_nothing_was_written(kind: Kind) -> None:
    with pytest.raises(LedgerError) as caught:
        kind.open(read_only=True)
    assert caught.value.hint
    assert list(kind.open().events()) == []


def a_ledger_is_created_only_where_this_is_asked_for(kind: Kind) -> None:
    for options in ({}, {"read_only": True}):
        with pytest.raises(LedgerMissing, match="No ledger"):
            kind.open(create=False, **options)
    kind.open().close()
    kind.open(create=False).close()


def a_ledger_that_was_closed_says_so(kind: Kind) -> None:
    ledger = kind.open()
    ledger.append(numbered(0))
    ledger.close()
    with pytest.raises(LedgerUnavailable, match="closed"):
        ledger.append(numbered(1))
    assert list(kind.open().events()) == [numbered(0)]


def a_ledger_just_closed_can_be_opened_at_once(kind: Kind) -> None:
    for number in range(40):
        with kind.open(wait=0.0) as ledger:
            assert ledger.append(numbered(number)) == number


def an_event_that_cannot_be_stored_takes_none_with_it(kind: Kind) -> None:
    ledger = kind.open()
    with pytest.raises(LedgerError, match="plain data"):
        ledger.append_many([numbered(0), Done(5)])  # type: ignore[arg-type]
    assert ledger.append(numbered(1)) == 0
    assert list(kind.reopen(ledger).events()) == [numbered(1)]


def events_can_be_read_from_a_number_on(kind: Kind) -> None:
    ledger = kind.open()
    ledger.append_many(SAMPLES)
    for start in range(len(SAMPLES) + 2):
        assert list(ledger.events(start)) == list(SAMPLES[start:])


def a_probe_finds_a_commit_that_is_overdue(kind: Kind) -> None:
    begun, go_on = threading.Event(), threading.Event()

    class Slow(kind.store):  # type: ignore[name-defined,misc]
        def write(self, rows, side, old, new, at):
            begun.set()
            assert go_on.wait(120)
            return super().write(rows, side, old, new, at)

    with kind.custom(Slow) as ledger, ThreadPoolExecutor() as pool:
        ledger.probe(0.0)
        append = pool.submit(ledger.append, numbered(0))
        assert begun.wait(120)
        ledger.probe(3600.0)
        with pytest.raises(LedgerUnavailable, match="commit"):
            ledger.probe(0.0)
        go_on.set()
        append.result(120)
        ledger.probe(0.0)


def a_probe_finds_another_writer(kind: Kind) -> None:
    with kind.open() as ledger:
        ledger.append(numbered(0))
        ledger.probe(0.0)
        [row] = ledger.head.after([b"{}"])
        assert ledger._store.write([row], SideRows({}, {}, {}), ledger.head, Head(2, row.hash), 0.0)
        with pytest.raises(LedgerInUse, match="Another process has written"):
            ledger.probe(0.0)
        with pytest.raises(LedgerInUse):
            ledger.append(numbered(1))
        with pytest.raises(LedgerInUse):
            ledger.probe(0.0)


def an_interrupt_during_a_commit_leaves_nobody_waiting(kind: Kind) -> None:
    for stored in (False, True):
        begun, go_on = threading.Event(), threading.Event()

        class Interrupted(kind.store):  # type: ignore[name-defined,misc]
            is_first = True

            def write(self, rows, side, old, new, at, stored=stored, begun=begun, go_on=go_on):
                is_first, self.is_first = self.is_first, False
                if is_first:
                    begun.set()
                    assert go_on.wait(120)
                result = not is_first or stored
                if result:
                    result = super().write(rows, side, old, new, at)
                if is_first:
                    raise KeyboardInterrupt
                return result

        with kind.custom(Interrupted) as ledger, ThreadPoolExecutor(3) as pool:
            before = ledger.head.count
            first = pool.submit(ledger.append, numbered(0))
            assert begun.wait(120)
            others = [pool.submit(ledger.append, numbered(i)) for i in (1, 2)]
            go_on.set()
            assert isinstance(first.exception(120), KeyboardInterrupt)
            later = [before + stored, before + stored + 1]
            assert sorted(other.result(120) for other in others) == later
            assert ledger.append(numbered(3)) == before + stored + 2
            ours = list(ledger.events(before))
            assert (numbered(0) in ours, len(ours)) == (stored, 3 + stored)
    assert kind.findings() == []


def a_clock_that_jumps_back_changes_nothing(kind: Kind) -> None:
    times = iter([2e9, 1e9, 0.0, -1e9, 1e300, 5.0])
    with kind.open(clock=lambda: next(times)) as ledger:
        assert [ledger.append(numbered(i)) for i in range(6)] == list(range(6))
    assert list(kind.open().events()) == [numbered(i) for i in range(6)]
    assert kind.findings() == []


def the_times_of_events_are_those_of_the_clock(kind: Kind) -> None:
    times = iter([2e9, 1e9 + 0.25])
    ledger = kind.open(clock=lambda: next(times))
    ledger.append_many([numbered(0), numbered(1)])
    ledger.append(numbered(2))
    assert ledger.times([]) == {}
    assert ledger.times([2, 0, 7]) == {0: 2e9, 2: 1e9 + 0.25}
    assert kind.reopen(ledger).times(range(3)) == {0: 2e9, 1: 2e9, 2: 1e9 + 0.25}


def the_stored_hashes_are_those_of_the_definition(kind: Kind) -> None:
    ledger = kind.open()
    ledger.append_many(SAMPLES)
    hashed = bytes(32)
    rows = kind.rows()
    assert [number for number, _, _ in rows] == list(range(len(SAMPLES)))
    for number, body, stored in rows:
        hashed = sha256(hashed + number.to_bytes(8, "big") + body).digest()
        assert stored == hashed
    assert str(ledger.head) == f"{len(SAMPLES)}:{hashed.hex()}"


def an_untouched_ledger_verifies_whoever_writes_meanwhile(kind: Kind) -> None:
    ledger = kind.open()
    heads = [ledger.head]
    assert kind.findings(expected_head=heads[0]) == []
    for i in range(5):
        ledger.append_many([numbered(i)] * (i + 1))
        heads.append(ledger.head)
        assert all(kind.findings(expected_head=head) == [] for head in heads)
        assert kind.findings(expected_head=str(ledger.head)) == []


def a_store_moves_no_head_but_the_one_that_is_named(kind: Kind) -> None:
    with kind.open() as ledger:
        ledger.append_many([numbered(0), numbered(1)])
        now = ledger.head
        store = ledger._store
        for stale in (Head(), Head(1, now.hash), Head(2, bytes(32)), Head(3, now.hash)):
            row = Row(7, b"{}", bytes(32))
            assert not store.write([row], SideRows({}, {}, {}), stale, Head(8, row.hash), 0.0)
            assert store.head() == now
        assert ledger.append(numbered(2)) == 2
    assert kind.findings() == []


def what_is_too_large_for_one_statement_is_stored_in_several(kind: Kind) -> None:
    text = [{"value": 1.5, "source": "cached"}] * 20
    asked = [Asked(f"{at}", "ann", {"sql": ""}, pay=False) for at in range(5)]
    batch = [*asked, Released(0, (5,) * 300, 2), *(free_answers(at, text) for at in range(5)), *SAMPLES]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "STATEMENT_BYTES", 500)
        with kind.open() as ledger:
            assert ledger.append_many(batch) == 0
            assert ledger.append(numbered(0)) == len(batch)
            stale = Row(0, b"{}", bytes(32)), Row(1, b"{}" * 300, bytes(32))
            nothing = SideRows({}, {}, {})
            assert not ledger._store.write(stale, nothing, Head(), Head(2, bytes(32)), 0.0)
            assert ledger._store.head() == ledger.head
    with kind.open() as ledger:
        assert list(ledger.events()) == [*batch, numbered(0)]
        found = ledger.find([("ann", f"{at}") for at in range(5)])
        assert [read_answers(each.ending) for each in found] == [tuple(text)] * 5
    assert kind.findings() == []


def several_statements_are_stored_all_or_none(kind: Kind) -> None:
    class Failing(kind.store):  # type: ignore[name-defined,misc]
        executed, broken = 0, True

        def _execute(self, *args: Any) -> Any:
            Failing.executed += 1
            if self.broken and self.executed % 3 == 0:
                raise LedgerUnavailable("No space left.")
            return super()._execute(*args)

    with pytest.MonkeyPatch.context() as patch, kind.custom(Failing) as ledger:
        patch.setattr(store, "STATEMENT_BYTES", 40)
        with pytest.raises(LedgerUnavailable, match="No space"):
            ledger.append_many([numbered(at) for at in range(5)])
        assert Failing.executed == 6, "tried twice"
        assert (ledger.head, ledger._store.head()) == (Head(), Head())
        assert kind.rows() == []
        Failing.broken = False
        assert ledger.append_many([numbered(at) for at in range(5)]) == 0
        assert list(ledger.events()) == [numbered(at) for at in range(5)]
    assert kind.findings() == []


DURABLE = [
    what_is_too_large_for_one_statement_is_stored_in_several,
    several_statements_are_stored_all_or_none,
    a_store_moves_no_head_but_the_one_that_is_named,
    a_second_writer_is_refused_and_told_who_the_first_is,
    a_second_writer_may_wait_for_the_first_to_end,
    a_reader_reads_beside_the_writer_and_changes_nothing,
    there_is_nothing_to_read_where_nothing_was_written,
    a_ledger_is_created_only_where_this_is_asked_for,
    a_ledger_that_was_closed_says_so,
    a_ledger_just_closed_can_be_opened_at_once,
    an_event_that_cannot_be_stored_takes_none_with_it,
    events_can_be_read_from_a_number_on,
    a_probe_finds_a_commit_that_is_overdue,
    a_probe_finds_another_writer,
    an_interrupt_during_a_commit_leaves_nobody_waiting,
    a_clock_that_jumps_back_changes_nothing,
    the_times_of_events_are_those_of_the_clock,
    the_stored_hashes_are_those_of_the_definition,
    an_untouched_ledger_verifies_whoever_writes_meanwhile,
]
