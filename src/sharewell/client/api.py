"""The client's side of the protocol, without input or output: generators of calls and pauses."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeVar
from urllib.parse import quote as percent_encode

from pydantic import BaseModel, ValidationError

from sharewell import wire
from sharewell.client.progress import Progress, show_progress
from sharewell.client.retry import ApiCall, M, RetryPolicy, Steps, retry
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

#: Seconds that joining or leaving may take: a newcomer's seed is measured at once.
MEMBERSHIP_TIMEOUT = 600.0

PAGE_SIZE = 100

R = TypeVar("R", bound=BaseModel)


@dataclass
class Api:
    """The operations of one session."""

    policy: RetryPolicy = field(default_factory=RetryPolicy)
    #: The role that the token must have; None accepts both.
    role: Literal["analyst", "curator"] | None = None
    #: The token's owner and datasets, once known.
    identity: wire.DatasetList | None = None
    closed: bool = False

    def describe(self) -> str:
        """Return the token's owner and dataset, for a repr."""
        if self.identity is None:
            return "not connected"
        return f"{self.identity.name} on {self.identity.datasets[0]}"

    def connect(self) -> Steps[wire.DatasetList]:
        """Find out who owns the token, and which dataset it gives access to."""
        if self.identity is None:
            call = ApiCall("GET", "/v1/datasets", wire.DatasetList, lambda at: at.datasets())
            found = yield from retry(call, self.policy, connect_for=CONNECT_FOR)
            if not found.datasets:
                raise AccessError(
                    "The token gives access to no dataset.", hint="Ask the curator for a new token."
                )
            if self.role not in (None, found.role):
                raise AccessError(
                    f"This is {_with_article(found.role)}'s token, of {found.name}, "
                    f"and {_with_article(self.role)}'s is needed.",
                    hint=f"Open {_with_article(found.role)}'s session, or use another token.",
                    suggestion=Suggestion("role", found.role),
                )
            self.identity = found
        return self.identity

    def send(self, call: ApiCall[M]) -> Steps[M]:
        """Make a call; its path is relative to the dataset's."""
        if self.closed:
            raise Closed("The session is closed.", hint="Open a new one.")
        identity = self.identity or (yield from self.connect())
        path = f"/v1/datasets/{percent_encode(identity.datasets[0], safe='')}{call.path}"
        return (yield from retry(replace(call, path=path), self.policy))

    # Analysts

    def ask(
        self, sql: str, pay: bool, key: str | None, timeout: float | None, progress: Progress
    ) -> Steps[wire.Result]:
        """Submit a question and wait for its result."""
        ticket = yield from self.submit(sql, pay, key)
        if ticket.state == "waiting":
            ticket = yield from self.wait(ticket, timeout, progress)
        return ticket.result()

    def submit(self, sql: str, pay: bool, key: str | None) -> Steps[wire.Ticket]:
        """Submit a question; its key is fixed before the first attempt, so that it is charged once."""
        key = uuid.uuid4().hex if key is None else key
        question = _validate(wire.Question, sql=sql, pay=pay, key=key)
        call = ApiCall("POST", "/ask", wire.Ticket, lambda at: at.ask(question), question)
        hint = f"Ask again with the key {key!r}: the question is charged once."
        try:
            return (yield from self.send(call))
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

    def ticket(self, number: int, wait: float = 0.0) -> Steps[wire.Ticket]:
        """Fetch a ticket, as soon as its question has ended or `wait` seconds have passed."""
        call = ApiCall(
            "GET",
            f"/tickets/{number}",
            wire.Ticket,
            lambda at: at.ticket(number, wait),
            params={"wait": f"{wait:g}"},
            extra_timeout=wait,
        )
        return (yield from self.send(call))

    def wait(
        self, ticket: wire.Ticket | int, timeout: float | None, progress: Progress
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
                    ticket = yield from self.ticket(ticket.number, for_now)
                    show(ticket)
                    poll = min(2 * poll, LONGEST_POLL)
        except KeyboardInterrupt:
            raise KeyboardInterrupt(ticket.hint) from None
        except SharewellError as error:
            error.idempotency_key = ticket.key
            raise
        return ticket

    def questions(self, after: int, limit: int | None) -> Steps[list[wire.Ticket]]:
        """Fetch the analyst's questions, page by page."""
        found: list[wire.Ticket] = []
        while size := _page_size(limit, found):
            page = yield from self._question_page(after, size)
            found += page.tickets
            if page.next is None:
                break
            after = page.next
        return found

    def _question_page(self, after: int, limit: int) -> Steps[wire.QuestionPage]:
        return self.send(
            ApiCall(
                "GET",
                "/questions",
                wire.QuestionPage,
                lambda at: at.service.questions(at.name, after, limit),
                params={"after": str(after), "limit": str(limit)},
            )
        )

    def quote(self, sql: str) -> Steps[wire.Quote]:
        """Fetch a quote."""
        question = _validate(wire.Question, sql=sql)
        call = ApiCall("POST", "/quote", wire.Quote, lambda at: at.service.quote(at.name, sql), question)
        return (yield from self.send(call))

    def budget(self) -> Steps[wire.BudgetStatus]:
        """Fetch the analyst's budget."""
        return self.send(ApiCall("GET", "/me", wire.BudgetStatus, lambda at: at.service.budget(at.name)))

    def done(self) -> Steps[wire.Empty]:
        """Tell the scheduler that the analyst has no more questions for now."""
        return self.send(ApiCall("POST", "/done", wire.Empty, lambda at: at.service.done(at.name)))

    # Analysts and curators

    def dataset(self) -> Steps[wire.DatasetInfo]:
        """Fetch the public description of the dataset."""
        return self.send(ApiCall("GET", "", wire.DatasetInfo, lambda at: at.service.dataset()))

    def certificate(self) -> Steps[wire.CertificateReport]:
        """Fetch the fairness certificate."""
        return self.send(
            ApiCall("GET", "/certificate", wire.CertificateReport, lambda at: at.certificate())
        )

    # Curators

    def events(self, after: int, limit: int | None) -> Steps[wire.EventPage]:
        """Fetch the ledger, page by page; the head is that of the last page."""
        found: list[wire.LedgerEvent] = []
        size = _page_size(limit, found)
        while True:
            page = yield from self._event_page(after, size)
            found += page.events
            size = _page_size(limit, found)
            if page.next is None or not size:
                return wire.EventPage(head=page.head, events=tuple(found), next=page.next)
            after = page.next

    def _event_page(self, after: int, limit: int) -> Steps[wire.EventPage]:
        return self.send(
            ApiCall(
                "GET",
                "/ledger",
                wire.EventPage,
                lambda at: at.service.events(after, limit),
                params={"after": str(after), "limit": str(limit)},
            )
        )

    def analysts(self) -> Steps[wire.AnalystList]:
        """Fetch all analysts with their budgets."""
        return self.send(ApiCall("GET", "/analysts", wire.AnalystList, lambda at: at.service.analysts()))

    def join(self, name: str, share: str) -> Steps[wire.Token]:
        """Add an analyst; return their token."""
        newcomer = _validate(wire.Newcomer, name=name, share=str(share))
        call = ApiCall(
            "POST",
            "/analysts",
            wire.Token,
            lambda at: _token(name, at.service.join(newcomer, at.name)),
            newcomer,
            extra_timeout=MEMBERSHIP_TIMEOUT,
            idempotent=False,
        )
        return (yield from self.send(call))

    def leave(self, name: str, donate: bool) -> Steps[wire.Empty]:
        """Remove an analyst."""
        return self.send(
            ApiCall(
                "DELETE",
                f"/analysts/{percent_encode(name, safe='')}",
                wire.Empty,
                lambda at: at.service.leave(name, donate, at.name),
                params={"donate": str(donate).lower()},
                extra_timeout=MEMBERSHIP_TIMEOUT,
                idempotent=False,
            )
        )

    def token(self, name: str) -> Steps[wire.Token]:
        """Issue a new token. After a retry only the last token is valid, and that one is returned."""
        return self.send(
            ApiCall(
                "POST",
                f"/analysts/{percent_encode(name, safe='')}/token",
                wire.Token,
                lambda at: _token(name, at.service.token(name, at.name)),
            )
        )

    def pause(self) -> Steps[wire.Empty]:
        """Pause the dataset."""
        return self.send(ApiCall("POST", "/pause", wire.Empty, lambda at: at.service.pause(at.name)))

    def resume(self) -> Steps[wire.Empty]:
        """Resume the dataset."""
        return self.send(ApiCall("POST", "/resume", wire.Empty, lambda at: at.service.resume(at.name)))


def _page_size(limit: int | None, found: Sequence[Any]) -> int:
    """Return the size of the next page; 0 where the limit is reached."""
    if limit is not None and limit < 1:
        raise RequestError(
            f"`limit` must be at least 1, not {limit}.", hint="Omit it to fetch all entries."
        )
    return PAGE_SIZE if limit is None else min(PAGE_SIZE, limit - len(found))


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
