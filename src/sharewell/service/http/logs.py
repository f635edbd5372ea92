"""Logs: one line of JSON for each request and each event, free of data, tokens and questions."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from threading import Lock
from types import TracebackType
from typing import Any, TextIO

import orjson

from sharewell.errors import ConfigError


class Log:
    """Writes lines of JSON to a stream; a stream that is gone is no reason to stop serving.

    With `gather` lines are kept until somebody calls `flush`: to write each of them by itself would take
    as long as much else that is done for a request.
    """

    def __init__(self, stream: TextIO | None, *, gather: bool = False) -> None:
        self._stream = stream
        self._gather = gather
        self._lines: list[str] = []
        self._flushing = Lock()

    def write(self, event: str, **fields: Any) -> None:
        """Write one line; what is None is left out."""
        if self._stream is None:
            return
        known = {name: value for name, value in fields.items() if value is not None}
        self._lines.append(orjson.dumps({"time": datetime.now(UTC), "event": event} | known).decode())
        if not self._gather:
            self.flush()

    def flush(self) -> None:
        """Write what was kept, unless that is under way."""
        # Nobody waits here: what the garbage collector ends meanwhile may have something to log itself.
        if not self._flushing.acquire(blocking=False):
            return
        try:
            while self._stream is not None and self._lines:
                lines = self._lines[:]
                del self._lines[: len(lines)]
                self._stream.write("\n".join([*lines, ""]))
                self._stream.flush()
        except (OSError, ValueError):
            self._stream = None
        finally:
            self._flushing.release()

    def failed(self, error: BaseException, request_id: str | None = None) -> None:
        """Write what kind of error there was and where in the code: its words may hold values."""
        self.write(
            "error",
            request_id=request_id,
            error=" from ".join(_kinds(error)),
            at=list(_places(error.__traceback__)),
        )
        self.flush()

    def collect(self, *loggers: str) -> LogHandler:
        """Have what the named loggers say written here, too."""
        handler = LogHandler(self)
        for name in loggers:
            logging.getLogger(name).addHandler(handler)
        return handler


class LogHandler(logging.Handler):
    """Passes on what libraries log, without the words and values of exceptions."""

    def __init__(self, log: Log) -> None:
        super().__init__(logging.WARNING)
        self._log = log

    def leave(self, *loggers: str) -> None:
        """Pass on nothing more of the named loggers."""
        for name in loggers:
            logging.getLogger(name).removeHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        """Pass on one record."""
        if record.exc_info and record.exc_info[1] is not None:
            self._log.failed(record.exc_info[1])
        else:
            self._log.write(record.levelname.lower(), source=record.name, message=record.getMessage())


def open_log(path: str | None) -> Log:
    """A log that adds to a file whenever it is flushed; None: to stderr."""
    if path is None:
        return Log(sys.stderr, gather=True)
    try:
        # It says who asked when: others on the machine need not know.
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        return Log(open(descriptor, "a", encoding="utf-8"), gather=True)
    except OSError as error:
        raise ConfigError(
            f"The log {path} cannot be written: {error.strerror}.",
            hint="Name a file in a folder that is there and can be written.",
        ) from None


def _kinds(error: BaseException) -> Iterator[str]:
    """The type of an error, and of those that it came from."""
    found: BaseException | None = error
    for _ in range(10):
        if found is None:
            return
        yield f"{type(found).__module__}.{type(found).__qualname__}"
        found = found.__cause__ or found.__context__


def _places(traceback: TracebackType | None) -> Iterator[str]:
    """Where an error came through: module, function and line, the innermost last."""
    while traceback is not None:
        frame = traceback.tb_frame
        module = frame.f_globals.get("__name__", "?")
        yield f"{module}.{frame.f_code.co_qualname}:{traceback.tb_lineno}"
        traceback = traceback.tb_next
