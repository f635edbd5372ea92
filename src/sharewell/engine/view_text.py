"""The text of a person view: its tree, the columns that it uses, and errors that point into it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from sqlglot import ParseError, exp
from sqlglot.dialects import DuckDB

from sharewell.errors import Location, QueryError, SourceError
from sharewell.query.attribute import Boolean
from sharewell.query.domain import Domain
from sharewell.query.sql.text import Source, names_match

#: The longest text of a view.
MAX_TEXT = 20_000


@dataclass(frozen=True)
class ViewText:
    """The text of a view and its tree."""

    source: Source
    tree: exp.Select

    @classmethod
    def parse(cls, written: str) -> ViewText:
        """Parse a text into one SELECT."""
        if len(written) > MAX_TEXT:
            raise SourceError(f"The view has more than {MAX_TEXT:,} characters.", hint="Shorten it.")
        try:
            source = Source(written, Domain([Boolean("row")]), "row")
            source.tokenize()
            trees = DuckDB().parser().parse(list(source.tokens), written)
        except QueryError as error:
            raise SourceError(error.message, hint=error.hint, where=error.where) from None
        except (ParseError, RecursionError) as error:
            raise _syntax_error(error) from None
        if len(trees) != 1 or not isinstance(trees[0], exp.Select):
            raise SourceError(
                "A view is one SELECT: set operations and other statements are not supported.",
                hint="Write SELECT ... FROM ... GROUP BY ...",
            )
        return cls(source, trees[0])

    def refuse(self, node: exp.Expr, message: str, hint: str) -> SourceError:
        """The error for a part of the view."""
        return SourceError(message, hint=hint, where=self.source.locate(node))

    def require_declared(self, tables: Mapping[str, object]) -> None:
        """Refuse the name of a table that is neither declared nor that of a CTE."""
        for table in self.tree.find_all(exp.Table):
            hidden = _names_of_ctes(table)
            named = isinstance(table.this, exp.Identifier) and table.name.casefold() not in hidden
            if named and declared_name(table, tables, hidden) is None:
                raise self.unknown_table(table, tables)

    def unknown_table(self, table: exp.Table, tables: Iterable[str]) -> SourceError:
        """The error for a table that is not declared."""
        return self.refuse(
            table,
            f"Unknown table {table.name!r}.",
            f"Declare it as [tables.{table.name}], with its `unit` or `public = true`. Declared: "
            f"{', '.join(tables)}.",
        )

    def uses(self, name: str) -> bool:
        """Return whether the view selects from a table."""
        found = (table.this for table in self.tree.find_all(exp.Table))
        return any(isinstance(each, exp.Identifier) and names_match(each, name) for each in found)

    def wanted(self, tables: Mapping[str, str | None]) -> dict[str, list[str]]:
        """Return the columns that the view uses of each base table; `tables` has their units."""
        found: dict[str, list[str]] = {
            name: [unit] if unit is not None else [] for name, unit in tables.items()
        }
        for select in self.tree.find_all(exp.Select):
            hidden = _names_of_ctes(select)
            aliases: dict[str, str] = {}
            for table in _tables(select):
                if (name := declared_name(table, tables, hidden)) is not None:
                    aliases[table.alias_or_name.casefold()] = name
            alone = len(list(_sources(select))) == 1
            outputs = {each.alias.casefold() for each in select.expressions if each.alias}
            for column in select.find_all(exp.Column):
                if column.parent_select is not select or isinstance(column.this, exp.Star):
                    continue
                if column.table:
                    name = aliases.get(column.table.casefold())
                elif alone and not (column.name.casefold() in outputs and _in_group(column)):
                    name = next(iter(aliases.values()), None)
                else:
                    name = None
                if name is not None:
                    found[name].append(column.name)
            first = next(iter(_sources(select)), None)
            for join in select.args.get("joins") or ():
                for identifier in join.args.get("using") or ():
                    for each in (first, join.this):
                        if isinstance(each, exp.Table):
                            name = declared_name(each, tables, hidden)
                            if name is not None:
                                found[name].append(identifier.name)
        return {name: _distinct(names, tables[name]) for name, names in found.items()}


def _distinct(names: Iterable[str], unit: str | None) -> list[str]:
    """Return each name once; the unit is one column, in whatever case it is written."""
    same = "" if unit is None else unit.casefold()
    return list(dict.fromkeys(unit if unit and name.casefold() == same else name for name in names))


def _syntax_error(error: Exception) -> SourceError:
    where = None
    if isinstance(error, ParseError) and error.errors:
        first = error.errors[0]
        if first.get("line"):
            where = Location(first["line"], first.get("col") or 1, first.get("highlight") or "")
    return SourceError(
        "The view is not valid SQL.", hint="Check brackets, commas and quotes.", where=where
    )


def _sources(select: exp.Select) -> Iterator[exp.Expr]:
    if select.args.get("from_") is not None:
        yield select.args["from_"].this
    for join in select.args.get("joins") or ():
        yield join.this


def _tables(select: exp.Select) -> Iterator[exp.Table]:
    return (each for each in _sources(select) if isinstance(each, exp.Table))


def _names_of_ctes(node: exp.Expr | None) -> set[str]:
    """Return the names of the CTEs that a SELECT sees."""
    found: set[str] = set()
    while node is not None:
        if isinstance(node, exp.Select) and node.args.get("with_") is not None:
            found |= {each.alias.casefold() for each in node.args["with_"].expressions}
        node = node.parent
    return found


def declared_name(table: exp.Table, tables: Iterable[str], hidden: set[str]) -> str | None:
    """Return the declared name of a table, if it is not that of a CTE."""
    if not isinstance(table.this, exp.Identifier) or table.name.casefold() in hidden:
        return None
    return next((name for name in tables if names_match(table.this, name)), None)


def _in_group(column: exp.Column) -> bool:
    return column.find_ancestor(exp.Group, exp.Select).__class__ is exp.Group
