"""A full disk and a file that cannot be written: no answer leaks, and with room the service goes on."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.service.ledger.test_full_disk import WAYS, filled

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("way", WAYS)
def test_a_full_disk_refuses_cleanly_and_with_room_every_key_is_answered_and_paid_once(way, tmp_path):
    report = filled("tests.service.faults.full_disk", way, tmp_path)
    assert report.pop("answered before") >= 12
    assert all("ledger.sqlite is unavailable" in message for message in report.pop("messages"))
    assert report == {
        "codes": ["ledger.unavailable"],
        "known while full": True,
        "not answered while full": 0,
        "all answered in the end": True,
        "nothing waits": True,
        "spent as the ledger says": True,
        "findings": [],
    }


READ_ONLY = """
import os, sys
from pathlib import Path
from sharewell.errors import LedgerUnavailable
from sharewell.privacy.noise import ExactNoise
from sharewell.service.dataset import DatasetService
from sharewell.service.ledger import open_ledger
from tests.service.services import config, count, serve, status, table

settings, folder = config(), Path(sys.argv[1])
path = folder / "ledger.sqlite"
ExactNoise().laplace(1.0, 1)

def ask(analyst):
    with open_ledger(path, create=True) as ledger:
        with serve(settings, ledger) as service:
            result = service.ask(analyst, count(0, 9), key="k")
            return result.answers[0].value, status(service, analyst).spent

if os.geteuid() == 0:
    # Modes do not stop root. What is needed is loaded by now, so be somebody else.
    os.chown(folder, 65534, 65534)
    os.setegid(65534)
    os.seteuid(65534)
before = ask("ann")
path.chmod(0o400)
try:
    print(ask("ben"))
except LedgerUnavailable as error:
    print(error.code, bool(error.hint))
path.chmod(0o600)
print(ask("ann") == before, ask("ben")[0] == before[0])
"""


def test_a_file_that_cannot_be_written_is_refused_and_serves_again_when_it_can():
    # Not under pytest's own folder, which nobody else may enter.
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, "-c", READ_ONLY, folder],
            cwd=ROOT,
            env={**os.environ, "XDG_STATE_HOME": folder},
            capture_output=True,
            text=True,
            timeout=60,
        )
    assert done.stderr == ""
    assert done.stdout.splitlines() == ["ledger.unavailable True", "True True"]
