"""No solver is judged by itself: one that lies is found out, and so is a promise that does not hold."""

from __future__ import annotations

import numpy as np
import pytest
from typer.testing import CliRunner

from sharewell.cli import app
from sharewell.mechanisms.base import Guarantee, Mechanism
from sharewell.mechanisms.laplace import Laplace
from sharewell.mechanisms.reconstruction import Reconstruction
from sharewell.privacy.ledger import MemoryLedger
from sharewell.service.serialization import certificate_report
from sharewell.sharing.certificate import Certificate
from sharewell.sharing.collective import Ask
from sharewell.sharing.reference import MOST_ANSWERS
from tests.service.services import count
from tests.service.verify.ledgers import ask_all, service_on, verified, written
from tests.sharing.test_monotonicity import BOB_FIRST

ASKED = [("ann", count(0, 4), True), ("ben", count(2, 9), True), ("cleo", count(1, 12), False)]


@pytest.fixture
def lies(monkeypatch):
    """A solver that states half of every standard error, once it knows a paid row."""
    honest = Reconstruction.estimate

    def estimate(self, queries):
        values, variances = honest(self, queries)
        return values, variances * (1 if not len(self) else 0.25)

    monkeypatch.setattr(Reconstruction, "estimate", estimate)


def asked() -> list:
    ledger = MemoryLedger()
    with service_on(ledger) as service:
        ask_all(service, ASKED, "a")
    return list(ledger.events())


def test_a_solver_that_lies_is_found_by_the_verification(lies, tmp_path):
    found = verified(tmp_path / "ledger.sqlite", asked())
    assert {finding.code for finding in found.findings} == {"answers.differs", "certificate.errors"}
    assert "standard error" in found.check("answers").findings[0].message
    result = CliRunner().invoke(app, ["verify", str(tmp_path / "ledger.sqlite")])
    assert result.exit_code == 1, result.output
    assert "The ledger has defects." in result.output


def test_a_solver_that_lies_is_found_by_the_live_certificate(lies):
    certificate = Certificate(BOB_FIRST.collective(), error_threshold=10.0)
    for entry in BOB_FIRST.entries.values():
        certificate.record(entry)
    report = certificate.report()
    assert report.holds is False
    assert 0 < report.contradicted <= report.checked
    assert certificate_report(report).verdict.startswith("Do not rely on this certificate")


def test_a_solver_that_is_honest_is_confirmed(tmp_path):
    found = verified(tmp_path / "ledger.sqlite", asked())
    assert found.findings == []
    answers = found.check("answers").counts
    assert answers["answers computed twice"] == answers["answers"] == 3
    assert found.certificate is not None
    assert (found.certificate.checked, found.certificate.contradicted) == (3, 0)


def test_a_value_that_is_wrong_by_a_few_millionths_of_its_error_is_found(monkeypatch, tmp_path):
    honest = Reconstruction.estimate

    def estimate(self, queries):
        values, variances = honest(self, queries)
        return values + 1e-5 * np.sqrt(variances), variances

    monkeypatch.setattr(Reconstruction, "estimate", estimate)
    events = asked()
    found = verified(tmp_path / "ledger.sqlite", events)
    assert {finding.code for finding in found.findings} == {"answers.differs"}


def test_a_promise_that_is_called_proven_and_does_not_hold_fails_the_verification(monkeypatch, tmp_path):
    ledger = MemoryLedger()
    with service_on(ledger, "laplace") as service:
        # The common pot pays for 60 questions.
        ask_all(service, [("ann", count(0, 4), True)] * 60 + [("ben", count(0, 4), True)], "a")
    path = written(tmp_path / "ledger.sqlite", list(ledger.events()))
    shown = CliRunner().invoke(app, ["verify", str(path)])
    assert (shown.exit_code, "does not hold" in shown.output) == (0, True), shown.output
    proven = Guarantee("guarantees/laplace.md", ("None.",))
    monkeypatch.setattr(Laplace, "guarantee", proven)
    refuted = CliRunner().invoke(app, ["verify", str(path)])
    assert refuted.exit_code == 1
    assert "A proven promise does not hold" in refuted.output
    assert "The ledger is intact." not in refuted.output


def test_a_question_of_several_parts_is_computed_twice_from_what_each_part_knew(tmp_path):
    """The first average knows its own measurement and not the second one's."""
    ledger = MemoryLedger()
    with service_on(ledger) as service:
        service.ask("ann", "SELECT sex, COUNT(*), AVG(age) FROM people GROUP BY sex")
    found = verified(tmp_path / "ledger.sqlite", list(ledger.events()))
    assert found.findings == []
    assert found.check("answers").counts["answers computed twice"] > 2


def test_of_a_question_with_many_answers_some_are_computed_twice(tmp_path):
    ledger = MemoryLedger()
    with service_on(ledger) as service:
        service.ask("ann", "SELECT age, sex, COUNT(*) FROM people GROUP BY age, sex")
    found = verified(tmp_path / "ledger.sqlite", list(ledger.events()))
    assert found.findings == []
    counts = found.check("answers").counts
    assert (counts["answers"], counts["answers computed twice"]) == (40, MOST_ANSWERS)
    assert found.certificate is not None
    assert found.certificate.checked == 1


def test_mechanisms_that_measure_every_answer_have_no_estimates_to_check():
    assert Mechanism.best_estimates is False
    certificate = Certificate(BOB_FIRST.collective("as-printed"), error_threshold=10.0)
    for entry in BOB_FIRST.entries.values():
        assert isinstance(entry, Ask)
        certificate.record(entry)
    assert certificate.report().checked == 0
