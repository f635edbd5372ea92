"""The reception: all that the HTTP side keeps, for every desk and for all of them."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from ipaddress import ip_address
from typing import ParamSpec, TypeVar

from sharewell.errors import Closed, UnknownToken
from sharewell.service.access import Holder
from sharewell.service.desk import Desk
from sharewell.service.house import House
from sharewell.service.http.errands import Errands
from sharewell.service.http.logs import Log
from sharewell.service.http.metrics import Metrics
from sharewell.service.http.problems import too_fast
from sharewell.service.http.slots import Slots
from sharewell.service.limits import Pace

#: Failed attempts a second from one address, in the long run and at once.
FAILURES_PER_SECOND, FAILURES_AT_ONCE = 1.0, 20.0


#: For how long a ledger that has failed is taken for broken, in seconds, unless it works before.
LEDGER_AGAIN_AFTER = 10.0


#: How many threads work for all analysts of a dataset and for its curators, and for one of them.
ANALYSTS_THREADS, CURATORS_THREADS, THREADS_OF_ONE = 8, 2, 2

Given = ParamSpec("Given")
Found = TypeVar("Found")


class Window:
    """What is kept for one desk: its pace, its release slots, its threads, and who watches."""

    def __init__(self, desk: Desk) -> None:
        rate = desk.config.service.requests_per_second
        self.desk = desk
        self.slots = Slots(desk.config.service.release_every)
        self.quotes = Errands()
        self._threads = {
            "analyst": ThreadPoolExecutor(ANALYSTS_THREADS, f"{desk.name}-analysts"),
            "curator": ThreadPoolExecutor(CURATORS_THREADS, f"{desk.name}-curators"),
        }
        self._turns: dict[Holder, asyncio.Semaphore] = {}
        self._pace = Pace(rate, max(1.0, 2 * rate))
        self._watchers: Counter[Holder] = Counter()
        #: When the ledger last failed, on the monotonic clock; None once it has worked again.
        self._ledger_failed: float | None = None

    def note_ledger(self, *, works: bool) -> None:
        """Take note that the ledger has stored something, or has failed to."""
        self._ledger_failed = None if works else time.monotonic()

    @property
    def is_ready(self) -> bool:
        """Whether questions can be stored, as far as is known; after a while, they may try again."""
        failed = self._ledger_failed
        return failed is None or time.monotonic() - failed > LEDGER_AGAIN_AFTER

    def admit(self, holder: Holder) -> None:
        """Count a request of a holder; refuse it where they come too fast."""
        wait = self._pace.take(f"{holder.role} {holder.name}")
        if wait:
            raise too_fast(wait, "Requests come faster than this dataset takes them from one token.")

    async def in_thread(
        self, holder: Holder, work: Callable[Given, Found], *given: Given.args, **named: Given.kwargs
    ) -> Found:
        """Have somebody's work done beside the loop; nobody may keep all threads busy alone."""
        turn = self._turns.setdefault(holder, asyncio.Semaphore(THREADS_OF_ONE))
        loop = asyncio.get_running_loop()
        async with turn:
            return await loop.run_in_executor(self._threads[holder.role], partial(work, *given, **named))

    @contextmanager
    def watching(self, holder: Holder) -> Iterator[None]:
        """Count somebody who watches; nobody may hold up all connections by watching."""
        if self._watchers[holder] >= self.desk.config.service.most_waiting:
            raise too_fast(1, "There are too many requests of this token that wait for tickets.")
        self._watchers[holder] += 1
        try:
            yield
        finally:
            self._watchers[holder] -= 1
            if not self._watchers[holder]:
                del self._watchers[holder]


class Reception:
    """Where every request comes in: before the house is open, while it is, and when it closes."""

    def __init__(
        self,
        log: Log,
        *,
        allowed_hosts: Collection[str] | None = None,
        behind_proxy: bool = False,
    ) -> None:
        self.log = log
        self.metrics = Metrics()
        self.behind_proxy = behind_proxy
        self.windows: dict[str, Window] = {}
        self.closing = False
        self._house: House | None = None
        self._failures = Pace(FAILURES_PER_SECOND, FAILURES_AT_ONCE)
        self._hosts = (
            None if allowed_hosts is None else {host.lower().encode() for host in allowed_hosts}
        )

    def open(self, house: House) -> None:
        """Begin to serve."""
        self.windows = {name: Window(house.desk(name)) for name in house.names}
        self._house = house

    def close(self) -> None:
        """Take nothing new, and let those go who only watch."""
        self.closing = True
        for window in self.windows.values():
            window.slots.close()

    @property
    def house(self) -> House:
        """The house, while it is open."""
        if self._house is None:
            raise Closed("The service is opening.", hint="Try again in a few seconds.")
        if self.closing:
            raise closing()
        return self._house

    def holder(self, token: str | None) -> tuple[Window, Holder]:
        """Who sent a token, and the window of the desk that it opens."""
        house = self.house
        if token is None:
            raise UnknownToken(
                "There is no token in the request.",
                hint="Send a header: Authorization: Bearer sw_...; curators give out tokens.",
            )
        desk, holder = house.holder(token)
        return self.windows[desk.name], holder

    def note_failure(self, address: str) -> None:
        """Count an attempt without a valid token; refuse those who make too many."""
        wait = self._failures.take(_network(address))
        if wait:
            raise too_fast(wait, "There were too many attempts without a valid token.")

    def is_for_us(self, host: bytes | None) -> bool:
        """Whether a Host header names us, with or without a port."""
        if self._hosts is None:
            return True
        name = host or b""
        if not name.endswith(b"]"):
            before, colon, port = name.rpartition(b":")
            name = before if colon and port.isdigit() else name
        return name.lower() in self._hosts

    async def waiting(self) -> dict[str, int]:
        """How many tickets of each dataset wait, as of a release slot."""
        windows = list(self.windows.values())
        await asyncio.gather(*(window.slots.next() for window in windows))
        return await asyncio.to_thread(_count, [window.desk for window in windows])


def closing() -> Closed:
    """Says that the service is closing."""
    return Closed(
        "The service is closing.",
        hint="What was asked is kept: ask again later, with the same key.",
    )


def _count(desks: Collection[Desk]) -> dict[str, int]:
    return {
        desk.name: sum(len(desk.broker.waiting(analyst)) for analyst in desk.broker.analysts)
        for desk in desks
    }


def _network(address: str) -> str:
    """An address; of IPv6, the network that one household has."""
    try:
        found = ip_address(address)
    except ValueError:
        return "?"
    return address if found.version == 4 else found.exploded[:19]
