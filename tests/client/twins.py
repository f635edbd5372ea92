"""One way to drive both kinds of session, and a clock that tests wind themselves."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from sharewell.client import AsyncSession, Session
from sharewell.client.address import read_address
from sharewell.client.core import Core
from sharewell.client.http import AsyncHttp, Http
from sharewell.client.retry import Patience

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


class Twin:
    """A session of either kind; `do` gives what its methods give, awaited where it must be."""

    def __init__(self, session: Session | AsyncSession, loop: asyncio.AbstractEventLoop) -> None:
        self.session = session
        self._loop = loop

    def do(self, work: Callable[[Any], Any]) -> Any:
        found = work(self.session)
        return self._loop.run_until_complete(found) if inspect.isawaitable(found) else found


@contextmanager
def twin(
    kind: str, url: str, token: str = "sw_token", clock: Clock | None = None, **patience: Any
) -> Iterator[Twin]:
    """A session of a kind; its clock is wound by its own naps unless one is given."""
    clock = clock or Clock()
    core = Core(Patience(clock=clock, jitter=lambda: 1.0, **patience))
    address = read_address(url)
    loop = asyncio.new_event_loop()
    session: Session | AsyncSession
    if kind == "threads":
        session = Session(core, Http(address, token, True), sleep=clock.sleep)
    else:
        session = AsyncSession(core, AsyncHttp(address, token, True), sleep=clock.sleep_in_loop)
    both = Twin(session, loop)
    try:
        yield both
    finally:
        both.do(lambda each: each.close())
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()
