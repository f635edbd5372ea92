"""Writes to a ledger until there is no more room, and again when there is, in a process of its own.

`python -m tests.service.ledger.full_disk limit|tmpfs FOLDER`, printing what happened as JSON. With
`limit` the operating system lets no file grow beyond a size (RLIMIT_FSIZE), which needs no rights. With
`tmpfs` a small disk is mounted on the folder, which nobody else sees: the program must be run in a mount
namespace of its own, as by `unshare --mount`.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from sharewell.errors import LedgerUnavailable
from sharewell.privacy.ledger import Done
from sharewell.service.ledger import open_ledger, verify_chain

THREADS = 8
PADDING = "x" * 3000


def limited() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (600_000, resource.RLIM_INFINITY))


def unlimited() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


def main(way: str, folder: Path) -> None:
    if way == "tmpfs":
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", folder], check=True)
        (folder / "in the way").write_bytes(bytes(2**20))
    else:
        limited()
    path = folder / "ledger.sqlite"
    promised: dict[int, str] = {}
    errors: list[LedgerUnavailable] = []

    def work(thread: int) -> None:
        for i in range(1000):
            text = f"{thread} {i} {PADDING}"
            try:
                promised[ledger.append(Done(text))] = text
            except LedgerUnavailable as error:
                errors.append(error)
                return

    ledger = open_ledger(path, create=True)
    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(work, range(THREADS)))
    full = len(promised)
    still_there = {n: e.analyst for n, e in enumerate(ledger.events())} == promised  # type: ignore[union-attr]
    small = []
    for i in range(3):
        try:
            promised[ledger.append(Done(PADDING * 100))] = PADDING * 100
        except LedgerUnavailable:
            small.append(i)
    if way == "tmpfs":
        (folder / "in the way").unlink()
    else:
        unlimited()
    for i in range(20):
        promised[ledger.append(Done(f"room {i}"))] = f"room {i}"
    ledger.close()
    with open_ledger(path, create=True) as again:
        events = [event.analyst for event in again.events()]  # type: ignore[union-attr]
    report = {
        "stored before": full,
        "errors": sorted({str(error.message) for error in errors}),
        "hints": sorted({error.hint for error in errors}),
        "uncertain": any(error.uncertain for error in errors),
        "threads told": len(errors),
        "refused while full": len(small),
        "all there while full": still_there,
        "nothing but what was promised": events == [promised[n] for n in sorted(promised)],
        "numbers without gaps": sorted(promised) == list(range(len(events))),
        "findings": [str(finding) for finding in verify_chain(path)],
    }
    print(json.dumps(report))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
