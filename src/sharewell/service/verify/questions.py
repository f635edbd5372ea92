"""The questions: each asked once, answered at most once and in its turn, at a cost that was charged."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from sharewell.errors import RequestError
from sharewell.privacy.ledger import (
    Answered,
    Asked,
    Charged,
    Configured,
    Done,
    Event,
    Granted,
    Left,
    Refused,
    Turn,
)
from sharewell.service.verify.finding import Check
from sharewell.service.verify.record import Record, config_of


def check_questions(record: Record) -> Check:
    """Look at every question, from being asked to its end."""
    check = Check("questions")
    walk = _Walk(record, check)
    for number, event in record:
        walk.visit(number, event)
    walk.finish()
    return check


class _Walk:
    def __init__(self, record: Record, check: Check) -> None:
        self._record = record
        self._check = check
        self._here: set[str] = set()
        self._gone: set[str] = set()
        self._keys: dict[tuple[str, str], int] = {}
        self._asked: dict[int, Asked] = {}
        #: Asked and not ended, in order; and those of them whose turn has come.
        self._open: dict[int, Asked] = {}
        self._due: list[int] = []
        self._in_order = True
        #: Which question each charge was made for.
        self._used: dict[int, int] = {}

    def visit(self, number: int, event: Event) -> None:
        match event:
            case Configured():
                config = config_of(event)
                self._in_order = config is None or config.scheduler_name == "none"
            case Granted(payer):
                self._here.add(payer)
            case Left(payer):
                self._here.discard(payer)
                self._gone.add(payer)
            case Done(analyst):
                self._require(number, analyst)
            case Asked():
                self._ask(number, event)
            case Turn(taken):
                self._turn(number, taken)
            case Answered(asked, answers):
                self._check.count("answered")
                self._end(number, event, asked)
                for answer in answers:
                    self._cost(number, asked, answer)
            case Refused(asked):
                self._check.count("refused")
                self._end(number, event, asked)

    def finish(self) -> None:
        for number, asked in self._open.items():
            self._check.note(
                "open", f"The question of event {number}, of {asked.analyst}, has no answer yet.", number
            )

    @property
    def _unsure(self) -> bool:
        return self._record.gap is not None

    def _require(self, number: int, analyst: str) -> None:
        if analyst not in self._here and not self._unsure:
            self._check.fault(
                "stranger", f"In event {number} speaks {analyst}, who is no analyst then.", number
            )

    def _ask(self, number: int, asked: Asked) -> None:
        self._check.count("asked")
        self._require(number, asked.analyst)
        name = asked.analyst, asked.key
        if name in self._keys:
            self._check.fault(
                "key-reused",
                f"In event {number} {asked.analyst} uses the key of event {self._keys[name]} again.",
                number,
            )
        self._keys.setdefault(name, number)
        self._asked[number] = self._open[number] = asked

    def _turn(self, number: int, taken: tuple[int, ...]) -> None:
        """Whose turn it is: first those who had it before a crash, then each analyst's next."""
        self._check.count("turns")
        if self._unsure:
            self._due += [asked for asked in taken if asked in self._open and asked not in self._due]
            return
        if self._in_order or taken[: len(self._due)] != tuple(self._due):
            self._out_of_turn(number, "gives a turn that is not due")
        waiting: dict[str, list[int]] = {}
        for asked, event in self._open.items():
            if asked not in self._due:
                waiting.setdefault(event.analyst, []).append(asked)
        for asked in taken:
            if asked in self._due:
                continue
            question = self._open.get(asked)
            if question is None or waiting[question.analyst][:1] != [asked]:
                self._out_of_turn(number, f"gives a turn to event {asked}, which is not next")
            if question is not None:
                waiting[question.analyst] = [each for each in waiting[question.analyst] if each != asked]
                self._due.append(asked)

    def _end(self, number: int, event: Answered | Refused, asked: int) -> None:
        question = self._asked.get(asked)
        if question is None:
            if not self._record.lost(asked):
                self._check.fault(
                    "unknown", f"Event {number} ends event {asked}, which asks nothing.", number
                )
            return
        if asked not in self._open:
            self._check.fault(
                "ended-twice", f"Event {number} ends the question of event {asked} again.", number
            )
            return
        if not self._unsure and not self._withdrawn(question, event):
            self._in_turn(number, asked)
        del self._open[asked]
        if asked in self._due:
            self._due.remove(asked)

    def _withdrawn(self, question: Asked, event: Answered | Refused) -> bool:
        """Whether somebody who left did not want the answer any more."""
        gone = question.analyst in self._gone
        return gone and isinstance(event, Refused) and event.code == RequestError.code

    def _in_turn(self, number: int, asked: int) -> None:
        if self._due:
            expected: int | None = self._due[0]
        elif self._in_order:
            # Who leaves in the moment of a crash may leave questions behind that are never ended.
            expected = next((n for n, q in self._open.items() if q.analyst in self._here), None)
        else:
            expected = None
        if expected != asked and not (self._in_order and self._open[asked].analyst in self._gone):
            self._out_of_turn(number, f"ends the question of event {asked} out of turn")

    def _out_of_turn(self, number: int, does: str) -> None:
        self._check.fault("out-of-turn", f"Event {number} {does}.", number)

    def _cost(self, number: int, asked: int, answer: Mapping[str, Any]) -> None:
        """See that what an answer says of its cost was charged, after it was asked, and for it alone."""
        try:
            charge, cost = answer["charge"], Fraction(answer["cost"])
        except (KeyError, TypeError, ValueError, ArithmeticError):
            self._check.fault("cost", f"Event {number} does not say what an answer cost.", number)
            return
        if charge is None:
            if cost:
                self._check.fault(
                    "cost", f"Event {number} states a cost that nothing was charged for.", number
                )
            return
        charged = self._record.get(charge) if type(charge) is int else None
        if charged is None and type(charge) is int and self._record.lost(charge):
            return
        if not isinstance(charged, Charged) or not asked < charge < number:
            self._check.fault(
                "cost", f"Event {number} names event {charge}, which is no charge for it.", number
            )
        elif sum(charged.bill.values(), Fraction(0)) != cost:
            self._check.fault(
                "cost", f"Event {number} states another cost than event {charge} charged.", number
            )
        elif self._used.setdefault(charge, asked) != asked:
            self._check.fault(
                "cost",
                f"Event {number} names event {charge}, which was charged for another question.",
                number,
            )
