"""Trino, Snowflake and BigQuery: their SQL is golden text, and was not run on the services.

To write the golden files anew: `python -m tests.engine.test_cloud_engines`.
"""

from pathlib import Path
from typing import Any

import pytest
import sqlglot

from sharewell import Binned, Boolean, Category, Date, Domain, Integer, Measure, vectorize
from sharewell.engine.base import SqlEngine
from sharewell.engine.bigquery import BigQuery
from sharewell.engine.snowflake import Snowflake
from sharewell.engine.sources import open_source
from sharewell.engine.trino import Trino
from sharewell.engine.vectorize import cell_counts, columns_read
from sharewell.errors import SourceError

GOLDEN = Path(__file__).parent.parent / "golden" / "engines"

DOMAIN = Domain(
    [
        Integer("age", 0, 85, nullable=True),
        Integer("visits", 0, 9, other="more"),
        Binned("income", [0, 0.1, 10, 100]),
        Category("state", ["MA", "ma", "it's"], other="elsewhere"),
        Boolean("member"),
        Date("born", "2020-01-15", "2021-03-02", by="month"),
        Date("seen", "2020-01-15", "2021-03-02", by="week", nullable=True),
        Date("said", "2020-01-15", "2021-03-02", by="quarter"),
    ],
    [Measure("fee", "fee", 0, 100, 1)],
)
AGE = Domain([Integer("age", 0, 85)])
#: The types of the columns, in each catalogue's words.
TYPES = {
    "trino": "bigint varchar double varchar boolean date timestamp(6)_with_time_zone varchar decimal(9)",
    "snowflake": "NUMBER TEXT FLOAT TEXT BOOLEAN DATE TIMESTAMP_TZ TEXT NUMBER",
    "bigquery": "INTEGER STRING FLOAT STRING BOOLEAN DATE TIMESTAMP STRING NUMERIC",
}
PERSON = {"trino": "char(9)", "snowflake": "TEXT", "bigquery": "STRING"}
ENGINES: dict[str, Any] = {"trino": Trino, "snowflake": Snowflake, "bigquery": BigQuery}


def engine(name: str) -> SqlEngine:
    wanted = columns_read(DOMAIN, "person")
    types = [each.replace("_with_time_zone", " with time zone") for each in TYPES[name].split()]
    rows = list(zip(wanted, [*types, PERSON[name]], strict=True))
    opened: SqlEngine = ENGINES[name](
        None, sqlglot.to_table("clinic.visits", dialect=name), rows, wanted, 60
    )
    return opened


def rendered(name: str) -> str:
    opened = engine(name)
    statement = opened.render(cell_counts(DOMAIN, opened, "person", most=2, key="key"))
    return sqlglot.parse_one(statement, dialect=name).sql(name, pretty=True) + "\n"


@pytest.mark.parametrize("name", ENGINES)
def test_the_statement_is_the_golden_one(name):
    assert rendered(name) == (GOLDEN / f"{name}.sql").read_text()


@pytest.mark.parametrize("name", ENGINES)
def test_no_conversion_of_text_can_fail(name):
    statement = sqlglot.parse_one(rendered(name), dialect=name)
    for cast in statement.find_all(sqlglot.exp.Cast):
        if not isinstance(cast, sqlglot.exp.TryCast) and not isinstance(cast.this, sqlglot.exp.Literal):
            texts = [column.name for column in cast.this.find_all(sqlglot.exp.Column)]
            guarded = cast.this.find(sqlglot.exp.Case, sqlglot.exp.If, sqlglot.exp.TryCast)
            assert guarded or not {"visits", "said"} & set(texts), cast.sql(name)


@pytest.mark.parametrize(
    ("address", "complete"),
    [
        ("trino://ann@host", "catalog/schema"),
        ("snowflake://account/database", "snowflake://user@account/database/schema"),
        ("bigquery://project", "bigquery://project/dataset"),
    ],
)
def test_an_address_that_is_not_complete_or_a_missing_driver_is_a_sentence(address, complete):
    with pytest.raises(SourceError) as caught:
        open_source(address, ["age"], table="visits")
    extra = address.partition(":")[0]
    assert complete in caught.value.hint or caught.value.hint == f"Install sharewell[{extra}]."


@pytest.mark.parametrize("name", ENGINES)
def test_a_password_in_the_address_is_refused(name):
    with pytest.raises(SourceError, match="has a password"):
        vectorize(f"{name}://ann:secret@host/a/b", AGE, table="visits")


if __name__ == "__main__":
    for each in ENGINES:
        (GOLDEN / f"{each}.sql").write_text(rendered(each))
