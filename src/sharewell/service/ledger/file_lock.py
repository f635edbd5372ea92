"""A lock on a file: held by one process, and let go of by the operating system when it dies."""

from __future__ import annotations

import os
import socket
import sys
import time
from contextlib import suppress
from pathlib import Path

from sharewell.errors import LedgerInUse

if sys.platform == "win32":
    import msvcrt

    #: Windows locks bytes, and nobody may read them then: lock one that is never written.
    _FAR = 1 << 30

    def _try_lock(descriptor: int) -> None:
        os.lseek(descriptor, _FAR, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        os.lseek(descriptor, 0, os.SEEK_SET)

else:
    import fcntl

    def _try_lock(descriptor: int) -> None:
        # Not lockf: that lock is lost when any other handle of this process on the file is closed, and
        # it does not keep out a second opener in the same process.
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


class FileLock:
    """Holds a lock file from now until `release`, or until the process ends, however it ends.

    The file stays behind: deleting it would let two processes lock two files of the same name.
    """

    def __init__(self, path: Path, guarded: Path, wait: float = 0.0) -> None:
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600)
        try:
            self._take(path, guarded, wait)
            # A full disk has no room for a name; the lock holds without it.
            with suppress(OSError):
                os.ftruncate(self._descriptor, 0)
                os.write(self._descriptor, f"process {os.getpid()} on {socket.gethostname()}\n".encode())
        except BaseException:
            os.close(self._descriptor)
            raise

    def _take(self, path: Path, guarded: Path, wait: float) -> None:
        deadline = time.monotonic() + wait
        while True:
            try:
                return _try_lock(self._descriptor)
            except (BlockingIOError, PermissionError):
                if time.monotonic() < deadline:
                    time.sleep(0.05)
                    continue
            who = path.read_text(encoding="utf-8", errors="replace").strip() or "another process"
            raise LedgerInUse(
                f"The ledger {guarded} is in use by {who}.",
                hint="Stop that one first, or open with `wait` to wait for it; "
                "to look at the ledger only, open it with `read_only`.",
            )

    def release(self) -> None:
        """Let the next one in."""
        os.close(self._descriptor)
