"""What one analyst does holds up nobody else, and tells nothing between two slots."""

import asyncio
import gc
import threading
from contextlib import ExitStack

import pytest
from starlette.requests import ClientDisconnect, Request

from sharewell.errors import RequestError
from sharewell.service.dataset import DatasetService
from sharewell.service.http import dependencies
from sharewell.service.http.state import ANALYST_THREADS, THREADS_PER_PRINCIPAL, HostedDataset
from sharewell.service.release_slots import ReleaseSlots
from sharewell.service.tokens import Principal
from tests.service.http.servers import COUNT, problem, running, write_dataset
from tests.service.services import config, serve


@pytest.fixture
def server(tmp_path):
    with running(write_dataset(tmp_path)) as found:
        yield found


def test_whoever_keeps_threads_busy_keeps_their_own(server, monkeypatch):
    free, begun = threading.Event(), threading.Semaphore(0)

    def stuck(self, analyst):
        begun.release()
        free.wait(120)
        raise AssertionError("nobody waits for this one")

    monkeypatch.setattr(DatasetService, "certificate", stuck)
    ann = server.analyst("ann")
    with ExitStack() as ending:
        for _ in range(12):
            thread = threading.Thread(target=lambda: ann.get("/certificate"))
            thread.start()
            ending.callback(thread.join)
        ending.callback(free.set)
        assert begun.acquire(timeout=60)
        # New words, so that a thread is needed for them; and what curators do.
        assert server.analyst("ben").ask(f"{COUNT} AND sex = 'F'").status_code == 200
        assert server.curator().get("/analysts").status_code == 200


@pytest.fixture
def waited(monkeypatch):
    """What has waited for a slot."""
    found = []
    wait = ReleaseSlots.wait

    def noted(self, *given):
        found.append(given)
        return wait(self, *given)

    monkeypatch.setattr(ReleaseSlots, "wait", noted)
    return found


@pytest.mark.parametrize("path", ["/tickets/999999", "/tickets/999999/events"])
def test_that_there_is_no_ticket_is_told_in_a_slot_too(server, waited, path):
    problem(server.analyst("ann").get(path), 404, "request.not-found")
    assert waited


def test_what_is_published_in_slots_does_not_wait_for_one(waited, tmp_path):
    with running(write_dataset(tmp_path, certificate=True)) as server:
        ann = server.analyst("ann")
        assert ann.get("/me").status_code == 200
        assert ann.get("/certificate").status_code == 200
        assert ann.post("/quote", json={"sql": COUNT}).status_code == 200
        assert ann.client.get("/metrics").status_code == 200
    assert not waited


def test_who_has_an_answer_sees_at_once_what_it_has_cost(tmp_path):
    with running(write_dataset(tmp_path, price="1/1000", every=0.0037)) as server:
        ann = server.analyst("ann")
        for at in range(1, 41):
            ticket = ann.ask(f"{COUNT} AND age < {at}").json()
            assert ann.get("/me").json()["asked"] == at
            assert ann.get(f"/tickets/{ticket['number']}").json()["state"] == "answered"
            assert len(ann.get("/questions").json()["tickets"]) == at


@pytest.mark.parametrize("path", ["/healthz%0A", "/metrics%0A", "/v1/datasets/people/me%0A", "/%00"])
def test_a_path_with_signs_that_cannot_be_seen_is_nowhere(server, path):
    problem(server.analyst("ann").client.get(path), 404, "request.not-found")


class GoneRequest(Request):
    """A request whose client has hung up."""

    async def is_disconnected(self) -> bool:
        return True


def test_work_whose_client_is_gone_keeps_its_turn_until_its_thread_ends(monkeypatch, caplog):
    monkeypatch.setattr(dependencies, "CHECK_INTERVAL", 0.01)
    go_on = threading.Event()

    def wait(_gone):
        go_on.wait(60)
        raise RequestError("The work was cancelled.")

    async def hang_up(service, hosted):
        ann, ben = (
            dependencies.Caller(Principal(name=name, role="analyst"), service, hosted)
            for name in ("ann", "ben")
        )
        for _ in range(ANALYST_THREADS + 1):
            with pytest.raises(ClientDisconnect):
                await ben.run_while_connected(GoneRequest({"type": "http"}), wait)
        assert hosted.turns[ben.principal].locked()
        async with asyncio.timeout(60):
            assert await ann.run(lambda: "a thread is free") == "a thread is free"
            go_on.set()
            for _ in range(THREADS_PER_PRINCIPAL):
                await hosted.turns[ben.principal].acquire()

    with serve(config()) as service:
        hosted = HostedDataset(service)
        try:
            asyncio.run(hang_up(service, hosted))
        finally:
            go_on.set()
            hosted.close()
    gc.collect()
    assert not [each for each in caplog.records if each.name == "asyncio"], (
        "an error of work that was given up is not logged"
    )
