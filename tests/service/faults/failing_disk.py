"""A disk that fails on request: at a write, sync, truncation, rename or deletion of a SQLite ledger.

SQLite reaches its files through a VFS, a table of functions. `FailingDisk` registers one that counts
the calls that change files and lets the chosen ones fail. It is written with ctypes: it needs no
compiler, and works on the library that Python itself uses, wherever that comes from. What Python does to
files of the ledger by itself goes through `os`, and is counted and fails likewise.
"""

from __future__ import annotations

import _sqlite3
import ctypes
import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

SQLITE_FULL, IOERR_WRITE, IOERR_FSYNC, IOERR_TRUNCATE, IOERR_DELETE = 13, 778, 1034, 1546, 2570

Pointer = ctypes.c_void_p
Open = ctypes.CFUNCTYPE(
    ctypes.c_int, Pointer, Pointer, Pointer, ctypes.c_int, ctypes.POINTER(ctypes.c_int)
)
Delete = ctypes.CFUNCTYPE(ctypes.c_int, Pointer, Pointer, ctypes.c_int)
Write = ctypes.CFUNCTYPE(ctypes.c_int, Pointer, Pointer, ctypes.c_int, ctypes.c_int64)
Truncate = ctypes.CFUNCTYPE(ctypes.c_int, Pointer, ctypes.c_int64)
Sync = ctypes.CFUNCTYPE(ctypes.c_int, Pointer, ctypes.c_int)


class Vfs(ctypes.Structure):
    """`sqlite3_vfs`; functions that stay as they are have no type here."""

    _fields_: ClassVar = [
        ("version", ctypes.c_int),
        ("file_size", ctypes.c_int),
        ("max_path", ctypes.c_int),
        ("next", Pointer),
        ("name", ctypes.c_char_p),
        ("app_data", Pointer),
        ("open", Open),
        ("delete", Delete),
        ("others", Pointer * 14),
    ]


class Methods(ctypes.Structure):
    """`sqlite3_io_methods`."""

    _fields_: ClassVar = [
        ("version", ctypes.c_int),
        ("close", Pointer),
        ("read", Pointer),
        ("write", Write),
        ("truncate", Truncate),
        ("sync", Sync),
        ("others", Pointer * 13),
    ]


class FailingDisk:
    """Counts what changes files, and fails at the calls whose numbers are in `fails`."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.fails: range = range(0)
        self._library = ctypes.CDLL(_sqlite3.__file__)
        self._library.sqlite3_vfs_find.restype = ctypes.POINTER(Vfs)
        self._original = self._library.sqlite3_vfs_find(None)
        self._vfs = Vfs.from_buffer_copy(self._original.contents)
        self._vfs.next = None
        self._vfs.name = b"failing"
        self._vfs.open, self._vfs.delete = Open(self._open), Delete(self._delete)
        #: A copy of each table of methods, by the address of the original.
        self._methods: dict[int, Methods] = {}

    def is_failing(self, call: str) -> bool:
        """Count a call; whether it is to fail."""
        self.calls.append(call)
        return len(self.calls) - 1 in self.fails

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Let SQLite and `os` use this disk for what they open from now on."""
        self._library.sqlite3_vfs_register(ctypes.byref(self._vfs), 1)
        before = {name: getattr(os, name) for name in ("fsync", "replace", "ftruncate", "write")}
        for name, function in before.items():
            setattr(os, name, self._wrapped(name, (lambda _: None) if name == "fsync" else function))
        try:
            yield
        finally:
            for name, function in before.items():
                setattr(os, name, function)
            self._library.sqlite3_vfs_register(self._original, 1)
            self._library.sqlite3_vfs_unregister(ctypes.byref(self._vfs))

    def _wrapped(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            if self.is_failing(f"os.{name}"):
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            return function(*args, **options)

        return call

    def _open(self, _: int, name: int, file: int, flags: int, out: Any) -> int:
        address = ctypes.addressof(self._original.contents)
        code = self._original.contents.open(address, name, file, flags, out)
        methods = ctypes.cast(file, ctypes.POINTER(Pointer))
        if code == 0 and methods[0]:
            methods[0] = ctypes.addressof(self._failing(methods[0]))
        return int(code)

    def _delete(self, _: int, name: int, sync: int) -> int:
        if self.is_failing("delete"):
            return IOERR_DELETE
        address = ctypes.addressof(self._original.contents)
        return int(self._original.contents.delete(address, name, sync))

    def _failing(self, address: int) -> Methods:
        """A table of methods whose changes may fail."""
        if address not in self._methods:
            original = Methods.from_address(address)
            table = Methods.from_buffer_copy(original)

            def write(file: int, data: int, size: int, offset: int) -> int:
                if self.is_failing("write"):
                    # Half of it reaches the disk, as when the disk becomes full or the power fails.
                    original.write(file, data, size // 2, offset)
                    return SQLITE_FULL if len(self.calls) % 2 else IOERR_WRITE
                return int(original.write(file, data, size, offset))

            def truncate(file: int, size: int) -> int:
                return IOERR_TRUNCATE if self.is_failing("truncate") else original.truncate(file, size)

            def sync(_file: int, _flags: int) -> int:
                # It waits for no real disk: no power fails here.
                return IOERR_FSYNC if self.is_failing("sync") else 0

            table.write, table.truncate, table.sync = Write(write), Truncate(truncate), Sync(sync)
            self._methods[address] = table
        return self._methods[address]
