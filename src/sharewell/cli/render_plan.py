"""The output of `sharewell plan`: the best settings, and how to write them down."""

from __future__ import annotations

import math
import sys
from collections.abc import Collection, Iterable, Sequence
from fractions import Fraction
from functools import partial
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from sharewell.cli.render import make_table, print_items, print_json
from sharewell.config import Config, read_config
from sharewell.config.forecast import (
    ASSUMED,
    analysts_without_questions,
    can_assume_questions,
    current_candidate,
    delta_for,
    join_names,
    paid_questions,
)
from sharewell.errors import ConfigError
from sharewell.mechanisms.base import Question
from sharewell.privacy.budget import Budget
from sharewell.query.linear import LinearQuery
from sharewell.sharing.plan import Candidate, how_many, not_compared, plan, rank, recommended
from sharewell.wire.text import pluralize

NOISE = {"pure": "Laplace", "zcdp": "Gaussian"}
RANKED = "Ranked by useful answers, averaged over the analysts, to a tenth of a percent; then by error."
#: Comparing settings on fewer cells needs no message.
QUICK_CELLS = 1_000
#: Larger numbers of cells are written with an exponent.
MANY = 10**12


def show_plan(path: str, top: int, as_json: bool) -> None:
    """Compare settings for a configuration file, and print the best."""
    config = read_config(path)
    found = _compare(config)
    now = current_candidate(config)
    best = recommended(found)
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
                _standing(config, now, found),
                _other_noise(found, best),
                _workload_text(config),
                "Analysts ask in turns. No row was read and nothing was spent.",
                "The error of a sum is divided by its largest weight.",
                not_compared(config.domain, config.workloads()),
            )
            if line
        ),
        f"\nRecommended: {_reason(config, best)}\n{_outcome(config, best)}",
        f"\nWrite this in {config.path.name}:\n",
        _toml(config, best),
    )


def _reason(config: Config, best: Candidate) -> str:
    """Why these settings."""
    numbers = sum(_numbers(asks) for asks in config.workloads().values())
    rest = "" if best.seed_fraction == 1 else "; the rest pays for questions that were not expected"
    return (
        f"with {NOISE[best.budget.currency]} noise the seed {best.seed} suits {numbers:,} expected "
        f"numbers on {_cells(config)} best. It takes {best.seed_fraction} of every "
        f"share{rest}."
    )


def _cells(config: Config) -> str:
    size = config.domain.size
    return f"{size:,} cells" if size < MANY else f"about {size:.0e} cells"


def _outcome(config: Config, best: Candidate) -> str:
    """What the settings buy."""
    questions = _range(_questions(config, best).values())
    return (
        f"About {best.average:.0%} of the expected answers are within {config.error_threshold:,g} rows, "
        f"{best.worst:.0%} for the worst-off analyst; {questions} paid questions each."
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
        f"{how}, at best {others[0].average:.1%} of the answers are useful."
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


def _compare(config: Config) -> list[Candidate]:
    """Compare all settings, with a progress bar on standard error.

    Where no bar can be drawn, one line announces the work.
    """
    workloads = config.workloads()
    if not any(workloads.values()):
        raise ConfigError(
            f"There is nothing to plan for: no questions are given for {join_names(list(workloads))}, "
            "and every column has too many values to assume counts by it.",
            hint=f"List questions in analysts.{config.analysts[0].name}.expects.",
        )
    budgets, found = _budgets(config), list[Candidate]()
    expected = {each.name: workloads[each.name] for each in config.analysts if each.expects}
    console = Console(stderr=True)
    if config.domain.size > QUICK_CELLS and (not console.is_terminal or console.is_dumb_terminal):
        count = how_many(config.domain) * len(budgets)
        sys.stderr.write(f"Comparing {count:,} settings on {_cells(config)}.\n")
        sys.stderr.flush()
    columns = ("comparing settings", BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=None)
        for done, budget in enumerate(budgets):
            found += plan(
                config.domain,
                workloads,
                budget,
                _shares(config, budget),
                config.error_threshold,
                neighbours=config.neighbours,
                max_rows_per_person=config.max_rows_per_person,
                expected=expected,
                watch=partial(_advance, bar, task, done, len(budgets)),
            )
    return sorted(found, key=rank)


def _advance(bar: Progress, task: TaskID, before: int, budgets: int, done: int, of: int) -> None:
    bar.update(task, completed=before * of + done, total=budgets * of)


def _budgets(config: Config) -> list[Budget]:
    """The budget, and before it is begun the same epsilon with the other noise."""
    budget = config.budget
    if config.witness.exists():
        return [budget]
    if budget.currency == "zcdp":
        return [budget, Budget.pure(budget.epsilon)]
    return [budget, Budget.zcdp(budget.epsilon, delta_for(config.population))]


def _shares(config: Config, budget: Budget) -> dict[str, Fraction]:
    """The analysts' shares of a budget."""
    return {name: share * budget.total / config.budget.total for name, share in config.shares.items()}


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
        _range(_questions(config, candidate).values()),
        f"{candidate.average:.1%}",
        f"{candidate.worst:.1%}",
        f"{candidate.typical_error:,.1f}" if math.isfinite(candidate.typical_error) else "undetermined",
    )


def _questions(config: Config, candidate: Candidate) -> dict[str, int]:
    """How many questions each analyst can pay for."""
    shares = _shares(config, candidate.budget)
    return paid_questions(shares, candidate.seed_fraction, candidate.query_budget)


def _range(counts: Collection[int]) -> str:
    """The smallest and the largest count; one number where they are equal."""
    fewest, most = min(counts), max(counts)
    return f"{fewest:,}" if fewest == most else f"{fewest:,}-{most:,}"


def _workload_text(config: Config) -> str:
    """The workload that was planned for: as the file gives it, or else assumed."""
    workloads = config.workloads()
    assumed = analysts_without_questions(config)
    given = [
        f"{pluralize(_numbers(asks), 'number')} for {name}"
        for name, asks in workloads.items()
        if name not in assumed
    ]
    text = [f"Planned for the questions of the file: {', '.join(given)}."] if given else []
    if assumed:
        asks = workloads[assumed[0]]
        each = " each" if len(assumed) > 1 else ""
        count = f"{pluralize(len(asks), 'question')}{each}, {pluralize(_numbers(asks), 'number')}"
        text.append(
            f"No questions are given for {join_names(assumed)}; assumed: {ASSUMED}: "
            f"{count if can_assume_questions(config) else 'here there are none'}."
        )
    return " ".join(text)


def _numbers(questions: Iterable[Question]) -> int:
    return sum(1 if isinstance(asks, LinearQuery) else len(asks) for asks in questions)


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
        "paid_questions": _questions(config, candidate),
    }
