"""`sharewell simulate`: run a study of your own, store its results and print a summary."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table

from sharewell_lab.estimates import Summary, summaries
from sharewell_lab.progress import bar, stopping_quietly
from sharewell_lab.results import read_results
from sharewell_lab.runner import run_study
from sharewell_lab.study_file import read_study

#: The name of the comparison that needs no file.
ALTERNATIVES = "alternatives"
#: The metrics that the table shows, and the words above them.
SHOWN = {
    "accuracy": "accuracy",
    "max_ratio_error": "max ratio error",
    "interference": "interference",
    "expected_max_ratio_error": "expected ratio",
    "expected_interference": "expected interf.",
    "time_to_completion": "steps",
}


def simulate(
    path: str,
    trials: int | None = None,
    seed: int | None = None,
    jobs: int | None = None,
    out: str | None = None,
    as_json: bool = False,
) -> None:
    """Run a STUDY.toml, and print a summary; what is not given is taken from the file.

    The word `alternatives` stands for the built-in comparison with other systems.
    """
    if path == ALTERNATIVES and not Path(path).exists():
        simulate_alternatives(trials or 3, 1 if seed is None else seed, out, as_json)
        return
    file = read_study(path)
    wanted = file.trials if trials is None else trials
    folder = Path(out or f"{file.study.name}-results")
    with stopping_quietly(), bar(file.study.name) as watch:
        results = run_study(
            file.study,
            wanted,
            file.seed if seed is None else seed,
            processors() if jobs is None else jobs,
            folder,
            watch,
        )
    found = list(summaries(read_results(results)))
    if as_json:
        plain = {"results": str(results), "summaries": [one.plain() for one in found]}
        sys.stdout.write(json.dumps(plain, indent=2) + "\n")
        return
    console = Console(width=max(Console().width, 120))
    for table in summary_tables(found):
        console.print(table)
    console.print(
        f"[dim]The mean over {found[0].trials:,} trials, with its 90 % interval; a median where a ratio "
        f"was infinite.\nEvery trial: {results}",
        highlight=False,
        soft_wrap=True,
    )


def simulate_alternatives(trials: int, seed: int, out: str | None, as_json: bool) -> None:
    """Play Sharewell and its alternatives on the same streams, and print where each stands."""
    from sharewell_lab.alternatives.closing import gains
    from sharewell_lab.alternatives.comparison import compare
    from sharewell_lab.alternatives.report import ahead, table, write_report

    with stopping_quietly(), bar(ALTERNATIVES, "contestants") as watch:
        scores = compare(trials=trials, seed=seed, progress=watch)
        rounds = list(gains(trials=trials, seed=seed))
    report = write_report(scores, Path(out or f"{ALTERNATIVES}-results"), rounds)
    if as_json:
        plain = {"report": str(report), "scores": [asdict(score) for score in scores]}
        sys.stdout.write(json.dumps(plain, indent=2) + "\n")
        return
    console = Console(width=max(Console().width, 120))
    for epsilon in sorted({score.epsilon for score in scores}):
        found = table([score for score in scores if score.epsilon == epsilon])
        shown = Table(
            *found.head,
            title=f"epsilon = {epsilon:g}: % within alpha, all / worst-off",
            box=box.SIMPLE_HEAD,
            title_justify="left",
        )
        for row in found.rows:
            shown.add_row(*(cell.replace("**", "") for cell in row))
        console.print(shown)
    console.print(f"{ahead(scores)}\nThe report is in {report}.", markup=False, soft_wrap=True)


def processors() -> int:
    """How many processes can run at once."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def summary_tables(found: Sequence[Summary]) -> Iterator[Table]:
    """The metrics of every contestant with their intervals, one table a case."""
    cases: dict[str, dict[str, dict[str, Summary]]] = {}
    for one in found:
        case = f"{one.study}, epsilon = {one.epsilon:g}, p = {one.p:g}"
        cases.setdefault(case, {}).setdefault(one.contestant, {})[one.metric] = one
    for case, rows in cases.items():
        table = Table(title=case, box=box.SIMPLE_HEAD, title_justify="left")
        table.add_column("contestant", no_wrap=True)
        shown = [name for name in SHOWN if any(name in metrics for metrics in rows.values())]
        for name in shown:
            table.add_column(SHOWN[name], justify="right")
        for contestant, metrics in rows.items():
            table.add_row(
                contestant, *(cell(metrics[name]) if name in metrics else "" for name in shown)
            )
        yield table


def cell(one: Summary) -> str:
    """A metric with its interval; a median is marked, and how often it was infinite is said."""
    number = "{:.4g}".format if one.metric == "time_to_completion" else "{:.3f}".format
    value = number(one.value)
    if one.infinite:
        value += f" median, {one.infinite:.0%} inf"
    if one.interval_low < one.value or one.value < one.interval_high:
        value += f"\n{number(one.interval_low)}–{number(one.interval_high)}"
    return value
