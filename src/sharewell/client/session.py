"""Sessions of analysts and of curators, for threads and for event loops.

The methods are the same in both kinds: each runs one operation of `Api`, here with calls that block,
there with calls that are awaited.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any, Self, TypeVar

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
        closed = ", closed" if self._api.closed else ""
        return f"<{type(self).__name__} {self._api.describe()}, {self._transport!r}{closed}>"

    def _run(self, steps: Steps[T]) -> T:
        """Perform the calls and pauses that the steps yield; return their result."""
        response: Any = None
        failure: BaseException | None = None
        while True:
            try:
                step = steps.throw(failure) if failure else steps.send(response)
            except StopIteration as end:
                result: T = end.value
                return result
            response = failure = None
            try:
                if isinstance(step, Sleep):
                    self._sleep(step.seconds)
                else:
                    response = self._transport.send(step)
            except BaseException as error:  # the steps handle it, Ctrl-C included
                failure = error


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
        return self._run(self._api.ask(sql, pay, key, timeout, progress))

    def submit(self, sql: str, *, pay: bool = True, key: str | None = None) -> wire.Ticket:
        """Submit a question without waiting for its result."""
        return self._run(self._api.submit(sql, pay, key))

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
        return self._run(self._api.wait(ticket, timeout, progress))

    def questions(self, *, after: int = -1, limit: int | None = None) -> list[wire.Ticket]:
        """Fetch the analyst's questions after a number, oldest first."""
        return self._run(self._api.questions(after, limit))

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
        return self._run(self._api.join(name, share)).token

    def leave(self, name: str, *, donate: bool = False) -> None:
        """Remove an analyst; with `donate`, spend their remaining budget for the other analysts."""
        self._run(self._api.leave(name, donate))

    def token(self, name: str) -> str:
        """Issue a new token for an analyst; the old token is revoked."""
        return self._run(self._api.token(name)).token

    def pause(self) -> None:
        """Accept no questions until `resume`."""
        self._run(self._api.pause())

    def resume(self) -> None:
        """Accept questions again."""
        self._run(self._api.resume())

    def events(self, *, after: int = -1, limit: int | None = None) -> wire.EventPage:
        """Fetch the ledger's events after a number, oldest first."""
        return self._run(self._api.events(after, limit))


# For event loops


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

    async def dataset(self) -> wire.DatasetInfo:
        """Fetch the public description of the dataset: its columns, budget and guarantees."""
        return await self._run(self._api.dataset())

    async def certificate(self) -> wire.CertificateReport:
        """Fetch the fairness certificate: an analyst's own, or for a curator that of all analysts."""
        return await self._run(self._api.certificate())

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
        closed = ", closed" if self._api.closed else ""
        return f"<{type(self).__name__} {self._api.describe()}, {self._transport!r}{closed}>"

    async def _run(self, steps: Steps[T]) -> T:
        """Perform the calls and pauses that the steps yield; return their result."""
        response: Any = None
        failure: BaseException | None = None
        while True:
            try:
                step = steps.throw(failure) if failure else steps.send(response)
            except StopIteration as end:
                result: T = end.value
                return result
            response = failure = None
            try:
                if isinstance(step, Sleep):
                    await self._sleep(step.seconds)
                else:
                    response = await self._transport.send(step)
            except BaseException as error:  # the steps handle it, cancellation included
                failure = error


class AsyncSession(_BaseAsyncSession):
    """An analyst's session. Use it in an `async with` statement."""

    async def ask(
        self,
        sql: str,
        *,
        pay: bool = True,
        key: str | None = None,
        timeout: float | None = None,
        progress: Progress = None,
    ) -> wire.Result:
        """Ask a question and wait for its result; see `Session.ask`."""
        return await self._run(self._api.ask(sql, pay, key, timeout, progress))

    async def submit(self, sql: str, *, pay: bool = True, key: str | None = None) -> wire.Ticket:
        """Submit a question without waiting for its result."""
        return await self._run(self._api.submit(sql, pay, key))

    async def ticket(self, number: int) -> wire.Ticket:
        """Fetch the current state of a question, by its number."""
        return await self._run(self._api.ticket(number))

    async def wait(
        self,
        ticket: wire.Ticket | int,
        *,
        timeout: float | None = None,
        progress: Progress = None,
    ) -> wire.Ticket:
        """Wait until a question is answered or refused; raise `StillWaiting` after `timeout` seconds."""
        return await self._run(self._api.wait(ticket, timeout, progress))

    async def questions(self, *, after: int = -1, limit: int | None = None) -> list[wire.Ticket]:
        """Fetch the analyst's questions after a number, oldest first."""
        return await self._run(self._api.questions(after, limit))

    async def quote(self, sql: str) -> wire.Quote:
        """Fetch the cost and the expected standard error of a question, for free."""
        return await self._run(self._api.quote(sql))

    async def budget(self) -> wire.BudgetStatus:
        """Fetch the analyst's share, and what is spent and left of it."""
        return await self._run(self._api.budget())

    async def done(self) -> None:
        """Tell the scheduler not to wait for more questions of this analyst for now."""
        await self._run(self._api.done())


class AsyncCuratorSession(_BaseAsyncSession):
    """A curator's session. Use it in an `async with` statement."""

    async def analysts(self) -> wire.AnalystList:
        """Fetch all analysts with their budgets, and the unallocated budget."""
        return await self._run(self._api.analysts())

    async def join(self, name: str, share: str) -> str:
        """Add an analyst with a part of the whole budget, such as "1/10"; return their token."""
        return (await self._run(self._api.join(name, share))).token

    async def leave(self, name: str, *, donate: bool = False) -> None:
        """Remove an analyst; with `donate`, spend their remaining budget for the other analysts."""
        await self._run(self._api.leave(name, donate))

    async def token(self, name: str) -> str:
        """Issue a new token for an analyst; the old token is revoked."""
        return (await self._run(self._api.token(name))).token

    async def pause(self) -> None:
        """Accept no questions until `resume`."""
        await self._run(self._api.pause())

    async def resume(self) -> None:
        """Accept questions again."""
        await self._run(self._api.resume())

    async def events(self, *, after: int = -1, limit: int | None = None) -> wire.EventPage:
        """Fetch the ledger's events after a number, oldest first."""
        return await self._run(self._api.events(after, limit))
