"""What the descriptions leave out of a table: true numbers and values, for the curator's eyes only."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot import exp

from sharewell.engine.base import Engine
from sharewell.engine.cells import Type, centred_value, is_missing, is_null, look_up_of, placement
from sharewell.query.domain import Domain

#: The most values shown of one column.
MOST_VALUES = 5


@dataclass(frozen=True)
class ColumnInspection:
    """How many rows a description leaves out, and the most frequent values that it does not declare."""

    name: str
    left_out: int
    #: Values as text, None for NULL, and how many rows have them.
    undeclared: tuple[tuple[str | None, int], ...] = ()


@dataclass(frozen=True)
class RowInspection:
    """The number of rows of a table, and what each description does to them.

    Privacy: none. It must be neither stored nor served.
    """

    rows: int
    columns: tuple[ColumnInspection, ...]


@dataclass(frozen=True)
class _Description:
    name: str
    value: exp.Condition
    #: Rows that have a cell; None for all.
    kept: exp.Condition | None
    #: Rows whose value is declared.
    declared: exp.Condition | None


def inspect_rows(domain: Domain, engine: Engine, privacy_unit: str | None = None) -> RowInspection:
    """Count the rows that each description leaves out, by one statement and one for each column."""
    described = list(_descriptions(domain, engine, privacy_unit))
    numbers = [exp.Count(this=exp.Star()).as_("rows")]
    for at, each in enumerate(described):
        outside = exp.Literal.number(0) if each.kept is None else _unless(each.kept)
        total = exp.Coalesce(this=exp.Sum(this=outside), expressions=[exp.Literal.number(0)])
        numbers.append(exp.cast(total, Type.BIGINT).as_(f"left_out_{at}"))
    found = engine.fetch(exp.select(*numbers).from_(engine.relation))
    return RowInspection(
        int(found["rows"][0]),
        tuple(
            ColumnInspection(each.name, int(found[f"left_out_{at}"][0]), _undeclared(each, engine))
            for at, each in enumerate(described)
        ),
    )


def _descriptions(domain: Domain, engine: Engine, privacy_unit: str | None) -> Iterator[_Description]:
    for attribute in domain.attributes:
        column = engine.columns[attribute.name]
        placed = placement(attribute, column, look_up_of(engine))
        declared = placed.known
        if attribute.null_cell is not None:
            declared = exp.or_(placed.missing, placed.known)
        kept = None if attribute.other_cell is not None else declared
        yield _Description(attribute.name, column.value, kept, declared)
    for measure in domain.measures:
        column = engine.columns[measure.column]
        known = is_null(centred_value(measure, column)).not_()
        kept = None if measure.nullable else known
        yield _Description(f"measure {measure.name}", column.value, kept, known)
    if privacy_unit is not None:
        person = engine.columns[privacy_unit]
        yield _Description(f"person {privacy_unit}", person.value, is_missing(person).not_(), None)


def _unless(condition: exp.Condition) -> exp.Case:
    """Return 0 where a condition is true, and 1 where it is false or NULL."""
    return exp.case().when(condition.copy(), exp.Literal.number(0)).else_(exp.Literal.number(1))


def _undeclared(each: _Description, engine: Engine) -> tuple[tuple[str | None, int], ...]:
    if each.declared is None:
        return ()
    values = exp.select(exp.cast(each.value.copy(), Type.TEXT).as_("value")).from_(engine.relation)
    values = values.where(_unless(each.declared).eq(1))
    frequent = exp.select("value", exp.Count(this=exp.Star()).as_("seen")).from_(
        values.subquery("undeclared")
    )
    frequent = frequent.group_by("value").order_by(exp.column("seen").desc(), "value").limit(MOST_VALUES)
    return tuple(
        (None if value is None else str(value), int(seen)) for value, seen in engine.rows(frequent)
    )
