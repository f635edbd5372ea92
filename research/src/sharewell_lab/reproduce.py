"""`sharewell reproduce`: run the paper's experiments, and write figures, results and a report."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console

import sharewell
from sharewell import datasets
from sharewell.engine.data_vector import DataVector
from sharewell.errors import ConfigError
from sharewell_lab.progress import bar, stopping_quietly
from sharewell_lab.results import nothing, together, write_results
from sharewell_lab.runner import run_trials
from sharewell_lab.simulate import processors
from sharewell_lab.studies import STUDIES, Study, read_histogram

#: What each word stands for. The second figure is a picture of the query limit, and needs no trials.
FIGURES = {
    "fig1": ("fig1", "fig1-h2"),
    "fig2": (),
    "fig3": ("fig3", "wide"),
    "all": ("fig1", "fig1-h2", "fig3", "wide"),
}


def run(
    words: Sequence[str],
    epsilons: Sequence[str],
    trials: int,
    data: str | None,
    seed: int,
    jobs: int | None,
    out: str,
) -> None:
    """Run what was typed: the words are figures, and further budgets after `--epsilon 0.1`."""
    budgets = [*epsilons, *(word for word in words if word not in FIGURES)]
    which = [word for word in words if word in FIGURES] or ["all"]
    chosen = tuple(dict.fromkeys(budget for word in budgets for budget in _budgets(word))) or (1.0,)
    table = None if data is None else read_histogram(Path(data))
    with stopping_quietly():
        report = reproduce(
            which, trials, chosen, table, seed, processors() if jobs is None else jobs, Path(out)
        )
    Console().print(f"The report is in {report}.", markup=False, highlight=False, soft_wrap=True)


def reproduce(
    which: Sequence[str],
    trials: int,
    epsilons: Sequence[float],
    data: DataVector | None,
    seed: int,
    jobs: int,
    out: Path,
) -> Path:
    """Run the studies of these figures, write their results and a report; the report's path.

    `out` gets `results.parquet` and `results.csv` with every trial, `settings.json` with what it was run
    with, and the parts from which a run that was stopped goes on.
    """
    from sharewell_lab.report import write_report

    names = list(dict.fromkeys(name for word in which for name in FIGURES[word]))
    table = datasets.movers_by_age() if data is None else data
    studies = [STUDIES[name](table, epsilons) for name in names]
    parts = []
    for study in studies:
        with bar(study.name) as watch:
            parts.append(run_trials(study, trials, seed, jobs, out, watch))
    results = write_results(together(parts) if parts else nothing(), out)
    settings = {
        "version": sharewell.__version__,
        "seed": seed,
        "epsilons": list(epsilons),
        "data": "bundled: movers by age" if data is None else "a user's histogram",
        "studies": [describe(study, trials) for study in studies],
    }
    (out / "settings.json").write_text(json.dumps(settings, indent=2) + "\n", encoding="utf-8")
    write_report(out, results)
    return out / "report.html"


def describe(study: Study, trials: int) -> dict[str, Any]:
    """What a study was run with, as plain data."""
    first = study.cases[0]
    return {
        "name": study.name,
        "trials": study.trials(trials),
        "cells": study.data.domain.size,
        "attributes": list(study.data.domain.names),
        "population": first.population,
        "error_threshold": first.error_threshold,
        "analysts": first.analysts,
        "p": list(dict.fromkeys(case.p for case in study.cases)),
        "workloads": [[choice.name for choice in asker.choices] for asker in study.askers],
        "restrict": [asker.restrict for asker in study.askers],
        "seed_fraction": first.seed_fraction,
        "query_budget": {
            contestant.label: {f"{case.epsilon:g}": case.price(contestant) for case in study.cases}
            for contestant in study.contestants
            if contestant.mechanism in ("laplace", "scr", "scr-as-printed")
        },
        "contestants": [
            {key: value for key, value in asdict(contestant).items() if value not in (None, False)}
            for contestant in study.contestants
        ],
    }


def _budgets(word: str) -> list[float]:
    found = []
    for text in word.split(","):
        try:
            budget = float(text)
        except ValueError:
            budget = 0.0
        if not 1e-6 <= budget <= 1e6:
            raise ConfigError(
                f"{text!r} is neither a figure nor a budget.",
                hint=f"The figures are {', '.join(FIGURES)}; budgets are numbers such as 0.1, 1 and 10.",
            )
        found.append(budget)
    return found
