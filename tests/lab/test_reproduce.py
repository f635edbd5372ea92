"""`sharewell reproduce`, in small."""

import json
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

from sharewell import datasets
from sharewell.cli import app
from sharewell.errors import ConfigError
from sharewell_lab import report, reproduce
from sharewell_lab.results import nothing, read_results
from sharewell_lab.studies import STUDIES, read_histogram

RUN = CliRunner()


@pytest.fixture
def unreported(monkeypatch):
    """Without the report, which takes long and is tested elsewhere."""
    written = []
    monkeypatch.setattr(report, "write_report", lambda out, results: written.append((out, results)))
    return written


@pytest.fixture
def asked(monkeypatch):
    """What would be run."""
    seen = []

    def record(*given):
        seen.append(given)
        return given[-1] / "report.html"

    monkeypatch.setattr(reproduce, "reproduce", record)
    return seen


@pytest.mark.parametrize(
    ("words", "which", "epsilons"),
    [
        ("", ["all"], (1.0,)),
        ("fig1", ["fig1"], (1.0,)),
        ("fig1 fig3", ["fig1", "fig3"], (1.0,)),
        ("all --epsilon 0.1 1 10", ["all"], (0.1, 1.0, 10.0)),
        ("--epsilon 0.1 1 10 fig3", ["fig3"], (0.1, 1.0, 10.0)),
        ("all --epsilon 0.1 --epsilon 10", ["all"], (0.1, 10.0)),
        ("all --epsilon 0.1,10 --trials 5", ["all"], (0.1, 10.0)),
        ("all --epsilon 1 1", ["all"], (1.0,)),
    ],
)
def test_figures_and_budgets_are_typed_in_any_order(asked, words, which, epsilons):
    done = RUN.invoke(app, ["reproduce", *words.split()])
    assert done.exit_code == 0, done.output
    assert asked[0][0] == which
    assert asked[0][2] == epsilons
    assert "The report is in reproduction/report.html" in done.stdout


@pytest.mark.parametrize("words", ["fig4", "fig1 x", "--epsilon none", "--epsilon 0", "--epsilon nan"])
def test_a_word_that_is_neither_figure_nor_budget_is_refused(asked, words):
    refused = RUN.invoke(app, ["reproduce", *words.split()])
    assert refused.exit_code == 2
    assert "is neither a figure nor a budget" in refused.stderr
    assert not asked


def test_the_paper_in_small(tmp_path, unreported, monkeypatch):
    for name, make in STUDIES.items():
        study = make(datasets.movers_by_age(), [1.0])
        first = replace(study, cases=study.cases[:1], contestants=study.contestants[-2:])
        monkeypatch.setitem(STUDIES, name, lambda _data, _epsilons, first=first: first)
    out = tmp_path / "out"
    made = reproduce.reproduce(["all"], 1, (1.0,), None, 1, 1, out)
    assert made == out / "report.html"
    assert unreported == [(out, out / "results.parquet")]
    found = read_results(out / "results.parquet")
    assert list(dict.fromkeys(found["study"])) == ["fig1", "fig1-h2", "fig3", "wide"]
    scr = found["contestant"] == "SCR"
    assert (found["expected_alone"][scr] <= found["expected_useful"][scr]).all()
    assert (found["expected_without"][scr] <= found["expected_useful"][scr]).all()
    settings = json.loads((out / "settings.json").read_text(encoding="utf-8"))
    assert [study["name"] for study in settings["studies"]] == list(STUDIES)
    assert [study["cells"] for study in settings["studies"]] == [86, 86, 86, 2408]
    assert settings["studies"][2]["query_budget"]["SCR"] == {"1": 0.1 * 0.5 / 8}


def test_the_picture_of_the_limit_needs_no_trials(tmp_path, unreported):
    reproduce.reproduce(["fig2"], 1000, (1.0,), None, 1, 1, tmp_path)
    assert len(read_results(tmp_path / "results.parquet")["trial"]) == 0
    assert len(unreported) == 1


@pytest.mark.parametrize(
    ("which", "names"),
    [
        (["fig1"], ["fig1", "fig1-h2"]),
        (["fig3"], ["fig3", "wide"]),
        (["fig3", "fig1"], ["fig3", "wide", "fig1", "fig1-h2"]),
        (["all", "fig1"], ["fig1", "fig1-h2", "fig3", "wide"]),
    ],
)
def test_every_figure_has_its_studies(tmp_path, unreported, monkeypatch, which, names):
    run = []

    def record(study, *_):
        run.append((study.name, sorted({case.epsilon for case in study.cases})))
        return nothing()

    monkeypatch.setattr(reproduce, "run_trials", record)
    reproduce.reproduce(which, 5, (0.1, 1.0), None, 1, 1, tmp_path)
    assert run == [(name, [0.1, 1.0]) for name in names]


def test_a_histogram_of_ones_own_is_used(tmp_path, unreported, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "counts.csv").write_text("count\n" + "\n".join(str(i) for i in range(70)))
    words = ["reproduce", "fig1", "--data", "counts.csv", "--trials", "1", "--jobs", "1", "--out", "out"]
    done = RUN.invoke(app, words)
    assert done.exit_code == 0, done.output
    settings = json.loads((tmp_path / "out" / "settings.json").read_text(encoding="utf-8"))
    assert settings["studies"][0]["population"] == sum(range(70))
    assert settings["data"] == "a user's histogram"
    found = read_results(tmp_path / "out" / "results.parquet")
    assert set(found["asked"]) == {200, 69}  # random ones, and h2 of 35 cells
    again = RUN.invoke(app, [*words[:2], "--trials", "1", "--jobs", "1", "--out", "out"])
    assert again.exit_code == 2
    assert "holds trials of another study or version" in again.stderr


def test_a_histogram_that_is_too_short_is_refused(tmp_path, unreported):
    short = read_histogram(_written(tmp_path, [5] * 10))
    with pytest.raises(ConfigError, match="64 cells does not fit into 10"):
        reproduce.reproduce(["fig3"], 1, (1.0,), short, 1, 1, tmp_path)


def _written(folder, counts):
    path = folder / "counts.csv"
    np.savetxt(path, counts, fmt="%d")
    return path


def test_the_lab_loads_its_heavy_libraries_only_when_it_plays():
    code = (
        "import sys, sharewell_lab.simulate, sharewell_lab.reproduce; "
        "print(sorted({'numba', 'matplotlib', 'pandas'} & set(sys.modules)))"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "[]\n"
