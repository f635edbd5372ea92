"""The certificate, computed again from what the ledger says has happened."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from sharewell.config.config import Config
from sharewell.privacy.ledger import Asked, Granted, Left
from sharewell.service.history import History
from sharewell.service.verify.accounts import MALFORMED
from sharewell.service.verify.finding import Check
from sharewell.service.verify.record import Record, config_of, statement_of
from sharewell.sharing.certificate import Certificate
from sharewell.sharing.report import Report
from sharewell.sharing.stream import Ask, Entry, Join, Leave


@dataclass
class Recomputed:
    """How the computation went, and what the certificate says."""

    check: Check
    report: Report | None = None


def recompute_certificate(record: Record, watch: Callable[[int], None] = lambda _: None) -> Recomputed:
    """The certificate that the service shows for the same ledger.

    That it does not hold is no fault of the ledger: not every mechanism promises it.
    """
    check = Check("certificate")
    if record.gap is not None:
        check.skipped = f"event {record.gap} cannot be read"
        return Recomputed(check)
    try:
        history = History.of(event for _, event in record)
        config = config_of(history.settings) if history.settings else None
        if config is None:
            check.skipped = "there are no settings"
            return Recomputed(check)
        certificate = Certificate(
            replace(config.collective, shares=history.initial),
            error_threshold=config.error_threshold,
            scheduler=config.scheduler(),
        )
        if not certificate.exact:
            check.skipped = "how far off its answers are depends on the data"
        for number, entry in enumerate(_stream(history, config)):
            certificate.record(entry)
            check.count("entries")
            if number % 64 == 0:
                watch(number)
        return Recomputed(check, certificate.report())
    except MALFORMED as error:
        check.fault("impossible", f"What the ledger says has happened cannot happen. {_said(error)}")
        return Recomputed(check)


def _stream(history: History, config: Config) -> Iterator[Entry]:
    for entry in history.stream:
        match entry:
            case Granted(payer, share):
                yield Join(payer, share)
            case (Left(payer), donate):
                yield Leave(payer, donate)
            case Asked():
                statement = statement_of(entry.question["sql"], config.domain, config.name)
                yield Ask(entry.analyst, statement.blocks, entry.pay)


def _said(error: Exception) -> str:
    return getattr(error, "message", "")
