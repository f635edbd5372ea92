"""The HTTP service: CPU of a cached answer beside a constant endpoint, and of a refusal beside both.

The load comes over 256 connections from a process of its own, with the default release slots. CPU is
that of the server's process, so that slots and a busy machine do not count.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from urllib.request import urlopen

from benchmarks.questions import ANALYSTS, SETTINGS, questions
from benchmarks.ratio import Ratio
from benchmarks.traffic import get, post, seconds
from sharewell.config import read_config
from sharewell.service.http.server import bind
from sharewell.service.lifecycle import begin
from sharewell.service.tokens import TokenStore

CONNECTIONS = 256
#: Requests over each connection in a round.
EACH = 10
ROUNDS = 7
#: Different questions, all of them answered before anything is measured.
TEXTS = 64
RATE = 500
SERVICE = """
[service]
requests_per_second = 1000000
certificate = false
witness = "people.witness.json"
"""
ASK = "/v1/datasets/people/ask"


def run() -> list[Ratio]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        tokens = prepare(folder)
        texts = list(islice(questions(), TEXTS))
        with serving(folder) as (port, process):
            warm_up(port, tokens, texts)
            constant = [[get("/healthz")] * EACH for _ in range(CONNECTIONS)]
            cached = [
                [
                    post(ASK, {"sql": texts[(at + again) % TEXTS]}, tokens[at % ANALYSTS])
                    for again in range(EACH)
                ]
                for at in range(CONNECTIONS)
            ]
            # Without a valid token: an address has 20 failures, and then 429.
            refused = [[post(ASK, {"sql": texts[0]}, "sw_unknown")] * EACH for _ in range(CONNECTIONS)]
            seconds(port, refused[:10], status="4")
            rounds = [
                (
                    measure(port, process, cached),
                    measure(port, process, constant),
                    measure(port, process, refused, status="4"),
                )
                for _ in range(ROUNDS)
            ]
    cpu = [sum(cost.cpu for cost in costs) / ROUNDS for costs in zip(*rounds, strict=True)]
    took = sorted(ours.seconds for ours, *_ in rounds)[ROUNDS // 2]
    return [
        Ratio("HTTP: CPU of a cached answer", cpu[0], "a constant endpoint", cpu[1], 2.5),
        Ratio("HTTP: CPU of a refusal with 429", cpu[2], "a cached answer", cpu[0], 1),
        Ratio(f"HTTP: cached answer, {CONNECTIONS} connections", took, f"{RATE} a second", 1 / RATE, 1),
    ]


class Cost:
    """Seconds and CPU seconds of one request."""

    def __init__(self, seconds: float, cpu: float) -> None:
        self.seconds = seconds
        self.cpu = cpu


def measure(port: int, process: int, connections: list[list[bytes]], status: str = "200") -> Cost:
    """The seconds and CPU seconds of one of many requests."""
    count = sum(map(len, connections))
    before = cpu_of(process)
    took = seconds(port, connections, status)
    return Cost(took / count, (cpu_of(process) - before) / count)


def cpu_of(process: int) -> float:
    """CPU seconds that a process has used, in all its threads."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def warm_up(port: int, tokens: list[str], texts: list[str]) -> None:
    """Have every question answered once, and every analyst once."""
    seconds(port, [[post(ASK, {"sql": text}, tokens[0]) for text in texts]])
    seconds(port, [[post(ASK, {"sql": texts[0]}, token) for token in tokens]])


def prepare(folder: Path, service: str = SERVICE) -> list[str]:
    """Write a configuration and its rows; a token for each analyst."""
    (folder / "people.csv").write_text("age\n" + "\n".join(str(n % 86) for n in range(5000)) + "\n")
    shares = "".join(f'[analysts.a{at}]\nshare = "1/{ANALYSTS}"\n' for at in range(ANALYSTS))
    path = folder / "sharewell.toml"
    path.write_text(SETTINGS + shares + service)
    config = read_config(path)
    begin(config)
    access = TokenStore(config.service.access)
    return [access.issue(f"a{at}", "analyst") for at in range(ANALYSTS)]


@contextmanager
def serving(folder: Path) -> Iterator[tuple[int, int]]:
    """The port and the id of a server process, once it is ready."""
    with bind("127.0.0.1", 0) as found:
        port = found.getsockname()[1]
    file, log = str(folder / "sharewell.toml"), str(folder / "log")
    code = f"from {bind.__module__} import serve; serve([{file!r}], port={port}, log={log!r})"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.DEVNULL) as process:
        try:
            _wait_for(port)
            yield port, process.pid
        finally:
            process.terminate()


def _wait_for(port: int) -> None:
    for _ in range(300):
        try:
            with urlopen(f"http://127.0.0.1:{port}/readyz"):
                return
        except OSError:
            time.sleep(0.1)
    raise SystemExit("The server does not start.")
