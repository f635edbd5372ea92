"""Names: which attribute, or which bins of one, a name in the SQL means."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Generic, TypeVar

import numpy as np
from sqlglot import exp

from sharewell.errors import SqlError, UnknownName
from sharewell.query.attribute import Attribute, Bins, Category, Label, Mask
from sharewell.query.domain import Domain
from sharewell.query.linear import LinearQuery
from sharewell.query.sql.text import SqlText, shortened

Meaning = TypeVar("Meaning")

#: How many names a hint lists, and among how many it looks for a similar one.
LISTED, COMPARED = 10, 1_000


@dataclass(frozen=True, eq=False)
class Column:
    """What a column's name means: an attribute, divided into its cells or into declared bins."""

    level: int
    attribute: Attribute
    bins: Bins | None = None

    @property
    def name(self) -> str:
        """The name, as declared."""
        return self.bins.name if self.bins else self.attribute.name

    @property
    def is_text(self) -> bool:
        """Whether its values are names: categories, or bins of anything."""
        return self.bins is not None or isinstance(self.attribute, Category)

    @cached_property
    def labels(self) -> tuple[Label, ...]:
        """The labels of its cells, or of its bins; NULL's is None."""
        return self.bins.labels if self.bins else self.attribute.labels

    @cached_property
    def positions(self) -> dict[Label, int]:
        """Where each label stands among the labels."""
        return {label: i for i, label in enumerate(self.labels)}

    @property
    def null(self) -> int | None:
        """The position of NULL among the labels."""
        return len(self.labels) - 1 if self.attribute.nullable else None

    @property
    def other(self) -> int | None:
        """The position of the `other` cell among the labels."""
        special = len(self.attribute.special)
        return None if self.attribute.other is None else len(self.labels) - special

    @property
    def groups(self) -> Sequence[int]:
        """The position among the labels of each of the attribute's cells."""
        return self.bins.groups if self.bins else range(self.attribute.size)

    def cells(self, chosen: Mask) -> Mask:
        """The attribute's cells, given which of the labels are chosen."""
        return chosen[list(self.groups)] if self.bins else chosen

    def group(self, position: int, domain: Domain) -> LinearQuery:
        """The rows that have one label."""
        chosen = np.zeros(len(self.labels), dtype=bool)
        chosen[position] = True
        return LinearQuery.of_vectors(domain, {self.level: self.cells(chosen).astype(np.int64)})


class Scope:
    """What the names in one SQL text mean: one table and the columns of its domain."""

    def __init__(self, source: SqlText, domain: Domain, table: str) -> None:
        self.source = source
        self.domain = domain
        self.table = table
        self._qualifier = table
        self._columns: dict[str, Column] = {}

    def open(self, select: exp.Select) -> None:
        """Check the FROM clause, and take in the name that it gives to the table."""
        clause = select.args.get("from_")
        if clause is None:
            raise SqlError(
                "The SQL does not say FROM which table.",
                hint=f"Add FROM {self.table}.",
                where=self.source.at_node(select),
            )
        table = clause.this
        if not isinstance(table, exp.Table) or not isinstance(table.this, exp.Identifier):
            raise SqlError(
                "FROM takes one table.",
                hint=f"Write FROM {self.table}.",
                where=self.source.at_node(clause),
            )
        if not names_match(table.this, self.table):
            raise UnknownName(
                f"There is no table {shortened(table.name)}.",
                hint=f"Write FROM {self.table}.",
                where=self.source.at_node(table),
            )
        self._qualifier = table.alias or self.table

    def column(self, node: exp.Column) -> Column:
        """The column that a node names."""
        identifier, table = node.this, node.args.get("table")
        if not isinstance(identifier, exp.Identifier):
            raise SqlError(
                "* stands for all columns only in COUNT(*).",
                hint="Name the column.",
                where=self.source.at_node(node),
            )
        if table is not None and not names_match(table, self._qualifier):
            raise UnknownName(
                f"There is no table {shortened(table.name)}.",
                hint=f"Write {self._qualifier}.{shortened(identifier.name)}, or the column alone.",
                where=self.source.at_node(node),
            )
        found = self.find(identifier)
        if found is None:
            names = [name for a in self.domain.attributes for name in (a.name, *a.bins_by_name)]
            hint = suggestion(identifier.name, names, "The columns are", show=as_written)
            if any(
                identifier.name in a.labels for a in self.domain.attributes if isinstance(a, Category)
            ):
                hint = f"Texts take single quotes: '{identifier.name}'."
            raise UnknownName(
                f"There is no column {shortened(identifier.name)}.",
                hint=hint,
                where=self.source.at_node(node),
            )
        return found

    def find(self, identifier: exp.Identifier) -> Column | None:
        """The column of that name, if there is one."""
        key = identifier.name.casefold()
        if key in self.domain.columns and key not in self._columns:
            level, bins = self.domain.columns[key]
            self._columns[key] = Column(level, self.domain.attributes[level], bins)
        column = self._columns.get(key)
        return column if column and names_match(identifier, column.name) else None


class Aliases(Generic[Meaning]):
    """What the aliases of a SELECT list mean; there may be thousands, and as many who ask for them."""

    def __init__(self, aliased: Iterable[tuple[str, Meaning]]) -> None:
        self._exact: dict[str, dict[Meaning, None]] = {}
        self._folded: dict[str, dict[Meaning, None]] = {}
        for alias, meaning in aliased:
            if alias:
                self._exact.setdefault(alias, {})[meaning] = None
                self._folded.setdefault(alias.casefold(), {})[meaning] = None

    def meanings(self, node: exp.Column) -> Iterable[Meaning]:
        """What a name may mean, each once and in the order of the list; none where it is no alias."""
        name = node.this
        if not isinstance(name, exp.Identifier) or node.args.get("table"):
            return ()
        return (
            self._exact.get(name.name, ()) if name.quoted else self._folded.get(name.name.casefold(), ())
        )


def names_match(identifier: exp.Identifier, name: str) -> bool:
    """Whether an identifier means a name: exactly where it is quoted, else whatever its case."""
    written: str = identifier.name
    return written == name if identifier.quoted else written.casefold() == name.casefold()


def as_written(name: str) -> str:
    """A name as it must be written in SQL."""
    return name if name.isidentifier() else f'"{name}"'


def suggestion(
    written: str, names: Sequence[str], all_of_them: str, show: Callable[[str], str] = str
) -> str:
    """A hint that names what was probably meant, or else what there is."""
    folded = {name.casefold(): name for name in names[:COMPARED]}
    close = difflib.get_close_matches(written.casefold(), folded, n=3, cutoff=0.6)
    if close:
        return f"Did you mean {' or '.join(show(folded[name]) for name in close)}?"
    more = f" and {len(names) - LISTED:,} more" if len(names) > LISTED else ""
    return f"{all_of_them} {', '.join(map(show, names[:LISTED]))}{more}."
