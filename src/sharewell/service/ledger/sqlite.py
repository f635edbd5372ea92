"""Ledgers in SQLite files."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Collection, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Lock
from typing import ClassVar

import orjson

from sharewell.errors import LedgerCorrupt, LedgerError, LedgerMissing, LedgerUnavailable
from sharewell.service.ledger.files import FileLock, create_private, sync_folder
from sharewell.service.ledger.store import (
    CHUNK,
    QUESTION_CHUNK,
    CommitPart,
    Head,
    QuestionFilter,
    QuestionRow,
    Row,
    SideRows,
    Store,
    split_commit,
)

#: "ShWe": marks a SQLite file as a Sharewell ledger.
APPLICATION_ID = 0x53685765

_VERSION_1 = (
    """CREATE TABLE events (
        number INTEGER PRIMARY KEY, body TEXT NOT NULL, hash BLOB NOT NULL, at REAL NOT NULL
    ) STRICT""",
    "CREATE TABLE head (count INTEGER NOT NULL, hash BLOB NOT NULL) STRICT",
    "INSERT INTO head VALUES (0, zeroblob(32))",
    # Against accidents only; the chain detects deliberate changes.
    """CREATE TRIGGER events_stay_as_they_are BEFORE UPDATE ON events
    BEGIN SELECT RAISE(ABORT, 'a ledger is only ever added to'); END""",
    """CREATE TRIGGER events_stay BEFORE DELETE ON events
    BEGIN SELECT RAISE(ABORT, 'a ledger is only ever added to'); END""",
)

_VERSION_2 = (
    """CREATE TABLE questions (
        number INTEGER PRIMARY KEY, analyst TEXT NOT NULL, key TEXT NOT NULL
    ) STRICT""",
    # No index by analyst: analysts are few, and every index slows every commit.
    "CREATE INDEX questions_by_key ON questions (key)",
    "CREATE TABLE endings (asked INTEGER PRIMARY KEY, number INTEGER NOT NULL) STRICT",
    "CREATE TABLE answers (number INTEGER PRIMARY KEY, text TEXT NOT NULL) STRICT",
)

#: Fill the side tables from three JSON objects, whose names are the numbers of events.
_INSERT_QUESTIONS = """INSERT INTO questions (number, analyst, key)
SELECT CAST(key AS INTEGER), substr(value, 1, 32), substr(value, 33) FROM json_each({})"""
_INSERT_ENDINGS = """INSERT OR IGNORE INTO endings (asked, number)
SELECT value, CAST(key AS INTEGER) FROM json_each({})"""
_INSERT_ANSWERS = """INSERT INTO answers (number, text)
SELECT CAST(key AS INTEGER), value FROM json_each({})"""

#: Temporary objects that make a commit one statement. Python may switch threads after each statement,
#: and waiting to run again takes longer than storing a row.
_COMMIT_OBJECTS = (
    """CREATE TEMP VIEW commits AS SELECT
        0 AS old_count, x'' AS old_hash, 0 AS count, x'' AS hash, '' AS bodies, x'' AS hashes, 0.0 AS at,
        '' AS questions, '' AS endings, '' AS answers
    """,
    f"""CREATE TEMP TRIGGER commit_if_head_is_unchanged INSTEAD OF INSERT ON commits
    WHEN (SELECT (count, hash) = (NEW.old_count, NEW.old_hash) FROM head)
    BEGIN
        UPDATE head SET count = NEW.count, hash = NEW.hash;
        INSERT INTO events (number, body, hash, at)
        SELECT NEW.old_count + key, value, substr(NEW.hashes, 32 * key + 1, 32), NEW.at
        FROM json_each(NEW.bodies);
        {_INSERT_QUESTIONS.format("NEW.questions")};
        {_INSERT_ENDINGS.format("NEW.endings")};
        {_INSERT_ANSWERS.format("NEW.answers")};
    END""",  # noqa: S608 (constants only)
)
_COMMIT = "INSERT INTO commits VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"

_READ_QUESTIONS = """
SELECT q.number, asked.body, ending.body, answers.text
FROM questions AS q JOIN events AS asked ON asked.number = q.number
LEFT JOIN endings ON endings.asked = q.number
LEFT JOIN events AS ending ON ending.number = endings.number
LEFT JOIN answers ON answers.number = endings.number
WHERE q.number > ? AND {} LIMIT ?
"""
#: Ordered by an expression: the database then uses the index of keys instead of scanning in order.
_FILTERS: dict[QuestionFilter, str] = {
    "keys": "q.key IN (SELECT value FROM json_each(?)) ORDER BY q.number + 0",
    "number": "q.number = ?",
    "analyst": "q.analyst = ? ORDER BY q.number",
}

_READ_TIMES = "SELECT number, at FROM events WHERE number IN (SELECT value FROM json_each(?))"

_HINTS = {
    sqlite3.SQLITE_FULL: "Free disk space; the next event is tried again.",
    sqlite3.SQLITE_IOERR: "Check the disk and its free space; the next event is tried again.",
    sqlite3.SQLITE_READONLY: "Make the file and its folder writable.",
    sqlite3.SQLITE_CANTOPEN: "Make the file and its folder readable and writable.",
    sqlite3.SQLITE_BUSY: "Close the other program that has the file open.",
}


class SqliteStore(Store):
    """Rows in a SQLite file with a write-ahead log, synced at every commit.

    `-wal` and `-shm` beside the file belong to it while it is open and after a crash; the writer holds
    `.lock`.
    """

    migrations: ClassVar[tuple[tuple[str, ...], ...]] = (_VERSION_1, _VERSION_2)

    def __init__(
        self, path: str | Path, *, read_only: bool = False, create: bool = False, wait: float = 0.0
    ) -> None:
        if sqlite3.sqlite_version_info < (3, 38):
            raise LedgerError(
                f"A ledger needs SQLite 3.38 or newer; this Python has {sqlite3.sqlite_version}.",
                hint="Use a newer Python or operating system, or keep the ledger in PostgreSQL.",
            )
        self.path = Path(path).resolve()
        self.read_only = read_only
        self._lock: FileLock | None = None
        #: Held while questions and times are read, on a separate connection.
        self._reading = Lock()
        self._connections: list[sqlite3.Connection] = []
        try:
            if (read_only or not create) and not self.path.exists():
                raise LedgerMissing(
                    f"No ledger at {self.path}.", hint="Check the path, or restore a backup."
                )
            if not read_only:
                self._lock = FileLock(self._beside(".lock"), self.path, wait)
            if not self.path.exists():
                self._create()
            if not read_only:
                # SQLite would open a file that is not writable read-only, without an error.
                os.close(os.open(self.path, os.O_RDWR))
            self._prepare()
        except FileNotFoundError:
            self.close()
            raise LedgerError(
                f"The folder {self.path.parent} of the ledger does not exist.",
                hint="Create it, or check the path.",
            ) from None
        except OSError as error:
            self.close()
            raise LedgerUnavailable(
                f"Cannot open the ledger {self.path}: {error.strerror}.",
                hint="Make the file and its folder readable and writable.",
            ) from None
        except BaseException:
            self.close()
            raise

    def __str__(self) -> str:
        return str(self.path)

    def head(self) -> Head:
        """The committed head; a failed statement leaves nothing behind."""
        with self._translated_errors():
            if self._connection.in_transaction:
                self._connection.rollback()
            found = self._connection.execute("SELECT count, hash FROM head").fetchall()
        if len(found) != 1:
            raise LedgerCorrupt("The ledger has no head.", hint="Restore it from a backup.")
        return Head(*found[0])

    def write(self, rows: Sequence[Row], side: SideRows, old: Head, new: Head, at: float) -> bool:
        """Add rows and move the head."""
        parts, connection = split_commit(rows, side, old, new), self._connection
        with self._translated_errors():
            if len(parts) == 1:
                return self._execute(parts[0], at)
            connection.execute("BEGIN IMMEDIATE")
            try:
                is_written = all(self._execute(part, at) for part in parts)
                connection.execute("COMMIT" if is_written else "ROLLBACK")
                return is_written
            finally:
                if connection.in_transaction:
                    connection.rollback()

    def _execute(self, part: CommitPart, at: float) -> bool:
        """Add the rows of one statement; False if the head is not the one before it."""
        rows, side, old, new = part
        bodies = orjson.dumps([row.body.decode() for row in rows]).decode()
        hashes = b"".join([row.hash for row in rows])
        values = (old.count, old.hash, new.count, new.hash, bodies, hashes, at, *side.to_json().values())
        before = self._connection.total_changes
        self._connection.execute(_COMMIT, values)
        return self._connection.total_changes > before

    def read(self, start: int, stop: int) -> Iterator[Row]:
        """The rows in a range, each chunk in a short transaction on a separate connection."""
        with closing(self._open_to_read()) as connection:
            while start < stop:
                with self._translated_errors():
                    chunk = connection.execute(
                        "SELECT number, body, hash FROM events "
                        "WHERE number >= ? AND number < ? ORDER BY number LIMIT ?",
                        (start, stop, CHUNK),
                    ).fetchall()
                for number, body, digest in chunk:
                    yield Row(number, _as_bytes(body), _as_bytes(digest))
                if len(chunk) < CHUNK:
                    return
                start = chunk[-1][0] + 1

    def questions(self, by: QuestionFilter, value: object, after: int = -1) -> list[QuestionRow]:
        """Some questions, on a separate connection: they wait for no commit."""
        statement = _READ_QUESTIONS.format(_FILTERS[by])
        many = len(value) if isinstance(value, list) else QUESTION_CHUNK
        stored = orjson.dumps(value).decode() if isinstance(value, list) else value
        with self._reading, self._translated_errors():
            found = self._reader.execute(statement, (after, stored, many)).fetchall()
        return list(map(QuestionRow._make, found))

    def times(self, numbers: Collection[int]) -> dict[int, float]:
        """When some events were written, on a separate connection."""
        with self._reading, self._translated_errors():
            found = self._reader.execute(_READ_TIMES, (orjson.dumps([*numbers]).decode(),))
            return dict(found.fetchall())

    def side_rows(self, *, answers: bool = True) -> SideRows | None:
        """What is stored beside the chain."""
        with closing(self._open_to_read()) as connection, self._translated_errors():
            if self._version(connection) < 2:
                return None
            questions = connection.execute("SELECT number, analyst || key FROM questions")
            endings = connection.execute("SELECT number, asked FROM endings")
            texts = connection.execute("SELECT number, text FROM answers WHERE ?", (answers,))
            return SideRows(
                {number: _as_bytes(both).decode(errors="replace") for number, both in questions},
                dict(endings),
                {number: _as_bytes(text).decode(errors="replace") for number, text in texts},
            )

    def check(self) -> list[str]:
        """Run SQLite's integrity check on the whole file."""
        with self._translated_errors(), closing(self._open_to_read()) as connection:
            found = connection.execute("PRAGMA integrity_check").fetchall()
        damage = [text.decode(errors="replace") for (text,) in found if text != b"ok"]
        return [*self._truncation(), *damage]

    def _truncation(self) -> list[str]:
        """Detect a file that is shorter than its header says.

        SQLite accepts an incomplete last page, and treats a file of less than a page as a new one: the
        ledger would start again with its whole budget.
        """
        with self.path.open("rb") as file:
            header = file.read(100)
            size = os.fstat(file.fileno()).st_size
        page = int.from_bytes(header[16:18], "big")
        stated = int.from_bytes(header[28:32], "big") * (65_536 if page == 1 else page)
        if len(header) < 100 or not header.startswith(b"SQLite format 3\0"):
            return ["not a database"]
        if (size < stated or 0 < size < 512) and not self._log_size():
            return [f"truncated to {size} of {stated} bytes"]
        return []

    def _log_size(self) -> int:
        log = self._beside("-wal")
        return log.stat().st_size if log.exists() else 0

    def _beside(self, suffix: str) -> Path:
        return self.path.with_name(f"{self.path.name}{suffix}")

    def close(self) -> None:
        """Close the file, which empties the write-ahead log into it, then free the lock."""
        with self._reading:
            for connection in reversed(self._connections):
                connection.close()
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def _create(self) -> None:
        """Make a ledger under another name, then rename it: a crash leaves a whole one, or none."""
        new = self._beside(".new")
        new.unlink(missing_ok=True)
        # SQLite would create it world-readable. The -wal and -shm inherit its mode.
        os.close(create_private(new))
        with self._translated_errors(), closing(self._open(new.as_uri())) as connection:
            # Without a log: until the first checkpoint, losing the log would lose the ledger.
            self._migrate(connection, 0)
        new.replace(self.path)
        sync_folder(self.path.parent)

    def _prepare(self) -> None:
        """Check that the file is a Sharewell ledger, and migrate its tables."""
        size = self.path.stat().st_size
        if not size:
            raise self._empty()
        if (damage := self._truncation()) and (size < 512 or not self.read_only):
            raise LedgerCorrupt(
                f"The ledger {self.path} is damaged: {damage[0]}.", hint="Restore it from a backup."
            )
        if self.read_only:
            self._connection = self._open_to_read()
        else:
            self._connection = self._open(self.path.as_uri())
        self._connections.append(self._connection)
        with self._translated_errors():
            version = self._version(self._connection)
            if not version:
                raise self._empty()
            pending = self.pending_migrations(version)
            if not self.read_only:
                self._enable_log()
                if pending:
                    self._migrate(self._connection, version)
                for statement in _COMMIT_OBJECTS:
                    self._connection.execute(statement)
        self._reader = self._open_to_read()
        self._connections.append(self._reader)

    def _empty(self) -> LedgerCorrupt:
        return LedgerCorrupt(
            f"The ledger {self.path} is empty.",
            hint="Restore a backup. If there is none, move the file away and run `sharewell recover`.",
        )

    @staticmethod
    def _open(uri: str) -> sqlite3.Connection:
        connection = sqlite3.connect(
            uri, uri=True, isolation_level=None, check_same_thread=False, timeout=30.0
        )
        # Raw bytes: damaged text must reach the chain check, which locates it.
        connection.text_factory = bytes
        return connection

    def _open_to_read(self) -> sqlite3.Connection:
        with self._translated_errors():
            uri = f"{self.path.as_uri()}?mode=ro"
            connection = self._open(uri)
            try:
                connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
                return connection
            except sqlite3.OperationalError:
                connection.close()
                if not self.read_only or self._log_size():
                    raise
                # In a read-only folder SQLite cannot read concurrently with a writer. Without a log
                # there is no writer.
                return self._open(f"{uri}&immutable=1")

    def _enable_log(self) -> None:
        connection = self._connection
        mode = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
        if mode != b"wal":
            raise LedgerError(
                f"SQLite cannot use a write-ahead log for {self.path}.",
                hint="Keep the ledger on a local disk.",
            )
        # With NORMAL a commit can be lost in a power failure.
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA fullfsync = ON")

    def _version(self, connection: sqlite3.Connection) -> int:
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
        mark = connection.execute("PRAGMA application_id").fetchone()[0]
        if not tables and not mark:
            return 0
        if mark != APPLICATION_ID or b"schema_version" not in tables:
            raise LedgerError(
                f"{self.path} is a SQLite database but not a Sharewell ledger.",
                hint="Check the path; the file was not changed.",
            )
        version = connection.execute("SELECT max(version) FROM schema_version").fetchone()[0]
        return int(version or 0)

    def _migrate(self, connection: sqlite3.Connection, version: int) -> None:
        connection.execute("BEGIN IMMEDIATE")
        try:
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute("CREATE TABLE IF NOT EXISTS schema_version (version INTEGER) STRICT")
            for statement in self.pending_migrations(version):
                connection.execute(statement)
            if version == 1:
                self._index(connection)
            connection.execute("INSERT INTO schema_version VALUES (?)", (len(self.migrations),))
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.rollback()
            raise

    @staticmethod
    def _index(connection: sqlite3.Connection) -> None:
        """Index the questions of a ledger that was written without an index."""
        events = connection.execute("SELECT number, body FROM events ORDER BY number")
        while chunk := events.fetchmany(CHUNK):
            side = SideRows.of_bodies(chunk).to_json()
            connection.execute(_INSERT_QUESTIONS.format("?"), (side["questions"],))
            connection.execute(_INSERT_ENDINGS.format("?"), (side["endings"],))

    @contextmanager
    def _translated_errors(self) -> Iterator[None]:
        """Translate SQLite's errors."""
        try:
            yield
        except sqlite3.Error as error:
            code = getattr(error, "sqlite_errorcode", 0) & 0xFF
            if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
                raise LedgerCorrupt(
                    f"The ledger {self.path} is damaged: {error}.", hint="Restore it from a backup."
                ) from None
            raise LedgerUnavailable(
                f"The ledger {self.path} is unavailable: {error}.", hint=_HINTS.get(code, "")
            ) from None


def _as_bytes(value: object) -> bytes:
    """A stored text or blob; empty if a damaged file holds a value of another type."""
    return value if isinstance(value, bytes) else b""
