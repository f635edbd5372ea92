"""Results, quotes and tickets: what a question returns, would cost, and how far it has come."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field, ValidationInfo, field_serializer, field_validator

from sharewell.errors import NotFound, NotOneNumber, RequestError, StillWaiting, Suggestion
from sharewell.wire.messages import Amount, Message, Problem
from sharewell.wire.text import (
    GAINS_LITTLE,
    format_amount,
    format_cost,
    format_estimate,
    format_group_sizes,
    format_label,
    format_number,
    pluralize,
)

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

#: The number of rows that are printed; all of them are in `rows`.
MAX_ROWS_SHOWN = 50


class ResultColumn(Message):
    """A column of a result: labels of groups, or numbers."""

    name: str
    kind: Literal["group", "number"]


class Number(Message):
    """A noisy number with its standard error, its 95 % interval and its source.

    >>> number = Number(value=6231.3, standard_error=14.1, interval=(6203.3, 6259.3), source="measured")
    >>> number
    6,231 ± 28 (95 %), measured
    >>> float(number), int(number), f"{number:,.1f}"
    (6231.3, 6231, '6,231.3')
    """

    #: None where SQL returns NULL, such as for the average of an empty group.
    value: float | None
    standard_error: float | None = None
    #: Contains the true number with probability 95 %; an end may be infinite.
    interval: tuple[float, float] | None = None
    #: "measured", "cached", "reconstructed", "synthetic" or "public".
    source: str

    @field_validator("interval", mode="before")
    @classmethod
    def _parse_interval(cls, interval: Any) -> Any:
        if interval is None or None not in interval:
            return interval
        low, high = interval
        return (-math.inf if low is None else low, math.inf if high is None else high)

    @field_serializer("interval", when_used="json")
    def _serialize_interval(self, interval: tuple[float, float] | None) -> list[float | None] | None:
        return interval and [end if math.isfinite(end) else None for end in interval]

    def __float__(self) -> float:
        if self.value is None:
            raise RequestError(
                "The value is NULL, not a number.", hint="Check whether it is NULL first."
            )
        return self.value

    def __int__(self) -> int:
        """Return the nearest integer."""
        return round(float(self))

    def __format__(self, spec: str) -> str:
        return format(float(self), spec) if spec else str(self)

    def __str__(self) -> str:
        return format_estimate(self.value, self.interval)

    def __repr__(self) -> str:
        return f"{self}, {self.source}"


class Result(Message):
    """The result of a question: a table of one or more rows.

    Where it is one number, `value`, `standard_error`, `interval` and `source` are those of the number,
    and `float(result)` works. Otherwise iterate over the rows, or look up a row by its label:
    `result["18-64"]` is the number of that group, or a dict by column name where there are several
    columns of numbers. With several columns of labels, write `result["F", "18-64"]`.

    >>> count = Number(value=6231.0, interval=(6203.0, 6259.0), source="measured")
    >>> Result(columns=[ResultColumn(name="n", kind="number")], rows=[[count]], cost="1/100")
    6,231 ± 28 (95 %), measured, cost 1/100
    """

    columns: tuple[ResultColumn, ...]
    #: A field is a label in a group column, and a `Number` in a column of numbers.
    rows: tuple[tuple[Any, ...], ...]
    #: What the question cost the asking analyst.
    cost: Amount
    #: The analyst who paid for the measurements behind it, where that was one analyst.
    paid_by: str | None = None
    #: Sentences about the limits of these numbers.
    notes: tuple[str, ...] = ()
    #: The question, set by the client: its text, its number and its idempotency key. Not sent.
    sql: str | None = Field(default=None, exclude=True)
    number: int | None = Field(default=None, exclude=True)
    key: str | None = Field(default=None, exclude=True)

    @field_validator("rows")
    @classmethod
    def _parse_numbers(cls, rows: tuple[tuple[Any, ...], ...], info: ValidationInfo) -> Any:
        if info.mode != "json":
            return rows  # a caller in Python gives `Number` objects
        return tuple(
            tuple(
                field if column.kind == "group" else Number.model_validate(field)
                for field, column in zip(row, info.data.get("columns", ()), strict=True)
            )
            for row in rows
        )

    # One number

    @property
    def is_scalar(self) -> bool:
        """Whether the result is one number, without a label."""
        return len(self.rows) == 1 and [column.kind for column in self.columns] == ["number"]

    @property
    def value(self) -> float | None:
        """The number's value."""
        return self._scalar.value

    @property
    def standard_error(self) -> float | None:
        """The number's standard error."""
        return self._scalar.standard_error

    @property
    def interval(self) -> tuple[float, float] | None:
        """The number's 95 % interval."""
        return self._scalar.interval

    @property
    def source(self) -> str:
        """The number's source."""
        return self._scalar.source

    @property
    def _scalar(self) -> Number:
        if self.is_scalar:
            number: Number = self.rows[0][0]
            return number
        shape = f"{pluralize(len(self.rows), 'row')} and {pluralize(len(self.columns), 'column')}"
        raise NotOneNumber(
            f"The result is a table of {shape}, not one number.",
            hint="Look up a row by its label, or iterate over the rows.",
        )

    def __float__(self) -> float:
        return float(self._scalar)

    def __int__(self) -> int:
        """Return the nearest integer."""
        return int(self._scalar)

    def __format__(self, spec: str) -> str:
        return format(self._scalar, spec) if spec else str(self)

    # Several rows

    @property
    def column_names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(column.name for column in self.columns)

    @property
    def sources(self) -> tuple[str, ...]:
        """The sources of all numbers, each once."""
        return tuple(dict.fromkeys(f.source for row in self.rows for f in row if isinstance(f, Number)))

    @property
    def labels(self) -> list[Any]:
        """The label of each row; a tuple where there are several columns of labels."""
        return list(self._by_label)

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[tuple[Any, ...]]:  # type: ignore[override]
        return iter(self.rows)

    def __contains__(self, label: object) -> bool:
        return label in self._by_label

    def __getitem__(self, label: Any) -> Any:
        try:
            return self._by_label[label]
        except (KeyError, TypeError):
            raise NotFound(f"No row has the label {label!r}.", hint=self._similar(label)) from None

    @cached_property
    def _by_label(self) -> dict[Any, Any]:
        found: dict[Any, Any] = {}
        for row in self.rows:
            fields = list(zip(row, self.columns, strict=True))
            labels = tuple(field for field, column in fields if column.kind == "group")
            numbers = {column.name: field for field, column in fields if column.kind == "number"}
            whole = next(iter(numbers.values())) if len(numbers) == 1 else numbers
            found[labels[0] if len(labels) == 1 else labels] = whole
        return found

    def _similar(self, label: Any) -> str:
        if not any(column.kind == "group" for column in self.columns):
            return "The result has no labels: take its only row from `rows`."
        # Both as printed and as Python writes it: NULL is None.
        known = {text: each for each in self.labels for text in (format_label(each), str(each))}
        if near := difflib.get_close_matches(str(label), known, n=1):
            return f"Did you mean {known[near[0]]!r}?"
        few = ", ".join(repr(each) for each in self.labels[:5])
        return f"The labels are {few}{', ...' if len(self) > 5 else ''}." if few else ""

    # Data frames

    def to_pandas(self) -> pandas.DataFrame:
        """Return a pandas frame; a number n has the columns n, n_error, n_low and n_high."""
        from sharewell.wire import frames

        return frames.to_pandas(self)

    def to_polars(self) -> polars.DataFrame:
        """Return a Polars frame with the columns of `to_pandas`."""
        from sharewell.wire import frames

        return frames.to_polars(self)

    def to_arrow(self) -> pyarrow.Table:
        """Return an Arrow table with the columns of `to_pandas`."""
        from sharewell.wire import frames

        return frames.to_arrow(self)

    # Text

    @property
    def caption(self) -> str:
        """The number of rows, their sources and their cost."""
        return ", ".join((pluralize(len(self.rows), "row"), *self.sources, format_cost(self.cost)))

    @property
    def omitted(self) -> str:
        """The note about rows that are not printed; empty where all are."""
        more = len(self.rows) - MAX_ROWS_SHOWN
        return f"… and {pluralize(more, 'more row')}" if more > 0 else ""

    def __str__(self) -> str:
        return str(self._scalar) if self.is_scalar else repr(self)

    def __repr__(self) -> str:
        if self.is_scalar:
            return "\n".join((f"{self._scalar!r}, {format_cost(self.cost)}", *self.notes))
        lines = [
            [column.name for column in self.columns],
            *([format_field(each) for each in row] for row in self.rows[:MAX_ROWS_SHOWN]),
        ]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        aligned = [
            "  ".join(
                text.ljust(width) if column.kind == "group" else text.rjust(width)
                for text, width, column in zip(line, widths, self.columns, strict=True)
            ).rstrip()
            for line in lines
        ]
        rule = "  ".join("─" * width for width in widths)
        omitted = [self.omitted] if self.omitted else []
        return "\n".join((aligned[0], rule, *aligned[1:], *omitted, f"({self.caption})", *self.notes))

    def _repr_html_(self) -> str | None:
        """Return a table with error bars for notebooks; one number is shown as text."""
        from sharewell.wire.html import render_html

        return None if self.is_scalar else render_html(self)


def format_field(field: Any) -> str:
    """Format a field of a table, where all intervals are 95 % intervals."""
    if isinstance(field, Number):
        return format_estimate(field.value, field.interval, level=False)
    return format_label(field)


class Offer(Message):
    """A way to have a question answered: its cost, and the standard errors of its numbers.

    There is one entry of `errors` per column of numbers: the largest and the smallest standard error
    over its rows, null where none is known in advance. Where there are averages, `averages` has for
    each such column the largest standard errors of its sums and of its counts. `group_sizes` has the
    numbers of rows in the groups for which the largest and the smallest error of an average, a ratio of
    counts or a quantile are stated. The error of a computed number is half its expected 95 % interval,
    divided by the quote's `critical`. Numbers that nothing determines, which are NULL in the result, are
    counted in `undetermined`; others without a known error, such as ratios whose divisor may be 0, in
    `unknown`.
    """

    cost: Amount
    errors: tuple[tuple[float, float] | None, ...]
    averages: tuple[tuple[float, float] | None, ...] = ()
    group_sizes: tuple[tuple[int, int] | None, ...] = ()
    undetermined: int = 0
    unknown: int = 0

    @property
    def standard_errors(self) -> tuple[float | None, ...]:
        """The largest standard error of each column of numbers; None where it is not known."""
        return tuple(pair and pair[0] for pair in self.errors)


class Quote(Message):
    """What a question would cost, and the standard errors to expect. A quote is free."""

    sql: str
    columns: tuple[ResultColumn, ...]
    #: The maximum number of rows.
    groups: int
    #: With `pay=True`; None where too little budget is left.
    paid: Offer | None
    #: With `pay=False`; None where no measurements exist yet, or none that determine a number.
    free: Offer | None
    #: The asking analyst's remaining budget.
    means: Amount
    #: Half the width of a 95 % interval in standard errors: 1.96 where the noise is Gaussian.
    critical: float = 2.1184
    #: Sentences to read before asking.
    notes: tuple[str, ...] = ()

    @property
    def cost(self) -> Amount | None:
        """The cost of the paid answer; 0 where it is cached, None where it cannot be paid for."""
        return self.paid.cost if self.paid else None

    @property
    def number_columns(self) -> tuple[str, ...]:
        """The names of the columns of numbers."""
        return tuple(column.name for column in self.columns if column.kind == "number")

    @property
    def gains_little(self) -> bool:
        """Whether a paid answer would hardly be more precise than the free one."""
        return GAINS_LITTLE in self.notes

    @property
    def needs_paying(self) -> bool:
        """Whether the question has an answer only if it is paid for."""
        return self.free is None and self.paid is not None and self.paid.cost > 0

    def __repr__(self) -> str:
        if self.paid is None:
            first = f"cannot be paid for: {format_amount(self.means)} is left"
        elif self.paid.cost == 0:
            first = f"free, {self._errors(self.paid)}"
        else:
            cost = f"{format_amount(self.paid.cost)} of {format_amount(self.means)}"
            first = f"costs {cost}, {self._errors(self.paid)}"
            if self.needs_paying:
                first = f"needs a paid question: {first}; nothing free"
        lines = [first]
        if self.free is not None and not (self.paid and self.paid.cost == 0):
            lines.append(f"with pay=False: free, {self._errors(self.free)}")
        return "\n".join((*lines, *self.notes))

    def _errors(self, offer: Offer) -> str:
        known = []
        names = self.number_columns
        if not names:
            return "public values only"
        sizes = offer.group_sizes or (None,) * len(names)
        for name, error, size in zip(names, offer.standard_errors, sizes, strict=True):
            if error is not None:
                of = f" ({name})" if len(names) > 1 else ""
                known.append(f"{format_number(error, error)}{format_group_sizes(size and size[:1])}{of}")
        if not known:
            return "standard error not known in advance"
        found = f"standard error {'at most ' if self.groups > 1 else ''}{', '.join(known)}"
        if offer.unknown:
            found += f"; that of {pluralize(offer.unknown, 'number')} is not known in advance"
        if offer.undetermined:
            found += f"; {pluralize(offer.undetermined, 'number')} not determined"
        return found


class DraftQuote(Message):
    """The quote of a statement while it is typed, or what is wrong with it so far."""

    quote: Quote | None = None
    problem: Problem | None = None


class Ticket(Message):
    """A submitted question as of the last look: waiting, answered or refused."""

    number: int
    key: str
    sql: str
    pay: bool
    state: Literal["waiting", "answered", "refused"]
    #: While it waits: how many of the same analyst's questions come before it.
    position: int | None = None
    answer: Result | None = None
    problem: Problem | None = None

    def result(self) -> Result:
        """Return the result; raise the error of a refused question, `StillWaiting` of a waiting one."""
        if self.answer is not None:
            question = {"sql": self.sql, "number": self.number, "key": self.key}
            return self.answer.model_copy(update=question)
        error = self.problem.to_error() if self.problem else self.still_waiting()
        error.idempotency_key = self.key
        raise error

    def still_waiting(self) -> StillWaiting:
        """Return the error of a question that has not been answered in time."""
        error = StillWaiting(
            f"Question {self.number} is still {self.describe()}.",
            hint=self.hint,
            suggestion=Suggestion("ticket", str(self.number)),
        )
        error.key, error.number = self.key, self.number
        return error

    @property
    def hint(self) -> str:
        """How to fetch the result later."""
        return (
            f"The server keeps the question and charges it once: fetch ticket {self.number} later, "
            f"or ask again with the key {self.key!r}."
        )

    def describe(self) -> str:
        """Describe the state and, while the question waits, its position in the queue."""
        if self.state != "waiting":
            return self.state
        if not self.position:
            return "waiting for its turn"
        return f"waiting behind {pluralize(self.position, 'question')} of yours"

    def __repr__(self) -> str:
        text = " ".join(self.sql.split())
        short = text if len(text) <= 60 else f"{text[:59]}…"
        return f"<Ticket {self.number}, {self.describe()}: {short}>"


class QuestionPage(Message):
    """A page of an analyst's questions, oldest first; `next` continues the page."""

    tickets: tuple[Ticket, ...]
    next: int | None = None

    def __len__(self) -> int:
        return len(self.tickets)
