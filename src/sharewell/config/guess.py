"""Guesses: which attribute a column may be, by what it holds, and how many cells that takes."""

from __future__ import annotations

import datetime as dt
import json
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import get_args

from sharewell.config.columns import MOST_VALUES, Holds, Seen, SeenTable
from sharewell.config.rounding import round_bounds, round_cuts, whole_periods
from sharewell.engine.values import Kind
from sharewell.query.ordered import Date, Unit

#: How many cells a proposed domain may have, and how many of them one column.
MOST_CELLS = 1_000_000
MOST_NUMBERS, MOST_PERIODS = 120, 100
#: A longer text is taken for free text.
LONGEST_VALUE = 60
#: Fewer rows than this may well all differ.
FEW_ROWS = 10
#: How many bins numbers are put into, and how many where that is too many.
BINS, FEW_BINS = 10, 5

IDENTIFIER = re.compile(r"(^|[_\W])(id|uuid|guid|ssn|key|email|phone)$|[a-z]I[dD]$")


@dataclass(frozen=True)
class Setting:
    """One line of a description: a key, its value as TOML, and what the curator should look at."""

    key: str
    value: str
    review: str = ""


@dataclass(frozen=True)
class Form:
    """One way to describe a column."""

    type: str
    cells: int
    settings: tuple[Setting, ...] = ()
    #: What the curator should look at in the column as a whole.
    review: str = ""


@dataclass(frozen=True)
class Guess:
    """A column, with the ways to describe it, finest first; or why it is left out."""

    name: str
    forms: tuple[Form, ...]
    reason: str = ""
    #: The type to try where it is left out.
    type: str = "category"
    #: Whether several rows have the same value.
    repeats: bool = False

    def left_out(self, reason: str) -> Guess:
        """The same column, left out."""
        return replace(self, forms=(), reason=reason)


#: The type that suits what a column holds; categories suit everything else.
TYPES: dict[Holds, str] = {"whole numbers": "integer", "numbers": "binned", "dates": "date"}


def quoted(text: str) -> str:
    r"""A text in quotes, as TOML writes it.

    >>> print(quoted('say "hi"'))
    "say \"hi\""
    """
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def guesses(table: SeenTable) -> tuple[Guess, ...]:
    """A guess for every column, small enough together; never are all left out, if that can be helped."""
    found = [_guess(seen, empty=not table.rows) for seen in table.columns]
    found = _fit(_named_apart(found))
    if not any(guess.forms for guess in found):
        found = _with_placeholder(found, table.columns)
    repeated = [Guess(name, (), "more than one column has this name") for name in table.repeated]
    return (*found, *repeated)


def looks_like_identifier(name: str) -> bool:
    """Whether a column's name says that it tells whose row it is."""
    return IDENTIFIER.search(name) is not None


def _guess(seen: Seen, *, empty: bool) -> Guess:
    if empty and seen.kind is not None:
        form = _placeholder(seen)
        return Guess(seen.name, (form,) if form else ())
    forms = tuple(_with_null(seen, _with_odd(seen, form)) for form in _forms(seen))
    kind, repeats = TYPES.get(seen.holds, "category"), bool(seen.filled) and not seen.all_differ
    guess = Guess(seen.name, forms, type=kind, repeats=repeats)
    reason = _reason(seen, forms)
    return guess.left_out(reason) if reason else guess


def _reason(seen: Seen, forms: Sequence[Form]) -> str:
    """Why a column should not be an attribute; empty where it may be one."""
    if seen.holds == "other things":
        return f"its type is {seen.type}, of which nothing can be counted"
    if seen.holds == "nothing":
        return "no row has a value that can be counted"
    countable = seen.holds in ("texts", "whole numbers")
    if countable and seen.all_differ and seen.filled > FEW_ROWS:
        return "every row has another value, so it looks like an identifier"
    if seen.holds == "whole numbers" and forms[0].type != "integer" and looks_like_identifier(seen.name):
        return "by its name it looks like an identifier"
    if seen.holds == "texts" and seen.longest > LONGEST_VALUE:
        return f"it has texts of more than {LONGEST_VALUE} letters, so it looks like free text"
    if seen.holds == "texts" and seen.other_days:
        return "its texts look like days, of which only those written as 2024-12-31 can be read"
    if seen.holds == "texts" and not seen.values:
        return f"it has more than {MOST_VALUES} different values"
    if not forms:
        return "its values reach too far; give it bounds that make sense"
    return ""


def _forms(seen: Seen) -> Iterator[Form]:
    match seen.holds:
        case "booleans":
            yield Form("boolean", 2)
        case "whole numbers":
            low, high = round_bounds(int(seen.low), int(seen.high))
            if high - low < MOST_NUMBERS:
                yield _integer(low, high, "from the rows, rounded; write what everybody may know")
            yield from _binned(seen)
        case "numbers":
            yield from _binned(seen)
        case "dates":
            yield from _dates(seen.low, seen.high)
        case "texts" if seen.values:
            yield _category(seen.values, "seen in the rows; list what everybody may know")


def _integer(low: int, high: int, review: str) -> Form:
    return Form(
        "integer",
        high - low + 1,
        (Setting("low", str(low), review), Setting("high", str(high), review)),
    )


def _binned(seen: Seen) -> Iterator[Form]:
    if max(-seen.low, seen.high) > 1e300:
        return
    for bins in (BINS, FEW_BINS):
        review = "round, around what the rows hold; write cuts that everybody may know"
        yield _cut(round_cuts(seen.low, seen.high, bins), review)


def _cut(cuts: Sequence[str], review: str) -> Form:
    return Form("binned", len(cuts) - 1, (Setting("cuts", f"[{', '.join(cuts)}]", review),))


def _dates(low: dt.date, high: dt.date) -> Iterator[Form]:
    for unit in get_args(Unit):
        start, end = whole_periods(low, high, unit)
        # Weeks cut through months and years.
        if unit == "week" or (end - start).days > MOST_PERIODS * DAYS[unit]:
            continue
        yield _date(start, end, unit, "whole periods around what the rows hold")


DAYS = {"day": 1, "month": 28, "quarter": 90, "year": 365}


def _date(start: dt.date, end: dt.date, unit: Unit, review: str) -> Form:
    return Form(
        "date",
        Date("day", start, end, by=unit).size,
        (
            Setting("start", start.isoformat(), review),
            Setting("end", end.isoformat(), review),
            Setting("by", quoted(unit)),
        ),
    )


def _category(values: Sequence[str], review: str) -> Form:
    labels = ("other", "elsewhere", *(f"other {at}" for at in range(len(values))))
    other = next(label for label in labels if label not in values)
    return Form(
        "category",
        len(values) + 1,
        (
            Setting("categories", f"[{', '.join(map(quoted, values))}]", review),
            Setting("other", quoted(other)),
        ),
        TWINS if len({value.strip().casefold() for value in values}) < len(values) else "",
    )


TWINS = (
    "some categories differ only in case or in white space around them; clean them, or join them by bins"
)


def _with_odd(seen: Seen, form: Form) -> Form:
    if not seen.odd:
        return form
    many = "1 value is" if seen.odd == 1 else f"{seen.odd:,} values are"
    review = f"{many} of another kind; counted here, and left out without this line"
    other = Setting("other", quoted("other"), review)
    return replace(form, cells=form.cells + 1, settings=(*form.settings, other))


def _with_null(seen: Seen, form: Form) -> Form:
    if not seen.missing:
        return form
    null = Setting("nullable", "true", "some rows have no value; NULL gets a cell of its own")
    return replace(form, cells=form.cells + 1, settings=(*form.settings, null))


def _placeholder(seen: Seen) -> Form | None:
    """A form for a column that no row says anything about."""
    review = "no row says what belongs here"
    match seen.kind:
        case None:
            return None
        case Kind.BOOLEAN:
            return Form("boolean", 2)
        case Kind.DATE | Kind.TIMESTAMP:
            return _date(dt.date(2000, 1, 1), dt.date(2029, 12, 31), "year", review)
        case Kind.INTEGER:
            return _integer(0, 99, review)
        case Kind.NUMBER:
            return _cut(round_cuts(0, 99, BINS), review)
        case Kind.TEXT:
            return _category(("replace me",), review)


def _named_apart(found: Sequence[Guess]) -> list[Guess]:
    """The same guesses, without names that SQL cannot tell apart, or that are none."""
    taken: set[str] = set()
    apart = []
    for guess in found:
        folded = guess.name.casefold()
        if not guess.name.strip():
            apart.append(guess.left_out("it has no name"))
        elif folded in taken:
            apart.append(guess.left_out("SQL does not tell upper from lower case in names"))
        else:
            apart.append(guess)
            taken.update([folded] if guess.forms else [])
    return apart


def _fit(found: Sequence[Guess]) -> list[Guess]:
    """The guesses with one form each, so that all together have at most MOST_CELLS cells.

    Columns that do not fit in even as coarse as they go are left out, the first ones staying. Then the
    largest is made coarser, as often as need be.
    """
    coarsest, kept = 1, []
    for guess in found:
        least = guess.forms[-1].cells if guess.forms else 1
        if coarsest * least <= MOST_CELLS:
            coarsest *= least
            kept.append(guess)
        else:
            kept.append(guess.left_out(f"with it there would be more than {MOST_CELLS:,} cells"))
    while math.prod(guess.forms[0].cells for guess in kept if guess.forms) > MOST_CELLS:
        at = max(
            (at for at, guess in enumerate(kept) if len(guess.forms) > 1),
            key=lambda at: kept[at].forms[0].cells,
        )
        kept[at] = replace(kept[at], forms=kept[at].forms[1:])
    return kept


def _with_placeholder(found: Sequence[Guess], columns: Sequence[Seen]) -> list[Guess]:
    """The same, the first column that can be described at all with a description to be filled in."""
    filled = list(found)
    for at, seen in enumerate(columns):
        form = _placeholder(seen)
        if seen.name.strip() and form:
            filled[at] = Guess(seen.name, (form,))
            break
    return filled
