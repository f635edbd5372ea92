"""A source that vanishes, changes or stalls under an open dataset: a sentence, and one charge."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import psycopg
import pyarrow as pa
import pytest

from sharewell.errors import SourceUnavailable
from sharewell.privacy.ledger import Charged, Released
from sharewell.service.verify.verification import verify
from tests.engine.test_databases import fill
from tests.service.ledger.postgres_server import PostgresServer
from tests.service.test_in_place import CONFIG, YOUNG, events_of, served

VISITS = pa.table(
    {
        "person": ["ann", "ann", "bob", "cem", None],
        "age": pa.array([2, 2, 5, 17, 1], pa.int64()),
        "sex": ["F", "F", "M", "M", "F"],
    }
)
TABLE = 'source = "{address}"\ntable = "people"'
VIEW = """source = "{address}"
privacy_unit = "person"
view = "SELECT person, sex, SUM(age) AS age FROM people GROUP BY person, sex"
"""


@contextmanager
def altered(address: str, before: str, after: str) -> Iterator[None]:
    """The table is altered meanwhile, and then as it was."""
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(f"ALTER TABLE {before}")
        yield
        connection.execute(f"ALTER TABLE {after}")


def vanished(server: PostgresServer, address: str) -> AbstractContextManager[None]:
    return altered(address, "people RENAME TO elsewhere", "elsewhere RENAME TO people")


def retyped(server: PostgresServer, address: str) -> AbstractContextManager[None]:
    column = "people ALTER COLUMN age TYPE"
    return altered(address, f"{column} text", f"{column} bigint USING age::bigint")


def stalled(server: PostgresServer, address: str) -> AbstractContextManager[None]:
    return server.hanging()


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    """One of its own, that may hang."""
    server = PostgresServer()
    yield server
    server.remove()


@pytest.mark.usefixtures("in_place_at_once")
@pytest.mark.parametrize(
    ("source", "broken"),
    [(TABLE, vanished), (TABLE, stalled), (VIEW, vanished), (VIEW, retyped)],
    ids=["table vanished", "table stalled", "view vanished", "view retyped"],
)
def test_what_befalls_an_open_source_is_a_sentence_and_one_charge(server, tmp_path, source, broken: Any):
    address = fill(server.database(), VISITS)
    text = CONFIG if source is TABLE else CONFIG + '[tables.people]\nunit = "person"\n'
    written = source.format(address=address)
    service = served(written, tmp_path, text=text)
    if broken is stalled:
        service.close()
        service = served(written, tmp_path, text=text.replace("deadline = 60", "deadline = 1"))
    before = len(events_of(service, Charged))
    with broken(server, address):
        for _ in range(2):
            with pytest.raises(SourceUnavailable, match="does not answer") as caught:
                service.ask("ann", YOUNG, key="mine", timeout=60).outcome(0)
            assert "charged at most once" in caught.value.hint
        # Nothing else is spent while the first purchase is open.
        assert len(events_of(service, Charged)) == before + 1
        assert len(events_of(service, Released)) == before
        service.close()
    again = served(written, tmp_path, text=text)
    people = 4 if source is TABLE else 2
    assert [round(value) for (value,) in again.ask("ann", YOUNG, key="mine", timeout=60).rows] == [
        people
    ]
    assert len(events_of(again, Charged)) == len(events_of(again, Released)) == before + 1
    again.close()
    assert verify(tmp_path / "ledger.sqlite", certificate=False).ok
