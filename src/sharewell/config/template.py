"""The text of a proposed configuration: every key with its meaning, every guess marked for review."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

from sharewell.config.config import BUDGET_OPTIONS, DATASET_OPTIONS, parse_config
from sharewell.config.forecast import delta_for
from sharewell.config.mechanism import SCHEDULER_OPTIONS
from sharewell.config.propose import (
    MARK,
    Line,
    Proposal,
    ProposedColumn,
    ProposedView,
    quoted,
)
from sharewell.config.service import SERVICE_OPTIONS
from sharewell.config.view import VIEW_TABLE_OPTIONS
from sharewell.errors import ConfigError
from sharewell.mechanisms.cache_reconstruct import CacheReconstruct
from sharewell.options import Option
from sharewell.schedulers.registry import SCHEDULERS
from sharewell.schedulers.round_robin import RoundRobin
from sharewell.wire.text import format_cells

#: The column of comments, and the maximum lengths of a line of list items and of any other line.
COMMENT_AT, MAX_LIST_LINE, MAX_LINE = 34, 100, 116
#: With more cells, the number of rows needs a limit.
MANY_CELLS = 1_000_000
#: What is proposed to be spent.
EPSILON = "1"

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

VIEW_COMMENT = "the first table says who is counted; add what analysts need, with one row per person"

WHY_DELTA = """\
# There are many tables to measure. With a delta the noise is Gaussian, and grows with the square root
# of their number; without it, with their number.
"""

EXPECTS = "List what your analysts expect to ask (`expects`), and run `sharewell plan`."

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


class Settings(NamedTuple):
    """The proposed noise and settings of the mechanism, and why; by default, everything on the seed."""

    #: For Gaussian noise.
    delta: str | None = None
    seed: str = "planned"
    seed_fraction: Fraction = Fraction(1)
    #: As a fraction of the budget.
    query_budget: Fraction = Fraction(1, 100)
    #: The largest error of a useful answer, in percent of the population.
    percent: int = 1
    #: Why these, and what they buy: a sentence or two each.
    why: tuple[str, ...] = ()


def write_proposal(proposal: Proposal, settings: Settings, target: Path, *, force: bool) -> str:
    """Write the proposed configuration, and return its text."""
    text = proposal_text(proposal, settings)
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


def proposal_text(proposal: Proposal, settings: Settings) -> str:
    """The whole file."""
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
        _why(settings) + _table("mechanism", _mechanism(settings)),
        _table("scheduler", _scheduler()),
        _table("service", _service(proposal)),
    ]
    return "\n".join(parts)


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
    unit = proposal.identifier
    if unit and unit.repeats:
        why = "values repeat: if they identify people, uncomment this, or only single rows are protected"
    else:
        why = "column that identifies a person, if one person may have several rows"
    yield Line("# privacy_unit", quoted(unit.name if unit else "person"), f"{MARK} {why}")


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


def _budget(proposal: Proposal, settings: Settings) -> str:
    delta, key = settings.delta, "delta"
    if delta is None:
        delta, key = delta_for(proposal.population), "# delta"
    values = {"epsilon": EPSILON, key: delta, "error_threshold": f'"{settings.percent}%"'}
    table = _table("budget", _declared(BUDGET_OPTIONS, values))
    return table if settings.delta is None else WHY_DELTA + table


def _sizes(proposal: Proposal) -> str:
    """A comment on the number of cells."""
    sizes = [f"{_key(name)} {attribute.cells:,}" for name, attribute in proposal.described]
    cells = format_cells(proposal.cells)
    head = f"# {cells[0].upper()}{cells[1:]}, the product of: "
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


def _why(settings: Settings) -> str:
    """A comment on the settings of the mechanism."""
    lines = [line for each in (*settings.why, EXPECTS) for line in textwrap.wrap(each, MAX_LIST_LINE)]
    return "".join(f"# {line}\n" for line in lines)


def _mechanism(settings: Settings) -> Iterator[Line]:
    yield Line("name", quoted(CacheReconstruct.key), "no analyst is worse off for sharing")
    values = {
        "seed": quoted(settings.seed),
        "seed_fraction": quoted(str(settings.seed_fraction)),
        "query_budget": quoted(str(settings.query_budget)),
    }
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
