"""Datasets whose rows a person view computes: from the file to an answer, and what may not change."""

from pathlib import Path

import pytest

import sharewell
from sharewell import Boolean, Domain, LinearQuery
from sharewell.config import check, parse_config, read_config
from sharewell.engine.in_place import InPlaceData
from sharewell.errors import ConfigError, LedgerError, SqlError
from sharewell.privacy.ledger import Asked
from sharewell.query.sql.rewrite import count_people
from sharewell.service.ledger import open_ledger
from sharewell.service.lifecycle import adopt, begin
from sharewell.service.registry import DatasetRegistry
from sharewell.service.state import check_ledger
from sharewell.service.verify.verification import verify

DOMAIN = Domain([Boolean("employed")])
VIEW = "SELECT p.person, p.sex, COUNT(v.fee) AS visits FROM patients p LEFT JOIN visits v ON v.person = p.person GROUP BY p.person, p.sex"  # noqa: E501
CONFIG = f"""
[dataset]
name = "people"
privacy_unit = "person"
view = "{VIEW}"
[tables.patients]
source = "patients.csv"
unit = "person"
[tables.visits]
source = "visits.csv"
unit = "person"
delimiter = ";"
[attributes.sex]
type = "category"
categories = ["f", "m"]
[attributes.visits]
type = "integer"
low = 0
high = 3
[budget]
epsilon = 50
error_threshold = 1
[analysts.ann]
share = "1"
"""


@pytest.fixture
def path(tmp_path) -> Path:
    (tmp_path / "patients.csv").write_text("person,sex\nann,f\nbob,m\ncem,m\n,f\n")
    (tmp_path / "visits.csv").write_text("person;fee\nann;1\nann;2\nbob;3\ndee;4\n;5\n")
    (tmp_path / "sharewell.toml").write_text(CONFIG)
    return tmp_path / "sharewell.toml"


def test_a_view_over_two_files_is_checked_begun_and_asked(path):
    config = read_config(path)
    report = check.check_config(config)
    assert report.ok, report.diagnostics
    rows = check.check_rows(config)
    assert rows.rows == 3
    begin(config)
    with sharewell.open(path, analyst="ann") as session:
        result = session.ask("SELECT sex, visits, COUNT(*) FROM people GROUP BY sex, visits")
        counted = {(sex, visits): round(number.value) for sex, visits, number in result.rows}
        assert {key: value for key, value in counted.items() if value} == {
            ("f", 2): 1,
            ("m", 1): 1,
            ("m", 0): 1,
        }


def test_squares_and_products_are_those_of_the_rows_of_a_view(path):
    view = VIEW.replace(
        "COUNT(v.fee) AS visits", "COUNT(v.fee) AS visits, SUM(TRY_CAST(v.fee AS DOUBLE)) AS paid"
    )
    measures = """
[measures.paid]
low = 0
high = 10
step = 1
square = true
products = ["number"]
[measures.number]
column = "visits"
low = 0
high = 4
step = 1
[budget]
"""
    path.write_text(CONFIG.replace(VIEW, view).replace("[budget]", measures).replace("= 50", "= 5000"))
    begin(read_config(path))
    with sharewell.open(path, analyst="ann") as session:
        sums = "SUM(paid), SUM(paid * paid), SUM(paid * number), VAR_POP(paid), CORR(paid, visits)"
        [found] = session.ask(f"SELECT {sums} FROM people").rows
    # Ann has paid 3 on two visits, and Bob 3 on one; Cem has none.
    paid, squares, products, variance, correlation = (number.value for number in found)
    assert [round(each) for each in (paid, squares, products)] == [6, 18, 9]
    assert variance == pytest.approx(0, abs=0.5)
    assert correlation is None or -1 <= correlation <= 1


def test_the_number_of_people_is_that_of_rows_where_each_has_one(path):
    begin(read_config(path))
    with sharewell.open(path, analyst="ann") as session:
        asked = "SELECT sex, COUNT(DISTINCT person) AS n FROM people GROUP BY sex"
        found = session.ask(asked, key="people")
        assert [(sex, round(n.value)) for sex, n in found.rows] == [("f", 1), ("m", 2)]
        assert session.ask(asked, key="people").rows == found.rows
        same = "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex"
        assert session.ask(same, key="people").rows == found.rows
        assert session.quote("SELECT COUNT(DISTINCT p.PERSON) FROM people AS p").cost is not None
        with pytest.raises(SqlError, match="one row alone can change it"):
            session.ask("SELECT COUNT(DISTINCT sex) FROM people")
        with pytest.raises(SqlError):
            session.ask("SELECT COUNT(DISTINCT 'person) FROM people")


def test_the_number_of_people_is_listed_as_it_was_written(path):
    begin(read_config(path))
    people, rows = "SELECT COUNT(DISTINCT  person) FROM people", "SELECT COUNT(*) FROM people"
    with sharewell.open(path, analyst="ann") as session:
        assert session.ask(people, key="people").cost > 0
        assert session.ask(rows).cost == 0
    with sharewell.open(path, analyst="ann") as session:
        listed = [each.sql for each in session.questions()]
        assert session.ask(people, key="people").cost > 0
    assert listed == ["SELECT COUNT(DISTINCT person) FROM people", rows]
    with open_ledger(read_config(path).service.ledger, read_only=True) as ledger:
        asked = [event.question for event in ledger.events() if isinstance(event, Asked)]
    assert asked == [{"sql": rows, "written": listed[0]}, {"sql": rows}]
    assert verify(read_config(path).service.ledger).ok


def test_with_several_rows_a_person_the_refusal_shows_the_view():
    with pytest.raises(SqlError) as caught:
        count_people("SELECT 1, count( distinct Person )", "person", 3, DOMAIN, "visits")
    assert "up to 3 rows of each person" in caught.value.message
    assert str(caught.value.where) == "line 1, column 11, at 'count( distinct Person )'"
    assert "SELECT person, ... FROM visits GROUP BY person" in caught.value.hint


def test_what_is_not_the_number_of_people_stays():
    for text in (
        "SELECT COUNT(DISTINCT sex)",
        "SELECT 'COUNT(DISTINCT person)'",
        "SELECT COUNT(DISTINCT person, sex)",
        "SELECT COUNT(DISTINCT",
        "SELECT COUNT(DISTINCT 'person",
    ):
        assert count_people(text, "person", 1, DOMAIN, "visits") == text


def test_a_view_is_measured_in_place(path):
    path.write_text(CONFIG.replace("[dataset]", '[dataset]\nmeasure = "in-place"\ndeadline = 60'))
    config = read_config(path)
    people = LinearQuery.all(config.domain)
    data = InPlaceData(
        config.domain,
        config._open_in_place,
        privacy_unit=config.privacy_unit,
        deadline=60,
        wait=lambda _: None,
    )
    assert data.answer(people) == 3
    before = data.fingerprint
    with (path.parent / "visits.csv").open("a") as file:
        file.write("bob;1\n")
    assert data.answer(people) == 3
    assert before != data.fingerprint


def test_a_changed_view_or_unit_is_refused(path):
    begin(read_config(path))
    with sharewell.open(path, analyst="ann"):
        pass
    for old, new, setting in (
        ("LEFT JOIN", "JOIN", "dataset.view was"),
        ("LEFT JOIN", "LEFT  JOIN", ""),
        ('unit = "person"\ndelimiter', 'unit = "fee"\ndelimiter', "tables was"),
        ('delimiter = ";"', "", ""),
    ):
        path.write_text(CONFIG.replace(old, new))
        found = [each.message for each in check_ledger(read_config(path)) if each.level == "error"]
        assert bool(found) == bool(setting), found
        assert all(setting in each for each in found)


def test_every_private_table_has_one_budget(path):
    config = read_config(path)
    begin(config)
    alone = path.with_name("alone.toml")
    single = CONFIG.replace(f'view = "{VIEW}"', 'source = "visits.csv"\ndelimiter = ";"')
    single = single[: single.index("[tables")] + single[single.index("[attributes.sex") :]
    alone.write_text(single.replace('"people"', '"alone"'))
    with pytest.raises(LedgerError, match="was begun before"):
        begin(read_config(alone))
    with pytest.raises(ConfigError, match=r"has the same source, .*visits\.csv"):
        DatasetRegistry.open([path, alone])
    config.witness.unlink()
    assert adopt(config) == config.witness


def test_a_change_of_any_table_is_reported(path, caplog):
    begin(read_config(path))
    with sharewell.open(path, analyst="ann"):
        pass
    assert "has changed" not in caplog.text
    with (path.parent / "visits.csv").open("a") as file:
        file.write("bob;1\n")
    with sharewell.open(path, analyst="ann"):
        pass
    assert "visits.bytes was" in caplog.text


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('privacy_unit = "person"', "", "dataset.view requires dataset.privacy_unit"),
        (f'view = "{VIEW}"', 'source = "visits.csv"', "requires dataset.view"),
        ('unit = "person"\n[tables', "[tables", "tables.patients needs either `unit` or"),
        ('source = "visits.csv"', "", "tables.visits.source is missing"),
        ('delimiter = ";"', 'delimiter = "||"', "tables.visits.delimiter must be"),
        ('privacy_unit = "person"', 'privacy_unit = "person"\ntable = "x"', "mutually exclusive"),
        ("SELECT p.person", "SELECT (p.person", "dataset.view: The view is not valid SQL"),
        ("LEFT JOIN visits", "UNION SELECT 1 FROM visits", "dataset.view: "),
        ('\nunit = "person"', "\npublic = true", "dataset.view has no private table"),
    ],
)
def test_a_wrong_declaration_gets_a_sentence(old, new, message):
    with pytest.raises(ConfigError) as caught:
        parse_config(CONFIG.replace(old, new))
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("v.person = p.person", "v.fee = p.sex", "not joined on the unit"),
        ('source = "visits.csv"', 'source = "nothing.csv"', "does not exist"),
        ('unit = "person"\ndelimiter', 'unit = "id"\ndelimiter', "Unknown column 'id'"),
        ("COUNT(v.fee)", "COUNT(v.free)", "Unknown column 'free'"),
        ("AS visits", "AS number", "The view has no column 'visits'"),
        ("FROM patients", "FROM patience", "Unknown table 'patience'"),
    ],
)
def test_check_reports_what_is_wrong_with_a_view(path, old, new, message):
    path.write_text(CONFIG.replace(old, new))
    errors = [d.message for d in check.check_config(read_config(path)).diagnostics if d.level == "error"]
    assert any(message in each for each in errors), errors
