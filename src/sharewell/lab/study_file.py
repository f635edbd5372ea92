"""STUDY.toml: one's own study, read key by key with a complaint for every mistake."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

from sharewell import datasets
from sharewell.config.section import Section, blame, exact
from sharewell.config.toml_file import read_tables, read_text
from sharewell.engine.data_vector import DataVector
from sharewell.errors import ConfigError
from sharewell.lab.families import Workloads
from sharewell.lab.streams import Asker
from sharewell.lab.studies import Study, people_by, population_of, read_histogram
from sharewell.lab.trials import CONTESTANTS, MECHANISMS, Case, Contestant
from sharewell.sharing.scheduler import SCHEDULERS

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
    return _Reader(Section(read_tables(text), ""), path).study_file()


class _Reader:
    """Reads the tables of a file, in order of what depends on what."""

    def __init__(self, top: Section, path: Path) -> None:
        self._top = top
        self._path = path

    def study_file(self) -> StudyFile:
        top = self._top
        name = top.text("name", self._path.stem.lower())
        if not name.replace("-", "").replace("_", "").isalnum():
            raise ConfigError(
                f"name cannot be {name!r}: a folder is called by it.",
                hint="Use letters, digits, - and _ only.",
            )
        trials = top.get("trials", int, "a whole number", 100)
        seed = top.get("seed", int, "a whole number", 1)
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
            name = section.text("attribute", "cell")
            file = self._path.parent / section.text("source")
            data = blame("data.source", lambda: read_histogram(file, name))
        elif section.choice("table", TABLES) == "movers-by-age":
            data = datasets.movers_by_age()
        else:
            columns = section.texts("columns")
            data = blame("data.columns", lambda: people_by(*columns))
        population = float(section.amount("population", int(population_of(data))))
        section.end()
        return data, population

    def _stream(self, workloads: Workloads, population: float) -> tuple[tuple[Asker, ...], Case]:
        stream, budget = self._top.section("stream"), self._top.section("budget")
        usual = stream.texts("workloads", [])
        restrict = _part(stream, "restrict", 0.0)
        askers: list[Asker] = []
        shares: list[float] = []
        chances: list[float | None] = []
        for _, one in self._top.section("analysts").sections():
            own = _part(one, "restrict", restrict)
            askers.append(workloads.asker(one.texts("workloads", usual), own, one.path))
            shares.append(float(one.amount("share")) if one.has("share") else 0.0)
            chances.append(_part(one, "chance", 0) if one.has("chance") else None)
            one.end()
        if askers and stream.has("analysts"):
            raise ConfigError(
                "stream.analysts says how many analysts there are, and so do the tables of analysts.",
                hint="Leave one of them out.",
            )
        many = len(askers) or stream.get("analysts", int, "a whole number", 2)
        if not askers:
            askers = [workloads.asker(usual, restrict, "stream")]
        for what, missing in (
            ("share", [not share for share in shares]),
            ("chance", [c is None for c in chances]),
        ):
            if any(missing) and not all(missing):
                raise ConfigError(
                    f"Some analysts have a {what}, and others none.", hint="Give it to all or to none."
                )
        likely = tuple(chance for chance in chances if chance is not None)
        if likely and stream.has("p"):
            raise ConfigError("Who asks is drawn by stream.p or by the analysts' chances, not by both.")
        first = blame(
            "stream",
            lambda: Case(
                float(budget.amount("epsilon")),
                many,
                population,
                self._threshold(
                    budget.get("error_threshold", _NUMBER, "rows or a percentage"), population
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
            mechanisms = compare.texts("mechanisms")
            schedulers = compare.texts("schedulers", ["none"])
            for mechanism, scheduler in itertools.product(mechanisms, schedulers):
                label = mechanism if scheduler == "none" else f"{mechanism}, {scheduler}"
                found.append(blame("compare", lambda: Contestant(label, mechanism, scheduler)))  # noqa: B023
            if compare.flag("independent", default=False):
                found += [Contestant(f"{m}, independent", m, independent=True) for m in mechanisms]
        compare.end()
        for label, one in self._top.section("contestants").sections():
            mechanism = one.choice("mechanism", MECHANISMS)
            scheduler = one.choice("scheduler", tuple(SCHEDULERS), "none")
            independent = one.flag("independent", default=False)
            given = one.get("probabilities", list, "a list of numbers", None)
            chances = given and tuple(float(exact(value, one.where("probabilities"))) for value in given)
            settings = _settings(one)
            found.append(
                blame(
                    one.path,
                    lambda: Contestant(label, mechanism, scheduler, independent, chances, **settings),  # noqa: B023
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
            values[name] = section.get(name, list, "a list of values")
            if not values[name]:
                raise ConfigError(f"{section.where(name)} has no values.", hint="Write [0.1, 1, 10].")
        if "p" in values and first.chances is not None:
            raise ConfigError("sweep.p means nothing where analysts have chances of their own.")
        if "analysts" in values and list(self._top.section("analysts")):
            raise ConfigError("sweep.analysts means nothing where analysts have tables of their own.")
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
            told = tuple((key, float(parsed[key])) for key in chosen if key not in ("epsilon", "p"))
            cases.append(blame("sweep", lambda: replace(first, **parsed, swept=told)))  # noqa: B023
        return tuple(cases)


_NUMBER = (str, int, Decimal)


def _settings(section: Section) -> dict[str, Any]:
    """The mechanisms' settings that a table gives; it is read to its end."""
    found: dict[str, Any] = {}
    for key in ("seed_fraction", "query_budget"):
        if section.has(key):
            found[key] = float(section.amount(key))
    for key in ("updates", "threshold"):
        if section.has(key):
            found[key] = section.get(key, int, "a whole number")
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
    number = _number(section.get(key, _NUMBER, "a number", str(default)), section.where(key))
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
