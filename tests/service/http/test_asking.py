"""Asking and quoting over a real socket."""

import json
import socket
import threading

import pytest

from sharewell.errors import LedgerUnavailable
from sharewell.service.dataset import DatasetService
from sharewell.service.http import monitoring
from tests.service.beginning import begun
from tests.service.http.servers import COUNT, problem, running, write_dataset
from tests.service.waiting import comes_true


def test_a_question_is_answered(ann):
    reply = ann.ask()
    assert reply.status_code == 200
    ticket = reply.json()
    assert (ticket["sql"], ticket["state"], ticket["pay"]) == (COUNT, "answered", True)
    assert ticket["answer"]["columns"] == [{"name": "COUNT(*)", "kind": "number"}]
    assert ticket["answer"]["rows"][0][0]["source"] in {"measured", "cached", "reconstructed"}


def test_the_same_key_has_the_same_answer(ann):
    first = ann.ask("SELECT sex, COUNT(*) FROM people GROUP BY sex", key="once")
    assert first.json()["key"] == "once"
    assert ann.ask("SELECT sex, COUNT(*) FROM people GROUP BY sex", key="once").json() == first.json()


def test_a_key_of_another_question_is_refused(ann):
    ann.ask(key="mine")
    problem(ann.ask("SELECT COUNT(*) FROM people", key="mine"), 409, "request.key-reused")


def test_a_lost_reply_is_found_again_by_its_key(server, ann):
    sql = "SELECT COUNT(*) FROM people WHERE age = 17"
    body = json.dumps({"sql": sql, "key": "lost"})
    head = (
        f"POST {ann.path}/ask HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
        f"authorization: {ann.client.headers['authorization']}\r\ncontent-length: {len(body)}\r\n\r\n"
    )
    tickets = server.registry.datasets["people"]._submissions.of
    with socket.create_connection(("127.0.0.1", server.port)) as connection:
        connection.sendall((head + body).encode())
        comes_true(lambda: any(ticket.key == "lost" for ticket in tickets("ann")))
    assert ann.ask(sql, key="lost").json()["state"] == "answered"
    spent = ann.get("/me").json()["spent"]
    assert ann.ask(sql, key="lost").json()["state"] == "answered"
    assert sum(ticket.key == "lost" for ticket in tickets("ann")) == 1
    assert ann.get("/me").json()["spent"] == spent


def test_a_quote_costs_nothing_and_says_what_the_question_would(ann):
    before = ann.get("/me").json()
    sql = "SELECT COUNT(*) FROM people WHERE age = 11 AND sex = 'F'"
    quote = ann.post("/quote", {"sql": sql}).json()
    assert (quote["sql"], quote["groups"], quote["means"]) == (sql, 1, before["left"])
    assert ann.get("/me").json()["spent"] == before["spent"]
    assert ann.ask(sql).json()["answer"]["cost"] == quote["paid"]["cost"]


@pytest.mark.parametrize("path", ["/ask", "/quote"])
@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("SELECT COUNT(*) FROM people WHERE agee = 3", "sql.unknown-name"),
        ("SELECT COUNT(* FROM people", "sql.syntax"),
        ("SELECT age FROM people", "sql.unsupported"),
    ],
)
def test_what_cannot_be_answered_is_refused_with_its_place(ann, path, sql, code):
    found = problem(ann.post(path, {"sql": sql}), 400, code)
    assert found["where"] is None or found["where"]["line"] == 1
    assert found["hint"]


def test_a_long_question_is_answered_like_a_short_one(ann):
    ages = " OR ".join(f"age = {age}" for age in list(range(3, 10)) * 40)
    sql = f"SELECT COUNT(*) FROM people WHERE {ages}"
    assert len(sql) > 2_000
    ann.ask()
    assert ann.ask(sql).json()["answer"]["cost"] == "0"
    assert ann.post("/quote", {"sql": sql}).json()["paid"]["cost"] == "0"


def test_nothing_left_is_402(tmp_path):
    path = write_dataset(tmp_path, price="1/4")
    path.write_text(path.read_text().replace("[mechanism]", '[mechanism]\nname = "laplace"'))
    with running(path) as server:
        ann = server.analyst()
        paid = [
            ann.ask(f"SELECT COUNT(*) FROM people WHERE age = {age}").status_code for age in range(5)
        ]
        assert paid[0] == 200
        assert paid[-1] == 402
        problem(ann.ask("SELECT COUNT(*) FROM people"), 402, "privacy.over-budget")


def test_many_at_once_are_all_answered(server):
    anns = [server.analyst("ann")] * 8
    replies = []

    def ask(at):
        replies.append(anns[at].ask(f"SELECT COUNT(*) FROM people WHERE age < {at + 1}"))

    threads = [threading.Thread(target=ask, args=(at,)) for at in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {reply.status_code for reply in replies} == {200}


def test_a_store_that_does_not_respond_is_not_ready(tmp_path, monkeypatch):
    hang, go_on = threading.Event(), threading.Event()

    def probe(self, timeout):
        if hang.is_set():
            go_on.wait(60)

    monkeypatch.setattr(DatasetService, "probe", probe)
    monkeypatch.setattr(monitoring, "PROBE_INTERVAL", 0.01)
    monkeypatch.setattr(monitoring, "PROBE_SECONDS", 0.2)
    with running(write_dataset(tmp_path)) as server:
        client = server.client()
        comes_true(lambda: client.get("/readyz").status_code == 200)
        hang.set()
        comes_true(lambda: client.get("/readyz").status_code == 503)
        problem(client.get("/readyz"), 503, "ledger.unavailable")
        assert client.get("/healthz").status_code == 200
        hang.clear()
        go_on.set()
        comes_true(lambda: client.get("/readyz").status_code == 200)


def test_a_ledger_that_fails_is_503_and_not_ready_until_it_works(tmp_path, monkeypatch):
    with running(write_dataset(tmp_path)) as server:
        ann = server.analyst()
        ledger = server.registry.datasets["people"].ledger
        works = ledger.append_many

        def fails(events):
            raise LedgerUnavailable("The disk is full.", hint="Make room.")

        monkeypatch.setattr(ledger, "append_many", fails)
        reply = ann.ask()
        problem(reply, 503, "ledger.unavailable")
        assert reply.headers["retry-after"] == "5"
        problem(ann.client.get("/readyz"), 503, "ledger.unavailable")
        assert ann.client.get("/healthz").status_code == 200
        monkeypatch.setattr(ledger, "append_many", works)
        assert ann.ask().status_code == 200
        assert ann.client.get("/readyz").json() == {"ready": True}


def test_sums_and_averages_of_a_measure_are_answered_over_http(tmp_path):
    """Described, quoted in its own unit, answered with intervals within its bounds."""
    (tmp_path / "people.csv").write_text("sex,pay\n" + "F,40\nM,60\nM,\n" * 300)
    path = tmp_path / "people.toml"
    path.write_text("""
        [dataset]
        source = "people.csv"
        population = 900
        [budget]
        epsilon = 10
        error_threshold = 20
        [attributes.sex]
        type = "category"
        categories = ["F", "M"]
        [measures.pay]
        low = 0
        high = 100
        step = 0.5
        [analysts.ann]
        share = "1/2"
        [service]
        release_every = 0.002
        certificate = false
    """)
    with running(begun(path)) as server:
        ann = server.analyst()
        [measure] = ann.get().json()["measures"]
        assert (measure["name"], measure["low"], measure["high"], measure["step"]) == (
            "pay",
            0,
            100,
            0.5,
        )
        sql = "SELECT sex, AVG(pay), SUM(pay), COUNT(pay) FROM people GROUP BY sex"
        quote = ann.post("/quote", {"sql": sql}).json()
        assert min(quote["paid"]["group_sizes"][0]) > 0
        answer = ann.ask(sql).json()["answer"]
        truths = {"F": (40, 12_000, 300), "M": (60, 18_000, 300)}
        for sex, *numbers in answer["rows"]:
            for number, truth in zip(numbers, truths[sex], strict=True):
                low, high = number["interval"]
                middle = (low + high) / 2
                # Six times as wide: less than one run in 10^6 is outside.
                assert abs(truth - middle) <= 6 * (high - low) / 2 + 1e-9
