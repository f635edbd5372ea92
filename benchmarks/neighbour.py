"""A greedy neighbour: the wait for a cached answer while another analyst sends the largest questions.

Over HTTP with the default limits and release slots: one analyst sends free questions and quotes of
10,000 groups without a pause, another asks a cached question again and again.
"""

from __future__ import annotations

import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import httpx

import sharewell
from benchmarks.http import serving
from benchmarks.ratio import Ratio
from sharewell.config import read_config
from sharewell.service.lifecycle import begin
from sharewell.service.tokens import TokenStore

#: How often the cached question is asked, and with how many connections its neighbour asks.
ASKED, GREEDY = 200, 4
#: The wait at the 99th percentile: 250 ms and a release slot.
MOST = 0.25 + 0.1
SETTINGS = """
[dataset]
source = "people.csv"
population = 5000
[budget]
epsilon = 1
error_threshold = 100
[attributes.age]
type = "integer"
low = 0
high = 99
[attributes.code]
type = "integer"
low = 0
high = 99
[analysts.ann]
share = "1/2"
[analysts.ben]
share = "1/2"
[service]
witness = "people.witness.json"
certificate = false
"""
CACHED = "SELECT COUNT(*) FROM people WHERE age < 18"
LARGE = "SELECT age, code, COUNT(*) FROM people GROUP BY age, code"


def run() -> list[Ratio]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        ann, ben = _prepare(folder)
        with serving(folder) as (port, _):
            waits = _waits(f"http://127.0.0.1:{port}", ann, ben)
    wait = sorted(waits)[round(0.99 * len(waits)) - 1]
    return [Ratio("cached answer beside a greedy neighbour, p99", wait, "250 ms and a slot", MOST, 1)]


def _waits(url: str, ann: str, ben: str) -> list[float]:
    """How long each of the cached answers took, in seconds."""
    stop = Event()
    with sharewell.connect(url, ann) as session, ThreadPoolExecutor(GREEDY) as neighbour:
        session.ask(CACHED)
        for at in range(GREEDY):
            neighbour.submit(_be_greedy, url, ben, "quote" if at % 2 else "ask", stop)
        waits = []
        try:
            for _ in range(ASKED):
                begun = time.perf_counter()
                session.ask(CACHED)
                waits.append(time.perf_counter() - begun)
        finally:
            stop.set()
    return waits


def _be_greedy(url: str, token: str, verb: str, stop: Event) -> None:
    """Send the same large request until told to stop."""
    headers = {"Authorization": f"Bearer {token}"}
    with httpx.Client(base_url=url, headers=headers, timeout=60) as client:
        while not stop.is_set():
            client.post(f"/v1/datasets/people/{verb}", json={"sql": LARGE, "pay": False})


def _prepare(folder: Path) -> list[str]:
    """Write a configuration and its rows; the tokens of both analysts."""
    rows = "".join(f"{n % 100},{n % 97}\n" for n in range(5000))
    (folder / "people.csv").write_text("age,code\n" + rows)
    path = folder / "sharewell.toml"
    path.write_text(SETTINGS)
    config = read_config(path)
    begin(config)
    access = TokenStore(config.service.access)
    return [access.issue(name, "analyst") for name in ("ann", "ben")]
