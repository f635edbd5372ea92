"""A real Chromium, and a server with awkward names for its pages."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from sharewell.service.tokens import id_of
from tests.service.beginning import begun
from tests.service.http.servers import Running, running

#: Nothing here depends on speed: a busy machine takes its time.
PATIENCE = 60_000
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
MISSING = "Chromium is missing: run scripts/fetch_chromium as root, or install the package chromium."

CURATOR = {"name": "dana", "role": "curator"}
ONE = "SELECT COUNT(*) FROM people WHERE age < {}"
ALERT = "<script>alert(1)</script>"
BACKWARDS = "\u202eesrever"
ROWS = "".join(
    f"{at % 60},{('north', 'south')[at % 2]},{('true', 'false')[at % 3 > 0]}\n" for at in range(900)
)
DATASET = """
[dataset]
name = "people"
source = "people.csv"
population = 1000
[budget]
epsilon = 10
error_threshold = 20
[attributes.age]
type = "integer"
low = 0
high = 59
bins = {{ age_group = [0, 18, 40] }}
[attributes.region]
type = "category"
categories = ["north", "south", "{alert}", "{backwards}"]
[attributes.works]
type = "boolean"
[analysts.ann]
share = "1/4"
[analysts.ben]
share = "1/4"
[analysts.cleo]
share = "1/4"
[mechanism]
query_budget = "1/40"
[scheduler]
name = "{scheduler}"
[service]
curators = ["dana"]
requests_per_second = 100000
max_queue_seconds = 600
release_every = 0.01
certificate = {certificate}
"""


def write_people(folder: Path, scheduler: str = "none", certificate: bool = False) -> Path:
    """A dataset whose values are hostile to a page."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "people.csv").write_text(f"age,region,works\n{ROWS}")
    path = folder / "people.toml"
    path.write_text(
        DATASET.format(
            alert=ALERT,
            backwards=BACKWARDS,
            scheduler=scheduler,
            certificate=str(certificate).lower(),
        ),
        encoding="utf-8",
    )
    return begun(path)


@pytest.fixture(scope="package")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server for all of this folder. Tests share it, so each uses what it asks itself."""
    with running(write_people(tmp_path_factory.mktemp("people"))) as found:
        yield found


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """One Chromium for this folder: Playwright's event loop must have ended before other tests run."""
    path = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        pytest.skip(MISSING)
    expect.set_options(timeout=PATIENCE)
    options = ["--disable-background-networking", "--disable-component-update", "--no-first-run"]
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        options.append("--no-sandbox")
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=path, args=options)
        yield found
        found.close()


@pytest.fixture(scope="package")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server with a certificate and a few questions."""
    with running(write_people(tmp_path_factory.mktemp("judged"), certificate=True)) as found:
        ann, ben = found.analyst("ann"), found.analyst("ben")
        for who, limit in ((ann, 10), (ben, 10), (ann, 20), (ben, 30)):
            assert who.ask(ONE.format(limit)).status_code == 200
        assert ben.ask(ONE.format(40), pay=False).status_code == 200
        yield found


class Watched:
    """A page, and everything that it should not have done."""

    def __init__(self, page: Page, url: str) -> None:
        self.page = page
        self.faults: list[str] = []
        self._url = url
        page.on("pageerror", lambda error: self.faults.append(str(error)))
        page.on("dialog", self._note_dialog)
        page.on("console", self._note_console)
        page.on("request", self._note_request)

    def _note_dialog(self, dialog: Any) -> None:
        self.faults.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _note_console(self, message: Any) -> None:
        if "Content Security Policy" in message.text or "Refused" in message.text:
            self.faults.append(message.text)

    def _note_request(self, request: Any) -> None:
        if not request.url.startswith((self._url, "data:", "blob:")):
            self.faults.append(f"request to {request.url}")


Opener = Callable[..., Page]


@pytest.fixture
def opened(browser: Browser) -> Iterator[Opener]:
    """Open a page of a server, signed in unless told otherwise; nothing that it does may be a fault."""
    watched: list[Watched] = []
    contexts = []

    def open_page(
        server: Running, name: str | None = "ann", role: str = "analyst", **options: Any
    ) -> Page:
        context = browser.new_context(accept_downloads=True, **options)
        context.set_default_timeout(PATIENCE)
        contexts.append(context)
        page = context.new_page()
        watched.append(Watched(page, server.url))
        page.goto(server.url if name is None else sign_in_link(server, name, role))
        if name is not None:
            expect(page.get_by_role("button", name=f"Account of {name}")).to_be_visible()
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert [fault for each in watched for fault in each.faults] == []


def sign_in_link(server: Running, name: str, role: str = "analyst") -> str:
    """An address that signs in, once, with a new token."""
    token_id = id_of(server.token(name, role))
    return f"{server.url}/#code={server.registry.datasets['people'].sessions.issue_code(token_id)}"


def sign_in(page: Page, token: str) -> None:
    page.get_by_label("Your token").fill(token)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_label("Your token")).to_have_count(0)


def type_sql(page: Page, text: str) -> None:
    """Replace the text of the editor, and wait for its quote."""
    editor = page.get_by_label("Question in SQL")
    editor.click()
    page.keyboard.press("Control+a")
    page.keyboard.insert_text(text)
    expect(page.locator(".quote-line")).to_have_attribute("data-pending", "false")


def ask(page: Page, text: str, button: str = "Ask for 1 question") -> None:
    """Ask, and wait for the answer."""
    type_sql(page, text)
    page.get_by_role("button", name=button).click()
    expect(page.locator(".question-text code")).to_have_text(text)
    expect(page.locator(".answer-footer")).to_be_visible()
