"""Take the pictures of the console for README and docs, from the demonstration: `make screenshots`."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

from sharewell.cli.demo import DemoServer, run_demo_server
from sharewell.client import connect, connect_curator

FIGURES = Path(__file__).parent.parent / "docs" / "figures"
NAMES = ("chromium", "chromium-browser", "google-chrome")

MOVERS = "SELECT age_group, COUNT(*) FROM people\nWHERE moved GROUP BY age_group"
BY_AGE = "SELECT age, COUNT(*) FROM people\nWHERE marital = 'never married' GROUP BY age"
#: What the analysts have asked before the pictures are taken.
BEFORE = (
    ("ann", "SELECT COUNT(*) FROM people WHERE moved AND age BETWEEN 18 AND 24", True),
    ("ben", "SELECT schooling, COUNT(*) FROM people WHERE age_group = '25-34' GROUP BY schooling", True),
    ("ben", "SELECT COUNT(*) FROM people WHERE marital = 'widowed'", True),
    ("cleo", "SELECT AVG(age) AS mean_age FROM people WHERE marital = 'widowed'", True),
    ("cleo", "SELECT sex, COUNT(*) FROM people GROUP BY sex", True),
    ("ann", "SELECT race, COUNT(*) FROM people GROUP BY race", False),
    ("ben", "SELECT sex, COUNT(*) FROM people GROUP BY sex", True),
    ("ann", "SELECT sex, COUNT(*) FROM people GROUP BY sex", True),
)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, run_demo_server(Path(folder), 0) as server:
        ask_before(server)
        with chromium() as browser:
            take_all(browser, server)


def ask_before(server: DemoServer) -> None:
    for analyst, sql, pay in BEFORE:
        with connect(server.url, server.tokens[analyst]) as session:
            session.ask(sql, pay=pay)
    with connect_curator(server.url, server.tokens["dana"]) as session:
        while session.certificate().entries < len(BEFORE):
            pass


@contextmanager
def chromium() -> Iterator[Browser]:
    path = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)))
    options = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=options)
        yield browser
        browser.close()


def take_all(browser: Browser, server: DemoServer) -> None:
    page = open_page(browser, server.links["ann"], 1180, 760)
    ask(page, MOVERS, "Ask for 1 question")
    page.get_by_role("tab", name="Bars").click()
    take(page, "console-analyst")

    page = open_page(browser, server.links["dana"], 1180, 760)
    page.get_by_role("tab", name="Fairness").click()
    page.locator(".promises").wait_for()
    take(page, "console-curator")

    page = open_page(browser, server.url, 1180, 760, "dark")
    sign_in(page, server.tokens["ben"])
    ask(page, BY_AGE, "Ask for free")
    page.get_by_role("tab", name="Line").click()
    take(page, "console-dark")

    page = open_page(browser, server.url, 400, 760)
    sign_in(page, server.tokens["cleo"])
    page.get_by_role("button", name="Build without SQL").click()
    page.get_by_label("Group by").select_option("schooling")
    page.get_by_text("Free now").wait_for()
    take(page, "console-narrow")


def open_page(browser: Browser, url: str, width: int, height: int, scheme: str = "light") -> Page:
    context = browser.new_context(
        viewport={"width": width, "height": height},
        color_scheme="dark" if scheme == "dark" else "light",
        reduced_motion="reduce",
    )
    page = context.new_page()
    page.goto(url)
    return page


def sign_in(page: Page, token: str) -> None:
    page.get_by_label("Your token").fill(token)
    page.keyboard.press("Enter")
    page.locator(".column-name").first.wait_for()


def ask(page: Page, sql: str, button: str) -> None:
    page.locator(".column-name").first.wait_for()
    page.get_by_label("Question in SQL").click()
    page.keyboard.insert_text(sql)
    page.get_by_role("button", name=button).click()
    page.locator(".answer-footer").wait_for()
    page.locator("[data-pending=false]").wait_for()


def take(page: Page, name: str) -> None:
    page.mouse.move(0, 0)
    page.screenshot(path=FIGURES / f"{name}.png")
    page.context.close()


if __name__ == "__main__":
    main()
