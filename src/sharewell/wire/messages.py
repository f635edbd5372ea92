"""Requests, problems, and what the server reports about datasets, budgets and the ledger."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, PlainSerializer, PlainValidator

from sharewell import errors
from sharewell.errors import Location, SharewellError, Suggestion
from sharewell.wire.text import budget_unit, format_amount, format_cells, format_number, pluralize


class Message(BaseModel):
    """Base of all responses: frozen, and unknown fields of a newer server are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    def __str__(self) -> str:
        return repr(self)


class Request(BaseModel):
    """Base of all requests: frozen, and unknown fields are rejected because they may be typos."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


def _parse_amount(value: object) -> Fraction:
    if isinstance(value, Fraction):
        return value
    if not isinstance(value, str | int):
        raise ValueError("an amount is a string such as '1/100'")
    try:
        return Fraction(value)
    except ZeroDivisionError:
        raise ValueError("an amount has no denominator of 0") from None


#: An exact amount of budget: a Fraction in Python, a string such as "1/100" in JSON.
Amount = Annotated[
    Fraction,
    PlainValidator(_parse_amount, json_schema_input_type=str),
    PlainSerializer(str, return_type=str, when_used="json"),
]


# Requests


class Question(Request):
    """A statement; with `pay` false it is answered from earlier measurements only."""

    sql: str = Field(min_length=1, max_length=100_000)
    pay: bool = True
    #: Idempotency key: the same question with the same key has the same answer and is charged once.
    key: str | None = Field(default=None, min_length=1, max_length=200)


class Newcomer(Request):
    """A new analyst: their name and their part of the whole budget, such as "1/10"."""

    name: str = Field(min_length=1, max_length=100)
    share: str = Field(min_length=1, max_length=50)


class SignIn(Request):
    """What a browser exchanges for a session: a token, or a single-use sign-in code."""

    token: str = Field(default="", max_length=200)
    code: str = Field(default="", max_length=200)


class PlanProposal(Request):
    """Settings to compare: the seed's part of each share, a question's price as a part of the budget."""

    seed_fraction: str = Field(min_length=1, max_length=50)
    query_budget: str = Field(min_length=1, max_length=50)


# Responses


class Empty(Message):
    """The response of an operation that returns nothing."""


class Problem(Message):
    """An error: a stable code, a message, a hint, a location in the SQL and a suggestion."""

    code: str
    message: str
    hint: str = ""
    where: Location | None = None
    suggestion: Suggestion | None = None
    request_id: str | None = None

    @classmethod
    def of(cls, error: SharewellError) -> Problem:
        """Convert an error to a message."""
        return cls(
            code=error.code,
            message=error.message,
            hint=error.hint,
            where=error.where,
            suggestion=error.suggestion,
            request_id=error.request_id,
        )

    def to_error(self) -> SharewellError:
        """Convert the message to an error of its code's class; an unknown code keeps the root class."""
        kind = _ERROR_CLASSES.get(self.code, SharewellError)
        error = kind(self.message, hint=self.hint, where=self.where, suggestion=self.suggestion)
        error.code = self.code
        error.request_id = self.request_id
        return error


_ERROR_CLASSES = {
    kind.code: kind
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, SharewellError)
}


class AttributeInfo(Message):
    """The public description of a column: its kind, its number of cells and their labels."""

    name: str
    kind: str
    size: int
    labels: tuple[Any, ...]
    #: Labels of the coarser groupings that SQL can name.
    bins: dict[str, tuple[Any, ...]] = {}

    def __repr__(self) -> str:
        labels = [str(label) for label in self.labels]
        values = ", ".join(labels) if len(labels) <= 6 else f"{', '.join(labels[:3])}, …, {labels[-1]}"
        bins = "".join(f"; {name}: {', '.join(map(str, of))}" for name, of in self.bins.items())
        return f"{self.kind}: {values}{bins}"


class MeasureInfo(Message):
    """The public description of a column that SUM and AVG use: its bounds and its step."""

    name: str
    low: float
    high: float
    step: float
    nullable: bool
    #: The measures that it is multiplied with, for CORR and its relatives; itself, for its variance.
    products: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"measure: {self.values}"

    @property
    def values(self) -> str:
        """The values that are summed, in words."""
        null = ", or NULL" if self.nullable else ""
        products = f"; times {' and '.join(self.products)}" if self.products else ""
        return f"{self.low:,.12g} to {self.high:,.12g} in steps of {self.step:,.12g}{null}{products}"


class PromiseInfo(Message):
    """A fairness property: whether it is guaranteed, under which assumptions, and where the proof is."""

    desideratum: str
    meaning: str
    status: str
    assumptions: tuple[str, ...]
    page: str


class DatasetInfo(Message):
    """The public description of a dataset: columns, budget, mechanism and guarantees."""

    name: str
    attributes: tuple[AttributeInfo, ...]
    #: What SUM, AVG and COUNT use in place of the cells of a column of this name.
    measures: tuple[MeasureInfo, ...] = ()
    cells: int
    currency: Literal["pure", "zcdp"]
    epsilon: Amount
    delta: Amount
    #: The whole budget in its currency.
    total: Amount
    neighbours: str
    #: The column that identifies a person, where people and not rows are protected.
    privacy_unit: str | None = None
    population: int | None
    error_threshold: float
    mechanism: str
    #: The cost of a paid question, where it is known in advance.
    query_budget: Amount | None
    scheduler: str
    #: Answers are released at multiples of this many seconds.
    release_every: float
    promises: tuple[PromiseInfo, ...]
    paused: bool = False

    def __repr__(self) -> str:
        budget = f"epsilon {self.epsilon}" + (f", delta {self.delta}" if self.currency == "zcdp" else "")
        cost = f", {format_amount(self.query_budget)} per paid question" if self.query_budget else ""
        unit = f", each {self.privacy_unit} counted once" if self.privacy_unit else ""
        paused = ", paused" if self.paused else ""
        columns: tuple[AttributeInfo | MeasureInfo, ...] = (*self.attributes, *self.measures)
        width, cells = max((len(each.name) for each in columns), default=0), format_cells(self.cells)
        return "\n".join(
            (
                f"{self.name}: {cells}, {budget}, {self.mechanism}{cost}{unit}{paused}",
                *(f"  {each.name.ljust(width)}  {each!r}" for each in columns),
            )
        )


class DatasetList(Message):
    """The datasets that a token gives access to, and the token's owner."""

    datasets: tuple[str, ...]
    name: str
    role: Literal["analyst", "curator"]


class BudgetStatus(Message):
    """An analyst's budget, in the dataset's currency."""

    analyst: str
    #: "pure" for epsilon, "zcdp" for rho.
    currency: str
    #: The share as a part of the whole budget.
    part: Amount
    share: Amount
    spent: Amount
    left: Amount
    asked: int
    waiting: int
    #: Whether the analyst said that they are done, and no question of theirs waits.
    done: bool = False
    #: Roughly how many more questions can be paid for; null where prices are not known in advance.
    questions_left: int | None

    def __repr__(self) -> str:
        more = (
            "" if self.questions_left is None else f", for {pluralize(self.questions_left, 'question')}"
        )
        return (
            f"{self.analyst}: {budget_unit(self.currency)} {format_amount(self.left)} left of "
            f"{format_amount(self.share)}{more}; {self.asked:,} asked, {self.waiting:,} waiting"
        )


class AnalystStanding(Message):
    """An analyst's useful answers: here, alone, and without each other analyst."""

    analyst: str
    answers: int
    here: float
    alone: float
    #: By the name of the other analyst; only in a curator's certificate.
    without: dict[str, float] | None = None
    ratio: float | None
    interference: float | None
    worse_answers: int


class CertificateReport(Message):
    """The fairness certificate: of all analysts for a curator, of the asking analyst otherwise."""

    mechanism: str
    scheduler: str
    error_threshold: float
    #: The number of entries of the stream that it covers, and of those that it does not cover yet.
    entries: int
    behind: int = 0
    #: How many of the entries a second implementation has checked, and how many it contradicts.
    checked: int = 0
    contradicted: int = 0
    exact: bool
    holds: bool | None
    worst_ratio: float | None
    worst_interference: float | None
    analysts: tuple[AnalystStanding, ...]
    promises: tuple[PromiseInfo, ...]

    @property
    def verdict(self) -> str:
        """The result in one sentence."""
        if not self.exact:
            return f"The certificate of {self.mechanism} depends on the data and cannot be published."
        waiting = f" {pluralize(self.behind, 'entry is', 'entries are')} waiting."
        if self.holds is None:
            return f"No answer has been judged yet.{waiting if self.behind else ''}"
        if not self.analysts:
            return f"You joined after the entries that it has judged.{waiting if self.behind else ''}"
        if self.contradicted:
            return (
                f"Do not rely on this certificate: {pluralize(self.contradicted, 'entry', 'entries')} "
                "computed a second time came out differently."
            )
        own = len(self.analysts) == 1 and self.analysts[0].without is None
        if own:
            who = f"{self.analysts[0].analyst} is {'not ' if self.holds else ''}"
        else:
            who = "No analyst is " if self.holds else "At least one analyst is "
        return f"{who}worse off for sharing, after {pluralize(self.entries, 'entry', 'entries')}."

    @property
    def basis(self) -> str:
        """How the figures were obtained, in one sentence."""
        checked = f"{self.checked:,} of {pluralize(self.entries, 'entry', 'entries')}"
        behind = f" {pluralize(self.behind, 'entry', 'entries')} behind." if self.behind else ""
        return f"Computed; {checked} checked by a second implementation.{behind}"

    def __repr__(self) -> str:
        promises = (f"{each.desideratum}: {each.status}" for each in self.promises)
        return "\n".join((self.verdict, *map(self._standing, self.analysts), *promises))

    def _standing(self, of: AnalystStanding) -> str:
        near = f"with an expected error of at most {format_number(self.error_threshold)}"
        worse = f"; {pluralize(of.worse_answers, 'answer')} less precise" if of.worse_answers else ""
        return (
            f"{of.analyst}: {format_number(of.here)} of {of.answers:,} {near}; "
            f"alone {format_number(of.alone)}{worse}"
        )


class LedgerEvent(Message):
    """One event of the ledger, without its secret parts."""

    number: int
    kind: str
    content: dict[str, Any]


class EventPage(Message):
    """A page of the ledger; `head` identifies the whole ledger, `next` continues the page."""

    head: str
    events: tuple[LedgerEvent, ...]
    next: int | None = None

    def __len__(self) -> int:
        return len(self.events)


class AnalystList(Message):
    """The analysts with their budgets, and the unallocated budget."""

    analysts: tuple[BudgetStatus, ...]
    #: In the dataset's currency, and as a part of the whole budget.
    unallocated: Amount
    unallocated_part: Amount

    def __iter__(self) -> Iterator[BudgetStatus]:  # type: ignore[override]
        return iter(self.analysts)

    def __len__(self) -> int:
        return len(self.analysts)

    def __repr__(self) -> str:
        return "\n".join((*map(repr, self), f"unallocated: {format_amount(self.unallocated)}"))


class ClosedRound(Message):
    """What the analysts who are done had left, spent on one measurement for all."""

    analysts: tuple[str, ...]
    #: "pure" for epsilon, "zcdp" for rho.
    currency: str
    #: In the dataset's currency, and as a part of the whole budget.
    spent: Amount
    part: Amount

    def __repr__(self) -> str:
        return (
            f"Closed the round: {budget_unit(self.currency)} {format_amount(self.spent)}, what "
            f"{', '.join(self.analysts)} had left, bought one more measurement of the seed."
        )


class Token(Message):
    """A new token. It is shown once."""

    name: str
    role: Literal["analyst", "curator"]
    token: str = Field(repr=False)


class SessionInfo(Message):
    """A browser's session: who signed in, and what the page sends as X-Sharewell-CSRF."""

    dataset: str
    name: str
    role: Literal["analyst", "curator"]
    csrf: str = Field(repr=False)
    #: Whether the dataset was begun; before, its curators can only plan.
    begun: bool = True


class VerificationStatus(Message):
    """How far the verification of a ledger has come, or what it found."""

    state: Literal["none", "running", "done", "failed"]
    #: While it runs: the check, how far it has come, and of how much; 0 is unknown.
    check: str = ""
    done: int = 0
    of: int = 0
    #: Once it is done; each check as `sharewell verify --json` writes it.
    ok: bool | None = None
    events: int = 0
    head: str = ""
    checks: tuple[dict[str, Any], ...] = ()
    #: Why it failed.
    message: str = ""


class Activity(Message):
    """The newest questions in the order in which they ended: the source of each answer, and its time.

    A question is `measured` if any number of its answer is, and otherwise as its least reliable one;
    `refused`; or `free`, where its answer cost nothing and is too long to look up. Its time is that at
    which it was asked, in seconds since 1970, rounded down to the minute.
    """

    sources: tuple[str, ...]
    times: tuple[int, ...]


class SettingChange(Message):
    """A setting whose value in the file is not the one in the ledger; null where there is none."""

    setting: str
    ledger: str | None
    file: str | None


class SettingsComparison(Message):
    """How the configuration file differs from the settings that the service runs with."""

    changes: tuple[SettingChange, ...]
    #: Whether the file could be read.
    readable: bool = True


class PlannedAnalyst(Message):
    """What settings would give one analyst: questions, and the expected part of useful answers."""

    analyst: str
    questions: int | None
    useful: float | None


class PlanForecast(Message):
    """What settings would mean, for the questions that the analysts are expected to ask."""

    dataset: str
    epsilon: Amount
    error_threshold: float
    seed: str
    seed_fraction: Amount
    query_budget: Amount
    #: The root mean square of the standard errors, in rows.
    typical_error: float
    #: The expected part of all answers within the error threshold.
    useful: float
    analysts: tuple[PlannedAnalyst, ...]
