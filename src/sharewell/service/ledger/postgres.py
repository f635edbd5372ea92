"""Named ledgers in PostgreSQL databases."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Collection, Generator, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from hashlib import sha256
from threading import Lock
from typing import Any, ClassVar

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from sharewell.errors import (
    LedgerCorrupt,
    LedgerError,
    LedgerInUse,
    LedgerMissing,
    LedgerUnavailable,
)
from sharewell.service.ledger.store import (
    BEGINNING,
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

_VERSION_1 = (
    """CREATE TABLE sharewell.events (
        ledger text, number bigint, body text NOT NULL, hash bytea NOT NULL, at float8 NOT NULL,
        PRIMARY KEY (ledger, number)
    )""",
    """CREATE TABLE sharewell.heads (
        ledger text PRIMARY KEY, count bigint NOT NULL, hash bytea NOT NULL
    )""",
    # Against accidents only; the chain detects deliberate changes.
    """CREATE FUNCTION sharewell.refuse() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN RAISE EXCEPTION 'a ledger is only ever added to'; END $$""",
    """CREATE TRIGGER events_stay BEFORE UPDATE OR DELETE OR TRUNCATE ON sharewell.events
    EXECUTE FUNCTION sharewell.refuse()""",
)

_VERSION_2 = (
    """CREATE TABLE sharewell.questions (
        ledger text, number bigint, analyst text NOT NULL, key text NOT NULL,
        PRIMARY KEY (ledger, number)
    )""",
    # No index by analyst: analysts are few, and every index slows every commit.
    "CREATE INDEX questions_by_key ON sharewell.questions (ledger, key)",
    """CREATE TABLE sharewell.endings (
        ledger text, asked bigint, number bigint NOT NULL, PRIMARY KEY (ledger, asked)
    )""",
    """CREATE TABLE sharewell.answers (
        ledger text, number bigint, text text NOT NULL, PRIMARY KEY (ledger, number)
    )""",
)

#: Fill the side tables from three JSON objects, whose names are the numbers of events.
_INSERT_QUESTIONS = """
INSERT INTO sharewell.questions (ledger, number, analyst, key)
SELECT %(ledger)s, key::bigint, substr(value, 1, 32), substr(value, 33)
FROM json_each_text(%(questions)s::json)
"""
_INSERT_ENDINGS = """
INSERT INTO sharewell.endings (ledger, asked, number)
SELECT %(ledger)s, value::bigint, key::bigint FROM json_each_text(%(endings)s::json)
"""
_INSERT_ANSWERS = """
INSERT INTO sharewell.answers (ledger, number, text)
SELECT %(ledger)s, key::bigint, value FROM json_each_text(%(answers)s::json)
"""

#: Moves the head and adds the rows in one statement: one transaction and one round trip. Does neither if
#: the head is not the expected one. Bodies are sent as lines of one text and hashes concatenated, since
#: sending arrays takes longer than storing them.
_WRITE = f"""
WITH moved AS (
    UPDATE sharewell.heads SET count = %(count)s, hash = %(hash)s
    WHERE ledger = %(ledger)s AND count = %(old_count)s AND hash = %(old_hash)s
    RETURNING 1
),
asked AS ({_INSERT_QUESTIONS} WHERE EXISTS (SELECT FROM moved)),
ended AS ({_INSERT_ENDINGS} WHERE EXISTS (SELECT FROM moved) ON CONFLICT DO NOTHING),
answered AS ({_INSERT_ANSWERS} WHERE EXISTS (SELECT FROM moved))
INSERT INTO sharewell.events (ledger, number, body, hash, at)
SELECT %(ledger)s, %(first)s + place - 1, body,
    substring(%(hashes)s FROM 32 * (place::int - 1) + 1 FOR 32), %(at)s
FROM unnest(string_to_array(%(bodies)s, E'\\n')) WITH ORDINALITY AS line (body, place)
WHERE EXISTS (SELECT FROM moved)
"""  # noqa: S608 (constants only)

_READ = """
SELECT number, body, hash FROM sharewell.events
WHERE ledger = %s AND number >= %s AND number < %s ORDER BY number LIMIT %s
"""

_READ_TIMES = "SELECT number, at FROM sharewell.events WHERE ledger = %s AND number = ANY(%s::bigint[])"

_READ_SIDE = (
    "SELECT number, analyst || key FROM sharewell.questions WHERE ledger = %s",
    "SELECT number, asked FROM sharewell.endings WHERE ledger = %s",
    "SELECT number, text FROM sharewell.answers WHERE ledger = %s",
)

_READ_QUESTIONS = """
SELECT q.number, asked.body, ending.body, answers.text
FROM sharewell.questions AS q JOIN sharewell.events AS asked USING (ledger, number)
LEFT JOIN sharewell.endings AS e ON e.ledger = q.ledger AND e.asked = q.number
LEFT JOIN sharewell.events AS ending ON ending.ledger = q.ledger AND ending.number = e.number
LEFT JOIN sharewell.answers AS answers ON answers.ledger = q.ledger AND answers.number = e.number
WHERE q.ledger = %s AND q.number > %s AND {} LIMIT %s
"""
#: Ordered by an expression: the database then uses the index of keys instead of scanning in order.
_FILTERS: dict[QuestionFilter, str] = {
    "keys": "q.key = ANY(%s::text[]) ORDER BY q.number + 0",
    "number": "q.number = %s",
    "analyst": "q.analyst = %s ORDER BY q.number",
}

#: The holder of an advisory lock on a 64-bit key, which pg_locks shows in two halves.
_HOLDER = """
SELECT a.pid, a.application_name, a.client_addr::text
FROM pg_locks AS l JOIN pg_stat_activity AS a USING (pid)
WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1
AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
AND (l.classid::bigint << 32) | l.objid::bigint = %s
"""

#: Seconds until the server cancels a statement, or a server that does not respond is given up.
STATEMENT_SECONDS = 10.0
#: Seconds until closing gives up freeing the lock; the server frees it when it notices.
CLOSING_SECONDS = 2.0

#: Detect a silently lost server within seconds.
_DEFAULTS = {
    "connect_timeout": "5",
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "15000",
}


#: Errors of files, and of tables of which some were dropped.
_DAMAGE = (
    psycopg.errors.DataCorrupted,
    psycopg.errors.IndexCorrupted,
    psycopg.errors.UndefinedTable,
    psycopg.errors.DuplicateTable,
)


class _Connection(psycopg.Connection[Any]):
    """A connection that is closed when the server is silent for too long.

    A server that hangs keeps its sockets open, so no timeout of the network applies.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.patience = STATEMENT_SECONDS

    def wait(self, gen: Generator[Any, Any, Any], *args: Any, **options: Any) -> Any:
        """Wait for the server."""
        try:
            return super().wait(self._until_silent(gen), *args, **options)
        except _ServerSilent:
            self.close()
            raise

    def _until_silent(self, gen: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
        """Pass on what a generator of the driver waits for, until the server stops responding."""
        last = time.monotonic()
        try:
            awaited = next(gen)
            while True:
                ready = yield awaited
                if ready:
                    last = time.monotonic()
                elif time.monotonic() - last > self.patience:
                    raise _ServerSilent(f"no response for {self.patience:g} seconds")
                awaited = gen.send(ready)
        except StopIteration as finished:
            return finished.value


class _ServerSilent(psycopg.OperationalError):
    """The server did not respond in time."""


class PostgresStore(Store):
    """Rows of one named ledger in a PostgreSQL database, which may hold many.

    The writer holds a session advisory lock. It is freed after the session's last statement has ended,
    so the next holder sees everything the previous writer committed.
    """

    migrations: ClassVar[tuple[tuple[str, ...], ...]] = (_VERSION_1, _VERSION_2)

    def __init__(
        self,
        url: str,
        name: str = "default",
        *,
        read_only: bool = False,
        create: bool = False,
        wait: float = 0.0,
    ) -> None:
        if not name or "\0" in name:
            raise LedgerError("A ledger in PostgreSQL needs a name.", hint='Name it, as in "census".')
        self.name = name
        self.read_only = read_only
        self._process = os.getpid()
        try:
            # Messages name host and database only: the URL may hold a password.
            stated = conninfo_to_dict(url)
            self._url = make_conninfo(url, **{k: v for k, v in _DEFAULTS.items() if k not in stated})
        except psycopg.Error:
            raise LedgerError(
                "Invalid PostgreSQL URL.", hint="Write postgresql://user@host/database."
            ) from None
        self._location = f"{name} at {stated.get('host', 'this machine')}/{stated.get('dbname', '')}"
        self._connection: _Connection | None = None
        self._closed = False
        #: Held while questions and times are read, on a separate connection.
        self._reading = Lock()
        self._reader: _Connection | None = None
        try:
            with self._translated_errors():
                self._connection = self._connect()
                if not read_only:
                    self._check_server(self._connection)
                    self._take_lock(self._connection, wait)
                self._prepare(self._connection, create and not read_only)
        except BaseException:
            self.close()
            raise

    def __str__(self) -> str:
        return self._location

    def head(self) -> Head:
        """The committed head; reconnects and takes the lock again if the connection was lost."""
        with self._translated_errors():
            connection = self._connected()
            found = connection.execute(
                "SELECT count, hash FROM sharewell.heads WHERE ledger = %s", (self.name,)
            ).fetchone()
        if found is None:
            raise LedgerCorrupt("The ledger has no head.", hint="Restore it from a backup.")
        return Head(found[0], bytes(found[1]))

    def write(self, rows: Sequence[Row], side: SideRows, old: Head, new: Head, at: float) -> bool:
        """Add rows and move the head."""
        parts = split_commit(rows, side, old, new)
        with self._translated_errors():
            connection = self._connection
            if connection is None or connection.closed:
                # A new connection must read the head before it writes.
                raise LedgerUnavailable("The connection to the ledger was lost.")
            if len(parts) == 1:
                return self._execute(connection, parts[0], at)
            is_written = False
            with connection.transaction():
                is_written = all(self._execute(connection, part, at) for part in parts)
                if not is_written:
                    raise psycopg.Rollback
            return is_written

    def _execute(self, connection: _Connection, part: CommitPart, at: float) -> bool:
        """Add the rows of one statement; False if the head is not the one before it."""
        rows, side, old, new = part
        values = {
            "ledger": self.name,
            "count": new.count,
            "hash": new.hash,
            "old_count": old.count,
            "old_hash": old.hash,
            "at": at,
            "first": rows[0].number,
            "bodies": b"\n".join([row.body for row in rows]).decode(),
            "hashes": b"".join([row.hash for row in rows]),
            **side.to_json(),
        }
        return connection.execute(_WRITE, values, binary=True).rowcount == len(rows)

    def read(self, start: int, stop: int) -> Iterator[Row]:
        """The rows in a range, each chunk in a short transaction on a separate connection."""
        with self._translated_errors():
            connection = self._connect()
        with closing(connection):
            while start < stop:
                with self._translated_errors():
                    found = connection.execute(
                        _READ, (self.name, start, stop, CHUNK), binary=True
                    ).fetchall()
                for number, body, digest in found:
                    yield Row(number, body.encode(), digest)
                if len(found) < CHUNK:
                    return
                start = found[-1][0] + 1

    def questions(self, by: QuestionFilter, value: object, after: int = -1) -> list[QuestionRow]:
        """Some questions, on a separate connection: they wait for no commit."""
        statement = _READ_QUESTIONS.format(_FILTERS[by])
        many = len(value) if isinstance(value, list) else QUESTION_CHUNK
        with self._reading, self._translated_errors():
            found = self._shared_reader().execute(statement, (self.name, after, value, many)).fetchall()
        return [
            QuestionRow(number, asked.encode(), ending and ending.encode(), text and text.encode())
            for number, asked, ending, text in found
        ]

    def times(self, numbers: Collection[int]) -> dict[int, float]:
        """When some events were written, on a separate connection."""
        with self._reading, self._translated_errors():
            return dict(self._shared_reader().execute(_READ_TIMES, (self.name, [*numbers])).fetchall())

    def _shared_reader(self) -> _Connection:
        """The connection that questions and times are read on, while `_reading` is held."""
        if self._closed:
            raise LedgerUnavailable("The ledger is closed.", hint="Open it again.")
        if self._reader is None or self._reader.closed:
            self._reader = self._connect()
        return self._reader

    def side_rows(self, *, answers: bool = True) -> SideRows | None:
        """What is stored beside the chain."""
        with self._translated_errors(), closing(self._connect()) as connection:
            if self._version(connection) < 2:
                return None
            reads = _READ_SIDE if answers else _READ_SIDE[:2]
            found = [dict(connection.execute(read, (self.name,)).fetchall()) for read in reads]
            return SideRows(found[0], found[1], found[2] if answers else {})

    def check(self) -> list[str]:
        """Nothing: the server checks its own files."""
        return []

    def close(self) -> None:
        """Free the lock, then close the connection.

        Closing alone is not enough: the server frees a session's locks some time after the client has
        closed its socket. A forked child leaves the shared session to its parent.
        """
        self._closed = True
        if self._connection is None or os.getpid() != self._process:
            return
        with self._reading:
            if self._reader is not None:
                self._reader.close()
        if not self.read_only:
            # On a lost connection the server ends the session, and with it the lock.
            with suppress(psycopg.Error):
                self._connection.patience = CLOSING_SECONDS
                self._connection.execute("SELECT pg_advisory_unlock_all()")
        self._connection.close()

    def _connect(self) -> _Connection:
        connection = _Connection.connect(
            self._url,
            autocommit=True,
            client_encoding="utf8",
            application_name=_program(),
        )
        try:
            # Server, database or user may set another default.
            connection.execute("SET synchronous_commit = on")
            connection.execute(f"SET statement_timeout = {1000 * STATEMENT_SECONDS:.0f}")
        except BaseException:
            connection.close()
            raise
        return connection

    def _connected(self) -> _Connection:
        """The connection, or a new one if it was lost; a writer takes the lock again."""
        if self._closed:
            raise LedgerUnavailable("The ledger is closed.", hint="Open it again.")
        if self._connection is None or self._connection.closed:
            connection = self._connect()
            try:
                if not self.read_only:
                    self._take_lock(connection, 0.0)
            except BaseException:
                connection.close()
                raise
            self._connection = connection
        return self._connection

    def _check_server(self, connection: _Connection) -> None:
        if connection.execute("SHOW server_encoding").fetchone() != ("UTF8",):
            raise LedgerError(
                f"The database of the ledger {self._location} does not use UTF-8.",
                hint="Keep the ledger in a database created WITH ENCODING 'UTF8'.",
            )
        if connection.execute("SHOW fsync").fetchone() != ("on",):
            raise LedgerError(
                "The PostgreSQL server may lose committed events: fsync is off.",
                hint="Set fsync = on in its configuration.",
            )

    def _take_lock(self, connection: _Connection, wait: float) -> None:
        key = _key(f"sharewell ledger {self.name}")
        deadline = time.monotonic() + wait
        while connection.execute("SELECT pg_try_advisory_lock(%s)", (key,)).fetchone() != (True,):
            if time.monotonic() < deadline:
                time.sleep(0.05)
                continue
            holder = connection.execute(_HOLDER, (key,)).fetchone()
            pid, program, address = holder or ("?", "", None)
            # On reconnecting, this process's former session may not have ended yet.
            former = connection is not self._connection and program in ("", _program())
            raise (LedgerUnavailable if former else LedgerInUse)(
                f"The ledger {self._location} is in use by {program or 'another program'}"
                f"{f' at {address}' if address else ''} (server session {pid}).",
                hint="Stop that process, or open with `wait`; to read only, open with `read_only`.",
            )

    def _prepare(self, connection: _Connection, create: bool) -> None:
        """Check that the ledger exists, or create it, and migrate the tables."""
        if not create:
            version = self._version(connection)
            if not version or not self._exists(connection):
                raise LedgerMissing(
                    f"No ledger {self._location}.", hint="Check the name, or restore a backup."
                )
            self.pending_migrations(version)
        if self.read_only:
            return
        with connection.transaction():
            # Ledgers of other names share the tables and may be opened concurrently.
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (_key("sharewell schema"),))
            version = self._version(connection)
            if statements := self.pending_migrations(version):
                connection.execute("CREATE SCHEMA IF NOT EXISTS sharewell")
                connection.execute("CREATE TABLE IF NOT EXISTS sharewell.schema_version (version int)")
                for statement in statements:
                    connection.execute(statement)
                if version == 1:
                    self._index(connection)
                connection.execute(
                    "INSERT INTO sharewell.schema_version VALUES (%s)", (len(self.migrations),)
                )
            if create and not self._exists(connection):
                connection.execute(
                    "INSERT INTO sharewell.heads VALUES (%s, 0, %s)", (self.name, BEGINNING)
                )

    def _exists(self, connection: _Connection) -> bool:
        """Whether the ledger has a head; rejects one that has lost it, which must not begin again."""
        events, head = (
            connection.execute(
                f"SELECT FROM sharewell.{table} WHERE ledger = %s LIMIT 1",
                (self.name,),
            ).rowcount
            for table in ("events", "heads")
        )
        if events and not head:
            raise LedgerCorrupt(
                f"The ledger {self._location} has events and no head.", hint="Restore it from a backup."
            )
        return bool(head)

    @staticmethod
    def _index(connection: _Connection) -> None:
        """Index the questions of all ledgers that were written without an index."""
        for (ledger,) in connection.execute("SELECT ledger FROM sharewell.heads").fetchall():
            start = 0
            while rows := connection.execute(_READ, (ledger, start, 2**62, CHUNK)).fetchall():
                side = SideRows.of_bodies((number, body.encode()) for number, body, _ in rows)
                values = {"ledger": ledger, **side.to_json()}
                connection.execute(_INSERT_QUESTIONS, values)
                connection.execute(f"{_INSERT_ENDINGS} ON CONFLICT DO NOTHING", values)
                start = rows[-1][0] + 1

    def _version(self, connection: _Connection) -> int:
        table = connection.execute("SELECT to_regclass('sharewell.schema_version')").fetchone()
        if table == (None,):
            return 0
        found = connection.execute("SELECT max(version) FROM sharewell.schema_version").fetchone()
        return int(found[0] or 0) if found else 0

    @contextmanager
    def _translated_errors(self) -> Iterator[None]:
        """Translate errors of the server and the driver."""
        try:
            yield
        except _DAMAGE as error:
            raise LedgerCorrupt(
                f"The ledger {self._location} is damaged: {_first_line(error)}.",
                hint="Restore it from a backup.",
            ) from None
        except psycopg.Error as error:
            raise LedgerUnavailable(
                f"The ledger {self._location} is unavailable: {_first_line(error)}.",
                hint="Check that the server runs and has free space; the next event is tried again.",
            ) from None


def _program() -> str:
    """The name of this process, shown by the server and to other processes that want the lock."""
    return f"sharewell, process {os.getpid()} on {socket.gethostname()}"[:63]


def _key(text: str) -> int:
    """The key of an advisory lock: 63 bits of a hash, so never negative."""
    return int.from_bytes(sha256(text.encode()).digest()[:8], "big") >> 1


def _first_line(error: psycopg.Error) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
