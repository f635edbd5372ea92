"""What curators do over HTTP, and what analysts look up."""

import pytest

from tests.service.http.servers import Principal, problem, running, write_dataset


@pytest.fixture
def fresh(tmp_path):
    with running(write_dataset(tmp_path)) as found:
        yield found


def test_the_ledger_is_read_page_by_page(fresh):
    fresh.analyst("ann").ask()
    curator = fresh.curator()
    whole = curator.get("/ledger").json()
    assert whole["next"] is None
    page = {"events": [], "next": -1}
    numbers: list[int] = []
    while page["next"] is not None:
        page = curator.get("/ledger", params={"after": page["next"], "limit": 2}).json()
        numbers += [event["number"] for event in page["events"]]
    assert numbers == [event["number"] for event in whole["events"]]
    assert "asked" in {event["kind"] for event in whole["events"]}


@pytest.mark.parametrize(
    "params",
    [
        {"after": -2},
        {"after": "x"},
        {"after": ""},
        {"limit": 0},
        {"limit": 1001},
        {"limit": "1.5"},
        {"limit": "٣"},
        {"limit": "9" * 5000},
        {"limt": 5},
        {"limit": [1, 2]},
    ],
)
def test_parameters_out_of_range_are_refused(curator, ann, params):
    problem(curator.get("/ledger", params=params), 422, "request.invalid")
    problem(ann.get("/questions", params=params), 422, "request.invalid")


def test_questions_are_read_page_by_page(fresh):
    ann = fresh.analyst("ann")
    for age in range(5):
        ann.ask(f"SELECT COUNT(*) FROM people WHERE age = {age}")
    first = ann.get("/questions", params={"limit": 3}).json()
    rest = ann.get("/questions", params={"after": first["next"], "limit": 3}).json()
    assert [len(page["tickets"]) for page in (first, rest)] == [3, 2]
    assert rest["next"] is None
    assert fresh.analyst("ben").get("/questions").json() == {"tickets": [], "next": None}


def test_a_newcomer_gets_a_token_that_works_until_they_leave(fresh):
    curator = fresh.curator()
    before = curator.get("/analysts").json()
    reply = curator.post("/analysts", {"name": "zoe", "share": "1/10"})
    assert reply.status_code == 201
    zoe = Principal(fresh.client(reply.json()["token"]), "people")
    assert zoe.get("/me").json()["share"] == "1"
    after = curator.get("/analysts").json()
    assert [each["analyst"] for each in after["analysts"]] == ["ann", "ben", "zoe"]
    assert (before["unallocated"], after["unallocated"]) == ("5", "4")
    assert curator.delete("/analysts/zoe", params={"donate": "true"}).status_code == 204
    problem(zoe.get("/me"), 401, "access.unknown-token")


def test_who_cannot_join_is_told_why(fresh):
    curator = fresh.curator()
    problem(curator.post("/analysts", {"name": "zoe", "share": "9/10"}), 402, "privacy.over-budget")
    assert curator.post("/analysts", {"name": "ann", "share": "1/10"}).status_code == 400
    assert curator.post("/analysts", {"name": "zoe", "share": "lots"}).status_code == 400
    assert curator.post("/analysts", {"name": "a/b", "share": "1/10"}).status_code == 400
    problem(curator.post("/analysts", {"name": "", "share": "1/10"}), 422, "request.invalid")


def test_who_is_not_there_cannot_leave_nor_get_a_token(fresh):
    curator = fresh.curator()
    problem(curator.delete("/analysts/nobody"), 403, "privacy.unknown-payer")
    problem(curator.post("/analysts/nobody/token"), 404, "request.not-found")
    problem(curator.delete("/analysts/ann", params={"donate": "perhaps"}), 422, "request.invalid")


def test_a_paused_dataset_takes_no_questions_and_shows_what_it_has(fresh):
    ann, curator = fresh.analyst("ann"), fresh.curator()
    ann.ask(key="before")
    assert curator.post("/pause").status_code == 204
    reply = ann.ask()
    problem(reply, 503, "service.paused")
    assert "retry-after" in reply.headers
    assert ann.get().json()["paused"] is True
    assert len(ann.get("/questions").json()["tickets"]) == 1
    assert curator.post("/resume").status_code == 204
    assert ann.ask().status_code == 200


def test_certificates_show_everybody_to_curators_and_oneself_to_analysts(tmp_path):
    with running(write_dataset(tmp_path, certificate=True)) as server:
        everybody = server.curator().get("/certificate").json()
        assert [each["analyst"] for each in everybody["analysts"]] == ["ann", "ben"]
        own = server.analyst("ben").get("/certificate").json()
        assert [each["analyst"] for each in own["analysts"]] == ["ben"]


def test_a_certificate_that_is_switched_off_is_refused(ann):
    assert ann.get("/certificate").status_code == 400
