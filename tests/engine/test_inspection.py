"""What the descriptions leave out, as the curator sees it before the seed is bought."""

import psycopg
import pyarrow as pa
import pytest

from sharewell import Category, Date, Domain, Integer
from sharewell.cli import main
from sharewell.engine.inspection import ColumnInspection, inspect_rows
from sharewell.engine.sources import open_source
from sharewell.query.measure import Measure

DOMAIN = Domain(
    [
        Integer("age", 0, 9, nullable=True),
        Category("sex", ["f", "m"], other="other"),
        Date("seen", "2024-01-01", "2024-12-31", by="month"),
    ],
    [Measure("fee", "fee", 0, 9, 1, nullable=False)],
)
ROWS = {
    "person": ["a", "b", None, "d"],
    "age": ["1", None, "12", "12"],
    "sex": ["f", "F", None, "F"],
    "seen": ["2024-02-30", "01.02.2024", "2024-03-01", "01.02.2024"],
    "fee": ["1", "2", "x", None],
}
FOUND = (
    ColumnInspection("age", 2, (("12", 2),)),
    ColumnInspection("sex", 0, (("F", 2), (None, 1))),
    ColumnInspection("seen", 3, (("01.02.2024", 2), ("2024-02-30", 1))),
    ColumnInspection("measure fee", 2, ((None, 1), ("x", 1))),
    ColumnInspection("person person", 1),
)


def found_in(source: object, table: str | None = None) -> tuple[int, set[ColumnInspection]]:
    engine = open_source(source, [*DOMAIN.names, "fee", "person"], table=table)
    try:
        found = inspect_rows(DOMAIN, engine, "person")
    finally:
        engine.close()
    return found.rows, {
        ColumnInspection(each.name, each.left_out, tuple(sorted(each.undeclared, key=str)))
        for each in found.columns
    }


EXPECTED = {
    ColumnInspection(each.name, each.left_out, tuple(sorted(each.undeclared, key=str))) for each in FOUND
}


def test_every_description_says_what_it_leaves_out():
    assert found_in(pa.table(ROWS)) == (4, EXPECTED)


def test_a_database_says_the_same(postgres):
    address = postgres.database()
    with psycopg.connect(address) as connection:
        connection.execute("CREATE TABLE people (person text, age text, sex text, seen text, fee text)")
        connection.cursor().executemany(
            "INSERT INTO people VALUES (%s, %s, %s, %s, %s)", zip(*ROWS.values(), strict=True)
        )
    assert found_in(address, "people") == (4, EXPECTED)


CONFIG = """
[dataset]
source = "people.csv"
[attributes.sex]
type = "category"
categories = ["f", "m"]
[budget]
epsilon = 1
error_threshold = 10
[analysts.ann]
share = "1"
"""


def test_the_curator_sees_the_rows_only_when_they_ask(tmp_path, capsys, monkeypatch):
    (tmp_path / "people.csv").write_text('sex\nf\nFemale\n"\x1b[31mred"\n', encoding="utf-8")
    (tmp_path / "sharewell.toml").write_text(CONFIG, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "150")
    assert run(monkeypatch, "check") == 0
    assert "Female" not in capsys.readouterr().out
    assert run(monkeypatch, "check", "--rows") == 0
    shown = capsys.readouterr().out
    assert "Rows: 3" in shown
    assert "'Female' in 1 row" in shown
    assert "\x1b" not in shown
    assert run(monkeypatch, "check", "--rows", "--json") == 2


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr("sys.argv", ["sharewell", *arguments])
    try:
        main()
    except SystemExit as ended:
        return int(ended.code or 0)
    return 0
