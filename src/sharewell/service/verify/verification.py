"""Verify a whole ledger offline: chain, accounts, questions, answers, certificate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

from sharewell.config import Config
from sharewell.errors import OverBudget
from sharewell.gc_tuning import gc_paused
from sharewell.privacy.ledger import (
    Answered,
    Asked,
    Charged,
    Configured,
    Granted,
    Left,
    Recovered,
    Refused,
    RoundClosed,
    SourceChanged,
)
from sharewell.service.ledger.opening import verify_chain
from sharewell.service.ledger.store import Head
from sharewell.service.serialization import certificate_report
from sharewell.service.verify.accounts import AccountsAudit
from sharewell.service.verify.answers import AnswersAudit
from sharewell.service.verify.audit import (
    MALFORMED,
    Check,
    CheckProgress,
    LedgerFinding,
    LedgerSnapshot,
    compile_question,
    read_settings,
)
from sharewell.service.verify.questions import QuestionsAudit
from sharewell.service.verify.replay import RecordedCharges, is_seed
from sharewell.sharing.certificate import Certificate, Report
from sharewell.sharing.collective import Ask, CloseRound, Entry, Join, Leave

#: Called with the name of the running check, how far it has come, and of how much; 0 is unknown.
Progress = Callable[[str, int, int], object]


@dataclass(frozen=True)
class Verification:
    """The result of every check, and the certificate."""

    events: int
    head: Head
    checks: tuple[Check, ...]
    certificate: Report | None

    @property
    def ok(self) -> bool:
        """Whether no check found a defect."""
        return all(check.ok for check in self.checks)

    @property
    def findings(self) -> list[LedgerFinding]:
        """Every defect."""
        return [finding for check in self.checks for finding in check.findings]

    @property
    def notes(self) -> list[LedgerFinding]:
        """Everything legitimate that is worth knowing."""
        return [note for check in self.checks for note in check.notes]

    def check(self, name: str) -> Check:
        """One of the checks by its name."""
        return next(check for check in self.checks if check.name == name)

    def to_json(self) -> dict[str, Any]:
        """The verification as plain data."""
        return {
            "ok": self.ok,
            "events": self.events,
            "head": str(self.head),
            "checks": [check.to_json() for check in self.checks],
            "certificate": None
            if self.certificate is None
            else certificate_report(self.certificate).model_dump(mode="json"),
        }


def verify(
    where: str | Path,
    *,
    name: str = "default",
    expected_head: Head | str | None = None,
    certificate: bool = True,
    progress: Progress = lambda check, done, of: None,
) -> Verification:
    """Verify a ledger offline, from its events alone.

    `where`, `name` and `expected_head` are as for `verify_chain`. A ledger that is missing or
    unreachable is an error, not a finding. The certificate takes longest and can be left out.
    """
    progress("chain", 0, 0)
    chain = Check("chain")
    for damage in verify_chain(where, name=name, expected_head=expected_head):
        chain.add(LedgerFinding(f"chain.{damage.kind}", damage.event, damage.message))
    with gc_paused():
        snapshot = LedgerSnapshot.read(where, name)
        chain.count("events", len(snapshot))
        checks = [chain]
        for audit in (AccountsAudit, QuestionsAudit, AnswersAudit):
            checks.append(audit(snapshot).run(partial(progress, audit.name)))
        recomputed, report = Check("certificate", skipped="not requested"), None
        if certificate:
            recomputed, report = _recompute_certificate(snapshot, partial(progress, "certificate"))
    return Verification(len(snapshot), snapshot.head, (*checks, recomputed), report)


def _recompute_certificate(
    snapshot: LedgerSnapshot, progress: CheckProgress
) -> tuple[Check, Report | None]:
    """Compute the certificate that the service shows for the same ledger, and check it a second way.

    A certificate that does not hold is a defect where the mechanism is proven to be fair, and otherwise
    no surprise: not every mechanism promises it.
    """
    check = Check("certificate")
    if snapshot.gap is not None:
        check.skipped = f"event {snapshot.gap} cannot be read"
        return check, None
    if any(isinstance(event, Recovered) for _, event in snapshot):
        check.skipped = "events were lost, and what the collective did is not known"
        return check, None
    if any(isinstance(event, SourceChanged) for _, event in snapshot):
        check.skipped = "the source of the data has changed, and errors are not exact any more"
        return check, None
    settings = [event for _, event in snapshot if isinstance(event, Configured)]
    config = read_settings(settings[-1]) if settings else None
    if config is None:
        check.skipped = "the ledger holds no settings"
        return check, None
    try:
        initial, stream = _read_stream(snapshot, config)
        certificate = Certificate(
            replace(
                config.collective,
                shares=initial,
                make=config.make.with_seed(
                    RecordedCharges(snapshot).seeds, config.domain
                ).with_signed_rows(settings[-1].signed_rows),
            ),
            error_threshold=config.error_threshold,
            scheduler=config.scheduler(),
            thorough=True,
        )
        if not certificate.exact:
            check.skipped = "the error of its answers depends on the data"
        for number, entry in enumerate(stream):
            certificate.record(entry)
            check.count("entries")
            if number % 64 == 0:
                progress(number, len(stream))
        report = certificate.report()
        _judge(check, report)
        return check, report
    except MALFORMED as error:
        message = getattr(error, "message", "")
        check.fault("impossible", None, f"The recorded events contradict each other. {message}")
        return check, None


def _judge(check: Check, report: Report) -> None:
    if report.checked:
        check.count("entries computed twice", report.checked)
    if report.contradicted:
        text = f"In {report.contradicted} entries the standard errors are wrong."
        check.fault("errors", None, text)
    if report.breaks_promise and not report.contradicted:
        worse = ", ".join(
            each.analyst
            for each in report.standings
            if each.worse_answers or max(each.ratio, each.interference) > 1
        )
        text = f"A proven promise does not hold: {worse} would be better off alone, or without another."
        check.fault("promise", None, text)


def _read_stream(snapshot: LedgerSnapshot, config: Config) -> tuple[dict[str, Fraction], list[Entry]]:
    """The shares before the first settings, and everything that happened in the collective since."""
    initial: dict[str, Fraction] = {}
    left: dict[str, Fraction] = {}
    donors: set[str] = set()
    configured = False
    stream: list[Entry] = []
    for _, event in snapshot:
        match event:
            case Configured():
                configured = True
            case Granted(payer, share):
                left[payer] = share
                if configured:
                    stream.append(Join(payer, share))
                else:
                    initial[payer] = share
            case Charged(bill):
                for payer, cost in bill.items():
                    left[payer] -= cost
                donors -= bill.keys()
                # An analyst who spends the whole rest on the seed and then leaves has donated it.
                if len(bill) == 1 and is_seed(event):
                    donors |= {payer for payer in bill if not left[payer]}
            case Left(payer):
                stream.append(Leave(payer, payer in donors))
            case RoundClosed(payers):
                stream.append(CloseRound(payers))
            case Answered(number) | Refused(number, OverBudget.code):
                asked = snapshot.get(number)
                if not isinstance(asked, Asked):
                    raise KeyError(number)
                statement = compile_question(asked.question["sql"], config.domain, config.name)
                stream.append(Ask(asked.analyst, statement.blocks, asked.pay))
    return initial, stream
