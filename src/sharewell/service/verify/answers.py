"""The answers: the mechanism is run again, and must give what was given."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from sharewell.config.config import Config
from sharewell.errors import OverBudget, RequestError, SharewellError, UnknownPayer
from sharewell.mechanism.base import Answer, Mechanism, Prepared
from sharewell.privacy.ledger import (
    Answered,
    Asked,
    Charged,
    Configured,
    Event,
    Exceeded,
    Granted,
    Left,
    Refused,
)
from sharewell.query.statement import Statement
from sharewell.service.result import from_plain
from sharewell.service.served import not_computed
from sharewell.service.verify.accounts import MALFORMED
from sharewell.service.verify.comparison import compare
from sharewell.service.verify.finding import Check
from sharewell.service.verify.record import Record, config_of, statement_of
from sharewell.service.verify.replay import Departs, ReplayedCurator, Tape

#: What the service says where a library has failed it: that cannot be seen again.
NOT_COMPUTED = not_computed().code, not_computed().message


def check_answers(record: Record, watch: Callable[[int], None] = lambda _: None) -> Check:
    """Compute every answer again, from the settings, the questions and the released values alone."""
    check = Check("answers")
    replay = _Replay(record, check)
    for number, event in record:
        if record.gap is not None and number > record.gap:
            check.skipped = f"from event {record.gap} on, which cannot be read"
            break
        replay.visit(number, event)
        if number % 256 == 0:
            watch(number)
    replay.finish()
    return check


class _Replay:
    """A broker's state, taken from event to event.

    Questions are replayed one after the other when they end. The broker prepared several at once, and
    charged for them together; but each was prepared after those before it, so it comes to the same.
    """

    def __init__(self, record: Record, check: Check) -> None:
        self._record = record
        self._check = check
        self._tape = Tape(record)
        self._config: Config | None = None
        self._curator: ReplayedCurator | None = None
        self._mechanism: Mechanism | None = None
        self._granted: list[Granted] = []
        #: Charges and positive tests that have been passed, and belong to nothing that has ended yet.
        self._charged: dict[int, Charged] = {}
        self._tested: dict[int, Exceeded] = {}

    def visit(self, number: int, event: Event) -> None:
        try:
            match event:
                case Configured():
                    self._configure(number, event)
                case Granted():
                    self._grant(number, event)
                case Left(payer):
                    self._leave(number, payer)
                case Charged() if number not in self._tape.taken:
                    self._charge(number, event)
                case Exceeded():
                    self._tested[number] = event
                case Answered():
                    self._answered(number, event)
                case Refused():
                    self._refused(number, event)
        except Departs as departs:
            self._check.fault("bought", f"At event {number} {departs}.", number)
        except MALFORMED as error:
            said = f" {error.message}" if isinstance(error, SharewellError) else ""
            self._check.fault("impossible", f"Event {number} cannot have come about.{said}", number)

    def finish(self) -> None:
        for number in self._left_behind(math.inf):
            self._check.note("unused", f"What event {number} paid for belongs to no answer yet.", number)

    # Settings, and who comes and goes

    def _configure(self, number: int, event: Configured) -> None:
        config = config_of(event)
        if config is None:
            return
        self._config = config
        if self._curator is None:
            self._curator = ReplayedCurator(config, self._tape)
            for granted in self._granted:
                self._curator.grant(granted.payer, granted.share)
        self._reopen(number)

    def _reopen(self, number: int) -> None:
        """Make the mechanism anew from what it has learned, as every start of the service does.

        It buys what it lacks, a seed for instance. Where the ledger does not say so the service did
        not come that far, and the next start does it.
        """
        if self._config is None or self._curator is None:
            return
        self._tape.play_from(number)
        try:
            self._mechanism = self._config.make(self._curator)
        except Departs:
            self._mechanism = None

    def _grant(self, number: int, event: Granted) -> None:
        if self._curator is None:
            self._granted.append(event)
            return
        if self._mechanism is not None:
            self._tape.play_from(number)
            try:
                self._mechanism.join(event.payer, event.share)
            except (Departs, SharewellError):
                # They came with new settings, which follow, or the service crashed before their seed.
                self._mechanism = None
        if event.payer not in self._curator.payers:
            self._curator.grant(event.payer, event.share)

    def _leave(self, number: int, payer: str) -> None:
        if self._curator is None:
            return
        donation = self._donation(number, payer)
        mechanism = self._ready(number)
        if mechanism is None:
            self._curator.retire(payer)
            return
        self._tape.play([number - 2] if donation else [])
        try:
            mechanism.leave(payer, donate=donation)
        except Departs:
            self._curator.retire(payer)
            raise
        self._charged.pop(number - 2, None)

    def _donation(self, left: int, payer: str) -> bool:
        """Whether what stands just before somebody leaves is what they have donated."""
        charged = self._record.get(left - 2)
        if left - 2 not in self._charged or self._tape.released_at(left - 2) != left - 1:
            return False
        return isinstance(charged, Charged) and set(charged.bill) == {payer} and _is_seed(charged)

    def _charge(self, number: int, charged: Charged) -> None:
        """Something was charged that nobody has asked for yet: by a question, a donation or a start."""
        self._charged[number] = charged
        if self._mechanism is not None and not _is_seed(charged) and "measure" in charged.purpose:
            return
        if isinstance(left := self._record.get(number + 2), Left) and set(charged.bill) == {left.payer}:
            return
        self._restart(number, math.inf)

    def _restart(self, number: int, until: float) -> None:
        """The service was started again: what was charged before was released, and is known to it."""
        behind = [each for each in self._left_behind(until) if each < number]
        if behind:
            self._absorb(behind, number)
        self._reopen(number)
        if number in self._charged and number not in self._tape.taken:
            charged = self._charged[number]
            if number not in self._tape.released:
                return
            if not _is_seed(charged) or not self._is_all_that_is_left(charged):
                raise Departs(f"nobody had a reason to pay for event {number}")
            # Somebody donated what they had left, and the service crashed before they were gone.
            self._absorb([number], math.inf)
            self._reopen(number)

    def _is_all_that_is_left(self, charged: Charged) -> bool:
        curator = self._curator
        return curator is not None and all(curator.left(p) == c for p, c in charged.bill.items())

    def _ready(self, number: int) -> Mechanism | None:
        if self._mechanism is None:
            self._reopen(number)
        return self._mechanism

    # What a crash has left behind

    def _left_behind(self, until: float) -> list[int]:
        """Charges that were released before an event, and belong to no answer."""
        for number in [each for each in self._charged if each in self._tape.taken]:
            del self._charged[number]
        return [
            number
            for number, charged in self._charged.items()
            if number not in self._tape.named
            and ("measure" not in charged.purpose or self._tape.released_at(number) < until)
        ]

    def _absorb(self, behind: list[int], before: float) -> None:
        """Take in what was completed after a crash, which completes everything that was open."""
        if self._curator is None:
            return
        completed = max(self._tape.released_at(number) for number in behind)
        for number in self._charged:
            if number < completed and self._tape.released_at(number) > before:
                self._check.fault(
                    "unused",
                    f"Event {number} was not released when what was left behind was.",
                    number,
                )
        for number in behind:
            self._charged.pop(number, None)
            self._check.note(
                "completed",
                f"What event {number} paid for was completed after a crash; no answer names it.",
                number,
            )
            try:
                self._curator.absorb(number)
            except (OverBudget, UnknownPayer):
                self._tape.taken.add(number)  # The accounts say so.
        self._mechanism = None

    def _wasted_tests(self, tests: list[int]) -> None:
        """Positive tests that were stored before a crash, and after which nothing was measured."""
        if self._curator is None:
            return
        for number in tests:
            test = self._tested.pop(number)
            self._curator.past.positives[test.charge] += 1
            self._check.note(
                "completed", f"The positive test of event {number} was lost in a crash.", number
            )
        self._mechanism = None

    # Questions

    def _answered(self, number: int, event: Answered) -> None:
        asked = self._record.get(event.asked)
        if not isinstance(asked, Asked) or self._config is None:
            return  # Another check says so.
        stored = [from_plain(answer) for answer in event.answers]
        own = list(dict.fromkeys(answer.charge for answer in stored if answer.charge is not None))
        mechanism = self._mechanism_for(number, own)
        if mechanism is None or self._curator is None:
            self._check.fault(
                "impossible", f"Event {number} answers before there was a mechanism.", number
            )
            return
        if self._tape.latest > number:
            self._check.fault(
                "early", f"Event {number} answers before event {self._tape.latest} has released.", number
            )
        if wrong := [charge for charge in own if not self._usable(charge, number)]:
            raise Departs(f"event {wrong[0]} is named, which was not released for it")
        self._tape.play(own)
        self._tape.tests.clear()
        self._tape.tests.extend(self._tested.pop(c - 1) for c in own if c - 1 in self._tested)
        try:
            found = self._answer(mechanism, self._compile(asked), asked)
            if rest := self._tape.rest:
                raise Departs(f"nothing would have been bought for event {rest[0]}")
            if self._tape.tests:
                raise Departs("a test is named that would not have been made")
        except Departs:
            # Go on as the ledger says.
            for charge in own:
                if charge not in self._tape.taken:
                    self._curator.absorb(charge)
            self._mechanism = None
            raise
        finally:
            for charge in own:
                self._charged.pop(charge, None)
        compare(self._check, number, event.answers, found)

    def _usable(self, charge: int, number: int) -> bool:
        return charge in self._charged and self._tape.released_at(charge) < number

    def _mechanism_for(self, number: int, own: list[int]) -> Mechanism | None:
        """The mechanism as it was, after the crash that has left something behind, if any."""
        behind = [each for each in self._left_behind(number) if each not in own]
        tests = [each for each in self._tested if each + 1 not in own]
        after_loss = [each for each in tests if each + 1 not in behind]
        for each in set(tests) - set(after_loss):
            test = self._tested.pop(each)
            if self._curator is not None:
                self._curator.past.positives[test.charge] += 1
        if after_loss:
            self._wasted_tests(after_loss)
        if behind:
            self._absorb(behind, number)
        return self._ready(number)

    def _answer(self, mechanism: Mechanism, statement: Statement, asked: Asked) -> list[Answer]:
        found: list[Answer] = []
        for block in statement.blocks:
            prepared = mechanism.prepare(block, asked.analyst, pay=asked.pay)
            bought = None
            if prepared.order is not None:
                try:
                    [bought] = mechanism.curator.fill([prepared.order])
                except Departs:
                    mechanism.forget(prepared)
                    raise
            found += mechanism.finish(prepared, bought)
        return found

    def _compile(self, asked: Asked) -> Statement:
        if self._config is None or self._curator is None:
            raise Departs("nothing could be asked yet")
        return statement_of(asked.question["sql"], self._curator.domain, self._config.name)

    def _refused(self, number: int, event: Refused) -> None:
        asked = self._record.get(event.asked)
        if not isinstance(asked, Asked) or self._config is None:
            return
        mechanism = self._mechanism_for(number, [])
        if mechanism is None:
            self._check.fault(
                "impossible", f"Event {number} refuses before there was a mechanism.", number
            )
            return
        self._check.count("refusals")
        if event.code == RequestError.code and asked.analyst not in mechanism.analysts:
            said: tuple[str, str] | None = (RequestError.code, f"{asked.analyst} has left.")
        else:
            said = self._refusal(mechanism, asked)
        if said is None and (event.code, event.message) == NOT_COMPUTED:
            self._check.note("not-computed", f"Event {number} says that computing failed.", number)
        elif said is None:
            self._check.fault(
                "refused",
                f"Event {number} refuses what could have been answered.",
                number,
            )
        elif said != (event.code, event.message):
            self._check.fault(
                "refused",
                f"Event {number} refuses with {event.code!r} and not with {said[0]!r}: {said[1]}",
                number,
            )

    def _refusal(self, mechanism: Mechanism, asked: Asked) -> tuple[str, str] | None:
        """Why a question is refused; None where it is not."""
        prepared: list[Prepared] = []
        try:
            for block in self._compile(asked).blocks:
                prepared.append(mechanism.prepare(block, asked.analyst, pay=asked.pay))
        except SharewellError as error:
            return error.code, error.message
        finally:
            for each in reversed(prepared):
                mechanism.forget(each)
        return None


def _is_seed(charged: Charged) -> bool:
    measured = charged.purpose.get("measure")
    return isinstance(measured, Mapping) and measured.get("kind") == "strategy"
