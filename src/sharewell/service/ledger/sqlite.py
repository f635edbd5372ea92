"""A ledger in one SQLite file."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import ClassVar

import orjson

from sharewell.errors import LedgerCorrupt, LedgerError, LedgerMissing, LedgerUnavailable
from sharewell.service.ledger.chain import Head, Row
from sharewell.service.ledger.durable import DurableLedger
from sharewell.service.ledger.file_lock import FileLock
from sharewell.service.ledger.store import CHUNK, Store, pending

#: "ShWe": marks a SQLite file as a ledger of ours.
APPLICATION_ID = 0x53685765

_VERSION_1 = (
    """CREATE TABLE events (
        number INTEGER PRIMARY KEY, body TEXT NOT NULL, hash BLOB NOT NULL, at REAL NOT NULL
    ) STRICT""",
    "CREATE TABLE head (count INTEGER NOT NULL, hash BLOB NOT NULL) STRICT",
    "INSERT INTO head VALUES (0, zeroblob(32))",
    # Against slips of the hand only: the chain is what finds a change that was meant.
    """CREATE TRIGGER events_stay_as_they_are BEFORE UPDATE ON events
    BEGIN SELECT RAISE(ABORT, 'a ledger is only ever added to'); END""",
    """CREATE TRIGGER events_stay BEFORE DELETE ON events
    BEGIN SELECT RAISE(ABORT, 'a ledger is only ever added to'); END""",
)

#: A whole commit as one statement, which every writer's connection makes for itself. After each
#: statement Python's other threads may have a turn, and to wait for one's own again takes longer than to
#: store a row.
_ONE_STATEMENT = (
    """CREATE TEMP VIEW commits AS SELECT
        0 AS old_count, x'' AS old_hash, 0 AS count, x'' AS hash, '' AS bodies, x'' AS hashes, 0.0 AS at
    """,
    """CREATE TEMP TRIGGER commit_if_nobody_else_has INSTEAD OF INSERT ON commits
    WHEN (SELECT (count, hash) = (NEW.old_count, NEW.old_hash) FROM head)
    BEGIN
        UPDATE head SET count = NEW.count, hash = NEW.hash;
        INSERT INTO events (number, body, hash, at)
        SELECT NEW.old_count + key, value, substr(NEW.hashes, 32 * key + 1, 32), NEW.at
        FROM json_each(NEW.bodies);
    END""",
)
_COMMIT = "INSERT INTO commits VALUES (?, ?, ?, ?, ?, ?, ?)"

_HINTS = {
    sqlite3.SQLITE_FULL: "Make room on the disk; the next event is tried afresh.",
    sqlite3.SQLITE_IOERR: "Check the disk and the room on it; the next event is tried afresh.",
    sqlite3.SQLITE_READONLY: "See to it that the file and its folder can be written.",
    sqlite3.SQLITE_CANTOPEN: "See to it that the file and its folder can be read and written.",
    sqlite3.SQLITE_BUSY: "Close the other program that holds the file.",
}


class SqliteStore(Store):
    """Rows in a SQLite file: write-ahead log, synchronised at every commit.

    Beside the file lie `-wal` and `-shm`, which belong to it while it is open or after a crash, and
    `.lock`, which the one writer holds.
    """

    migrations: ClassVar[tuple[tuple[str, ...], ...]] = (_VERSION_1,)

    def __init__(self, path: str | Path, *, read_only: bool = False, wait: float = 0.0) -> None:
        if sqlite3.sqlite_version_info < (3, 38):
            raise LedgerError(
                f"A ledger needs SQLite 3.38, and this Python has {sqlite3.sqlite_version}.",
                hint="Use a newer Python or operating system, or keep the ledger in PostgreSQL.",
            )
        self.path = Path(path).resolve()
        self.read_only = read_only
        self._lock: FileLock | None = None
        self._connection: sqlite3.Connection | None = None
        try:
            if read_only:
                if not self.path.is_file():
                    raise LedgerMissing(f"There is no ledger {self.path}.", hint="Check the path.")
            else:
                self._lock = FileLock(self.path.with_name(f"{self.path.name}.lock"), self.path, wait)
                # SQLite would make it readable by everybody. The -wal and -shm take after it.
                os.close(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600))
            self._prepare()
        except FileNotFoundError:
            self.close()
            raise LedgerError(
                f"There is no folder {self.path.parent} for the ledger.",
                hint="Make it, or check the path.",
            ) from None
        except OSError as error:
            self.close()
            raise LedgerUnavailable(
                f"The ledger {self.path} cannot be opened: {error.strerror}.",
                hint="See to it that the file and its folder can be read and written.",
            ) from None
        except BaseException:
            self.close()
            raise

    def __str__(self) -> str:
        return str(self.path)

    def head(self) -> Head:
        """The stored head; a statement that failed has left nothing behind."""
        with self._in_words():
            found = self._connected().execute("SELECT count, hash FROM head").fetchall()
        if len(found) != 1:
            raise LedgerCorrupt("The ledger has lost its head.", hint="Restore it from a backup.")
        return Head(*found[0])

    def write(self, rows: Sequence[Row], old: Head, new: Head, at: float) -> bool:
        """Add rows and move the head."""
        bodies = orjson.dumps([row.body.decode() for row in rows]).decode()
        hashes = b"".join([row.hash for row in rows])
        with self._in_words():
            connection = self._connected()
            before = connection.total_changes
            connection.execute(_COMMIT, (old.count, old.hash, new.count, new.hash, bodies, hashes, at))
            return connection.total_changes > before

    def read(self, start: int, stop: int) -> Iterator[Row]:
        """The rows in a range, each chunk in a short transaction of a connection of its own."""
        with closing(self._open_to_read()) as connection:
            while start < stop:
                with self._in_words():
                    chunk = connection.execute(
                        "SELECT number, body, hash FROM events "
                        "WHERE number >= ? AND number < ? ORDER BY number LIMIT ?",
                        (start, stop, CHUNK),
                    ).fetchall()
                yield from map(Row._make, chunk)
                if len(chunk) < CHUNK:
                    return
                start = chunk[-1][0] + 1

    def check(self) -> list[str]:
        """SQLite's own check of the whole file."""
        with self._in_words(), closing(self._open_to_read()) as connection:
            found = connection.execute("PRAGMA integrity_check").fetchall()
        damage = [text.decode(errors="replace") for (text,) in found if text != b"ok"]
        return [*self._cut_off(), *damage]

    def _cut_off(self) -> list[str]:
        """Whether the file is shorter than its header says, in words.

        SQLite forgives a last page that is cut, and takes a file of less than a page for a new one: a
        ledger would begin anew, with its whole budget.
        """
        with self.path.open("rb") as file:
            header = file.read(100)
            size = os.fstat(file.fileno()).st_size
        page = int.from_bytes(header[16:18], "big")
        stated = int.from_bytes(header[28:32], "big") * (65_536 if page == 1 else page)
        if len(header) < 100 or not header.startswith(b"SQLite format 3\0"):
            return ["it is not a database"]
        if (size < stated or 0 < size < 512) and not self._log_size():
            return [f"it is cut off, with {size} bytes left of {stated}"]
        return []

    def _log_size(self) -> int:
        log = self.path.with_name(f"{self.path.name}-wal")
        return log.stat().st_size if log.exists() else 0

    def close(self) -> None:
        """Close the file, which empties the write-ahead log into it, and let the next writer in."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def _connected(self) -> sqlite3.Connection:
        if self._connection is None:
            raise LedgerUnavailable("The ledger is closed.", hint="Open it again.")
        return self._connection

    def _prepare(self) -> None:
        """See that the file is a ledger of ours or nothing yet, and bring it up to date."""
        size = self.path.stat().st_size
        if (damage := self._cut_off() if size else []) and (size < 512 or not self.read_only):
            raise LedgerCorrupt(
                f"The ledger {self.path} is damaged: {damage[0]}.", hint="Restore it from a backup."
            )
        if not size and self.read_only:
            raise LedgerCorrupt(f"The ledger {self.path} is empty.", hint="Restore it from a backup.")
        if self.read_only:
            self._connection = self._open_to_read()
        else:
            self._connection = self._open(self.path.as_uri())
        with self._in_words():
            statements = pending(self.migrations, self._version())
            if statements and self.read_only:
                raise LedgerError(
                    f"The tables of the ledger {self.path} are of an older version, or not there yet.",
                    hint="Open it for writing once, which brings it up to date.",
                )
            if not self.read_only:
                self._keep_log()
            if statements:
                self._migrate(statements)
            if not self.read_only:
                for statement in _ONE_STATEMENT:
                    self._connection.execute(statement)

    @staticmethod
    def _open(uri: str) -> sqlite3.Connection:
        connection = sqlite3.connect(
            uri, uri=True, isolation_level=None, check_same_thread=False, timeout=5.0
        )
        # Bytes as they are: a text that was damaged must reach the chain, which says where it is.
        connection.text_factory = bytes
        return connection

    def _open_to_read(self) -> sqlite3.Connection:
        with self._in_words():
            uri = f"{self.path.as_uri()}?mode=ro"
            connection = self._open(uri)
            try:
                connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
                return connection
            except sqlite3.OperationalError:
                connection.close()
                if not self.read_only or self._log_size():
                    raise
                # In a folder that cannot be written, SQLite cannot read beside a writer. Where there
                # is no log there is no writer either.
                return self._open(f"{uri}&immutable=1")

    def _keep_log(self) -> None:
        connection = self._connected()
        mode = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
        if mode != b"wal":
            raise LedgerError(
                f"SQLite cannot keep a write-ahead log for {self.path}.",
                hint="Keep the ledger on a disk of this machine.",
            )
        # With NORMAL, which is faster, a commit could be lost with the machine's power.
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA fullfsync = ON")

    def _version(self) -> int:
        connection = self._connected()
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
        mark = connection.execute("PRAGMA application_id").fetchone()[0]
        if not tables and not mark:
            return 0
        if mark != APPLICATION_ID or b"schema_version" not in tables:
            raise LedgerError(
                f"{self.path} is a SQLite file, but not a ledger of Sharewell.",
                hint="Check the path; the file was not touched.",
            )
        version = connection.execute("SELECT max(version) FROM schema_version").fetchone()[0]
        return int(version or 0)

    def _migrate(self, statements: Sequence[str]) -> None:
        connection = self._connected()
        connection.execute("BEGIN IMMEDIATE")
        try:
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute("CREATE TABLE IF NOT EXISTS schema_version (version INTEGER) STRICT")
            for statement in statements:
                connection.execute(statement)
            connection.execute("INSERT INTO schema_version VALUES (?)", (len(self.migrations),))
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.rollback()
            raise

    @contextmanager
    def _in_words(self) -> Iterator[None]:
        """Says in our words what SQLite says in its own."""
        try:
            yield
        except sqlite3.Error as error:
            code = getattr(error, "sqlite_errorcode", 0) & 0xFF
            if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
                raise LedgerCorrupt(
                    f"The ledger {self.path} is damaged: {error}.", hint="Restore it from a backup."
                ) from None
            raise LedgerUnavailable(
                f"The ledger {self.path} is not available: {error}.", hint=_HINTS.get(code, "")
            ) from None


class SqliteLedger(DurableLedger):
    """A durable ledger in one SQLite file; a second writer is refused, or waits so many seconds.

    >>> import tempfile
    >>> from sharewell.privacy.ledger import Left
    >>> path = f"{tempfile.mkdtemp()}/ledger.sqlite"
    >>> with SqliteLedger(path) as ledger:
    ...     ledger.append(Left("ann"))
    0
    >>> with SqliteLedger(path, read_only=True) as ledger:
    ...     list(ledger.events())
    [Left(payer='ann')]
    """

    def __init__(
        self,
        path: str | Path,
        *,
        read_only: bool = False,
        wait: float = 0.0,
        clock: Callable[[], float] = time.time,
    ) -> None:
        super().__init__(SqliteStore(path, read_only=read_only, wait=wait), clock=clock)
