"""The public schema as a result: SHOW TABLES, DESCRIBE and SELECT * ... LIMIT 0."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sharewell.errors import UnknownName
from sharewell.query.attribute import Attribute, Binned, Boolean, Category, Date, Integer
from sharewell.query.domain import Domain
from sharewell.query.expression import GroupKey
from sharewell.query.measure import Measure
from sharewell.query.sql.text import Source, listing, shortened
from sharewell.query.statement import Projection, Statement

_SHOW = re.compile(r"\s*SHOW\s+(ALL\s+)?TABLES\s*;?\s*", re.IGNORECASE)
_DESCRIBE = re.compile(
    r"\s*(?:DESCRIBE|DESC|SHOW)\s+(?:TABLE\s+)?(?:main\s*\.\s*)?([\w]+|\"[^\"]+\")\s*;?\s*",
    re.IGNORECASE,
)
_STAR = re.compile(
    r"\s*SELECT\s+\*\s+FROM\s+(?:main\s*\.\s*)?([\w]+|\"[^\"]+\")\s+LIMIT\s+0\s*;?\s*", re.IGNORECASE
)


#: Words after SHOW that are no names of tables.
_OTHER_SCHEMAS = {"COLUMNS", "DATABASES", "SCHEMAS", "TABLES"}


def describe(source: Source) -> Statement | None:
    """Return the statement that tells the schema, if the text asks for it; it costs nothing."""
    text, domain, table = source.text, source.domain, source.table
    if _SHOW.fullmatch(text):
        return _statement(source, {"name": [table]})
    if (found := _DESCRIBE.fullmatch(text)) and _names(found[1], table):
        columns = [(a.name, _type(a), _values(a)) for a in domain.attributes]
        columns += [
            (bins.name, "VARCHAR", f"bins of {a.name}: {listing([str(each) for each in bins.labels])}")
            for a in domain.attributes
            for bins in a.bins_by_name.values()
        ]
        columns += [
            (m.name, "DOUBLE", f"measure from {m.low} to {m.high}, for {_uses(m, domain)}")
            for m in domain.measures
        ]
        names, types, values = map(list, zip(*columns, strict=True))
        return _statement(source, {"column_name": names, "column_type": types, "values": values})
    if found and found[1].upper() not in _OTHER_SCHEMAS:
        message = f'Unknown table "{shortened(found[1])}".'
        raise UnknownName(message, hint=f"Write DESCRIBE {table}.")
    if (found := _STAR.fullmatch(text)) and _names(found[1], table):
        names = [a.name for a in domain.attributes]
        names += [m.name for m in domain.measures if m.name not in names]
        return _statement(source, {name: [] for name in names})
    return None


def _uses(measure: Measure, domain: Domain) -> str:
    """Return the aggregates of a measure, in words."""
    products = domain.multiplied_with(measure.name)
    others = [each for each in products if each != measure.name]
    uses = ["SUM", "AVG", "COUNT", *(["VARIANCE"] if len(others) < len(products) else [])]
    found = f"{', '.join(uses[:-1])} and {uses[-1]}"
    return f"{found}, and for CORR with {' and '.join(others)}" if others else found


def _names(written: str, table: str) -> bool:
    quoted = written.startswith('"')
    return written.strip('"') == table if quoted else written.casefold() == table.casefold()


def _statement(source: Source, columns: dict[str, Sequence[str]]) -> Statement:
    keys = [GroupKey(tuple(labels), tuple(range(len(labels)))) for labels in columns.values()]
    return Statement(
        text=source.normalized,
        table=source.table,
        domain=source.domain,
        blocks=(),
        outputs=tuple(map(Projection, columns, keys)),
        group_labels=tuple(zip(*(key.labels for key in keys), strict=True)),
    )


def _type(attribute: Attribute) -> str:
    kinds = {Integer: "INTEGER", Binned: "DOUBLE", Boolean: "BOOLEAN", Date: "DATE"}
    return kinds.get(type(attribute), "VARCHAR")


def _values(attribute: Attribute) -> str:
    match attribute:
        case Integer():
            text = f"{attribute.low} to {attribute.high}"
        case Date():
            text = f"{attribute.start} to {attribute.end}, by {attribute.by}"
        case Category() | Binned():
            text = listing([str(each) for each in attribute.values])
        case _:
            text = "false, true"
    special = ["NULL" if each is None else each for each in attribute.special]
    return ", ".join([text, *special])
