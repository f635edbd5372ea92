"""Ledgers in a PostgreSQL database, each with a name."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from hashlib import sha256
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
from sharewell.service.ledger.chain import BEGINNING, Head, Row
from sharewell.service.ledger.durable import DurableLedger
from sharewell.service.ledger.store import CHUNK, Store, pending

_VERSION_1 = (
    """CREATE TABLE sharewell.events (
        ledger text, number bigint, body text NOT NULL, hash bytea NOT NULL, at float8 NOT NULL,
        PRIMARY KEY (ledger, number)
    )""",
    """CREATE TABLE sharewell.heads (
        ledger text PRIMARY KEY, count bigint NOT NULL, hash bytea NOT NULL
    )""",
    # Against slips of the hand only: the chain is what finds a change that was meant.
    """CREATE FUNCTION sharewell.refuse() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN RAISE EXCEPTION 'a ledger is only ever added to'; END $$""",
    """CREATE TRIGGER events_stay BEFORE UPDATE OR DELETE OR TRUNCATE ON sharewell.events
    EXECUTE FUNCTION sharewell.refuse()""",
)

#: Moves the head and adds the rows in one statement, which is one transaction and one round trip. Where
#: the head is not the one expected, it does neither. The bodies come as lines of one text and the hashes
#: end to end: arrays would take longer to send than to store.
_WRITE = """
WITH moved AS (
    UPDATE sharewell.heads SET count = %(count)s, hash = %(hash)s
    WHERE ledger = %(ledger)s AND count = %(old_count)s AND hash = %(old_hash)s
    RETURNING 1
)
INSERT INTO sharewell.events (ledger, number, body, hash, at)
SELECT %(ledger)s, %(first)s + place - 1, body,
    substring(%(hashes)s FROM 32 * (place::int - 1) + 1 FOR 32), %(at)s
FROM unnest(string_to_array(%(bodies)s, E'\\n')) WITH ORDINALITY AS line (body, place)
WHERE EXISTS (SELECT FROM moved)
"""

_READ = """
SELECT number, body, hash FROM sharewell.events
WHERE ledger = %s AND number >= %s AND number < %s ORDER BY number LIMIT %s
"""

#: Who holds an advisory lock on a 64-bit key, which pg_locks shows in two halves.
_HOLDER = """
SELECT a.pid, a.application_name, a.client_addr::text
FROM pg_locks AS l JOIN pg_stat_activity AS a USING (pid)
WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1
AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
AND (l.classid::bigint << 32) | l.objid::bigint = %s
"""

#: A server that has gone without a word is noticed after some seconds.
_DEFAULTS = {
    "connect_timeout": "10",
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "15000",
}


class PostgresStore(Store):
    """Rows of one named ledger in a PostgreSQL database, which may hold many.

    The writer holds a session advisory lock. The server lets go of it when the session is over, and a
    session is over only when nothing of it is being executed any more: whoever holds the lock sees the
    last word of the writer before.
    """

    migrations: ClassVar[tuple[tuple[str, ...], ...]] = (_VERSION_1,)

    def __init__(
        self, url: str, name: str = "default", *, read_only: bool = False, wait: float = 0.0
    ) -> None:
        if not name or "\0" in name:
            raise LedgerError("A ledger in PostgreSQL must have a name.", hint='Such as "census".')
        self.name = name
        self.read_only = read_only
        try:
            # Not more than is needed goes into messages: an address may hold a password.
            stated = conninfo_to_dict(url)
            self._url = make_conninfo(url, **{k: v for k, v in _DEFAULTS.items() if k not in stated})
        except psycopg.Error:
            raise LedgerError(
                "This is not the address of a PostgreSQL database.",
                hint="Write postgresql://user@host/database.",
            ) from None
        self._place = f"{name} at {stated.get('host', 'this machine')}/{stated.get('dbname', '')}"
        self._connection: psycopg.Connection[Any] | None = None
        self._closed = False
        try:
            with self._in_words():
                self._connection = self._connect()
                if not read_only:
                    self._refuse_unfit_server(self._connection)
                    self._take_lock(self._connection, wait)
                self._prepare(self._connection)
        except BaseException:
            self.close()
            raise

    def __str__(self) -> str:
        return self._place

    def head(self) -> Head:
        """The stored head; where the connection was lost, over a new one that holds the lock."""
        with self._in_words():
            connection = self._connected()
            found = connection.execute(
                "SELECT count, hash FROM sharewell.heads WHERE ledger = %s", (self.name,)
            ).fetchone()
        if found is None:
            raise LedgerCorrupt("The ledger has lost its head.", hint="Restore it from a backup.")
        return Head(found[0], bytes(found[1]))

    def write(self, rows: Sequence[Row], old: Head, new: Head, at: float) -> bool:
        """Add rows and move the head."""
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
        }
        with self._in_words():
            if self._connection is None or self._connection.closed:
                # A new connection must not write before the head was looked at.
                raise LedgerUnavailable("The connection to the ledger was lost.")
            return self._connection.execute(_WRITE, values, binary=True).rowcount == len(rows)

    def read(self, start: int, stop: int) -> Iterator[Row]:
        """The rows in a range, each chunk in a short transaction of a connection of its own."""
        with self._in_words():
            connection = self._connect()
        with closing(connection):
            while start < stop:
                with self._in_words():
                    found = connection.execute(
                        _READ, (self.name, start, stop, CHUNK), binary=True
                    ).fetchall()
                for number, body, digest in found:
                    yield Row(number, body.encode(), digest)
                if len(found) < CHUNK:
                    return
                start = found[-1][0] + 1

    def check(self) -> list[str]:
        """Nothing: the server minds its own files."""
        return []

    def close(self) -> None:
        """Close the connection, and with it let the next writer in."""
        self._closed = True
        if self._connection is not None:
            self._connection.close()

    def _connect(self) -> psycopg.Connection[Any]:
        connection = psycopg.connect(
            self._url,
            autocommit=True,
            client_encoding="utf8",
            application_name=f"sharewell, process {os.getpid()} on {socket.gethostname()}"[:63],
        )
        try:
            # The server, the database or the user may have another default.
            connection.execute("SET synchronous_commit = on")
        except BaseException:
            connection.close()
            raise
        return connection

    def _connected(self) -> psycopg.Connection[Any]:
        """The connection, made again where it was lost; a writer's holds the lock."""
        if self._closed:
            raise LedgerUnavailable("The ledger is closed.", hint="Open it again.")
        if self._connection is None or self._connection.closed:
            connection = self._connect()
            try:
                if not self.read_only:
                    self._take_lock(connection, 0.0)
            except LedgerInUse as error:
                # It may well be our own former session, which the server has not ended yet.
                connection.close()
                raise LedgerUnavailable(error.message, hint=error.hint) from None
            except BaseException:
                connection.close()
                raise
            self._connection = connection
        return self._connection

    def _refuse_unfit_server(self, connection: psycopg.Connection[Any]) -> None:
        if connection.execute("SHOW server_encoding").fetchone() != ("UTF8",):
            raise LedgerError(
                f"The database of the ledger {self._place} cannot hold every text.",
                hint="Keep the ledger in a database that was created WITH ENCODING 'UTF8'.",
            )
        if connection.execute("SHOW fsync").fetchone() != ("on",):
            raise LedgerError(
                "The PostgreSQL server does not wait for its disk (fsync is off) and may lose events.",
                hint="Set fsync = on in its configuration.",
            )

    def _take_lock(self, connection: psycopg.Connection[Any], wait: float) -> None:
        key = _key(f"sharewell ledger {self.name}")
        deadline = time.monotonic() + wait
        while connection.execute("SELECT pg_try_advisory_lock(%s)", (key,)).fetchone() != (True,):
            if time.monotonic() < deadline:
                time.sleep(0.05)
                continue
            holder = connection.execute(_HOLDER, (key,)).fetchone()
            pid, program, address = holder or ("?", "", None)
            raise LedgerInUse(
                f"The ledger {self._place} is in use by {program or 'another program'}"
                f"{f' at {address}' if address else ''} (session {pid} of the server).",
                hint="Stop that one first, or open with `wait` to wait for it; "
                "to look at the ledger only, open it with `read_only`.",
            )

    def _prepare(self, connection: psycopg.Connection[Any]) -> None:
        """Bring the tables up to date, and begin the ledger where there is none of that name."""
        if self.read_only:
            version = self._version(connection)
            if pending(self.migrations, version):
                raise (LedgerError if version else LedgerMissing)(
                    f"The tables of the ledger {self._place} are of an older version, or not there yet.",
                    hint="Open it for writing once, which brings them up to date.",
                )
            if not connection.execute(
                "SELECT FROM sharewell.heads WHERE ledger = %s", (self.name,)
            ).rowcount:
                raise LedgerMissing(f"There is no ledger {self._place}.", hint="Check the name.")
            return
        with connection.transaction():
            # Ledgers of other names share the tables, and may be opened at this very moment.
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (_key("sharewell schema"),))
            statements = pending(self.migrations, self._version(connection))
            if statements:
                connection.execute("CREATE SCHEMA IF NOT EXISTS sharewell")
                connection.execute("CREATE TABLE IF NOT EXISTS sharewell.schema_version (version int)")
                for statement in statements:
                    connection.execute(statement)
                connection.execute(
                    "INSERT INTO sharewell.schema_version VALUES (%s)", (len(self.migrations),)
                )
            connection.execute(
                "INSERT INTO sharewell.heads VALUES (%s, 0, %s) ON CONFLICT DO NOTHING",
                (self.name, BEGINNING),
            )

    def _version(self, connection: psycopg.Connection[Any]) -> int:
        there = connection.execute("SELECT to_regclass('sharewell.schema_version')").fetchone()
        if there == (None,):
            return 0
        found = connection.execute("SELECT max(version) FROM sharewell.schema_version").fetchone()
        return int(found[0] or 0) if found else 0

    @contextmanager
    def _in_words(self) -> Iterator[None]:
        """Says in our words what the server or the driver says in its own."""
        try:
            yield
        except (psycopg.errors.DataCorrupted, psycopg.errors.IndexCorrupted) as error:
            raise LedgerCorrupt(
                f"The ledger {self._place} is damaged: {_first_line(error)}.",
                hint="Restore it from a backup.",
            ) from None
        except psycopg.Error as error:
            raise LedgerUnavailable(
                f"The ledger {self._place} is not available: {_first_line(error)}.",
                hint="Check that the server runs and has room; the next event is tried afresh.",
            ) from None


def _key(text: str) -> int:
    """A key for an advisory lock: 63 bits of a hash, so that it is never negative."""
    return int.from_bytes(sha256(text.encode()).digest()[:8], "big") >> 1


def _first_line(error: psycopg.Error) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")


class PostgresLedger(DurableLedger):
    """A durable ledger of a name in a PostgreSQL database; a second writer is refused, or waits.

    `url` is an address such as `postgresql://user@host/database`. After a lost connection the ledger
    tries for up to `patience` seconds to reach the server again.
    """

    def __init__(
        self,
        url: str,
        name: str = "default",
        *,
        read_only: bool = False,
        wait: float = 0.0,
        patience: float = 5.0,
        clock: Callable[[], float] = time.time,
    ) -> None:
        store = PostgresStore(url, name, read_only=read_only, wait=wait)
        super().__init__(store, patience=patience, clock=clock)
