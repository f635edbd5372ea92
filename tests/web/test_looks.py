"""Every state of the pages in four looks; loading states; nothing moves; and the keyboard alone."""

from urllib.parse import parse_qs, urlsplit

from playwright.sync_api import expect

from tests.web.conftest import CURATOR, ONE, ask, type_sql
from tests.web.looks import NARROW, WIDE, check_looks

TWO_GROUPS = "SELECT region, works, COUNT(*) FROM people GROUP BY region, works"
MANY = ", ".join(f"COUNT(*) FILTER (WHERE age = {age}) AS at_{age}" for age in range(40))
FORTY_COLUMNS = f"SELECT works, {MANY} FROM people GROUP BY works"
#: Until two frames have been drawn: 33 ms on most screens.
TWO_FRAMES = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"


def test_signing_in_looks_well(judged, opened):
    page = opened(judged, name=None)
    page.get_by_label("Your token").fill("sw_wrong")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_be_visible()
    check_looks(page)


def test_every_state_of_the_analysts_page_looks_well(served, opened):
    page = opened(served, "cleo")
    expect(page.locator(".examples button")).to_have_count(3)
    check_looks(page)
    page.get_by_role("button", name="Build without SQL").click()
    ask(page, TWO_GROUPS, "Ask for free")
    page.get_by_role("tab", name="Heat map").click()
    check_looks(page)
    page.get_by_role("tab", name="Bars").click()
    type_sql(page, "SELECT COUNT(*) FROM people WHERE agee = 3")
    check_looks(page)
    page.locator(".meter-button").click()
    page.get_by_text("What does the budget protect?").click()
    check_looks(page)
    page.keyboard.press("Escape")
    type_sql(page, "")
    ask(page, FORTY_COLUMNS, "Ask for free")
    page.get_by_role("tab", name="Table").click()
    check_looks(page)
    page.context.set_offline(True)
    type_sql_only(page, " ")
    expect(page.get_by_text("The service cannot be reached.")).to_be_visible()
    check_looks(page)
    page.context.set_offline(False)
    page.get_by_role("button", name="Account of cleo").click()
    check_looks(page)
    page.get_by_role("menuitem", name="Sign out").click()
    expect(page.get_by_label("Your token")).to_be_visible()


def type_sql_only(page, text):
    """Type, without waiting for a quote."""
    page.get_by_label("Question in SQL").click()
    page.keyboard.insert_text(text)


def test_every_view_of_the_curators_page_looks_well(judged, opened):
    page = opened(judged, **CURATOR)
    expect(page.locator(".fact").first).to_be_visible()
    for view in ("Overview", "Fairness", "Ledger", "Analysts"):
        page.get_by_role("tab", name=view).click()
        expect(page.locator(".card").first).to_be_visible()
        check_looks(page)
    page.set_viewport_size(NARROW)
    scroll = page.locator(".table-scroll", has=page.get_by_role("button", name="Remove ben"))
    assert scroll.evaluate("element => element.scrollWidth - element.clientWidth") <= 0
    page.get_by_role("button", name="Remove ben").click()
    check_looks(page)


def test_a_curators_page_that_loads_looks_well(judged, opened):
    page = opened(judged, **CURATOR)
    page.route("**/v1/datasets/people**", lambda route: None)
    page.reload()
    expect(page.get_by_role("status", name="Loading")).to_be_visible()
    check_looks(page)


def test_a_question_and_its_quote_never_move_what_is_below(served, opened):
    page = opened(served)
    texts = ["", ONE.format(5), "SELECT COUNT(*) FROM people WHERE agee = 3", "SELECT x", FORTY_COLUMNS]
    for size in (WIDE, NARROW):
        page.set_viewport_size(size)
        places = set()
        for text in texts:
            if text:
                type_sql(page, text)
            boxes = [
                page.locator(each).bounding_box() for each in (".quote-line", ".ask-buttons", ".results")
            ]
            places.add(
                tuple((box["y"], box["height"] if at == 0 else 0) for at, box in enumerate(boxes))
            )
        assert len(places) == 1, (size, places)
        page.get_by_label("Question in SQL").click()
        page.keyboard.press("Control+a")
        page.keyboard.press("Delete")
        expect(page.get_by_text("The quote appears here as you type.")).to_be_visible()


def test_what_is_on_its_way_is_shown_at_once(served, opened):
    """Every wait shows itself within two frames, whatever the service takes."""
    page = opened(served)
    type_sql(page, ONE.format(6))
    page.route("**/v1/datasets/people/ask", lambda route: None)
    free = page.get_by_role("button", name="Ask for free").element_handle()
    page.evaluate(f"button => (button.click(), {TWO_FRAMES})", free)
    assert page.locator(".ask-buttons").inner_text().endswith("Asking…")
    # Nothing of the data has come, and yet the page is there, with the place of everything.
    page.route("**/v1/datasets/people**", lambda route: None)
    page.reload()
    expect(page.get_by_role("button", name="Account of ann")).to_be_visible()
    page.evaluate(TWO_FRAMES)
    assert page.locator(".columns .skeleton, .history .skeleton, .meter-skeleton").count() == 3
    editor = page.locator(".editor").bounding_box()
    expect(page.get_by_label("Question in SQL")).to_be_visible()
    assert page.locator(".editor").bounding_box() == editor
    check_looks(page)


def test_a_page_that_could_not_be_loaded_can_be_tried_again(served, opened):
    page = opened(served)
    problem = {"code": "error", "message": "The request failed.", "request_id": "7"}
    page.route("**/v1/datasets/people", lambda route: route.fulfill(status=500, json=problem))
    page.reload()
    expect(page.get_by_role("alert")).to_contain_text("The request failed.")
    check_looks(page)
    page.unroute("**/v1/datasets/people")
    page.get_by_role("button", name="Try again").click()
    expect(page.locator(".column-name").first).to_be_visible()
    expect(page.get_by_role("alert")).to_have_count(0)


def test_a_history_of_thousands_begins_with_the_newest(served, opened):
    page = opened(served)
    expect(page.locator(".history .skeleton")).to_have_count(0)  # the real one has come
    sent = []

    def history(route):
        after = int(parse_qs(urlsplit(route.request.url).query)["after"][0])
        numbers = range(after + 1, min(after + 1001, 3500))
        refusal = {"code": "query.invalid", "message": "No."}
        tickets = [
            {
                "number": at,
                "key": str(at),
                "sql": f"SELECT {at}",
                "pay": True,
                "state": "refused",
                "problem": refusal,
            }
            for at in numbers
        ]
        sent.append(len(tickets))
        route.fulfill(json={"tickets": tickets, "next": numbers[-1] if numbers[-1] < 3499 else None})

    page.route("**/questions?*", history)
    page.reload()
    entries = page.locator(".history li")
    expect(entries).to_have_count(50)
    expect(entries.first).to_contain_text("SELECT 3499")
    assert sent == [1000, 1000, 1000, 500]
    page.get_by_role("button", name="Show more").click()
    expect(entries).to_have_count(100)
    expect(entries.last).to_contain_text("SELECT 3400")


def test_the_keyboard_alone_is_enough(served, opened):
    page = opened(served, name=None)
    press = page.keyboard.press

    def tab_to(locator, key="Tab"):
        for _ in range(60):
            press(key)
            if locator.evaluate("element => element === document.activeElement"):
                return
        raise AssertionError(f"Not reached: {locator}")

    expect(page.get_by_label("Your token")).to_be_focused()
    page.keyboard.insert_text(served.token("cleo"))
    press("Enter")
    editor = page.get_by_label("Question in SQL")
    expect(editor).to_be_focused()
    expect(page.locator(".column-name").first).to_be_visible()
    # The form, without a mouse.
    tab_to(page.get_by_role("button", name="Build without SQL"), "Shift+Tab")
    press("Enter")
    tab_to(page.get_by_label("Group by"))
    press("w")  # the only column that begins so
    expect(editor).to_contain_text("GROUP BY works")
    tab_to(editor)
    expect(page.locator(".offer").first).to_be_visible()
    press("Control+Shift+Enter")
    expect(page.locator(".answer-footer")).to_be_visible()
    tab_to(page.get_by_role("tab", name="Table"))
    press("ArrowRight")
    expect(page.locator("svg .bar")).to_have_count(2)
    tab_to(page.get_by_role("button", name="Copy as"))
    press("Enter")
    expect(page.get_by_role("menuitem", name="as Python")).to_be_focused()
    press("Escape")
    tab_to(page.locator(".history li button").first, "Shift+Tab")
    press("Enter")
    expect(page.locator(".history li button").first).to_have_attribute("aria-current", "true")
    tab_to(page.get_by_role("button", name="Account of cleo"), "Shift+Tab")
    press("Enter")
    expect(page.get_by_role("menuitem").first).to_be_focused()
    press("ArrowUp")
    expect(page.get_by_role("menuitem", name="Sign out")).to_be_focused()
    press("Enter")
    expect(page.get_by_label("Your token")).to_be_visible()
