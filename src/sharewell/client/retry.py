"""API calls, and how long to retry them."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from random import SystemRandom
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from sharewell import wire
from sharewell.errors import SharewellError, Unreachable

if TYPE_CHECKING:
    from pydantic import BaseModel

    from sharewell.client.transport import LocalTransport

_log = logging.getLogger(__name__)

M = TypeVar("M", bound="BaseModel")
T = TypeVar("T")
LocalCall = Callable[["LocalTransport"], "BaseModel | None"]


@dataclass(frozen=True)
class ApiCall(Generic[M]):
    """One request: how to send it over HTTP, how to make it in this process, and its response."""

    method: str
    path: str
    response: type[M]
    #: Makes the call in this process.
    local: LocalCall = field(repr=False)
    #: May hold SQL, so it is not in the repr.
    body: wire.Request | None = field(default=None, repr=False)
    params: Mapping[str, str] = field(default_factory=dict)
    #: Seconds until an attempt is given up.
    timeout: float = 15.0
    #: Whether making the call twice has the effect of making it once.
    idempotent: bool = True

    @property
    def keyed(self) -> bool:
        """Whether it is a question with an idempotency key, which the server charges once."""
        return isinstance(self.body, wire.Question) and self.body.key is not None

    def parse(self, content: bytes) -> M:
        """Parse the JSON of a response; raise a `ValidationError` where it is invalid."""
        return self.response.model_validate_json(b"{}" if self.response is wire.Empty else content)


@dataclass(frozen=True)
class Sleep:
    """A pause between two calls."""

    seconds: float


#: Yields calls and pauses, and performs neither: a driver sends in the responses and throws in the
#: failures. The same steps therefore run in threads, in event loops and in tests.
Steps = Generator[ApiCall[Any] | Sleep, Any, T]


class TransientFailure(Exception):
    """A failed attempt that a retry may fix."""

    def __init__(self, error: SharewellError, *, after: float = 0.0, not_executed: bool = False) -> None:
        super().__init__(str(error))
        #: Raised when there is no further attempt.
        self.error = error
        #: The seconds of the server's Retry-After.
        self.after = after
        #: Whether it is certain that the request was not executed.
        self.not_executed = not_executed


@dataclass(frozen=True)
class RetryPolicy:
    """How long to begin further attempts, and how long to pause between them, in seconds."""

    total: float = 60.0
    attempt_timeout: float = 15.0
    first_delay: float = 0.1
    max_delay: float = 5.0
    #: Log a warning once retries have taken this long.
    warn_after: float = 3.0
    clock: Callable[[], float] = time.monotonic
    #: Between 0 and 1, so that clients that failed together do not return together.
    jitter: Callable[[], float] = SystemRandom().random

    def delay(self, attempt: int) -> float:
        """Return the pause after an attempt: it doubles up to the maximum, shortened by up to a half."""
        return min(self.first_delay * 2.0 ** min(attempt, 30), self.max_delay) * (1 + self.jitter()) / 2


def retry(call: ApiCall[M], policy: RetryPolicy, *, connect_for: float = math.inf) -> Steps[M]:
    """Make a call, and repeat it after transient failures for as long as the policy allows.

    An unreachable server is given up after `connect_for` seconds. A call that is not idempotent is
    repeated only where it is certain that it was not executed.
    """
    start, warned = policy.clock(), False
    attempt = 0
    while True:
        try:
            response: M = yield call
            return response
        except TransientFailure as failure:
            delay = max(policy.delay(attempt), failure.after)
            unreachable = isinstance(failure.error, Unreachable)
            limit = min(connect_for, policy.total) if unreachable else policy.total
            elapsed = policy.clock() + delay - start
            if elapsed >= limit or not (call.idempotent or failure.not_executed):
                raise failure.error from failure.__cause__
            if not warned and elapsed >= policy.warn_after:
                warned = True
                _log.warning("%s Retrying for up to %.0f s.", failure.error.message, limit)
        yield Sleep(delay)
        attempt += 1
