"""The server over HTTP: 64 analysts at once, beside an endpoint of the same framework that does nothing.

A paid count is set beside commits of the same store, one for each of as many threads that take turns.
"""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from itertools import islice
from pathlib import Path
from threading import Lock
from urllib.error import HTTPError
from urllib.request import urlopen

from benchmarks.broker import ANALYSTS, SETTINGS, questions
from benchmarks.load import post, seconds
from benchmarks.ratio import Ratio, in_the_middle
from sharewell.config import read_config
from sharewell.service.access import Access
from sharewell.service.http.serving import bind

#: Answers come in slots, so that it takes many connections to keep a server busy.
CONNECTIONS = 256
#: Questions of each analyst that are new in a round, and how often those that are not are asked.
EACH, AGAIN = 6, 5
ROUNDS = 9
SERVICE = """
[service]
requests_per_second = 1000000
certificate = false
"""
ASK, QUOTE = "/v1/datasets/people/ask", "/v1/datasets/people/quote"
#: What is set beside a constant: the path, and whether one pays for what is not known.
LIGHT = {"cached": (ASK, True), "reconstructed": (ASK, False), "quote": (QUOTE, True)}


def run() -> list[Ratio]:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        tokens = _prepare(folder)
        file, log = str(folder / "sharewell.toml"), str(folder / "log")
        serve = f"serve([{file!r}], port={{port}}, log={log!r})"
        ours = stack.enter_context(_serving("-c", f"from {bind.__module__} import serve; {serve}"))
        uvicorn = ("-m", "uvicorn", "benchmarks.constant:app", "--no-access-log", "--port", "{port}")
        constant = stack.enter_context(_serving(*uvicorn))
        return _measure(ours, constant, tokens, folder)


def _measure(ours: int, constant: int, tokens: list[str], folder: Path) -> list[Ratio]:
    total = ANALYSTS * EACH
    fresh = iter(questions())

    def load(port: int, path: str, texts: list[str], **more: object) -> float:
        """Seconds a request, with the texts dealt out to all connections, and these to all analysts."""
        lines = [
            [post(path, {"sql": text, **more}, tokens[at % ANALYSTS]) for text in texts[at::CONNECTIONS]]
            for at in range(CONNECTIONS)
        ]
        return seconds(port, lines) / len(texts)

    def new() -> list[str]:
        """Questions that nobody has asked, and whose price somebody has looked at."""
        texts = list(islice(fresh, total))
        load(ours, QUOTE, texts)
        return texts

    def constant_seconds() -> float:
        return load(constant, "/constant", known * AGAIN)

    known = new()
    load(ours, ASK, known)
    pairs: dict[str, list[tuple[float, float]]] = {name: [] for name in (*LIGHT, "paid")}
    for _ in range(ROUNDS):
        unknown = new()
        before = constant_seconds()
        for name, (path, pay) in LIGHT.items():
            took = load(ours, path, (known if pay else unknown) * AGAIN, pay=pay)
            after = constant_seconds()
            pairs[name].append((took, (before + after) / 2))
            before = after
        pairs["paid"].append((load(ours, ASK, unknown), _commits(folder / "bare.sqlite", total)))
    return [
        Ratio(f"HTTP, {ANALYSTS} analysts: {name}", ours_took, beside, reference, 0.5, at_most=False)
        for name in pairs
        for ours_took, reference in [in_the_middle(pairs[name])]
        for beside in ["a constant over HTTP" if name in LIGHT else "a commit, as many threads"]
    ]


def _prepare(folder: Path) -> list[str]:
    """A configuration, its rows, and a token for everybody."""
    (folder / "people.csv").write_text("age\n" + "\n".join(str(n % 86) for n in range(5000)) + "\n")
    shares = "".join(f'[analysts.a{at}]\nshare = "1/{ANALYSTS}"\n' for at in range(ANALYSTS))
    path = folder / "sharewell.toml"
    path.write_text(SETTINGS + shares + SERVICE)
    access = Access(read_config(path).service.access)
    return [access.issue(f"a{at}", "analyst") for at in range(ANALYSTS)]


@contextmanager
def _serving(*words: str) -> Iterator[int]:
    """A server in a process of its own, at a free port, when it answers."""
    with bind("127.0.0.1", 0) as found:
        port = found.getsockname()[1]
    process = subprocess.Popen([sys.executable, *(word.replace("{port}", str(port)) for word in words)])
    try:
        _wait_for(port)
        yield port
    finally:
        process.terminate()
        process.wait()


def _wait_for(port: int) -> None:
    for path in ("/readyz", "/openapi.json"):
        for _ in range(300):
            try:
                with urlopen(f"http://127.0.0.1:{port}{path}"):
                    return
            except HTTPError as error:
                if error.code == 404:
                    break
            except OSError:
                pass
            time.sleep(0.1)
    raise SystemExit("A server does not come up.")


def _commits(path: Path, count: int) -> float:
    """Seconds a durable commit of one row, by as many threads; SQLite lets one write at a time."""
    with closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as store:
        store.executescript(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; "
            "CREATE TABLE IF NOT EXISTS events (number INTEGER PRIMARY KEY, body TEXT)"
        )
        turn = Lock()

        def commit(_: int) -> None:
            with turn:
                store.execute("BEGIN IMMEDIATE")
                store.execute("INSERT INTO events (body) VALUES (?)", ("x" * 500,))
                store.execute("COMMIT")

        with ThreadPoolExecutor(ANALYSTS) as pool:
            begun = time.perf_counter()
            list(pool.map(commit, range(count)))
            return (time.perf_counter() - begun) / count
