"""From rows to counts: one GROUP BY over the public cells, the same for every engine."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing

import numpy as np
from sqlglot import exp

from sharewell.engine.base import SourceColumn
from sharewell.engine.cells import Placement, Type, is_missing, placement
from sharewell.engine.data_vector import DataVector
from sharewell.engine.sources import open_source
from sharewell.errors import SourceError
from sharewell.query.attribute import Attribute
from sharewell.query.domain import Domain


def vectorize(
    source: object, domain: Domain, privacy_unit: str | None = None, *, table: str | None = None
) -> DataVector:
    """Count the rows of a file or a data frame in every cell of a domain.

    `privacy_unit` names the column that identifies a person who may have several rows: each person then
    counts once, in the first of their cells. `table` names the table of a database.

    >>> import pandas
    >>> from sharewell import Boolean, Domain, Integer, vectorize
    >>> people = pandas.DataFrame({"age": [4, 71, 36], "employed": [False, False, True]})
    >>> vectorize(people, Domain([Integer("age", 0, 85), Boolean("employed")]))
    DataVector(age, employed: 172 cells)
    """
    domain.require_dense()
    unit = () if privacy_unit is None else (privacy_unit,)
    with closing(open_source(source, (*domain.names, *unit), table=table)) as engine:
        statement = cell_counts(domain, engine.columns, engine.relation, privacy_unit)
        cells, found = engine.fetch(statement)
    counts = np.zeros(domain.size, dtype=np.int64)
    counts[cells] = found
    counts.flags.writeable = False
    return DataVector(domain, counts)


def cell_counts(
    domain: Domain,
    columns: Mapping[str, SourceColumn],
    relation: exp.Table,
    privacy_unit: str | None = None,
) -> exp.Select:
    """Return the statement that counts the rows of each cell: columns `cell` and `count`.

    Rows outside the domain, and rows without a person, are excluded. A person's cell is the smallest of
    their rows' cells, so it does not depend on other people.
    """
    cells = _cells(domain, columns, relation)
    if privacy_unit is not None:
        person = columns[privacy_unit]
        if person.type.this in (Type.FLOAT, Type.DOUBLE):
            # Rounded ids could merge two people, and one missing id turns a pandas column into floats.
            raise SourceError(
                f"The privacy unit {person.name!r} has type {person.type.sql('duckdb')}, in which large "
                "ids may be equal.",
                hint="Cast it to integers (Int64 in pandas) or text.",
            )
        rows = cells.select(person.value.as_("person")).where(is_missing(person).not_())
        cells = exp.select("MIN(cell) AS cell").from_(rows.subquery("cells")).group_by("person")
    return exp.select("cell", "COUNT(*) AS count").from_(cells.subquery("people")).group_by("cell")


def _cells(domain: Domain, columns: Mapping[str, SourceColumn], relation: exp.Table) -> exp.Select:
    """Return the cell of every row that has one."""
    placements = [
        (attribute, placement(attribute, columns[attribute.name], f"labels_{i}"))
        for i, attribute in enumerate(domain.attributes)
    ]
    position, *others = (_cell(attribute, placed) for attribute, placed in placements)
    for size, cell in zip(domain.shape[1:], others, strict=True):
        position = position * size + cell
    rows = exp.select(position.as_("cell")).from_(relation)
    for attribute, placed in placements:
        rows = rows.join(placed.lookup) if placed.lookup else rows
        rows = rows.where(_kept(attribute, placed))
    return rows


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
