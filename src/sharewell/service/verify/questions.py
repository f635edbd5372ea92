"""Check the questions: each asked once, ended at most once and in turn, at a cost that was charged."""

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
    RoundClosed,
    Turn,
)
from sharewell.service.verify.audit import Audit, LedgerSnapshot, read_settings


class QuestionsAudit(Audit):
    """Checks every question from its submission to its end."""

    name = "questions"

    def __init__(self, snapshot: LedgerSnapshot) -> None:
        super().__init__(snapshot)
        self._present: set[str] = set()
        self._gone: set[str] = set()
        #: Those who said that they are done, and have asked nothing since.
        self._done: set[str] = set()
        self._keys: dict[tuple[str, str], int] = {}
        self._asked: dict[int, Asked] = {}
        #: Asked and not ended, in order; and those of them whose turn has come.
        self._open: dict[int, Asked] = {}
        self._due: list[int] = []
        self._in_order = True
        #: The question that each charge was made for.
        self._charged_for: dict[int, int] = {}

    def visit(self, number: int, event: Event) -> None:
        """Check the next event."""
        match event:
            case Configured():
                config = read_settings(event)
                self._in_order = config is None or config.scheduler_name == "none"
            case Granted(payer):
                self._present.add(payer)
            case Left(payer):
                self._present.discard(payer)
                self._done.discard(payer)
                self._gone.add(payer)
            case Done(analyst):
                self._require_present(number, analyst)
                self._done.add(analyst)
            case RoundClosed(payers):
                self._close_round(number, payers)
            case Asked():
                self._ask(number, event)
            case Turn(taken):
                self._turn(number, taken)
            case Answered(asked, answers):
                self.check.count("answered")
                self._end(number, event, asked)
                for answer in answers:
                    self._check_cost(number, asked, answer)
            case Refused(asked):
                self.check.count("refused")
                self._end(number, event, asked)

    def finish(self) -> None:
        """Report what is still open at the end."""
        for number, asked in self._open.items():
            self.check.note("open", number, f"The question of {asked.analyst} has no answer yet.")

    def _require_present(self, number: int, analyst: str) -> None:
        if analyst not in self._present and not self.has_gap:
            self.fault("stranger", number, f"{analyst} is not an analyst at this point.")

    def _close_round(self, number: int, payers: tuple[str, ...]) -> None:
        """Check that a round is closed for all who are done, and for no one else."""
        self.check.count("closed rounds")
        done = self._done - {asked.analyst for asked in self._open.values()}
        if not self.has_gap and (set(payers) != done or len(payers) != len(done)):
            self.fault("not-done", number, "The round is not closed for those who are done.")

    def _ask(self, number: int, asked: Asked) -> None:
        self.check.count("asked")
        self._done.discard(asked.analyst)
        self._require_present(number, asked.analyst)
        first = self._keys.setdefault((asked.analyst, asked.key), number)
        if first != number:
            self.fault("key-reused", number, f"{asked.analyst} reuses the key of event {first}.")
        self._asked[number] = self._open[number] = asked

    def _turn(self, number: int, taken: tuple[int, ...]) -> None:
        """Check a turn: first the questions due before a crash, then the next one of each analyst."""
        self.check.count("turns")
        if self.has_gap:
            self._due += [asked for asked in taken if asked in self._open and asked not in self._due]
            return
        if self._in_order or taken[: len(self._due)] != tuple(self._due):
            self.fault("out-of-turn", number, "The turn is not due.")
        waiting: dict[str, list[int]] = {}
        for asked, event in self._open.items():
            if asked not in self._due:
                waiting.setdefault(event.analyst, []).append(asked)
        for asked in taken:
            if asked in self._due:
                continue
            question = self._open.get(asked)
            if question is None or waiting[question.analyst][:1] != [asked]:
                self.fault("out-of-turn", number, f"The turn goes to event {asked}, which is not next.")
            if question is not None:
                waiting[question.analyst] = [each for each in waiting[question.analyst] if each != asked]
                self._due.append(asked)

    def _end(self, number: int, event: Answered | Refused, asked: int) -> None:
        question = self._asked.get(asked)
        if question is None:
            if not self.snapshot.is_lost(asked):
                self.fault("unknown", number, f"Event {asked}, which it ends, is not a question.")
            return
        if asked not in self._open:
            self.fault("ended-twice", number, f"The question of event {asked} is ended again.")
            return
        if not self.has_gap and not self._is_withdrawn(question, event):
            self._check_turn(number, event, asked)
        del self._open[asked]
        if asked in self._due:
            self._due.remove(asked)

    def _is_withdrawn(self, question: Asked, event: Answered | Refused) -> bool:
        """Whether the question was refused because its analyst left."""
        gone = question.analyst in self._gone
        return gone and isinstance(event, Refused) and event.code == RequestError.code

    def _check_turn(self, number: int, event: Answered | Refused, asked: int) -> None:
        """Check that a question ends after its turn has come, and before later ones if it was paid for.

        A free answer changes nothing that others see. Without a scheduler no order is promised: large
        questions let smaller ones pass, and the ledger says what came first.
        """
        if self._in_order:
            return
        is_free = isinstance(event, Refused) or all(each.get("charge") is None for each in event.answers)
        if asked not in (self._due if is_free else self._due[:1]):
            self.fault("out-of-turn", number, f"The question of event {asked} is ended out of turn.")

    def _check_cost(self, number: int, asked: int, answer: Mapping[str, Any]) -> None:
        """Check that the stated cost was charged, after the question, and for it alone."""
        try:
            charge, cost = answer["charge"], Fraction(answer["cost"])
        except (KeyError, TypeError, ValueError, ArithmeticError):
            self.fault("cost", number, "An answer does not state its cost.")
            return
        if charge is None:
            if cost:
                self.fault("cost", number, "An answer states a cost without a charge.")
            return
        charged = self.snapshot.get(charge) if type(charge) is int else None
        if charged is None and type(charge) is int and self.snapshot.is_lost(charge):
            return
        if not isinstance(charged, Charged) or not asked < charge < number:
            self.fault("cost", number, f"An answer names event {charge}, which is not a charge for it.")
        elif sum(charged.bill.values(), Fraction(0)) != cost:
            self.fault("cost", number, f"An answer states another cost than event {charge} charged.")
        elif self._charged_for.setdefault(charge, asked) != asked:
            text = f"An answer names event {charge}, which was charged for another question."
            self.fault("cost", number, text)
