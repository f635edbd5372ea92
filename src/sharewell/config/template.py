"""The text of a proposed configuration: every key with its meaning, every guess marked for review."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

from sharewell.config.config import BUDGET_OPTIONS, DATASET_OPTIONS, parse_config
from sharewell.config.mechanism import SCHEDULER_OPTIONS
from sharewell.config.propose import (
    MARK,
    Line,
    Proposal,
    ProposedColumn,
    ProposedView,
    looks_like_identifier,
    quoted,
)
from sharewell.config.service import SERVICE_OPTIONS
from sharewell.config.view import VIEW_TABLE_OPTIONS
from sharewell.errors import ConfigError
from sharewell.mechanisms.cache_reconstruct import CacheReconstruct
from sharewell.mechanisms.seed_planner import default_error
from sharewell.options import Option
from sharewell.privacy.budget import Budget, Currency
from sharewell.query.attribute import Integer
from sharewell.query.domain import Domain
from sharewell.schedulers.registry import SCHEDULERS, RoundRobin

#: The column of comments, and the maximum lengths of a line of list items and of any other line.
COMMENT_AT, MAX_LIST_LINE, MAX_LINE = 34, 100, 116
#: With more cells, the number of rows needs a limit, and the noise is Gaussian in any case.
MANY_CELLS = 1_000_000
#: The part of a share for the seed, and how many other questions the rest pays for, by currency.
SEED_FRACTIONS: Mapping[Currency, tuple[Fraction, int]] = {
    "pure": (Fraction(3, 4), 4),
    "zcdp": (Fraction(9, 10), 8),
}
#: The delta of a small population; that of a larger one is below one in so many rows.
DELTA_DIGITS = 6
#: What is proposed to be spent, and how many percent of the population an error may be.
EPSILON, PERCENT = "1", 1

_STRINGS = re.compile(r'"(?:[^"\\]|\\.)*"|\'[^\']*\'')

HEAD = """\
# Proposed by `sharewell init`. Review every line before use.
#
# The domain must be public: every analyst sees the values a column may have and the bounds of its
# numbers, and nothing protects them. Lines that end with a REVIEW comment were guessed from your
# private rows. Replace their values by public ones, from a codebook or the law, and delete the
# comment. `sharewell check` counts the marks that are left.
#
# Rows with a value that is not described here are silently dropped, unless the column has `other`.
"""

MAX_ROWS_COMMENT = "the rows, with room for more; write a public limit"

VIEW_COMMENT = "the first table says who is counted; add what analysts need, with one row a person"

WHY_DELTA = """\
# There are many tables to measure. With a delta the noise is Gaussian, and grows with the square root
# of their number; without it, with their number.
"""

WHY_SEED = """\
{noise} noise and a planned seed suit tables by one and two columns best here. About {within} of their
counts are free and within {threshold} rows; the rest of a share pays for {questions} other questions.
List what your analysts expect to ask (`expects`), and run `sharewell plan`.
"""

MEASURES = """\
# Measures: the columns whose values are summed by SUM and AVG; above, the same columns are in bins.
# `square = true` adds STDDEV and VARIANCE, and `products = ["another"]` CORR with another measure.
"""

ANALYSTS = (
    ("ann", "2/5", "fraction of the budget; the rest is kept for analysts who join later"),
    ("ben", "2/5", "here 1/5 is kept"),
)

#: Examples for columns that are left out.
EXAMPLES = {
    "integer": ("low = 0", "high = 100"),
    "binned": ("cuts = [0, 10, 20, 30]",),
    "category": ('categories = ["one", "another"]',),
    "boolean": (),
    "date": ("start = 2020-01-01", "end = 2029-12-31", 'by = "year"'),
}
TYPES = {
    "integer": "whole numbers, both bounds included",
    "binned": "numbers, known only by their bin",
    "category": "texts, exactly as written",
    "boolean": "true and false",
    "date": "days, known only by their period",
}


def write_proposal(proposal: Proposal, target: Path, *, force: bool) -> str:
    """Write the proposed configuration, and return its text."""
    text = proposal_text(proposal)
    # Never write a file that cannot be read.
    parse_config(text, target)
    try:
        with target.open("w" if force else "x", encoding="utf-8", newline="\n") as file:
            file.write(text)
    except FileExistsError:
        raise _exists(target) from None
    except (OSError, UnicodeEncodeError) as error:
        reason = getattr(error, "strerror", None) or "the text cannot be encoded"
        raise ConfigError(f"Cannot write {str(target)!r}: {reason}.") from None
    return text


def validate_target(source: Path, target: Path, *, force: bool) -> None:
    """Refuse to overwrite the rows, or a file without `force`; a missing source is for `propose`."""
    if target.is_dir():
        raise ConfigError(f"{str(target)!r} is a directory.", hint="Name the file to write.")
    if not (target.exists() and source.exists()):
        return
    if target.samefile(source):
        raise ConfigError(
            f"{str(target)!r} is the source: it would be overwritten.", hint="Write to another file."
        )
    if not force:
        raise _exists(target)


def _exists(target: Path) -> ConfigError:
    return ConfigError(
        f"{str(target)!r} already exists.", hint="Name another file, or use --force to replace it."
    )


def proposal_text(proposal: Proposal) -> str:
    """The whole file."""
    settings = _settings(proposal)
    parts = [
        HEAD,
        _table("dataset", _dataset(proposal)),
        *(_view_tables(proposal.view) if proposal.view else ()),
        _budget(proposal, settings),
        _sizes(proposal),
        *(_attribute(column) for column in proposal.columns),
        *(_measures(proposal) if proposal.measures else ()),
        *(
            _table(f"analysts.{name}", [Line("share", f'"{share}"', why)])
            for name, share, why in ANALYSTS
        ),
        f"# expects = [{quoted(f'SELECT COUNT(*) FROM {proposal.name}')}]"  # noqa: S608
        "  # questions they are likely to ask, for `sharewell plan`\n",
        textwrap.indent(_why_seed(proposal, settings), "# ") + _table("mechanism", _mechanism(settings)),
        _table("scheduler", _scheduler()),
        _table("service", _service(proposal)),
    ]
    return "\n".join(parts)


def reason_for(proposal: Proposal) -> str:
    """Why the proposed settings were chosen, and what they buy."""
    return _why_seed(proposal, _settings(proposal)).rstrip()


def review_lines(text: str) -> list[int]:
    """The one-based numbers of the lines that are marked for review."""
    lines = enumerate(text.split("\n"), start=1)
    return [at for at, line in lines if re.search(rf"#.*\b{MARK}", _STRINGS.sub('""', line))]


def toml_value(value: Any) -> str:
    """A default as TOML."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return f"[{', '.join(map(toml_value, value))}]"
    if isinstance(value, int):
        return f"{value:_}"
    return quoted(value) if isinstance(value, str) else str(value)


def _declared(options: Iterable[Option], values: Mapping[str, str]) -> Iterator[Line]:
    """Lines for some options, with their declared meaning; a key that begins with # is a comment."""
    known = {option.name: option for option in options}
    for key, value in values.items():
        yield Line(key, value, known[key.removeprefix("# ")].help)


def _key(name: str) -> str:
    """A TOML key, quoted where it must be."""
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name, re.ASCII) else quoted(name)


def _table(name: str, lines: Iterable[Line]) -> str:
    return "\n".join([f"[{name}]", *(_write(*line) for line in lines), ""])


def _write(name: str, value: str, comment: str) -> str:
    """One key with its comment; a long list is wrapped."""
    line = f"{name} = {value}"
    if not comment:
        return line
    if len(line) + len(comment) <= MAX_LINE or not value.startswith("["):
        return f"{line:<{COMMENT_AT - 2}}  # {comment}"
    return f"{f'{name} = [':<{COMMENT_AT - 2}}  # {comment}\n{_wrap_list(value)}\n]"


def _wrap_list(value: str) -> str:
    lines, line = [], " "
    for item in re.findall(r'"(?:[^"\\]|\\.)*"|[^\s,\[\]]+', value):
        if len(line) + len(item) > MAX_LIST_LINE and line.strip():
            lines.append(line)
            line = " "
        line += f" {item},"
    return "\n".join([*lines, line])


def _dataset(proposal: Proposal) -> Iterator[Line]:
    yield from _rows(proposal) if proposal.view is None else _view(proposal.name, proposal.view)
    rows = f"{proposal.population:_}"
    yield Line("population", rows, f"{MARK} rounded number of rows; write a public one")
    if is_wide(proposal):
        yield Line("max_rows", f"{proposal.max_rows:_}", f"{MARK} {MAX_ROWS_COMMENT}")
    yield Line("neighbours", '"add-remove"', "what one person can change: add-remove or replace-one")


def _rows(proposal: Proposal) -> Iterator[Line]:
    """The lines of a single table."""
    values = {"name": quoted(proposal.name), "source": quoted(proposal.source)}
    if proposal.table is not None:
        values["table"] = quoted(proposal.table)
    yield from _declared(DATASET_OPTIONS, values)
    units = [column for column in proposal.columns if looks_like_identifier(column.name)]
    if units and units[0].repeats:
        why = "values repeat: if they identify people, uncomment this, or only single rows are protected"
    else:
        why = "column that identifies a person, if one person may have several rows"
    yield Line("# privacy_unit", quoted(units[0].name if units else "person"), f"{MARK} {why}")


def _view(name: str, view: ProposedView) -> Iterator[Line]:
    """The lines of a person view."""
    values = {"name": quoted(name), "privacy_unit": quoted(view.unit)}
    yield from _declared(DATASET_OPTIONS, values)
    yield Line("view", _text_block(view.text), f"{MARK} {VIEW_COMMENT}")


def _view_tables(view: ProposedView) -> Iterator[str]:
    for each in view.tables:
        values = {"source": quoted(each.source), "unit": quoted(each.unit)}
        if each.table is not None:
            values["table"] = quoted(each.table)
        yield _table(f"tables.{_key(each.name)}", _declared(VIEW_TABLE_OPTIONS, values))


def _text_block(text: str) -> str:
    """A TOML string of several lines, with the quotes of SQL as they are."""
    lines = (quoted(line)[1:-1].replace('\\"', '"') for line in text.split("\n"))
    block = "\n".join(lines).replace('""', '"\\"')
    return f'"""\n{block}\n"""'


def is_wide(proposal: Proposal) -> bool:
    """Whether there are too many cells to measure each of them."""
    return proposal.cells > MANY_CELLS


class _Settings(NamedTuple):
    """The currency for one- and two-way tables, and the root mean square error of those."""

    currency: Currency
    error: float


def _settings(proposal: Proposal) -> _Settings:
    """The better currency; whatever is measured counts, and not what the rows are."""
    sizes = [attribute.cells for _, attribute in proposal.described]
    domain = Domain([Integer(f"column {at}", 0, size - 1) for at, size in enumerate(sizes)])
    shares = sum((Fraction(share) for _, share, _ in ANALYSTS), Fraction(0))
    budgets = [Budget.zcdp(EPSILON, _delta(proposal))]
    budgets += [] if is_wide(proposal) else [Budget.pure(EPSILON)]
    found = [
        _Settings(
            budget.currency,
            default_error(domain, budget.currency, float(budget.total * shares * fraction)),
        )
        for budget in budgets
        for fraction, _ in [SEED_FRACTIONS[budget.currency]]
    ]
    return min(found, key=lambda each: each.error)


def _delta(proposal: Proposal) -> str:
    return f"1e-{max(DELTA_DIGITS, len(str(proposal.population)))}"


def _budget(proposal: Proposal, settings: _Settings) -> str:
    values = {"epsilon": EPSILON, "# delta": _delta(proposal), "error_threshold": f'"{PERCENT}%"'}
    if settings.currency == "pure":
        return _table("budget", _declared(BUDGET_OPTIONS, values))
    values = {key.removeprefix("# "): value for key, value in values.items()}
    return WHY_DELTA + _table("budget", _declared(BUDGET_OPTIONS, values))


def _sizes(proposal: Proposal) -> str:
    """A comment on the number of cells."""
    sizes = [f"{_key(name)} {attribute.cells:,}" for name, attribute in proposal.described]
    cells = f"{proposal.cells:,}" if proposal.cells < 10**12 else f"About {proposal.cells:.1e}"
    head = f"# {cells} cells, the product of: "
    lines, line = [], head
    for size in sizes:
        if len(line) + len(size) > MAX_LIST_LINE and line != head:
            lines.append(line.rstrip())
            line = "#   "
        line += f"{size}, "
    lines.append(line.rstrip(", ") + ".")
    if left := len(proposal.columns) - len(sizes):
        are, each = ("is", "") if left == 1 else ("are", "each ")
        lines.append(
            f"# {left:,} of {len(proposal.columns):,} columns {are} left out, {each}with the reason."
        )
    lines.append("# Fewer and coarser columns give more precise answers.")
    return "\n".join([*lines, ""])


def _attribute(column: ProposedColumn) -> str:
    name = _key(column.name)
    if column.attribute is None:
        example = [f"[attributes.{name}]", f"type = {quoted(column.type)}", *EXAMPLES[column.type]]
        head = f"# {name} is left out: {column.reason}. To use it, describe it:"
        return "\n# ".join([head, *example]) + "\n"
    attribute = column.attribute
    comments = [f"# {attribute.comment}"] if attribute.comment else []
    lines = (Line("type", quoted(attribute.type), TYPES[attribute.type]), *attribute.lines)
    return "\n".join([*comments, _table(f"attributes.{name}", lines)])


def _measures(proposal: Proposal) -> Iterator[str]:
    yield MEASURES
    for column in proposal.measures:
        yield _table(f"measures.{_key(column.name)}", column.measure)


def _why_seed(proposal: Proposal, settings: _Settings) -> str:
    noise = "Laplace" if settings.currency == "pure" else "Gaussian"
    _, questions = SEED_FRACTIONS[settings.currency]
    threshold = proposal.population * PERCENT / 100
    within = math.erf(threshold / (settings.error * math.sqrt(2)))
    return WHY_SEED.format(
        noise=noise,
        # Few errors are the root mean square one: less than all are within.
        within=f"{min(within, 0.99):.0%}",
        threshold=f"{threshold:,g}",
        questions=questions,
    )


def _mechanism(settings: _Settings) -> Iterator[Line]:
    fraction, questions = SEED_FRACTIONS[settings.currency]
    least = min(Fraction(share) for _, share, _ in ANALYSTS)
    price = least * (1 - fraction) / questions
    yield Line("name", quoted(CacheReconstruct.key), "no analyst is worse off for sharing")
    values = {"seed": '"planned"', "seed_fraction": f'"{fraction}"', "query_budget": f'"{price}"'}
    yield from _declared(CacheReconstruct.options, values)


def _scheduler() -> Iterator[Line]:
    (name,) = SCHEDULER_OPTIONS
    yield Line("name", quoted(name.default), f"{name.help}: {', '.join(SCHEDULERS)}")
    yield from _declared(RoundRobin.options, {"# idle_after": "60"})


def _service(proposal: Proposal) -> Iterator[Line]:
    for option in SERVICE_OPTIONS:
        if option.default is None and "NAME" not in option.unset:
            continue
        default = (
            option.unset.replace("NAME", proposal.name) if option.default is None else option.default
        )
        yield Line(option.name, toml_value(default), option.help)
