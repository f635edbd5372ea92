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
from sharewell.config.reader import read_config
from sharewell.query.linear import LinearQuery
from sharewell.sharing.plan import Candidate, plan


def show_plan(path: str, top: int, as_json: bool) -> None:
    """Compare settings for a configuration file, and show the best."""
    config = read_config(path)
    found = _compare(config)
    if as_json:
        candidates = [_plain(config, candidate) for candidate in found[:top]]
        sys.stdout.write(json.dumps({"tried": len(found), "candidates": candidates}, indent=2) + "\n")
        return
    console = Console()
    console.print(_table(config, found[:top], len(found)))
    console.print(
        f"[dim]Planned for {_asked(config)}, asked in turns. No row was read and nothing is spent.\n"
        "A sum may be off by as many rows of its largest weight."
    )
    console.print(f"\nTo use the first, write in {config.path.name}:\n")
    console.print(_toml(config, found[0]), markup=False, highlight=False)


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


def _table(config: Config, best: Sequence[Candidate], tried: int) -> Table:
    table = Table(
        title=f"The best {len(best)} of {tried} settings for {config.name}",
        caption=f"Useful: off by at most {config.error_threshold:,g} rows. Seed and price are parts of "
        "a share and of the budget.",
        box=box.SIMPLE_HEAD,
    )
    table.add_column("seed")
    for heading in ("seed fraction", "query budget", "useful answers", "worst analyst", "typical error"):
        table.add_column(heading, justify="right")
    for candidate in best:
        table.add_row(
            candidate.seed,
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
