"""Sessions for event loops: the twin of `Session`, where everything is awaited.

Both are thin: what is said and heard, and when to try again, is in `Core`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
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


class AsyncTransport(Protocol):
    """What carries calls to a service."""

    async def send(self, call: call.Call[call.M]) -> call.M:
        """Send a call, and read its reply."""

    async def close(self) -> None:
        """Let go of whatever is held."""


class AsyncSession:
    """An open door to one dataset, for an event loop: `async with connect_async(...) as session`."""

    def __init__(
        self,
        core: Core,
        transport: AsyncTransport,
        *,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._core = core
        self._transport = transport
        self._sleep = sleep

    # What analysts do

    async def ask(
        self,
        sql: str,
        *,
        pay: bool = True,
        key: str | None = None,
        wait: float | None = None,
        progress: Progress = None,
    ) -> Answer | AnswerTable:
        """Ask, and wait for the answer: one number, or a table."""
        return await self._run(self._core.ask(sql, pay, key, wait, progress))

    async def submit(self, sql: str, *, pay: bool = True, key: str | None = None) -> AsyncTicket:
        """Hand in a question without waiting for its answer."""
        return AsyncTicket(self, await self._run(self._core.submit(sql, pay, key)))

    async def ticket(self, number: int) -> AsyncTicket:
        """A question of an earlier time, by its number."""
        return AsyncTicket(self, await self._run(self._core.look(number)))

    async def questions(self, *, after: int = -1, limit: int | None = None) -> list[AsyncTicket]:
        """One's own questions, oldest first: all, or so many after a number."""
        return [AsyncTicket(self, each) for each in await self._run(self._core.questions(after, limit))]

    async def quote(self, sql: str) -> told.Quote:
        """What a question would cost and how far off its answers may be; costs nothing."""
        return await self._run(self._core.quote(sql))

    @property
    async def budget(self) -> told.Budget:
        """What one has left."""
        return await self._run(self._core.tell(call.budget(), told.Budget.read))

    @property
    async def dataset(self) -> told.Dataset:
        """What is public about the dataset: its columns, its budget, its promises."""
        return await self._run(self._core.say(call.dataset()))

    async def certificate(self) -> told.Certificate:
        """How one fares here, and how one would have fared alone."""
        return await self._run(self._core.say(call.certificate()))

    async def done(self) -> None:
        """Say that there are no more questions for now, so that no rotation waits."""
        await self._run(self._core.say(call.done()))

    # What curators do

    async def ledger(self, *, after: int = -1, limit: int | None = None) -> wire.Events:
        """What has happened, oldest first: all, or so many events after a number."""
        return await self._run(self._core.ledger(after, limit))

    async def analysts(self) -> told.Analysts:
        """Everybody who may ask, how they stand, and what nobody holds yet."""
        return await self._run(self._core.tell(call.analysts(), told.Analysts.read))

    async def join(self, name: str, share: str) -> str:
        """Take somebody in with a part of the whole budget, such as "1/10"; their token."""
        return await self._run(self._core.join(name, share))

    async def leave(self, name: str, *, donate: bool = False) -> None:
        """Let somebody go; with `donate`, what they have left goes to the others."""
        await self._run(self._core.say(call.leave(name, donate)))

    async def new_token(self, name: str) -> str:
        """Another token for somebody; the former one ends."""
        return await self._run(self._core.new_token(name))

    async def pause(self) -> None:
        """Take no questions until `resume`."""
        await self._run(self._core.say(call.pause()))

    async def resume(self) -> None:
        """Take questions again."""
        await self._run(self._core.say(call.resume()))

    async def close(self) -> None:
        """Close the session; questions that wait stay with the service."""
        if not self._core.closed:
            self._core.closed = True
            await self._transport.close()

    async def __aenter__(self) -> AsyncSession:
        try:
            await self._run(self._core.greet())
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def __repr__(self) -> str:
        closed = ", closed" if self._core.closed else ""
        return f"<AsyncSession of {self._core.name} on {self._core.opens}, {self._transport!r}{closed}>"

    async def _run(self, talk: Talk[T]) -> T:
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
                if isinstance(step, Nap):
                    await self._sleep(step.seconds)
                else:
                    reply = await self._transport.send(step)
            except BaseException as error:  # the talk decides what comes of it, also of a cancellation
                failure = error


class AsyncTicket(Handle):
    """A question that was handed in. It stays with the service, whatever becomes of this object."""

    def __init__(self, session: AsyncSession, told: wire.Ticket) -> None:
        super().__init__(told)
        self._session = session

    @property
    async def state(self) -> str:
        """How it is doing now: "waiting", "answered" or "refused"."""
        return (await self._look()).state

    @property
    async def position(self) -> int:
        """How many of one's own questions come before it now."""
        return (await self._look()).position or 0

    async def result(
        self, *, wait: float | None = None, progress: Progress = None
    ) -> Answer | AnswerTable:
        """Wait for the answer, for some seconds or as long as it takes; raises a refusal."""
        session = self._session
        self._told = await session._run(session._core.wait_for(self._told, wait, progress))
        return settled(self._told)

    async def _look(self) -> wire.Ticket:
        if not self._ended:
            self._told = await self._session._run(self._session._core.look(self.number))
        return self._told
