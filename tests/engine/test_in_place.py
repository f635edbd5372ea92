"""Counts in place: the same answers as those of a copy, by one statement for each batch."""

import time
from typing import Any

import numpy as np
import pandas
import psycopg
import pyarrow as pa
import pytest
from sqlglot import exp

from sharewell import Block, Budget, Category, Curator, Domain, Integer, LinearQuery
from sharewell.engine import vectorize as engine
from sharewell.engine.base import Columns, Engine
from sharewell.engine.in_place import InPlaceData
from sharewell.engine.sources import open_source
from sharewell.errors import QueryTooComplex, SourceError, SourceUnavailable
from sharewell.query.block import GroupedBlock
from tests.engine.check_engine import in_place
from tests.engine.test_databases import fill

DOMAIN = Domain([Integer("a", 0, 5), Category("b", list("xyz")), Integer("c", 0, 3, nullable=True)])


def table(rows: int = 300) -> pandas.DataFrame:
    random = np.random.default_rng(7)
    return pandas.DataFrame(
        {
            "a": random.integers(-1, 7, rows),
            "b": random.choice(list("xyzw"), rows),
            "c": random.choice([0.0, 1.0, 3.0, np.nan], rows),
            "person": random.integers(0, 90, rows),
        }
    )


class Counting:
    """Opens a source, and counts the statements that are run on it."""

    def __init__(self, source: object, unit: str | None) -> None:
        self._source, self._wanted = source, engine.columns_read(DOMAIN, unit)
        self.statements = 0

    def __call__(self) -> Engine:
        opened: Any = open_source(self._source, self._wanted)
        fetch = opened.fetch

        def counted(statement: exp.Select) -> Columns:
            self.statements += 1
            found: Columns = fetch(statement)
            return found

        opened.fetch = counted
        engine: Engine = opened
        return engine


def random_block(random: np.random.Generator) -> Block:
    def query() -> LinearQuery:
        left, right = (
            LinearQuery.product(
                DOMAIN,
                {
                    each.name: random.choice([0, 0, 1, 2], each.size)
                    for each in DOMAIN.attributes
                    if random.random() < 0.7
                },
            )
            for _ in range(2)
        )
        return left - right

    if random.random() < 0.5:
        return Block(DOMAIN, [query() for _ in range(3)])
    level = int(random.integers(3))
    return GroupedBlock(query(), {level: random.integers(0, 3, DOMAIN.shape[level])})


@pytest.mark.parametrize("unit", [None, "person"])
def test_a_batch_is_one_statement_with_the_answers_of_a_copy(unit):
    source = table()
    copied = engine.vectorize(source, DOMAIN, unit, max_rows_per_person=2 if unit else 1, key="k")
    opened = Counting(source, unit)
    data = InPlaceData(
        DOMAIN,
        opened,
        privacy_unit=unit,
        max_rows_per_person=2 if unit else 1,
        key="k",
        deadline=60,
        wait=lambda seconds: None,
    )
    random = np.random.default_rng(11)
    for batch in range(1, 7):
        blocks = [random_block(random) for _ in range(3)]
        for found, block in zip(data.answers_together(blocks), blocks, strict=True):
            assert found.tolist() == block.answers(copied).tolist()
        assert opened.statements == batch


def test_requests_that_tell_too_much_apart_are_parts_of_one_statement(monkeypatch):
    monkeypatch.setattr("sharewell.engine.in_place.MAX_SHARED_GROUPS", 6)
    source = table()
    copied, opened = engine.vectorize(source, DOMAIN), Counting(source, None)
    data = InPlaceData(DOMAIN, opened, deadline=60, wait=lambda seconds: None)
    everything = LinearQuery.all(DOMAIN)
    cells = [np.arange(size) for size in DOMAIN.shape]
    blocks = [GroupedBlock(everything, {level: cells[level]}) for level in range(3)]
    for found, block in zip(data.answers_together(blocks), blocks, strict=True):
        assert found.tolist() == block.answers(copied).tolist()
    assert opened.statements == 1


def test_what_tells_too_many_groups_apart_is_refused_before_the_charge():
    wide = Domain([Integer(f"c{i}", 0, 3) for i in range(30)])
    frame = pandas.DataFrame({name: [1, 2] for name in wide.names})
    data = in_place(frame, wide)
    curator = Curator(data, Budget.pure("1"), {"ann": "1"})
    either = LinearQuery.all(wide)
    for name in wide.names:
        either = either.where(LinearQuery.of(wide, **{name: [0]}))
    assert curator.measure(either, "1/10", "ann").values.shape == (1,)
    parity = LinearQuery.all(wide) - either * 2
    assert curator.measure(LinearQuery.of(wide, c0=[1]), "1/10", "ann").values.shape == (1,)
    with pytest.raises(QueryTooComplex, match="measured in place"):
        curator.measure(parity, "1/10", "ann")
    assert str(curator.spent("ann")) == "1/5"


def test_a_failure_leaves_at_the_deadline_and_quotes_nothing(caplog):
    waits: list[float] = []
    frame = table(3)
    data = InPlaceData(
        DOMAIN,
        lambda: open_source(frame, engine.columns_read(DOMAIN, None)),
        deadline=60,
        wait=waits.append,
    )

    def broken():
        raise ValueError("CANARY-4711")

    data._open = broken
    with pytest.raises(SourceUnavailable, match="does not answer") as caught:
        data.answer(LinearQuery.all(DOMAIN))
    assert caught.value.__context__ is None
    assert 50 < waits[0] <= 60
    assert "CANARY" not in caplog.text


def test_a_column_that_is_renamed_behind_the_server_is_unavailable_until_it_is_back(postgres):
    address = fill(
        postgres.database(), pa.table({"a": [1, 2, 9], "b": ["x", "y", "z"], "c": [None, 1, 2]})
    )
    data = in_place(address, DOMAIN)
    everything = LinearQuery.all(DOMAIN)
    assert data.answer(everything) == 2
    with psycopg.connect(address) as other:
        other.execute("ALTER TABLE people RENAME COLUMN a TO first")
    with pytest.raises(SourceUnavailable):
        data.answer(everything)
    with psycopg.connect(address) as other:
        other.execute("ALTER TABLE people RENAME COLUMN first TO a")
    assert data.answer(everything) == 2


def test_postgresql_says_when_rows_have_changed(postgres):
    address = fill(postgres.database(), pa.table({"a": [1, 2], "b": ["x", "y"], "c": [None, 1]}))
    data = in_place(address, DOMAIN)
    everything = LinearQuery.all(DOMAIN)
    with psycopg.connect(address, autocommit=True) as other:
        other.execute("SELECT pg_stat_force_next_flush()")
        assert data.answer(everything) == 2
        first = data.fingerprint
        assert data.answer(everything) == 2
        assert data.fingerprint == first is not None
        other.execute("INSERT INTO people VALUES (3, 'x', 1)")
        other.execute("SELECT pg_stat_force_next_flush()")
        until = time.monotonic() + 60
        while data.fingerprint == first and time.monotonic() < until:
            assert data.answer(everything) == 3
        assert data.fingerprint != first


def test_types_that_do_not_fit_are_refused_at_the_start():
    with pytest.raises(SourceError, match="Unknown column"):
        in_place(pandas.DataFrame({"a": [1]}), DOMAIN)
