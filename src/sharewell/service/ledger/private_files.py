"""Files that only their owner may read, written so that a crash leaves the old content or the new."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

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
