"""Configurations: the declared keys of a `sharewell.toml`, how they are read, and what they describe."""

from __future__ import annotations

import datetime as dt
import math
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from functools import cached_property, partial
from hashlib import sha256
from itertools import combinations
from pathlib import Path
from typing import Any, get_args

import numpy as np

from sharewell.config.rounding import round_grid
from sharewell.config.section import (
    Mistakes,
    Section,
    blame,
    read_tables,
    read_text,
    validate_person,
    validate_table,
)
from sharewell.config.service import Service, read_service
from sharewell.engine.base import Engine
from sharewell.engine.data_vector import MAX_ROWS, MAX_ROWS_PER_PERSON, DataVector
from sharewell.engine.in_place import InPlaceData
from sharewell.engine.sources import CsvFormat, is_address
from sharewell.engine.vectorize import columns_read, vectorize
from sharewell.engine.view_tables import PersonView, ViewTable, has_tables, open_rows
from sharewell.engine.view_text import ViewText
from sharewell.errors import ConfigError, DomainError, QueryError, SqlError
from sharewell.mechanisms.base import Question
from sharewell.mechanisms.cache_reconstruct import CacheReconstruct
from sharewell.mechanisms.declaration import PublicContext
from sharewell.mechanisms.registry import MECHANISMS, MechanismFactory
from sharewell.mechanisms.signed_rows import signing_helps
from sharewell.options import (
    AMOUNT,
    BOOLEAN,
    REQUIRED,
    STRING,
    STRINGS,
    Option,
    ValueType,
    choice,
    integer,
    read_amount,
)
from sharewell.privacy.budget import Budget
from sharewell.query.attribute import Attribute, Binned, Boolean, Category, Date, Integer, Unit
from sharewell.query.block import GroupedBlock, Neighbours
from sharewell.query.domain import MAX_CELLS, Domain
from sharewell.query.linear import LinearQuery
from sharewell.query.measure import MAX_STEPS_OF_MEASURE, Measure
from sharewell.query.sql import compile_sql
from sharewell.schedulers.registry import SCHEDULERS, Scheduler, make_scheduler
from sharewell.sharing.collective import Collective, DryRun
from sharewell.sharing.plan import asked_together

#: Without given questions, counts by two columns are assumed where they have at most so many groups.
MAX_ASSUMED_GROUPS = 200
#: How an expected question begins that is SQL, and not a list of columns.
SELECT = re.compile(r"\s*(SELECT|WITH)\b", re.IGNORECASE)

THRESHOLD = ValueType(
    'a number of rows such as 250, or a percentage such as "0.1%"',
    {
        "anyOf": [
            {"type": "number", "exclusiveMinimum": 0},
            {"type": "string", "pattern": r"^\s*[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?(/[0-9]+)?\s*%?\s*$"},
        ]
    },
    (str, int, Decimal),
)

DATASET_OPTIONS = (
    Option("name", STRING, "people", "name of the table in SQL; fixed once there is a ledger"),
    Option(
        "source",
        STRING,
        None,
        "file with the rows, or address of a database",
        unset="required, unless every table of a view has its own",
    ),
    Option("table", STRING, None, "table of a database, or sheet of a workbook", unset="the only one"),
    Option(
        "view",
        STRING,
        None,
        "SELECT whose rows are counted, each from the rows of one person; needs [tables.NAME]",
        unset="the rows of the table",
    ),
    Option("delimiter", STRING, None, "sign between the fields of a .csv file", unset="a comma"),
    Option("encoding", choice("utf-8", "latin-1"), None, "encoding of a .csv file", unset="utf-8"),
    Option(
        "statement_timeout",
        integer(1, 7 * 86_400),
        3600,
        "seconds after which a statement of a database is given up",
    ),
    Option(
        "measure",
        choice("copy", "in-place"),
        "copy",
        "whether counts are copied at the start, or every purchase is a statement on the source",
    ),
    Option(
        "deadline",
        integer(1, 86_400),
        60,
        "seconds after which a purchase in place is answered, whatever the source took",
    ),
    Option(
        "privacy_unit",
        STRING,
        None,
        "column that identifies the person whose row it is",
        unset="every row is a different person",
    ),
    Option(
        "max_rows_per_person",
        integer(1, MAX_ROWS_PER_PERSON),
        1,
        "how many rows of a person are counted; noise is in proportion to it",
    ),
    Option(
        "population",
        integer(1, 10**15),
        None,
        "approximate number of rows, which must be public",
        unset="percentages cannot be used",
    ),
    Option(
        "max_rows",
        integer(1, MAX_ROWS),
        None,
        "upper limit of the number of rows, which must be public",
        unset=f"required above {MAX_CELLS:,} cells",
    ),
    Option("neighbours", choice(*get_args(Neighbours)), "add-remove", "what one person can change"),
    Option(
        "budgets_add_up",
        BOOLEAN,
        False,
        "whether another dataset may have the same source: each spends a budget of its own",
    ),
)
VIEW_TABLE_OPTIONS = (
    Option("unit", STRING, None, "column that identifies the person", unset="required, unless public"),
    Option("public", BOOLEAN, False, "whether it has no data of people"),
    Option(
        "source",
        STRING,
        None,
        "file with its rows; tables of different databases cannot be joined",
        unset="dataset.source",
    ),
    Option("table", STRING, None, "its name in the database, or sheet of a workbook", unset="NAME"),
    Option("delimiter", STRING, None, "sign between the fields of a .csv file", unset="a comma"),
    Option("encoding", choice("utf-8", "latin-1"), None, "encoding of a .csv file", unset="utf-8"),
)
BUDGET_OPTIONS = (
    Option("epsilon", AMOUNT, REQUIRED, "the whole privacy budget of the table"),
    Option("delta", AMOUNT, None, "selects zCDP, with Gaussian noise", unset="pure epsilon"),
    Option(
        "error_threshold",
        THRESHOLD,
        REQUIRED,
        "largest error of a useful answer: rows, or a percentage of the population",
    ),
)
ANALYST_OPTIONS = (
    Option("share", AMOUNT, REQUIRED, "fraction of the budget; all shares sum to at most 1"),
    Option(
        "expects",
        STRINGS,
        [],
        "questions they are likely to ask, as SQL or as columns to count by, for `sharewell plan` and "
        "the seeds `planned` and `optimized`",
    ),
)
MECHANISM_OPTIONS = (
    Option("name", choice(*MECHANISMS), next(iter(MECHANISMS)), "how questions are answered"),
    Option("independent", BOOLEAN, False, "whether every analyst is alone with their own share"),
)
SCHEDULER_OPTIONS = (
    Option("name", choice(*SCHEDULERS), next(iter(SCHEDULERS)), "whose question is answered next"),
)

# The attribute classes validate these values, so that the library and a file have the same rules.
_ANY = (str, int, Decimal, bool, list, dict, dt.date)
_INTEGER = ValueType("a whole number", {"type": "integer"}, _ANY)
_STARTS = ValueType(
    "a table of lists by name",
    {
        "type": "object",
        "additionalProperties": {"type": "array", "items": {"type": ["number", "string"]}},
    },
    _ANY,
)
_GROUPS = ValueType(
    "a table of tables of lists",
    {
        "type": "object",
        "additionalProperties": {"type": "object", "additionalProperties": STRINGS.schema},
    },
    _ANY,
)
# A TOML date; JSON has none, and editors pass it as a string.
_DATE = ValueType(
    "a date such as 2024-12-31", {"type": "string", "pattern": r"^\d{4}-\d{2}-\d{2}"}, _ANY
)
_BINS = "named coarser groupings, which SQL can use like columns"

ATTRIBUTE_OPTIONS = (
    Option("nullable", BOOLEAN, False, "whether NULL has a cell of its own"),
    Option(
        "other",
        ValueType("a string", {"type": "string"}, _ANY),
        None,
        "label of a cell for all other values",
        unset="rows with other values are dropped",
    ),
)
ATTRIBUTE_TYPES: Mapping[str, tuple[type[Attribute], tuple[Option, ...]]] = {
    "integer": (
        Integer,
        (
            Option("low", _INTEGER, REQUIRED, "smallest value"),
            Option("high", _INTEGER, REQUIRED, "largest value"),
            Option("bins", _STARTS, None, _BINS, unset="none"),
        ),
    ),
    "binned": (
        Binned,
        (
            Option(
                "cuts",
                ValueType("a list of numbers", {"type": "array", "items": {"type": "number"}}, _ANY),
                REQUIRED,
                "edges of the bins; a bin contains its lower edge",
            ),
            Option("bins", _STARTS, None, _BINS, unset="none"),
        ),
    ),
    "category": (
        Category,
        (
            Option(
                "categories",
                ValueType("a list of strings", STRINGS.schema, _ANY),
                REQUIRED,
                "the values, exactly as in the column",
            ),
            Option("bins", _GROUPS, None, _BINS, unset="none"),
        ),
    ),
    "boolean": (Boolean, ()),
    "date": (
        Date,
        (
            Option("start", _DATE, REQUIRED, "first day"),
            Option("end", _DATE, REQUIRED, "last day"),
            Option(
                "by",
                ValueType(f"one of {', '.join(get_args(Unit))}", {"enum": list(get_args(Unit))}, _ANY),
                None,
                "period of a cell",
                unset="day",
            ),
            Option("bins", _STARTS, None, _BINS, unset="none"),
        ),
    ),
}

_NUMBER = ValueType("a number", {"type": "number"}, (int, Decimal))
MEASURE_OPTIONS = (
    Option("column", STRING, None, "column with the values", unset="NAME"),
    Option("low", _NUMBER, REQUIRED, "smallest value; smaller ones count as this"),
    Option("high", _NUMBER, REQUIRED, "largest value; larger ones count as this"),
    Option("step", _NUMBER, REQUIRED, "values are rounded to multiples of it, counted from low"),
    Option("nullable", BOOLEAN, True, "whether rows without a value are counted, or else dropped"),
)

ATTRIBUTE_TYPE = Option("type", choice(*ATTRIBUTE_TYPES), REQUIRED, "type of the column")

TABLES = (
    *("dataset", "tables", "attributes", "measures", "budget", "analysts", "mechanism", "scheduler"),
    "service",
)


@dataclass(frozen=True)
class Analyst:
    """An analyst: their share, in the budget's currency, and questions they are likely to ask."""

    name: str
    share: Fraction
    expects: tuple[str, ...] = ()


@dataclass(frozen=True)
class Config:
    """The contents of a `sharewell.toml`."""

    path: Path
    #: The file as written.
    text: str
    name: str
    #: A path, or the address of a database.
    source: Path | str
    domain: Domain
    budget: Budget
    #: The largest error of a useful answer, in rows.
    error_threshold: float
    analysts: tuple[Analyst, ...]
    make: MechanismFactory
    service: Service
    table: str | None = None
    #: The SELECT of a person view, and its tables by name.
    view: str | None = None
    tables: Mapping[str, ViewTable] = field(default_factory=dict)
    delimiter: str | None = None
    encoding: str | None = None
    statement_timeout: int = 3600
    measure: str = "copy"
    deadline: int = 60
    privacy_unit: str | None = None
    max_rows_per_person: int = 1
    population: int | None = None
    #: The public upper limit of the number of rows.
    max_rows: int | None = None
    neighbours: Neighbours = "add-remove"
    #: Whether another dataset of the server may have the same source.
    budgets_add_up: bool = False
    scheduler_name: str = "none"
    scheduler_options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def shares(self) -> dict[str, Fraction]:
        """Every analyst's share, in the budget's currency."""
        return {analyst.name: analyst.share for analyst in self.analysts}

    @property
    def collective(self) -> Collective:
        """The analysts with their shares, and the mechanism that answers them."""
        return Collective(
            self.domain,
            self.budget,
            self.shares,
            self.make,
            self.neighbours,
            self.max_rows_per_person,
        )

    def decided(self) -> Config:
        """The same with the decision, made when a ledger begins, whether counts are signed rows.

        It is made for the analyst with the smallest share, alone, on the questions that are expected.
        """
        make = self.make
        if make.kind is not CacheReconstruct or self.neighbours != "add-remove" or not self.shares:
            return self
        smallest = min(self.shares, key=self.shares.__getitem__)
        unshared = replace(self.collective, make=replace(make, independent=False))
        mechanism = DryRun(unshared, {smallest}).mechanism
        if not isinstance(mechanism, CacheReconstruct):
            return self
        asked = [question for each in self.workloads().values() for question in each]
        return replace(self, make=make.with_signed_rows(signing_helps(mechanism, asked)))

    @property
    def witness(self) -> Path:
        """Where the witness of the ledger is: as configured, or in a place that follows from the source.

        Neither `dataset.name` nor the places of configuration and ledger matter: a source has one
        budget, whatever describes it.
        """
        return self.service.witness or self.default_witness

    @property
    def rows(self) -> Path | str | PersonView:
        """What is counted: the source, or a view over its tables."""
        return self.source if self.view is None else PersonView(self.view, self.tables)

    @property
    def identities(self) -> tuple[tuple[Path | str, str | None], ...]:
        """What the private tables are, for any user: the resolved path or the address, and the table."""
        if self.view is None:
            return (_identity(self.source, self.table),)
        return tuple(
            _identity(each.source, each.table or (name if has_tables(each.source) else None))
            for name, each in self.tables.items()
            if not each.public
        )

    @property
    def default_witness(self) -> Path:
        """The place that follows from the source."""
        return self.default_witnesses[0]

    @property
    def default_witnesses(self) -> tuple[Path, ...]:
        """The places that follow from the private tables: the first has the witness."""
        try:
            state = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
        except RuntimeError:
            raise ConfigError(
                "The witness has no default location: this user has no home directory.",
                hint="Set service.witness.",
            ) from None
        return tuple(
            dict.fromkeys(state / "sharewell" / _witness_name(*each) for each in self.identities)
        )

    def scheduler(self) -> Scheduler[Any]:
        """Make the configured scheduler."""
        return make_scheduler(self.scheduler_name, self.shares, **self.scheduler_options)

    def data(self) -> DataVector | InPlaceData:
        """Count the rows of the source, or open it to be measured in place. Secret."""
        if self.measure == "copy":
            return self.vector()
        return InPlaceData(
            self.domain,
            self._open_in_place,
            privacy_unit=self.privacy_unit,
            max_rows_per_person=self.max_rows_per_person,
            key=self.name,
            deadline=self.deadline,
        )

    def vector(self) -> DataVector:
        """Count the rows of the source. Secret."""
        return vectorize(
            self.rows,
            self.domain,
            self.privacy_unit,
            table=self.table,
            max_rows=self.max_rows,
            max_rows_per_person=self.max_rows_per_person,
            key=self.name,
            csv_format=self.csv_format,
            timeout=self.statement_timeout,
        )

    def _open_in_place(self) -> Engine:
        wanted = columns_read(self.domain, self.privacy_unit)
        return open_rows(
            self.rows,
            wanted,
            privacy_unit=self.privacy_unit,
            table=self.table,
            csv_format=self.csv_format,
            timeout=self.deadline,
        )

    @property
    def csv_format(self) -> CsvFormat | None:
        """How a CSV file is written, if that is given."""
        return _csv_format(self.delimiter, self.encoding)

    def workloads(self) -> dict[str, Sequence[Question]]:
        """The questions that every analyst is expected to ask."""
        return dict(self._workloads)

    @cached_property
    def _workloads(self) -> dict[str, Sequence[Question]]:
        return expected_workloads(self.domain, self.name, self.analysts)


def _csv_format(delimiter: str | None, encoding: str | None) -> CsvFormat | None:
    given = {"delimiter": delimiter, "encoding": encoding}
    said = {key: value for key, value in given.items() if value is not None}
    return CsvFormat(**said) if said else None


def _identity(source: object, table: str | None) -> tuple[Path | str, str | None]:
    if isinstance(source, Path):
        return source.resolve(), table
    return re.sub(r"//[^/@]*@", "//", str(source)), table


def _witness_name(place: Path | str, table: str | None) -> str:
    stem = place.stem if isinstance(place, Path) else re.sub(r"\W+", "-", table or "table")
    identity = f"{place}\0{table or ''}"
    return f"{stem}-{sha256(identity.encode()).hexdigest()[:16]}.json"


def read_config(path: str | Path) -> Config:
    """Read a file; paths in it are relative to its folder."""
    path = Path(path)
    return parse_config(read_text(path, "sharewell.toml"), path)


def parse_config(text: str, path: Path = Path("sharewell.toml")) -> Config:
    """Read the text of a file."""
    top = Section(read_tables(text), "")
    # Misspelled tables first: otherwise everything in them would be reported as missing.
    sections = {name: top.section(name) for name in TABLES}
    top.end()
    # A part that depends on one with mistakes is read with a stand-in for it, to find its own mistakes.
    mistakes = Mistakes()
    found = mistakes.of(lambda: _read_dataset(sections["dataset"], sections["tables"], path.parent))
    dataset, tables, source = found or (_STAND_IN, {}, "")
    name = dataset["name"]
    domain = mistakes.of(lambda: _read_domain(sections["attributes"], sections["measures"]))
    read_budget = mistakes.of(lambda: _read_budget(sections["budget"], dataset["population"]))
    budget, threshold = read_budget or (Budget.pure(1), 0.0)
    analysts = mistakes.of(lambda: _read_analysts(sections["analysts"], budget)) or ()
    context = PublicContext(
        domain,
        budget,
        dataset["population"],
        lambda: asked_together(domain, expected_workloads(domain, name, analysts)),
        dataset["neighbours"],
        lambda: expected_workloads(domain, name, [each for each in analysts if each.expects]),
    )
    scheduler = mistakes.of(lambda: _read_scheduler(sections["scheduler"]))
    mechanism = mistakes.of(lambda: _read_mechanism(sections["mechanism"]))
    names = [each.name for each in analysts]
    service = mistakes.of(lambda: read_service(sections["service"], path, name, names))
    mistakes.check()
    scheduler_name, scheduler_options = scheduler
    mechanism_values, mechanism_options = mechanism
    config = Config(
        path=path,
        text=text,
        **dataset | {"source": source if is_address(source) else path.parent / source},
        tables=tables,
        domain=domain,
        budget=budget,
        error_threshold=threshold,
        analysts=analysts,
        make=_factory(mechanism_values, mechanism_options, context),
        scheduler_name=scheduler_name,
        scheduler_options=scheduler_options,
        service=service,
    )
    blame("scheduler", config.scheduler)
    if domain.size > MAX_CELLS and config.max_rows is None and config.measure == "copy":
        raise ConfigError(
            f"dataset.max_rows is missing: the domain has more than {MAX_CELLS:,} cells.",
            hint="Set a public upper limit of the number of rows.",
        )
    return config


#: What stands for the dataset where its table has mistakes.
_STAND_IN: dict[str, Any] = {"name": "people", "population": 1, "neighbours": "add-remove"}


def _read_dataset(
    section: Section, tables: Section, folder: Path
) -> tuple[dict[str, Any], dict[str, ViewTable], str | Path]:
    """The options of the dataset, the tables of its view, and its source."""
    values = section.read_only(DATASET_OPTIONS)
    mistakes = Mistakes()
    mistakes.of(lambda: validate_table(values["name"], "dataset.name"))
    view = mistakes.of(lambda: _read_view(tables, values, folder))
    source: Any = "" if mistakes.found else mistakes.of(lambda: _read_source(values, view, section))
    if values["max_rows_per_person"] > 1 and values["privacy_unit"] is None:
        mistakes.found.append(
            ConfigError(
                "dataset.max_rows_per_person requires dataset.privacy_unit.",
                hint="Name the column that identifies the person.",
            )
        )
    mistakes.of(lambda: _check_delimiter(values["delimiter"], "dataset"))
    mistakes.check()
    return values, view, source


def _check_delimiter(delimiter: str | None, key: str) -> None:
    if len(delimiter or ",") != 1:
        raise ConfigError(f"{key}.delimiter must be a single character.", hint='For example, ";".')


def _read_source(
    dataset: Mapping[str, Any], tables: Mapping[str, ViewTable], section: Section
) -> str | Path:
    """The source of the dataset, or else that of the first private table of its view."""
    if dataset["source"] is not None:
        return str(dataset["source"])
    for each in tables.values():
        if not each.public and isinstance(each.source, str | Path):
            return each.source
    return str(section.get("source", STRING))


def _read_view(section: Section, dataset: Mapping[str, Any], folder: Path) -> dict[str, ViewTable]:
    """The tables of a view; none without a view."""
    if dataset["view"] is None:
        if list(section):
            raise ConfigError(
                "[tables] requires dataset.view.", hint="Write the SELECT that joins the tables."
            )
        return {}
    if dataset["privacy_unit"] is None:
        raise ConfigError(
            "dataset.view requires dataset.privacy_unit.",
            hint="Name the column of the view that identifies the person.",
        )
    for key in ("table", "delimiter", "encoding"):
        if dataset[key] is not None:
            raise ConfigError(
                f"dataset.{key} and dataset.view are mutually exclusive.",
                hint=f"Set tables.NAME.{key}.",
            )
    tables: dict[str, ViewTable] = {}
    for name, each in section.sections():
        values = each.read_only(VIEW_TABLE_OPTIONS)
        _check_delimiter(values["delimiter"], each.path)
        source = values["source"] or dataset["source"]
        if source is None:
            raise ConfigError(
                f"{each.path}.source is missing.", hint="Set it, or dataset.source for all tables."
            )
        if values["public"] == (values["unit"] is not None):
            raise ConfigError(
                f"{each.path} needs either `unit` or `public = true`.",
                hint="`unit` names the column of the person; a public table has no data of people.",
            )
        tables[name] = ViewTable(
            source if is_address(source) else folder / source,
            values["unit"],
            values["public"],
            values["table"],
            _csv_format(values["delimiter"], values["encoding"]),
        )
    if all(each.public for each in tables.values()):
        raise ConfigError(
            "dataset.view has no private table.",
            hint='Declare its tables: [tables.visits] with unit = "person".',
        )
    blame("dataset.view", lambda: ViewText.parse(dataset["view"]))
    return tables


def _read_domain(section: Section, summed: Section) -> Domain:
    mistakes = Mistakes()
    attributes = [mistakes.of(partial(_read_attribute, section, name)) for name in section]
    measures = [mistakes.of(partial(_read_measure, summed, name)) for name in summed]
    mistakes.check()
    if not attributes:
        raise ConfigError(
            "No attributes are described.",
            hint='Describe one: [attributes.age] with type = "integer", low = 0 and high = 85.',
        )
    return blame("attributes", lambda: Domain(attributes, measures))


def _read_attribute(parent: Section, name: str) -> Attribute:
    section = parent.section(name)
    kind, options = ATTRIBUTE_TYPES[section.read(ATTRIBUTE_TYPE)]
    # The class reports what is missing.
    given = section.read_only((*options, *ATTRIBUTE_OPTIONS), given=True)
    return blame(section.path, lambda: kind(name, **given))


def _read_measure(parent: Section, name: str) -> Measure:
    section = parent.section(name)
    values = section.read_only(MEASURE_OPTIONS)
    try:
        return Measure(name, **values | {"column": values["column"] or name})
    except DomainError as error:
        raise ConfigError(
            f"{section.path}: {error.message}", hint=f"{error.hint} {_example(**values)}".strip()
        ) from None


def _example(low: Decimal, high: Decimal, step: Decimal, **_: Any) -> str:
    """Bounds and a step like those given, which a measure can have; empty where they make no sense."""
    if not (all(map(math.isfinite, (low, high, step))) and low < high and step > 0):
        return ""
    span = Fraction(high) - Fraction(low)
    grid = round_grid(Fraction(low), Fraction(high), max(Fraction(step), span / MAX_STEPS_OF_MEASURE))
    return f"For example, {grid}."


def _read_budget(section: Section, population: int | None) -> tuple[Budget, float]:
    values = section.read_only(BUDGET_OPTIONS)
    epsilon, delta = values["epsilon"], values["delta"]
    threshold = _read_threshold(values["error_threshold"], population)
    if delta is None:
        return Budget.pure(epsilon), threshold
    return blame("budget", lambda: Budget.zcdp(epsilon, delta)), threshold


def _read_threshold(value: Any, population: int | None) -> float:
    """Convert rows, or a percentage of the population, to rows."""
    key, text = "budget.error_threshold", str(value).strip()
    if not text.endswith("%"):
        try:
            return float(read_amount(value, key))
        except ConfigError as error:
            raise ConfigError(error.message, hint=f"Write {THRESHOLD.words}.") from None
    if population is None:
        raise ConfigError(
            f"{key} is a percentage, and dataset.population is not set.",
            hint="Set dataset.population, or give a number of rows.",
        )
    return float(read_amount(text[:-1].strip(), key) * population / 100)


def _read_analysts(section: Section, budget: Budget) -> tuple[Analyst, ...]:
    mistakes = Mistakes()
    known: dict[str, str] = {}

    def read(name: str) -> Analyst:
        own = section.section(name)
        validate_person(name, "analysts")
        if (same := known.setdefault(name.casefold(), name)) != name:
            raise ConfigError(
                f"analysts: {same!r} and {name!r} differ only in case.", hint="Rename one of them."
            )
        values = own.read_only(ANALYST_OPTIONS)
        return Analyst(name, values["share"] * budget.total, tuple(values["expects"]))

    found = [mistakes.of(partial(read, name)) for name in section]
    mistakes.check()
    if not found:
        raise ConfigError("No analysts are named.", hint='Name one: [analysts.ann] with share = "1/2".')
    total = sum((analyst.share for analyst in found), Fraction(0)) / budget.total
    if total > 1:
        raise ConfigError(
            f"The analysts' shares sum to {total}, which is more than 1.",
            hint="Reduce them: a share is a fraction of the budget.",
        )
    return tuple(found)


def _read_mechanism(section: Section) -> tuple[dict[str, Any], dict[str, Any]]:
    """The name and independence of the mechanism, and the options that it declares."""
    values = section.read_all(MECHANISM_OPTIONS)
    return values, _read_options(section, values["name"], MECHANISMS)


def _factory(
    values: dict[str, Any], options: dict[str, Any], context: PublicContext
) -> MechanismFactory:
    kind = MECHANISMS[values["name"]]
    return MechanismFactory(
        kind, blame("mechanism", lambda: kind.arguments(options, context)), values["independent"]
    )


def _read_scheduler(section: Section) -> tuple[str, dict[str, Any]]:
    name = section.read_all(SCHEDULER_OPTIONS)["name"]
    options = _read_options(section, name, SCHEDULERS)
    return name, {key: value for key, value in options.items() if value is not None}


def _read_options(section: Section, name: str, kinds: Mapping[str, Any]) -> dict[str, Any]:
    """The options that a mechanism or scheduler declares; those of others are refused."""
    mistakes = Mistakes()
    values = mistakes.of(lambda: section.read_all(kinds[name].options))
    for key in section:
        having = [
            other for other, kind in kinds.items() if any(key == each.name for each in kind.options)
        ]
        if having and name not in having:
            section.has(key)  # known, if not here
            instead = " or ".join(map(repr, having))
            mistakes.found.append(
                ConfigError(
                    f"{section.where(key)} is not an option of {name!r}.",
                    hint=f"Remove it, or set {section.where('name')} to {instead}.",
                )
            )
    mistakes.of(section.end)
    mistakes.check()
    found: dict[str, Any] = values
    return found


def _count_by(columns: str, domain: Domain) -> GroupedBlock:
    """A table of counts that is given by its columns, such as "age, region"."""
    levels = [domain.index(name.strip()) for name in columns.split(",")]
    cells = {level: np.arange(domain.attributes[level].size) for level in levels}
    return GroupedBlock(LinearQuery.all(domain), cells)


def expected_workloads(
    domain: Domain, table: str, analysts: Sequence[Analyst]
) -> dict[str, Sequence[Question]]:
    """What analysts are expected to ask: what the file says, or else counts by one and two columns."""
    assumed: list[Question] | None = None
    found: dict[str, Sequence[Question]] = {}
    for analyst in analysts:
        if analyst.expects or assumed is None:
            found[analyst.name] = list(_expected(domain, table, analyst))
            assumed = assumed if analyst.expects else list(found[analyst.name])
        else:
            found[analyst.name] = list(assumed)
    return found


def _expected(domain: Domain, table: str, analyst: Analyst) -> Iterator[Question]:
    if not analyst.expects:
        rows, cells = LinearQuery.all(domain), [np.arange(each.size) for each in domain.attributes]
        for count in (1, 2):
            for levels in combinations(range(len(cells)), count):
                if math.prod(len(cells[level]) for level in levels) <= MAX_ASSUMED_GROUPS:
                    yield GroupedBlock(rows, {level: cells[level] for level in levels})
    for at, text in enumerate(analyst.expects):
        try:
            if SELECT.match(text):
                yield from compile_sql(text, domain, table=table).blocks
            else:
                yield _count_by(text, domain)
        except (SqlError, QueryError, DomainError) as error:
            raise ConfigError(
                f"analysts.{analyst.name}.expects[{at}] cannot be answered: {error.message}",
                hint=error.hint,
                where=error.where,
            ) from None
