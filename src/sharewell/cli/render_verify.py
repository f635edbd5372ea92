"""The output of `sharewell verify`: what each check examined and found."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import typer
from rich.console import Console, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table
from rich.text import Text

from sharewell.cli.terminal import make_table, print_items, print_json, sanitize
from sharewell.errors import LedgerCorrupt, RequestError
from sharewell.service.ledger.witness import Witness, read_key
from sharewell.service.verify import LedgerFinding, Verification, verify
from sharewell.sharing.certificate import Report
from sharewell.wire.text import pluralize

#: Findings and notes printed per check; JSON has all of them.
MAX_PRINTED = 10

TWICE = " computed twice"
SINGULARS = {"actions of curators": "action of a curator", "entries": "entry"}

PURPOSES = {
    "chain": "no event changed, missing or moved",
    "accounts": "no share overspent, every release paid for",
    "questions": "each asked once and ended once, in order",
    "answers": "each follows from released values",
    "certificate": "no proven promise is broken",
}


def read_witness(path: str, key: str | None) -> str:
    """The head that a witness saw."""
    found = Witness.read(Path(path), None if key is None else read_key(Path(key)))
    if found is None:
        raise RequestError(f"There is no witness at {path!r}.")
    return str(found.record.head)


def show_verification(where: str, name: str, head: str | None, certificate: bool, as_json: bool) -> bool:
    """Verify a ledger and print the result; True if no defect was found."""
    # Progress goes to stderr, so that stdout holds the result alone; into a pipe it does not go at all.
    console = Console(stderr=True)
    columns = TextColumn("checking {task.description}"), BarColumn(), MofNCompleteColumn()
    off = not console.is_terminal
    with Progress(*columns, console=console, transient=True, disable=off) as bar:
        task = bar.add_task("chain", total=None)
        found = verify(
            where,
            name=name,
            expected_head=head,
            certificate=certificate,
            progress=lambda check, done, of: bar.update(
                task, description=check, completed=done, total=of or None
            ),
        )
    if not found.events and (damage := _find_damage(found)):
        raise LedgerCorrupt(
            f"Cannot read {where!r} as a ledger.", hint=f"{damage} Check the path, or restore a backup."
        )
    if as_json:
        print_json(found.to_json())
    else:
        _print_verification(found)
    return found.ok


def _find_damage(found: Verification) -> str:
    """What is wrong with the file itself."""
    damaged = (each for each in found.check("chain").findings if each.code == "chain.damaged")
    return next((each.message for each in damaged), "")


def _print_verification(found: Verification) -> None:
    findings = [
        line
        for check in found.checks
        for line in (
            *_format_findings("Found", check.findings, check.more),
            *_format_findings("Note", check.notes, 0),
        )
    ]
    certificate = [] if found.certificate is None else [_format_certificate(found.certificate)]
    verdict = "The ledger is intact." if found.ok else "The ledger has defects."
    print_items(_make_table(found), *findings, *certificate, Text(verdict, style="bold"))
    if found.ok:
        typer.echo(f"Head, to keep elsewhere: {found.head}")


def _make_table(found: Verification) -> Table:
    rows = []
    for check in found.checks:
        counts = ", ".join(_format_counts(check.counts))
        skipped = f"not {check.skipped}" if check.counts else f"skipped: {check.skipped}"
        examined = "; ".join(part for part in (counts, skipped if check.skipped else "") if part)
        verdict = Text("nothing wrong", style="green")
        if number := len(check.findings) + check.more:
            verdict = Text(f"{number:,} wrong", style="red")
        elif check.skipped and not check.counts:
            verdict = Text("not checked", style="dim")
        rows.append((check.name, PURPOSES[check.name], examined, verdict))
    title = f"A ledger of {pluralize(found.events, 'event')}"
    return make_table(("check", "verifies", "examined", "found"), rows, title=title)


def _format_counts(counts: Mapping[str, int]) -> Iterator[str]:
    """Format what was examined; what was computed twice beside what it is a part of.

    >>> list(_format_counts({"answers computed twice": 40, "answers": 104, "settings": 1}))
    ['104 answers, 40 computed twice', '1 setting']
    """
    for what, count in counts.items():
        if what.removesuffix(TWICE) in counts and what.endswith(TWICE):
            continue
        text = pluralize(count, SINGULARS.get(what, what.removesuffix("s")), what)
        twice = counts.get(f"{what}{TWICE}")
        if twice is None:
            yield text
        else:
            part = f" {twice:,}" if twice < count else "" if count == 1 else " all"
            yield f"{text},{part}{TWICE}"


def _format_findings(
    title: str, findings: Sequence[LedgerFinding], more: int
) -> Iterator[RenderableType]:
    for finding in findings[:MAX_PRINTED]:
        yield Text.assemble(f"{title}: {sanitize(finding.message)} ", (f"({finding.code})", "dim"))
    if (rest := len(findings) - MAX_PRINTED) > 0 or more:
        yield f"{title}: and {max(rest, 0) + more:,} more."


def _format_certificate(report: Report) -> str:
    if not report.exact:
        return f"Certificate: no figures; the errors of {report.mechanism} depend on the data."
    if report.holds is None:
        return "Certificate: there is no answer to judge."
    holds = "holds" if report.holds else "does not hold"
    return (
        f"Certificate: it {holds} over {pluralize(report.entries, 'entry', 'entries')}, of which "
        f"{report.checked:,} were checked by a second implementation. Worst ratio "
        f"{report.worst_ratio:.4g}, worst interference {report.worst_interference:.4g}."
    )
