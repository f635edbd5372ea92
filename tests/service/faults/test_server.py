"""PostgreSQL that goes away under load: asks fail cleanly, and nothing is lost or paid twice."""

import threading
from collections.abc import Sized

import pytest

from sharewell.service.ledger import verify_chain
from tests.service.faults.bookkeeping import Books, whole_events
from tests.service.faults.retrying import Clients
from tests.service.ledger.postgres_server import postgres_ledger
from tests.service.services import config, serve, status
from tests.service.waiting import comes_true

THREADS = 6


def grows(things: Sized, by: int = 1) -> None:
    """Wait until there are more of something than now."""
    wanted = len(things) + by
    comes_true(lambda: len(things) >= wanted)


@pytest.mark.slow
@pytest.mark.parametrize("patience", [0.0, 5.0], ids=["impatient", "patient"])
def test_a_server_stopped_and_started_under_load_loses_nothing_and_bills_nothing_twice(
    postgres, patience
):
    settings, url = config(), postgres.database()
    with postgres_ledger(url, patience=patience) as ledger:
        service = serve(settings, ledger)
        clients = Clients(service)
        load = threading.Thread(target=clients.all_insist, args=(THREADS, 0, 100_000))
        load.start()
        for mode in ("immediate", "fast", "immediate"):
            grows(clients.answers)
            postgres.stop(mode)
            if not patience:
                grows(clients.refusals)
            postgres.start()
        grows(clients.answers, THREADS)  # It comes back by itself.
        clients.stop.set()
        load.join()
        books = Books(bought_once=True)
        books.read(whole_events(ledger))
        books.kept(clients.answers)
        for name in service.analyst_names:
            assert status(service, name).spent == books.spent[name]
        service.close()
    assert not verify_chain(url)
