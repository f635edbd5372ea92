"""From rows to counts: one GROUP BY over the public cells, the same for every engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing

from sqlglot import exp

from sharewell.engine.base import SourceColumn
from sharewell.engine.cells import Placement, Type, is_missing, placement
from sharewell.engine.data_vector import MAX_ROWS, DataVector
from sharewell.engine.sources import open_source
from sharewell.errors import DomainTooLarge, SourceError
from sharewell.query.attribute import Attribute
from sharewell.query.domain import MAX_CELLS, Domain


def vectorize(
    source: object,
    domain: Domain,
    privacy_unit: str | None = None,
    *,
    table: str | None = None,
    max_rows: int | None = None,
) -> DataVector:
    """Count the rows of a file or a data frame in every cell of a domain.

    `privacy_unit` names the column that identifies a person who may have several rows: each person then
    counts once, in the first of their cells. `table` names the table of a database. `max_rows` is a
    public limit on the number of rows (or people); a domain too large for a dense vector requires it.

    >>> import pandas
    >>> from sharewell import Boolean, Domain, Integer, vectorize
    >>> people = pandas.DataFrame({"age": [4, 71, 36], "employed": [False, False, True]})
    >>> vectorize(people, Domain([Integer("age", 0, 85), Boolean("employed")]))
    DataVector(age, employed: 172 cells)
    """
    _require_limit(domain, max_rows)
    unit = () if privacy_unit is None else (privacy_unit,)
    with closing(open_source(source, (*domain.names, *unit), table=table)) as engine:
        found = engine.fetch(cell_counts(domain, engine.columns, engine.relation, privacy_unit))
    codes = [found[name] for name in _code_names(domain)]
    return DataVector.of_cells(domain, codes, found["count"], max_rows)


def _require_limit(domain: Domain, max_rows: int | None) -> None:
    if max_rows is None:
        if domain.size > MAX_CELLS:
            raise DomainTooLarge(
                f"A domain of {domain.size:,} cells requires a public limit on the number of rows.",
                hint="Set `max_rows`, with room for rows to come.",
            )
    elif isinstance(max_rows, bool) or not isinstance(max_rows, int) or not 1 <= max_rows <= MAX_ROWS:
        raise SourceError(
            f"`max_rows` cannot be {max_rows!r}.", hint=f"Use a whole number from 1 to {MAX_ROWS:,}."
        )


def cell_counts(
    domain: Domain,
    columns: Mapping[str, SourceColumn],
    relation: exp.Table,
    privacy_unit: str | None = None,
) -> exp.Select:
    """Return the statement that counts the rows of each cell: a code for each attribute, and `count`.

    Rows outside the domain, and rows without a person, are excluded. A person's cell is the smallest of
    their rows' cells in C order, so it does not depend on other people.
    """
    rows, names = _coded_rows(domain, columns, relation), _code_names(domain)
    if privacy_unit is not None:
        person = columns[privacy_unit]
        if person.type.this in (Type.FLOAT, Type.DOUBLE):
            # Rounded ids could merge two people, and one missing id turns a pandas column into floats.
            raise SourceError(
                f"The privacy unit {person.name!r} has type {person.type.sql('duckdb')}, in which large "
                "ids may be equal.",
                hint="Cast it to integers (Int64 in pandas) or text.",
            )
        rows = rows.select(person.value.as_("person")).where(is_missing(person).not_())
        rows = _first_cells(rows, names)
    return exp.select(*names, "COUNT(*) AS count").from_(rows.subquery("people")).group_by(*names)


def _first_cells(rows: exp.Select, names: Sequence[str]) -> exp.Select:
    """Return the smallest cell of every person; structs are compared field by field."""
    fields = [
        exp.PropertyEQ(this=exp.to_identifier(name), expression=exp.column(name)) for name in names
    ]
    least = exp.Min(this=exp.Struct(expressions=fields)).as_("cell")
    people = exp.select(least).from_(rows.subquery("cells")).group_by("person")
    return exp.select(*(exp.column(name, table="cell").as_(name) for name in names)).from_(
        people.subquery("first_cells")
    )


def _code_names(domain: Domain) -> list[str]:
    return [f"code_{i}" for i in range(len(domain.attributes))]


def _coded_rows(domain: Domain, columns: Mapping[str, SourceColumn], relation: exp.Table) -> exp.Select:
    """Return the codes of every row that has a cell."""
    rows = exp.select().from_(relation)
    for i, (name, attribute) in enumerate(zip(_code_names(domain), domain.attributes, strict=True)):
        placed = placement(attribute, columns[attribute.name], f"labels_{i}")
        rows = rows.select(exp.cast(_cell(attribute, placed), _code_type(attribute.size)).as_(name))
        rows = rows.join(placed.lookup) if placed.lookup else rows
        rows = rows.where(_kept(attribute, placed))
    return rows


def _code_type(size: int) -> exp.DType:
    """Return the smallest standard type that holds the codes of an attribute."""
    return Type.TINYINT if size <= 2**7 else Type.SMALLINT if size <= 2**15 else Type.INT


def _cell(attribute: Attribute, placed: Placement) -> exp.Condition:
    """Return an attribute's cell, including `other` and NULL; defined only on rows that have one."""
    if attribute.null_cell is None and attribute.other_cell is None:
        return placed.cell
    cell = exp.case()
    if attribute.null_cell is not None:
        cell = cell.when(placed.missing, exp.convert(attribute.null_cell))
    if attribute.other_cell is None:
        return cell.else_(placed.cell)
    return cell.when(placed.known, placed.cell).else_(exp.convert(attribute.other_cell))


def _kept(attribute: Attribute, placed: Placement) -> exp.Condition | None:
    """Return which rows have a cell of an attribute; None for all."""
    if attribute.other_cell is not None:
        return None
    return placed.known if attribute.null_cell is None else exp.or_(placed.missing, placed.known)
