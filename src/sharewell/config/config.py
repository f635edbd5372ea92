"""Configurations: what a `sharewell.toml` describes, and the keys of [dataset] and [budget].

The other tables are in files of their own: `analysts.py`, `attributes.py`, `mechanism.py`, `service.py`
and `view.py`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any, get_args

from sharewell.config.analysts import Analyst, expected_workloads, read_analysts
from sharewell.config.attributes import read_domain
from sharewell.config.mechanism import mechanism_factory, read_mechanism, read_scheduler
from sharewell.config.section import (
    Mistakes,
    Section,
    blame,
    read_tables,
    read_text,
    validate_table,
)
from sharewell.config.service import Service, read_service
from sharewell.config.view import CSV_OPTIONS, check_delimiter, csv_format_of, read_view
from sharewell.engine.base import Engine
from sharewell.engine.data_vector import MAX_ROWS, MAX_ROWS_PER_PERSON, DataVector
from sharewell.engine.in_place import InPlaceData
from sharewell.engine.sources import CsvFormat, is_address
from sharewell.engine.vectorize import columns_read, vectorize
from sharewell.engine.view_tables import PersonView, ViewTable, has_tables, open_rows
from sharewell.errors import ConfigError
from sharewell.mechanisms.base import PublicContext, Question
from sharewell.mechanisms.cache_reconstruct import CacheReconstruct, signing_helps
from sharewell.mechanisms.registry import MechanismFactory
from sharewell.options import (
    AMOUNT,
    BOOLEAN,
    REQUIRED,
    STRING,
    Option,
    ValueType,
    choice,
    integer,
    read_amount,
)
from sharewell.privacy.budget import Budget
from sharewell.query.block import Neighbours
from sharewell.query.domain import MAX_CELLS, Domain
from sharewell.schedulers.base import Scheduler
from sharewell.schedulers.registry import make_scheduler
from sharewell.sharing.collective import Collective, DryRun
from sharewell.sharing.plan import asked_together

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
    *CSV_OPTIONS,
    Option(
        "statement_timeout",
        integer(1, 7 * 86_400),
        3600,
        "timeout of database statements, in seconds",
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
        "seconds after which a purchase in place is answered, however long the source took",
    ),
    Option(
        "privacy_unit",
        STRING,
        None,
        "column that identifies the person",
        unset="every row is a different person",
    ),
    Option(
        "max_rows_per_person",
        integer(1, MAX_ROWS_PER_PERSON),
        1,
        "rows counted per person; noise is proportional to it",
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
        "whether another dataset may use the same source with a budget of its own",
    ),
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
TABLES = (
    *("dataset", "tables", "attributes", "measures", "budget", "analysts", "mechanism", "scheduler"),
    "service",
)


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
        return csv_format_of(self.delimiter, self.encoding)

    def workloads(self) -> dict[str, Sequence[Question]]:
        """The questions that every analyst is expected to ask."""
        return dict(self._workloads)

    @cached_property
    def _workloads(self) -> dict[str, Sequence[Question]]:
        return expected_workloads(self.domain, self.name, self.analysts)


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
    domain = mistakes.of(lambda: read_domain(sections["attributes"], sections["measures"]))
    read_budget = mistakes.of(lambda: _read_budget(sections["budget"], dataset["population"]))
    budget, threshold = read_budget or (Budget.pure(1), 0.0)
    analysts = mistakes.of(lambda: read_analysts(sections["analysts"], budget)) or ()
    context = PublicContext(
        domain,
        budget,
        dataset["population"],
        lambda: asked_together(domain, expected_workloads(domain, name, analysts)),
        dataset["neighbours"],
        lambda: expected_workloads(domain, name, [each for each in analysts if each.expects]),
    )
    scheduler = mistakes.of(lambda: read_scheduler(sections["scheduler"]))
    mechanism = mistakes.of(lambda: read_mechanism(sections["mechanism"]))
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
        make=mechanism_factory(mechanism_values, mechanism_options, context),
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
    view = mistakes.of(lambda: read_view(tables, values, folder))
    source: Any = "" if mistakes.found else mistakes.of(lambda: _read_source(values, view, section))
    if values["max_rows_per_person"] > 1 and values["privacy_unit"] is None:
        mistakes.found.append(
            ConfigError(
                "dataset.max_rows_per_person requires dataset.privacy_unit.",
                hint="Name the column that identifies the person.",
            )
        )
    mistakes.of(lambda: check_delimiter(values["delimiter"], "dataset"))
    mistakes.check()
    return values, view, source


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
