"""The text of a proposed configuration: each setting with what it does, each guess to be reviewed."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from sharewell.config.guess import Guess, Setting, looks_like_identifier, quoted

#: What begins a comment on a line that holds something taken from rows.
MARK = "REVIEW:"

#: Where comments begin, if the line is not longer; how long a line of a list, or a whole line, may be.
COMMENT_AT, WIDTH, LONGEST_LINE = 34, 100, 116

#: The seed measures every cell alone up to so many cells, and else the columns one by one too.
FEW_CELLS = 1_000

_STRINGS = re.compile(r'"(?:[^"\\]|\\.)*"|\'[^\']*\'')

HEAD = """\
# A proposal by `sharewell init`: read every line before you use it.
#
# A domain must be public. Which values a column may have, and how far its numbers reach, is told to
# every analyst, and nothing protects it. Some lines below were guessed from your private rows; each
# ends with a REVIEW comment. Replace what it holds by what everybody may know without the data, such
# as a codebook or the law, and then delete the comment. `sharewell check` counts those that are left.
#
# Rows whose value is not described here are left out, silently, unless the column has `other`.
"""

BUDGET = (
    ("epsilon", "1", "the whole privacy budget of this table, for good"),
    ("# delta", "1e-6", "with a delta it is spent as zCDP, with Gaussian noise"),
    (
        "error_threshold",
        '"1%"',
        "how far off a useful answer may be: rows, or % of population",
    ),
)

ANALYSTS = (
    ("ann", "2/5", "a part of the budget; what all leave over is kept for those who join later"),
    ("ben", "2/5", "here 1/5 is kept"),
)

SCHEDULER = (
    ("name", '"none"', "whose question is next: none, round-robin, weighted-round-robin, randomized"),
    ("# idle_after", "60", "seconds of silence after which a rotation goes on without somebody"),
)

SERVICE = (
    ("curators", '["curator"]', "who may see the ledger, take in analysts and pause the service"),
    ("release_every", "0.01", "seconds between two moments at which answers are released"),
    ("requests_per_second", "50", "how fast one token may ask"),
    ("most_waiting", "100", "how many questions of one analyst may wait"),
    ("most_numbers", "10_000", "how many numbers one question may ask for"),
    ("certificate", "true", "whether the fairness certificate is kept up while it runs"),
    ("tick", "0.05", "seconds between two turns of the randomized scheduler"),
)


@dataclass(frozen=True)
class Proposal:
    """What is proposed for one source."""

    name: str
    source: str
    table: str | None
    #: About how many rows there are, rounded.
    population: int
    guesses: tuple[Guess, ...]

    @property
    def described(self) -> tuple[Guess, ...]:
        """The columns that become attributes."""
        return tuple(guess for guess in self.guesses if guess.forms)

    @property
    def cells(self) -> int:
        """How many cells the domain has."""
        return math.prod(guess.forms[0].cells for guess in self.described)


def proposal_text(proposal: Proposal) -> str:
    """The whole file."""
    parts = [
        HEAD,
        _table("dataset", _dataset(proposal)),
        _table("budget", BUDGET),
        _sizes(proposal),
        *(_attribute(guess) for guess in proposal.guesses),
        *(_table(f"analysts.{name}", [("share", f'"{share}"', why)]) for name, share, why in ANALYSTS),
        _expects(proposal),
        _table("mechanism", _mechanism(proposal)),
        _table("scheduler", SCHEDULER),
        _table("service", _service(proposal)),
    ]
    return "\n".join(parts)


def marks(text: str) -> list[int]:
    """The numbers of the lines that are marked for review, the first line being 1."""
    lines = enumerate(text.split("\n"), start=1)
    return [at for at, line in lines if re.search(rf"#.*\b{MARK}", _STRINGS.sub('""', line))]


def key(name: str) -> str:
    """A key of TOML: bare where that is possible, else in quotes."""
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name, re.ASCII) else quoted(name)


def _table(name: str, lines: Iterable[tuple[str, str, str]]) -> str:
    return "\n".join([f"[{name}]", *(_line(*line) for line in lines), ""])


def _line(name: str, value: str, comment: str) -> str:
    """One setting with its comment; a long list takes a line for every few of its items."""
    line = f"{name} = {value}"
    if not comment:
        return line
    if len(line) + len(comment) <= LONGEST_LINE or not value.startswith("["):
        return f"{line:<{COMMENT_AT - 2}}  # {comment}"
    return f"{f'{name} = [':<{COMMENT_AT - 2}}  # {comment}\n{_folded(value)}\n]"


def _folded(value: str) -> str:
    """The items of a list, on several lines."""
    lines, line = [], " "
    for item in re.findall(r'"(?:[^"\\]|\\.)*"|[^\s,\[\]]+', value):
        if len(line) + len(item) > WIDTH and line.strip():
            lines.append(line)
            line = " "
        line += f" {item},"
    return "\n".join([*lines, line])


def _dataset(proposal: Proposal) -> Iterator[tuple[str, str, str]]:
    yield "name", quoted(proposal.name), "the table's name in SQL"
    yield "source", quoted(proposal.source), "where the rows are, relative to this file"
    if proposal.table is not None:
        yield "table", quoted(proposal.table), "the table of that database"
    units = [guess for guess in proposal.guesses if looks_like_identifier(guess.name)]
    unit = quoted(units[0].name if units else "person")
    if units and units[0].repeats:
        why = "the same come again: if they are people's, remove the #, or only each row is kept private"
    else:
        why = "whose row it is, if one person may have several"
    yield "# privacy_unit", unit, f"{MARK} {why}"
    rows = f"{proposal.population:_}"
    yield "population", rows, f"{MARK} rounded number of rows; write one that everybody may know"
    yield "neighbours", '"add-remove"', "what one person can change: add-remove, or replace-one"


def _sizes(proposal: Proposal) -> str:
    """What is public about each column, and how many cells that makes."""
    sizes = [f"{key(guess.name)} {guess.forms[0].cells:,}" for guess in proposal.described]
    left = len(proposal.guesses) - len(sizes)
    told = f"# {proposal.cells:,} cells, the product of: "
    lines, line = [], told
    for size in sizes:
        if len(line) + len(size) > WIDTH and line != told:
            lines.append(line.rstrip())
            line = "#   "
        line += f"{size}, "
    lines.append(line.rstrip(", ") + ".")
    if left:
        lines.append(f"# {left:,} of {len(proposal.guesses):,} columns are left out; each says why.")
    lines.append("# Fewer cells mean more precise answers: coarser bins, fewer columns.")
    return "\n".join([*lines, ""])


def _attribute(guess: Guess) -> str:
    name = key(guess.name)
    if not guess.forms:
        example = [f"[attributes.{name}]", f"type = {quoted(guess.type)}", *EXAMPLES[guess.type]]
        return (
            "\n# ".join([f"# {name} is left out: {guess.reason}. To use it, describe it:", *example])
            + "\n"
        )
    form = guess.forms[0]
    lines = [("type", quoted(form.type), TYPES[form.type]), *map(_reviewed, form.settings)]
    head = f"# {MARK} {form.review}\n" if form.review else ""
    return head + _table(f"attributes.{name}", lines)


#: How a column that was left out may be described, by its type.
EXAMPLES = {
    "integer": ("low = 0", "high = 100"),
    "binned": ("cuts = [0, 10, 20, 30]",),
    "category": ('categories = ["one", "another"]',),
    "date": ("start = 2020-01-01", "end = 2029-12-31", 'by = "year"'),
}

TYPES = {
    "integer": "whole numbers, both bounds included",
    "binned": "numbers, known by their bin only",
    "category": "texts, letter by letter",
    "boolean": "true and false",
    "date": "days, known by their period only",
}

OTHERS = {
    "other": "all other values are counted here; without it they are left out",
    "by": "day, week, month, quarter or year",
}


def _reviewed(setting: Setting) -> tuple[str, str, str]:
    comment = f"{MARK} {setting.review}" if setting.review else OTHERS.get(setting.key, "")
    return setting.key, setting.value, comment


def _expects(proposal: Proposal) -> str:
    """An example of the questions that somebody is likely to ask, to be taken in."""
    asked = quoted(f"SELECT COUNT(*) FROM {proposal.name}")  # noqa: S608
    return f"# expects = [{asked}]  # what they are likely to ask, for `sharewell plan`\n"


def _mechanism(proposal: Proposal) -> Sequence[tuple[str, str, str]]:
    several = len(proposal.described) > 1 and proposal.cells > FEW_CELLS
    seed = "marginals(1)" if several else "identity"
    return (
        ("name", '"cache-reconstruct"', "how answers are made; nobody is worse off for sharing"),
        ("seed", quoted(seed), "what is measured at the start; `sharewell plan` compares them"),
        ("seed_fraction", '"1/2"', "the part of every share that pays for the seed"),
        ("query_budget", '"1/100"', "what one paid question costs, as a part of the whole budget"),
    )


def _service(proposal: Proposal) -> Iterator[tuple[str, str, str]]:
    yield "ledger", quoted(f"{proposal.name}.ledger.sqlite"), "what was spent; or postgresql://..."
    yield "access", quoted(f"{proposal.name}.access.json"), "hashes of the tokens"
    yield from SERVICE
