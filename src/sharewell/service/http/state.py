"""Application state: the open registry, and what HTTP keeps for each dataset."""

from __future__ import annotations

import asyncio
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from ipaddress import ip_address

import uvicorn
from starlette.requests import HTTPConnection

from sharewell.errors import Closed
from sharewell.service.dataset import DatasetService
from sharewell.service.http.errors import too_many_requests
from sharewell.service.http.log import Log
from sharewell.service.http.monitoring import LedgerMonitor, LoopDelay, Metrics
from sharewell.service.rate_limit import RateLimiter
from sharewell.service.registry import DatasetRegistry
from sharewell.service.release_slots import ReleaseSlots
from sharewell.service.submissions import closing
from sharewell.service.tokens import Principal
from sharewell.service.verify.background import BackgroundVerification

#: Failed authentications a second from one network, in the long run and at once.
FAILURES_PER_SECOND, FAILURE_BURST = 1.0, 20.0
#: Quotes while a statement is typed, a second for each analyst, in the long run and at once.
DRAFTS_PER_SECOND, DRAFT_BURST = 10.0, 30.0
#: How long a dataset counts as not ready after its ledger failed, in seconds, unless it works before.
LEDGER_RETRY_AFTER = 10.0
#: Threads for all analysts of a dataset, for its curators, and for one principal at a time.
ANALYST_THREADS, CURATOR_THREADS, THREADS_PER_PRINCIPAL = 8, 2, 2
#: Opening that takes longer than this, in seconds, is logged.
SLOW_OPENING = 1.0


class HostedDataset:
    """A dataset with its rate limiter, release slots, threads, watchers and ledger health."""

    def __init__(self, service: DatasetService) -> None:
        settings = service.config.service
        self.service = service
        self.slots = ReleaseSlots(settings.release_every)
        self.watchers: Counter[Principal] = Counter()
        self._max_watchers = settings.most_waiting
        rate = settings.requests_per_second
        self.rate = RateLimiter(rate, max(1.0, 2 * rate))
        self.draft_rate = RateLimiter(DRAFTS_PER_SECOND, DRAFT_BURST)
        self.threads = {
            "analyst": ThreadPoolExecutor(ANALYST_THREADS, f"{service.name}-analysts"),
            "curator": ThreadPoolExecutor(CURATOR_THREADS, f"{service.name}-curators"),
        }
        #: One principal cannot occupy all threads.
        self.turns = defaultdict[Principal, asyncio.Semaphore](
            lambda: asyncio.Semaphore(THREADS_PER_PRINCIPAL)
        )
        #: When the ledger last failed, on the monotonic clock; None once it has worked again.
        self.ledger_failed_at: float | None = None

    def limit_watchers(self, principal: Principal) -> None:
        """Reject one more request that watches a ticket above the configured number."""
        if self.watchers[principal] >= self._max_watchers:
            raise too_many_requests(1, "This token has too many requests that wait for tickets.")

    @contextmanager
    def watching(self, principal: Principal) -> Iterator[None]:
        """Count a request that watches a ticket, for as long as it does."""
        self.watchers[principal] += 1
        try:
            yield
        finally:
            self.watchers[principal] -= 1
            if not self.watchers[principal]:
                del self.watchers[principal]

    @property
    def is_ready(self) -> bool:
        """Whether the ledger can store questions, as far as is known."""
        failed_at = self.ledger_failed_at
        return failed_at is None or time.monotonic() - failed_at > LEDGER_RETRY_AFTER

    def close(self) -> None:
        """Release the threads."""
        for threads in self.threads.values():
            threads.shutdown(wait=False)


class AppState:
    """What an application holds: its log, metrics and limits, and its datasets once they are open."""

    def __init__(self, log: Log, *, allowed_hosts: Collection[str] | None, behind_proxy: bool) -> None:
        self.log = log
        self.metrics = Metrics()
        self.allowed_hosts = allowed_hosts and {host.lower() for host in allowed_hosts}
        self.behind_proxy = behind_proxy
        self.verification = BackgroundVerification()
        self.failures = RateLimiter(FAILURES_PER_SECOND, FAILURE_BURST)
        self.delay = LoopDelay()
        self.monitor = LedgerMonitor((), self.fail)
        self.datasets: dict[str, HostedDataset] = {}
        #: How old a question may become until it is taken up, by the path of the request.
        self.max_queue_seconds: dict[str, float] = {}
        #: The server that runs the application. It decides when to close.
        self.server: uvicorn.Server | None = None
        #: Why the server stops, unless it was told to.
        self.failure: Exception | None = None
        self._registry: DatasetRegistry | None = None

    @property
    def closing(self) -> bool:
        """Whether the server has been told to stop."""
        return self.server is not None and self.server.should_exit

    @property
    def registry(self) -> DatasetRegistry:
        """The registry, while it is open."""
        if self._registry is None:
            raise Closed("The service is opening.", hint="Try again in a few seconds.")
        if self.server is not None and self.server.should_exit:
            raise closing()
        return self._registry

    def client_address(self, request: HTTPConnection) -> str:
        """The client's address; behind a proxy, the one that the proxy itself has appended."""
        forwarded = request.headers.get("x-forwarded-for")
        if self.behind_proxy and forwarded is not None:
            return forwarded.rpartition(",")[2].strip()
        return request.client.host if request.client else "?"

    def count_failure(self, request: HTTPConnection) -> float:
        """Count a request without a valid token: 0.0, or the seconds that its network has to wait.

        It slows down networks that guess tokens: IPv4 addresses, or /64 networks of IPv6.
        """
        address = self.client_address(request)
        try:
            parsed = ip_address(address)
            network = address if parsed.version == 4 else parsed.exploded[:19]
        except ValueError:
            network = "?"
        return self.failures.take(network)

    async def open(
        self,
        open_registry: Callable[[], DatasetRegistry],
        on_open: Callable[[DatasetRegistry], object],
    ) -> None:
        """Open the registry in a thread; a failure stops the server."""
        self.delay.start()
        begun = time.perf_counter()
        slow = asyncio.get_running_loop().call_later(SLOW_OPENING, self.log.write, "opening")
        try:
            registry = await asyncio.to_thread(open_registry)
            self.datasets = {name: HostedDataset(service) for name, service in registry.datasets.items()}
            self.max_queue_seconds = {
                f"/v1/datasets/{name}/{verb}": service.config.service.max_queue_seconds
                for name, service in registry.datasets.items()
                for verb in ("ask", "quote")
            }
            self.monitor = LedgerMonitor(registry.datasets.values(), self.fail)
            self.monitor.start()
            self._registry = registry
            self.log.write("open", seconds=round(time.perf_counter() - begun, 3))
            on_open(registry)
        except Exception as error:
            self.fail(error)
        finally:
            slow.cancel()

    def fail(self, error: Exception) -> None:
        """Stop the server because of an error."""
        self.failure = error
        if self.server is not None:
            self.server.should_exit = True

    async def close(self) -> None:
        """Finish every submitted question and close the registry."""
        self.delay.stop()
        self.monitor.stop()
        self.verification.close()
        if self._registry is None:
            return
        self.log.write("closing")
        try:
            await asyncio.to_thread(self._registry.close)
        except Exception as error:
            self.failure = self.failure or error
        for dataset in self.datasets.values():
            dataset.close()
        self.log.write("closed")


def app_state(request: HTTPConnection) -> AppState:
    """The state of the application that serves a request."""
    state: AppState = request.app.state.sharewell
    return state
