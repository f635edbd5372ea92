"""Workloads by name: the families of questions that a STUDY.toml can ask."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from sharewell.config.section import Section, blame
from sharewell.errors import ConfigError
from sharewell.lab.streams import Asker, Workload, first_cells
from sharewell.query import workload
from sharewell.query.block import Block
from sharewell.query.domain import Domain
from sharewell.query.linear import LinearQuery


class Workloads:
    """The workloads that a file describes, and the families that need no description."""

    def __init__(self, section: Section, domain: Domain) -> None:
        self._domain = domain
        self._made = {name: self._make(name, one) for name, one in section.sections()}
        self._used: set[str] = set()

    def asker(self, names: Sequence[str], restrict: float, path: str) -> Asker:
        """Somebody who asks one of these workloads."""
        if not names:
            raise ConfigError(
                f"{path}.workloads is missing.", hint='Say what is asked: workloads = ["identity"].'
            )
        return Asker(tuple(self._find(name) for name in names), restrict)

    def end(self) -> None:
        """Refuse workloads that nobody asks."""
        if unused := sorted(set(self._made) - self._used):
            raise ConfigError(
                f"Nobody asks the workload {unused[0]}.",
                hint="Name it in stream.workloads or in an analyst's.",
            )

    def _find(self, name: str) -> Workload:
        self._used.add(name)
        if name not in self._made:
            if name not in FAMILIES:
                known = ", ".join([*self._made, *FAMILIES])
                raise ConfigError(f"There is no workload {name!r}.", hint=f"There are {known}.")
            self._made[name] = self._make(name, Section({"family": name}, f"workloads.{name}"))
        return self._made[name]

    def _make(self, name: str, section: Section) -> Workload:
        family = FAMILIES[section.choice("family", tuple(FAMILIES))]
        made = blame(section.path, lambda: _workload(name, family(self._domain, section)))
        if section.has("where"):
            condition = section.text("where")
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
        given = {key: section.get(key, int, "a whole number") for key in options if section.has(key)}
        return make(domain, section.text("attribute", None), **given)

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
        count = section.get("count", int, "a whole number", 10)
        seed = section.get("seed", int, "a whole number", 0)
        return make(domain, count, np.random.default_rng(seed))

    return family


def _sql(domain: Domain, section: Section) -> Block:
    return Block(domain, [query for text in section.texts("queries") for query in _asked(domain, text)])


#: The families of workloads by name.
FAMILIES: Mapping[str, Callable[[Domain, Section], Block | Workload]] = {
    "identity": lambda domain, _: workload.identity(domain),
    "total": lambda domain, _: workload.total(domain),
    "prefixes": _line(workload.prefixes),
    "ranges": _line(workload.ranges),
    "hierarchy": _line(workload.hierarchy, "branching"),
    "h2": _line(workload.h2),
    "marginal": lambda domain, section: workload.marginal(domain, section.texts("attributes")),
    "marginals": lambda domain, section: workload.marginals(
        domain, section.get("k", int, "a whole number", 1)
    ),
    "data-cube": lambda domain, _: workload.data_cube(domain),
    "race1": _races(workload.race1),
    "race2": _races(workload.race2),
    "race3": _races(workload.race3, "race"),
    "random-points": _drawn(workload.random_points),
    "random-ranges": _drawn(workload.random_ranges),
    "sql": _sql,
}
