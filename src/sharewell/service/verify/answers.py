"""Check the answers: replay what was bought, and compute values and errors by other means.

The mechanism is replayed for its decisions: what it buys, for whom, and from which source it answers.
Where its answers are estimates, their values and errors come from `Reference`, which shares no code with
the solvers that computed them; where they are not, or for those that are not sampled, from the replay.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from itertools import zip_longest
from typing import Any

from sharewell.config import Config
from sharewell.errors import OverBudget, QueryError, RequestError, SharewellError, UnknownPayer
from sharewell.mechanisms.base import Answer, EdgeEstimate, Mechanism, reach_of
from sharewell.privacy.driver import Step, run
from sharewell.privacy.ledger import (
    Answered,
    Asked,
    Charged,
    Configured,
    Event,
    Exceeded,
    Granted,
    Left,
    Recovered,
    Refused,
    Released,
    RoundClosed,
    SourceChanged,
)
from sharewell.privacy.measurement import MeasureRequest
from sharewell.query.block import Block
from sharewell.query.statement import Statement
from sharewell.service.answers import answer_steps, from_plain
from sharewell.service.verify.audit import (
    MALFORMED,
    Audit,
    LedgerSnapshot,
    compile_question,
    read_settings,
)
from sharewell.service.verify.replay import RecordedCharges, ReplayedCurator, ReplayMismatch, is_seed
from sharewell.sharing.reference import AGREEMENT, References, Sample

#: The work after which answers are sampled instead of all computed twice, in counted nanoseconds.
CHECKS = 4e9

#: Half the widths of intervals in earlier versions, in standard errors: of Gaussian and Laplace noise.
EARLIER_CRITICALS = (1.96, 2.06)

FIELDS = {"value", "standard_error", "interval", "source", "cost", "payer", "charge"}
#: What later versions store beside them, where a result needs it.
MORE_FIELDS = {"covariances", "edges", "moments", "source_changed"}


class AnswersAudit(Audit):
    """Recomputes every answer from the settings, the questions and the released values alone.

    Questions are replayed one by one when they end. The service decides on several at once and charges
    for them together; but each decision takes the earlier ones into account, so the result is the same.
    """

    name = "answers"
    stops_at_gap = True

    def __init__(self, snapshot: LedgerSnapshot) -> None:
        super().__init__(snapshot)
        self._recorded = RecordedCharges(snapshot)
        self._mechanism: Mechanism | None = None
        #: Set by the first settings; what happened to shares before them is kept until then.
        self._config: Config
        self._curator: ReplayedCurator
        self._references: References
        self._has_settings = False
        self._source_changed = False
        self._early: list[Granted | Recovered | Left] = []
        self._sample = Sample(CHECKS)
        #: Charges and positive tests seen so far that belong to nothing that has ended.
        self._charged: dict[int, Charged] = {}
        self._tested: dict[int, Exceeded] = {}

    def visit(self, number: int, event: Event) -> None:
        """Check the next event."""
        try:
            match event:
                case Configured():
                    self._configure(number, event)
                case _ if not self._has_settings:
                    if isinstance(event, Granted | Left | Recovered):
                        self._early.append(event)
                    elif isinstance(event, Charged) and number in self._recorded.released:
                        raise ReplayMismatch("There is no reason for this charge")
                case Granted():
                    self._grant(number, event)
                case Left(payer):
                    self._leave(number, payer)
                case SourceChanged():
                    self._source_changed = True
                case RoundClosed(payers):
                    self._close_round(number, payers)
                case Recovered():
                    self._recover(number, event)
                case Charged() if number not in self._recorded.taken:
                    self._charge(number, event)
                case Exceeded():
                    self._tested[number] = event
                case Answered():
                    self._check_answer(number, event)
                case Refused():
                    self._check_refusal(number, event)
        except ReplayMismatch as mismatch:
            self.fault("bought", number, f"{mismatch}.")
        except MALFORMED as error:
            reason = f" {error.message}" if isinstance(error, SharewellError) else ""
            self.fault("impossible", number, f"It contradicts the events before it.{reason}")

    def finish(self) -> None:
        """Report what is still open at the end."""
        for number in self._left_behind(math.inf):
            self.check.note("unused", number, "What it paid for belongs to no answer yet.")

    # Settings, arrivals and departures

    def _configure(self, number: int, event: Configured) -> None:
        config = read_settings(event)
        if config is None:
            return
        self._config = replace(config, make=config.make.with_signed_rows(event.signed_rows))
        if not self._has_settings:
            self._has_settings = True
            self._curator = ReplayedCurator(config, self._recorded)
            self._references = References(config.domain, self._curator.measured)
            for early in self._early:
                match early:
                    case Granted(payer, share):
                        self._curator.grant(payer, share)
                    case Recovered(bill):
                        self._curator.book(bill)
                    case Left(payer):
                        self._curator.retire(payer)
        self._reopen(number)

    def _reopen(self, number: int) -> None:
        """Make the mechanism anew from what it has learned, as every start of the service does.

        It buys what it lacks, such as a seed. If the ledger has no such charge, the service crashed
        before it, and the next start buys it.
        """
        self._recorded.offer_from(number)
        try:
            make = self._config.make.with_seed(self._recorded.seeds, self._config.domain)
            self._mechanism = make(self._curator)
        except ReplayMismatch:
            self._mechanism = None

    def _grant(self, number: int, event: Granted) -> None:
        if self._mechanism is not None:
            self._recorded.offer_from(number)
            try:
                self._mechanism.join(event.payer, event.share)
            except (ReplayMismatch, SharewellError):
                # Added by new settings, which follow, or the service crashed before the seed.
                self._mechanism = None
        if event.payer not in self._curator.payers:
            self._curator.grant(event.payer, event.share)

    def _leave(self, number: int, payer: str) -> None:
        donation = self._donation(number, payer)
        mechanism = self._ready(number)
        if mechanism is None:
            self._curator.retire(payer)
            return
        self._recorded.offer([] if donation is None else [donation])
        try:
            mechanism.leave(payer, donate=donation is not None)
        except ReplayMismatch:
            self._curator.retire(payer)
            raise
        if donation is not None:
            self._charged.pop(donation, None)

    def _close_round(self, number: int, payers: tuple[str, ...]) -> None:
        mechanism = self._mechanism_for(number, [])
        if mechanism is None:
            self.fault("impossible", number, "No mechanism was ready to close a round.")
            return
        self._recorded.offer([number + 1])
        try:
            mechanism.close_round(payers)
        except ReplayMismatch:
            if number + 1 in self._recorded.released:
                raise
            # The service crashed after the charge: its bill is booked, or the next start completes it.
            self._mechanism = None

    def _donation(self, left: int, payer: str) -> int | None:
        """The charge just before a departure, with its release, that is the analyst's donation."""
        released = self.snapshot.get(left - 1)
        charge = released.charge if isinstance(released, Released) else None
        charged = None if charge is None else self._charged.get(charge)
        if charge is None or charged is None or self._recorded.next_after(charge) != left:
            return None
        return charge if set(charged.bill) == {payer} and is_seed(charged) else None

    def _recover(self, number: int, event: Recovered) -> None:
        """Book what was lost; charges that were not released before stay without a release."""
        for charge in list(self._charged):
            if charge not in self._recorded.released:
                self._curator.book(self._charged.pop(charge).bill)
                self._recorded.taken.add(charge)
        self._curator.book(event.bill)
        self._curator.end_sparse_vectors()
        self._restart(number)

    def _charge(self, number: int, charged: Charged) -> None:
        """Handle a charge that is not accounted for yet: of a question, a donation or a start."""
        self._charged[number] = charged
        if self._mechanism is not None and not is_seed(charged) and "measure" in charged.purpose:
            return
        left = self.snapshot.get(self._recorded.next_after(number))
        if isinstance(left, Left) and set(charged.bill) == {left.payer}:
            return
        self._restart(number)

    def _restart(self, number: int) -> None:
        """The service was started again: it knows everything charged and released before."""
        behind = [each for each in self._left_behind(math.inf) if each < number]
        if behind:
            self._absorb(behind, number)
        self._reopen(number)
        if number in self._charged and number not in self._recorded.taken:
            charged = self._charged[number]
            if number not in self._recorded.released:
                return
            is_whole_rest = all(self._curator.left(p) == cost for p, cost in charged.bill.items())
            if not is_seed(charged) or not is_whole_rest:
                raise ReplayMismatch("There is no reason for this charge")
            # A donation after which the service crashed, before the departure was stored.
            self._absorb([number], math.inf)
            self._reopen(number)

    def _ready(self, number: int) -> Mechanism | None:
        if self._mechanism is None:
            self._reopen(number)
        return self._mechanism

    # What a crash left behind

    def _left_behind(self, until: float) -> list[int]:
        """Charges released before an event that belong to no answer."""
        for number in [each for each in self._charged if each in self._recorded.taken]:
            del self._charged[number]
        return [
            number
            for number, charged in self._charged.items()
            if number not in self._recorded.named
            and ("measure" not in charged.purpose or self._recorded.released_at(number) < until)
        ]

    def _absorb(self, behind: list[int], before: float) -> None:
        """Take in charges completed after a crash; the restart completes everything that was open."""
        completed = max(self._recorded.released_at(number) for number in behind)
        for number in self._charged:
            if number < completed and self._recorded.released_at(number) > before:
                self.fault(
                    "unused", number, "It was not released when the service completed open charges."
                )
        for number in behind:
            self._charged.pop(number, None)
            self.check.note("completed", number, "Completed after a crash; no answer names it.")
            try:
                self._curator.absorb(number)
            except (OverBudget, UnknownPayer):
                self._recorded.taken.add(number)  # The check of the accounts reports it.
        self._mechanism = None

    # Questions

    def _check_answer(self, number: int, event: Answered) -> None:
        asked = self.snapshot.get(event.asked)
        if not isinstance(asked, Asked):
            return  # Another check reports it.
        stored = [from_plain(answer) for answer in event.answers]
        own = list(dict.fromkeys(answer.charge for answer in stored if answer.charge is not None))
        mechanism = self._mechanism_for(number, own)
        if mechanism is None:
            self.fault("impossible", number, "No mechanism was ready to answer it.")
            return
        if self._recorded.latest > number:
            self.fault(
                "early", number, f"It answers before event {self._recorded.latest} released its values."
            )
        for charge in own:
            if charge not in self._charged or self._recorded.released_at(charge) >= number:
                raise ReplayMismatch(f"Event {charge} is named and was not released for it")
        self._recorded.offer(own)
        self._recorded.tests.clear()
        self._recorded.tests.extend(self._tested.pop(c - 1) for c in own if c - 1 in self._tested)
        try:
            statement = self._compile(asked)
            found = self._answer(mechanism, statement, asked, stored)
            if rest := self._recorded.rest:
                raise ReplayMismatch(f"The mechanism would buy nothing for event {rest[0]}")
            if self._recorded.tests:
                raise ReplayMismatch("The mechanism would not make the recorded test")
        except ReplayMismatch:
            # Continue as the ledger says.
            for charge in own:
                if charge not in self._recorded.taken:
                    self._curator.absorb(charge)
            self._mechanism = None
            raise
        finally:
            for charge in own:
                self._charged.pop(charge, None)
        if any(answer.source_changed != self._source_changed for answer in stored):
            self.fault(
                "source-changed", number, "It does not say rightly whether the source had changed."
            )
        self._compare(number, event.answers, stored, found)
        self._compare_related(number, statement, stored, found)

    def _mechanism_for(self, number: int, own: list[int]) -> Mechanism | None:
        """The mechanism as it was, after any crash that left something behind."""
        behind = [each for each in self._left_behind(number) if each not in own]
        for each in [each for each in self._tested if each + 1 not in own]:
            self._curator.positives[self._tested.pop(each).charge] += 1
            if each + 1 not in behind:
                self.check.note("completed", each, "The positive test was lost in a crash.")
                self._mechanism = None
        if behind:
            self._absorb(behind, number)
        return self._ready(number)

    def _answer(
        self, mechanism: Mechanism, statement: Statement, asked: Asked, stored: Sequence[Answer]
    ) -> list[Answer]:
        """The answers again: all after the last purchase or, in older ledgers, each after its own."""
        twice = mechanism.best_estimates and self._sample.chooses()
        blocks = statement.blocks
        *parts, together = (
            run(step, mechanism.curator)
            for step in self._checked(mechanism, statement, asked, twice=twice)
        )
        separately = [answer for part in parts for answer in part]
        if len(stored) == len(separately) and any(map(_difference, stored, separately)):
            answers, at = list(together), 0
            for block in blocks if twice else ():
                own = slice(at, at + len(block))
                answers[own] = self._compute(mechanism, asked.analyst, block, answers[own])
                at += len(block)
            return answers
        return [
            replace(own, covariances=each.covariances, edges=each.edges, moments=each.moments)
            for own, each in zip(separately, together, strict=True)
        ]

    def _checked(
        self, mechanism: Mechanism, statement: Statement, asked: Asked, *, twice: bool
    ) -> Iterator[Step[Sequence[Answer]]]:
        """The steps of a question; with `twice`, each block is computed a second time."""
        steps = answer_steps(mechanism, statement, asked.analyst, pay=asked.pay)
        for step, block in zip_longest(steps, statement.blocks):
            if block is None or not twice:
                yield step
            else:
                yield self._step_twice(mechanism, asked.analyst, block, step)

    def _step_twice(
        self, mechanism: Mechanism, analyst: str, block: Block, step: Step[Sequence[Answer]]
    ) -> Step[Sequence[Answer]]:
        answers = yield from step
        return self._compute(mechanism, analyst, block, answers)

    def _compute(
        self, mechanism: Mechanism, analyst: str, block: Block, answers: Sequence[Answer]
    ) -> Sequence[Answer]:
        """Answers with the values and errors of the second implementation, where it can compute them."""
        reference = self._references.of(mechanism, analyst)
        before = reference.work
        places = self._sample.pick(len(block))
        found = reference.estimate([block[at] for at in places])
        self._sample.count(reference.work - before)
        if found is None:
            return answers
        self.check.count("answers computed twice", len(found))
        again = list(answers)
        for at, (value, variance) in zip(places, found, strict=True):
            error = math.sqrt(variance)
            reach = reach_of(error, abs(float(block[at].scale)), mechanism.critical)
            finite = math.isfinite(reach)
            interval = (value - reach, value + reach) if finite else (-math.inf, math.inf)
            again[at] = _with_numbers(answers[at], value, error, interval)
        return again

    def _compile(self, asked: Asked) -> Statement:
        return compile_question(asked.question["sql"], self._curator.domain, self._config.name)

    def _check_refusal(self, number: int, event: Refused) -> None:
        asked = self.snapshot.get(event.asked)
        if not isinstance(asked, Asked):
            return
        mechanism = self._mechanism_for(number, [])
        if mechanism is None:
            self.fault("impossible", number, "No mechanism was ready to refuse it.")
            return
        self.check.count("refusals")
        if event.code == RequestError.code and asked.analyst not in mechanism.analysts:
            return  # Withdrawn: the analyst left while the question waited.
        code = self._refusal_code(mechanism, asked)
        # Codes only: the messages of older versions differ.
        if code == event.code:
            return
        if code is None and event.code == QueryError.code:
            # The code of a failed computation, which cannot be reproduced here.
            self.check.note(
                "not-computed", number, "It reports a failed computation, which cannot be checked."
            )
        elif code is None:
            self.fault("refused", number, "It refuses a question that could be answered.")
        else:
            self.fault("refused", number, f"It refuses with {event.code!r} instead of {code!r}.")

    def _refusal_code(self, mechanism: Mechanism, asked: Asked) -> str | None:
        """The code of the error that refuses a question, or None if it can be answered."""
        curator = mechanism.curator
        with ExitStack() as undo:
            try:
                for block in self._compile(asked).blocks:
                    step = mechanism.step(block, asked.analyst, pay=asked.pay)
                    request = next(undo.enter_context(closing(step)))
                    if isinstance(request, MeasureRequest):
                        undo.callback(curator.release, curator.reserve(request))
            except SharewellError as error:
                return error.code
        return None

    def _compare(
        self,
        number: int,
        plain: Sequence[Mapping[str, Any]],
        stored: Sequence[Answer],
        found: Sequence[Answer],
    ) -> None:
        """Compare the stored answers with the recomputed ones."""
        self.check.count("answers", len(found))
        if len(stored) != len(found):
            self.fault("differs", number, f"It has {len(stored)} answers instead of {len(found)}.")
            return
        for place, (fields, was, again) in enumerate(zip(plain, stored, found, strict=True)):
            if fields.keys() - MORE_FIELDS != FIELDS:
                self.fault("differs", number, f"Answer {place} has other fields.")
            elif name := _difference(was, again):
                self.fault(
                    "differs",
                    number,
                    f"The {name.replace('_', ' ')} of answer {place} does not follow from the released "
                    f"values: {getattr(was, name)} instead of {getattr(again, name)}.",
                )

    def _compare_related(
        self, number: int, statement: Statement, stored: Sequence[Answer], found: Sequence[Answer]
    ) -> None:
        """Compare stored covariances and sums of edges with recomputed ones; old ledgers have none."""
        starts = statement.starts
        for place, (was, again) in enumerate(zip(stored, found, strict=False)):
            covariances, edges = dict(again.covariances), dict(again.edges)
            row = place - starts[bisect_right(starts, place) - 1]
            for block, value in was.covariances:
                other = found[starts[block] + row].standard_error
                if not _is_close(
                    value, covariances.get(block), (again.standard_error or 0) * (other or 0)
                ):
                    self.fault("differs", number, f"The covariance of answer {place} does not follow.")
            moments = dict(again.moments)
            for at, value in was.moments:
                if not _is_close(value, moments.get(at), (again.standard_error or 0) ** 2):
                    self.fault("differs", number, f"The moments of answer {place} do not follow.")
            for at, own in was.edges:
                if at not in edges or not _has_edges(own, edges[at]):
                    self.fault("differs", number, f"The sums of edges of answer {place} do not follow.")


def _has_edges(was: EdgeEstimate, again: EdgeEstimate) -> bool:
    """Whether stored sums of edges follow; those of older ledgers have no errors and covariances."""
    sums = (
        (was.lower, was.below, again.lower, again.below, again.lower_error),
        (was.upper, was.above, again.upper, again.above, again.upper_error),
    )
    for value, reach, other, own, error in sums:
        reaches = [own, *(critical * (error or 0.0) for critical in EARLIER_CRITICALS)]
        if not _is_close(value, other, own) or not any(_is_close(reach, each, own) for each in reaches):
            return False
    more = zip(was[4:], again[4:], (own for *_, own in (*sums, *sums)), strict=True)
    if any(each is not None for each in was[4:]):
        return all(_is_close(one, other, error) for one, other, error in more)
    return True


def _with_numbers(answer: Answer, value: float, error: float, interval: tuple[float, float]) -> Answer:
    if math.isinf(error):
        value = answer.value
    return replace(answer, value=value, standard_error=error, interval=interval)


def _difference(was: Answer, again: Answer) -> str:
    """The first field that differs by more than rounding, or an empty string."""
    for name in ("source", "cost", "payer", "charge"):
        if getattr(was, name) != getattr(again, name):
            return name
    error = again.standard_error
    if not _is_close(was.standard_error, error, error):
        return "standard_error"
    if error is not None and math.isinf(error):
        # Nothing determines the answer: its value is arbitrary, and no interval is finite.
        return "interval" if any(map(math.isfinite, was.interval or ())) else ""
    if not _is_close(was.value, again.value, error):
        return "value"
    return "" if _has_interval(was, again) else "interval"


def _has_interval(was: Answer, again: Answer) -> bool:
    """Whether an answer has the interval of today, or that of an earlier version."""
    ends, others = was.interval or (None, None), again.interval or (None, None)
    error = again.standard_error
    if all(_is_close(a, b, error) for a, b in zip(ends, others, strict=True)):
        return True
    reaches = [critical * (error or 0.0) for critical in EARLIER_CRITICALS]
    return any(
        _is_close(ends[0], again.value - reach, error) and _is_close(ends[1], again.value + reach, error)
        for reach in reaches
    )


def _is_close(was: float | None, again: float | None, error: float | None) -> bool:
    """Whether two numbers differ by no more than a small part of the standard error."""
    if was is None or again is None:
        return was is again
    if not (math.isfinite(was) and math.isfinite(again)):
        return was == again
    return abs(was - again) <= AGREEMENT * (error or 0.0) + 1e-12 * abs(again)
