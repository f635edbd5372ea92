"""The certificate's process: fed from the ledger, replaced when it dies, gone when the service is."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from sharewell.errors import Closed, SharingError
from sharewell.privacy.ledger import Answered, MemoryLedger
from sharewell.service import certificate_worker
from sharewell.service.certificate_worker import CertificateWorker, StreamReader
from sharewell.service.dataset import DatasetService
from sharewell.service.ledger import open_ledger
from sharewell.sharing.collective import Leave
from tests.service.http.servers import running, write_dataset
from tests.service.services import config, count, serve
from tests.service.verify.ledgers import ask_all, service_on, story
from tests.service.waiting import comes_true


def process_of(service: DatasetService) -> int:
    """The process that has reported last, on a question at least."""
    service.ask("ann", count(0, 9))
    service.report(up_to_date=True)
    worker = service._certificate
    assert worker is not None
    assert worker._process is not None
    assert worker._process.pid is not None
    return worker._process.pid


def is_running(process: int) -> bool:
    try:
        with open(f"/proc/{process}/stat", encoding="ascii") as stat:
            return stat.read().split(") ")[-1][0] != "Z"
    except OSError:
        return False


def is_away(service: DatasetService) -> bool:
    try:
        service.report()
    except Closed:
        return True
    return False


def test_a_process_that_is_killed_is_replaced_and_says_the_same():
    with serve(config(), certificate=True) as service:
        ask_all(service, [("ann", count(0, 9), True), ("ben", count(2, 9), True)], "a")
        before, first = service.report(up_to_date=True), process_of(service)
        os.kill(first, signal.SIGKILL)
        comes_true(lambda: not is_running(first))
        assert process_of(service) != first
        after = service.report(up_to_date=True)
        assert after.entries == before.entries + 2
        assert after.of("ben") == before.of("ben")


def test_while_a_process_is_away_there_is_no_report_and_answers_go_on(monkeypatch):
    monkeypatch.setattr(certificate_worker, "FIRST_PAUSE", 600.0)
    with serve(config(), certificate=True) as service:
        os.kill(process_of(service), signal.SIGKILL)
        comes_true(lambda: is_away(service))
        assert service.ask("ann", count(0, 9)).answers
        with pytest.raises(Closed, match="being restarted"):
            service.certificate("ann")


def test_a_server_replies_503_while_the_process_is_away(tmp_path, monkeypatch):
    monkeypatch.setattr(certificate_worker, "FIRST_PAUSE", 600.0)
    with running(write_dataset(tmp_path, certificate=True)) as server:
        service = server.registry.datasets["people"]
        os.kill(process_of(service), signal.SIGKILL)
        comes_true(lambda: is_away(service))
        reply = server.analyst("ann").get("/certificate")
        assert reply.status_code == 503
        assert reply.json()["code"] == "service.closed"
        assert int(reply.headers["retry-after"]) > 0


def test_before_the_process_has_judged_anything_it_says_how_far_it_is_behind():
    ledger = MemoryLedger()
    with service_on(ledger) as service:
        ask_all(service, [("ann", count(0, at), True) for at in range(1, 6)], "a")
    with CertificateWorker(config(), ledger, entries=5) as worker:
        report = worker.report(entries=5)
        assert (report.entries, report.behind, report.holds) == (0, 5, None)
        worker.wait()
        report = worker.report(entries=5)
        assert (report.entries, report.behind, report.holds) == (5, 0, True)
        assert report.checked == 5


def test_a_long_ledger_is_sent_in_several_messages(monkeypatch, tmp_path):
    monkeypatch.setattr(certificate_worker, "MESSAGE", 2)
    with open_ledger(tmp_path / "ledger.sqlite", create=True) as ledger:
        story(ledger, short=True)
        with serve(config(), ledger, certificate=True) as service:
            assert service.report(up_to_date=True).entries == 6


def test_a_certificate_that_never_comes_is_not_waited_for_endlessly():
    never = pytest.raises(SharingError, match="is behind after 0 seconds")
    with CertificateWorker(config(), MemoryLedger(), entries=7) as worker, never:
        worker.wait(timeout=0)


def test_closing_ends_the_process():
    with serve(config(), certificate=True) as service:
        process = process_of(service)
    assert not is_running(process)
    with pytest.raises(Closed):
        service.report()


def test_closing_ends_a_process_that_is_just_starting():
    serve(config(), certificate=True).close()
    assert "certificate" not in {thread.name for thread in threading.enumerate()}
    assert multiprocessing.active_children() == []


LEADER = """
from pathlib import Path
from tests.service.services import config, count, serve
print("the script runs", flush=True)
service = serve(config(), certificate=True)
service.ask("ann", count(0, 9))
service.report(up_to_date=True)
print(service._certificate._process.pid, flush=True)
input()
service.close()
"""


@pytest.fixture
def leader(tmp_path: Path):
    """A script that opens a dataset with a certificate, and waits; and the certificate's process."""
    script = tmp_path / "leader.py"
    script.write_text(LEADER)
    started = subprocess.Popen(
        [sys.executable, script],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.getcwd()},
    )
    with started:
        assert started.stdout is not None
        assert started.stdout.readline() == "the script runs\n"
        yield started, int(started.stdout.readline())


def test_a_process_ends_with_its_parent_even_when_that_is_killed(leader):
    parent, process = leader
    parent.send_signal(signal.SIGKILL)
    parent.communicate()
    comes_true(lambda: not is_running(process))


def test_a_stopped_process_does_not_keep_its_parent_from_closing(leader):
    parent, process = leader
    os.kill(process, signal.SIGSTOP)
    rest, _ = parent.communicate("\n", timeout=120)
    assert (parent.returncode, rest) == (0, ""), "the script is not run twice"
    assert not is_running(process)


def test_a_ledger_that_makes_no_sense_is_told_and_answers_go_on():
    ledger = MemoryLedger()
    with serve(config(), ledger, certificate=True) as service:
        ledger.append(Answered(999, ()))
        service.ask("ann", count(0, 9))
        with pytest.raises(SharingError, match="could not follow"):
            service.report(up_to_date=True)
        assert service.ask("ben", count(0, 9)).answers


def test_the_reader_keeps_open_questions_only():
    ledger = MemoryLedger()
    story(ledger)
    reader = StreamReader()
    for event in ledger.events():
        reader.read(event)
    assert reader.entries > 20
    assert reader._open == {}


class SlowLine:
    """A line to a process that takes some time for every entry, on a clock of its own."""

    def __init__(self, each: float) -> None:
        self.each, self.now = each, 0.0

    def send(self, message: list) -> None:
        self.now += self.each * len(message)

    def recv(self) -> SharingError:
        return SharingError("There is no report here.")


@pytest.mark.parametrize(("each", "most"), [(10.0, 1), (0.25, 4), (0.0001, 256)])
def test_there_is_a_report_every_second_however_long_entries_take(each, most, monkeypatch):
    worker, line = object.__new__(CertificateWorker), SlowLine(each)
    monkeypatch.setattr(time, "monotonic", lambda: line.now)
    worker._most = certificate_worker.FIRST_MESSAGE
    worker._publish = lambda report: None  # type: ignore[method-assign]
    for _ in range(8):
        worker._exchange(line, [Leave("ann")] * worker._most)  # type: ignore[arg-type]
        worker._exchange(line, [])  # type: ignore[arg-type]
    assert worker._most == most
