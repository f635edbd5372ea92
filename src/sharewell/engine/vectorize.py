"""From rows to counts: one GROUP BY over the public cells, the same for every engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing

import numpy as np
from sqlglot import exp

from sharewell.engine.base import SourceColumn
from sharewell.engine.cells import Placement, Type, centred_value, is_missing, is_null, placement
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
    wanted = (*domain.names, *(measure.column for measure in domain.measures), *unit)
    with closing(open_source(source, wanted, table=table)) as engine:
        found = engine.fetch(cell_counts(domain, engine.columns, engine.relation, privacy_unit))
    codes = [found[name] for name in _code_names(domain)]
    counts = np.stack([found[name] for name in _sums(domain)])
    return DataVector.of_cells(domain, codes, counts, max_rows)


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
    """Return the statement that counts the rows of each cell, and sums their measures.

    Its columns are a code for each attribute, then those of `_sums`. Rows outside the domain, and rows
    without a person, are excluded. A person's cell is the smallest of their rows' cells in C order, and
    their values those of the smallest of the rows there, so they do not depend on other people.
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
        rows = _first_rows(rows, rows.named_selects[:-1])
    sums = [sum_.as_(name) for name, sum_ in _sums(domain).items()]
    return exp.select(*names, *sums).from_(rows.subquery("people")).group_by(*names)


def _first_rows(rows: exp.Select, names: Sequence[str]) -> exp.Select:
    """Return the smallest row of every person; structs are compared field by field."""
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


def _sums(domain: Domain) -> dict[str, exp.Expression]:
    """Return the sums of the domain's vectors, by name."""
    sums: dict[str, exp.Expression] = {"count": exp.Count(this=exp.Star())}
    for i, measure in enumerate(domain.measures):
        value = exp.column(f"value_{i}")
        if measure.nullable:
            sums[f"values_{i}"] = exp.Count(this=value)
        total = exp.Coalesce(this=exp.Sum(this=value.copy()), expressions=[exp.Literal.number(0)])
        sums[f"sum_{i}"] = exp.cast(total, Type.BIGINT)
    return sums


def _coded_rows(domain: Domain, columns: Mapping[str, SourceColumn], relation: exp.Table) -> exp.Select:
    """Return the codes of every row that has a cell, and its centred values."""
    rows = exp.select().from_(relation)
    for i, (name, attribute) in enumerate(zip(_code_names(domain), domain.attributes, strict=True)):
        placed = placement(attribute, columns[attribute.name], f"labels_{i}")
        rows = rows.select(exp.cast(_cell(attribute, placed), _code_type(attribute.size)).as_(name))
        rows = rows.join(placed.lookup) if placed.lookup else rows
        rows = rows.where(_kept(attribute, placed))
    for i, measure in enumerate(domain.measures):
        value = centred_value(measure, columns[measure.column])
        rows = rows.select(value.as_(f"value_{i}"))
        rows = rows if measure.nullable else rows.where(is_null(value).not_())
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
