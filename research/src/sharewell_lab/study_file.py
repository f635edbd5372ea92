"""STUDY.toml: read a study key by key, with a precise error for every mistake."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from sharewell import datasets
from sharewell.config.section import Section, blame, read_tables, read_text
from sharewell.engine.data_vector import DataVector
from sharewell.errors import ConfigError
from sharewell.options import AMOUNT, BOOLEAN, INTEGER, STRING, STRINGS, ValueType, choice
from sharewell.options import read_amount as exact
from sharewell.query import workload
from sharewell.query.block import Block
from sharewell.query.domain import Domain
from sharewell.query.linear import LinearQuery
from sharewell.schedulers.registry import SCHEDULERS
from sharewell_lab import workloads
from sharewell_lab.streams import Asker, Workload, first_cells
from sharewell_lab.studies import Study, people_by, population_of, read_histogram
from sharewell_lab.trials import CONTESTANTS, MECHANISMS, Case, Contestant


class Workloads:
    """The workloads that a file describes, and the families that need no description."""

    def __init__(self, section: Section, domain: Domain) -> None:
        self._domain = domain
        self._made = {name: self._make(name, one) for name, one in section.sections()}
        self._used: set[str] = set()

    def asker(self, names: Sequence[str], restrict: float, path: str) -> Asker:
        """An asker who draws one of these workloads."""
        if not names:
            raise ConfigError(
                f"{path}.workloads is missing.", hint='Say what is asked: workloads = ["identity"].'
            )
        return Asker(tuple(self._find(name) for name in names), restrict)

    def end(self) -> None:
        """Refuse workloads that no analyst asks."""
        if unused := sorted(set(self._made) - self._used):
            raise ConfigError(
                f"No analyst asks the workload {unused[0]}.",
                hint="Name it in stream.workloads or in an analyst's.",
            )

    def _find(self, name: str) -> Workload:
        self._used.add(name)
        if name not in self._made:
            if name not in FAMILIES:
                known = ", ".join([*self._made, *FAMILIES])
                raise ConfigError(f"Unknown workload {name!r}.", hint=f"Choose one of {known}.")
            self._made[name] = self._make(name, Section({"family": name}, f"workloads.{name}"))
        return self._made[name]

    def _make(self, name: str, section: Section) -> Workload:
        family = FAMILIES[section.get("family", choice(*FAMILIES))]
        made = blame(section.path, lambda: _workload(name, family(self._domain, section)))
        if section.has("where"):
            condition = section.get("where", STRING)
            chosen = blame(section.where("where"), lambda: _predicate(self._domain, condition))
            made = made.where(chosen.to_vector().astype(np.bool_))
        section.end()
        if not len(made.rows):
            raise ConfigError(f"{section.path} asks nothing.", hint="Ask of more of the table.")
        return made


def _workload(name: str, made: Block | Workload) -> Workload:
    return replace(made, name=name) if isinstance(made, Workload) else Workload.of(name, made)


def _predicate(domain: Domain, condition: str) -> LinearQuery:
    found = _asked(domain, f"SELECT COUNT(*) FROM people WHERE {condition}")  # noqa: S608
    if len(found) != 1:
        raise ConfigError("A condition is what stands after WHERE, and nothing more.")
    return found[0]


def _asked(domain: Domain, sql: str) -> list[LinearQuery]:
    from sharewell.query.sql import compile_sql

    return list(compile_sql(sql, domain).queries)


def _line(make: Callable[..., Block], *options: str) -> Callable[[Domain, Section], Block]:
    def family(domain: Domain, section: Section) -> Block:
        given = {key: section.get(key, INTEGER) for key in options if section.has(key)}
        return make(domain, section.get("attribute", STRING, None), **given)

    return family


def _races(make: Callable[..., Block], *options: str) -> Callable[[Domain, Section], Block | Workload]:
    along = _line(make, *options)

    def family(domain: Domain, section: Section) -> Block | Workload:
        if len(domain.shape) > 1 or domain.size <= 64:
            return along(domain, section)
        rows = first_cells(64, domain.size, lambda line: along(line, section), domain.names[0])
        return Workload("", rows)

    return family


def _drawn(make: Callable[..., Block]) -> Callable[[Domain, Section], Block]:
    def family(domain: Domain, section: Section) -> Block:
        count = section.get("count", INTEGER, 10)
        seed = section.get("seed", INTEGER, 0)
        return make(domain, count, np.random.default_rng(seed))

    return family


def _sql(domain: Domain, section: Section) -> Block:
    return Block(
        domain, [query for text in section.get("queries", STRINGS) for query in _asked(domain, text)]
    )


#: The families of workloads by name.
FAMILIES: Mapping[str, Callable[[Domain, Section], Block | Workload]] = {
    "identity": lambda domain, _: workload.identity(domain),
    "total": lambda domain, _: workload.total(domain),
    "prefixes": _line(workload.prefixes),
    "ranges": _line(workload.ranges),
    "hierarchy": _line(workload.hierarchy, "branching"),
    "h2": _line(workload.h2),
    "marginal": lambda domain, section: workload.marginal(domain, section.get("attributes", STRINGS)),
    "marginals": lambda domain, section: workload.marginals(domain, section.get("k", INTEGER, 1)),
    "data-cube": lambda domain, _: workload.data_cube(domain),
    "race1": _races(workloads.race1),
    "race2": _races(workloads.race2),
    "race3": _races(workloads.race3, "race"),
    "random-points": _drawn(workload.random_points),
    "random-ranges": _drawn(workload.random_ranges),
    "sql": _sql,
}


TABLES = ("massachusetts", "movers-by-age")
#: The parameters that a sweep may vary.
SWEPT = (
    *("epsilon", "p", "analysts", "population", "error_threshold"),
    *("seed_fraction", "query_budget", "updates", "threshold"),
)
WHOLE = ("analysts", "updates", "threshold")


@dataclass(frozen=True)
class StudyFile:
    """A study, with how many trials of it are wanted and from which seed."""

    study: Study
    trials: int
    seed: int


def read_study(path: str | Path) -> StudyFile:
    """Read a file; paths in it are relative to where it is."""
    path = Path(path)
    return parse_study(read_text(path, "STUDY.toml"), path)


def parse_study(text: str, path: Path = Path("STUDY.toml")) -> StudyFile:
    """Read the text of a file."""
    return _StudyReader(Section(read_tables(text), ""), path).study_file()


class _StudyReader:
    """Reads the tables of a file, in order of what depends on what."""

    def __init__(self, top: Section, path: Path) -> None:
        self._top = top
        self._path = path

    def study_file(self) -> StudyFile:
        top = self._top
        name = top.get("name", STRING, self._path.stem.lower())
        if not name.replace("-", "").replace("_", "").isalnum():
            raise ConfigError(
                f"name cannot be {name!r}: a folder is called by it.",
                hint="Use letters, digits, - and _ only.",
            )
        trials = top.get("trials", INTEGER, 100)
        seed = top.get("seed", INTEGER, 1)
        data, population = self._data()
        workloads = Workloads(top.section("workloads"), data.domain)
        askers, first = self._stream(workloads, population)
        contestants = self._contestants()
        cases = self._sweep(first, self._threshold)
        workloads.end()
        top.end()
        study = blame(name, lambda: Study(name, data, askers, contestants, cases))
        return StudyFile(study, trials, seed)

    def _data(self) -> tuple[DataVector, float]:
        section = self._top.section("data")
        if section.has("source") == section.has("table"):
            raise ConfigError(
                "data needs a source or a table, and not both.",
                hint=f'Write source = "counts.csv", or table = one of {", ".join(TABLES)}.',
            )
        if section.has("source"):
            name = section.get("attribute", STRING, "cell")
            file = self._path.parent / section.get("source", STRING)
            data = blame("data.source", lambda: read_histogram(file, name))
        elif section.get("table", choice(*TABLES)) == "movers-by-age":
            data = datasets.movers_by_age()
        else:
            columns = section.get("columns", STRINGS)
            data = blame("data.columns", lambda: people_by(*columns))
        population = float(section.get("population", AMOUNT, int(population_of(data))))
        section.end()
        return data, population

    def _stream(self, workloads: Workloads, population: float) -> tuple[tuple[Asker, ...], Case]:
        stream, budget = self._top.section("stream"), self._top.section("budget")
        usual = stream.get("workloads", STRINGS, [])
        restrict = _part(stream, "restrict", 0.0)
        askers: list[Asker] = []
        shares: list[float] = []
        chances: list[float | None] = []
        for _, one in self._top.section("analysts").sections():
            own = _part(one, "restrict", restrict)
            askers.append(workloads.asker(one.get("workloads", STRINGS, usual), own, one.path))
            shares.append(float(one.get("share", AMOUNT)) if one.has("share") else 0.0)
            chances.append(_part(one, "chance", 0) if one.has("chance") else None)
            one.end()
        if askers and stream.has("analysts"):
            raise ConfigError(
                "stream.analysts and [analysts.NAME] tables are mutually exclusive.",
                hint="Leave one of them out.",
            )
        many = len(askers) or stream.get("analysts", INTEGER, 2)
        if not askers:
            askers = [workloads.asker(usual, restrict, "stream")]
        for what, missing in (
            ("share", [not share for share in shares]),
            ("chance", [c is None for c in chances]),
        ):
            if any(missing) and not all(missing):
                raise ConfigError(
                    f"Some analysts have a {what} and others do not.",
                    hint="Set it for all analysts or for none.",
                )
        likely = tuple(chance for chance in chances if chance is not None)
        if likely and stream.has("p"):
            raise ConfigError("stream.p and analysts' chances are mutually exclusive.")
        first = blame(
            "stream",
            lambda: Case(
                float(budget.get("epsilon", AMOUNT)),
                many,
                population,
                self._threshold(
                    budget.get("error_threshold", ValueType("rows or a percentage", {}, _NUMBER)),
                    population,
                ),
                _part(stream, "p", 1 / max(1, many)),
                likely or None,
                tuple(shares) if any(shares) else None,
                **_settings(self._top.section("mechanism")),
            ),
        )
        stream.end()
        budget.end()
        return tuple(askers), first

    def _threshold(self, value: Any, population: float) -> float:
        """A number of rows, or a percentage of the population."""
        if isinstance(value, str) and value.strip().endswith("%"):
            part = exact(value.strip()[:-1].strip(), "error_threshold")
            return float(part / 100) * population
        return float(exact(value, "error_threshold"))

    def _contestants(self) -> tuple[Contestant, ...]:
        found: list[Contestant] = []
        compare = self._top.section("compare")
        if compare.has("mechanisms"):
            mechanisms = compare.get("mechanisms", STRINGS)
            schedulers = compare.get("schedulers", STRINGS, ["none"])
            for mechanism, scheduler in itertools.product(mechanisms, schedulers):
                label = mechanism if scheduler == "none" else f"{mechanism}, {scheduler}"
                found.append(blame("compare", lambda: Contestant(label, mechanism, scheduler)))  # noqa: B023
            if compare.get("independent", BOOLEAN, False):
                found += [Contestant(f"{m}, independent", m, independent=True) for m in mechanisms]
        compare.end()
        for label, one in self._top.section("contestants").sections():
            mechanism = one.get("mechanism", choice(*MECHANISMS))
            scheduler = one.get("scheduler", choice(*SCHEDULERS), "none")
            independent = one.get("independent", BOOLEAN, False)
            given = one.get("probabilities", ValueType("a list of numbers", {}, (list,)), None)
            chances = given and tuple(float(exact(value, one.where("probabilities"))) for value in given)
            skip = one.get("skip_done", BOOLEAN, False)
            settings = _settings(one)
            found.append(
                blame(
                    one.path,
                    lambda: Contestant(
                        label,  # noqa: B023
                        mechanism,  # noqa: B023
                        scheduler,  # noqa: B023
                        independent,  # noqa: B023
                        chances,  # noqa: B023
                        skip_done=skip,  # noqa: B023
                        **settings,  # noqa: B023
                    ),
                )
            )
        return tuple(found) or tuple(CONTESTANTS.values())

    def _sweep(self, first: Case, threshold: Callable[[Any, float], float]) -> tuple[Case, ...]:
        section = self._top.section("sweep")
        values: dict[str, list[Any]] = {}
        for name in list(section):
            if name not in SWEPT:
                raise ConfigError(
                    f"{section.where(name)} cannot be swept.", hint=f"Choose among {', '.join(SWEPT)}."
                )
            values[name] = section.get(name, ValueType("a list of values", {}, (list,)))
            if not values[name]:
                raise ConfigError(f"{section.where(name)} has no values.", hint="Write [0.1, 1, 10].")
        if "p" in values and first.chances is not None:
            raise ConfigError("sweep.p and analysts' chances are mutually exclusive.")
        if "analysts" in values and list(self._top.section("analysts")):
            raise ConfigError("sweep.analysts and [analysts.NAME] tables are mutually exclusive.")
        part = first.error_threshold / first.population
        cases = []
        for point in itertools.product(*values.values()):
            chosen = dict(zip(values, point, strict=True))
            parsed: dict[str, Any] = {
                key: _swept(key, value) for key, value in chosen.items() if key != "error_threshold"
            }
            population = parsed.get("population", first.population)
            if "error_threshold" in chosen:
                parsed["error_threshold"] = threshold(chosen["error_threshold"], population)
            elif "population" in parsed:
                parsed["error_threshold"] = part * population
            if "analysts" in parsed and "p" not in parsed and not self._top.section("stream").has("p"):
                parsed["p"] = 1 / max(1, parsed["analysts"])
            swept = tuple((key, float(parsed[key])) for key in chosen if key not in ("epsilon", "p"))
            cases.append(blame("sweep", lambda: replace(first, **parsed, swept=swept)))  # noqa: B023
        return tuple(cases)


_NUMBER = (str, int, Decimal)
_ROWS = ValueType("rows or a percentage", {}, _NUMBER)
_PART = ValueType("a number", {}, _NUMBER)


def _settings(section: Section) -> dict[str, Any]:
    """The mechanisms' settings that a table gives; it is read to its end."""
    found: dict[str, Any] = {}
    for key in ("seed_fraction", "query_budget"):
        if section.has(key):
            found[key] = float(section.get(key, AMOUNT))
    for key in ("updates", "threshold"):
        if section.has(key):
            found[key] = section.get(key, INTEGER)
    section.end()
    return found


def _swept(key: str, value: Any) -> float | int:
    if isinstance(value, bool) or not isinstance(value, _NUMBER):
        raise ConfigError(f"sweep.{key} must be a list of numbers.", hint="Write [0.1, 1, 10].")
    number = _number(value, f"sweep.{key}")
    if key not in WHOLE:
        return number
    if number != int(number):
        raise ConfigError(f"sweep.{key} takes whole numbers, not {value}.")
    return int(number)


def _part(section: Section, key: str, default: float) -> float:
    """A probability."""
    number = _number(section.get(key, _PART, str(default)), section.where(key))
    if number > 1:
        raise ConfigError(f"{section.where(key)} must be from 0 to 1, not {number:g}.")
    return number


def _number(value: Any, key: str) -> float:
    """A number from 0 on, such as 0.1 or "1/3"."""
    try:
        number = float(Fraction(str(value)))
    except (ValueError, ZeroDivisionError, OverflowError):
        raise ConfigError(
            f"{key} must be a number, not {value!r}.", hint='Write 0.1 or "1/3".'
        ) from None
    if number < 0:
        raise ConfigError(f"{key} must not be negative.")
    return number
