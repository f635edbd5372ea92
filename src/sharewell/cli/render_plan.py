"""The output of `sharewell plan`: the best settings, and how to write them down."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from sharewell.cli.terminal import make_table, print_items, print_json
from sharewell.config import Config, read_config
from sharewell.config.forecast import (
    analysts_without_questions,
    assumed_questions,
    can_assume_questions,
    current_candidate,
    join_names,
)
from sharewell.config.planning import (
    NOISE,
    compare_settings,
    count_settings,
    numbers_of,
    outcome_of,
    paid_questions_of,
    range_of,
    reason_for,
    recommend,
)
from sharewell.sharing.plan import Candidate, not_compared, rank
from sharewell.wire.text import format_cells, pluralize

RANKED = "Ranked by useful answers, averaged over the analysts, to a tenth of a percent; then by error."
#: Comparing settings on fewer cells needs no message.
QUICK_CELLS = 1_000


def show_plan(path: str, top: int, as_json: bool) -> None:
    """Compare settings for a configuration file, and print the best."""
    config = read_config(path)
    with comparing(config) as watch:
        found = compare_settings(config, watch)
        best = recommend(config, found)
    now = current_candidate(config)
    if as_json:
        candidates = [_plain(config, candidate) for candidate in found[:top]]
        plain = {
            "tried": len(found),
            "candidates": candidates,
            "recommended": _plain(config, best),
            "now": None if now is None else _plain(config, now) | {"rank": _rank(now, found)},
        }
        print_json(plain)
        return
    shown = [candidate for candidate in found if candidate.budget == best.budget]
    print_items(
        _table(config, shown[:top], len(found), now),
        *(
            Text(line, style="dim")
            for line in (
                RANKED,
                _passed_over(found, best),
                _standing(config, now, found),
                _other_noise(found, best),
                _workload_text(config),
                "Analysts ask in turns. No row was read and nothing was spent.",
                "The error of a sum is divided by its largest weight.",
                not_compared(config.domain, config.workloads()),
            )
            if line
        ),
        f"\nRecommended: {reason_for(config, best)}\n{outcome_of(config, best)}",
        f"\nWrite this in {config.path.name}:\n",
        _toml(config, best),
    )


def _passed_over(found: Sequence[Candidate], best: Candidate) -> str:
    """Why better-ranked settings are not recommended."""
    better = sum(rank(each) < rank(best) for each in found)
    if not better:
        return ""
    return (
        f"The {better:,} settings ranked higher are not recommended: they leave too little for "
        "unexpected questions, or exceed the limit on noise."
    )


def _other_noise(found: Sequence[Candidate], best: Candidate) -> str:
    """What the same epsilon would buy with the other noise."""
    others = [candidate for candidate in found if candidate.budget != best.budget]
    if not others:
        return ""
    other = others[0].budget
    how = f"a delta of {float(other.delta):g}" if other.delta else "no delta"
    return (
        f"All of these have {NOISE[best.budget.currency]} noise. With {NOISE[other.currency]} noise and "
        f"{how}, at best {100 * others[0].average:.1f} % of the answers are useful."
    )


def _rank(now: Candidate, found: Sequence[Candidate]) -> int:
    """The rank of the file's settings among those compared; 1 is the best."""
    return 1 + sum(rank(candidate) < rank(now) for candidate in found)


def _standing(config: Config, now: Candidate | None, found: Sequence[Candidate]) -> str:
    if now is None:
        return f"{config.path.name} uses another mechanism or seed, which is not compared here."
    return (
        f"The last row shows the current settings of {config.path.name}: "
        f"{_rank(now, found) - 1:,} of the {len(found):,} settings compared are better."
    )


@contextmanager
def comparing(config: Config) -> Iterator[Callable[[int, int], object]]:
    """Draw a progress bar on standard error while settings are compared.

    Where no bar can be drawn, one line announces the work.
    """
    console = Console(stderr=True)
    if not console.is_terminal or console.is_dumb_terminal:
        if config.domain.size > QUICK_CELLS:
            cells = format_cells(config.domain.cells)
            sys.stderr.write(f"Comparing {count_settings(config):,} settings on {cells}.\n")
            sys.stderr.flush()
        yield lambda done, of: None
        return
    columns = (
        # The first setting of a seed takes most of the time: something moves meanwhile.
        SpinnerColumn(),
        "comparing settings",
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=None)
        yield lambda done, of: bar.update(task, completed=done, total=of)


def _table(config: Config, best: Sequence[Candidate], tried: int, now: Candidate | None) -> Table:
    numbers = (
        *("seed\nfraction", "query\nbudget", "paid\nquestions"),
        *("useful\nanswers", "worst\nanalyst", "typical\nerror, rows"),
    )
    table = make_table(
        ("seed", *numbers),
        (_fields(config, candidate) for candidate in best),
        right=numbers,
        whole=("seed",),
        title=f"The best {len(best)} of {tried} settings for {config.name}",
        caption=f"Useful: error at most {config.error_threshold:,g} rows. Seed fraction: of a share. "
        "Query budget: of the budget. Paid questions: how many an analyst can pay for, from the "
        "fewest to the most.",
    )
    if now is not None:
        seed, *fields = _fields(config, now)
        table.add_section()
        table.add_row(f"{seed}\n(now)", *fields)
    return table


def _fields(config: Config, candidate: Candidate) -> tuple[str, ...]:
    return (
        candidate.seed,
        str(candidate.seed_fraction),
        str(candidate.query_budget / candidate.budget.total),
        range_of(paid_questions_of(config, candidate).values()),
        f"{candidate.average:.1%}",
        f"{candidate.worst:.1%}",
        f"{candidate.typical_error:,.1f}" if math.isfinite(candidate.typical_error) else "undetermined",
    )


def _workload_text(config: Config) -> str:
    """The workload that was planned for: as the file gives it, or else assumed."""
    workloads = config.workloads()
    assumed = analysts_without_questions(config)
    given = [
        f"{pluralize(numbers_of(asks), 'number')} for {name}"
        for name, asks in workloads.items()
        if name not in assumed
    ]
    text = [f"Planned for the questions of the file: {', '.join(given)}."] if given else []
    if assumed:
        asks = workloads[assumed[0]]
        each = " each" if len(assumed) > 1 else ""
        count = f"{pluralize(len(asks), 'question')}{each}, {pluralize(numbers_of(asks), 'number')}"
        text.append(
            f"No questions are given for {join_names(assumed)}; assumed: {assumed_questions(config)}: "
            f"{count if can_assume_questions(config) else 'here there are none'}."
        )
    return " ".join(text)


def _toml(config: Config, best: Candidate) -> str:
    """The settings as TOML."""
    plain = _plain(config, best)
    lines = [f'{key} = "{plain[key]}"' for key in ("seed", "seed_fraction", "query_budget")]
    budget = []
    if best.budget.currency != config.budget.currency:
        delta = f'delta = "{plain["delta"]}"' if best.budget.delta else "# without delta"
        budget = ["[budget]", delta, ""]
    return "\n".join([*budget, "[mechanism]", *lines])


def _plain(config: Config, candidate: Candidate) -> dict[str, Any]:
    return {
        "seed": candidate.seed,
        "noise": NOISE[candidate.budget.currency],
        "delta": f"{float(candidate.budget.delta):g}" if candidate.budget.delta else None,
        "seed_fraction": str(candidate.seed_fraction),
        "query_budget": str(candidate.query_budget / candidate.budget.total),
        "useful_answers": candidate.average,
        "worst_analyst": candidate.worst,
        "useful_by_analyst": dict(candidate.within),
        "typical_error": candidate.typical_error if math.isfinite(candidate.typical_error) else None,
        "paid_questions": paid_questions_of(config, candidate),
    }
