"""Findings: what is wrong with a ledger, and what is only worth knowing."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

#: How many findings of one check are kept: one wrong value may make all later answers differ.
MOST = 100


@dataclass(frozen=True)
class Finding:
    """Something found in a ledger: a code that never changes, a sentence, and the event's number."""

    code: str
    message: str
    event: int | None = None

    def __str__(self) -> str:
        return self.message


@dataclass
class Check:
    """One thing that was looked at: how much of it, what is wrong, and what is worth a note."""

    name: str
    counts: dict[str, int] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    notes: list[Finding] = field(default_factory=list)
    #: Findings beyond those that are kept.
    more: int = 0
    #: Why it was not done, where it was not.
    skipped: str = ""

    def fault(self, code: str, message: str, event: int | None = None) -> None:
        """Something is wrong."""
        if len(self.findings) < MOST:
            self.findings.append(Finding(f"{self.name}.{code}", message, event))
        else:
            self.more += 1

    def note(self, code: str, message: str, event: int | None = None) -> None:
        """Something is as it may be, and worth knowing."""
        self.notes.append(Finding(f"{self.name}.{code}", message, event))

    def count(self, what: str, by: int = 1) -> None:
        """Something was looked at."""
        self.counts[what] = self.counts.get(what, 0) + by

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return not self.findings

    def to_json(self) -> dict[str, Any]:
        """The check as plain data."""
        return {
            "check": self.name,
            "ok": self.ok,
            "skipped": self.skipped or None,
            "counts": dict(self.counts),
            "findings": [_plain(finding) for finding in self.findings],
            "more_findings": self.more,
            "notes": [_plain(note) for note in self.notes],
        }


def _plain(finding: Finding) -> dict[str, Any]:
    return {"code": finding.code, "event": finding.event, "message": finding.message}
