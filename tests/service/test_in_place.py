"""A dataset that is measured in place: every purchase is a statement on the source."""

import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sharewell.config import parse_config
from sharewell.errors import RequestError, SourceUnavailable
from sharewell.privacy.ledger import Charged, Released, SourceChanged, SourceSeen, public_events
from sharewell.privacy.noise import ExactNoise
from sharewell.service.dataset import DatasetService
from sharewell.service.ledger import open_ledger
from sharewell.service.results import SOURCE_CHANGED
from sharewell.service.tokens import TokenStore
from sharewell.service.verify.verification import verify
from tests.engine.test_databases import fill

PEOPLE = pa.table({"age": [4, 5, 5, 17], "sex": ["F", "F", "M", "M"]})

#: So much budget that noise is 0 with a probability beyond doubt.
CONFIG = """
[dataset]
{source}
measure = "in-place"
deadline = 60
[budget]
epsilon = 100000
error_threshold = 20
[attributes.age]
type = "integer"
low = 0
high = 19
[attributes.sex]
type = "category"
categories = ["F", "M"]
[analysts.ann]
share = "1/2"
[analysts.ben]
share = "1/2"
[mechanism]
seed = "total"
query_budget = "1/100"
"""
YOUNG = "SELECT COUNT(*) FROM people WHERE age < 10"


def served(source: str, folder, data=None, text: str = CONFIG) -> DatasetService:
    config = parse_config(text.format(source=source), folder / "sharewell.toml")
    ledger = open_ledger(folder / "ledger.sqlite", create=True)
    service = DatasetService(
        config, ledger, TokenStore(folder / "access.json"), data=data, certificate=False
    )
    service._close_ledger = ledger.close
    return service


def events_of(service, *kinds):
    return [event for event in service.ledger.events() if isinstance(event, kinds)]


def ask(service, sql, analyst="ann"):
    return service.describe(service.ask(analyst, sql, timeout=60)).answer


def test_purchases_are_measured_in_place_and_a_changed_file_withdraws_intervals(
    tmp_path, in_place_at_once
):
    path = tmp_path / "people.parquet"
    pq.write_table(PEOPLE, path)
    service = served(f'source = "{path}"', tmp_path)
    in_place_at_once.clear()
    first = ask(service, YOUNG)
    # The answer leaves at the deadline, although the engine took less.
    [wait] = in_place_at_once
    assert 0 < wait < 60
    assert round(first.value) == 3
    assert first.interval is not None
    assert SOURCE_CHANGED not in first.notes
    pq.write_table(pa.concat_tables([PEOPLE] * 3), path)
    second = ask(service, f"{YOUNG} AND sex = 'F'", "ben")
    assert second.interval is None
    assert second.standard_error is None
    assert SOURCE_CHANGED in second.notes
    # Free answers too, from now on; the answer from before stays as it was.
    assert SOURCE_CHANGED in ask(service, YOUNG, "ben").notes
    with pytest.raises(RequestError, match="the source has changed"):
        service.report()
    assert len(events_of(service, SourceSeen)) == 2
    assert len(events_of(service, SourceChanged)) == 1
    assert not any(isinstance(event, SourceSeen) for _, event in public_events(service.ledger))
    service.close()
    found = verify(tmp_path / "ledger.sqlite")
    assert found.ok, found.findings
    assert [note.code for note in found.notes if "source" in note.code] == ["accounts.source-changed"]
    assert "has changed" in found.check("certificate").skipped
    again = served(f'source = "{path}"', tmp_path)
    assert SOURCE_CHANGED in ask(again, YOUNG, "ben").notes
    again.close()


@pytest.mark.usefixtures("in_place_at_once")
def test_a_database_that_stalls_is_asked_again_and_charged_once(postgres, tmp_path):
    address = fill(postgres.database(), PEOPLE)
    source = f'source = "{address}"\ntable = "people"'
    served(source, tmp_path).close()
    service = served(source, tmp_path, text=CONFIG.replace("deadline = 60", "deadline = 1"))
    before = len(events_of(service, Charged))
    with psycopg.connect(address) as other:
        other.execute("LOCK TABLE people IN ACCESS EXCLUSIVE MODE")
        with pytest.raises(SourceUnavailable, match="does not answer"):
            service.ask("ann", YOUNG, key="mine", timeout=60).outcome(0)
        assert len(events_of(service, Charged)) == before + 1
        assert len(events_of(service, Released)) == before
        # The server dies and starts again, while the database still stalls.
        service.close()
    again = served(source, tmp_path)
    assert [round(value) for (value,) in again.ask("ann", YOUNG, key="mine", timeout=60).rows] == [3]
    charges = [n for n, event in enumerate(again.ledger.events()) if isinstance(event, Charged)]
    released = [event.charge for event in events_of(again, Released)]
    assert len(charges) == before + 1
    assert sorted(released) == charges
    assert again.budget("ann").spent == again.budget("ben").spent + 1000
    again.close()
    assert verify(tmp_path / "ledger.sqlite", certificate=False).ok


def kill_one_that_waits(address: str) -> None:
    """Kill a process of the database whose statement waits for a lock, which takes down all others."""
    until = time.monotonic() + 60
    with psycopg.connect(address, autocommit=True) as watching:
        while time.monotonic() < until:
            for (pid,) in watching.execute(
                "SELECT pid FROM pg_stat_activity WHERE datname = current_database()"
                " AND wait_event_type = 'Lock'"
            ).fetchall():
                os.kill(pid, signal.SIGKILL)
                return
            time.sleep(0.02)
    raise TimeoutError


@pytest.mark.usefixtures("in_place_at_once")
def test_a_database_killed_in_a_purchase_is_asked_again_with_fresh_noise(
    postgres, tmp_path, monkeypatch
):
    draws: list[int] = []

    def recorded(self, scale, size):
        drawn = draw(self, scale, size)
        draws.extend(drawn.tolist())
        return drawn

    draw = ExactNoise.laplace
    monkeypatch.setattr(ExactNoise, "laplace", recorded)
    address = fill(postgres.database(), PEOPLE)
    # So little budget that two draws are equal with a probability below 1e-8.
    text = CONFIG.replace("epsilon = 100000", "epsilon = 0.000001").replace("= 20", "= 100_000_000_000")
    service = served(f'source = "{address}"\ntable = "people"', tmp_path, text=text)
    before = len(events_of(service, Charged))
    draws.clear()
    locking = psycopg.connect(address)
    locking.execute("LOCK TABLE people IN ACCESS EXCLUSIVE MODE")
    answer, failures, until = None, 0, time.monotonic() + 60
    with ThreadPoolExecutor() as threads:
        killed = threads.submit(kill_one_that_waits, address)
        while answer is None and time.monotonic() < until:
            try:
                answer = service.ask("ann", YOUNG, key="mine", timeout=60).outcome(0)
            except SourceUnavailable:
                failures += 1
        killed.result()
    locking.close()
    assert answer is not None
    assert failures >= 1
    # Every attempt has drawn, and only the last draw was released.
    assert len(set(draws)) == len(draws) == failures + 1
    # The mechanism asks for the rows that fit less those that do not: 3 - 1.
    *_, last = events_of(service, Released)
    assert list(last.values) == [draws[-1] + 2]
    assert len(events_of(service, Charged)) == len(events_of(service, Released)) == before + 1
    service.close()
    assert verify(tmp_path / "ledger.sqlite", certificate=False).ok
