"""The whole verification of a ledger, and how it is shown."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.progress import Progress, SpinnerColumn, TextColumn
from rich.table import Table

from sharewell.collector import without_collections
from sharewell.service.ledger.chain import Head
from sharewell.service.ledger.verify import verify_chain
from sharewell.service.verify.accounts import check_accounts
from sharewell.service.verify.answers import check_answers
from sharewell.service.verify.certificate import Recomputed, recompute_certificate
from sharewell.service.verify.finding import Check, Finding
from sharewell.service.verify.questions import check_questions
from sharewell.service.verify.record import Record
from sharewell.sharing.report import Report

#: How many findings and notes of each check people are shown; programs get them all.
SHOWN = 10

#: What each check looks at, in words.
LOOKS_AT = {
    "chain": "no event changed, missing or moved",
    "accounts": "no share overspent, every release paid for",
    "questions": "each asked once, ended once, in its turn",
    "answers": "they follow from what was released",
    "certificate": "computed again from what was asked",
}


@dataclass(frozen=True)
class Verification:
    """What was looked at, what was found, and the certificate."""

    events: int
    head: Head
    checks: tuple[Check, ...]
    certificate: Report | None

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return all(check.ok for check in self.checks)

    @property
    def findings(self) -> list[Finding]:
        """Everything that is wrong."""
        return [finding for check in self.checks for finding in check.findings]

    @property
    def notes(self) -> list[Finding]:
        """What is as it may be, and worth knowing."""
        return [note for check in self.checks for note in check.notes]

    def check(self, name: str) -> Check:
        """One of the checks."""
        return next(check for check in self.checks if check.name == name)

    def to_json(self) -> dict[str, Any]:
        """All of it as plain data."""
        return {
            "ok": self.ok,
            "events": self.events,
            "head": str(self.head),
            "checks": [check.to_json() for check in self.checks],
            "certificate": None if self.certificate is None else self.certificate.to_json(),
        }


def verify(
    where: str | Path,
    *,
    name: str = "default",
    expected_head: Head | str | None = None,
    certificate: bool = True,
    watch: Watch | None = None,
) -> Verification:
    """Verify a ledger, offline and from what it holds alone.

    `where`, `name` and `expected_head` are as for `verify_chain`. A ledger that is not there, or cannot
    be reached, is an error and not a finding. The certificate takes longest, and can be left out.
    """
    watch = watch or _nobody
    watch("chain", 0)
    chain = Check("chain")
    for finding in verify_chain(where, name=name, expected_head=expected_head):
        chain.fault(finding.what, finding.message, finding.event)
    with without_collections():
        record = Record.of(where, name)
        chain.count("events", len(record))
        watch("accounts", 0)
        accounts = check_accounts(record)
        watch("questions", 0)
        questions = check_questions(record)
        answers = check_answers(record, lambda at: watch("answers", at))
        again = Recomputed(Check("certificate", skipped="it was not asked for"))
        if certificate:
            again = recompute_certificate(record, lambda at: watch("certificate", at))
    checks = (chain, accounts, questions, answers, again.check)
    return Verification(len(record), record.head, checks, again.report)


class Watch:
    """Is told how far a verification has come."""

    def __call__(self, check: str, at: int) -> None:
        """One check has come to an event."""


_nobody = Watch()


class _Shown(Watch):
    """Shows it on the error stream, so that what is printed stays whole."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._task = progress.add_task("", total=None)

    def __call__(self, check: str, at: int) -> None:
        self._progress.update(self._task, description=f"checking {check}, {at:,}")


def show_verification(where: str, name: str, head: str | None, certificate: bool, as_json: bool) -> bool:
    """Verify a ledger and print what was found; whether all is well."""
    columns = SpinnerColumn(), TextColumn("{task.description}")
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        found = verify(
            where, name=name, expected_head=head, certificate=certificate, watch=_Shown(progress)
        )
    if as_json:
        sys.stdout.write(json.dumps(found.to_json(), indent=2) + "\n")
        return found.ok
    console = Console()
    console.print(_table(found))
    for check in found.checks:
        for title, several in (("Found", check.findings), ("Note", check.notes)):
            for line in _lines(title, several, check.more if title == "Found" else 0):
                console.print(line, highlight=False)
    if found.certificate is not None:
        console.print(_certificate(found.certificate), highlight=False)
    verdict = "All is well." if found.ok else "Something is wrong with this ledger."
    console.print(f"[bold]{verdict}[/bold]", highlight=False)
    if found.ok:
        console.print(f"Its head, worth noting elsewhere: {found.head}", highlight=False, soft_wrap=True)
    return found.ok


def _table(found: Verification) -> Table:
    table = Table(title=f"A ledger of {found.events:,} events", box=box.SIMPLE_HEAD)
    for heading in ("check", "looks at", "how much", "found"):
        table.add_column(heading)
    for check in found.checks:
        counts = ", ".join(f"{count:,} {what}" for what, count in check.counts.items())
        skipped = f"not {check.skipped}" if check.counts else f"not done: {check.skipped}"
        much = "; ".join(part for part in (counts, skipped if check.skipped else "") if part)
        number = len(check.findings) + check.more
        verdict = f"[red]{number:,} wrong[/red]" if number else "[green]nothing wrong[/green]"
        if check.skipped and not check.counts:
            verdict = "[dim]not looked at[/dim]"
        table.add_row(check.name, LOOKS_AT[check.name], escape(much), verdict)
    return table


def _lines(title: str, findings: Sequence[Finding], more: int) -> Iterator[str]:
    for finding in findings[:SHOWN]:
        yield f"{title}: {escape(finding.message)} [dim]({finding.code})[/dim]"
    if (rest := len(findings) - SHOWN) > 0 or more:
        yield f"{title}: and {max(rest, 0) + more:,} more like these."


def _certificate(report: Report) -> str:
    if not report.exact:
        return f"Certificate: {report.mechanism} gives no figures; its errors depend on the data."
    holds = "holds" if report.holds else "does not hold"
    return (
        f"Certificate: it {holds} over {report.entries:,} entries. Worst ratio "
        f"{report.worst_ratio:.4g}, worst interference {report.worst_interference:.4g}."
    )
