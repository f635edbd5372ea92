"""The analyst's page in a real Chromium."""

import csv
import io
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
import pyarrow.parquet
import pytest
from PIL import Image
from playwright.sync_api import expect

from tests.service.http.servers import running
from tests.web.conftest import (
    ALERT,
    BACKWARDS,
    ONE,
    ask,
    sign_in,
    sign_in_link,
    type_sql,
    write_people,
)
from tests.web.looks import check_looks

pytestmark = pytest.mark.slow

BY_GROUP = "SELECT age_group, COUNT(*) FROM people WHERE age NOT IN ({}, {}, {}) GROUP BY age_group"
#: An age of each group, for each run of a test that pays: what was paid for before is free.
AGES = zip(range(18), range(18, 36), range(40, 58), strict=True)
BY_WORKING_GROUP = "SELECT age_group, COUNT(*) FROM people WHERE works GROUP BY age_group"


def test_sign_in_and_out(served, opened):
    page = opened(served, name=None)
    expect(page.get_by_text("Curators can read every question, with the name")).to_be_visible()
    sign_in(page, served.token("ann"))
    expect(page.get_by_role("heading", name="people")).to_be_visible()
    expect(page.locator(".meter-button")).to_contain_text(re.compile(r"\d+ questions left"))
    # The token is kept nowhere: neither in a storage nor in a cookie that scripts can read.
    kept = page.evaluate(
        "[JSON.stringify(localStorage), JSON.stringify(sessionStorage), document.cookie]"
    )
    assert "sw_" not in "".join(kept)
    assert kept[2] == ""
    page.reload()
    expect(page.get_by_label("Question in SQL")).to_be_visible()
    page.get_by_role("button", name="Account of ann").click()
    page.get_by_role("menuitem", name="Sign out").click()
    expect(page.get_by_label("Your token")).to_be_visible()
    page.reload()
    expect(page.get_by_label("Your token")).to_be_visible()


def test_a_wrong_token_is_refused_with_advice(served, opened):
    page = opened(served, name=None)
    page.get_by_label("Your token").fill("sw_wrong")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("Unknown token.")
    expect(page.get_by_role("alert")).to_contain_text("Ask the dataset's curator for a new one.")


def test_a_sign_in_link_works_once_and_leaves_the_address(served, opened):
    address = sign_in_link(served, "cleo")
    page = opened(served, name=None)
    page.goto("about:blank")
    page.goto(address)
    expect(page.get_by_role("button", name="Account of cleo")).to_be_visible()
    assert page.url == f"{served.url}/"
    other = opened(served, name=None)
    other.goto("about:blank")
    other.goto(address)
    expect(other.get_by_label("Your token")).to_be_visible()
    expect(other.get_by_text("This sign-in link was used before, or is too old.")).to_be_visible()


def test_an_ended_session_asks_to_sign_in_again(served, opened):
    page = opened(served)
    type_sql(page, ONE.format(31))
    token = served.token("ann")  # replaces the one that began the session
    page.get_by_role("button", name="Ask for free").click()
    expect(page.get_by_text("Your session has ended. Sign in again to go on.")).to_be_visible()
    sign_in(page, token)
    expect(page.get_by_label("Question in SQL")).to_be_visible()


def test_columns_values_and_functions_are_completed(served, opened):
    page = opened(served)
    expect(page.locator(".column-name").first).to_be_visible()
    page.get_by_label("Question in SQL").click()
    page.keyboard.type("SELECT age_g")
    expect(page.locator(".cm-completionLabel", has_text="age_group")).to_be_visible()
    page.keyboard.press("Tab")
    page.keyboard.type(", CO")
    expect(page.locator(".cm-completionLabel", has_text="COUNT(*)")).to_be_visible()
    page.keyboard.press("Escape")
    page.keyboard.type("UNT(*) FROM people WHERE region = 'so")
    value = page.locator(".cm-completionLabel", has_text="'south'")
    expect(value).to_be_visible()
    value.click()
    page.keyboard.type(" GROUP BY age_group ")
    expect(page.get_by_label("Question in SQL")).to_contain_text(
        "SELECT age_group, COUNT(*) FROM people WHERE region = 'south' GROUP BY age_group"
    )
    expect(page.locator(".offer").first).to_contain_text("±")
    # Words of SQL have a colour of their own.
    word, name = page.locator(".cm-line span", has_text="SELECT"), page.locator(".cm-content")
    assert word.evaluate("each => getComputedStyle(each).color") != name.evaluate(
        "each => getComputedStyle(each).color"
    )


def test_a_quote_says_where_paying_gains_little(served, opened):
    page = opened(served)
    note = "Paying would hardly make the answer more precise."

    def reply(route):
        found = route.fetch().json()
        found["quote"]["notes"] = [note]
        route.fulfill(json=found)

    page.route("**/draft", reply)
    type_sql(page, ONE.format(13))
    expect(page.locator(".quote-note")).to_have_text(note)
    # The free question is the one that is proposed.
    expect(page.locator(".ask-buttons .primary")).to_have_text("Ask for free")


def test_the_history_says_who_paid(served, opened):
    sql = ONE.format(51)
    assert served.analyst("ann").ask(sql).status_code == 200
    page = opened(served, "cleo")
    ask(page, sql, "Ask, free")
    expect(page.locator(".answer-footer")).to_contain_text("free · paid by ann")
    entry = page.locator(".history li").first
    expect(entry).to_contain_text("measured before · free · paid by ann")
    expect(entry).to_contain_text("free to repeat")


def test_a_quote_comes_while_typing_and_an_answer_on_asking(served, opened):
    sql = BY_GROUP.format(*next(AGES))
    left = served.analyst("ben").get("/me").json()["questions_left"]
    page = opened(served, "ben")
    type_sql(page, sql)
    expect(page.locator(".offers")).to_contain_text(
        re.compile(rf"Free now ± \d.*1 of your {left} questions ± \d")
    )
    page.get_by_label("Question in SQL").press("Control+Enter")
    rows = page.locator("table.answer tbody tr")
    expect(rows).to_have_count(3)
    expect(rows.first).to_contain_text(re.compile(r"0-17.*\d+\s*± \d+"))
    expect(page.locator(".answer-footer")).to_contain_text(
        "3 rows · measured for this question · cost 1 question · paid by you"
    )
    expect(page.locator(".meter-button")).to_contain_text(f"{left - 1} questions left")
    # It is paid for now, so that it is free.
    expect(page.locator(".offers")).to_contain_text("Free, already measured")
    entry = page.locator(".history li").first
    expect(entry).to_contain_text("1 question")
    expect(entry).to_contain_text("free to repeat")
    served_history = served.analyst("ben").get("/questions").json()["tickets"]
    assert served_history[-1]["sql"] == sql


def test_asking_for_free_costs_nothing(served, opened):
    page = opened(served)
    type_sql(page, ONE.format(11))
    page.get_by_label("Question in SQL").press("Control+Shift+Enter")
    expect(page.locator(".answer-footer")).to_contain_text("estimated from earlier measurements · free")


def test_charts_fit_the_shape_of_the_answer(served, opened):
    page = opened(served)
    ask(page, BY_WORKING_GROUP, "Ask for free")
    tabs = page.get_by_role("tab")
    expect(tabs).to_have_text(["Table", "Bars", "Line"])
    page.get_by_role("tab", name="Bars").click()
    expect(page.locator("svg .bar")).to_have_count(3)
    expect(page.locator("svg .whisker")).to_have_count(3)
    ask(page, "SELECT age, COUNT(*) FROM people GROUP BY age", "Ask for free")
    expect(tabs).to_have_text(["Table", "Line", "Bars"])
    page.get_by_role("tab", name="Line").click()
    expect(page.locator("svg .band")).to_have_count(1)
    ask(page, "SELECT region, works, COUNT(*) FROM people GROUP BY region, works", "Ask for free")
    expect(tabs).to_have_text(["Table", "Heat map", "Bars"])
    expect(page.locator("svg .cell")).to_have_count(8)
    ask(page, "SELECT COUNT(*) FROM people WHERE works", "Ask for free")
    expect(tabs).to_have_text(["Table", "Interval"])
    expect(page.locator("svg .dot")).to_have_count(1)
    # The arrow keys move between views.
    page.get_by_role("tab", name="Interval").press("ArrowLeft")
    expect(page.locator("table.answer")).to_be_visible()


def test_answers_are_downloaded_and_copied_without_a_token(served, opened):
    page = opened(served, permissions=["clipboard-read", "clipboard-write"])
    ask(page, BY_WORKING_GROUP, "Ask for free")

    def download(name):
        with page.expect_download() as found:
            page.get_by_role("button", name=name).click()
        assert re.fullmatch(rf"people-\d+\.{name.lower()}", found.value.suggested_filename)
        return found.value.path().read_bytes()

    rows = list(csv.DictReader(io.StringIO(download("CSV").decode())))
    assert [row["age_group"] for row in rows] == ["0-17", "18-39", "40-59"]
    table = pyarrow.parquet.read_table(io.BytesIO(download("Parquet")))
    assert table["count"].to_pylist() == pytest.approx([float(row["count"]) for row in rows])
    assert download("PNG").startswith(b"\x89PNG")
    ask(page, "SELECT COUNT(*), AVG(age) FROM people WHERE works", "Ask for free")
    page.get_by_role("tab", name="Interval").click()
    height = page.locator(".chart svg").bounding_box()["height"]
    image = Image.open(io.BytesIO(download("PNG")))
    # Both numbers are in the picture, which is not transparent.
    assert (image.height, image.getpixel((0, 0))) == (2 * height + 48, (255, 255, 255, 255))
    for language, part in (("Python", "sharewell.connect"), ("R", "req_body_json"), ("curl", "curl -s")):
        page.get_by_role("button", name="Copy as").click()
        page.get_by_role("menuitem", name=f"as {language}", exact=True).click()
        expect(page.get_by_text(f"{language} copied.")).to_be_visible()
        copied = page.evaluate("navigator.clipboard.readText()")
        assert part in copied
        assert "SHAREWELL_TOKEN" in copied
        assert "sw_" not in copied


def test_a_form_writes_the_sql(served, opened):
    page = opened(served)
    page.get_by_role("button", name="Build without SQL").click()
    form = page.get_by_role("region", name="Build a question")
    form.get_by_label("What").select_option("MEDIAN")
    expect(page.get_by_label("Question in SQL")).to_contain_text("SELECT MEDIAN(age)")
    form.get_by_label("What").select_option("AVG")
    form.get_by_label("Of").select_option("age")
    form.get_by_role("button", name="+ condition").click()
    form.get_by_label("Column").select_option("region")
    form.get_by_label("Value").select_option(label="south")
    # The next condition is on a column that has none yet.
    form.get_by_role("button", name="+ condition").click()
    expect(form.get_by_label("Column").nth(1)).to_have_value("age")
    form.get_by_role("button", name="Remove this condition").nth(1).click()
    form.get_by_label("Group by").select_option("works")
    editor = page.get_by_label("Question in SQL")
    expect(editor).to_contain_text("SELECT works, AVG(age)")
    sql = "SELECT works, AVG(age) FROM people WHERE region = 'south' GROUP BY works"
    assert " ".join(editor.inner_text().split()) == sql
    page.get_by_role("button", name="Ask for free").click()
    expect(page.locator("table.answer tbody tr")).to_have_count(2)


def test_a_mistake_is_shown_in_its_place_and_mended_by_a_click(served, opened):
    page = opened(served)
    type_sql(page, "SELECT COUNT(*) FROM people\nWHERE agee < 30")
    mistake = page.locator(".mistake")
    expect(mistake).to_contain_text('Unknown column "agee".')
    expect(page.locator(".cm-lintRange-error")).to_have_text("agee")
    page.get_by_role("button", name="Replace with age").click()
    expect(page.locator(".offer").first).to_be_visible()
    expect(page.locator(".cm-lintRange-error")).to_have_count(0)


def test_values_of_users_are_text_and_nothing_else(served, opened):
    page = opened(served)
    page.get_by_label("Search columns and values").fill("script")
    expect(page.locator(".values .chip", has_text=ALERT)).to_be_visible()
    ask(page, "SELECT region, COUNT(*) FROM people GROUP BY region", "Ask for free")
    labels = page.locator("table.answer tbody th")
    expect(labels).to_have_text(["north", "south", ALERT, BACKWARDS])
    # A right-to-left mark ends where the label ends.
    assert page.locator("table.answer tbody th bdi").count() == 4
    page.get_by_role("tab", name="Bars").click()
    expect(page.locator(".bar-row")).to_have_count(4)
    ask(page, f'SELECT works, COUNT(*) AS "{ALERT}" FROM people GROUP BY works', "Ask for free")
    expect(page.locator("svg .axis-title", has_text="<script>")).to_be_visible()
    page.get_by_role("tab", name="Table").click()
    expect(page.locator("table.answer thead th.number")).to_have_text(ALERT)
    assert page.evaluate("document.scripts.length") == 1


def test_two_tabs_share_a_session(served, opened):
    page = opened(served)
    other = page.context.new_page()
    other.goto(served.url)
    expect(other.get_by_role("button", name="Account of ann")).to_be_visible()
    # A browser slows down the tab that is behind.
    page.bring_to_front()
    ask(page, ONE.format(43), "Ask for free")
    other.bring_to_front()
    type_sql(other, ONE.format(44))
    with other.expect_response("**/draft"):  # the quote after the answer
        other.get_by_role("button", name="Ask for free").click()
    expect(other.locator(".answer-footer")).to_be_visible()
    page.bring_to_front()
    page.get_by_role("button", name="Account of ann").click()
    page.get_by_role("menuitem", name="Sign out").click()
    expect(page.get_by_label("Your token")).to_be_visible()
    other.bring_to_front()
    other.get_by_label("Question in SQL").click()
    other.keyboard.insert_text(" ")
    expect(other.get_by_text("Your session has ended")).to_be_visible()


def test_the_page_goes_on_after_a_restart_of_the_server(tmp_path, opened):
    path = write_people(tmp_path)
    with running(path) as server:
        page = opened(server)
        ask(page, ONE.format(20), "Ask for free")
        port = server.port
    page.get_by_label("Question in SQL").click()
    page.keyboard.insert_text(" AND works")
    expect(page.get_by_text("The service cannot be reached.")).to_be_visible()
    with running(path, port=port):
        expect(page.locator(".offer").first).to_be_visible()
        page.get_by_role("button", name="Ask for free").click()
        expect(page.locator(".question-text code")).to_have_text(f"{ONE.format(20)} AND works")
        expect(page.locator(".answer-footer")).to_be_visible()
        page.close()


def test_questions_wait_for_their_turn_and_done_lets_them_go(tmp_path, opened):
    with running(write_people(tmp_path, scheduler="round-robin")) as server:
        page = opened(server)
        ask(page, ONE.format(20))
        type_sql(page, ONE.format(21))
        page.get_by_role("button", name="Ask for 1 question").click()
        expect(page.locator(".waiting-box")).to_contain_text("Waiting for its turn")
        expect(page.locator(".waiting-box")).to_contain_text("Analysts take turns here")
        check_looks(page)
        ask_next = page.get_by_role("button", name="Ask for 1 question")
        type_sql(page, ONE.format(22))
        ask_next.click()
        expect(page.locator(".waiting-box")).to_contain_text("1 question of yours comes before it.")
        expect(page.locator(".history li").first).to_contain_text("waiting behind 1 question of yours")
        # The page can be left: the question is kept.
        page.reload()
        expect(page.locator(".waiting-box")).to_be_visible()
        type_sql(page, ONE.format(22))
        expect(page.locator(".offers")).to_contain_text("1 of your")
        for name in ("ben", "cleo"):
            assert server.analyst(name).post("/done").status_code == 204
        expect(page.locator(".answer-footer")).to_contain_text("paid by you")
        # What has been measured meanwhile is quoted as free.
        expect(page.locator(".offers")).to_contain_text("Free, already measured")
        page.get_by_role("button", name="Account of ann").click()
        page.get_by_role("menuitem", name="I’m done for now").click()
        expect(page.get_by_text("The others no longer wait for you.")).to_be_visible()


class Prefix(BaseHTTPRequestHandler):
    """A proxy that serves a service under /stats/."""

    target = ""

    def do_GET(self):
        assert self.path.startswith("/stats/"), self.path
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        headers = {name: value for name, value in self.headers.items() if name.lower() != "connection"}
        url = self.target + self.path.removeprefix("/stats")
        reply = httpx.request(
            self.command, url, content=body, headers=headers, timeout=60, trust_env=False
        )
        self.send_response(reply.status_code)
        for name, value in reply.headers.multi_items():
            if name not in ("content-length", "content-encoding", "connection", "date"):
                self.send_header(name, value)
        self.send_header("content-length", str(len(reply.content)))
        self.end_headers()
        self.wfile.write(reply.content)

    do_POST = do_DELETE = do_GET

    def log_message(self, *_):
        pass


def test_the_page_works_under_a_prefix(served, opened):
    handler = type("ToServed", (Prefix,), {"target": served.url})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as proxy:
        thread = threading.Thread(target=proxy.serve_forever)
        thread.start()
        try:
            served_at = type("At", (), {"url": f"http://127.0.0.1:{proxy.server_port}/stats/"})
            page = opened(served_at, name=None)
            sign_in(page, served.token("ann"))
            ask(page, ONE.format(50), "Ask for free")
            (cookie,) = page.context.cookies()
            assert (cookie["path"], cookie["httpOnly"], cookie["sameSite"]) == (
                "/stats/v1",
                True,
                "Strict",
            )
            page.context.close()
        finally:
            proxy.shutdown()
            thread.join()


def test_keys_search_columns_and_list_themselves(served, opened):
    page = opened(served)
    expect(page.locator(".column-name").first).to_be_visible()
    page.locator("body").click(position={"x": 2, "y": 2})
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("/")
    expect(page.get_by_label("Search columns and values")).to_be_focused()
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keyboard")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_the_budget_is_explained_as_odds(served, opened):
    page = opened(served)
    page.locator(".meter-button").click()
    dialog = page.get_by_role("dialog", name="Your budget")
    dialog.get_by_text("What does the budget protect?").click()
    expect(dialog).to_contain_text("epsilon = 10")
    expect(dialog).to_contain_text("times as likely as it would be without any one row.")
