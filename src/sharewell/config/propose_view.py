"""Proposals of person views: how `sharewell init --unit` joins tables to one row per person.

A table in which every person has one row keeps its columns. Of another, the view has the number of a
person's rows, the largest numbers and the last dates.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from sqlglot.dialects import DuckDB

from sharewell.config.profile import ColumnProfile, Progress, profile_file, profile_view
from sharewell.config.propose import (
    Proposal,
    ProposedTable,
    ProposedView,
    looks_like_code,
    proposal_of,
    propose_columns,
    relative_path,
    table_name,
)
from sharewell.engine.base import find_columns
from sharewell.engine.cells import Kind
from sharewell.engine.view_tables import PersonView, ViewTable, has_tables
from sharewell.errors import ConfigError, SourceError

#: The name of the dataset: its rows are people.
NAME = "people"
KEYWORDS = frozenset(word for each in DuckDB.tokenizer_class.KEYWORDS for word in each.split())


@dataclass(frozen=True)
class TableFile:
    """A file, and the name of its table, in a database."""

    path: Path
    table: str | None = None


@dataclass(frozen=True)
class JoinedTable:
    """A table of the view: whether every person has one row, and what the view selects, by name."""

    name: str
    file: TableFile
    unit: str
    is_single: bool
    outputs: dict[str, str]


def propose_view(
    files: Sequence[TableFile],
    unit: str,
    target: Path,
    wanted: Sequence[str] | None = None,
    progress: Progress = lambda done, total: None,
) -> Proposal:
    """Propose a view with one row per person over the tables of some files, and its attributes.

    `unit` is the column that identifies the person in every table. Privacy: reads the rows, for the
    curator alone.
    """
    tables = _choose(_join([_read(file, unit, progress) for file in files]), wanted)
    first, text = tables[0], view_text(tables)
    view = PersonView(
        text, {each.name: ViewTable(each.file.path, each.unit, table=each.file.table) for each in tables}
    )
    names = [name for each in tables for name in each.outputs]
    proposal = proposal_of(profile_view(view, first.unit, names, progress), NAME, "the view")
    declared = tuple(
        ProposedTable(each.name, relative_path(each.file.path, target), each.file.table, each.unit)
        for each in tables
    )
    return replace(proposal, view=ProposedView(text, declared, first.unit))


def _read(file: TableFile, unit: str, progress: Progress) -> JoinedTable:
    """Read which columns a table has, and whether every person has one row."""
    if file.table is None and has_tables(file.path):
        raise ConfigError(
            f"{file.path.name!r} is a database: which of its tables?", hint="Name each with --table."
        )
    profile = profile_file(file.path, file.table, progress=progress)
    name = table_name(file.table or file.path.name.partition(".")[0])
    try:
        [at] = find_columns([unit], [column.name for column in profile.columns])
    except SourceError as error:
        raise SourceError(
            f"{name!r}: {error.message}",
            hint="--unit names the column of the person in every table. Add public tables to the file "
            "that is written.",
        ) from None
    person = profile.columns[at]
    described = {
        column.name: column
        for column, proposed in zip(profile.columns, propose_columns(profile), strict=False)
        if proposed.attribute and column is not person and column.name.isprintable()
    }
    columns = described.values()
    if person.all_differ:
        outputs = {column.name: f"{sql_name(name)}.{sql_name(column.name)}" for column in columns}
    else:
        outputs = {name: "COUNT(*)"} | dict(filter(None, map(_aggregate, columns)))
    return JoinedTable(name, file, person.name, person.all_differ, outputs)


def _aggregate(column: ColumnProfile) -> tuple[str, str] | None:
    """The name and the aggregate of a person's values; none for text and codes."""
    value = sql_name(column.name)
    if column.holds in ("whole numbers", "numbers") and not looks_like_code(column.name):
        value = f"TRY_CAST({value} AS DOUBLE)" if column.kind is Kind.TEXT else value
        return f"max_{column.name}", f"MAX({value})"
    if column.holds == "dates":
        value = f"TRY_CAST({value} AS DATE)" if column.kind is Kind.TEXT else value
        return f"last_{column.name}", f"MAX({value})"
    return None


def _join(tables: Sequence[JoinedTable]) -> list[JoinedTable]:
    """Put a table with one row per person first, if there is one, and give every output its own name."""
    counts = Counter(each.name.casefold() for each in tables)
    if twice := [each for each in tables if counts[each.name.casefold()] > 1]:
        raise ConfigError(f"Two tables are called {twice[0].name!r}.", hint="Rename one of the files.")
    first = next((each for each in tables if each.is_single), tables[0])
    taken = {each.unit.casefold() for each in tables}
    found = []
    for table in (first, *(each for each in tables if each is not first)):
        outputs = {}
        for name, sql in table.outputs.items():
            own = next(each for each in _names(name, table.name) if each.casefold() not in taken)
            taken.add(own.casefold())
            outputs[own] = sql
        found.append(replace(table, outputs=outputs))
    return found


def _names(name: str, table: str) -> Iterator[str]:
    yield from (name, f"{table}_{name}")
    number = 2
    while True:
        yield f"{table}_{name}_{number}"
        number += 1


def _choose(tables: Sequence[JoinedTable], wanted: Sequence[str] | None) -> list[JoinedTable]:
    """Keep the wanted outputs, the tables that have some, and the first."""
    names = [name for each in tables for name in each.outputs]
    chosen = names if wanted is None else [names[at] for at in find_columns(wanted, names)]
    kept = [
        replace(each, outputs={name: sql for name, sql in each.outputs.items() if name in chosen})
        for each in tables
    ]
    return [each for at, each in enumerate(kept) if each.outputs or not at]


def view_text(tables: Sequence[JoinedTable]) -> str:
    """The SELECT that joins tables to one row per person, beginning with the first."""
    first = tables[0]
    columns = [f"{sql_name(first.name)}.{sql_name(first.unit)}"]
    sources = []
    for table in tables:
        columns += [_selected(table, name, optional=table is not first) for name in table.outputs]
        source = sql_name(table.name) if table.is_single else _grouped(table)
        if table is first:
            sources.append(f"FROM {source}")
        else:
            units = [f"{sql_name(each.name)}.{sql_name(each.unit)}" for each in (table, first)]
            sources.append(f"LEFT JOIN {source} ON {' = '.join(units)}")
    return "\n".join(["SELECT", ",\n".join(f"    {column}" for column in columns), *sources])


def _selected(table: JoinedTable, name: str, *, optional: bool) -> str:
    """What the view selects; a person without rows in an optional table has none, not NULL."""
    if table.is_single:
        sql = table.outputs[name]
        return sql if sql.endswith(f".{sql_name(name)}") else f"{sql} AS {sql_name(name)}"
    column = f"{sql_name(table.name)}.{sql_name(name)}"
    if optional and table.outputs[name] == "COUNT(*)":
        return f"COALESCE({column}, 0) AS {sql_name(name)}"
    return column


def _grouped(table: JoinedTable) -> str:
    """A subquery with one row per person."""
    unit = sql_name(table.unit)
    columns = [unit, *(f"{sql} AS {sql_name(name)}" for name, sql in table.outputs.items())]
    selected = ",\n        ".join(columns)
    return (
        f"(\n    SELECT\n        {selected}\n    FROM {sql_name(table.name)}\n    GROUP BY {unit}\n"
        f") AS {sql_name(table.name)}"
    )


def sql_name(name: str) -> str:
    """A name in SQL, quoted where it must be.

    >>> print(sql_name("fee"), sql_name("fee in EUR"), sql_name("order"))
    fee "fee in EUR" "order"
    """
    plain = re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII) and name.upper() not in KEYWORDS
    return name if plain else '"' + name.replace('"', '""') + '"'
