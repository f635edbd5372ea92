"""The core of a session: what is said and heard, with no input or output of its own."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar
from urllib.parse import quote as quoted

from pydantic import BaseModel, ValidationError

from sharewell import wire
from sharewell.client import call, told
from sharewell.client.answer import Answer
from sharewell.client.call import Call, M
from sharewell.client.problems import again, as_error, still_waiting
from sharewell.client.progress import Progress, showing
from sharewell.client.retry import Patience, Talk, persist
from sharewell.client.table import AnswerTable, read_answer
from sharewell.errors import AccessError, Closed, LedgerError, RequestError, SharewellError, TooMany

#: Seconds that one look at a waiting question lasts, first and at the longest: what is new about its
#: place in the queue is seen soon, and a long wait is cheap.
FIRST_LOOK, LONGEST_LOOK = 1.0, 15.0

#: Seconds to try for when a session begins and nothing answers: a wrong address should be told soon.
GREETING = 5.0

#: How many entries are read at a time.
PAGE = 100

T = TypeVar("T")
R = TypeVar("R", bound=BaseModel)


@dataclass
class Core:
    """The talks of one session."""

    patience: Patience
    #: Who one is and what the token opens, once that is known.
    known: wire.Datasets | None = None
    closed: bool = False

    @property
    def name(self) -> str:
        """Who one is."""
        return self.known.name if self.known else "somebody"

    @property
    def opens(self) -> str:
        """The dataset."""
        return self.known.datasets[0] if self.known else "a dataset"

    def greet(self) -> Talk[wire.Datasets]:
        """Find out who one is and which dataset the token opens."""
        if self.known is None:
            found = yield from persist(call.datasets(), self.patience, reach=GREETING)
            if not found.datasets:
                raise AccessError(
                    "The token opens no dataset.", hint="Ask the curator for one that does."
                )
            self.known = found
        return self.known

    def say(self, what: Call[M]) -> Talk[M]:
        """Make a call about the dataset."""
        self._refuse_when_closed()
        known = yield from self.greet()
        path = f"/v1/datasets/{quoted(known.datasets[0], safe='')}{what.path}"
        return (yield from persist(replace(what, path=path), self.patience))

    def _refuse_when_closed(self) -> None:
        if self.closed:
            raise Closed("The session is closed.", hint="Connect again.")

    def tell(self, what: Call[M], read: Callable[[M], T]) -> Talk[T]:
        """Make a call, and read its reply as a person would like it."""
        reply = yield from self.say(what)
        return read(reply)

    def submit(self, sql: str, pay: bool, key: str | None) -> Talk[wire.Ticket]:
        """Hand in a question.

        Its key is made before the first try, so that no number of tries pays for it twice.
        """
        self._refuse_when_closed()
        key = uuid.uuid4().hex if key is None else key
        question = _checked(wire.Question, sql=sql, pay=pay, key=key)
        later = f"Ask again with key={key!r}: it is paid for once, however often it is asked."
        try:
            return (yield from self.say(call.ask(question)))
        except KeyboardInterrupt:
            raise KeyboardInterrupt(f"The question may have arrived. {later}") from None
        except (Closed, LedgerError, TooMany) as error:
            error.hint = f"{error.hint} {later}".strip()
            raise

    def ask(
        self, sql: str, pay: bool, key: str | None, wait: float | None, progress: Progress
    ) -> Talk[Answer | AnswerTable]:
        """Hand in a question, and wait for its answer."""
        ticket = yield from self.submit(sql, pay, key)
        ticket = yield from self.wait_for(ticket, wait, progress)
        return settled(ticket)

    def wait_for(self, ticket: wire.Ticket, wait: float | None, progress: Progress) -> Talk[wire.Ticket]:
        """Look after a question until it has ended, or for some seconds."""
        begun = self.patience.clock()
        look = FIRST_LOOK
        try:
            with showing(ticket, progress) as show:
                while ticket.state == "waiting":
                    waited = self.patience.clock() - begun
                    if wait is not None and waited >= wait:
                        raise still_waiting(ticket, waited)
                    for_now = look if wait is None else min(look, wait - waited)
                    ticket = yield from self.say(call.ticket(ticket.number, for_now))
                    show(ticket)
                    look = min(2 * look, LONGEST_LOOK)
        except KeyboardInterrupt:
            raise KeyboardInterrupt(again(ticket)) from None
        return ticket

    def look(self, number: int) -> Talk[wire.Ticket]:
        """How a question is doing, without waiting."""
        return (yield from self.say(call.ticket(number, 0)))

    def questions(self, after: int, limit: int | None) -> Talk[list[wire.Ticket]]:
        """The analyst's questions, page after page."""
        found: list[wire.Ticket] = []
        size = _page(limit, found)
        while size:
            page = yield from self.say(call.questions(after, size))
            found += page.tickets
            if page.next is None:
                break
            after, size = page.next, _page(limit, found)
        return found

    def ledger(self, after: int, limit: int | None) -> Talk[wire.Events]:
        """The ledger, page after page; its head is that of the last page."""
        found: list[wire.Event] = []
        size = _page(limit, found)
        while True:
            page = yield from self.say(call.events(after, size))
            found += page.events
            size = _page(limit, found)
            if page.next is None or not size:
                return wire.Events(head=page.head, events=tuple(found), next=page.next)
            after = page.next

    def join(self, name: str, share: str) -> Talk[str]:
        """Take somebody in; their token."""
        newcomer = _checked(wire.Newcomer, name=name, share=str(share))
        return (yield from self.tell(call.join(newcomer), _token))

    def new_token(self, name: str) -> Talk[str]:
        """Another token for somebody."""
        return (yield from self.tell(call.new_token(name), _token))

    def quote(self, sql: str) -> Talk[told.Quote]:
        """What a question would cost."""
        question = _checked(wire.Question, sql=sql)
        return (yield from self.tell(call.quote(question), told.Quote.read))


def settled(ticket: wire.Ticket) -> Answer | AnswerTable:
    """The answer of a question that has ended; raises its refusal."""
    if ticket.answer is not None:
        return read_answer(ticket.answer, ticket.sql)
    if ticket.problem is not None:
        raise as_error(ticket.problem)
    raise SharewellError(f"Question {ticket.number} has ended without an answer.")


def _page(limit: int | None, found: Sequence[object]) -> int:
    """How many entries to read next; 0 where there are enough."""
    if limit is not None and limit < 1:
        raise RequestError("`limit` must be 1 or more.", hint="Leave it out to have all.")
    return PAGE if limit is None else min(PAGE, limit - len(found))


def _token(reply: wire.Token) -> str:
    return reply.token


def _checked(kind: type[R], **fields: object) -> R:
    """A request, or a sentence that says what is wrong with it."""
    try:
        return kind.model_validate(fields, strict=True)
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(str(part) for part in first["loc"])
        raise RequestError(f"`{name}` cannot be sent: {first['msg']}.") from None
