"""Checks of a configuration: what follows from it, and what is wrong with it, before anything is spent.

Privacy: reads the names and types of the source's columns, and no row; spends nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, fields
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

from sqlglot import exp

from sharewell.config.config import Config
from sharewell.config.forecast import (
    MAX_SEED_ROWS,
    AnalystBudget,
    ErrorForecast,
    ErrorSummary,
    analyst_budgets,
    dry_run,
    forecast_errors,
)
from sharewell.config.rounding import decimal_text, round_grid
from sharewell.config.tables import TableSummary, marginal_parts, summarize_tables
from sharewell.config.template import review_lines
from sharewell.engine.base import Engine
from sharewell.engine.data_vector import MAX_ROWS
from sharewell.engine.inspection import RowInspection, inspect_rows
from sharewell.engine.vectorize import cell_counts
from sharewell.engine.view_tables import open_rows
from sharewell.errors import ConfigError, PrivacyError, SharewellError
from sharewell.mechanisms.marginal_seed import MarginalSeed
from sharewell.privacy.noise import MAX_SCALE
from sharewell.query.diagram import MAX_WEIGHT
from sharewell.query.domain import Domain
from sharewell.sharing.certificate import Promise, promises
from sharewell.sharing.closed_form import dry_curator, part_scales
from sharewell.sharing.plan import helps
from sharewell.wire.text import pluralize

#: A larger epsilon is worth a warning.
LARGE_EPSILON = 10
#: With more rows of a seed, the first start takes noticeably long.
MANY_ROWS = 1_000_000
#: Sums of more steps than this, over all rows, may overflow.
MAX_SUM = 2**62
#: How many line numbers are listed.
MAX_LISTED = 10


@dataclass(frozen=True)
class Diagnostic:
    """One remark; only an error keeps the dataset from being served."""

    level: Literal["error", "warning", "note"]
    message: str
    hint: str = ""

    @classmethod
    def from_error(cls, error: SharewellError) -> Diagnostic:
        """An error that was raised, as a diagnostic."""
        where = f" ({error.where})" if error.where else ""
        return cls("error", f"{error.message}{where}", error.hint)


#: One more check of a configuration.
Check = Callable[[Config], Iterable[Diagnostic]]


@dataclass(frozen=True)
class CheckReport:
    """A configuration with all that follows from it."""

    config: Config
    budgets: tuple[AnalystBudget, ...]
    forecasts: tuple[ErrorForecast, ...]
    promises: tuple[Promise, ...]
    tables: tuple[TableSummary, ...]
    diagnostics: tuple[Diagnostic, ...]

    @property
    def ok(self) -> bool:
        """Whether the dataset can be served."""
        return all(each.level != "error" for each in self.diagnostics)

    def to_json(self) -> dict[str, Any]:
        """The report as JSON data: amounts are exact strings; infinite and unknown values are null."""
        config, make = self.config, self.config.make
        budget = config.budget
        return {
            "ok": self.ok,
            "dataset": config.name,
            "cells": config.domain.cells,
            "columns": {each.name: each.size for each in config.domain.attributes},
            "measures": {
                each.name: {
                    **{key: decimal_text(getattr(each, key)) for key in ("low", "high", "step")},
                    **_products(each.name, config.domain),
                }
                for each in config.domain.measures
            },
            "budget": {
                name: _plain(getattr(budget, name)) for name in ("currency", "total", "epsilon", "delta")
            },
            "error_threshold": config.error_threshold,
            "mechanism": make.name,
            "query_budget": _plain(make.price),
            "errors_are_public": make.errors_are_public,
            "analysts": [_plain_fields(each) for each in self.budgets],
            "expected_errors": [
                {
                    "question": each.asked,
                    "analysts": list(each.analysts),
                    "free": _summary_json(each.free),
                    "paid": _summary_json(each.paid),
                }
                for each in self.forecasts
            ],
            "tables": [_plain_fields(each) for each in self.tables],
            "scheduler": config.scheduler_name,
            "promises": [_plain_fields(each) for each in self.promises],
            "service": _plain_fields(config.service) | {"witness": str(config.witness)},
            "findings": [_plain_fields(each) for each in self.diagnostics],
        }


def _plain_fields(record: Any) -> dict[str, Any]:
    return {each.name: _plain(getattr(record, each.name)) for each in fields(record)}


def _plain(value: Any) -> Any:
    return str(value) if isinstance(value, Fraction | Path) else value


def _summary_json(error: ErrorSummary | None) -> dict[str, float] | None:
    if error is None or not math.isfinite(error.typical):
        return None
    return {"standard_error": error.typical, "useful": error.within}


def check_config(config: Config, *further: Check) -> CheckReport:
    """Check a configuration; `further` checks run after those of the file and its source."""
    checks = (
        _check_file,
        _check_budget,
        check_settings,
        _check_scheduler,
        _check_source,
        _check_unit,
        *further,
    )
    found = [diagnostic for check in checks for diagnostic in check(config)]
    budgets = analyst_budgets(config)
    found += _check_means(config, budgets)
    forecasts: tuple[ErrorForecast, ...] = ()
    promised: tuple[Promise, ...] = ()
    tables: tuple[TableSummary, ...] = ()
    try:
        mechanism = dry_run(config)
        tables = summarize_tables(config)
        promised = promises(mechanism, config.scheduler())
        forecasts = forecast_errors(config, mechanism)
        found += _check_forecasts(config, forecasts)
    except ConfigError:
        raise
    except SharewellError as error:
        # Settings that were refused above need not be refused again.
        if not (isinstance(error, PrivacyError) and any(check_settings(config))):
            found.append(Diagnostic.from_error(error))
    return CheckReport(config, budgets, forecasts, promised, tables, tuple(found))


def require_valid(config: Config) -> None:
    """Refuse a configuration in which `check` finds errors."""
    errors = [each for each in check_config(config).diagnostics if each.level == "error"]
    if errors:
        hint = f"{errors[0].hint} `sharewell check {config.path}` lists all findings.".lstrip()
        raise ConfigError(errors[0].message, hint=hint)


def check_settings(config: Config) -> Iterator[Diagnostic]:
    """Refuse settings whose noise would exceed its limit."""
    yield from _check_measures(config)
    yield from _check_donations(config)


def _check_file(config: Config) -> Iterator[Diagnostic]:
    if marked := review_lines(config.text):
        lines = ", ".join(map(str, marked[:MAX_LISTED])) + (", ..." if len(marked) > MAX_LISTED else "")
        yield Diagnostic(
            "warning",
            f"{pluralize(len(marked), 'line is', 'lines are')} marked REVIEW: they may contain values "
            "from private rows.",
            f"Replace these by public values, and delete the marks "
            f"({'line' if len(marked) == 1 else 'lines'} {lines}).",
        )
    seed = config.make.seed_of(config.shares)
    if seed is not None and len(seed) > MANY_ROWS:
        yield Diagnostic(
            "note",
            f"Measuring the {len(seed):,} rows of the seed slows the first start, and the ledger stores "
            "them: four million took more than a minute and 100 MB.",
            "Use another seed, coarser bins or fewer columns.",
        )
    left = 1 - sum(config.shares.values()) / config.budget.total
    if left > 0:
        yield Diagnostic("note", f"{left} of the budget is left for analysts who join later.")


def _check_budget(config: Config) -> Iterator[Diagnostic]:
    epsilon = config.budget.epsilon
    if epsilon > LARGE_EPSILON:
        yield Diagnostic(
            "warning",
            f"An epsilon of {float(epsilon):g} protects little: an attacker who knows all other rows "
            "can become almost certain of the last one.",
            "Published statistics often use 1 to 5.",
        )


def _check_donations(config: Config) -> Iterator[Diagnostic]:
    """Refuse donations that are too small to measure the seed with, which would be skipped."""
    make = config.make
    if make.seed is None or not make.seed_fraction:
        return
    founders = [{name} for name in config.shares] if make.independent else [set(config.shares)]
    curator = dry_curator(
        config.domain, config.budget.currency, config.neighbours, config.max_rows_per_person
    )
    for names in founders:
        bill = {name: config.shares[name] * make.seed_fraction for name in sorted(names)}
        seed = make.seed.bought_by(bill)
        if len(seed) > MAX_SEED_ROWS:
            continue  # Refused for its size.
        donated = sum(bill.values(), Fraction(0))
        try:
            if isinstance(seed, MarginalSeed):
                part_scales(seed, donated, curator)
            else:
                curator.scales(seed, donated)
        except PrivacyError as error:
            who = f"of {min(names)}" if make.independent else "of all analysts"
            yield Diagnostic(
                "error",
                f"The donations {who} are too small to measure the seed: {error.message}",
                "Raise epsilon, the shares or mechanism.seed_fraction, or set seed_fraction = 0.",
            )


def _check_measures(config: Config) -> Iterator[Diagnostic]:
    """Propose a coarser step where sums might overflow, or their noise would exceed its limit."""
    if not config.domain.measures:
        return
    limit = min(_step_limits(config))
    for measure in config.domain.measures:
        # A row adds at most this many steps to a sum, or a replaced one this many.
        most = max(abs(measure.low), abs(measure.high))
        if config.neighbours == "replace-one":
            most = max(most, measure.high - measure.low)
        least = most / limit
        if measure.step < least:
            yield Diagnostic(
                "error",
                f"measures.{measure.name}: a step of {decimal_text(measure.step)} is too fine. Sums "
                "or their noise would exceed a limit.",
                f"Use {round_grid(measure.low, measure.high, least)}, or smaller bounds.",
            )

    for product in config.domain.product_vectors:
        most = Fraction(max(-product.lowest, product.highest))
        if config.neighbours == "replace-one":
            most = Fraction(product.highest - product.lowest)
        if most > limit:
            names = " and ".join(dict.fromkeys(each.name for each in product.factors))
            yield Diagnostic(
                "error",
                f"The noise of the products of {names} would exceed its limit.",
                "Raise mechanism.query_budget, or remove `square` and `products` of the measure.",
            )
            return


def _products(name: str, domain: Domain) -> dict[str, list[str]]:
    found = list(domain.multiplied_with(name))
    return {"products": found} if found else {}


def _step_limits(config: Config) -> Iterator[Fraction]:
    """The most steps that one row may add to a sum."""
    yield Fraction(MAX_WEIGHT)
    yield Fraction(MAX_SUM - 1, config.max_rows or MAX_ROWS)
    donated = sum(config.shares.values(), Fraction(0)) * config.make.seed_fraction
    costs = [
        config.make.price,
        *(part.weight * donated for part in marginal_parts(config.make.seed_of(config.shares))),
    ]
    if cost := min(filter(None, costs), default=None):
        # The scale is the sensitivity over the cost, or over the square root of twice the cost.
        pure = config.budget.currency == "pure"
        part = cost if pure else Fraction(math.sqrt(2 * cost))
        yield Fraction(MAX_SCALE) * part / 2 / config.max_rows_per_person


def _check_scheduler(config: Config) -> Iterator[Diagnostic]:
    if config.scheduler().strict:
        yield Diagnostic(
            "warning",
            "An analyst who neither asks nor says `done` keeps all others waiting.",
            "Set scheduler.idle_after, in seconds, or inform all analysts.",
        )


def _open(config: Config) -> Engine:
    """Open the columns that the configuration describes."""
    unit = () if config.privacy_unit is None else (config.privacy_unit,)
    summed = (measure.column for measure in config.domain.measures)
    return open_rows(
        config.rows,
        (*config.domain.names, *summed, *unit),
        privacy_unit=config.privacy_unit,
        table=config.table,
        csv_format=config.csv_format,
        timeout=config.statement_timeout,
    )


def check_rows(config: Config) -> RowInspection:
    """Read all rows, and count what each description leaves out.

    Privacy: none. For the curator alone, and neither stored nor served.
    """
    with closing(_open(config)) as engine:
        return inspect_rows(config.domain, engine, config.privacy_unit)


def _check_source(config: Config) -> Iterator[Diagnostic]:
    """Check the source's columns and their types; no row is read."""
    try:
        with closing(_open(config)) as engine:
            # Building the statement validates the columns' types; it is never run.
            statement = cell_counts(config.domain, engine, config.privacy_unit)
            if config.view is not None:
                # The database plans the joins of the view; no row passes.
                engine.fetch(statement.where(exp.false()))
    except SharewellError as error:
        yield Diagnostic.from_error(error)


def _check_unit(config: Config) -> Iterator[Diagnostic]:
    if config.privacy_unit is None:
        yield Diagnostic(
            "note",
            "Every row counts as a different person.",
            "If a person can have several rows, set dataset.privacy_unit: otherwise only single rows "
            "are protected.",
        )
    elif (most := config.max_rows_per_person) > 1:
        yield Diagnostic(
            "note",
            f"Answers count rows: at most {most} of each {config.privacy_unit}, chosen by a keyed hash. "
            f"Every standard error is {most} times that of one row per person.",
            "Lower dataset.max_rows_per_person if few people have so many rows.",
        )
    else:
        yield Diagnostic(
            "note",
            f"Answers count people, not rows: of each {config.privacy_unit}, one row that a keyed hash "
            "chooses.",
            "To count several rows of a person, set dataset.max_rows_per_person.",
        )


def _check_means(config: Config, budgets: Iterable[AnalystBudget]) -> Iterator[Diagnostic]:
    if config.make.seed_fraction == 1:
        yield Diagnostic(
            "note",
            "Every share is spent on the seed: all answers are free, and none can be paid for.",
            "Lower mechanism.seed_fraction to leave something for questions that were not expected.",
        )
        return
    for each in budgets:
        if each.paid_questions == 0 and config.make.price is not None:
            yield Diagnostic(
                "warning",
                f"{each.analyst} cannot pay for a single question.",
                "Lower mechanism.query_budget or mechanism.seed_fraction.",
            )


def _check_forecasts(config: Config, forecasts: Iterable[ErrorForecast]) -> Iterator[Diagnostic]:
    pairs = [(each.free, each.paid) for each in forecasts]
    best = [error.typical for pair in pairs for error in pair if error is not None]
    if pairs and min(best, default=float("inf")) > config.error_threshold:
        yield Diagnostic(
            "warning",
            "No answer is expected to have a standard error within budget.error_threshold, "
            f"{config.error_threshold:,g} rows.",
            "Raise the threshold or epsilon, describe fewer cells, or run `sharewell plan`.",
        )
    both = [(free.typical, paid.typical) for free, paid in pairs if free and paid]
    if config.make.seed_fraction < 1 and both and not helps(both):
        yield Diagnostic(
            "warning",
            "A paid answer is hardly more precise than the free one from the seed.",
            "Raise mechanism.query_budget, or run `sharewell plan`.",
        )
