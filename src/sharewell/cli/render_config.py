"""The output of `sharewell init` and `sharewell check`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TimeRemainingColumn
from rich.progress import Progress as ProgressBar
from rich.table import Table
from rich.text import Text

from sharewell.cli.render_plan import comparing
from sharewell.cli.terminal import make_table, print_items, print_json, sanitize
from sharewell.config import Config, read_config
from sharewell.config.check import Check, CheckReport, check_config, check_rows
from sharewell.config.forecast import (
    ErrorSummary,
    analysts_without_questions,
    assumed_questions,
    can_assume_questions,
    join_names,
)
from sharewell.config.planning import propose_settings, provisional_config
from sharewell.config.profile import Progress
from sharewell.config.propose import Proposal, propose
from sharewell.config.propose_view import TableFile, propose_view
from sharewell.config.rounding import decimal_text
from sharewell.config.service import SERVICE_OPTIONS
from sharewell.config.template import (
    EXPECTS,
    review_lines,
    toml_value,
    validate_target,
    write_proposal,
)
from sharewell.query.attribute import Attribute, Label
from sharewell.wire.text import budget_unit, format_cells, pluralize

#: Settings that name files.
FILES = ("ledger", "witness", "ledger_key", "access")
#: Reading a file of so many bytes shows its progress.
LARGE_FILE = 10_000_000
COLOURS = {"error": "red", "warning": "yellow", "note": "cyan"}


def show_init(
    source: str, out: str, force: bool, table: str | None = None, columns: str | None = None
) -> None:
    """Write a proposed configuration for a file, and print what to do next.

    Privacy: reads the rows, for the curator alone; what is taken from them is marked in the file.
    """
    target = Path(out)
    validate_target(Path(source), target, force=force)
    with _progress_of(Path(source)) as progress:
        proposal = propose(Path(source), target, table, _names(columns), progress)
    _plan_and_write(proposal, target, force)


def show_init_view(
    sources: Sequence[str],
    unit: str,
    out: str,
    force: bool,
    tables: Sequence[str] = (),
    columns: str | None = None,
) -> None:
    """Write a proposed configuration for a view with one row per person, and print what to do next.

    Privacy: reads the rows, for the curator alone; what is taken from them is marked in the file.
    """
    target, paths = Path(out), [Path(source) for source in sources]
    for path in paths:
        validate_target(path, target, force=force)
    files = [TableFile(path, table) for path in paths for table in tables or (None,)]
    with _progress_of(*paths) as progress:
        proposal = propose_view(files, unit, target, _names(columns), progress)
    _plan_and_write(proposal, target, force)


def _names(columns: str | None) -> list[str] | None:
    return None if columns is None else [name.strip() for name in columns.split(",")]


def _plan_and_write(proposal: Proposal, target: Path, force: bool) -> None:
    """Choose settings as `sharewell plan` does, and write the configuration."""
    with comparing(provisional_config(proposal, target)) as watch:
        settings = propose_settings(proposal, target, watch)
    text, out = write_proposal(proposal, settings, target, force=force), str(target)
    marked = len(review_lines(text))
    lines = [
        f"Wrote {out}: {len(proposal.described):,} of {pluralize(len(proposal.columns), 'column')} "
        f"are attributes, with {format_cells(proposal.cells)}."
    ]
    if proposal.view:
        names = ", ".join(table.name for table in proposal.view.tables)
        lines.append(f"They are columns of a view that has one row per person. Tables: {names}.")
    if proposal.measures:
        names = ", ".join(column.name for column in proposal.measures)
        lines.append(f"Measures, which SUM and AVG use: {names}.")
    left: dict[str, list[str]] = {}
    for column in proposal.columns:
        if column.attribute is None:
            left.setdefault(column.reason, []).append(column.name)
    lines += [f"Left out, since {reason}: {', '.join(names)}." for reason, names in left.items()]
    unit = proposal.identifier
    if unit and unit.repeats and not proposal.view:
        lines.append(
            f"Values of {unit.name} repeat. If they identify people, set privacy_unit: without it, only "
            "single rows are protected."
        )
    lines += [
        *settings.why,
        EXPECTS,
        f"{pluralize(marked, 'line is', 'lines are')} marked REVIEW: they contain values from your "
        "rows, and a domain must be public.",
        f"\nAfter the review:\n  sharewell check {out}\n  sharewell begin {out}",
        f"  sharewell token ann --config {out}\n  sharewell serve {out}",
    ]
    typer.echo(sanitize("\n".join(lines)))


@contextmanager
def _progress_of(*sources: Path) -> Iterator[Progress]:
    """Draw a progress bar on standard error while large files are read, at a terminal."""
    console = Console(stderr=True)
    large = sum(each.stat().st_size for each in sources if each.is_file()) >= LARGE_FILE
    if not large or not console.is_terminal or console.is_dumb_terminal:
        yield lambda done, total: None
        return
    columns = ("reading columns", BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with ProgressBar(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def show_check(path: str, as_json: bool, *further: Check) -> bool:
    """Print what a configuration does and what is wrong with it; return whether it can be served."""
    report = check_config(read_config(path), *further)
    if as_json:
        print_json(report.to_json())
    else:
        _print_report(report)
    return report.ok


def show_rows(path: str) -> None:
    """Print what the descriptions leave out of the table, which is secret."""
    found = check_rows(read_config(path))
    print_items(
        make_table(
            ("column", "rows left out", "undeclared values, most frequent first"),
            ((each.name, f"{each.left_out:,}", _undeclared(each.undeclared)) for each in found.columns),
            title=f"Rows: {found.rows:,}",
            caption="These are true numbers, without noise. Show them to no analyst.",
        )
    )


def _undeclared(values: Sequence[tuple[str | None, int]]) -> str:
    return ", ".join(
        f"{'NULL' if value is None else repr(sanitize(value))} in {pluralize(count, 'row')}"
        for value, count in values
    )


def _print_report(report: CheckReport) -> None:
    config = report.config
    verdict = "can be served" if report.ok else "cannot be served"
    print_items(
        _domain_table(config),
        *([_measure_table(config)] if config.domain.measures else []),
        _budget_table(report),
        _error_table(report),
        *([_tables_table(report)] if report.tables else []),
        _promise_table(report),
        _service_table(config),
        _file_table(config),
        *(
            Text.assemble((each.level, COLOURS[each.level]), f": {each.message} {each.hint}".rstrip())
            for each in report.diagnostics
        ),
        "",
        Text.assemble(
            (f"{config.path.name} {verdict}.", "bold"), " No row was read and nothing was spent."
        ),
    )


def _domain_table(config: Config) -> Table:
    return make_table(
        ("column", "type", "cells", "values"),
        (
            (each.name, type(each).__name__.lower(), f"{each.size:,}", _values(each))
            for each in config.domain.attributes
        ),
        title=f"{config.name}: {format_cells(config.domain.cells)}",
        caption="All of this is public. Other values are dropped, except in columns with `other`.",
    )


def _measure_table(config: Config) -> Table:
    has_products = bool(config.domain.products)
    return make_table(
        (
            *("measure", "column", "low", "high", "step", "rows without a value"),
            *(["multiplied with"] if has_products else []),
        ),
        (
            (
                each.name,
                each.column,
                *map(decimal_text, (each.low, each.high, each.step)),
                "counted, not summed" if each.nullable else "dropped",
                *([", ".join(config.domain.multiplied_with(each.name))] if has_products else []),
            )
            for each in config.domain.measures
        ),
        title="Measures, for SUM and AVG",
        caption="Values are rounded to a multiple of the step from low, then moved into the bounds."
        + (" A measure times itself is for STDDEV, times another for CORR." if has_products else ""),
    )


def _tables_table(report: CheckReport) -> Table:
    """Which tables of counts are free, and what the others cost, by the number of their columns."""
    rows = (
        (
            str(each.columns),
            f"{each.tables:,}",
            f"{each.free:,}",
            _extreme(each.best, each.best_table),
            _extreme(each.worst, each.worst_table),
            f"{each.others:,}",
            "-" if each.paid is None or not each.others else f"{each.paid:,.1f}",
        )
        for each in report.tables
    )
    return make_table(
        ("columns", "tables", "free", "best", "worst", "others", "if paid"),
        rows,
        title="Tables of counts: standard error of one cell, in rows",
        caption=_table_costs(report),
    )


def _extreme(error: float | None, table: tuple[str, ...]) -> str:
    return "-" if error is None else f"{error:,.1f} ({', '.join(table)})"


def _table_costs(report: CheckReport) -> str:
    price, limit = report.config.make.price, report.config.service.most_numbers
    lines = []
    if any(each.free for each in report.tables) and any(each.others for each in report.tables):
        lines.append("Free answers come from the seed. Those from other tables are NULL until paid for.")
    if price is not None:
        cost = f"{_number(price)} {budget_unit(report.config.budget.currency)}"
        lines.append(f"A paid table costs {cost}, whatever its size, and is then free for all.")
    if large := sum(each.too_large for each in report.tables):
        lines.append(
            f"{large:,} of the others have more than {limit:,} cells (service.most_numbers): ask for "
            "parts of them."
        )
    return "\n".join(lines)


def _values(attribute: Attribute) -> str:
    """The first and last values, the further cells and the bins."""
    known = attribute.values
    listed: list[Label] = [*known] if len(known) <= 4 else [known[0], known[1], "...", known[-1]]
    other = [f"other: {attribute.other}"] if attribute.other is not None else []
    null = ["NULL"] if attribute.nullable else []
    bins = [f"bins {name}" for name in attribute.bins_by_name]
    return "; ".join([", ".join(map(str, listed)), *other, *null, *bins])


def _budget_table(report: CheckReport) -> Table:
    config, price = report.config, report.config.make.price
    unit = budget_unit(config.budget.currency)
    rows = (
        (
            each.analyst,
            str(each.part),
            _number(each.share),
            _number(each.seed),
            "-" if price is None else _number(price),
            "depends on the data" if each.paid_questions is None else f"{each.paid_questions:,}",
        )
        for each in report.budgets
    )
    return make_table(
        ("analyst", "share", unit, "for the seed", "a paid question", "paid questions, about"),
        rows,
        title=f"Budget: {_budget_title(config)}",
        caption=_payment(config),
    )


def _budget_title(config: Config) -> str:
    budget = config.budget
    if budget.currency == "pure":
        return f"epsilon {_number(budget.epsilon)}, with Laplace noise"
    given = f"epsilon {_number(budget.epsilon)}, delta {_number(budget.delta)}"
    return f"{given}: rho {_number(budget.total)}, with Gaussian noise"


def _payment(config: Config) -> str:
    if config.make.pooled:
        return "All analysts pay from a common pot: the number of questions is for all together."
    if config.make.independent:
        return "Every analyst has an instance of their own, and shares nothing."
    return "What one analyst has paid for is free for all others."


def _number(value: Fraction) -> str:
    return f"{float(value):.4g}"


def _error_table(report: CheckReport) -> Table | str:
    config = report.config
    if not config.make.errors_are_public:
        return (
            f"The errors of {config.make.name} depend on the data, so they are not known before the "
            "questions are asked.\n"
        )
    names = tuple(analyst.name for analyst in config.analysts)
    rows = (
        (
            each.asked,
            "all analysts" if each.analysts == names else ", ".join(each.analysts),
            *_error_cells(each.free),
            *_error_cells(each.paid),
        )
        for each in report.forecasts
    )
    return make_table(
        ("question", "of", "free, from the seed", "useful", "paid", "useful"),
        rows,
        title=f"Standard errors of first answers, in rows; useful: at most {config.error_threshold:,g}",
        caption=f"The error of a sum is divided by its largest weight.{_assumptions(config)}",
    )


def _assumptions(config: Config) -> str:
    """Which analysts have no given questions, and what is assumed for them."""
    if not (names := analysts_without_questions(config)):
        return ""
    none = "" if can_assume_questions(config) else ". Here there are none"
    return (
        f"\nNo questions are given for {join_names(names)}; assumed: {assumed_questions(config)}{none}."
    )


def _error_cells(error: ErrorSummary | None) -> tuple[str, str]:
    if error is None or not math.isfinite(error.typical):
        return "not available", "-"
    return f"{error.typical:,.1f}", f"{error.within:.0%}"


def _promise_table(report: CheckReport) -> Table:
    config = report.config
    options = ", ".join(f"{key} {value}" for key, value in config.scheduler_options.items())
    title = f"Promises of {config.make.name}; scheduler: {config.scheduler_name}"
    rows = []
    last: tuple[str, ...] = ()
    for promise in report.promises:
        same = last and promise.assumptions == last
        rows.append(
            (promise.meaning, promise.status, "the same" if same else " ".join(promise.assumptions))
        )
        last = promise.assumptions
    return make_table(("what", "status", "if"), rows, title=f"{title} ({options})" if options else title)


def _file_table(config: Config) -> Table:
    paths = {name: getattr(config.service, name) for name in FILES} | {"witness": config.witness}
    if config.service.ledger_is_file:
        paths["ledger"] = Path(config.service.ledger)
    return make_table(
        ("file", "path"),
        ((name, _relative(config, path)) for name, path in paths.items() if path is not None),
        whole=("file", "path"),  # users copy them from here
        title="Files",
        caption=f"Relative paths begin at the folder of {config.path.name}.",
    )


def _service_table(config: Config) -> Table:
    rows = []
    for option in SERVICE_OPTIONS:
        value, help = getattr(config.service, option.name), option.help
        if option.name in FILES or value is None:
            continue
        if isinstance(value, tuple):
            value = ", ".join(value)
        elif isinstance(value, float):
            value = f"{value:g}"
        elif not isinstance(value, str):
            value = toml_value(value).replace("_", ",")
        if option.name == "tick" and not config.scheduler().paced:
            help = f"{help}; not used by this scheduler"
        rows.append((option.name, value, help))
    return make_table(("setting", "value", "what it does"), rows, title="Service")


def _relative(config: Config, path: Path | str) -> str:
    """A path relative to the folder of the file, where it lies below that; a URL as it is."""
    folder = config.path.parent.absolute()
    if isinstance(path, str) or not path.is_relative_to(folder):
        return str(path)
    below = path.relative_to(folder)
    return str(path if ".." in below.parts else below)
