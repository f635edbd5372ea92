"""What curators see beside the ledger: verification, activity by source, and changed settings."""

import os
import subprocess
import sys

import pytest

from sharewell.errors import RequestError
from sharewell.service import serialization
from sharewell.service.verify.background import NICENESS, BackgroundVerification
from tests.service.http.servers import running, write_dataset
from tests.service.waiting import comes_true


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    path = write_dataset(tmp_path_factory.mktemp("served"))
    with running(path) as found:
        found.analyst("ann").ask()
        yield found, path


def test_a_ledger_is_verified_beside_the_service(served):
    curator = served[0].curator()
    assert curator.get("/verification").json()["state"] == "none"
    started = curator.post("/verification")
    assert (started.status_code, started.json()["state"]) == (202, "running")
    # Asked for again while it runs, it goes on.
    assert curator.post("/verification").status_code == 202

    def is_done():
        return curator.get("/verification").json()["state"] != "running"

    comes_true(is_done)
    found = curator.get("/verification").json()
    assert (found["state"], found["ok"]) == ("done", True), found
    assert found["head"] == curator.get("/ledger").json()["head"]
    names = [check["check"] for check in found["checks"]]
    assert names == ["chain", "accounts", "questions", "answers", "certificate"]


def test_one_ledger_is_verified_at_a_time(served):
    server, _ = served
    config = server.registry.datasets["people"].config
    verification = BackgroundVerification()
    verification._process = object()  # type: ignore[assignment]
    with pytest.raises(RequestError, match="Another ledger"):
        verification.start(config)


@pytest.mark.skipif(not hasattr(os, "getpriority"), reason="needs POSIX priorities")
def test_verification_goes_after_everything_else():
    command = [sys.executable, "-m", "sharewell.service.verify.background"]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as process:  # waits for its standard input
        try:
            comes_true(lambda: os.getpriority(os.PRIO_PROCESS, process.pid) == NICENESS)
        finally:
            process.kill()


def test_a_process_that_dies_is_reported(served):
    server, _ = served
    config = server.registry.datasets["people"].config
    verification = BackgroundVerification()
    verification.start(config)
    verification.close()
    comes_true(lambda: verification.status("people").state != "running")
    assert verification.status("people").state == "failed"


def test_curators_see_the_minute_in_which_a_question_was_asked(served):
    server, _ = served
    ledger = server.registry.datasets["people"].ledger
    before = server.curator().get("/activity").json()["times"]
    clock, ledger._clock = ledger._clock, lambda: 1_800_000_059.75
    try:
        assert server.analyst("ann").ask().status_code == 200
    finally:
        ledger._clock = clock
    found = server.curator().get("/activity").json()
    assert found["times"] == [*before, 1_800_000_000]
    assert len(found["sources"]) == len(found["times"])
    # The times of the ledger are in no other response.
    page = server.curator().get("/ledger?limit=1000")
    assert "1800000" not in page.text + server.analyst("ann").get("/questions").text
    assert server.analyst("ann").get("/activity").status_code == 403


def test_the_newest_questions_are_listed_by_source(served, monkeypatch):
    server, _ = served
    ann, curator = server.analyst("ann"), server.curator()
    asked = [ann.ask(), ann.ask("SELECT COUNT(*) FROM people WHERE age < 5", pay=False)]
    assert [each.status_code for each in asked] == [200, 200]
    sources = curator.get("/activity").json()["sources"]
    assert sources[0] == "measured"
    assert sources[-2:] == ["cached", "reconstructed"]
    # Beyond so many bytes of free answers, none is read.
    monkeypatch.setattr(serialization, "ACTIVITY_BYTES", 0)
    assert curator.get("/activity").json()["sources"][-2:] == ["free", "free"]
    monkeypatch.setattr(serialization, "ACTIVITY_QUESTIONS", 1)
    found = curator.get("/activity").json()
    assert (found["sources"], len(found["times"])) == (["free"], 1)


def test_settings_that_differ_from_the_ledger_are_listed(served):
    server, path = served
    curator = server.curator()
    assert curator.get("/settings").json() == {"changes": [], "readable": True}
    before = path.read_text()
    try:
        path.write_text(before.replace("error_threshold = 20", "error_threshold = 30"))
        assert curator.get("/settings").json()["changes"] == [
            {"setting": "budget.error_threshold", "ledger": "20", "file": "30"}
        ]
        path.write_text("[dataset")
        assert curator.get("/settings").json() == {"changes": [], "readable": False}
    finally:
        path.write_text(before)
