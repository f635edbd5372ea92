"""Runs keep what is done, go on from there, and give the same bytes however they are run."""

import json
import os
from dataclasses import replace

import numpy as np
import pytest

from sharewell import datasets
from sharewell.errors import ConfigError
from sharewell_lab import runner
from sharewell_lab.results import COLUMNS, nothing, read_results, together, write_results
from sharewell_lab.runner import Stopped, run_study, run_trials
from sharewell_lab.streams import Asker, Workload
from sharewell_lab.studies import fig1
from sharewell_lab.trials import CONTESTANTS

DATA = datasets.movers_by_age()


def small(labels=("Laplace", "SCR", "Uniform"), cases=2):
    study = fig1(DATA, [0.1])
    contestants = tuple(CONTESTANTS[label] for label in labels)
    return replace(study, contestants=contestants, cases=study.cases[:cases])


def bytes_of(path):
    return path.read_bytes(), path.with_suffix(".csv").read_bytes()


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A run of 25 trials by one process."""
    out = tmp_path_factory.mktemp("whole")
    return run_study(small(), 25, 1, 1, out)


def test_two_processes_give_the_same_bytes_as_one(whole, tmp_path):
    assert bytes_of(run_study(small(), 25, 1, 2, tmp_path)) == bytes_of(whole)


def test_the_same_seed_gives_the_same_bytes_and_another_seed_others(whole, tmp_path):
    other = run_study(small(), 25, 2, 1, tmp_path)
    assert bytes_of(other)[0] != bytes_of(whole)[0]
    assert bytes_of(other)[1] != bytes_of(whole)[1]


def test_the_results_have_one_row_a_case_trial_contestant_and_analyst(whole):
    found = read_results(whole)
    assert list(found) == list(COLUMNS)
    keys = {
        tuple(row)
        for row in zip(
            *(found[n].tolist() for n in ("p", "trial", "contestant", "analyst")), strict=True
        )
    }
    assert len(keys) == len(found["trial"]) == 2 * 25 * 3 * 2
    assert whole.with_suffix(".csv").read_text().splitlines()[0] == ",".join(COLUMNS)


def test_what_the_processes_write_is_what_the_trials_give(whole):
    found, study = read_results(whole), small()
    for at, case in enumerate(study.cases):
        rows = study.play(case, 13, 1)
        here = (found["trial"] == 13) & (found["p"] == case.p)
        assert here.sum() == len(rows["trial"])
        for name, column in rows.items():
            assert found[name][here].tolist() == pytest.approx(column.tolist(), nan_ok=True), (at, name)


def test_a_longer_run_goes_on_from_a_shorter_one(whole, tmp_path, monkeypatch):
    run_study(small(cases=1), 12, 1, 1, tmp_path)
    played: list[tuple[float, int, int]] = []
    finished = runner._finished

    def watched(study, seed, jobs, todo):
        played.extend((chunk.case.p, chunk.first, chunk.end) for chunk in todo)
        return finished(study, seed, jobs, todo)

    monkeypatch.setattr(runner, "_finished", watched)
    again = run_study(small(), 25, 1, 1, tmp_path)
    assert bytes_of(again) == bytes_of(whole)
    assert played == [(0.5, 10, 20), (0.5, 20, 25), (0.6, 0, 10), (0.6, 10, 20), (0.6, 20, 25)]
    played.clear()
    assert bytes_of(run_study(small(), 25, 1, 2, tmp_path)) == bytes_of(whole)
    assert played == []


def test_ctrl_c_keeps_what_is_done(whole, tmp_path):
    seen = []

    def press(done, total):
        seen.append((done, total))
        if done >= 10:
            raise KeyboardInterrupt

    with pytest.raises(Stopped, match="Stopped after 10 of 50 trials") as stopped:
        run_trials(small(), 25, 1, 1, tmp_path, press)
    assert "Run the same command again to go on" in str(stopped.value)
    assert seen == [(0, 50), (10, 50)]
    assert not (tmp_path / "results.parquet").exists()
    seen.clear()
    again = run_study(small(), 25, 1, 1, tmp_path, lambda done, total: seen.append((done, total)))
    assert seen[0] == (10, 50)
    assert bytes_of(again) == bytes_of(whole)


def test_an_error_in_a_process_is_told_with_its_hint(tmp_path):
    nothing_to_ask = Asker((Workload("nothing", np.zeros((1, 86), dtype=np.uint8)),), restrict=1.0)
    study = replace(small(cases=1), askers=(nothing_to_ask,))
    with pytest.raises(ConfigError, match="leaves anything of the workload nothing") as refused:
        run_study(study, 1, 1, 1, tmp_path)
    assert refused.value.hint == "Ask more with it, or set `restrict` to 0."


def killed(connection, study, seed):
    connection.recv()
    os._exit(9)


def test_a_process_that_dies_is_told_and_does_not_hang(tmp_path, monkeypatch):
    monkeypatch.setattr(runner, "_work", killed)
    with pytest.raises(ConfigError, match="ended with code 9") as refused:
        run_study(small(cases=1), 5, 1, 2, tmp_path)
    assert "Run the same command again" in refused.value.hint


@pytest.mark.parametrize(
    ("study", "seed", "says"),
    [
        (small(), 2, "another seed"),
        (small(labels=("SCR",)), 1, "another study or version"),
    ],
)
def test_results_of_different_runs_are_not_mixed(tmp_path, study, seed, says):
    folder = tmp_path / "parts" / "fig1"
    runner._guard(small(), 1, folder)
    runner._guard(small(), 1, folder)
    with pytest.raises(ConfigError, match=says):
        run_study(study, 1, seed, 1, tmp_path)


def test_results_of_another_version_are_not_mixed(tmp_path, monkeypatch):
    runner._guard(small(), 1, tmp_path)
    monkeypatch.setattr("sharewell.__version__", "99")
    with pytest.raises(ConfigError, match="another study or version"):
        runner._guard(small(), 1, tmp_path)


def test_a_damaged_part_is_named(tmp_path):
    study = small(cases=1)
    folder = tmp_path / "parts" / "fig1"
    runner._guard(study, 1, folder)
    (chunk,) = runner._chunks(study, study.cases[0], 3, folder)
    chunk.path.write_bytes(b"half a file")
    with pytest.raises(ConfigError, match="is damaged") as refused:
        run_study(study, 3, 1, 1, tmp_path)
    assert chunk.path.name in refused.value.message
    (folder / "study.json").write_text("{", encoding="utf-8")
    with pytest.raises(ConfigError, match="holds trials of another"):
        run_study(study, 3, 1, 1, tmp_path)


@pytest.mark.parametrize(("trials", "jobs", "seed"), [(0, 1, 1), (1, 0, 1), (1, 1, -1)])
def test_numbers_that_cannot_be_are_refused(tmp_path, trials, jobs, seed):
    with pytest.raises(ConfigError, match="There cannot be"):
        run_study(small(), trials, seed, jobs, tmp_path)
    assert not list(tmp_path.iterdir())


def test_dear_trials_come_in_smaller_chunks(tmp_path):
    study = replace(small(cases=1), one_trial_in=5)
    chunks = list(runner._chunks(study, study.cases[0], 25, tmp_path))
    assert [(chunk.first, chunk.end) for chunk in chunks] == [(0, 2), (2, 4), (4, 5)]


def test_what_is_not_known_is_null_and_parts_may_sweep_different_things(tmp_path):
    one, other = small(cases=1), small(cases=1)
    swept = replace(other, cases=(replace(other.cases[0], swept=(("updates", 5.0),)),))
    rows = together([one.play(one.cases[0], 0, 1), swept.play(swept.cases[0], 0, 1)])
    found = read_results(write_results(rows, tmp_path))
    assert found["set_updates"].tolist() == pytest.approx([np.nan] * 6 + [5.0] * 6, nan_ok=True)
    assert np.isnan(found["expected_useful"][found["contestant"] == "Uniform"]).all()


def test_results_without_a_row_can_be_written(tmp_path):
    found = read_results(write_results(nothing(), tmp_path / "it's here"))
    assert {name: len(column) for name, column in found.items()} == dict.fromkeys(COLUMNS, 0)


def test_the_folder_says_what_it_holds(whole):
    told = json.loads((whole.parent / "parts" / "fig1" / "study.json").read_text(encoding="utf-8"))
    assert told == {"study": "fig1", "seed": 1, "fingerprint": small().fingerprint()}
