"""Files that only their owner may read, and lock files.

A file is written so that a crash leaves the old content or the new; the operating system frees a lock
when the process ends.
"""

from __future__ import annotations

import os
import socket
import stat
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from sharewell.errors import LedgerInUse

#: Bits of a mode that let other users read or change a file.
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def create_private(path: Path, flags: int = os.O_EXCL) -> int:
    """Open a file for writing that its owner alone may read, whatever the umask: its descriptor."""
    flags |= os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0)
    descriptor = os.open(path, flags, 0o600)
    if sys.platform != "win32":
        os.fchmod(descriptor, 0o600)
    return descriptor


def replace_private(
    path: Path, content: bytes, prepare: Callable[[Path], object] = lambda new: None
) -> None:
    """Replace a file, or create it, so that its owner alone may read it: atomically and durably.

    `prepare` is called with the new file before it is synced and renamed.
    """
    new = path.with_name(f"{path.name}.new")
    try:
        # A file left by a crash may be readable by others, or a link.
        new.unlink(missing_ok=True)
        with os.fdopen(create_private(new), "wb") as file:
            file.write(content)
            file.flush()
            prepare(new)
            os.fsync(file.fileno())
        new.replace(path)
        sync_folder(path.parent)
    except OSError:
        with suppress(OSError):
            new.unlink(missing_ok=True)
        raise


def sync_folder(folder: Path) -> None:
    """Wait until the names in a folder are on disk."""
    if sys.platform != "win32":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def make_private_folder(folder: Path) -> None:
    """Create a folder and its parents, each only for its owner."""
    if not folder.exists():
        make_private_folder(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)
        sync_folder(folder.parent)


def is_open_to_others(path: Path) -> bool:
    """Whether users other than the owner may read or change a file, where the system has modes."""
    try:
        return os.name == "posix" and bool(path.stat().st_mode & _OTHERS)
    except OSError:
        return False


# Locks

if sys.platform == "win32":
    import msvcrt

    #: Windows locks bytes and makes them unreadable: lock one that is never written.
    _FAR = 1 << 30

    def _try_lock(descriptor: int) -> None:
        os.lseek(descriptor, _FAR, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        os.lseek(descriptor, 0, os.SEEK_SET)

    def _unlock(descriptor: int) -> None:
        os.lseek(descriptor, _FAR, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _try_lock(descriptor: int) -> None:
        # Not lockf: such a lock is lost when any other handle of this process on the file is closed,
        # and it does not exclude a second opener in the same process.
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def _unlock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_UN)


class FileLock:
    """Holds a lock file until `release` or the end of the process.

    The file is never deleted: two processes could then lock two files of the same name.
    """

    def __init__(self, path: Path, guarded: Path, wait: float = 0.0, kind: str = "ledger") -> None:
        self._process = os.getpid()
        self._descriptor = create_private(path, flags=0)
        try:
            self._acquire(path, f"{kind} {guarded}", wait)
            # On a full disk the owner's name cannot be written; the lock holds without it.
            with suppress(OSError):
                os.ftruncate(self._descriptor, 0)
                os.write(self._descriptor, f"process {os.getpid()} on {socket.gethostname()}\n".encode())
        except BaseException:
            os.close(self._descriptor)
            raise

    def _acquire(self, path: Path, guarded: str, wait: float) -> None:
        deadline = time.monotonic() + wait
        while True:
            try:
                return _try_lock(self._descriptor)
            except (BlockingIOError, PermissionError):
                if time.monotonic() < deadline:
                    time.sleep(0.05)
                    continue
            owner = path.read_text(encoding="utf-8", errors="replace").strip() or "another process"
            raise LedgerInUse(
                f"The {guarded} is in use by {owner}.",
                hint="Stop that process, or open with `wait`; to read only, open with `read_only`.",
            )

    def __enter__(self) -> FileLock:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def release(self) -> None:
        """Free the lock before returning, once; a forked child leaves it to its parent.

        Closing alone is not enough: a process forked meanwhile shares the lock until it calls exec.
        """
        if self._descriptor < 0:
            return
        if os.getpid() == self._process:
            with suppress(OSError):
                _unlock(self._descriptor)
        os.close(self._descriptor)
        self._descriptor = -1
