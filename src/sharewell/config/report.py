"""What `sharewell plan` prints: the settings worth having, best first, and how to write them down."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Any

from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn
from rich.table import Table

from sharewell.config.config import Config
from sharewell.config.forecast import as_it_is
from sharewell.config.reader import read_config
from sharewell.query.linear import LinearQuery
from sharewell.sharing.plan import Candidate, plan

RANKED = "Ranked by useful answers, all analysts counting alike; then by the smaller typical error."


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
        f"[dim]Planned for {_asked(config)}, asked in turns. No row was read and nothing is spent.\n"
        "A sum may be off by as many rows of its largest weight."
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
    """Try all settings, with a bar on the error stream, so that what is printed stays whole."""
    columns = ("comparing settings", BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None)
        return plan(
            config.domain,
            config.workloads(),
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
        "a share and of the budget.",
        box=box.SIMPLE_HEAD,
    )
    table.add_column("seed")
    for heading in ("seed fraction", "query budget", "useful answers", "worst analyst", "typical error"):
        table.add_column(heading, justify="right")
    rows = [(candidate, candidate.seed) for candidate in best]
    if now is not None:
        rows.append((now, f"{now.seed} (now)"))
    for at, (candidate, seed) in enumerate(rows):
        if at == len(best):
            table.add_section()
        table.add_row(
            seed,
            str(candidate.seed_fraction),
            str(candidate.query_budget / config.budget.total),
            f"{candidate.average:.1%}",
            f"{candidate.worst:.1%}",
            f"{candidate.typical_error:,.1f} rows",
        )
    return table


def _asked(config: Config) -> str:
    """How many numbers each analyst is planned to ask for."""
    counts = {
        name: sum(1 if isinstance(asks, LinearQuery) else len(asks) for asks in questions)
        for name, questions in config.workloads().items()
    }
    return ", ".join(f"{count:,} numbers of {name}" for name, count in counts.items())


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
    }
