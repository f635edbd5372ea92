"""What can be read, what is refused, and that no refusal tells anything of a row."""

import datetime as dt
import gzip
import json
import logging
import traceback
import zipfile
from pathlib import Path
from typing import Any

import duckdb
import pandas
import polars
import pyarrow as pa
import pyarrow.parquet
import pyreadstat
import pytest

from sharewell import Category, Domain, Integer
from sharewell.engine.sources import SUPPORTED, CsvFormat
from sharewell.engine.vectorize import vectorize
from sharewell.errors import SourceError

AGE = Domain([Integer("age", 0, 3)])
CANARY = "CANARY-4711"


def ages(source: object, **options: Any) -> list[int]:
    return vectorize(source, AGE, **options).counts.tolist()


def refusal(source: object, domain: Domain = AGE, **options: Any) -> SourceError:
    """The error, having made sure that neither it nor what it came from quotes a row."""
    with pytest.raises(SourceError) as caught:
        vectorize(source, domain, **options)
    error = caught.value
    told = "".join(traceback.format_exception(error)) + repr(error) + str(error.args)
    assert CANARY not in told.replace("CANARY =", "")
    assert error.__context__ is None
    assert error.__cause__ is None
    return error


def write(path: Path, text: str | bytes) -> Path:
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


@pytest.mark.parametrize(
    "text",
    [
        "age\n1\n3\n",
        "age\r\n1\r\n3",
        "\ufeffage\n1\n3\n",
        'name,age\n"a, ""b""\nc",1\nd,3\n',
        '"age",name\n"1",x\n3,\n',
        "AGE,name\n1.0,é\n 3 ,ü\n",
        'age,name\n1,\n3,""\n,\n"",x\nnan,\ninf,\nx,\n4,\n-1,\n1.5,\n',
    ],
)
def test_csv_files_are_read_as_people_write_them(text, tmp_path):
    assert ages(write(tmp_path / "people.csv", text)) == [0, 1, 0, 1]


def test_a_csv_file_of_a_header_alone_is_an_empty_table(tmp_path):
    assert ages(write(tmp_path / "people.csv", "age")) == [0, 0, 0, 0]


def test_an_empty_field_is_null_and_other_words_for_nothing_are_text(tmp_path):
    path = write(tmp_path / "people.csv", 'who,n\n,1\n"",2\nNULL,3\nNA,4\n')
    domain = Domain([Category("who", ["NULL", "NA", ""], nullable=True)])
    assert vectorize(path, domain).counts.tolist() == [1, 1, 0, 2]


def test_a_csv_number_is_not_judged_by_the_first_rows(tmp_path):
    rows = "1\n" * 50_000 + "x\n" * 50_000 + "3\n"
    path = write(tmp_path / "people.csv", "age\n" + rows)
    assert ages(path) == [0, 50_000, 0, 1]
    caught = Domain([Integer("age", 0, 3, other="no age")])
    assert vectorize(path, caught).counts.tolist() == [0, 50_000, 0, 1, 50_000]


@pytest.mark.parametrize(
    "text",
    [
        f"age,name\n1,a\n2,{CANARY},3\n",
        f"age,name\n1,a\n{CANARY}\n",
        f'age,name\n1,a\n2,"{CANARY}\n',
        f'age,name\n1,"{CANARY}"x\n',
        f"age,name\n1,{CANARY}".encode() + b"\xff\xfe\n",
        f"age,name\r\n1,a\n2,{CANARY}\r\n3,b",
        f"age,name\n1,{CANARY * 300_000}\n",
    ],
)
def test_a_broken_csv_file_is_refused_without_quoting_it(text, tmp_path, capfd, caplog):
    caplog.set_level(logging.DEBUG)
    error = refusal(write(tmp_path / "people.csv", text), Domain([Category("name", ["a"])]))
    assert error.message == "Cannot read 'people.csv'."
    assert "UTF-8 and comma-separated" in error.hint
    assert CANARY not in "".join(capfd.readouterr()) + caplog.text


@pytest.mark.parametrize("text", ["", "\n1\n"])
def test_a_csv_file_without_a_header_is_refused(text, tmp_path):
    error = refusal(write(tmp_path / "people.csv", text))
    assert error.message == "Cannot read the header of 'people.csv'."


def test_a_csv_file_in_another_encoding_is_refused(tmp_path):
    refusal(write(tmp_path / "people.csv", f"age\n{CANARY}\n".encode("utf-16")))


def test_a_missing_header_is_not_quoted_as_if_it_were_one(tmp_path):
    error = refusal(write(tmp_path / "people.csv", f"{CANARY},1\n{CANARY},2\n"))
    assert str(error) == "Unknown column 'age'. Use the column's name as the name of the attribute."


def test_paths_may_be_text_and_endings_in_capitals(tmp_path):
    assert ages(str(write(tmp_path / "PEOPLE.CSV", "age\n1\n"))) == [0, 1, 0, 0]


def test_a_quote_in_a_path_is_only_a_quote(tmp_path):
    folder = tmp_path / "it's, or 1=1 --"
    folder.mkdir()
    assert ages(write(folder / "people.csv", "age\n1\n")) == [0, 1, 0, 0]
    pyarrow.parquet.write_table(pa.table({"age": [2]}), folder / "people.parquet")
    assert ages(folder / "people.parquet") == [0, 0, 1, 0]
    duckdb.connect(folder / "people.duckdb").execute("CREATE TABLE p AS SELECT 3 AS age").fetchall()
    assert ages(folder / "people.duckdb") == [0, 0, 0, 1]


def test_what_cannot_be_read_says_what_can(tmp_path):
    write(tmp_path / "people.pdf", CANARY)
    (tmp_path / "folder.csv").mkdir()
    for source, message in (
        (tmp_path / "people.pdf", "Unsupported file type: 'people.pdf'."),
        (tmp_path / "nobody.csv", f"'{tmp_path}/nobody.csv' does not exist."),
        (tmp_path / "folder.csv", f"There is no .parquet file in '{tmp_path}/folder.csv'."),
        (f"mysql://ann:{CANARY}@host/db", "Unsupported database."),
        ([CANARY], "Unsupported source: list."),
        (None, "Unsupported source: NoneType."),
    ):
        error = refusal(source)
        assert (error.message, error.hint) == (message, SUPPORTED)


def test_a_corrupt_parquet_file_is_refused_without_quoting_it(tmp_path):
    path = tmp_path / "people.parquet"
    pyarrow.parquet.write_table(pa.table({"age": [1] * 999, "name": [CANARY] * 999}), path)
    whole = path.read_bytes()
    for corrupt in (whole[:-20], CANARY.encode() * 9, b"", whole[:4] + b"\xff" * 40 + whole[44:]):
        error = refusal(
            write(path, corrupt), Domain([Category("name", ["a"], other="x"), *AGE.attributes])
        )
        assert error.message == "Cannot read 'people.parquet'."


@pytest.mark.parametrize("name", ["people[1].csv", "people?.parquet", "*.csv"])
def test_a_path_that_reads_as_a_pattern_is_refused(name, tmp_path):
    write(tmp_path / "people1.csv", "age\n1\n")
    assert "contains a wildcard" in refusal(write(tmp_path / name, "age\n2\n")).message


def test_a_database_is_asked_for_its_one_table_or_the_one_that_is_named(tmp_path):
    path = tmp_path / "people.duckdb"
    with duckdb.connect(path) as connection:
        connection.execute("CREATE TABLE people AS SELECT 1 AS age").fetchall()
    assert ages(path) == [0, 1, 0, 0]
    with duckdb.connect(path) as connection:
        connection.execute("CREATE SCHEMA old").fetchall()
        connection.execute('CREATE TABLE old."some people" AS SELECT 2 AS age').fetchall()
        connection.execute("CREATE VIEW elders AS SELECT * FROM people").fetchall()
    assert ages(path, table="old.some people") == [0, 0, 1, 0]
    assert ages(path, table="elders") == [0, 1, 0, 0]
    for table, problem in (
        (None, "has 3 tables"),
        ("nobody", "has no table 'nobody'"),
    ):
        error = refusal(path, table=table)
        assert error.message == f"The database 'people.duckdb' {problem}."
        assert error.hint == "Set `table` to one of elders, people, old.some people."


def test_an_empty_or_broken_database_is_refused(tmp_path):
    path = tmp_path / "empty.duckdb"
    duckdb.connect(path).close()
    assert refusal(path).hint == "It is empty."
    error = refusal(write(tmp_path / "broken.duckdb", CANARY * 9999))
    assert error.message == "Cannot read 'broken.duckdb'."


def test_a_database_is_not_changed_and_its_views_cannot_read_other_files(tmp_path):
    path, secret = tmp_path / "people.duckdb", write(tmp_path / "secret.csv", f"age\n{CANARY}\n")
    with duckdb.connect(path) as connection:
        connection.execute(f"CREATE VIEW peek AS SELECT * FROM read_csv('{secret}')").fetchall()
    before = path.read_bytes()
    assert refusal(path).message == "Cannot read 'people.duckdb'."
    assert path.read_bytes() == before
    assert sorted(file.name for file in tmp_path.iterdir()) == ["people.duckdb", "secret.csv"]


def test_only_a_database_takes_a_table(tmp_path):
    path = write(tmp_path / "people.csv", "age\n1\n")
    assert refusal(path, table="people").hint == "Remove `table`."
    assert refusal(pandas.DataFrame({"age": [1]}), table="people").hint == "Remove `table`."


def test_columns_are_found_by_name_whatever_their_case_but_the_exact_one_first(tmp_path):
    twins = pa.table({"AGE": [1], "age": [2], "Age": [3]})
    pyarrow.parquet.write_table(twins, tmp_path / "twins.parquet")
    write(tmp_path / "twins.csv", "AGE,age,Age\n1,2,3\n")
    for source in (
        *(tmp_path / "twins.parquet", tmp_path / "twins.csv", twins, twins.to_pandas()),
        *(polars.from_arrow(twins), polars.DataFrame(polars.from_arrow(twins)).lazy()),
    ):
        assert ages(source) == [0, 0, 1, 0]
        error = refusal(source, Domain([Integer("aGe", 0, 3)]))
        assert error.message == "Several columns match 'aGe'."
    assert ages(pa.table({"Age": [3]})) == [0, 0, 0, 1]


def test_a_parquet_column_is_told_from_a_field_inside_another(tmp_path):
    rows = pa.table({"x": [{"age": 1, "y": {"age": 2}}], "l": [[{"age": 1}]], "AGE": [3]})
    pyarrow.parquet.write_table(rows, tmp_path / "nested.parquet")
    assert ages(tmp_path / "nested.parquet") == [0, 0, 0, 1]


def test_the_folders_of_a_parquet_file_say_nothing_about_its_rows(tmp_path):
    folder = tmp_path / "age=3"
    folder.mkdir()
    pyarrow.parquet.write_table(pa.table({"age": [1]}), folder / "people.parquet")
    assert ages(folder / "people.parquet") == [0, 1, 0, 0]


def test_a_missing_column_suggests_the_closest(tmp_path):
    for source in (
        pandas.DataFrame({"agee": [1], "sex": ["F"]}),
        write(tmp_path / "people.csv", "agee,sex\n1,F\n"),
    ):
        assert str(refusal(source)) == "Unknown column 'age'. Did you mean 'agee'?"
    missing_person = refusal(pandas.DataFrame({"age": [1]}), privacy_unit="person_id")
    assert missing_person.message == "Unknown column 'person_id'."


def test_columns_that_nobody_asked_for_may_be_of_any_type():
    odd = pandas.DataFrame({"age": [1, 2], "odd": pandas.period_range("2020-01", periods=2, freq="M")})
    assert ages(odd) == [0, 1, 1, 0]
    assert ages(pa.table({"age": [1], "odd": pa.array([1], pa.decimal256(50, 2))})) == [0, 1, 0, 0]


def test_a_column_that_the_engine_does_not_know_is_refused_by_its_type():
    odd = pandas.DataFrame({"age": pandas.period_range("2020-01", periods=2, freq="M")})
    assert refusal(odd).message == "Cannot read the columns of the data frame: 'age' is PeriodDtype."
    wide = polars.DataFrame({"age": [1]}, schema={"age": polars.Int128})
    assert "'age' is Int128" in refusal(wide).message


def test_pandas_columns_of_every_make_are_read():
    for column in (
        [1, 3, None],
        ["1", "3", "x"],
        pandas.array([1, 3, None], dtype="Int64"),
        pandas.array([1, 3, None], dtype="int8[pyarrow]"),
        pandas.array(["1", "3", None], dtype="string"),
        pandas.Categorical(["1", "3", None]),
        pandas.Series([1, "3", float("nan")], dtype=object),
        pandas.Series([1.0, "3.0", pandas.NA], dtype=object),
    ):
        assert ages(pandas.DataFrame({"age": column})) == [0, 1, 0, 1]
    assert ages(pandas.DataFrame({0: [1], "age": [2]})) == [0, 0, 1, 0]


def test_an_object_column_is_text_whatever_it_holds():
    column = pandas.Series([1] * 5000 + [CANARY, "3"], dtype=object)
    assert ages(pandas.DataFrame({"age": column})) == [0, 5000, 0, 1]
    # Were the type guessed from the rows, these would be dates, and refused.
    days = pandas.Series([dt.date(2020, 1, 1)], dtype=object)
    assert ages(pandas.DataFrame({"age": days})) == [0, 0, 0, 0]


def test_a_lazy_frame_that_fails_is_refused_without_quoting_it(tmp_path):
    path = write(tmp_path / "people.csv", f"age\n1\n{CANARY}\n")
    lazy = polars.scan_csv(path, schema={"age": polars.Int64})
    assert refusal(lazy).message == "Cannot read the frame."
    assert refusal(polars.scan_csv(tmp_path / "nobody.csv")).message == "Cannot read the frame."


def test_a_value_that_fails_when_it_is_read_is_not_quoted():
    class Shy:
        def __str__(self) -> str:
            raise ValueError(CANARY)

    frame = pandas.DataFrame({"age": pandas.Series([Shy()], dtype=object)})
    assert "Cannot read the columns" in refusal(frame).message


def test_a_frame_is_left_as_it_was():
    frame = pandas.DataFrame({"age": [1, 2], "name": ["a", "b"]})
    copy = frame.copy()
    ages(frame)
    pandas.testing.assert_frame_equal(frame, copy)


@pytest.mark.parametrize(
    ("name", "text", "form"),
    [
        ("people.tsv", "name\tage\nx\t1\ny\t3\n", None),
        ("people.csv", 'name;age\n"x;y";1\ny;3\n', CsvFormat(";")),
        ("people.csv", "name|age\nx|1\ny|3\n", CsvFormat("|")),
    ],
)
def test_fields_may_be_separated_by_other_signs(name, text, form, tmp_path):
    assert ages(write(tmp_path / name, text), csv_format=form) == [0, 1, 0, 1]


def test_a_compressed_csv_file_in_another_encoding_is_read(tmp_path):
    rows = gzip.compress("städt,age\nKöln,1\nKöln,3\nkoln,3\n".encode("latin-1"))
    domain = Domain([Category("städt", ["Köln"])])
    form = CsvFormat(encoding="latin-1")
    for name in ("people.csv.gz", "PEOPLE.CSV.GZ"):
        path = write(tmp_path / name, rows)
        assert vectorize(path, domain, csv_format=form).counts.tolist() == [2]


def test_a_format_of_csv_files_is_refused_for_others(tmp_path):
    path = write(tmp_path / "people.jsonl", '{"age": 1}\n')
    assert "require a .csv" in refusal(path, csv_format=CsvFormat(";")).message


def test_lines_of_json_are_read_as_text(tmp_path):
    lines = [{"age": 1}, {"age": "3"}, {"age": None}, {}, {"age": [CANARY]}, {"age": 1.5}]
    path = write(tmp_path / "people.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
    assert ages(path) == [0, 1, 0, 1]
    assert refusal(write(tmp_path / "bad.jsonl", f'{{"age": 1}}\n{CANARY}')).message
    assert refusal(write(tmp_path / "bad.jsonl", f'["{CANARY}"]\n')).message


def test_a_folder_and_a_pattern_of_parquet_files_are_one_table(tmp_path):
    for at, age in enumerate((1, 3, 3)):
        place = tmp_path / ("deep" if at else ".") / f"part-{at}.parquet"
        place.parent.mkdir(exist_ok=True)
        pyarrow.parquet.write_table(pa.table({"age": [age]}), place)
    assert ages(tmp_path) == [0, 1, 0, 2]
    assert ages(tmp_path / "deep" / "part-*.parquet") == [0, 0, 0, 2]
    assert "no .parquet file" in refusal(tmp_path / "deep" / "other-*.parquet").message


def test_workbooks_and_files_of_stata_and_spss_are_read(tmp_path):
    frame = pandas.DataFrame({"name": ["x", "y", "z"], "age": [1, 3, 3]})
    book = xlsx(
        tmp_path / "people.xlsx", [["name", "age"], ["x", 1], ["y", 3], ["z", 3.0], [None, None]]
    )
    assert ages(book) == [0, 1, 0, 2]
    assert ages(book, table="rows") == [0, 1, 0, 2]
    assert "one of rows" in refusal(book, table="other").hint
    assert refusal(write(tmp_path / "bad.xlsx", CANARY)).message
    pyreadstat.write_dta(frame, str(tmp_path / "people.dta"))
    pyreadstat.write_sav(frame, str(tmp_path / "people.sav"))
    for name in ("people.dta", "people.sav"):
        assert ages(tmp_path / name) == [0, 1, 0, 2]
    assert refusal(write(tmp_path / "bad.dta", CANARY)).message


def xlsx(path: Path, rows: list[list[Any]]) -> Path:
    """The smallest workbook with one sheet."""
    cells = "".join(
        "<row>" + "".join(cell(value) for value in row if value is not None) + "</row>" for row in rows
    )
    main = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
    relations = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    package = "http://schemas.openxmlformats.org/package/2006"
    parts = {
        "[Content_Types].xml": f'<Types xmlns="{package}/content-types"/>',
        "_rels/.rels": f'<Relationships xmlns="{package}/relationships"><Relationship Id="r1" '
        f'Type="{relations}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook {main} xmlns:r="{relations}"><sheets>'
        '<sheet name="rows" sheetId="1" r:id="r1"/></sheets></workbook>',
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{package}/relationships"><Relationship '
        f'Id="r1" Type="{relations}/worksheet" Target="worksheets/sheet1.xml"/></Relationships>',
        "xl/worksheets/sheet1.xml": f"<worksheet {main}><sheetData>{cells}</sheetData></worksheet>",
    }
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in parts.items():
            archive.writestr(name, text)
    return path


def cell(value: Any) -> str:
    if isinstance(value, str):
        return f'<c t="inlineStr"><is><t>{value}</t></is></c>'
    return f"<c><v>{value}</v></c>"


def test_any_object_that_offers_itself_as_arrow_is_read():
    class Frame:
        def __arrow_c_stream__(self, requested_schema: object = None) -> object:
            return pa.table({"age": [1, 3]}).__arrow_c_stream__(requested_schema)

    assert ages(Frame()) == [0, 1, 0, 1]
