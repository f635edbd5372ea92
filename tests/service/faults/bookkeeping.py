"""What must hold of any ledger that a service has written, whatever happened to the service."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from typing import Any

from sharewell.privacy.ledger import (
    Answered,
    AnsweredFree,
    Asked,
    Charged,
    Event,
    Granted,
    Opened,
    QuestionLedger,
    Refused,
    Released,
)
from sharewell.service.ledger.codec import read_answers

#: Who asked, and the key.
Question = tuple[str, str]
Plain = list[dict[str, Any]]


def plain(answers: Iterable[Mapping[str, Any]]) -> Plain:
    """Answers as JSON has them."""
    found: Plain = json.loads(json.dumps([dict(answer) for answer in answers]))
    return found


def whole_events(ledger: QuestionLedger, start: int = 0) -> Iterator[Event]:
    """The events of a ledger from a number on, with free answers as if they were stored in the chain."""
    for number, event in enumerate(ledger.events()):
        if isinstance(event, AnsweredFree):
            stored = ledger.question(event.asked)
            assert stored is not None
            assert isinstance(stored.ending, AnsweredFree)
            event = Answered(event.asked, read_answers(stored.ending))
        if number >= start:
            yield event


class Books:
    """Goes through events as they come, and says what is wrong; kept naive on purpose."""

    def __init__(self, *, bought_once: bool) -> None:
        self.count = 0
        self.answers: dict[Question, Plain] = {}
        self.refused: dict[Question, str] = {}
        self.spent: Counter[str] = Counter()
        self._bought_once = bought_once
        self._total = Fraction(0)
        self._shares: dict[str, Fraction] = {}
        self._asked: dict[int, Question] = {}
        self._ended: set[int] = set()
        self._charges: set[int] = set()
        self._released: set[int] = set()
        self._continued = (-1, -1, -1)
        self._bought: set[str] = set()

    @property
    def waiting(self) -> int:
        """How many questions have no end yet."""
        return len(self._asked) - len(self._ended)

    def read(self, events: Iterable[Event]) -> None:
        """Take in the events that follow those read before."""
        for number, event in enumerate(events, start=self.count):
            self._one(number, event)
            self.count = number + 1
        assert sum(self._shares.values()) <= self._total
        for payer, share in self._shares.items():
            assert self.spent[payer] <= share, f"{payer} has spent more than their share"

    def _one(self, number: int, event: Event) -> None:
        match event:
            case Opened():
                self._total = event.total
            case Granted(payer, share):
                self._shares[payer] = share
            case Asked(key, analyst):
                assert (analyst, key) not in self._asked.values(), f"{key} was stored twice"
                self._asked[number] = analyst, key
            case Charged(bill, purpose):
                self.spent.update(bill)
                self._charges.add(number)
                what = json.dumps(purpose.get("measure"))
                if self._bought_once and len(bill) == 1:
                    assert what not in self._bought, "the same row was paid for twice"
                self._bought.add(what)
            case Released(charge, values, rest):
                assert charge in self._charges, "values without a charge"
                if self._continued != (number, charge, len(values) + rest):
                    assert charge not in self._released, "two releases for one charge"
                self._continued = (number + 1, charge, rest)
                self._released.add(charge)
            case Answered(asked, answers):
                self._end(asked)
                self.answers[self._asked[asked]] = plain(answers)
                for answer in answers:
                    assert answer["charge"] is None or answer["charge"] in self._released
            case Refused(asked, code):
                self._end(asked)
                self.refused[self._asked[asked]] = code

    def _end(self, asked: int) -> None:
        assert asked in self._asked, "an answer without a question"
        assert asked not in self._ended, "a question with two ends"
        self._ended.add(asked)

    def kept(self, promised: Mapping[Question, Plain]) -> None:
        """Check that everything that was answered is in the ledger, as it was answered."""
        for question, answers in promised.items():
            assert question in self.answers, f"{question} was answered, and the ledger lacks it"
            assert self.answers[question] == answers, f"{question} was answered otherwise"
