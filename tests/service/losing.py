"""Datasets whose ledgers the tests lose: in SQLite files and in PostgreSQL databases."""

from __future__ import annotations

import shutil
from abc import ABC, abstractmethod
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import psycopg
import pytest

from sharewell.config import Config, read_config
from sharewell.errors import SharewellError
from sharewell.privacy.ledger import Event
from sharewell.service.dataset import DatasetService
from sharewell.service.ledger import open_ledger
from sharewell.service.ledger.witness import Witness
from sharewell.service.verify import Verification, verify
from tests.service.datasets import write_dataset
from tests.service.ledger.postgres_server import PostgresServer
from tests.service.services import count, status

QUESTIONS = [("ann", count(0, 4)), ("ben", count(3, 9)), ("ann", count(5, 6)), ("cleo", count(8, 12))]


class LedgerPlace(ABC):
    """Where a ledger is, and what operators do with it by hand."""

    config: Config

    @abstractmethod
    def another(self, folder: Path) -> LedgerPlace:
        """A place of the same kind, for another dataset."""

    @abstractmethod
    def delete(self) -> None:
        """Delete the ledger."""

    @abstractmethod
    def backup(self) -> object:
        """Make a copy."""

    @abstractmethod
    def restore(self, copy: object) -> None:
        """Put a copy in the place of the ledger."""


class FilePlace(LedgerPlace):
    def __init__(self, folder: Path) -> None:
        self.config = read_config(write_dataset(folder))
        self._file = Path(self.config.service.ledger)
        self._copies = 0

    def another(self, folder: Path) -> FilePlace:
        return FilePlace(folder)

    def delete(self) -> None:
        self._file.unlink()

    def backup(self) -> Path:
        self._copies += 1
        return Path(shutil.copy(self._file, self._file.with_suffix(f".{self._copies}")))

    def restore(self, copy: object) -> None:
        assert isinstance(copy, Path)
        shutil.copy(copy, self._file)


class DatabasePlace(LedgerPlace):
    """A ledger in a database of its own; the witness is in a folder that several hosts may share."""

    def __init__(self, folder: Path, server: PostgresServer) -> None:
        self.url = server.database()
        self.server = server
        settings = f'ledger = "{self.url}"\nwitness = "{folder}/shared/people.json"'
        self.config = read_config(write_dataset(folder, service=settings))

    def another(self, folder: Path) -> DatabasePlace:
        return DatabasePlace(folder, self.server)

    def contents(self) -> list[str]:
        """Everything in the database, as statements."""
        lines = self.server.run("pg_dump", self.url).decode().splitlines()
        # Comments and commands of the client, which differ from dump to dump.
        return [line for line in lines if not line.startswith(("--", "\\"))]

    def execute(self, statement: str) -> None:
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(statement)

    def delete(self) -> None:
        self.execute("DROP SCHEMA sharewell CASCADE")

    def backup(self) -> bytes:
        return self.server.run("pg_dump", "--format=custom", self.url)

    def restore(self, copy: object) -> None:
        assert isinstance(copy, bytes)
        self.execute("DROP SCHEMA IF EXISTS sharewell CASCADE")
        self.server.run("pg_restore", "--exit-on-error", f"--dbname={self.url}", content=copy)


def use(config: Config, questions: list[tuple[str, str]] = QUESTIONS) -> dict[str, Fraction]:
    """Ask questions, and return what each analyst has spent."""
    with DatasetService.open(config) as service:
        for analyst, sql in questions:
            service.ask(analyst, sql, timeout=120)
        return {name: status(service, name).spent for name in service.analyst_names}


def witnessed(config: Config) -> Witness:
    found = Witness.read(config.witness)
    assert found is not None
    return found


def events(config: Config) -> list[Event]:
    with open_ledger(config.service.ledger, name=config.name, read_only=True) as ledger:
        return list(ledger.events())


def store(config: Config, stored: Sequence[Event]) -> None:
    """Store events in a new ledger, without a witness."""
    with open_ledger(config.service.ledger, name=config.name, create=True) as ledger:
        ledger.append_many(stored)


def verified(config: Config) -> Verification:
    return verify(config.service.ledger, name=config.name)


def is_refused(config: Config, error: type[SharewellError], words: str) -> None:
    """Opening must fail, and must leave the ledger and the witness as they are."""
    before = config.witness.read_bytes()
    for _ in range(2):
        with pytest.raises(error, match=words):
            DatasetService.open(config)
    assert config.witness.read_bytes() == before
