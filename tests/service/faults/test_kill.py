"""`kill -9` of a service under load, 100 times: nothing answered is lost, nobody overspends."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


def killed(where, mechanism, scheduler, rounds):
    """How many answers were promised before the deaths, and how many of them were bought."""
    words = [where, "killed", mechanism, scheduler, str(rounds), "1"]
    done = subprocess.run(
        [sys.executable, "-m", "tests.service.faults.killing", *words],
        cwd=ROOT,
        # A process that is copied must have one thread.
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    promised, bought = map(int, done.stdout.split())
    return promised, bought


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mechanism", "scheduler", "rounds"),
    [
        ("cache-reconstruct", "none", 50),
        ("cache-reconstruct", "round-robin", 20),
        ("laplace", "weighted", 20),
        ("multiplicative-weights", "none", 10),
    ],
)
def test_a_killed_service_leaves_all_that_it_answered(mechanism, scheduler, rounds, tmp_path):
    promised, bought = killed(tmp_path / "ledger.sqlite", mechanism, scheduler, rounds)
    assert promised
    assert bought or mechanism == "multiplicative-weights"


@pytest.mark.slow
def test_a_killed_service_leaves_all_that_it_answered_in_the_server(postgres):
    promised, bought = killed(postgres.database(), "cache-reconstruct", "none", 10)
    assert promised
    assert bought
