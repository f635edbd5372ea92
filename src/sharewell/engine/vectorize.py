"""From rows to counts: one GROUP BY over the public cells, the same for every engine."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import closing

import numpy as np
from sqlglot import exp

from sharewell.engine.base import Engine, SourceColumn
from sharewell.engine.cells import (
    Placement,
    Type,
    centred_value,
    is_missing,
    is_null,
    look_up_of,
    placement,
)
from sharewell.engine.data_vector import MAX_DENSE, MAX_ROWS, DataVector
from sharewell.engine.sources import TIMEOUT, CsvFormat
from sharewell.engine.view_tables import open_rows
from sharewell.errors import DomainTooLarge, SourceError
from sharewell.query.attribute import Attribute, Category
from sharewell.query.domain import MAX_CELLS, Domain
from sharewell.query.measure import MeasureProduct


def vectorize(
    source: object,
    domain: Domain,
    privacy_unit: str | None = None,
    *,
    table: str | None = None,
    max_rows: int | None = None,
    max_rows_per_person: int = 1,
    key: str = "",
    csv_format: CsvFormat | None = None,
    timeout: float = TIMEOUT,
) -> DataVector:
    """Count the rows of a database, a file, a data frame or a `PersonView` in every cell of a domain.

    `privacy_unit` names the column that identifies a person who may have several rows. Of each person,
    `max_rows_per_person` rows are kept, chosen by a hash with a key; noise is in proportion to it.
    `table` names the table of a database. `max_rows` is a public limit on the number of rows; a
    domain too large for a dense vector requires it. `timeout` is in seconds.

    >>> import pandas
    >>> from sharewell import Boolean, Domain, Integer, vectorize
    >>> people = pandas.DataFrame({"age": [4, 71, 36], "employed": [False, False, True]})
    >>> vectorize(people, Domain([Integer("age", 0, 85), Boolean("employed")]))
    DataVector(age, employed: 172 cells)
    """
    _require_limit(domain, max_rows)
    if max_rows_per_person != 1 and privacy_unit is None:
        raise SourceError(
            "`max_rows_per_person` requires `privacy_unit`.",
            hint="Name the column that identifies people.",
        )
    opened = open_rows(
        source,
        columns_read(domain, privacy_unit),
        privacy_unit=privacy_unit,
        table=table,
        csv_format=csv_format,
        timeout=timeout,
    )
    with closing(opened) as engine:
        statement = cell_counts(domain, engine, privacy_unit, most=max_rows_per_person, key=key)
        found = engine.fetch(statement)
    codes = [found[name] for name in code_names(domain)]
    counts = np.stack([found[name] for name in sums_of_vectors(domain)])
    return DataVector.of_cells(domain, codes, counts, max_rows, max_rows_per_person)


def columns_read(domain: Domain, privacy_unit: str | None) -> tuple[str, ...]:
    """Return the columns that are read of a source."""
    unit = () if privacy_unit is None else (privacy_unit,)
    return (*domain.names, *(measure.column for measure in domain.measures), *unit)


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
    domain: Domain, engine: Engine, privacy_unit: str | None = None, *, most: int = 1, key: str = ""
) -> exp.Select:
    """Return the statement that counts the rows of each cell, and sums their measures.

    Its columns are a code for each attribute, then those of `sums_of_vectors`. Rows outside the domain,
    and rows without a person, are excluded; `most` rows of every person are kept, chosen with a key.
    """
    names = code_names(domain)
    texts = _texts(domain, engine) if privacy_unit is None else {}
    looked_up = _looked_up(domain, engine) if privacy_unit is None else []
    if texts or looked_up:
        rows = _coded_rows(domain, engine, texts, looked_up)
    else:
        rows = kept_rows(domain, engine, privacy_unit, most=most, key=key)
    sums = [sum_.as_(name) for name, sum_ in sums_of_vectors(domain).items()]
    counted = exp.select(*names, *sums).from_(rows.subquery("people")).group_by(*names)
    if looked_up:
        outside = exp.or_(*(is_null(exp.column(name)) for name in looked_up))
        counted = counted.having(exp.LogicalOr(this=outside).not_())
    return _with_codes(counted, domain, engine, texts) if texts else counted


def _texts(domain: Domain, engine: Engine) -> dict[str, Category]:
    """Return the categories that are counted by their text, by the names of their codes.

    There are few texts once rows are counted, and finding the cell of a text takes longer than counting
    it. An engine with enumerations finds it at once; with a cell for others there could be any number of
    texts, and in a large domain most rows differ.
    """
    if domain.size > MAX_DENSE:
        return {}
    return {
        name: attribute
        for name, attribute in zip(code_names(domain), domain.attributes, strict=True)
        if isinstance(attribute, Category)
        and attribute.other_cell is None
        and not engine.has_enumerations
        and engine.columns[attribute.name].type.this in exp.DataType.TEXT_TYPES
    }


def _looked_up(domain: Domain, engine: Engine) -> list[str]:
    """Return the codes that are NULL outside the domain, whose rows are left out after counting.

    They are enumerated, and few or none are outside. A condition on rows would look every text up twice,
    and so would one on codes alone, which the optimizer applies to rows. In a small domain that is still
    better: what is outside may be in very many groups.
    """
    if domain.size <= MAX_DENSE or not engine.has_enumerations:
        return []
    return [
        name
        for name, attribute in zip(code_names(domain), domain.attributes, strict=True)
        if isinstance(attribute, Category) and attribute.size == len(attribute.values)
    ]


def _with_codes(
    counted: exp.Select, domain: Domain, engine: Engine, texts: Mapping[str, Category]
) -> exp.Select:
    """Replace texts that were counted by codes, and add up what has the same code."""
    selected: list[exp.Expr] = []
    for name in code_names(domain):
        code: exp.Condition = exp.column(name)
        if (attribute := texts.get(name)) is not None:
            text = SourceColumn(attribute.name, exp.DataType.build("text"), code)
            cell = _cell(attribute, placement(attribute, text, look_up_of(engine)))
            code = exp.cast(cell, _code_type(attribute.size))
        selected.append(code.as_(name))
    names, sums = code_names(domain), list(sums_of_vectors(domain))
    coded = exp.select(*selected, *sums).from_(counted.subquery("counted"))
    totals = [exp.cast(exp.Sum(this=exp.column(each)), Type.BIGINT).as_(each) for each in sums]
    return exp.select(*names, *totals).from_(coded.subquery("coded")).group_by(*names)


def kept_rows(
    domain: Domain, engine: Engine, privacy_unit: str | None = None, *, most: int = 1, key: str = ""
) -> exp.Select:
    """Return the rows that are counted, as codes and centred values: `most` of every person."""
    rows = _coded_rows(domain, engine)
    if privacy_unit is not None:
        person = engine.columns[privacy_unit]
        if person.type.this in (Type.FLOAT, Type.DOUBLE):
            # Rounded ids could merge two people, and one missing id turns a pandas column into floats.
            raise SourceError(
                f"The privacy unit {person.name!r} has type {person.type.sql('duckdb')}, in which large "
                "ids may be equal.",
                hint="Cast it to integers (Int64 in pandas) or text.",
            )
        content = rows.named_selects
        rows = rows.select(person.value.as_("person")).where(is_missing(person).not_())
        rows = _limited_rows(rows, content, most, key)
    return rows


def _limited_rows(rows: exp.Select, content: Sequence[str], most: int, key: str) -> exp.Select:
    """Keep some rows of every person: those whose keyed hash is smallest.

    The hash is of the person, the row's content, and its number among the person's rows in the order of
    their content, which tells equal rows apart. So no row is likelier to be kept than another of its
    person, and the choice depends on no other person. It is the same on every engine.
    """
    numbered = exp.select(
        *content,
        "person",
        _row_number(order=content).as_("occurrence"),
        exp.Window(this=exp.Count(this=exp.Star()), partition_by=[exp.column("person")]).as_("own"),
    ).from_(rows.subquery("coded"))
    hashed: exp.Expression = exp.Literal.string(key)
    for name in ("person", *content, "occurrence"):
        written = exp.cast(exp.column(name), Type.TEXT)
        known = exp.Coalesce(this=written, expressions=[exp.Literal.string("")])
        for piece in (exp.Literal.string("|"), known):
            hashed = exp.DPipe(this=hashed, expression=piece, safe=True)
    # Only where there is a choice: hashing is slower than the rest together.
    chosen = exp.case().when(exp.column("own") > most, exp.MD5(this=hashed))
    placed = exp.select(*content, _row_number(order=[chosen]).as_("place"))
    placed = placed.from_(numbered.subquery("numbered"))
    return exp.select(*content).from_(placed.subquery("placed")).where(exp.column("place") <= most)


def _row_number(order: Sequence[str | exp.Expression]) -> exp.Window:
    """Return ROW_NUMBER() among a person's rows."""
    keys = [exp.column(each) if isinstance(each, str) else each for each in order]
    ordered = exp.Order(expressions=[exp.Ordered(this=each) for each in keys])
    return exp.Window(this=exp.RowNumber(), partition_by=[exp.column("person")], order=ordered)


def code_names(domain: Domain) -> list[str]:
    """Return the columns of the rows' codes, one for each attribute."""
    return [f"code_{i}" for i in range(len(domain.attributes))]


def sums_of_vectors(domain: Domain) -> dict[str, exp.Expression]:
    """Return the sums of the domain's vectors, by name."""
    sums: dict[str, exp.Expression] = {"count": exp.Count(this=exp.Star())}
    for i, measure in enumerate(domain.measures):
        value = exp.column(f"value_{i}")
        if measure.nullable:
            sums[f"values_{i}"] = exp.Count(this=value)
        sums[f"sum_{i}"] = _sum(value.copy())
    for i, product in enumerate(domain.product_vectors):
        sums[f"product_{i}"] = _sum(_product(product, domain))
    return sums


def _sum(value: exp.Condition) -> exp.Expression:
    total = exp.Coalesce(this=exp.Sum(this=value), expressions=[exp.Literal.number(0)])
    return exp.cast(total, Type.BIGINT)


def _product(product: MeasureProduct, domain: Domain) -> exp.Condition:
    """Return what a row adds to the sum of a product of centred values; NULL where one is NULL."""
    columns = {each: exp.column(f"value_{i}") for i, each in enumerate(domain.measures)}
    value: exp.Condition = exp.Literal.number(1)
    for at, factor in enumerate(product.factors):
        value = columns[factor].copy() * value if at else columns[factor].copy()
    if len(product.factors) == 2:
        # Counted from the least, so that all engines divide numbers that are not negative.
        steps: exp.Condition = exp.paren(value + (product.scale // 2 - product.bounds[0]))
        if product.scale > 1:
            # Some engines divide as doubles, which is exact for a multiple with few digits.
            scale = exp.Literal.number(product.scale)
            whole = exp.paren(steps - exp.Mod(this=steps.copy(), expression=scale))
            steps = exp.IntDiv(this=whole, expression=scale.copy())
        value = exp.cast(steps, Type.BIGINT) + product.lowest
    others = [is_null(columns[each].copy()).not_() for each in product.given]
    return exp.case().when(exp.and_(*others), value) if others else value


def _coded_rows(
    domain: Domain, engine: Engine, texts: Collection[str] = (), looked_up: Collection[str] = ()
) -> exp.Select:
    """Return the codes of every row that has a cell, some of them as text, and its centred values.

    Those that are looked up are NULL in rows without a cell.
    """
    columns = engine.columns
    selected: list[exp.Expr] = []
    kept: list[exp.Condition | None] = []
    for name, attribute in zip(code_names(domain), domain.attributes, strict=True):
        placed = placement(attribute, columns[attribute.name], look_up_of(engine))
        if name in texts:
            selected.append(columns[attribute.name].value.as_(name))
        else:
            selected.append(exp.cast(_cell(attribute, placed), _code_type(attribute.size)).as_(name))
        kept.append(None if name in looked_up else _kept(attribute, placed))
    for i, measure in enumerate(domain.measures):
        value = centred_value(measure, columns[measure.column])
        selected.append(value.as_(f"value_{i}"))
        kept.append(None if measure.nullable else is_null(value).not_())
    # Built in place: a copy of what there is with every column takes longer than counting the rows.
    rows = exp.select(*selected, copy=False).from_(engine.relation, copy=False)
    return rows.where(*kept, copy=False)


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
