"""Where a row falls, said as plainly as Python can: the oracle of every engine's SQL."""

import datetime as dt
import math
from collections.abc import Callable, Sequence
from hashlib import md5
from typing import Any

import numpy as np

from sharewell import Binned, Boolean, Category, Date, Domain, Integer
from sharewell.query.attribute import Attribute, period

Row = dict[str, Any]


def counts(
    rows: Sequence[Row], domain: Domain, privacy_unit: str | None = None, most: int = 1, key: str = ""
) -> list[int]:
    """The data vector, row by row."""
    cells = [(row, row_cell(row, domain)) for row in rows]
    if privacy_unit is None:
        kept = [cell for _, cell in cells if cell is not None]
    else:
        people: dict[Any, list[int]] = {}
        for row, cell in cells:
            if cell is not None and not is_missing(row[privacy_unit]):
                people.setdefault(row[privacy_unit], []).append(cell)
        kept = [
            cell for person, own in people.items() for cell in chosen(person, own, domain, most, key)
        ]
    return np.bincount(kept, minlength=domain.size).tolist() if kept else [0] * domain.size


def chosen(person: Any, cells: list[int], domain: Domain, most: int, key: str) -> list[int]:
    """The cells of a person's rows with the smallest hashes."""
    sizes = [attribute.size for attribute in domain.attributes]

    def hashed(at: int) -> str:
        codes = [int(code) for code in np.unravel_index(cells[at], sizes)]
        return md5("|".join(map(str, [key, person, *codes, at + 1])).encode()).hexdigest()

    cells = sorted(cells)
    places = sorted(range(len(cells)), key=hashed) if len(cells) > most else range(len(cells))
    return [cells[at] for at in places][:most]


def row_cell(row: Row, domain: Domain) -> int | None:
    """The row's cell in C order; None where it falls outside."""
    position = 0
    for attribute in domain.attributes:
        cell = cell_of(attribute, row[attribute.name])
        if cell is None:
            return None
        position = position * attribute.size + cell
    return position


def cell_of(attribute: Attribute, value: Any) -> int | None:
    """A value's cell of one attribute."""
    numeric = isinstance(attribute, Integer | Binned)
    if is_missing(number(value) if numeric and isinstance(value, str) else value):
        return attribute.other_cell if attribute.null_cell is None else attribute.null_cell
    declared: dict[type[Attribute], Callable[[Any, Any], int | None]]
    declared = {Integer: integer, Binned: binned, Category: category, Boolean: boolean, Date: date}
    cell = declared[type(attribute)](attribute, value)
    return attribute.other_cell if cell is None else cell


def is_missing(value: Any) -> bool:
    return value is None or (isinstance(value, float | np.floating) and math.isnan(value))


def number(value: Any) -> float:
    """A number; what is none is infinite, and so outside."""
    try:
        return float(value)
    except ValueError:
        return math.inf


def integer(attribute: Integer, value: Any) -> int | None:
    x = number(value)
    return attribute.values.index(int(x)) if x in attribute.values else None


def binned(attribute: Binned, value: Any) -> int | None:
    kind = np.float32 if isinstance(value, np.float32) else float
    edges = [kind(float(edge)) for edge in attribute.edges]
    x = value if isinstance(value, np.float32) else number(value)
    found = [i for i in range(len(edges) - 1) if edges[i] <= x < edges[i + 1]]
    return found[0] if found else None


def category(attribute: Category, value: Any) -> int | None:
    if isinstance(value, bool):
        value = str(value).lower()
    if isinstance(value, float):
        value = int(value) if value.is_integer() else "no category"
    text = str(value)
    return attribute.values.index(text) if text in attribute.values else None


def boolean(attribute: Boolean, value: Any) -> int | None:
    if isinstance(value, str):
        value = value.strip(" ").lower()
    if value in {"true", "t", "yes", "y", "1", "1.0", 1}:
        return 1
    return 0 if value in {"false", "f", "no", "n", "0", "0.0", 0} else None


def date(attribute: Date, value: Any) -> int | None:
    if isinstance(value, str):
        try:
            value = dt.datetime.fromisoformat(value)
        except ValueError:
            return None
    if isinstance(value, dt.datetime):
        value = (value.astimezone(dt.UTC) if value.tzinfo else value).date()
    first, last = attribute.edges[0], attribute.edges[-1] - 1
    inside = first <= value.toordinal() <= last
    return attribute.values.index(period(value, attribute.by)) if inside else None
