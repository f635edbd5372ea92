"""Questions that wait: 202, long polls, events, and what becomes of them when clients leave."""

import json
import socket
import threading
import time
from contextlib import contextmanager

import pytest

from tests.service.http.servers import COUNT, problem, running, write_dataset
from tests.service.waiting import comes_true


@pytest.fixture
def waiting(turns):
    """Somebody whose question waits for ben's, and ben."""
    ann, ben = turns.analyst("ann"), turns.analyst("ben")
    while (reply := ann.ask()).status_code != 202:
        assert reply.status_code == 200
    yield ann, ben, reply
    while ann.get("/me").json()["waiting"]:
        ben.ask()


@contextmanager
def in_background(work):
    thread = threading.Thread(target=work)
    thread.start()
    yield
    thread.join()


def events_of(lines):
    """The events of a stream, each with its data; comments are left out."""
    name = None
    for line in lines:
        if line.startswith("event: "):
            name = line.removeprefix("event: ")
        elif line.startswith("data: "):
            yield name, json.loads(line.removeprefix("data: "))


def test_a_question_that_waits_is_202_and_says_where_its_ticket_is(waiting):
    ann, _, reply = waiting
    ticket = reply.json()
    assert (ticket["state"], ticket["answer"], ticket["position"]) == ("waiting", None, 0)
    assert reply.headers["location"] == f"{ann.path}/tickets/{ticket['number']}"
    assert ann.client.get(reply.headers["location"]).json() == ticket


def test_a_long_poll_ends_with_the_answer(waiting):
    ann, ben, reply = waiting
    found = []
    with in_background(
        lambda: found.append(ann.client.get(reply.headers["location"], params={"wait": 60}))
    ):
        assert ben.ask().status_code in {200, 202}
    assert found[0].json()["state"] == "answered"


def test_a_long_poll_whose_time_is_up_shows_that_it_waits(waiting):
    ann, _, reply = waiting
    assert ann.client.get(reply.headers["location"], params={"wait": 0.05}).json()["state"] == "waiting"


@pytest.mark.parametrize("wait", ["-1", "61", "nan", "inf", "soon", "", "0x1"])
def test_a_wait_out_of_range_is_refused(waiting, wait):
    ann, _, reply = waiting
    found = problem(
        ann.client.get(reply.headers["location"], params={"wait": wait}), 422, "request.invalid"
    )
    assert found["message"].startswith("Invalid parameter 'wait': input should be ")


def test_events_tell_the_position_and_then_the_answer(waiting):
    ann, ben, reply = waiting
    with ann.client.stream("GET", f"{reply.headers['location']}/events") as stream:
        assert stream.headers["content-type"] == "text/event-stream; charset=utf-8"
        events = events_of(stream.iter_lines())
        name, ticket = next(events)
        assert (name, ticket["state"], ticket["position"]) == ("position", "waiting", 0)
        ben.ask()
        name, ticket = next(events)
        assert (name, ticket["state"]) == ("answered", "answered")
        assert ticket["answer"]["rows"]
        assert list(events) == []


def test_events_of_an_answered_question_are_one(waiting):
    ann, ben, reply = waiting
    ben.ask()
    ann.client.get(reply.headers["location"], params={"wait": 60})
    with ann.client.stream("GET", f"{reply.headers['location']}/events") as stream:
        assert [name for name, _ in events_of(stream.iter_lines())] == ["answered"]


def test_events_come_with_heartbeats_and_with_positions_that_change(tmp_path, monkeypatch):
    from sharewell.service.http import routes_analyst

    monkeypatch.setattr(routes_analyst, "WATCH_INTERVAL", 0.02)
    monkeypatch.setattr(routes_analyst, "HEARTBEAT_INTERVAL", 0.04)
    with running(write_dataset(tmp_path, scheduler="round-robin")) as server:
        ann, ben = server.analyst("ann"), server.analyst("ben")
        ann.ask()
        ann.ask()
        last = ann.ask()
        with ann.client.stream("GET", f"{last.headers['location']}/events") as stream:
            lines = stream.iter_lines()
            assert next(line for line in lines if line.startswith("data"))
            assert next(line for line in lines if line.startswith(":")) == ": still waiting"
            ben.ask()
            name, ticket = next(events_of(lines))
            assert (name, ticket["position"]) == ("position", 0)


def test_a_refused_question_is_shown_as_refused(tmp_path):
    with running(write_dataset(tmp_path, scheduler="round-robin")) as server:
        ann, ben = server.analyst("ann"), server.analyst("ben")
        ann.ask()
        waits = ann.ask()
        assert waits.status_code == 202
        with ann.client.stream("GET", f"{waits.headers['location']}/events") as stream:
            events = events_of(stream.iter_lines())
            next(events)
            token = ann.client.headers["authorization"]
            assert server.curator().delete("/analysts/ann").status_code == 204
            name, ticket = next(events)
            assert (name, ticket["state"]) == ("refused", "refused")
            assert ticket["problem"]["message"]
        assert token
        problem(ann.client.get(waits.headers["location"]), 401, "access.unknown-token")
        assert ben.ask().status_code == 200


@pytest.mark.parametrize("number", ["999999", "0", "x", "-1", "1" * 30, "1.5", "٣"])
@pytest.mark.parametrize("rest", ["", "/events"])
def test_a_ticket_that_is_not_there_is_404(waiting, number, rest):
    ann, _, _ = waiting
    problem(ann.get(f"/tickets/{number}{rest}"), 404, "request.not-found")


def test_a_ticket_of_somebody_else_looks_like_none(waiting):
    _, ben, reply = waiting
    number = reply.json()["number"]
    theirs = problem(ben.get(f"/tickets/{number}"), 404, "request.not-found")
    none = problem(ben.get("/tickets/999999"), 404, "request.not-found")
    assert theirs["message"].replace(str(number), "N") == none["message"].replace("999999", "N")
    problem(ben.get(f"/tickets/{number}/events"), 404, "request.not-found")


def test_who_leaves_is_noticed(waiting, turns):
    ann, _, reply = waiting
    slots = turns.state.datasets["people"].slots
    with ann.client.stream("GET", f"{reply.headers['location']}/events") as stream:
        events = events_of(stream.iter_lines())
        assert next(events)[0] == "position"
        window = turns.state.datasets["people"]
        assert sum(window.watchers.values()) == 1
    comes_true(lambda: sum(window.watchers.values()) == 0 and len(slots) == 0)
    with socket.create_connection(("127.0.0.1", turns.port)) as connection:
        token = ann.client.headers["authorization"]
        path = f"{reply.headers['location']}?wait=60"
        head = f"GET {path} HTTP/1.1\r\nhost: x\r\nauthorization: {token}\r\n\r\n"
        connection.sendall(head.encode())
        comes_true(lambda: sum(window.watchers.values()) == 1)
    comes_true(lambda: sum(window.watchers.values()) == 0 and len(slots) == 0)


def test_nobody_may_watch_more_than_so_many_at_a_time(tmp_path):
    path = write_dataset(tmp_path, scheduler="round-robin", service="most_waiting = 2")
    with running(path) as server:
        ann = server.analyst("ann")
        ann.ask()
        url = f"{ann.ask().headers['location']}/events"
        with ann.client.stream("GET", url) as one, ann.client.stream("GET", url) as two:
            # Held: a stream whose lines nobody holds any more is closed.
            both = one.iter_lines(), two.iter_lines()
            assert [next(lines) for lines in both] == ["event: position"] * 2
            with ann.client.stream("GET", url) as third:
                third.read() if third.status_code != 200 else None
                problem(third, 429, "request.too-many")


def test_too_many_that_wait_are_429(tmp_path):
    path = write_dataset(tmp_path, scheduler="round-robin", service="most_waiting = 3")
    with running(path) as server:
        ann = server.analyst("ann")
        assert [ann.ask().status_code for _ in range(4)] == [200, 202, 202, 202]
        reply = ann.ask()
        problem(reply, 429, "request.too-many")
        assert reply.headers["retry-after"] == "1"


def test_done_lets_a_rotation_go_on(tmp_path):
    with running(write_dataset(tmp_path, scheduler="round-robin")) as server:
        ann, ben = server.analyst("ann"), server.analyst("ben")
        ann.ask()
        waits = ann.ask()
        assert ben.post("/done").status_code == 204
        assert (
            ann.client.get(waits.headers["location"], params={"wait": 60}).json()["state"] == "answered"
        )
        assert ann.ask(COUNT).status_code == 200


def test_no_way_of_looking_at_a_question_tells_more_than_its_slot(tmp_path):
    every = 0.2
    with running(write_dataset(tmp_path, every=every)) as server:
        ann = server.analyst("ann")
        path = f"/tickets/{ann.ask().json()['number']}"
        for look in (path, "/questions", path, "/questions"):
            begun = time.monotonic()
            assert ann.get(look).status_code == 200
            # A timer may fire a little early. On a slow machine the reply comes later, never sooner.
            assert (time.monotonic() + 0.01) // every > begun // every
