"""Sessions of analysts and of curators, for threads and for event loops.

Each method runs one operation of `Api`: with calls that block, or with calls that are awaited.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial, update_wrapper
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from sharewell import wire
from sharewell.client.api import Api
from sharewell.client.progress import Progress
from sharewell.client.retry import Sleep, Steps
from sharewell.client.transport import AsyncHttpTransport, Transport

T = TypeVar("T")


class _BaseSession:
    """A connection to one dataset."""

    def __init__(
        self, api: Api, transport: Transport, *, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self._api = api
        self._transport = transport
        self._sleep = sleep

    def dataset(self) -> wire.DatasetInfo:
        """Fetch the public description of the dataset: its columns, budget and guarantees."""
        return self._run(self._api.dataset())

    def certificate(self) -> wire.CertificateReport:
        """Fetch the fairness certificate: an analyst's own, or for a curator that of all analysts."""
        return self._run(self._api.certificate())

    def open(self) -> Self:
        """Connect now, and check the token; close the session where that fails."""
        try:
            self._run(self._api.connect())
        except BaseException:
            self.close()
            raise
        return self

    def close(self) -> None:
        """Close the session; the service keeps waiting questions."""
        if not self._api.closed:
            self._api.closed = True
            self._transport.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._api.describe(self._transport)}>"

    def _run(self, steps: Steps[T]) -> T:
        """Perform the calls and pauses that the steps yield; return their result."""
        advance = partial(next, steps)
        while True:
            try:
                step = advance()
            except StopIteration as end:
                result: T = end.value
                return result
            try:
                if isinstance(step, Sleep):
                    self._sleep(step.seconds)
                    advance = partial(next, steps)
                else:
                    advance = partial(steps.send, self._transport.send(step))
            except BaseException as error:  # the steps handle it, Ctrl-C included
                advance = partial(steps.throw, error)


class Session(_BaseSession):
    """An analyst's session. Use it in a `with` statement, or close it; it is thread-safe."""

    def ask(
        self,
        sql: str,
        *,
        pay: bool = True,
        key: str | None = None,
        timeout: float | None = None,
        progress: Progress = None,
    ) -> wire.Result:
        """Ask a question and wait for its result.

        With `pay=False` the answer comes from earlier measurements and is free. With the `key` of an
        earlier question it is that question, and costs nothing more. After `timeout` seconds in the
        queue, raise `StillWaiting`; the service keeps the question.
        """
        return self._run(self._api.ask(sql, pay=pay, key=key, timeout=timeout, progress=progress))

    def submit(self, sql: str, *, pay: bool = True, key: str | None = None) -> wire.Ticket:
        """Submit a question without waiting for its result."""
        return self._run(self._api.submit(sql, pay=pay, key=key))

    def ticket(self, number: int) -> wire.Ticket:
        """Fetch the current state of a question, by its number."""
        return self._run(self._api.ticket(number))

    def wait(
        self,
        ticket: wire.Ticket | int,
        *,
        timeout: float | None = None,
        progress: Progress = None,
    ) -> wire.Ticket:
        """Wait until a question is answered or refused; raise `StillWaiting` after `timeout` seconds."""
        return self._run(self._api.wait(ticket, timeout=timeout, progress=progress))

    def questions(self, *, after: int = -1, limit: int | None = None) -> list[wire.Ticket]:
        """Fetch the analyst's questions after a number, oldest first."""
        return self._run(self._api.questions(after=after, limit=limit))

    def quote(self, sql: str) -> wire.Quote:
        """Fetch the cost and the expected standard error of a question, for free."""
        return self._run(self._api.quote(sql))

    def budget(self) -> wire.BudgetStatus:
        """Fetch the analyst's share, and what is spent and left of it."""
        return self._run(self._api.budget())

    def done(self) -> None:
        """Tell the scheduler not to wait for more questions of this analyst for now."""
        self._run(self._api.done())


class CuratorSession(_BaseSession):
    """A curator's session. Use it in a `with` statement, or close it; it is thread-safe."""

    def analysts(self) -> wire.AnalystList:
        """Fetch all analysts with their budgets, and the unallocated budget."""
        return self._run(self._api.analysts())

    def join(self, name: str, share: str) -> str:
        """Add an analyst with a part of the whole budget, such as "1/10"; return their token."""
        return self._run(self._api.join(name, share))

    def leave(self, name: str, *, donate: bool = False) -> None:
        """Remove an analyst; with `donate`, spend their remaining budget for the other analysts."""
        self._run(self._api.leave(name, donate=donate))

    def token(self, name: str) -> str:
        """Issue a new token for an analyst; the old token is revoked."""
        return self._run(self._api.token(name))

    def close_round(self) -> wire.ClosedRound:
        """Spend what the analysts who are done have left on one measurement for all analysts."""
        return self._run(self._api.close_round())

    def pause(self) -> None:
        """Accept no questions until `resume`."""
        self._run(self._api.pause())

    def resume(self) -> None:
        """Accept questions again."""
        self._run(self._api.resume())

    def events(self, *, after: int = -1, limit: int | None = None) -> wire.EventPage:
        """Fetch the ledger's events after a number, oldest first."""
        return self._run(self._api.events(after=after, limit=limit))


# For event loops


P = ParamSpec("P")


def _coroutine(
    operation: Callable[Concatenate[Api, P], Steps[T]],
) -> Callable[Concatenate[_BaseAsyncSession, P], Coroutine[Any, Any, T]]:
    """Make a method of an asynchronous session from an operation of `Api`."""

    async def method(session: _BaseAsyncSession, /, *args: P.args, **options: P.kwargs) -> T:
        return await session._run(operation(session._api, *args, **options))

    update_wrapper(method, operation)
    return method


class _BaseAsyncSession:
    """A connection to one dataset."""

    def __init__(
        self,
        api: Api,
        transport: AsyncHttpTransport,
        *,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._api = api
        self._transport = transport
        self._sleep = sleep

    dataset = _coroutine(Api.dataset)
    certificate = _coroutine(Api.certificate)

    async def open(self) -> Self:
        """Connect now, and check the token; close the session where that fails."""
        try:
            await self._run(self._api.connect())
        except BaseException:
            await self.close()
            raise
        return self

    async def close(self) -> None:
        """Close the session; the service keeps waiting questions."""
        if not self._api.closed:
            self._api.closed = True
            await self._transport.close()

    async def __aenter__(self) -> Self:
        return await self.open()

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._api.describe(self._transport)}>"

    async def _run(self, steps: Steps[T]) -> T:
        """Perform the calls and pauses that the steps yield; return their result."""
        advance = partial(next, steps)
        while True:
            try:
                step = advance()
            except StopIteration as end:
                result: T = end.value
                return result
            try:
                if isinstance(step, Sleep):
                    await self._sleep(step.seconds)
                    advance = partial(next, steps)
                else:
                    advance = partial(steps.send, await self._transport.send(step))
            except BaseException as error:  # the steps handle it, cancellation included
                advance = partial(steps.throw, error)


class AsyncSession(_BaseAsyncSession):
    """An analyst's session: the methods of `Session` as coroutines. Use it in `async with`."""

    ask = _coroutine(Api.ask)
    submit = _coroutine(Api.submit)
    ticket = _coroutine(Api.ticket)
    wait = _coroutine(Api.wait)
    questions = _coroutine(Api.questions)
    quote = _coroutine(Api.quote)
    budget = _coroutine(Api.budget)
    done = _coroutine(Api.done)


class AsyncCuratorSession(_BaseAsyncSession):
    """A curator's session: the methods of `CuratorSession` as coroutines. Use it in `async with`."""

    analysts = _coroutine(Api.analysts)
    join = _coroutine(Api.join)
    leave = _coroutine(Api.leave)
    token = _coroutine(Api.token)
    close_round = _coroutine(Api.close_round)
    pause = _coroutine(Api.pause)
    resume = _coroutine(Api.resume)
    events = _coroutine(Api.events)
