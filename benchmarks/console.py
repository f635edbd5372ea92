"""The console: until it can be used, on a slow machine; and quotes while 20 analysts type.

The browser's processor is slowed down four times and its cache is empty. Each analyst types a statement,
and the page asks for a quote after every pause; the time is that of the request.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
from playwright.sync_api import Browser, sync_playwright

from benchmarks.http import prepare, serving
from benchmarks.ratio import Ratio

#: Seconds until the page can be used, and of a quote at the 95th percentile.
FIRST_USE, QUOTE = 1.0, 0.150
SLOWER = 4
ROUNDS = 5
TYPING = 20
#: Quotes of each analyst, and the seconds between them: a pause in typing.
QUOTES, PAUSE = 25, 0.4
TEXT = "SELECT age, COUNT(*) FROM people WHERE age BETWEEN {low} AND {high} GROUP BY age"


def run() -> list[Ratio]:
    with tempfile.TemporaryDirectory() as name:
        tokens = prepare(Path(name))
        with serving(Path(name)) as (port, _):
            url = f"http://127.0.0.1:{port}"
            shown = first_use(url)
            quotes = while_typing(url, tokens[:TYPING])
    return [
        Ratio(f"console: usable, CPU {SLOWER} times slower", shown, "the bound", FIRST_USE, 1),
        Ratio(f"console: quote, {TYPING} analysts type, p95", quotes, "the bound", QUOTE, 1),
    ]


def first_use(url: str) -> float:
    """The least time until the page shows its form, with an empty cache."""
    path = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    options = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=options)
        found = min(load(browser, url) for _ in range(ROUNDS))
        browser.close()
    return found


def load(browser: Browser, url: str) -> float:
    """The time from the request of the page until its form is drawn, by the browser's clock."""
    context = browser.new_context()
    page = context.new_page()
    page.context.new_cdp_session(page).send("Emulation.setCPUThrottlingRate", {"rate": SLOWER})
    page.add_init_script(
        "new MutationObserver((_, observer) => {"
        "  if (!document.getElementById('token')) return;"
        "  observer.disconnect();"
        "  requestAnimationFrame(() => setTimeout(() => { window.usableAt = performance.now(); }));"
        "}).observe(document, { childList: true, subtree: true });"
    )
    page.goto(url)
    found: float = page.evaluate(
        "new Promise((resolve) => {"
        "  const look = () => (window.usableAt ? resolve(window.usableAt) : setTimeout(look, 5));"
        "  look();"
        "})"
    )
    context.close()
    return found / 1000


def while_typing(url: str, tokens: list[str]) -> float:
    """The 95th percentile of the time of a quote, while several analysts type."""
    with ThreadPoolExecutor(len(tokens)) as threads:
        found = threads.map(lambda at: type_questions(url, tokens[at], at), range(len(tokens)))
        times = sorted(seconds for each in found for seconds in each)
    return times[int(0.95 * len(times))]


def type_questions(url: str, token: str, at: int) -> list[float]:
    times = []
    with httpx.Client(
        base_url=url, headers={"authorization": f"Bearer {token}"}, trust_env=False
    ) as client:
        time.sleep(PAUSE * at / TYPING)
        for number in range(QUOTES):
            text = TEXT.format(low=at, high=at + 2 * number)
            start = time.perf_counter()
            reply = client.post("/v1/datasets/people/draft", json={"sql": text})
            times.append(time.perf_counter() - start)
            reply.raise_for_status()
            time.sleep(PAUSE)
    return times
