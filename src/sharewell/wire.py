"""What goes over the wire: every request and response, as server and client both read them.

Amounts of budget are exact and travel as texts such as "1/100". Numbers that are infinite or not known
travel as null.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from sharewell.errors import SharewellError


class Message(BaseModel):
    """The base of all messages: frozen; what a newer server adds is ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class Request(BaseModel):
    """The base of all requests: a field that means nothing is refused, since it may be a slip."""

    model_config = ConfigDict(frozen=True, extra="forbid")


# What is asked


class Question(Request):
    """A statement; with `pay` false it is answered only from what was bought before."""

    sql: str = Field(min_length=1, max_length=100_000)
    pay: bool = True
    #: Asking again with the same key gives the same answer and never costs more.
    key: str | None = Field(default=None, min_length=1, max_length=200)


class Newcomer(Request):
    """Somebody to take in: their name, and their part of the whole budget, such as "1/10"."""

    name: str = Field(min_length=1, max_length=100)
    share: str = Field(min_length=1, max_length=50)


# What is answered


class Place(Message):
    """Where in the SQL: one-based line and column, and the words there."""

    line: int
    column: int
    text: str = ""


class Problem(Message):
    """Why something was refused: a stable code, a sentence, what to do instead, and where."""

    code: str
    message: str
    hint: str = ""
    where: Place | None = None
    request_id: str | None = None

    @classmethod
    def of(cls, error: SharewellError) -> Problem:
        """An error of ours in the words of the wire."""
        at = error.where
        return cls(
            code=error.code,
            message=error.message,
            hint=error.hint,
            where=Place(line=at.line, column=at.column, text=at.text) if at else None,
            request_id=error.request_id,
        )


class Column(Message):
    """A column of a result: labels of a group, or numbers."""

    name: str
    kind: Literal["group", "number"]


class Number(Message):
    """A noisy number: how far off it may be, with a 95 % interval, and where it came from."""

    value: float | None
    standard_error: float | None = None
    interval: tuple[float | None, float | None] | None = None
    source: str


class Answer(Message):
    """A result as SQL would show it; a field is a label in a group's column, and else a `Number`."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[Any, ...], ...]
    #: What this question has cost the one who asked it.
    cost: str
    #: Who paid for what it is made of, where that was one person.
    paid_by: str | None = None
    #: What to know before one relies on it, in sentences.
    notes: tuple[str, ...] = ()


class Ticket(Message):
    """A question on its way, answered or refused."""

    number: int
    key: str
    sql: str
    pay: bool
    state: Literal["waiting", "answered", "refused"]
    #: How many of the same analyst's questions come before it, while it waits.
    position: int | None = None
    answer: Answer | None = None
    problem: Problem | None = None


class Offer(Message):
    """What a statement would cost, and the standard errors of its columns of numbers.

    Each of `errors` belongs to a column: the largest and the smallest over its rows, null where that is
    not known before one asks, as of an average. Where there are averages, each of `averages` has for
    such a column the largest of its sums and the largest of its counts, and null for others.
    """

    cost: str
    errors: tuple[tuple[float, float] | None, ...]
    averages: tuple[tuple[float, float] | None, ...] = ()


class Quote(Message):
    """What a statement would cost when one pays, and what can be had for nothing; null: no such way."""

    sql: str
    columns: tuple[Column, ...]
    #: How many rows the result has at the most.
    groups: int
    paid: Offer | None
    free: Offer | None
    #: What there is to pay with.
    means: str
    #: What to know before one asks, in sentences.
    notes: tuple[str, ...] = ()


class Attribute(Message):
    """What is public about a column: its kind, how many cells it has, and their labels."""

    name: str
    kind: str
    size: int
    labels: tuple[Any, ...]
    #: Coarser groupings that SQL can name: their labels.
    bins: dict[str, tuple[Any, ...]] = {}


class Promise(Message):
    """Something that is promised, or not: under which assumptions, and where the proof is."""

    desideratum: str
    meaning: str
    status: str
    assumptions: tuple[str, ...]
    page: str


class Dataset(Message):
    """What everybody who may ask may know of a dataset."""

    name: str
    attributes: tuple[Attribute, ...]
    cells: int
    currency: Literal["pure", "zcdp"]
    epsilon: str
    delta: str
    #: The whole budget in its currency.
    total: str
    neighbours: str
    #: The column that says whose row it is, where people are counted, and not rows.
    privacy_unit: str | None = None
    population: int | None
    error_threshold: float
    mechanism: str
    #: What a paid question costs, where that is known beforehand.
    query_budget: str | None
    scheduler: str
    #: Answers are given out at multiples of so many seconds.
    release_every: float
    promises: tuple[Promise, ...]
    paused: bool = False


class Datasets(Message):
    """The datasets that a token opens."""

    datasets: tuple[str, ...]
    name: str
    role: Literal["analyst", "curator"]


class Budget(Message):
    """How an analyst stands, in the budget's currency."""

    analyst: str
    currency: str
    #: What part of the whole budget the share is.
    part: str
    share: str
    spent: str
    left: str
    asked: int
    waiting: int
    #: About how many more questions can be paid for; null where prices are not known beforehand.
    questions_left: int | None


class Questions(Message):
    """An analyst's questions, oldest first; `next` continues."""

    tickets: tuple[Ticket, ...]
    next: int | None = None


class Standing(Message):
    """How an analyst fares: useful answers here, alone, and without each of the others."""

    analyst: str
    answers: int
    here: float
    alone: float
    #: Only curators are told who.
    without: dict[str, float] | None = None
    ratio: float | None
    interference: float | None
    worse_answers: int


class Certificate(Message):
    """The fairness certificate: everybody's for curators, one's own for analysts."""

    mechanism: str
    scheduler: str
    error_threshold: float
    #: How many entries of the stream it covers.
    entries: int
    exact: bool
    holds: bool | None
    worst_ratio: float | None
    worst_interference: float | None
    analysts: tuple[Standing, ...]
    promises: tuple[Promise, ...]


# What curators see


class Event(Message):
    """One event of the ledger, without what is secret in it."""

    number: int
    kind: str
    content: dict[str, Any]


class Events(Message):
    """A page of the ledger; `head` stands for the whole of it, `next` continues."""

    head: str
    events: tuple[Event, ...]
    next: int | None = None


class Analysts(Message):
    """Everybody who may ask, and what nobody holds yet."""

    analysts: tuple[Budget, ...]
    #: In the budget's currency, and as a part of the whole.
    unallocated: str
    unallocated_part: str


class Token(Message):
    """A new token. It is shown once."""

    name: str
    role: Literal["analyst", "curator"]
    token: str
