"""What is wrong with a source is a sentence, and costs nothing."""

import time

import psycopg
import pyarrow as pa
import pytest

from sharewell.config import read_config
from sharewell.errors import SharewellError
from sharewell.privacy.ledger import Charged
from sharewell.service.dataset import DatasetService
from sharewell.service.ledger import open_ledger
from sharewell.service.lifecycle import begin
from tests.engine.test_databases import fill

CONFIG = """
[dataset]
source = "{source}"
{table}
measure = "{measure}"
deadline = 60
statement_timeout = 60
[budget]
epsilon = 1
error_threshold = 20
[attributes.age]
type = "integer"
low = 0
high = 19
[analysts.ann]
share = 1
[service]
certificate = false
"""


@pytest.fixture
def refusal(tmp_path, monkeypatch):
    """Begins and opens a dataset that cannot be read: the sentence; nothing may be charged."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.delenv("PGPASSWORD", raising=False)
    names = iter(range(99))

    def refused(source: str, table: str = "people", measure: str = "copy") -> str:
        folder = tmp_path / str(next(names))
        folder.mkdir()
        path = folder / "sharewell.toml"
        path.write_text(
            CONFIG.format(
                source=source, table=f'table = "{table}"' if "://" in source else "", measure=measure
            )
        )
        config = read_config(path)
        if not config.witness.exists():
            begin(config)
        with pytest.raises(SharewellError) as caught:
            DatasetService.open(config).close()
        with open_ledger(config.service.ledger, name=config.name, read_only=True) as ledger:
            assert not any(isinstance(event, Charged) for event in ledger.events())
        config.witness.unlink()
        return str(caught.value)

    return refused


@pytest.mark.parametrize("measure", ["copy", "in-place"])
def test_a_database_that_cannot_be_read_costs_nothing(postgres, refusal, measure):
    address = fill(postgres.database(), pa.table({"age": [1], "born": ["x"]}))
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("DROP ROLE IF EXISTS stranger")
        connection.execute("CREATE ROLE stranger LOGIN PASSWORD 'right'")
        connection.execute("CREATE TABLE moments AS SELECT now() AS age")
    rules = postgres._data / "pg_hba.conf"
    before = rules.read_text()
    rules.write_text(f"local all stranger scram-sha-256\n{before}")
    try:
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute("SELECT pg_reload_conf()")
        stranger = address.replace("postgres@", "stranger@")
        until = time.monotonic() + 60
        while _can_connect(stranger) and time.monotonic() < until:
            time.sleep(0.05)  # The rules are read soon.
        assert "password is wrong" in refusal(stranger, measure=measure)
    finally:
        rules.write_text(before)
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute("SELECT pg_reload_conf()")
    assert "no table 'nothing'" in refusal(address, "nothing", measure)
    assert "as Integer" in refusal(address, "moments", measure)
    with psycopg.connect(address) as connection:
        connection.execute("DROP TABLE people")
    assert "no table 'people'" in refusal(address, measure=measure)


def test_a_file_that_is_damaged_or_gone_costs_nothing(refusal, tmp_path):
    path = tmp_path / "people.parquet"
    for content in (None, b"", b"PAR1 and no more"):
        if content is not None:
            path.write_bytes(content)
        for measure in ("copy", "in-place"):
            assert "people.parquet" in refusal(str(path), measure=measure)


def _can_connect(address: str) -> bool:
    try:
        psycopg.connect(address).close()
    except psycopg.OperationalError:
        return False
    return True
