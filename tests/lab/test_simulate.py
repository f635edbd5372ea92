"""`sharewell simulate`, as it is typed: it prints a summary, and Ctrl-C loses nothing."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress

import pytest
from typer.testing import CliRunner

from sharewell.cli import app
from sharewell_lab.results import read_results, together, write_results
from sharewell_lab.study_file import read_study

RUN = CliRunner()
STUDY = """
name = "small"
trials = 12
[data]
source = "counts.csv"
[budget]
epsilon = 1
error_threshold = 5
[stream]
workloads = ["identity", "prefixes", "h2"]
restrict = 0.5
analysts = 3
[compare]
mechanisms = ["pmw", "scr"]
schedulers = ["none", "round-robin"]
[sweep]
seed_fraction = [0.25, 0.5]
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "counts.csv").write_text("\n".join(str(7 * i % 50) for i in range(40)))
    (tmp_path / "STUDY.toml").write_text(STUDY)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_study_is_run_and_summed_up(folder):
    shown = RUN.invoke(app, ["simulate", "STUDY.toml", "--jobs", "1", "--trials", "3"])
    assert shown.exit_code == 0, shown.output
    assert "small, seed_fraction = 0.25, epsilon = 1, p = 0.333" in shown.stdout
    assert "pmw, round-robin" in shown.stdout
    assert "The mean over 3 trials, with its 90 % interval" in shown.stdout
    assert "small-results/results.parquet" in shown.stdout
    found = read_results(folder / "small-results" / "results.parquet")
    assert set(found["set_seed_fraction"]) == {0.25, 0.5}
    assert set(found["trial"]) == {0, 1, 2}
    again = RUN.invoke(app, ["simulate", "STUDY.toml", "--trials", "3", "--json"])
    plain = json.loads(again.stdout)
    one = next(
        one
        for one in plain["summaries"]
        if (one["study"], one["contestant"], one["metric"])
        == ("small, seed_fraction = 0.5", "scr", "expected_max_ratio_error")
    )
    assert one["trials"] == 3
    assert one["value"] <= 1


def test_a_mistake_is_a_sentence_on_stderr_and_exit_code_2(folder):
    (folder / "STUDY.toml").write_text(STUDY.replace("epsilon = 1", "epsilom = 1"))
    refused = RUN.invoke(app, ["simulate", "STUDY.toml"])
    assert refused.exit_code == 2
    assert "budget.epsilon is missing" in refused.stderr
    assert not (folder / "small-results").exists()


def started(folder, *words):
    # What a shell starts in the background ignores Ctrl-C, and so do its children.
    hears = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    code = f"{hears}; from sharewell.cli import main; main()"
    return subprocess.Popen(
        [sys.executable, "-c", code, "simulate", "STUDY.toml", *words],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # A terminal sends Ctrl-C to all processes of a group: to the workers, too.
        start_new_session=True,
    )


def finished(folder, *words):
    process = started(folder, *words)
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    return out


def test_after_a_real_ctrl_c_the_run_goes_on_to_the_same_bytes(folder):
    # On a busy machine a short run may be over before the signal comes: then a longer one is stopped.
    for trials in (40, 160, 640, 2560):
        many = ("--trials", str(trials), "--jobs", "2", "--out", f"stopped-{trials}")
        stopped = folder / f"stopped-{trials}"
        process = started(folder, *many)
        parts = stopped / "parts" / "small"
        while process.poll() is None and not list(parts.glob("*.npz")):
            time.sleep(0.005)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGINT)
        _, err = process.communicate(timeout=300)
        kept = {path.name: path.stat().st_mtime_ns for path in parts.glob("*.npz")}
        if len(kept) < trials // 5:
            break
    assert process.returncode == 130
    assert f"which are kept in '{stopped.name}'. Run the same command again to go on." in err
    assert "Traceback" not in err
    assert 0 < len(kept) < trials // 5
    assert not (stopped / "results.parquet").exists()

    finished(folder, *many)
    after = {path.name: path.stat().st_mtime_ns for path in parts.glob("*.npz")}
    assert len(after) == trials // 5
    assert kept.items() <= after.items()
    file = read_study(folder / "STUDY.toml")
    rows = [
        file.study.play(case, trial, file.seed) for case in file.study.cases for trial in range(trials)
    ]
    write_results(together(rows), folder / "whole")
    for name in ("results.parquet", "results.csv"):
        assert (stopped / name).read_bytes() == (folder / "whole" / name).read_bytes()


def test_a_run_whose_main_process_is_killed_leaves_no_workers_behind(folder):
    process = started(folder, "--trials", "3000", "--jobs", "1", "--out", "killed")
    parts = folder / "killed" / "parts" / "small"
    while process.poll() is None and not list(parts.glob("*.npz")):
        time.sleep(0.005)
    group = process.pid
    process.kill()
    process.communicate(timeout=60)
    for _ in range(600):
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return
        time.sleep(0.1)
    os.killpg(group, signal.SIGKILL)
    pytest.fail("workers are still there a minute after")
