"""Tables: the answer to a question with groups, or with several columns."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

from sharewell import wire
from sharewell.client.answer import Answer, Estimate, estimate, only_answer
from sharewell.client.wording import price, several
from sharewell.errors import NotFound, RequestError

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow
    from rich.table import Table as RichTable

#: The label of a group, as SQL shows it.
Label = str | int | float | bool | None

#: So many rows are shown; all of them are in `rows`.
MOST_SHOWN = 50


@dataclass(frozen=True, repr=False, eq=False)
class AnswerTable:
    """A result with rows: labels of groups first or wherever they were selected, and estimates.

    `table["18-64"]` is the estimate of that group, or a dict of them where there are several columns of
    numbers; with several columns of labels, `table["F", "18-64"]`. Iteration gives the rows.
    """

    columns: tuple[str, ...]
    #: Which of the columns are labels of groups.
    grouped: tuple[bool, ...]
    rows: tuple[tuple[Any, ...], ...]
    #: What the question has cost whoever asked it.
    cost: Fraction
    #: Who paid for what it is made of, where that was one person.
    paid_by: str | None
    sql: str
    #: What to know before one relies on it.
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return iter(self.rows)

    def __float__(self) -> float:
        raise RequestError(
            f"The answer is a table with {several(len(self), 'row')}, not one number.",
            hint="Take a number out of it, as table['label'], or iterate over its rows.",
        )

    def __int__(self) -> int:
        return int(float(self))

    @property
    def labels(self) -> list[Any]:
        """The label of each row; a tuple where there are several columns of labels."""
        return list(self._by_label)

    def __contains__(self, label: object) -> bool:
        return label in self._by_label

    def __getitem__(self, label: Any) -> Any:
        try:
            return self._by_label[label]
        except (KeyError, TypeError):
            raise NotFound(f"There is no row {label!r}.", hint=self._offered(label)) from None

    @cached_property
    def _by_label(self) -> dict[Any, Any]:
        found: dict[Any, Any] = {}
        for row in self.rows:
            labels = tuple(field for field, group in zip(row, self.grouped, strict=True) if group)
            numbers = {
                name: field
                for name, field, group in zip(self.columns, row, self.grouped, strict=True)
                if not group
            }
            whole = next(iter(numbers.values())) if len(numbers) == 1 else numbers
            found[labels[0] if len(labels) == 1 else labels] = whole
        return found

    def _offered(self, label: Any) -> str:
        if not any(self.grouped):
            return "It has no labels: take its only row from `rows`."
        # Both as it is shown and as Python has it: NULL is None.
        known = {text: each for each in self.labels for text in (in_words(each), str(each))}
        near = difflib.get_close_matches(str(label), known, n=1)
        few = ", ".join(repr(each) for each in self.labels[:5])
        more = ", ..." if len(self) > 5 else ""
        return f"Did you mean {known[near[0]]!r}?" if near else f"There are {few}{more}." if few else ""

    def to_pandas(self) -> pandas.DataFrame:
        """A pandas frame; a number n has columns n, n_error, n_low and n_high beside each other."""
        from sharewell.client import frames

        return frames.to_pandas(self)

    def to_polars(self) -> polars.DataFrame:
        """A Polars frame, with the columns of `to_pandas`."""
        from sharewell.client import frames

        return frames.to_polars(self)

    def to_arrow(self) -> pyarrow.Table:
        """An Arrow table, with the columns of `to_pandas`."""
        from sharewell.client import frames

        return frames.to_arrow(self)

    @property
    def sources(self) -> tuple[str, ...]:
        """Where its numbers came from, each source once."""
        return tuple(
            dict.fromkeys(f.source for row in self.rows for f in row if isinstance(f, Estimate))
        )

    @property
    def caption(self) -> str:
        """How many rows, where they came from, and what they cost."""
        return ", ".join((several(len(self), "row"), *self.sources, price(self.cost)))

    @property
    def shown(self) -> list[tuple[str, ...]]:
        """The fields of the first rows, in words."""
        return [tuple(map(in_words, row)) for row in self.rows[:MOST_SHOWN]]

    @property
    def left_out(self) -> str:
        """What is said of rows that are not shown."""
        more = len(self) - MOST_SHOWN
        return f"… and {several(more, 'more row')}" if more > 0 else ""

    def __repr__(self) -> str:
        lines = [self.columns, *self.shown]
        widths = [max(len(line[at]) for line in lines) for at in range(len(self.columns))]
        aligned = [
            "  ".join(
                text.ljust(width) if group else text.rjust(width)
                for text, width, group in zip(line, widths, self.grouped, strict=True)
            ).rstrip()
            for line in lines
        ]
        rule = "  ".join("─" * width for width in widths)
        more = [self.left_out] if self.left_out else []
        return "\n".join((aligned[0], rule, *aligned[1:], *more, f"({self.caption})", *self.notes))

    def __rich__(self) -> RichTable:
        from rich.markup import escape
        from rich.table import Table as RichTable

        more = (self.left_out,) if self.left_out else ()
        caption = "\n".join((*more, self.caption, *self.notes))
        table = RichTable(caption=escape(caption), caption_justify="left")
        for name, group in zip(self.columns, self.grouped, strict=True):
            table.add_column(escape(name), justify="left" if group else "right")
        for row in self.shown:
            table.add_row(*map(escape, row))
        return table

    def _repr_html_(self) -> str:
        from sharewell.client.html import page

        return page(self)


def in_words(field: Label | Estimate) -> str:
    """A field of a table as it is shown; that an interval is one of 95 % goes without saying."""
    if isinstance(field, Estimate):
        return str(field).removesuffix(" (95 %)").replace(", 95 %)", ")")
    if field is None:
        return "NULL"
    return str(field).lower() if isinstance(field, bool) else str(field)


def read_answer(of: wire.Answer, sql: str) -> Answer | AnswerTable:
    """A result as it came over the wire: an `Answer` where it is one number."""
    if len(of.rows) == 1 and [column.kind for column in of.columns] == ["number"]:
        return only_answer(of, sql)
    grouped = tuple(column.kind == "group" for column in of.columns)
    rows = tuple(
        tuple(
            field if group else estimate(wire.Number.model_validate(field))
            for field, group in zip(row, grouped, strict=True)
        )
        for row in of.rows
    )
    names = tuple(column.name for column in of.columns)
    return AnswerTable(names, grouped, rows, Fraction(of.cost), of.paid_by, sql, of.notes)
