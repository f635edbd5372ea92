"""Submissions: questions on their way, from being submitted until they are answered or refused."""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from threading import Condition, Lock
from typing import Any

from sharewell.errors import (
    Closed,
    KeyReused,
    NotFound,
    Overloaded,
    QueryError,
    RequestError,
    SharewellError,
    TooMany,
)
from sharewell.mechanisms.base import Answer, Mechanism, total_cost
from sharewell.privacy.driver import Step
from sharewell.privacy.ledger import (
    Answered,
    AnsweredFree,
    Asked,
    Ending,
    QuestionLedger,
    Refused,
    StoredQuestion,
)
from sharewell.query.sql import normalize_sql
from sharewell.query.statement import Statement
from sharewell.service.answers import answer_steps, from_plain, to_plain
from sharewell.service.ledger.codec import free_answers, read_answers
from sharewell.service.numbers import values
from sharewell.service.release_slots import slot_start

#: The number of a question that is not stored yet.
UNSTORED = -1
#: From so many answers on, or from so many estimated seconds of work on, a question is large.
LARGE_SIZE, LARGE_SECONDS = 100, 0.1
#: How much memory submissions that have ended may take, in bytes: about so many for each of them, and
#: for each of their answers.
CACHE_BYTES = 32_000_000
BYTES_OF_SUBMISSION, BYTES_OF_ANSWER = 2_000, 400

#: Held while a submission changes; one lock for each would be too many.
_CHANGING = Lock()

Compile = Callable[[str], Statement]
Outcome = tuple[Answer, ...] | Exception


class Submission:
    """A question with its compiled statement, and in the end its answers or its refusal.

    Waiting may be given up at any time: the question stays, and submitting it again with the same key
    finds it.
    """

    def __init__(
        self,
        asked: Asked,
        compile: Compile,
        statement: Statement | None = None,
        *,
        seconds: float = 0.0,
        deadline: float = math.inf,
        has_new_key: bool = False,
    ) -> None:
        self.asked = asked
        self.analyst, self.key, self.pay = asked.analyst, asked.key, asked.pay
        self.sql: str = asked.question["sql"]
        #: As the analyst wrote it: with COUNT(DISTINCT person), where that is the number of rows.
        self.written: str = asked.question.get("written", self.sql)
        self.number = UNSTORED
        #: Whether the key was made for it, so that the ledger has no question of that key.
        self.has_new_key = has_new_key
        #: The estimated time that computing it takes; 0 where it was asked before a restart.
        self.seconds = seconds
        #: Until when the worker must have taken it up, on the monotonic clock.
        self.deadline = deadline
        #: Whether the ledger has the question under its number.
        self.stored = False
        #: Since when there is something to report, on the monotonic clock: an answer, a refusal, or that
        #: the question is queued; and since when it is answered or refused.
        self.ready_at = self.done_at = math.inf
        #: Whether the question is answered or refused.
        self.done = False
        self._compile = compile
        if statement is not None:
            self.statement = statement
        #: Answers or a refusal that are not stored yet.
        self._computed: Outcome | None = None
        # Stored answers are decoded when they are read.
        self._outcome: Outcome | Ending | None = None
        self._changed: Condition | None = None

    @cached_property
    def statement(self) -> Statement:
        """What is asked; of a question of the past, compiled when it is needed."""
        return self._compile(self.sql)

    @cached_property
    def large(self) -> bool:
        """Whether computing it takes so long that others must not wait for it."""
        return self.seconds > LARGE_SECONDS or self.size > LARGE_SIZE

    @cached_property
    def size(self) -> int:
        """How many answers it has; 0 where a question of the past can no longer be compiled."""
        try:
            return self.statement.size
        except SharewellError:
            return 0

    def is_same_as(self, asked: Asked) -> bool:
        """Whether the question is this one, up to white space; a key stands for one question only."""
        if asked is self.asked:
            return True
        sql: str = asked.question["sql"]
        same = self.sql == sql or normalize_sql(self.sql) == normalize_sql(sql)
        return same and self.pay == asked.pay

    # As an item of a batch

    def steps(self, mechanism: Mechanism) -> Iterator[Step[tuple[Answer, ...]]]:
        """The steps that answer it; the last one returns all answers."""
        # A generator, so that a question of the past that no longer compiles is refused alone.
        yield from answer_steps(mechanism, self.statement, self.analyst, pay=self.pay)

    def finish(self, answers: list[tuple[Answer, ...]]) -> tuple[Answered | AnsweredFree]:
        """Keep the answers until they are stored; free ones are stored beside the chain."""
        self._computed = computed = answers[-1]
        plain = tuple([to_plain(answer) for answer in computed])
        is_free = all(answer.charge is None for answer in computed)
        return (free_answers(self.number, plain) if is_free else Answered(self.number, plain),)

    def fail(self, error: Exception) -> tuple[Refused]:
        """Keep the refusal until it is stored.

        An error of a library may quote what must not be shown, so it is replaced.
        """
        self._computed = refusal = error if isinstance(error, SharewellError) else not_computed()
        return (Refused(self.number, refusal.code, refusal.message),)

    # Settling

    def queue(self) -> None:
        """Report that the question is stored, and waits for its turn."""
        with _CHANGING:
            self.ready_at = min(self.ready_at, time.monotonic())
            if self._changed:
                self._changed.notify_all()

    def settle(self, outcome: Outcome | Ending) -> None:
        """Settle with answers or a refusal, stored or not; the first outcome stays."""
        with _CHANGING:
            if self.done:
                return
            # What was computed need not be decoded from what was stored of it.
            is_stored = isinstance(outcome, Ending) and self._computed is not None
            self._outcome = self._computed if is_stored else outcome
            self._computed = None
            self.done, self.done_at = True, time.monotonic()
            self.ready_at = min(self.ready_at, self.done_at)
            if self._changed:
                self._changed.notify_all()

    # Waiting

    def outcome(self, timeout: float | None = None) -> Outcome:
        """Wait for the answers or the refusal; raises TimeoutError."""
        if not self.done and not self._wait(lambda: self.done, timeout):
            raise TimeoutError("The question is not answered yet.")
        match self._outcome:
            case Refused(_, code, message):
                self._outcome = error = RequestError(message)
                error.code = code
            case Answered() | AnsweredFree() as event:
                self._outcome = tuple([from_plain(answer) for answer in read_answers(event)])
        return self._outcome  # type: ignore[return-value]

    def wait(self, timeout: float | None = None) -> Submission:
        """Wait for the answers; raises the refusal, or TimeoutError."""
        outcome = self.outcome(timeout)
        if isinstance(outcome, Exception):
            raise outcome
        return self

    def wait_until_ready(self, timeout: float | None = None) -> bool:
        """Wait until the question is answered, refused, or stored and queued."""
        return self._wait(lambda: self.ready_at < math.inf, timeout)

    def _wait(self, is_so: Callable[[], bool], timeout: float | None) -> bool:
        with _CHANGING:
            self._changed = self._changed or Condition(_CHANGING)
            return self._changed.wait_for(is_so, timeout)

    # The result

    @property
    def answers(self) -> tuple[Answer, ...]:
        """The answers, one for each query of the statement; raises the refusal."""
        return self.wait(0).outcome()  # type: ignore[return-value]

    @property
    def cost(self) -> Fraction:
        """The cost of the question, each charge counted once."""
        return total_cost(self.answers)

    @property
    def rows(self) -> list[tuple[Any, ...]]:
        """The result as SQL would show it, without errors."""
        return self.statement.rows(values(self.answers))


class Submissions:
    """The submissions in memory, by key and by number; safe from many threads.

    Every waiting submission is here. One that has ended is in the ledger, and may be cached here: memory
    does not grow with the number of questions ever asked.

    `most_waiting` limits the pending ones of each analyst, and `max_seconds_waiting` their estimated
    work, as of the last of the release slots, which begin every `release_every` seconds: a refusal must
    not tell when a question was answered. With 0 there are no slots: for sessions in the same process.
    """

    def __init__(
        self,
        ledger: QuestionLedger,
        compile: Compile,
        *,
        most_waiting: int,
        max_seconds_waiting: float,
        release_every: float,
        cache_bytes: int = CACHE_BYTES,
    ) -> None:
        self._ledger = ledger
        self._compile = compile
        self._most_waiting = most_waiting
        self._max_seconds_waiting = max_seconds_waiting
        self._release_every = release_every
        self._lock = Lock()
        self._by_key: dict[tuple[str, str], Submission] = {}
        self._by_number: dict[int, Submission] = {}
        #: Those of each analyst that wait, in order, with those that ended since the last slot.
        self._waiting: dict[str, list[Submission]] = {}
        #: Those that have ended, the least recently used first, and their size in bytes.
        self._cache: OrderedDict[int, int] = OrderedDict()
        self._cache_bytes = cache_bytes
        self._cached_bytes = 0

    # Those in memory

    def find(self, analyst: str, key: str) -> Submission | None:
        """The submission of a key, if it is in memory."""
        with self._lock:
            return self._used(self._by_key.get((analyst, key)))

    def add(self, new: Submission) -> Submission:
        """Add a submission, unless its key has one in memory, which is then returned."""
        with self._lock:
            found = self._by_key.get((new.analyst, new.key))
            if found is not None:
                return found
            waiting = self._unpublished(new.analyst)
            if len(waiting) >= self._most_waiting:
                raise TooMany(
                    f"{new.analyst} has {self._most_waiting:,} questions pending, which is the limit.",
                    hint="Wait until some of them are answered.",
                )
            seconds = sum(each.seconds for each in waiting)
            if seconds and seconds + new.seconds > self._max_seconds_waiting:
                raise TooMany(
                    f"The pending questions of {new.analyst} take about {seconds:.2g} s to compute, and "
                    f"this one {new.seconds:.2g} s; the limit is {self._max_seconds_waiting:g} s.",
                    hint="Wait until some of them are answered.",
                )
            waiting.append(new)
            self._by_key[new.analyst, new.key] = new
            return new

    def pending(self, analyst: str) -> list[Submission]:
        """Those not answered yet, in order."""
        with self._lock:
            return [each for each in self._waiting.get(analyst, ()) if not each.done]

    def store(self, number: int, asked: Asked) -> None:
        """Number the submission of an event that is stored; one that is not in memory is made anew.

        After an uncertain commit, an event may belong to a submission that has come again meanwhile.
        """
        with self._lock:
            if number in self._by_number:
                return
            found = self._by_key.get((asked.analyst, asked.key))
            if found is None or not found.is_same_as(asked):
                if found is not None:
                    found.settle(key_reused(asked.key))
                found = Submission(asked, self._compile)
                found.ready_at = -math.inf
                self._waiting.setdefault(asked.analyst, []).append(found)
            found.number, found.stored = number, True
            self._by_key[asked.analyst, asked.key] = self._by_number[number] = found

    def end(self, event: Ending) -> None:
        """Settle the submission of a stored event."""
        with self._lock:
            submission = self._by_number[event.asked]
            submission.settle(event)
            self._keep(submission, event)
            waiting = self._waiting.get(submission.analyst)
            if waiting and waiting[0].done:
                self._unpublished(submission.analyst)

    def restore(self, open_questions: Mapping[int, Asked]) -> None:
        """Make submissions of the questions that a ledger has open, and end those that it has ended."""
        with self._lock:
            ended = [
                number
                for number, submission in self._by_number.items()
                if not submission.done and number not in open_questions
            ]
        for number in ended:
            found = self._ledger.question(number)
            if found and found.ending:
                self.end(found.ending)
        for number, asked in open_questions.items():
            self.store(number, asked)

    def drop(self, batch: Sequence[Submission], error: Exception) -> None:
        """Refuse and forget submissions that could not be finished.

        Those that are stored come back, as new submissions, when the ledger is read again.
        """
        with self._lock:
            unfinished = [submission for submission in batch if not submission.done]
            for submission in unfinished:
                if self._by_key.get((submission.analyst, submission.key)) is submission:
                    del self._by_key[submission.analyst, submission.key]
                if self._by_number.get(submission.number) is submission:
                    del self._by_number[submission.number]
        for submission in unfinished:
            submission.settle(error)

    def give_up(self, error: Exception) -> None:
        """Refuse all that are pending."""
        for submission in list(self._by_key.values()):
            submission.settle(error)

    # Those in the ledger

    def adopt_stored(self, batch: Sequence[Submission]) -> None:
        """Settle submissions whose key was used before with what the ledger has stored for it."""
        new = {
            (each.analyst, each.key): each
            for each in batch
            if not (each.stored or each.done or each.has_new_key)
        }
        for question in self._ledger.find(new) if new else ():
            submission = new[question.asked.analyst, question.asked.key]
            if not submission.is_same_as(question.asked):
                self.drop([submission], key_reused(submission.key))
            elif question.ending is not None:
                self.store(question.number, question.asked)
                self.end(question.ending)

    def recall(self, analyst: str, key: str) -> Submission | None:
        """The submission of a key, from memory or from the ledger."""
        found = self.find(analyst, key)
        if found is None and (stored := self._ledger.find([(analyst, key)])):
            found = self._cached(stored[0])
        return found

    def numbered(self, number: int) -> Submission:
        """The submission of a number, from memory or from the ledger."""
        with self._lock:
            found = self._used(self._by_number.get(number))
        if found is None and (stored := self._ledger.question(number)):
            found = self._cached(stored)
        if found is None:
            raise NotFound(
                f"There is no question {number}.", hint="List the questions to see their numbers."
            )
        return found

    def of(self, analyst: str, after: int = -1) -> Iterator[Submission]:
        """An analyst's stored submissions with numbers above `after`, in order."""
        for question in self._ledger.questions(analyst, after):
            if found := self._by_number.get(question.number) or self._recalled(question):
                yield found

    def _recalled(self, question: StoredQuestion) -> Submission | None:
        """The submission of a question that has ended; an open one comes back with the state."""
        if question.ending is None:
            return self._by_number.get(question.number)
        recalled = Submission(question.asked, self._compile)
        recalled.number, recalled.stored = question.number, True
        recalled.settle(question.ending)
        recalled.ready_at = recalled.done_at = -math.inf
        return recalled

    def _cached(self, question: StoredQuestion) -> Submission | None:
        """The submission of a question that has ended, which is kept in the cache from now on."""
        recalled = self._recalled(question)
        with self._lock:
            if recalled and question.ending and (recalled.analyst, recalled.key) not in self._by_key:
                self._by_key[recalled.analyst, recalled.key] = recalled
                self._by_number[recalled.number] = recalled
                self._keep(recalled, question.ending)
        return recalled

    # Limits

    def has_room(self, analyst: str) -> bool:
        """Whether an analyst has fewer questions pending than the limit, as known without waiting."""
        return len(self._waiting.get(analyst, ())) < self._most_waiting

    def _unpublished(self, analyst: str) -> list[Submission]:
        """Those that wait, and those that ended since the last release slot; others are forgotten."""
        published = slot_start(self._release_every)
        found = [each for each in self._waiting.get(analyst, ()) if each.done_at > published]
        self._waiting[analyst] = found
        return found

    # The cache

    def _keep(self, submission: Submission, ending: Ending) -> None:
        """Put a submission that has ended into the cache, and drop what was not used for longest."""
        match ending:
            case AnsweredFree(_, answers):
                pass
            case Answered(_, stored):
                answers = len(stored)
            case _:
                answers = 0
        # Not `submission.statement`, which would compile a question of the past.
        compiled: Statement | None = vars(submission).get("statement")
        question = compiled.nbytes if compiled else len(submission.sql)
        size = BYTES_OF_SUBMISSION + question + BYTES_OF_ANSWER * answers
        self._cached_bytes += size - self._cache.pop(submission.number, 0)
        self._cache[submission.number] = size
        while self._cached_bytes > self._cache_bytes:
            number, size = self._cache.popitem(last=False)
            self._cached_bytes -= size
            dropped = self._by_number.pop(number)
            self._by_key.pop((dropped.analyst, dropped.key), None)

    def _used(self, submission: Submission | None) -> Submission | None:
        if submission is not None and submission.number in self._cache:
            self._cache.move_to_end(submission.number)
        return submission


def key_reused(key: str) -> KeyReused:
    """The refusal of a key that stands for another question."""
    return KeyReused(
        f"The key {key!r} belongs to another question.", hint="Use a new key for a new question."
    )


def closing() -> Closed:
    """The refusal of a question that comes while the service closes."""
    return Closed("The service is closing.", hint="Ask again later with the same key.")


def overloaded() -> Overloaded:
    """The refusal of a question that could not be taken up in time."""
    return Overloaded(
        "The service has more questions than it can answer in time.",
        hint="The question was not stored and costs nothing. Ask again later.",
    )


def not_computed() -> QueryError:
    """The refusal of a question whose computation failed; it does not say why."""
    return QueryError("The answer could not be computed.", hint="Rewrite the question.")
