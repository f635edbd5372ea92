"""A service whose disk fills up, and has room again, in a process of its own.

`python -m tests.service.faults.full_disk limit|tmpfs FOLDER`, printing what happened as JSON. With
`limit` the operating system lets no file grow any more (RLIMIT_FSIZE). With `tmpfs` a small disk is
mounted on the folder, for this process alone: run it in a mount namespace of its own.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from sharewell.service.ledger import open_ledger, verify_chain
from tests.service.faults.bookkeeping import Books, whole_events
from tests.service.faults.retrying import Clients
from tests.service.services import config, count, serve, status

THREADS = 6


class Disk:
    """A disk that can be filled and emptied."""

    def __init__(self, way: str, folder: Path) -> None:
        self._tmpfs = way == "tmpfs"
        self._balloon = folder / "in the way"
        self._files = [folder / "ledger.sqlite", folder / "ledger.sqlite-wal"]
        if self._tmpfs:
            subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", folder], check=True)

    def fill(self) -> None:
        if not self._tmpfs:
            largest = max(file.stat().st_size for file in self._files)
            resource.setrlimit(resource.RLIMIT_FSIZE, (largest, resource.RLIM_INFINITY))
            return
        with self._balloon.open("ab", buffering=0) as balloon:
            for size in (4096, 1):
                try:
                    while balloon.write(bytes(size)):
                        pass
                except OSError:
                    continue

    def empty(self) -> None:
        self._balloon.unlink(missing_ok=True)
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


def main(way: str, folder: Path) -> None:
    disk, settings, path = Disk(way, folder), config(), folder / "ledger.sqlite"

    def books() -> Books:
        found = Books(bought_once=True)
        with open_ledger(path, read_only=True) as reader:
            found.read(whole_events(reader))
        return found

    with open_ledger(path, create=True) as ledger:
        service = serve(settings, ledger)
        clients = Clients(service)
        clients.all_insist(THREADS, 0, 2)
        disk.fill()
        with ThreadPoolExecutor(THREADS) as pool:
            # The files may have some room of their own: ask until there is none.
            for at in range(2, 400):
                answered = list(pool.map(lambda thread, at=at: clients.once(thread, at), range(THREADS)))
                if not any(answered):
                    break
        stopped = at
        while_full = books()
        while_full.kept(clients.answers)
        quoted = service.quote("ann", count(0, 9)).paid
        spent = {name: status(service, name).spent for name in service.analyst_names}
        disk.empty()
        clients.all_insist(THREADS, 2, stopped + 3)
        after = books()
        after.kept(clients.answers)
        report = {
            "answered before": len(while_full.answers),
            "codes": sorted({error.code for error in clients.refusals}),
            "messages": sorted({error.message for error in clients.refusals}),
            "known while full": quoted is not None and spent is not None,
            "not answered while full": len(while_full.answers.keys() - clients.answers.keys()),
            "all answered in the end": len(clients.answers) == THREADS * (stopped + 3),
            "nothing waits": after.waiting == 0,
            "spent as the ledger says": all(
                status(service, name).spent == after.spent[name] for name in service.analyst_names
            ),
        }
        service.close()
    report["findings"] = [str(finding) for finding in verify_chain(path)]
    print(json.dumps(report))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
