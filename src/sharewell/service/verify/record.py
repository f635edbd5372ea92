"""The record: every event of a ledger that can be read, by its number, and the settings in force."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path

from sharewell.config.config import Config
from sharewell.config.reader import parse_config
from sharewell.errors import LedgerCorrupt, LedgerError, SharewellError
from sharewell.privacy.ledger import Configured, Event
from sharewell.query.domain import Domain
from sharewell.query.sql import compile_sql
from sharewell.query.statement import Statement
from sharewell.service.ledger.chain import Head
from sharewell.service.ledger.codec import decode
from sharewell.service.ledger.opening import open_store


@dataclass
class Record:
    """What a ledger holds, as far as it can be read: a damaged event leaves a gap."""

    by_number: dict[int, Event] = field(default_factory=dict)
    #: Where the ledger ends, as it says itself.
    head: Head = field(default_factory=Head)

    @classmethod
    def of(cls, where: str | Path, name: str = "default") -> Record:
        """Read a ledger, and pass over what cannot be read: the chain's check names it."""
        record = cls()
        try:
            with closing(open_store(where, name=name, read_only=True)) as store:
                for row in store.read(0, 2**62):
                    record.head = Head(row.number + 1, row.hash)
                    try:
                        record.by_number[row.number] = decode(row.body)
                    except LedgerError:
                        continue
        except LedgerCorrupt:
            pass
        return record

    def __len__(self) -> int:
        return len(self.by_number)

    def __iter__(self) -> Iterator[tuple[int, Event]]:
        return iter(self.by_number.items())

    def get(self, number: int) -> Event | None:
        """An event; None where there is none, or it cannot be read."""
        return self.by_number.get(number)

    @cached_property
    def gap(self) -> int | None:
        """The first number that is not there although later ones are."""
        return next((at for at, number in enumerate(self.by_number) if at != number), None)

    def lost(self, number: int) -> bool:
        """Whether an event should be there and cannot be read."""
        return 0 <= number < self._last and number not in self.by_number

    @cached_property
    def _last(self) -> int:
        return max(self.by_number, default=0)


@lru_cache(maxsize=2**16)
def statement_of(sql: str, domain: Domain, table: str) -> Statement:
    """A question compiled; kept for longer than a service would, since two checks need them all."""
    return compile_sql(sql, domain, table=table)


def config_of(event: Configured) -> Config | None:
    """The configuration that an event holds; None where it holds none that can be used."""
    text = event.settings.get("config")
    if not isinstance(text, str):
        return None
    return _parse(text)


@lru_cache(maxsize=64)
def _parse(text: str) -> Config | None:
    try:
        return parse_config(text)
    except SharewellError:
        return None
