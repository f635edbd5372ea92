"""A full disk and a file that cannot be written: refused in a sentence, and good again with room."""

import functools
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@functools.cache
def own_mounts() -> tuple[str, ...] | None:
    """The command before one that may mount a disk for itself alone; None where nobody may."""
    root = os.geteuid() == 0
    prefix = ("unshare", "--mount") if root else ("unshare", "--user", "--map-root-user", "--mount")
    if not shutil.which("unshare"):
        return None
    tried = subprocess.run(
        [*prefix, "mount", "-t", "tmpfs", "tmpfs", "/mnt"], capture_output=True, check=False
    )
    return prefix if tried.returncode == 0 else None


#: A real disk where the machine lets us have one, and a limit on the size of files everywhere.
WAYS = ["limit", "tmpfs"] if own_mounts() else ["limit"]


def filled(module: str, way: str, folder: Path) -> dict:
    """Run a module on a disk that fills up, and read its report."""
    prefix = own_mounts() if way == "tmpfs" else ()
    assert prefix is not None
    done = subprocess.run(
        [*prefix, sys.executable, "-m", module, way, folder],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("way", WAYS)
def test_a_full_disk_is_refused_in_a_sentence_and_room_makes_it_good_again(way, tmp_path):
    report = filled("tests.service.ledger.full_disk", way, tmp_path)
    assert report.pop("stored before") > 20
    for error in report.pop("errors"):
        assert "ledger.sqlite is unavailable: " in error
        assert "disk" in error
    assert any("space" in hint for hint in report.pop("hints"))
    assert report == {
        "uncertain": False,
        "threads told": 8,
        "refused while full": 3,
        "all there while full": True,
        "nothing but what was promised": True,
        "numbers without gaps": True,
        "findings": [],
    }


READ_ONLY = """
import os, sys
from pathlib import Path
from sharewell.errors import LedgerUnavailable
from sharewell.privacy.ledger import Done
from sharewell.service.ledger import open_ledger, verify_chain

folder = Path(sys.argv[1])
path = folder / "ledger.sqlite"
if os.geteuid() == 0:
    # Modes do not stop root. What is needed is loaded by now, so be somebody else.
    os.chown(folder, 65534, 65534)
    os.setegid(65534)
    os.seteuid(65534)
with open_ledger(path, create=True) as ledger:
    ledger.append(Done("before"))
for file, folder_mode in ((0o400, 0o700), (0o600, 0o500), (0o400, 0o500)):
    for left in [*folder.glob("*-wal"), *folder.glob("*-shm")]:
        left.unlink()
    path.chmod(file)
    folder.chmod(folder_mode)
    try:
        with open_ledger(path, create=True) as ledger:
            ledger.append(Done("never"))
        print("written")
    except LedgerUnavailable as error:
        print("refused" if error.hint else error)
    with open_ledger(path, read_only=True) as ledger:
        print([event.analyst for event in ledger.events()], verify_chain(path))
    folder.chmod(0o700)
    path.chmod(0o600)
with open_ledger(path, create=True) as ledger:
    print(ledger.append(Done("after")))
"""


def test_a_file_or_a_folder_that_cannot_be_written_is_refused_and_can_be_read():
    # Not under pytest's own folder, which nobody else may enter.
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, "-c", READ_ONLY, folder], capture_output=True, text=True, timeout=60
        )
    assert done.stderr == ""
    assert done.stdout.splitlines() == ["refused", "['before'] []"] * 3 + ["1"]
