"""Sessions: what an analyst, or a curator, does with a service from Python."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from sharewell import wire
from sharewell.client import call, told
from sharewell.client.answer import Answer
from sharewell.client.core import Core, settled
from sharewell.client.handle import Handle
from sharewell.client.progress import Progress
from sharewell.client.retry import Nap, Talk
from sharewell.client.table import AnswerTable

T = TypeVar("T")


class Transport(Protocol):
    """What carries calls to a service."""

    def send(self, call: call.Call[call.M]) -> call.M:
        """Send a call, and read its reply."""

    def close(self) -> None:
        """Let go of whatever is held."""


class Session:
    """An open door to one dataset. Close it, or use it in a `with` statement; safe from many threads."""

    def __init__(
        self, core: Core, transport: Transport, *, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self._core = core
        self._transport = transport
        self._sleep = sleep

    # What analysts do

    def ask(
        self,
        sql: str,
        *,
        pay: bool = True,
        key: str | None = None,
        wait: float | None = None,
        progress: Progress = None,
    ) -> Answer | AnswerTable:
        """Ask, and wait for the answer: one number, or a table.

        With `pay=False` it is answered from what was bought before, for nothing. With the `key` of an
        earlier question it is that question, and costs no more. After `wait` seconds in the queue
        `StillWaiting` is raised; the question stays.
        """
        return self._run(self._core.ask(sql, pay, key, wait, progress))

    def submit(self, sql: str, *, pay: bool = True, key: str | None = None) -> Ticket:
        """Hand in a question without waiting for its answer."""
        return Ticket(self, self._run(self._core.submit(sql, pay, key)))

    def ticket(self, number: int) -> Ticket:
        """A question of an earlier time, by its number."""
        return Ticket(self, self._run(self._core.look(number)))

    def questions(self, *, after: int = -1, limit: int | None = None) -> list[Ticket]:
        """One's own questions, oldest first: all, or so many after a number."""
        return [Ticket(self, each) for each in self._run(self._core.questions(after, limit))]

    def quote(self, sql: str) -> told.Quote:
        """What a question would cost and how far off its answers may be; costs nothing."""
        return self._run(self._core.quote(sql))

    @property
    def budget(self) -> told.Budget:
        """What one has left."""
        return self._run(self._core.tell(call.budget(), told.Budget.read))

    @property
    def dataset(self) -> told.Dataset:
        """What is public about the dataset: its columns, its budget, its promises."""
        return self._run(self._core.say(call.dataset()))

    def certificate(self) -> told.Certificate:
        """How one fares here, and how one would have fared alone."""
        return self._run(self._core.say(call.certificate()))

    def done(self) -> None:
        """Say that there are no more questions for now, so that no rotation waits."""
        self._run(self._core.say(call.done()))

    # What curators do

    def ledger(self, *, after: int = -1, limit: int | None = None) -> wire.Events:
        """What has happened, oldest first: all, or so many events after a number."""
        return self._run(self._core.ledger(after, limit))

    def analysts(self) -> told.Analysts:
        """Everybody who may ask, how they stand, and what nobody holds yet."""
        return self._run(self._core.tell(call.analysts(), told.Analysts.read))

    def join(self, name: str, share: str) -> str:
        """Take somebody in with a part of the whole budget, such as "1/10"; their token."""
        return self._run(self._core.join(name, share))

    def leave(self, name: str, *, donate: bool = False) -> None:
        """Let somebody go; with `donate`, what they have left goes to the others."""
        self._run(self._core.say(call.leave(name, donate)))

    def new_token(self, name: str) -> str:
        """Another token for somebody; the former one ends."""
        return self._run(self._core.new_token(name))

    def pause(self) -> None:
        """Take no questions until `resume`."""
        self._run(self._core.say(call.pause()))

    def resume(self) -> None:
        """Take questions again."""
        self._run(self._core.say(call.resume()))

    def close(self) -> None:
        """Close the session; questions that wait stay with the service."""
        if not self._core.closed:
            self._core.closed = True
            self._transport.close()

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        closed = ", closed" if self._core.closed else ""
        return f"<Session of {self._core.name} on {self._core.opens}, {self._transport!r}{closed}>"

    def _run(self, talk: Talk[T]) -> T:
        """Drive a talk to its end, one step at a time."""
        reply: Any = None
        failure: BaseException | None = None
        while True:
            try:
                step = talk.throw(failure) if failure else talk.send(reply)
            except StopIteration as end:
                result: T = end.value
                return result
            reply = failure = None
            try:
                reply = (
                    self._sleep(step.seconds) if isinstance(step, Nap) else self._transport.send(step)
                )
            except BaseException as error:  # the talk decides what comes of it, also of Ctrl-C
                failure = error


class Ticket(Handle):
    """A question that was handed in. It stays with the service, whatever becomes of this object."""

    def __init__(self, session: Session, told: wire.Ticket) -> None:
        super().__init__(told)
        self._session = session

    @property
    def state(self) -> str:
        """How it is doing now: "waiting", "answered" or "refused"."""
        return self._look().state

    @property
    def position(self) -> int:
        """How many of one's own questions come before it now."""
        return self._look().position or 0

    def result(self, *, wait: float | None = None, progress: Progress = None) -> Answer | AnswerTable:
        """Wait for the answer, for some seconds or as long as it takes; raises a refusal."""
        session = self._session
        self._told = session._run(session._core.wait_for(self._told, wait, progress))
        return settled(self._told)

    def _look(self) -> wire.Ticket:
        if not self._ended:
            self._told = self._session._run(self._session._core.look(self.number))
        return self._told
