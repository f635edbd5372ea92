"""The log: one line of JSON for each request and event, without data, tokens or questions."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from io import RawIOBase
from types import TracebackType
from typing import Any, BinaryIO

import orjson

from sharewell.errors import ConfigError

#: Loggers whose warnings are written to the log, too.
LOGGERS = ("uvicorn.error", "sharewell", "asyncio")


#: The descriptor of the process's own stderr, whatever `sys.stderr` is.
STDERR = 2


class Log:
    """Writes lines of JSON to an unbuffered stream; a broken stream does not stop the service."""

    def __init__(self, stream: BinaryIO | RawIOBase | None) -> None:
        self._stream = stream

    def write(self, event: str, **fields: Any) -> None:
        """Write one line; fields that are None are left out."""
        known = {name: value for name, value in fields.items() if value is not None}
        line = {"time": datetime.now(UTC), "event": event} | known
        try:
            if self._stream is not None:
                # One system call without a lock: safe from any thread, and from the garbage collector.
                self._stream.write(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE))
        except (OSError, ValueError):
            self._stream = None

    def close(self) -> None:
        """Close the stream."""
        if self._stream is not None:
            self._stream.close()

    def write_error(self, error: BaseException, request_id: str | None = None) -> None:
        """Write an error's type and code locations; its message may contain values."""
        self.write(
            "error",
            request_id=request_id,
            error=" from ".join(_error_types(error)),
            at=list(_locations(error.__traceback__)),
        )

    @contextmanager
    def capture_warnings(self) -> Iterator[None]:
        """Write the warnings of `LOGGERS` here, too."""
        handler = LogHandler(self)
        for name in LOGGERS:
            logging.getLogger(name).addHandler(handler)
        try:
            yield
        finally:
            for name in LOGGERS:
                logging.getLogger(name).removeHandler(handler)


class LogHandler(logging.Handler):
    """Writes log records of libraries to a `Log`, without the values of exceptions."""

    def __init__(self, log: Log) -> None:
        super().__init__(logging.WARNING)
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record."""
        if record.exc_info and record.exc_info[1] is not None:
            self._log.write_error(record.exc_info[1])
        else:
            self._log.write(record.levelname.lower(), source=record.name, message=record.getMessage())


def open_log(path: str | None) -> Log:
    """A log that appends to a file, or writes to stderr if there is no path."""
    if path is None:
        return Log(open(STDERR, "ab", buffering=0, closefd=False))
    try:
        # The log names analysts: other users of the machine must not read it.
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    except OSError as error:
        raise ConfigError(
            f"Cannot write the log {path}: {error.strerror}.",
            hint="Name a file in an existing, writable directory.",
        ) from None
    return Log(open(descriptor, "ab", buffering=0))


def _error_types(error: BaseException) -> Iterator[str]:
    """The type of an error, and of those that caused it."""
    found: BaseException | None = error
    for _ in range(10):
        if found is None:
            return
        yield f"{type(found).__module__}.{type(found).__qualname__}"
        found = found.__cause__ or found.__context__


def _locations(traceback: TracebackType | None) -> Iterator[str]:
    """Module, function and line of each frame of a traceback, the innermost last."""
    while traceback is not None:
        frame = traceback.tb_frame
        module = frame.f_globals.get("__name__", "?")
        yield f"{module}.{frame.f_code.co_qualname}:{traceback.tb_lineno}"
        traceback = traceback.tb_next
