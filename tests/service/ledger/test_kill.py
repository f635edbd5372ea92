"""`kill -9` at random moments: whatever a writer was promised is there, whole, and the chain holds."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


def killed(where, rounds, seed):
    done = subprocess.run(
        [sys.executable, "-m", "tests.service.ledger.crash", where, "killed", str(rounds), str(seed)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


@pytest.mark.slow
def test_a_killed_writer_leaves_all_that_it_promised_in_its_file(tmp_path):
    assert killed(tmp_path / "ledger.sqlite", rounds=25, seed=1) > 25


@pytest.mark.slow
def test_a_killed_writer_leaves_all_that_it_promised_in_the_server(postgres):
    assert killed(postgres.database(), rounds=8, seed=2) > 8
