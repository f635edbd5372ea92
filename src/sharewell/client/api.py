"""The client's side of the protocol, without input or output: generators of calls and pauses."""

from __future__ import annotations

import math
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, TypeVar
from urllib.parse import quote as percent_encode

from pydantic import BaseModel, ValidationError

from sharewell import wire
from sharewell.client.progress import Progress, show_progress
from sharewell.client.retry import ApiCall, LocalCall, M, RetryPolicy, Steps, retry
from sharewell.errors import (
    AccessError,
    Closed,
    LedgerError,
    RequestError,
    SharewellError,
    Suggestion,
    TooMany,
)

#: Seconds of the first and of the longest long poll of a waiting question: a change of its position is
#: seen soon, and a long wait takes few requests.
FIRST_POLL, LONGEST_POLL = 1.0, 15.0

#: Seconds to retry when a session opens and nothing answers, so that a wrong address is reported soon.
CONNECT_FOR = 5.0

#: Seconds that joining, leaving or closing a round may take: the seed is measured at once.
MEMBERSHIP_TIMEOUT = 600.0

PAGE_SIZE = 100

R = TypeVar("R", bound=BaseModel)
P = TypeVar("P", wire.QuestionPage, wire.EventPage)


@dataclass
class Api:
    """The operations of one session."""

    policy: RetryPolicy = field(default_factory=RetryPolicy)
    #: The role that the token must have; None accepts both.
    role: Literal["analyst", "curator"] | None = None
    #: The token's owner and datasets, once known.
    identity: wire.DatasetList | None = None
    closed: bool = False

    def describe(self, transport: object) -> str:
        """Return the token's owner, the dataset and its place, for a repr."""
        known = self.identity
        who = f"{known.name} on {known.datasets[0]}" if known else "not connected"
        return f"{who}, {transport!r}{', closed' if self.closed else ''}"

    def connect(self) -> Steps[wire.DatasetList]:
        """Find out who owns the token, and which dataset it gives access to."""
        if self.identity is None:
            timeout = self.policy.attempt_timeout
            call = ApiCall(
                "GET", "/v1/datasets", wire.DatasetList, lambda at: at.datasets(), timeout=timeout
            )
            found = yield from retry(call, self.policy, connect_for=CONNECT_FOR)
            if not found.datasets:
                raise AccessError(
                    "The token gives access to no dataset.", hint="Ask the curator for a new token."
                )
            if self.role not in (None, found.role):
                raise AccessError(
                    f"The token belongs to the {found.role} {found.name}; "
                    f"{_with_article(self.role)}'s token is required.",
                    hint=f"Open {_with_article(found.role)}'s session, or use another token.",
                    suggestion=Suggestion("role", found.role),
                )
            self.identity = found
        return self.identity

    def send(
        self,
        method: str,
        path: str,
        response: type[M],
        local: LocalCall,
        body: wire.Request | None = None,
        *,
        extra_timeout: float = 0.0,
        **options: Any,
    ) -> Steps[M]:
        """Make a call; `path` is relative to the dataset's, `options` are fields of `ApiCall`."""
        if self.closed:
            raise Closed("The session is closed.", hint="Open a new one.")
        identity = self.identity or (yield from self.connect())
        path = f"/v1/datasets/{percent_encode(identity.datasets[0], safe='')}{path}"
        timeout = self.policy.attempt_timeout + extra_timeout
        call = ApiCall(method, path, response, local, body, timeout=timeout, **options)
        return (yield from retry(call, self.policy))

    # Analysts

    def ask(
        self,
        sql: str,
        *,
        pay: bool = True,
        key: str | None = None,
        timeout: float | None = None,
        progress: Progress = None,
    ) -> Steps[wire.Result]:
        """Submit a question and wait for its result."""
        ticket = yield from self.submit(sql, pay=pay, key=key)
        if ticket.state == "waiting":
            ticket = yield from self.wait(ticket, timeout=timeout, progress=progress)
        return ticket.result()

    def submit(self, sql: str, *, pay: bool = True, key: str | None = None) -> Steps[wire.Ticket]:
        """Submit a question; its key is fixed before the first attempt, so that it is charged once."""
        key = uuid.uuid4().hex if key is None else key
        question = _validate(wire.Question, sql=sql, pay=pay, key=key)
        hint = f"Ask again with the key {key!r}: the question is charged once."
        try:
            return (
                yield from self.send("POST", "/ask", wire.Ticket, lambda at: at.ask(question), question)
            )
        except KeyboardInterrupt:
            raise KeyboardInterrupt(f"The question may have been submitted. {hint}") from None
        except SharewellError as error:
            error.idempotency_key = key
            # Other errors say for certain that the question was refused or never sent.
            unsure = isinstance(error, (Closed, LedgerError, TooMany))
            if not self.closed and (unsure or error.code == SharewellError.code):
                error.hint = f"{error.hint} {hint}".strip()
                error.suggestion = Suggestion("key", key)
            raise

    def ticket(self, number: int) -> Steps[wire.Ticket]:
        """Fetch the current state of a question, by its number."""
        return self._poll(number, 0)

    def _poll(self, number: int, wait: float) -> Steps[wire.Ticket]:
        """Fetch a ticket, as soon as its question has ended or `wait` seconds have passed."""
        return self.send(
            "GET",
            f"/tickets/{number}",
            wire.Ticket,
            lambda at: at.ticket(number, wait),
            params={"wait": f"{wait:g}"},
            extra_timeout=wait,
        )

    def wait(
        self, ticket: wire.Ticket | int, *, timeout: float | None = None, progress: Progress = None
    ) -> Steps[wire.Ticket]:
        """Poll a question until it is answered or refused."""
        if isinstance(ticket, int):
            ticket = yield from self.ticket(ticket)
        start, poll = self.policy.clock(), FIRST_POLL
        try:
            with show_progress(ticket, progress) as show:
                while ticket.state == "waiting":
                    waited = self.policy.clock() - start
                    if timeout is not None and waited >= timeout:
                        raise ticket.still_waiting()
                    for_now = poll if timeout is None else min(poll, timeout - waited)
                    ticket = yield from self._poll(ticket.number, for_now)
                    show(ticket)
                    poll = min(2 * poll, LONGEST_POLL)
        except KeyboardInterrupt:
            raise KeyboardInterrupt(ticket.hint) from None
        except SharewellError as error:
            error.idempotency_key = ticket.key
            raise
        return ticket

    def questions(self, *, after: int = -1, limit: int | None = None) -> Steps[list[wire.Ticket]]:
        """Fetch the analyst's questions, page by page."""
        pages = yield from self._pages(
            "/questions",
            wire.QuestionPage,
            lambda at, **page: at.service.questions(at.name, **page),
            after,
            limit,
        )
        return [ticket for page in pages for ticket in page.tickets]

    def quote(self, sql: str) -> Steps[wire.Quote]:
        """Fetch a quote."""
        question = _validate(wire.Question, sql=sql)
        return self.send(
            "POST", "/quote", wire.Quote, lambda at: at.service.quote(at.name, sql), question
        )

    def budget(self) -> Steps[wire.BudgetStatus]:
        """Fetch the analyst's budget."""
        return self.send("GET", "/me", wire.BudgetStatus, lambda at: at.service.budget(at.name))

    def done(self) -> Steps[None]:
        """Tell the scheduler that the analyst has no more questions for now."""
        yield from self.send("POST", "/done", wire.Empty, lambda at: at.service.done(at.name))

    # Analysts and curators

    def dataset(self) -> Steps[wire.DatasetInfo]:
        """Fetch the public description of the dataset."""
        return self.send("GET", "", wire.DatasetInfo, lambda at: at.service.dataset())

    def certificate(self) -> Steps[wire.CertificateReport]:
        """Fetch the fairness certificate."""
        return self.send("GET", "/certificate", wire.CertificateReport, lambda at: at.certificate())

    # Curators

    def events(self, *, after: int = -1, limit: int | None = None) -> Steps[wire.EventPage]:
        """Fetch the ledger, page by page; the head is that of the last page."""
        pages = yield from self._pages(
            "/ledger", wire.EventPage, lambda at, **page: at.service.events(**page), after, limit
        )
        events = tuple(event for page in pages for event in page.events)
        return wire.EventPage(head=pages[-1].head, events=events, next=pages[-1].next)

    def analysts(self) -> Steps[wire.AnalystList]:
        """Fetch all analysts with their budgets."""
        return self.send("GET", "/analysts", wire.AnalystList, lambda at: at.service.analysts())

    def join(self, name: str, share: str) -> Steps[str]:
        """Add an analyst; return their token."""
        newcomer = _validate(wire.Newcomer, name=name, share=str(share))
        issued = yield from self.send(
            "POST",
            "/analysts",
            wire.Token,
            lambda at: _token(name, at.service.join(newcomer, at.name)),
            newcomer,
            extra_timeout=MEMBERSHIP_TIMEOUT,
            idempotent=False,
        )
        return issued.token

    def leave(self, name: str, *, donate: bool = False) -> Steps[None]:
        """Remove an analyst."""
        yield from self.send(
            "DELETE",
            f"/analysts/{percent_encode(name, safe='')}",
            wire.Empty,
            lambda at: at.service.leave(name, donate, at.name),
            params={"donate": str(donate).lower()},
            extra_timeout=MEMBERSHIP_TIMEOUT,
            idempotent=False,
        )

    def token(self, name: str) -> Steps[str]:
        """Issue a new token. After a retry only the last token is valid, and that one is returned."""
        issued = yield from self.send(
            "POST",
            f"/analysts/{percent_encode(name, safe='')}/token",
            wire.Token,
            lambda at: _token(name, at.service.token(name, at.name)),
        )
        return issued.token

    def close_round(self) -> Steps[wire.ClosedRound]:
        """Spend what the analysts who are done have left on one more measurement of the seed."""
        return self.send(
            "POST",
            "/close-round",
            wire.ClosedRound,
            lambda at: at.service.close_round(at.name),
            extra_timeout=MEMBERSHIP_TIMEOUT,
            idempotent=False,
        )

    def pause(self) -> Steps[None]:
        """Pause the dataset."""
        yield from self.send("POST", "/pause", wire.Empty, lambda at: at.service.pause(at.name))

    def resume(self) -> Steps[None]:
        """Resume the dataset."""
        yield from self.send("POST", "/resume", wire.Empty, lambda at: at.service.resume(at.name))

    def _pages(
        self, path: str, response: type[P], local: Callable[..., P], after: int, limit: int | None
    ) -> Steps[list[P]]:
        """Fetch pages until there is no next one or the limit is reached; always at least one."""
        left = math.inf if limit is None else limit
        if left < 1:
            raise RequestError(
                f"`limit` must be at least 1, not {limit}.", hint="Omit it to fetch all entries."
            )
        pages: list[P] = []
        while left > 0:
            at = {"after": after, "limit": int(min(PAGE_SIZE, left))}
            params = {name: str(value) for name, value in at.items()}
            page = yield from self.send("GET", path, response, partial(local, **at), params=params)
            pages.append(page)
            if page.next is None:
                break
            after, left = page.next, left - len(page)
        return pages


def _token(name: str, token: str) -> wire.Token:
    return wire.Token(name=name, role="analyst", token=token)


def _with_article(role: str | None) -> str:
    return "an analyst" if role == "analyst" else f"a {role}"


def _validate(kind: type[R], **fields: object) -> R:
    """Build a request; raise a `RequestError` that names the first invalid field."""
    try:
        return kind.model_validate(fields, strict=True)
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(str(part) for part in first["loc"])
        raise RequestError(f"Invalid `{name}`: {first['msg']}.") from None
