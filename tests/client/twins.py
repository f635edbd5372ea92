"""One way to drive both kinds of session, and a clock that tests wind themselves."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from sharewell.client import AsyncCuratorSession, AsyncSession, CuratorSession, Session
from sharewell.client.api import Api
from sharewell.client.connection import read_address
from sharewell.client.retry import RetryPolicy
from sharewell.client.transport import AsyncHttpTransport, HttpTransport

KINDS = ("threads", "event loop")


class Clock:
    """Time passes only when somebody sleeps."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.naps: list[float] = []

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.naps.append(seconds)
        self.now += seconds

    async def sleep_in_loop(self, seconds: float) -> None:
        self.sleep(seconds)


AnySession = Session | AsyncSession | CuratorSession | AsyncCuratorSession


class Twin:
    """A session of either kind; `do` gives what its methods give, awaited where it must be."""

    def __init__(self, session: AnySession, loop: asyncio.AbstractEventLoop) -> None:
        self.session = session
        self._loop = loop

    def do(self, work: Callable[[Any], Any]) -> Any:
        found = work(self.session)
        return self._loop.run_until_complete(found) if inspect.isawaitable(found) else found


@contextmanager
def twin(
    kind: str,
    url: str,
    token: str = "sw_token",
    clock: Clock | None = None,
    curator: bool = False,
    **policy: Any,
) -> Iterator[Twin]:
    """A session of a kind; its clock is wound by its own naps unless one is given."""
    clock = clock or Clock()
    api = Api(RetryPolicy(clock=clock, jitter=lambda: 1.0, **policy))
    address = read_address(url)
    loop = asyncio.new_event_loop()
    session: AnySession
    if kind == "threads":
        transport = HttpTransport(address, token, True)
        session = (CuratorSession if curator else Session)(api, transport, sleep=clock.sleep)
    else:
        over_loop = AsyncHttpTransport(address, token, True)
        of_kind = AsyncCuratorSession if curator else AsyncSession
        session = of_kind(api, over_loop, sleep=clock.sleep_in_loop)
    both = Twin(session, loop)
    try:
        yield both
    finally:
        both.do(lambda each: each.close())
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()
