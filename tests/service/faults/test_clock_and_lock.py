"""A clock that jumps, and a second service on the same ledger."""

import threading
import time
from itertools import count as counting
from typing import Any

import pytest

from sharewell.errors import LedgerInUse
from sharewell.service.ledger import DurableLedger, open_ledger, verify_chain
from sharewell.service.ledger.sqlite import SqliteStore
from tests.service.services import SCHEDULERS, config, count, plain, serve, status


def service_on(ledger, scheduler="none"):
    settings = config(scheduler=scheduler)
    return serve(settings, ledger)


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_a_clock_that_jumps_back_changes_nothing(scheduler, tmp_path, monkeypatch):
    jumps = counting(2_000_000_000, -86_400)
    monkeypatch.setattr(time, "time", lambda: float(next(jumps)))
    path = tmp_path / "ledger.sqlite"
    answers: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for _ in range(2):
        with (
            DurableLedger(SqliteStore(path, create=True), clock=time.time) as ledger,
            service_on(ledger, scheduler) as service,
        ):
            tickets = [
                service.submit(name, count(0, at), key=f"{at}")
                for at in range(3)
                for name in ("ann", "ben", "cleo")
            ]
            for name in service.analyst_names:
                service.done(name)
            found = {(t.analyst, t.key): plain(t.wait(60)) for t in tickets}
            assert answers in ({}, found)
            answers = found
    assert verify_chain(path) == []


@pytest.fixture(params=["SQLite", "PostgreSQL"])
def place(request, tmp_path):
    """Where a ledger may be."""
    if request.param == "SQLite":
        return str(tmp_path / "ledger.sqlite")
    return request.getfixturevalue("postgres").database()


def test_a_second_service_on_the_same_ledger_is_refused(place):
    with open_ledger(place, create=True) as ledger, service_on(ledger) as service:
        service.ask("ann", count(0, 3))
        with pytest.raises(LedgerInUse, match=r"in use by .*process \d+"):
            open_ledger(place, create=True)
        assert service.ask("ben", count(0, 4)).answers


def test_a_second_service_waits_where_it_is_asked_to_and_goes_on_with_what_it_finds(place):
    found: dict[str, object] = {}

    def second():
        with open_ledger(place, wait=120, create=True) as ledger, service_on(ledger) as service:
            found["again"] = plain(service.ask("ann", count(0, 3), key="k"))
            found["spent"] = status(service, "ann").spent

    with open_ledger(place, create=True) as ledger, service_on(ledger) as service:
        waiting = threading.Thread(target=second)
        waiting.start()
        first = plain(service.ask("ann", count(0, 3), key="k"))
        spent = status(service, "ann").spent
        time.sleep(0.2)
        assert not found
    waiting.join()
    assert found == {"again": first, "spent": spent}
