"""PostgreSQL that goes away under load: asks fail cleanly, and nothing is lost or paid twice."""

import threading
import time

import pytest

from sharewell.service.broker import Broker
from sharewell.service.ledger import verify_chain
from sharewell.service.ledger.postgres import PostgresLedger
from tests.service.brokers import config, table
from tests.service.faults.bookkeeping import Books
from tests.service.faults.retrying import Clients

THREADS = 6


@pytest.mark.slow
@pytest.mark.parametrize("patience", [0.0, 5.0], ids=["impatient", "patient"])
def test_a_server_stopped_and_started_under_load_loses_nothing_and_bills_nothing_twice(
    postgres, patience
):
    settings, url = config(), postgres.database()
    with PostgresLedger(url, patience=patience) as ledger:
        service = Broker(settings, ledger, data=table(settings), certificate=False)
        clients = Clients(service)
        load = threading.Thread(target=clients.all_insist, args=(THREADS, 0, 100_000))
        load.start()
        for mode in ("immediate", "fast", "immediate"):
            time.sleep(0.4)
            postgres.stop(mode)
            time.sleep(0.3)
            postgres.start()
        before = len(clients.answers)
        deadline = time.monotonic() + 30
        while len(clients.answers) < before + THREADS and time.monotonic() < deadline:
            time.sleep(0.05)
        assert len(clients.answers) >= before + THREADS, "it has not come back by itself"
        clients.stop.set()
        load.join()
        books = Books(bought_once=True)
        books.read(ledger.events())
        books.kept(clients.answers)
        for name in service.analysts:
            assert service.status(name).spent == books.spent[name]
        service.close()
    assert not verify_chain(url)
    if patience == 0:
        assert clients.refusals
