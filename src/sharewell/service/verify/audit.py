"""What every check works with: the readable events of a ledger, and the result of a check."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, ClassVar

from sharewell.config import Config, parse_config
from sharewell.errors import LedgerCorrupt, LedgerError, SharewellError
from sharewell.privacy.ledger import Answered, AnsweredFree, Configured, Event
from sharewell.query.domain import Domain
from sharewell.query.sql import compile_sql
from sharewell.query.statement import Statement
from sharewell.service.ledger.codec import decode, read_answers
from sharewell.service.ledger.opening import open_store
from sharewell.service.ledger.store import Head

#: Findings kept per check: one wrong value can make every later answer differ.
MAX_FINDINGS = 100

#: The errors that damaged plain data may raise while it is read.
MALFORMED = (
    SharewellError,
    KeyError,
    TypeError,
    ValueError,
    ArithmeticError,
    AttributeError,
    IndexError,
)

#: Called with how far a check has come, and of how much.
CheckProgress = Callable[[int, int], object]


@dataclass
class LedgerSnapshot:
    """The events of a ledger that can be read; a damaged event leaves a gap."""

    by_number: dict[int, Event] = field(default_factory=dict)
    #: The last stored row.
    head: Head = field(default_factory=Head)

    @classmethod
    def read(cls, where: str | Path, name: str = "default") -> LedgerSnapshot:
        """Read a ledger and skip what cannot be read: the check of the chain reports it."""
        snapshot = cls()
        try:
            with closing(open_store(where, name=name, read_only=True)) as store:
                rows = list(store.read(0, 2**62))
                # Read after the events: what was stored with them is there.
                side = store.side_rows()
                for row in rows:
                    snapshot.head = Head(row.number + 1, row.hash)
                    with suppress(LedgerError):
                        event = decode(row.body)
                        if isinstance(event, AnsweredFree):
                            text = side.answers.get(row.number) if side else None
                            event = Answered(event.asked, read_answers(replace(event, text=text)))
                        snapshot.by_number[row.number] = event
        except LedgerCorrupt:
            pass
        return snapshot

    def __len__(self) -> int:
        return len(self.by_number)

    def __iter__(self) -> Iterator[tuple[int, Event]]:
        return iter(self.by_number.items())

    def get(self, number: int) -> Event | None:
        """An event, or None if it is missing or unreadable."""
        return self.by_number.get(number)

    @cached_property
    def gap(self) -> int | None:
        """The first missing number that is followed by others."""
        return next((at for at, number in enumerate(self.by_number) if at != number), None)

    def is_lost(self, number: int) -> bool:
        """Whether an event should exist and cannot be read."""
        return 0 <= number < self._last and number not in self.by_number

    @cached_property
    def _last(self) -> int:
        return max(self.by_number, default=0)


@dataclass(frozen=True)
class LedgerFinding:
    """Something found in a ledger: a stable code, the number of the event, and a sentence."""

    code: str
    event: int | None
    message: str

    def __str__(self) -> str:
        return self.message


@dataclass
class Check:
    """The result of one check: how much was examined, the defects, and notes."""

    name: str
    counts: dict[str, int] = field(default_factory=dict)
    findings: list[LedgerFinding] = field(default_factory=list)
    notes: list[LedgerFinding] = field(default_factory=list)
    #: Findings beyond those that are kept.
    more: int = 0
    #: Why the check was not done, or not to the end.
    skipped: str = ""

    def fault(self, code: str, event: int | None, text: str) -> None:
        """Report a defect of an event."""
        self.add(self._finding(code, event, text))

    def add(self, finding: LedgerFinding) -> None:
        """Report a defect; beyond a limit it is only counted."""
        if len(self.findings) < MAX_FINDINGS:
            self.findings.append(finding)
        else:
            self.more += 1

    def note(self, code: str, event: int, text: str) -> None:
        """Report something legitimate that is worth knowing."""
        self.notes.append(self._finding(code, event, text))

    def count(self, what: str, by: int = 1) -> None:
        """Count something that was examined."""
        self.counts[what] = self.counts.get(what, 0) + by

    @property
    def ok(self) -> bool:
        """Whether no defect was found."""
        return not self.findings

    def to_json(self) -> dict[str, Any]:
        """The check as plain data."""
        return {
            "check": self.name,
            "ok": self.ok,
            "skipped": self.skipped or None,
            "counts": dict(self.counts),
            "findings": [asdict(finding) for finding in self.findings],
            "more_findings": self.more,
            "notes": [asdict(note) for note in self.notes],
        }

    def _finding(self, code: str, event: int | None, text: str) -> LedgerFinding:
        message = text if event is None else f"Event {event}: {text}"
        return LedgerFinding(f"{self.name}.{code}", event, message)


class Audit(ABC):
    """A check that makes one pass over the events and keeps the state after each."""

    name: ClassVar[str]
    stops_at_gap: ClassVar[bool] = False

    def __init__(self, snapshot: LedgerSnapshot) -> None:
        self.snapshot = snapshot
        self.check = Check(self.name)
        self.fault = self.check.fault
        #: Whether some events are unreadable, so that what seems missing may have been there.
        self.has_gap = snapshot.gap is not None

    def run(self, progress: CheckProgress) -> Check:
        """Make the pass."""
        for number, event in self.snapshot:
            if self.stops_at_gap and self.snapshot.gap is not None and number > self.snapshot.gap:
                self.check.skipped = f"from event {self.snapshot.gap} on, which cannot be read"
                break
            if number % 256 == 0:
                progress(number, len(self.snapshot))
            self.visit(number, event)
        self.finish()
        return self.check

    @abstractmethod
    def visit(self, number: int, event: Event) -> None:
        """Check the next event."""

    @abstractmethod
    def finish(self) -> None:
        """Check the state after the last event."""


@lru_cache(maxsize=2**16)
def compile_question(sql: str, domain: Domain, table: str) -> Statement:
    """Compile a question; cached, since two checks need every statement."""
    return compile_sql(sql, domain, table=table)


def read_settings(event: Configured) -> Config | None:
    """The configuration that an event holds, or None if it is invalid."""
    text = event.settings.get("config")
    return _parse(text) if isinstance(text, str) else None


@lru_cache(maxsize=64)
def _parse(text: str) -> Config | None:
    try:
        return parse_config(text)
    except SharewellError:
        return None
