"""The curator's page in a real Chromium."""

import json
import re

from playwright.sync_api import expect

from sharewell.config import read_config
from sharewell.service.registry import DatasetRegistry
from tests.service.http.servers import running
from tests.web.conftest import CURATOR, sign_in, write_people
from tests.web.looks import check_looks


def test_the_overview_shows_shares_and_questions(judged, opened):
    page = opened(judged, **CURATOR)
    expect(page.locator(".fact", has_text="Analysts")).to_contain_text(re.compile(r"\d"))
    expect(page.get_by_role("img", name="The budget")).to_be_visible()
    expect(page.locator(".legend", has_text="paid")).to_contain_text("3 paid")
    expect(page.locator(".legend", has_text="paid")).to_contain_text("2 free")


def test_the_certificate_is_a_picture_with_a_verdict(judged, opened):
    page = opened(judged, **CURATOR)
    page.get_by_role("tab", name="Fairness").click()
    # The page reads it again every ten seconds, and it is computed beside the service.
    expect(page.locator(".verdict-text")).to_have_text("No analyst is worse off for sharing.")
    expect(page.locator(".verdict")).to_contain_text("Judged up to")
    expect(page.get_by_role("img", name="Useful answers")).to_be_visible()
    expect(page.locator(".promises li")).to_have_count(3)


def test_the_ledger_is_filtered_searched_and_exported(judged, opened):
    page = opened(judged, **CURATOR)
    page.get_by_role("tab", name="Ledger").click()
    page.get_by_label("Kind of event").select_option("asked")
    expect(page.locator(".event")).to_have_count(5)
    page.get_by_label("Search events").fill("age < 30")
    expect(page.locator(".event")).to_have_count(1)
    page.locator(".event-line").click()
    expect(page.locator(".event pre")).to_contain_text('"analyst": "ben"')
    with page.expect_download() as found:
        page.get_by_role("button", name="Export").click()
    events = [json.loads(line) for line in found.value.path().read_text().splitlines()]
    assert [event["number"] for event in events] == list(range(len(events)))
    assert found.value.suggested_filename == "people-ledger.ndjson"


def test_the_ledger_is_verified_with_a_button(judged, opened):
    page = opened(judged, **CURATOR)
    page.get_by_role("tab", name="Ledger").click()
    page.get_by_role("button", name="Verify").click()
    verification = page.get_by_role("region", name="Verification")
    expect(verification).to_contain_text("The ledger is sound.")
    expect(verification.locator(".checks li")).to_have_count(5)


def test_a_curator_adds_an_analyst_rotates_a_token_and_removes_the_analyst(judged, opened):
    page = opened(judged, **CURATOR)
    page.get_by_role("tab", name="Analysts").click()
    page.get_by_role("button", name="Add an analyst").click()
    page.get_by_label("Name").fill("zoe")
    page.get_by_label("Share of the whole budget").fill("9/10")
    page.get_by_role("button", name="Add", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("is unallocated")
    page.get_by_label("Share of the whole budget").fill("1/20")
    page.get_by_role("button", name="Add", exact=True).click()
    token = page.locator(".token").inner_text()
    assert judged.client(token).get("/v1/datasets").json()["name"] == "zoe"
    page.get_by_role("button", name="Close").click()
    page.get_by_role("button", name="New token for zoe").click()
    page.get_by_role("button", name="Issue a new token").click()
    expect(page.locator(".token")).not_to_have_text(token)
    renewed = page.locator(".token").inner_text()
    assert judged.client(token).get("/v1/datasets").status_code == 401
    page.get_by_role("button", name="Close").click()
    page.get_by_role("button", name="Remove zoe").click()
    expect(page.get_by_role("dialog")).to_contain_text("The name cannot be used again.")
    page.get_by_role("button", name="Remove for good").click()
    expect(page.get_by_role("button", name="Remove zoe")).to_have_count(0)
    assert judged.client(renewed).get("/v1/datasets").status_code == 401


def test_a_curator_pauses_and_resumes(judged, opened):
    page = opened(judged, **CURATOR)
    page.get_by_role("button", name="Pause").click()
    expect(page.locator(".badge", has_text="paused")).to_be_visible()
    assert judged.analyst("ann").ask().json()["code"] == "service.paused"
    page.get_by_role("button", name="Resume").click()
    expect(page.locator(".badge", has_text="paused")).to_have_count(0)


def test_before_it_is_begun_a_dataset_has_a_plan_only(tmp_path, opened):
    path = write_people(tmp_path)
    config = read_config(path)
    config.witness.unlink()
    path.with_name("people.ledger.sqlite").unlink()
    with running(open_registry=lambda: DatasetRegistry.open([path], plan=True)) as server:
        page = opened(server, name=None)
        sign_in(page, server.registry.planned["people"].tokens.issue("dana", "curator"))
        expect(page.locator(".badge")).to_have_text("not begun")
        questions = page.locator("tbody tr").first.locator("td").first
        expect(questions).to_have_text("5")
        page.get_by_label("Price of a paid question").press("End")
        expect(page.locator(".toml")).to_contain_text('query_budget = "1/4"')
        expect(questions).to_have_text("0")
        check_looks(page)
        page.close()
