"""Two servers and one ledger in PostgreSQL: when the active one is killed, the other takes its place."""

import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from sharewell import connect
from sharewell.config import read_config
from sharewell.errors import SharewellError
from sharewell.service.ledger import open_ledger, verify_chain
from sharewell.service.tokens import TokenStore
from tests.service.datasets import write_dataset
from tests.service.waiting import comes_true

SERVE = "import sys; from sharewell.cli import main; sys.argv[0] = 'sharewell'; main()"
COUNT = "SELECT COUNT(*) FROM people WHERE age = {age}"


def started(path: Path, *options: str) -> subprocess.Popen[str]:
    """A server in a process of its own, and its first line."""
    words = [sys.executable, "-c", SERVE, "serve", str(path), "--port", "0", *options]
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)


def address(server: subprocess.Popen[str]) -> str:
    """The address that a server announces once it is open."""
    assert server.stdout is not None
    for line in server.stdout:
        if match := re.search(r"at (http://\S+);", line):
            return match[1]
    raise AssertionError("the server has ended")


@pytest.mark.slow
def test_the_other_server_takes_over_and_nothing_is_lost_or_spent_twice(postgres, tmp_path):
    path = write_dataset(tmp_path, service=f'ledger = "{postgres.database()}"')
    config = read_config(path)
    token = TokenStore(config.service.access).issue("ann", "analyst")
    active = started(path)
    standby = None
    try:
        url = address(active)
        standby = started(path, "--standby", "--log", str(tmp_path / "log"))
        answers: dict[int, Any] = {}
        enough = threading.Event()

        def ask() -> None:
            with connect(url, token, retry_for=0) as session:
                for age in range(20):
                    try:
                        answers[age] = session.ask(COUNT.format(age=age), key=f"age-{age}").value
                    except SharewellError:
                        return
                    if age == 3:
                        enough.set()

        load = threading.Thread(target=ask)
        load.start()
        assert enough.wait(120)
        active.send_signal(signal.SIGKILL)
        killed = time.monotonic()
        url = address(standby)
        print(f"taken over after {time.monotonic() - killed:.1f} s")
        load.join(120)
        assert len(answers) >= 4
        with connect(url, token) as session:
            spent = session.budget().spent
            for age, answer in answers.items():
                assert session.ask(COUNT.format(age=age), key=f"age-{age}").value == answer
            assert session.budget().spent == spent
            session.ask(COUNT.format(age=0), key="another")
        standby.send_signal(signal.SIGTERM)
        assert standby.wait(120) == 0
        assert verify_chain(config.service.ledger, name=config.name) == []
    finally:
        for server in (active, standby):
            if server is not None:
                server.kill()
                server.communicate()


@pytest.mark.slow
def test_a_server_that_stands_by_stops_when_it_is_told_to(tmp_path):
    path = write_dataset(tmp_path)
    with open_ledger(read_config(path).service.ledger):
        log = tmp_path / "log"
        standby = started(path, "--standby", "--log", str(log))
        try:
            assert standby.stdout is not None
            assert "Standing by" in standby.stdout.readline()
            # Written by its event loop, which handles signals.
            comes_true(lambda: '"event":"opening"' in log.read_text(encoding="utf-8"))
            standby.send_signal(signal.SIGTERM)
            out, _ = standby.communicate(timeout=120)
            assert standby.returncode == 0, out
        finally:
            standby.kill()
            standby.communicate()
