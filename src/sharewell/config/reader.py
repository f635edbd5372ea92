"""Reading a configuration file: table by table, in the order of what depends on what."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any, get_args

from sharewell.config.config import Analyst, Config, expected_workloads
from sharewell.config.names import person_name, table_name
from sharewell.config.section import Section, blame, exact
from sharewell.config.service import read_service
from sharewell.config.toml_file import read_tables, read_text
from sharewell.errors import ConfigError
from sharewell.mechanism import seed as seeds
from sharewell.mechanism.base import Mechanism, Question
from sharewell.mechanism.cache_reconstruct import Answers, CacheReconstruct
from sharewell.mechanism.independent import Independent
from sharewell.mechanism.laplace import Laplace
from sharewell.mechanism.pmw import PrivateMultiplicativeWeights, Update
from sharewell.mechanism.strategy import Strategy
from sharewell.privacy.budget import Budget
from sharewell.privacy.curator import Curator
from sharewell.query.attribute import Attribute, Boolean, Category
from sharewell.query.block import Neighbours
from sharewell.query.domain import Domain
from sharewell.query.ordered import Binned, Date, Integer
from sharewell.sharing.plan import asked_together
from sharewell.sharing.scheduler import SCHEDULERS


def read_config(path: str | Path) -> Config:
    """Read a file; paths in it are relative to where it is."""
    path = Path(path)
    return parse_config(read_text(path, "sharewell.toml"), path)


def parse_config(text: str, path: Path = Path("sharewell.toml")) -> Config:
    """Read the text of a file."""
    return _Reader(read_tables(text)).config(path, text)


ATTRIBUTES: Mapping[str, tuple[type[Attribute], tuple[str, ...]]] = {
    "integer": (Integer, ("low", "high", "bins")),
    "binned": (Binned, ("cuts", "bins")),
    "category": (Category, ("categories", "bins")),
    "boolean": (Boolean, ()),
    "date": (Date, ("start", "end", "by", "bins")),
}

#: What the analysts are expected to ask, compiled when it is needed.
Expected = Callable[[], Mapping[str, Sequence[Question]]]

MECHANISMS = ("cache-reconstruct", "multiplicative-weights", "laplace")


#: The tables of a file.
TABLES = ("dataset", "attributes", "budget", "analysts", "mechanism", "scheduler", "service")


class _Reader:
    """Reads the tables of a file, in order of what depends on what."""

    def __init__(self, tables: dict[str, Any]) -> None:
        self._top = Section(tables, "")
        for name in TABLES:
            self._top.section(name)
        # First of all: of a table whose name has a slip, everything would seem to be missing.
        self._top.end()

    def config(self, path: Path, text: str) -> Config:
        dataset = self._top.section("dataset")
        name = table_name(dataset.text("name", "people"), dataset.where("name"))
        domain = self._domain()
        budget, threshold = self._budget(dataset)
        analysts = self._analysts(budget)
        scheduler, options = self._scheduler()
        config = Config(
            path=path,
            text=text,
            name=name,
            source=path.parent / dataset.text("source"),
            domain=domain,
            budget=budget,
            error_threshold=threshold,
            analysts=analysts,
            make=self._mechanism(
                domain, budget, dataset, partial(expected_workloads, domain, name, analysts)
            ),
            table=dataset.text("table", None),
            privacy_unit=dataset.text("privacy_unit", None),
            neighbours=dataset.choice("neighbours", get_args(Neighbours), "add-remove"),  # type: ignore[arg-type]
            scheduler_name=scheduler,
            scheduler_options=options,
            service=read_service(
                self._top.section("service"), path, name, [analyst.name for analyst in analysts]
            ),
        )
        dataset.end()
        blame("scheduler", config.scheduler)
        return config

    def _domain(self) -> Domain:
        section = self._top.section("attributes")
        attributes = [self._attribute(name, each) for name, each in section.sections()]
        if not attributes:
            raise ConfigError(
                "There are no attributes.",
                hint='Describe one: [attributes.age] with type = "integer", low = 0 and high = 85.',
            )
        return blame("attributes", lambda: Domain(attributes))

    def _attribute(self, name: str, section: Section) -> Attribute:
        kind, options = ATTRIBUTES[section.choice("type", tuple(ATTRIBUTES))]
        anything = (str, int, Decimal, bool, list, dict, dt.date)
        given = {
            key: section.get(key, anything, "a value") for key in (*options, "other") if section.has(key)
        }
        nullable = section.flag("nullable", default=False)
        section.end()
        return blame(section.path, lambda: kind(name, nullable=nullable, **given))

    def _budget(self, dataset: Section) -> tuple[Budget, float]:
        section = self._top.section("budget")
        epsilon = section.amount("epsilon")
        delta = section.amount("delta") if section.has("delta") else None
        threshold = self._threshold(section, dataset)
        section.end()
        if delta is None:
            return Budget.pure(epsilon), threshold
        return blame("budget", lambda: Budget.zcdp(epsilon, delta)), threshold

    def _threshold(self, section: Section, dataset: Section) -> float:
        """A number of rows, or a percentage of the declared population."""
        population = _population(dataset)
        value = section.get("error_threshold", (str, int, Decimal), 'a number of rows, or "1%"')
        if isinstance(value, str) and value.strip().endswith("%"):
            if population is None:
                raise ConfigError(
                    f"{section.where('error_threshold')} is a percentage, and nothing says of what.",
                    hint="Declare dataset.population, in public, or give a number of rows.",
                )
            part = exact(value.strip()[:-1].strip(), section.where("error_threshold"))
            return float(part * population / 100)
        try:
            return float(section.amount("error_threshold"))
        except ConfigError as error:
            hint = 'Write a number of rows such as 250, or a percentage such as "0.1%".'
            raise ConfigError(error.message, hint=hint) from None

    def _analysts(self, budget: Budget) -> tuple[Analyst, ...]:
        found = []
        known: dict[str, str] = {}
        for name, section in self._top.section("analysts").sections():
            person_name(name, "analysts")
            if name.casefold() in known:
                raise ConfigError(
                    f"analysts has {known[name.casefold()]!r} and {name!r}, which differ in case alone.",
                    hint="Give one of them another name.",
                )
            known[name.casefold()] = name
            part = section.amount("share")
            found.append(Analyst(name, part * budget.total, tuple(section.texts("expects", []))))
            section.end()
        parts = sum((analyst.share for analyst in found), Fraction(0)) / budget.total
        if not found:
            raise ConfigError(
                "There are no analysts.", hint='Name one: [analysts.ann] with share = "1/2".'
            )
        if parts > 1:
            raise ConfigError(
                f"The analysts' shares sum to {parts}, which is more than the whole budget.",
                hint="A share is a part of the budget: together they may be 1 at the most.",
            )
        return tuple(found)

    def _mechanism(
        self, domain: Domain, budget: Budget, dataset: Section, expected: Expected
    ) -> Callable[[Curator], Mechanism]:
        section = self._top.section("mechanism")
        name = section.choice("name", MECHANISMS, "cache-reconstruct")
        independent = section.flag("independent", default=False)
        make: Callable[[Curator], Mechanism]
        if name == "multiplicative-weights":
            make = partial(
                PrivateMultiplicativeWeights,
                population=_population(dataset),
                updates=section.get("updates", int, "a whole number", None),
                threshold=section.get("threshold", int, "a whole number of rows", None),
                update=section.choice("update", get_args(Update), "replay"),  # type: ignore[arg-type]
            )
        else:
            price = section.amount("query_budget", "1/100") * budget.total
            make = partial(Laplace, query_budget=price)
            if name == "cache-reconstruct":
                seed = section.text("seed", "identity")
                make = partial(
                    CacheReconstruct,
                    seed=blame("mechanism.seed", partial(_seed, seed, domain, expected)),
                    seed_fraction=section.part("seed_fraction", "1/2"),
                    query_budget=price,
                    answers=section.choice("answers", get_args(Answers), "estimate"),  # type: ignore[arg-type]
                    buy_seed_rows=section.flag("buy_seed_rows", default=False),
                )
        section.end()
        return partial(Independent, make=make) if independent else make

    def _scheduler(self) -> tuple[str, dict[str, Any]]:
        section = self._top.section("scheduler")
        name = section.choice("name", tuple(SCHEDULERS), "none")
        options: dict[str, Any] = {}
        if section.has("idle_after"):
            options["idle_after"] = float(section.amount("idle_after"))
        if section.has("probabilities"):
            chances = section.section("probabilities")
            options["probabilities"] = {key: chances.amount(key) for key in chances}
        if section.has("turns"):
            turns = section.section("turns")
            options["turns"] = {key: turns.get(key, int, "a whole number") for key in turns}
        section.end()
        return name, options


def _population(dataset: Section) -> int | None:
    """About how many rows there are, as everybody may know."""
    return dataset.whole("population", 1, 10**15) if dataset.has("population") else None


def _seed(name: str, domain: Domain, expected: Expected) -> Strategy:
    """A seed by its name; marginals come with how many columns they combine."""
    if found := re.fullmatch(r"marginals\((\d+)\)", name):
        return seeds.marginals(domain, int(found[1]))
    if name == "optimized":
        return seeds.optimized(domain, asked_together(domain, expected()))
    if name not in seeds.NAMED:
        raise ConfigError(
            f"mechanism.seed cannot be {name!r}.",
            hint=f"Choose one of {', '.join(seeds.NAMED)}, optimized, marginals(1), marginals(2).",
        )
    return seeds.NAMED[name](domain)
