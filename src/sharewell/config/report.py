"""What `sharewell plan` prints: the settings worth having, best first, and how to write them down."""

from __future__ import annotations

import json
import sys
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn
from rich.table import Table

from sharewell.config.config import Config
from sharewell.config.forecast import (
    ASSUMED,
    as_it_is,
    listed,
    paid_questions,
    some_assumed,
    without_questions,
)
from sharewell.config.reader import read_config
from sharewell.errors import ConfigError
from sharewell.mechanism.base import Question
from sharewell.query.linear import LinearQuery
from sharewell.sharing.plan import Candidate, how_many, plan

RANKED = "Ranked by useful answers, all analysts counting alike; then by the smaller typical error."
#: Fewer cells are compared before anybody wonders what is going on.
QUICK_CELLS = 1_000


def show_plan(path: str, top: int, as_json: bool) -> None:
    """Compare settings for a configuration file, and show the best."""
    config = read_config(path)
    found = _compare(config)
    now = as_it_is(config)
    if as_json:
        candidates = [_plain(config, candidate) for candidate in found[:top]]
        plain = {
            "tried": len(found),
            "candidates": candidates,
            "now": None if now is None else _plain(config, now) | {"rank": _rank(now, found)},
        }
        sys.stdout.write(json.dumps(plain, indent=2) + "\n")
        return
    console = Console()
    console.print(_table(config, found[:top], len(found), now))
    console.print(f"[dim]{RANKED}\n{_standing(config, now, found)}", highlight=False)
    console.print(
        f"[dim]{escape(_asked(config))}\nQuestions are asked in turns. No row was read and nothing is "
        "spent.\nA sum may be off by as many rows of its largest weight.",
        highlight=False,
    )
    console.print(f"\nTo use the first, write in {config.path.name}:\n")
    console.print(_toml(config, found[0]), markup=False, highlight=False)


def _rank(now: Candidate, found: Sequence[Candidate]) -> int:
    """Where the settings of the file would stand among those that were tried, the best being 1."""
    return 1 + sum(_by_rank(candidate) < _by_rank(now) for candidate in found)


def _by_rank(candidate: Candidate) -> tuple[float, float]:
    """What `plan` sorts by, in words above."""
    return -round(candidate.average, 4), candidate.typical_error


def _standing(config: Config, now: Candidate | None, found: Sequence[Candidate]) -> str:
    if now is None:
        return f"{config.path.name} has another mechanism now, which is not compared here."
    return (
        f"The last row is what {config.path.name} has now: "
        f"{_rank(now, found) - 1:,} of the {len(found):,} settings tried are better."
    )


def _compare(config: Config) -> list[Candidate]:
    """Try all settings, with a bar on the error stream, so that what is printed stays whole.

    Where no bar can be drawn, one line says what is going on.
    """
    workloads = config.workloads()
    if not any(workloads.values()):
        raise ConfigError(
            f"There is nothing to plan for: no questions were given for {listed(list(workloads))}, and "
            "every column has too many values for Sharewell to assume counts by it.",
            hint=f"Write questions in analysts.{config.analysts[0].name}.expects.",
        )
    console = Console(stderr=True)
    if config.domain.size > QUICK_CELLS and (not console.is_terminal or console.is_dumb_terminal):
        count, cells = how_many(config.domain), config.domain.size
        sys.stderr.write(f"Comparing {count:,} settings on {cells:,} cells.\n")
        sys.stderr.flush()
    columns = ("comparing settings", BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=None)
        return plan(
            config.domain,
            workloads,
            config.budget,
            config.shares,
            config.error_threshold,
            neighbours=config.neighbours,
            watch=lambda done, of: bar.update(task, completed=done, total=of),
        )


def _table(config: Config, best: Sequence[Candidate], tried: int, now: Candidate | None) -> Table:
    table = Table(
        title=f"The best {len(best)} of {tried} settings for {config.name}",
        caption=f"Useful: off by at most {config.error_threshold:,g} rows. Seed and price are parts of "
        "a share and of the budget. Paid questions: how many each analyst can pay for, from the fewest "
        "to the most.",
        box=box.SIMPLE_HEAD,
        collapse_padding=True,
    )
    # A name is needed whole, to be written down. The headings are broken here, so that no word is.
    table.add_column("seed", no_wrap=True)
    for heading in (
        *("seed\nfraction", "query\nbudget", "paid\nquestions"),
        *("useful\nanswers", "worst\nanalyst", "typical\nerror, rows"),
    ):
        table.add_column(heading, justify="right", overflow="fold")
    rows = [(candidate, candidate.seed) for candidate in best]
    if now is not None:
        rows.append((now, f"{now.seed}\n(now)"))
    for at, (candidate, seed) in enumerate(rows):
        if at == len(best):
            table.add_section()
        table.add_row(
            seed,
            str(candidate.seed_fraction),
            str(candidate.query_budget / config.budget.total),
            _range(_questions(config, candidate).values()),
            f"{candidate.average:.1%}",
            f"{candidate.worst:.1%}",
            f"{candidate.typical_error:,.1f}",
        )
    return table


def _questions(config: Config, candidate: Candidate) -> dict[str, int]:
    """How many questions everybody can pay for."""
    return paid_questions(config.shares, candidate.seed_fraction, candidate.query_budget)


def _range(counts: Collection[int]) -> str:
    """The fewest, and the most where that is another number."""
    fewest, most = min(counts), max(counts)
    return f"{fewest:,}" if fewest == most else f"{fewest:,}-{most:,}"


def _asked(config: Config) -> str:
    """What each analyst is planned to ask for: as the file says, or else what is assumed."""
    workloads = config.workloads()
    assumed = without_questions(config)
    told = [
        f"{_numbers(asks):,} numbers of {name}"
        for name, asks in workloads.items()
        if name not in assumed
    ]
    said = [f"Planned for what the file expects: {', '.join(told)}."] if told else []
    if assumed:
        asks = workloads[assumed[0]]
        each = " each" if len(assumed) > 1 else ""
        count = f"{len(asks):,} questions{each}, for {_numbers(asks):,} numbers"
        said.append(
            f"No questions were given for {listed(assumed)}, so Sharewell assumes {ASSUMED}: "
            f"{count if some_assumed(config) else 'here there are none'}."
        )
    return " ".join(said)


def _numbers(questions: Iterable[Question]) -> int:
    return sum(1 if isinstance(asks, LinearQuery) else len(asks) for asks in questions)


def _toml(config: Config, best: Candidate) -> str:
    """The settings as they stand in a file."""
    plain = _plain(config, best)
    lines = [f'{key} = "{plain[key]}"' for key in ("seed", "seed_fraction", "query_budget")]
    return "\n".join(["[mechanism]", *lines])


def _plain(config: Config, candidate: Candidate) -> dict[str, Any]:
    return {
        "seed": candidate.seed,
        "seed_fraction": str(candidate.seed_fraction),
        "query_budget": str(candidate.query_budget / config.budget.total),
        "useful_answers": candidate.average,
        "worst_analyst": candidate.worst,
        "useful_by_analyst": dict(candidate.within),
        "typical_error": candidate.typical_error,
        "paid_questions": _questions(config, candidate),
    }
