"""The vocabulary of person views: values with their sizes, relations with their units, scopes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from sharewell.engine.base import SourceColumn
from sharewell.engine.cells import KINDS, Kind, Type

DATE, TEXT = exp.DataType.build("date"), exp.DataType.build("text")
BIGINT, DOUBLE = exp.DataType.build("bigint"), exp.DataType.build("double")
BOOLEAN = exp.DataType.build("boolean")
#: The types of what a view computes, by kind.
TYPES = {
    Kind.INTEGER: BIGINT,
    Kind.NUMBER: DOUBLE,
    Kind.TEXT: TEXT,
    Kind.DATE: DATE,
    Kind.BOOLEAN: BOOLEAN,
}


@dataclass(frozen=True)
class Value:
    """A compiled expression. Numbers that arithmetic made have a largest and a smallest size."""

    sql: exp.Condition
    kind: Kind | None
    type: exp.DataType = field(default_factory=lambda: exp.DataType.build("unknown"))
    largest: float | None = None
    smallest: float = 1.0
    #: Whether it is a unit that is never NULL.
    is_unit: bool = False

    @property
    def column(self) -> SourceColumn:
        """The same, as a column of a source."""
        return SourceColumn("", self.type, self.sql)


@dataclass(frozen=True)
class Relation:
    """A compiled source: its tree, and its columns by name, with units marked.

    Every row of a private relation depends on the rows of one person, whose id its units are. A public
    one has none.
    """

    tree: exp.Expr
    columns: Mapping[str, Value]

    @property
    def units(self) -> list[str]:
        """The names of the unit columns."""
        return [name for name, value in self.columns.items() if value.is_unit]


@dataclass
class Scope:
    """The sources of one SELECT, by alias, and what its expressions may use."""

    sources: dict[str, Relation]
    #: The names that USING joined; they mean the column of the first source.
    merged: set[str] = field(default_factory=set)
    aliases: dict[str, exp.Expr] = field(default_factory=dict)
    #: The compiled group keys, by the text of what they are written as; None without GROUP BY.
    keys: dict[str, Value] | None = None
    #: What may be used here: "aggregate", "window", or nothing.
    allowed: str = ""
    depth: int = 0


def expression_text(node: exp.Expr) -> str:
    """Return the text by which equal expressions are known."""
    return str(node.unnest().sql("duckdb", normalize=True))


def is_null_literal(value: Value) -> bool:
    """Return whether a value is the literal NULL."""
    return isinstance(value.sql, exp.Null)


def is_id(type_: exp.DataType) -> bool:
    """Return whether values of a type can only be compared: UUIDs and decimals, which only units are."""
    return type_.this is Type.UUID or type_.this in KINDS[Kind.NUMBER] - {Type.FLOAT, Type.DOUBLE}


def choice_of(sql: exp.Condition, values: Sequence[Value]) -> Value:
    """Return a choice between values of one kind."""
    known = [value for value in values if not is_null_literal(value)]
    if not known:
        return Value(sql, None)
    sizes = [value.largest for value in known]
    kind = known[0].kind
    type_ = TYPES[kind] if kind in TYPES else known[0].type
    largest = None if None in sizes else max(size for size in sizes if size is not None)
    return Value(exp.paren(sql), kind, type_, largest, min(value.smallest for value in known))
