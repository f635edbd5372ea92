"""The curator's page in a real Chromium."""

import json
import re
from datetime import datetime
from secrets import token_hex

import pytest
from playwright.sync_api import expect

from sharewell.config import read_config
from sharewell.service.registry import DatasetRegistry
from tests.service.http.servers import running
from tests.web.conftest import CURATOR, ONE, sign_in, type_sql, write_people
from tests.web.looks import check_looks

pytestmark = pytest.mark.slow


def test_the_overview_shows_shares_and_questions(judged, opened):
    page = opened(judged, **CURATOR)
    expect(page.locator(".fact", has_text="Analysts")).to_contain_text(re.compile(r"\d"))
    expect(page.get_by_role("img", name="The budget")).to_be_visible()
    expect(page.get_by_role("list", name="Answers by source").locator("li")).to_have_text(
        ["3 measured, and paid for", "1 measured before", "1 estimated from earlier measurements"]
    )
    expect(page.get_by_role("img", name="The newest 5 questions over time")).to_be_visible()
    for source in ("measured", "cached", "reconstructed"):
        assert page.locator(f"svg .activity.{source}").count() >= 1
    expect(page.get_by_text("The newest 5 questions, ")).to_be_visible()


def seconds(text):
    return int(datetime.fromisoformat(f"{text}+00:00").timestamp())


def activity(*questions):
    """What the service says of questions, each a time in UTC and the source of its answer."""
    return {
        "times": [seconds(time) for time, _ in questions],
        "sources": [source for _, source in questions],
    }


NONE = activity()
ONE_QUESTION = activity(("2026-11-18T08:47", "measured"))
#: Fifty questions of one hour, then one a day later.
DENSE_THEN_SPARSE = activity(
    *[(f"2026-11-17T22:{minute:02}", "cached") for minute in range(10, 60)],
    ("2026-11-18T21:59", "refused"),
)
#: From summer to winter time, and years apart.
DAYS = activity(*[(f"2026-10-{day}T22:30", "measured") for day in (20, 24, 25, 28)])
YEARS = activity(("2024-02-29T12:00", "public"), ("2026-11-18T12:00", "synthetic"))


def test_questions_are_drawn_over_time(judged, opened):
    page = opened(judged, **CURATOR, timezone_id="Europe/Berlin")
    card = page.locator(".card", has=page.get_by_role("heading", name="Questions over time"))
    columns, marks = card.locator(".activity-column"), card.locator(".time-mark")
    shown = NONE
    page.route("**/activity", lambda route: route.fulfill(json=shown))

    def show(activity):
        nonlocal shown
        shown = activity
        page.reload()

    show(NONE)
    expect(card).to_contain_text("No question has been asked yet.")
    show(ONE_QUESTION)
    expect(card.locator(".note")).to_have_text("One question, asked on 18 Nov, 09:47.")
    expect(columns).to_have_count(1)
    show(DENSE_THEN_SPARSE)
    expect(card.locator(".note")).to_have_text(
        "The newest 51 questions, asked from 17 Nov, 23:10 to 18 Nov, 22:59. Each column is 30 minutes."
    )
    # At midnight the mark is the day; 50 questions in two columns, and one far away on the right.
    expect(marks).to_have_text(["18 Nov", "03:00", "06:00", "09:00", "12:00", "15:00", "18:00", "21:00"])
    expect(columns.locator("title")).to_have_text(
        [
            "17 Nov, 23:00 to 23:30: 20 measured before",
            "17 Nov, 23:30 to 18 Nov, 00:00: 30 measured before",
            "18 Nov, 22:30 to 23:00: 1 refused",
        ]
    )
    check_looks(page)
    show(DAYS)
    expect(card.locator(".note")).to_contain_text("asked from 21 Oct, 00:30 to 28 Oct, 23:30.")
    # Local days: the same hour of UTC is after midnight in summer, and before it in winter.
    spans = (
        "21 Oct, 00:00 to 06:00",
        "25 Oct, 00:00 to 06:00",
        "25 Oct, 18:00 to 26 Oct, 00:00",
        "28 Oct, 18:00 to 29 Oct, 00:00",
    )
    expect(columns.locator("title")).to_have_text(
        [f"{span}: 1 measured, and paid for" for span in spans]
    )
    show(YEARS)
    expect(card.locator(".note")).to_contain_text("from 29 Feb 2024, 13:00 to 18 Nov 2026, 13:00.")
    expect(marks.filter(has_text="2025")).to_have_count(1)


def test_the_overview_shows_what_changed_between_file_and_ledger(judged, opened):
    path = judged.registry.datasets["people"].config.path
    before = path.read_text(encoding="utf-8")
    page = opened(judged, **CURATOR)
    expect(page.locator(".fact").first).to_be_visible()
    changed = page.get_by_role("group", name="Changed settings")
    expect(changed).to_have_count(0)
    try:
        path.write_text(before.replace("error_threshold = 20", "error_threshold = 30"), encoding="utf-8")
        page.reload()
        cells = changed.locator("tbody tr > *")
        expect(cells).to_have_text(["budget.error_threshold", "20", "30"])
        path.write_text("[dataset", encoding="utf-8")
        page.reload()
        expect(page.get_by_text("The configuration file cannot be read now.")).to_be_visible()
    finally:
        path.write_text(before, encoding="utf-8")


def test_the_certificate_is_a_picture_with_a_verdict(judged, opened):
    page = opened(judged, **CURATOR)
    page.get_by_role("tab", name="Fairness").click()
    # The page reads it again every ten seconds, and it is computed beside the service.
    expect(page.locator(".verdict-text")).to_have_text("No analyst is worse off for sharing.")
    expect(page.locator(".verdict")).to_contain_text("Judged up to")
    expect(page.get_by_role("img", name="Useful answers")).to_be_visible()
    expect(page.locator(".promises li")).to_have_count(3)
    expect(page.locator(".worst-pair")).to_contain_text("No analyst would do better without any other.")


def test_the_worst_pair_of_a_certificate_is_named(judged, opened):
    curator = judged.client(judged.token(**CURATOR))
    report = curator.get("/v1/datasets/people/certificate").json()
    standings = [
        {"analyst": "ann", "here": 9, "alone": 8, "answers": 12, "without": {"ben": 10, "cleo": 9}},
        {"analyst": "ben", "here": 5, "alone": 7, "answers": 12, "without": {"ann": 8, "cleo": 5}},
    ]
    report |= {"holds": False, "exact": True, "analysts": standings}
    budgets = curator.get("/v1/datasets/people/analysts").json()
    for each in budgets["analysts"]:
        each |= {"waiting": 2, "questions_left": 0}
    page = opened(judged, **CURATOR)
    page.route("**/certificate", lambda route: route.fulfill(json=report))
    page.route("**/analysts", lambda route: route.fulfill(json=budgets))
    page.reload()
    # One line for each matter, the most urgent first, however many analysts it concerns.
    expect(page.locator(".alerts li")).to_have_text(
        [
            "At least one analyst is worse off for sharing.",
            re.compile("^No budget left for paid questions: ann, ben, cleo"),
            re.compile("^Waiting questions: ann 2, ben 2, cleo 2"),
        ]
    )
    page.get_by_role("tab", name="Fairness").click()
    expect(page.locator(".worst-pair")).to_have_text(
        "Worst pair: ben has 5 useful answers, and would have 8 without ann."
    )
    expect(page.locator("svg .here.worse")).to_have_count(1)


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
    expect(page.get_by_role("button", name="Verify")).to_be_enabled()
    on_its_way = {"state": "running", "check": "answers", "done": 3, "of": 12}

    def show(route):
        if route.request.method == "GET":
            route.fulfill(json=on_its_way)
        else:
            route.continue_()

    page.route("**/verification", show)
    page.get_by_role("button", name="Verify").click()
    verification = page.get_by_role("region", name="Verification")
    expect(verification.get_by_role("status")).to_have_text("Answers and their errors: 3 of 12")
    progress = verification.get_by_role("progressbar", name="Progress of the verification")
    assert progress.evaluate("bar => [bar.value, bar.max]") == [3, 12]
    page.unroute("**/verification")
    expect(verification).to_contain_text("The ledger is sound.")
    expect(verification.locator(".checks li")).to_have_count(5)


def test_a_curator_adds_an_analyst_rotates_a_token_and_removes_the_analyst(judged, opened):
    page = opened(judged, **CURATOR)
    page.get_by_role("tab", name="Analysts").click()
    page.get_by_role("button", name="Add an analyst").click()
    name = f"zoe-{token_hex(4)}"  # a name is used once
    page.get_by_label("Name").fill(name)
    page.get_by_label("Share of the whole budget").fill("9/10")
    page.get_by_role("button", name="Add", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("is unallocated")
    check_looks(page)
    page.get_by_label("Share of the whole budget").fill("1/20")
    page.get_by_role("button", name="Add", exact=True).click()
    token = page.locator(".token").inner_text()
    check_looks(page)
    assert judged.client(token).get("/v1/datasets").json()["name"] == name
    page.get_by_role("button", name="Close").click()
    page.get_by_role("button", name=f"New token for {name}").click()
    check_looks(page)
    page.get_by_role("button", name="Issue a new token").click()
    expect(page.locator(".token")).not_to_have_text(token)
    renewed = page.locator(".token").inner_text()
    assert judged.client(token).get("/v1/datasets").status_code == 401
    page.get_by_role("button", name="Close").click()
    page.get_by_role("button", name=f"Remove {name}").click()
    expect(page.get_by_role("dialog")).to_contain_text("The name cannot be used again.")
    page.get_by_role("button", name="Remove for good").click()
    expect(page.get_by_role("button", name=f"Remove {name}")).to_have_count(0)
    assert judged.client(renewed).get("/v1/datasets").status_code == 401


def test_a_curator_pauses_and_resumes(judged, opened):
    page = opened(judged, **CURATOR)
    page.get_by_role("button", name="Pause").click()
    expect(page.locator(".badge", has_text="paused")).to_be_visible()
    check_looks(page)
    analyst = opened(judged)
    expect(analyst.locator(".badge", has_text="paused")).to_be_visible()
    type_sql(analyst, ONE.format(7))
    expect(analyst.get_by_role("button", name="Ask for free")).to_be_disabled()
    expect(analyst.get_by_text("The curator has paused the dataset")).to_be_visible()
    check_looks(analyst)
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
