"""What one analyst does holds up nobody else, and tells nothing between two slots."""

import threading
from contextlib import ExitStack

import pytest

from sharewell.service.desk import Desk
from sharewell.service.http.slots import Slots
from tests.service.http.servers import COUNT, problem, running, write_dataset


@pytest.fixture
def server(tmp_path):
    with running(write_dataset(tmp_path)) as found:
        yield found


def test_whoever_keeps_threads_busy_keeps_their_own(server, monkeypatch):
    free, begun = threading.Event(), threading.Semaphore(0)

    def stuck(self, analyst):
        begun.release()
        free.wait(30)
        raise AssertionError("nobody waits for this one")

    monkeypatch.setattr(Desk, "certificate", stuck)
    ann = server.analyst("ann")
    with ExitStack() as ending:
        for _ in range(12):
            thread = threading.Thread(target=lambda: ann.get("/certificate"))
            thread.start()
            ending.callback(thread.join)
        ending.callback(free.set)
        assert begun.acquire(timeout=20)
        # New words, so that a thread is needed for them; and what curators do.
        assert server.analyst("ben").ask(f"{COUNT} AND sex = 'F'").status_code == 200
        assert server.curator().get("/analysts").status_code == 200


@pytest.mark.parametrize("path", ["/tickets/999999", "/tickets/999999/events"])
def test_that_there_is_no_ticket_is_told_in_a_slot_too(server, monkeypatch, path):
    waited = []
    wait = Slots._wait

    def noted(self, *given):
        waited.append(given)
        return wait(self, *given)

    monkeypatch.setattr(Slots, "_wait", noted)
    problem(server.analyst("ann").get(path), 404, "request.not-found")
    assert waited


@pytest.mark.parametrize("path", ["/healthz%0A", "/metrics%0A", "/v1/datasets/people/me%0A", "/%00"])
def test_a_path_with_signs_that_cannot_be_seen_is_nowhere(server, path):
    problem(server.analyst("ann").client.get(path), 404, "request.not-found")
