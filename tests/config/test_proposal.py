"""`sharewell init`: what it proposes for real files, odd ones too, and what it refuses."""

from __future__ import annotations

import csv
import datetime as dt
import re
import sys
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sharewell import Binned, Boolean, Category, Date, Integer, datasets
from sharewell.cli import render_config
from sharewell.cli.render_config import show_check, show_init
from sharewell.config import Config, parse_config, read_config
from sharewell.config.propose import propose
from sharewell.config.rounding import round_bounds, round_count, round_cuts, whole_periods
from sharewell.config.template import EXAMPLES, MANY_CELLS, Settings, proposal_text, review_lines
from sharewell.errors import ConfigError, SharewellError, SourceError
from sharewell.query.measure import Measure
from tests.wide.census import AMOUNTS, write_census


@pytest.fixture(autouse=True)
def any_settings(monkeypatch):
    """What is proposed for columns does not depend on the settings: those are in `test_planning.py`."""
    monkeypatch.setattr(render_config, "propose_settings", lambda *_: Settings(delta="1e-6"))


def write_csv(path: Path, columns: dict[str, list[Any]]) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
    return path


def init(source: Path, **options: Any) -> tuple[Config, str]:
    """The proposal for a file, beside it, which must be one that Sharewell reads and can serve."""
    out, quickly = source.parent / "sharewell.toml", options.pop("quickly", False)
    show_init(str(source), str(out), options.pop("force", False), **options)
    assert quickly or show_check(str(out), True)
    return read_config(out), out.read_text(encoding="utf-8")


def left_out(text: str) -> dict[str, str]:
    return dict(re.findall(r"^# (.*) is left out: (.*)\. To use it", text, flags=re.MULTILINE))


def line_of(text: str, start: str) -> str:
    return next(line for line in text.split("\n") if line.startswith(start))


ROWS = 400


def people(rows: int = ROWS) -> dict[str, list[Any]]:
    rng = np.random.default_rng(7)
    return {
        "person_id": [f"p{n:05}" for n in range(rows)],
        "age": rng.integers(3, 95, rows).tolist(),
        "fee": [round(float(fee), 2) for fee in rng.exponential(80, rows)],
        "ward": [["north", "south", ""][n % 3] for n in range(rows)],
        "zip": [f"0213{n % 10}" for n in range(rows)],
        "emergency": ["yes" if n % 5 else "no" for n in range(rows)],
        "admitted": [str(dt.date(2024, 2, 10) + dt.timedelta(days=int(n % 200))) for n in range(rows)],
        "note": [f"note {n % 7} " * 12 for n in range(rows)],
        "street": [f"street {n % 90}" for n in range(rows)],
        "nothing": [""] * rows,
    }


def test_columns_of_a_csv_file_become_what_they_hold(tmp_path):
    config, text = init(write_csv(tmp_path / "Visits of 2024.csv", people()))
    assert config.name == "visits_of_2024"
    fee: Any = config.domain["fee"]
    assert config.domain.attributes == (
        Integer("age", 0, 99),
        Binned("fee", [*range(0, 100 * len(fee.cuts), 100)]),
        Category("ward", ["north", "south"], nullable=True, other="other"),
        Category("zip", [f"0213{n}" for n in range(10)], other="other"),
        Boolean("emergency"),
        Date("admitted", "2024-02-01", "2024-08-31", by="month"),
    )
    reasons = left_out(text)
    assert "identifier" in reasons["person_id"]
    assert "free text" in reasons["note"]
    assert "more than 50" in reasons["street"]
    assert "no row has a value" in reasons["nothing"]


def test_whatever_was_taken_from_rows_is_marked_for_review(tmp_path):
    config, text = init(write_csv(tmp_path / "people.csv", people()), quickly=True)
    assert "The domain must be public" in text
    for start in ("low", "high", "cuts", "categories", "start", "end", "population", "nullable"):
        found = [line for line in text.split("\n") if line.startswith(f"{start} = ")]
        assert all("# REVIEW: " in line for line in found), start
        assert found or start in ("low", "high")
    assert len(review_lines(text)) == text.count("REVIEW: ")
    assert config.text == text


def test_every_setting_has_a_comment_that_says_what_it_does(tmp_path):
    _, text = init(write_csv(tmp_path / "people.csv", people()), quickly=True)
    bare = [line for line in text.split("\n") if re.match(r"[a-z_]+ = ", line) and "# " not in line]
    assert bare == []
    for table in (
        "dataset",
        "budget",
        "analysts.ann",
        "analysts.ben",
        "mechanism",
        "scheduler",
        "service",
    ):
        assert f"[{table}]" in text
    assert "1/5 is kept" in text


def test_the_number_of_rows_is_only_told_roughly(tmp_path):
    _, text = init(write_csv(tmp_path / "people.csv", {"age": [n % 7 for n in range(1_234)]}))
    assert line_of(text, "population").startswith("population = 1_200 ")
    assert "1234" not in text
    assert "1_234" not in text


def test_the_bundled_table_is_described_whole(tmp_path):
    bundled = Path(datasets.__file__).parent / "massachusetts.parquet"
    show_init(str(bundled), str(tmp_path / "ma.toml"), False)
    config, text = read_config(tmp_path / "ma.toml"), (tmp_path / "ma.toml").read_text()
    assert config.domain.names == tuple(pq.read_schema(bundled).names)
    assert left_out(text) == {}
    assert f"# {config.domain.cells:,} cells" in text


def _copy(table: pa.Table, path: Path) -> Path:
    pq.write_table(table, path)
    return path


def test_typed_columns_of_a_parquet_file_become_what_they_hold(tmp_path):
    rows = 60
    table = pa.table(
        {
            "visits": pa.array([n % 30 for n in range(rows)], pa.int16()),
            "whole": pa.array([float(n % 4) if n else None for n in range(rows)], pa.float64()),
            "rate": pa.array([n / 7 if n % 9 else float("nan") for n in range(rows)], pa.float32()),
            "ok": pa.array([bool(n % 2) for n in range(rows)]),
            "at": pa.array([dt.datetime(2020 + n % 5, 3, 4, tzinfo=dt.UTC) for n in range(rows)]),
            "tags": pa.array([[n] for n in range(rows)]),
            "id": pa.array(range(rows), pa.int64()),
            "customer_id": pa.array([n % 40 * 1000 for n in range(rows)], pa.int64()),
            "huge": pa.array([1e305 if n else -1.0 for n in range(rows)]),
            "infinite": pa.array([float("inf") if n % 2 else 1.5 for n in range(rows)]),
            "same": pa.array([5.5] * rows),
            "nulls": pa.array([None] * rows, pa.null()),
        }
    )
    config, text = init(_copy(table, tmp_path / "typed.parquet"))
    assert config.domain.attributes == (
        Integer("visits", 0, 29),
        Integer("whole", 0, 3, nullable=True),
        Binned("rate", [*range(10)], nullable=True),
        Boolean("ok"),
        Date("at", "2020-03-01", "2024-03-31", by="month"),
        Binned("infinite", [1, 2], nullable=True),
        Binned("same", [5, 6]),
    )
    reasons = left_out(text)
    assert set(reasons) == {"tags", "id", "customer_id", "huge", "nulls"}
    assert "its name looks like" in reasons["customer_id"]
    assert "ARRAY" in reasons["tags"] or "LIST" in reasons["tags"]
    assert 'privacy_unit = "id"' in text


def test_a_table_of_a_database_is_described(tmp_path):
    file = tmp_path / "all.duckdb"
    with duckdb.connect(str(file)) as database:
        database.execute("CREATE TABLE one AS SELECT range % 5 AS a FROM range(100)")
        database.execute("CREATE TYPE mood AS ENUM ('happy', 'sad')")
        database.execute("CREATE TABLE two AS SELECT 'sad'::mood AS m, uuid() AS u FROM range(100)")
    with pytest.raises(SourceError, match="has 2 tables"):
        show_init(str(file), str(tmp_path / "sharewell.toml"), False)
    config, text = init(file, table="two")
    assert (config.table, config.domain.names) == ("two", ("m",))
    assert "UUID" in left_out(text)["u"]
    assert "happy" not in text


ODD_NAMES = [
    'say "hi"',
    "back\\slash",
    "two\nlines",
    "naïve ☃",
    "a.b",
    "# REVIEW: x",
    "'",
    "\x7f",
    " ",
    "",
]


def test_odd_names_and_values_are_written_so_that_they_are_read_back(tmp_path):
    values = ['"', "'", "\\", "# REVIEW: y", "tab\t", "☃", "a\u2028b", "\x7f", "]", ", "]
    columns = {name: [values[n % len(values)] for n in range(40)] for name in ODD_NAMES}
    table = pa.table(columns)
    config, text = init(_copy(table, tmp_path / "odd.parquet"))
    attributes: Any = config.domain.attributes
    assert [attribute.name for attribute in attributes] == [name for name in ODD_NAMES if name.strip()]
    assert all(attribute.categories == tuple(sorted(values)) for attribute in attributes)
    assert len(review_lines(text)) == 3 + len(attributes)


def test_columns_that_only_case_tells_apart_and_repeated_ones_are_left_out(tmp_path):
    source = tmp_path / "people.csv"
    source.write_text("age,Age,sex,sex\n" + "1,2,f,m\n3,4,m,f\n" * 20)
    config, text = init(source)
    assert config.domain.names == ("age",)
    assert "ignores the case" in left_out(text)["Age"]
    assert "more than one column" in left_out(text)["sex"]


def test_mixed_texts_are_no_numbers(tmp_path):
    columns = {
        "mixed": ["1", "2.5", "x", "2024-01-01", ""] * 10,
        "f": ["f", ""] * 25,
        "t": ["t", "F"] * 25,
    }
    config, _ = init(write_csv(tmp_path / "mixed.csv", columns))
    assert config.domain.attributes == (
        Category("mixed", ["1", "2.5", "2024-01-01", "x"], nullable=True, other="other"),
        Category("f", ["f"], nullable=True, other="other"),
        Boolean("t"),
    )


def days(rows: int) -> list[str]:
    return [str(dt.date(2024, 2, 10) + dt.timedelta(days=n % 200)) for n in range(rows)]


def test_a_few_odd_values_do_not_spoil_a_column(tmp_path):
    columns: dict[str, list[Any]] = {
        "age": [n % 90 for n in range(ROWS)],
        "visits": [n % 5 for n in range(ROWS)],
        "fee": ["" if n % 9 == 1 else n % 90 + 0.25 for n in range(ROWS)],
        "admitted": days(ROWS),
    }
    columns["age"][3] = columns["visits"][7] = "secretive"
    columns["fee"][0] = columns["fee"][2] = columns["admitted"][5] = "01/12/2024"
    config, text = init(write_csv(tmp_path / "people.csv", columns))
    assert config.domain.attributes == (
        Integer("age", 0, 89, other="other"),
        Integer("visits", 0, 4, other="other"),
        Binned("fee", [*range(0, 100, 10)], nullable=True, other="other"),
        Date("admitted", "2024-02-01", "2024-08-31", by="month", other="other"),
    )
    odd = [line.partition("REVIEW: ")[2] for line in text.split("\n") if line.startswith("other")]
    assert [reason.partition(" of ")[0] for reason in odd] == [
        *("1 value is", "1 value is", "2 values are", "1 value is")
    ]
    assert "secretive" not in text
    assert "01/12" not in text


def test_odd_values_are_counted_where_the_proposal_says(tmp_path):
    ages: list[Any] = [n % 90 for n in range(ROWS)]
    ages[:3] = ["unknown", "12.x", ""]
    config, _ = init(write_csv(tmp_path / "people.csv", {"age": ages}), quickly=True)
    counts = dict(zip(config.domain["age"].labels, config.vector().counts, strict=True))
    assert (counts["other"], counts[None], sum(counts.values())) == (2, 1, ROWS)


@pytest.mark.parametrize(
    ("odd", "good", "empty", "read"),
    [
        (1, 20, 0, True),
        (1, 19, 0, False),
        (0, 2, 0, True),
        (5, 95, 0, True),
        (6, 94, 0, False),
        (1, 20, 50, True),
        (0, 20, 50, True),
        (0, 19, 50, False),
    ],
)
def test_nearly_all_means_95_in_100_of_20_or_more_that_are_not_empty(tmp_path, odd, good, empty, read):
    strays, blanks = ["x"] * odd, ["", " \t"] * (empty // 2)
    table = pa.table(
        {
            "number": [str(2 + n % 9) for n in range(good)] + strays + blanks,
            "day": ["2024-02-10"] * good + strays + blanks,
        }
    )
    config, text = init(_copy(table, tmp_path / "few.parquet"), quickly=True)
    expected = [Integer, Date] if read else [Category, Category]
    assert [type(attribute) for attribute in config.domain.attributes] == expected
    # Empty texts are no NULL, and so go to the same cell.
    told = re.findall(r"REVIEW: (\d+) values? (?:is|are) of another kind", text)
    assert told == [str(odd + empty)] * 2 * (read and odd + empty > 0)


def test_too_many_odd_values_leave_a_column_out_as_ever(tmp_path):
    ages = [f"about {n}" if n % 10 == 0 else n % 90 for n in range(ROWS)]
    columns: dict[str, list[Any]] = {"age": ages, "sex": ["f", "m"] * (ROWS // 2)}
    config, text = init(write_csv(tmp_path / "people.csv", columns), quickly=True)
    assert config.domain.names == ("sex",)
    assert "more than 50" in left_out(text)["age"]


def test_codes_are_no_numbers_even_among_odd_values(tmp_path):
    codes = [f"0213{n % 10}" for n in range(ROWS - 1)]
    config, _ = init(write_csv(tmp_path / "codes.csv", {"zip": [*codes, "?"]}), quickly=True)
    assert config.domain["zip"] == Category("zip", sorted({*codes, "?"}), other="other")


@pytest.mark.parametrize(
    ("values", "told"),
    [(["north", "North"], True), (["south", "south "], True), (["north", "south"], False)],
)
def test_categories_that_only_case_or_white_space_tells_apart_are_told_of(tmp_path, values, told):
    config, text = init(write_csv(tmp_path / "wards.csv", {"ward": values * 20}), quickly=True)
    assert config.domain["ward"] == Category("ward", sorted(values), other="other")
    before = text.partition("\n[attributes.ward]")[0].rpartition("\n")[2]
    assert before.startswith("# REVIEW: some categories differ only in case or white space") == told
    assert len(review_lines(text)) == text.count("REVIEW: ")


def test_codes_for_missing_values_do_not_widen_the_bounds(tmp_path):
    columns: dict[str, list[Any]] = {
        "age": [n % 90 for n in range(ROWS)],
        "income": [n % 90 * 1_000 + 0.5 for n in range(ROWS)],
        "score": [n % 5 + 1 for n in range(ROWS)],
        "admitted": days(ROWS),
    }
    columns["age"][:3] = [-1, 999, 998]
    columns["income"][0] = 9_999_999
    columns["score"][:40] = [9999] * 40
    columns["admitted"][0] = "9999-12-31"
    config, text = init(write_csv(tmp_path / "people.csv", columns))
    assert config.domain.attributes == (
        Integer("age", 0, 89, other="other"),
        Binned("income", [*range(0, 100_000, 10_000)], other="other"),
        Integer("score", 1, 5, other="other"),
        Date("admitted", "2024-02-01", "2024-08-31", by="month", other="other"),
    )
    told = re.findall(r"REVIEW: (.* looks? like .*?);", text)
    assert told == [
        "-1 and 999 look like codes for a missing value",
        "9999999 looks like a code for a missing value",
        "9999 looks like a code for a missing value",
        "9999-12-31 looks like a code for a missing value",
    ]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([n % 100 for n in range(ROWS)], Integer("n", 0, 99)),
        ([n % 3 - 1 for n in range(ROWS)], Integer("n", -1, 1)),
        ([n % 40 - 9 for n in range(ROWS)], Integer("n", -10, 39)),
        ([[98, 99][n % 2] for n in range(ROWS)], Integer("n", 98, 99)),
        (
            [f"{1900 + n % 90}-01-01" for n in range(ROWS)],
            Date("n", "1900-01-01", "1989-12-31", by="year"),
        ),
    ],
)
def test_values_that_only_resemble_codes_are_kept(tmp_path, values, expected):
    config, text = init(write_csv(tmp_path / "people.csv", {"n": values}), quickly=True)
    assert config.domain["n"] == expected
    assert "like a code" not in text


def test_rare_and_misspelt_values_are_counted_as_other_and_not_written_down(tmp_path):
    cities = ["Boston", "Lowell"] * 2_000
    cities[:12] = [*["Bosten"] * 4, *["boston "] * 5, *["Atlantis"] * 2, "Boston"]
    zips = [f"0213{n % 2}" for n in range(4_000)]
    zips[:5] = ["02139"] * 5
    columns = {"city": cities, "zip": zips}
    config, text = init(write_csv(tmp_path / "people.csv", columns), quickly=True)
    assert config.domain["city"] == Category("city", ["Boston", "Lowell"], other="other")
    assert config.domain["zip"] == Category("zip", ["02130", "02131", "02139"], other="other")
    assert "REVIEW: also counts 3 rare or misspelt values of the rows" in text
    assert "Bosten" not in text
    assert "Atlantis" not in text


def test_no_column_is_coarser_for_the_sake_of_the_others(tmp_path, capsys):
    columns = {f"c{n}": [(row * (n + 7)) % 97 for row in range(200)] for n in range(4)}
    columns["sex"] = [row % 2 for row in range(200)]
    config, text = init(write_csv(tmp_path / "wide.csv", columns), quickly=True)
    assert config.domain.shape == (100, 100, 100, 100, 2)
    assert "Coarser" not in text


def test_a_file_with_a_header_and_no_rows_gets_a_form_to_fill_in(tmp_path):
    source = tmp_path / "people.csv"
    source.write_text("age,sex\n")
    config, text = init(source)
    assert config.domain.attributes == (
        Category("age", ["replace me"], other="other"),
        Category("sex", ["replace me"], other="other"),
    )
    assert "no row shows what belongs here" in text
    empty = pa.schema(
        [
            ("n", pa.int8()),
            ("x", pa.float64()),
            ("d", pa.date32()),
            ("b", pa.bool_()),
            ("l", pa.list_(pa.int8())),
        ]
    ).empty_table()
    typed, _ = init(_copy(empty, tmp_path / "typed.parquet"), force=True)
    assert [type(each) for each in typed.domain.attributes] == [Integer, Binned, Date, Boolean]


def test_a_table_of_identifiers_alone_gets_one_form_to_fill_in(tmp_path):
    columns = {"id": [f"x{n}" for n in range(30)], "other": [f"y{n}" for n in range(30)]}
    config, text = init(write_csv(tmp_path / "ids.csv", columns))
    assert config.domain.attributes == (Category("id", ["replace me"], other="other"),)
    assert "x1" not in text
    assert "y1" not in text


@pytest.mark.slow
def test_two_hundred_columns_are_described(tmp_path, capsys):
    columns = {f"c{n}": [row * (n + 1) % (n + 3) for row in range(50)] for n in range(200)}
    show_init(str(write_csv(tmp_path / "wide.csv", columns)), str(tmp_path / "wide.toml"), False)
    config = read_config(tmp_path / "wide.toml")
    reasons = left_out(config.text)
    assert len(reasons) + len(config.domain.names) == 200
    assert {*reasons.values()} == {"all values differ, so it looks like an identifier"}
    assert f"an identifier: {', '.join(reasons)}." in capsys.readouterr().out


def test_the_source_is_found_from_where_the_file_is(tmp_path, monkeypatch):
    (tmp_path / "data").mkdir()
    (tmp_path / "settings").mkdir()
    write_csv(tmp_path / "data" / "people.csv", {"age": [1, 2, 1]})
    monkeypatch.chdir(tmp_path)
    show_init("data/people.csv", "settings/a.toml", False)
    assert Path(read_config("settings/a.toml").source).samefile("data/people.csv")
    show_init(str(tmp_path / "data" / "people.csv"), "settings/b.toml", False)
    assert Path(read_config("settings/b.toml").source).samefile("data/people.csv")


def test_it_says_what_it_wrote_and_what_comes_next(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write_csv(tmp_path / "people.csv", {"age": [1, 2, 1], "name": ["a b c " * 20] * 3})
    show_init("people.csv", "sharewell.toml", False)
    shown = capsys.readouterr().out
    assert "Wrote sharewell.toml: 1 of 2 columns are attributes" in shown
    assert (
        "Left out, since it has texts of more than 60 characters, so it looks like free text: name."
        in shown
    )
    commands = [line.split()[:2] for line in shown.splitlines() if line.startswith("  sharewell")]
    assert commands == [["sharewell", verb] for verb in ("check", "begin", "token", "serve")]


def test_a_file_is_overwritten_only_when_forced_and_never_the_rows(tmp_path):
    source = write_csv(tmp_path / "people.csv", {"age": [1, 2, 1]})
    out = tmp_path / "sharewell.toml"
    out.write_text("mine")
    with pytest.raises(ConfigError, match=r"already exists\. .*--force"):
        show_init(str(source), str(out), False)
    with pytest.raises(SourceError, match="does not exist"):
        show_init(str(tmp_path / "none.csv"), str(out), False)
    assert out.read_text() == "mine"
    show_init(str(source), str(out), True)
    assert read_config(out).domain.names == ("age",)
    before = source.read_bytes()
    (tmp_path / "link.toml").symlink_to(source)
    for target in (source, tmp_path / "link.toml"):
        with pytest.raises(ConfigError, match="would be overwritten"):
            show_init(str(source), str(target), True)
    assert source.read_bytes() == before
    with pytest.raises(ConfigError, match="is a directory"):
        show_init(str(source), str(tmp_path), True)
    with pytest.raises(ConfigError, match="Cannot write"):
        show_init(str(source), str(tmp_path / "no" / "folder.toml"), False)


def test_files_that_are_no_table_are_refused_in_a_sentence(tmp_path):
    files = {
        "missing.csv": (None, "does not exist"),
        "folder.csv": ("", "no .parquet file"),
        "people.xlsx": (b"x", "Cannot read"),
        "none": (b"a,b\n", "file type"),
        "empty.csv": (b"", "the header"),
        "picture.csv": (b"\x89PNG\r\n\x1a\n\x00\x00\xff\xfe,\x01\n\xff\n", "Cannot read"),
        "ragged.csv": (b"a,b\n1,2\n3\n4,5,6\n", "Cannot read"),
        "semicolons.csv": (b"age;sex\n1;f\n2;m\n", "not separated by commas"),
        "tabs.csv": (b"age\tsex\n1\tf\n", "not separated by commas"),
        "fake.parquet": (b"a,b\n1,2\n", "Cannot read"),
        "fake.duckdb": (b"a,b\n1,2\n", "Cannot read"),
        "star*.csv": (b"a\n1\n", "wildcard"),
        "same.csv": (b"a,a\n1,2\n", "same name"),
    }
    for name, (content, message) in files.items():
        path = tmp_path / name
        if content == "":
            path.mkdir()
        elif isinstance(content, bytes):
            path.write_bytes(content)
        with pytest.raises(SourceError) as caught:
            show_init(str(path), str(tmp_path / "sharewell.toml"), False)
        assert message in caught.value.message, name
        assert caught.value.hint, name
    assert not (tmp_path / "sharewell.toml").exists()
    pq.write_table(pa.table({"a": [[1], [2]]}), tmp_path / "lists.parquet")
    with pytest.raises(SourceError, match=r"No column of 'lists.parquet' can be an attribute"):
        show_init(str(tmp_path / "lists.parquet"), str(tmp_path / "sharewell.toml"), False)


VALUES = st.one_of(
    st.lists(st.none() | st.integers(-(2**63), 2**63 - 1), max_size=25),
    st.lists(st.none() | st.integers(-5, 40), max_size=25),
    st.lists(st.none() | st.floats(), max_size=25),
    st.lists(st.none() | st.booleans(), max_size=25),
    st.lists(st.none() | st.dates(), max_size=25),
    st.lists(st.none() | st.text(max_size=8), max_size=25),
    st.lists(
        st.none() | st.sampled_from(["yes", "no", "1", "02", "x", "nan", "2024-02-30", ""]), max_size=25
    ),
)


# An example takes 160 ms: files are written, read by DuckDB and planned for.
@settings(suppress_health_check=[HealthCheck.too_slow], max_examples=30)
@given(columns=st.dictionaries(st.text(max_size=6), VALUES, min_size=1, max_size=4))
def test_whatever_a_table_holds_the_proposal_can_be_read(tmp_path_factory, columns):
    folder = tmp_path_factory.mktemp("any")
    rows = max(len(values) for values in columns.values())
    padded = {name: values + [None] * (rows - len(values)) for name, values in columns.items()}
    try:
        table = pa.table(padded)
        pq.write_table(table, folder / "any.parquet")
    except (pa.ArrowException, UnicodeEncodeError):
        return  # Not a table that could be written at all.
    if not any(name.strip() for name in columns):
        with pytest.raises(SourceError, match="can be an attribute"):
            show_init(str(folder / "any.parquet"), str(folder / "any.toml"), False)
        return
    show_init(str(folder / "any.parquet"), str(folder / "any.toml"), False)
    config = read_config(folder / "any.toml")
    assert set(config.domain.names) <= set(columns)
    # Every row of a described column can be counted: nothing about it is refused.
    assert config.vector() is not None


@given(low=st.floats(-1e300, 1e300), high=st.floats(-1e300, 1e300), bins=st.integers(2, 20))
def test_round_cuts_increase_and_hold_what_they_are_for(low, high, bins):
    low, high = min(low, high), max(low, high)
    cuts = [float(cut) for cut in round_cuts(low, high, bins)]
    assert cuts[0] <= low
    assert high < cuts[-1]
    assert all(a < b for a, b in pairwise(cuts))
    assert 1 <= len(cuts) - 1 <= bins + 2


@given(low=st.integers(-10_000, 10_000), span=st.integers(0, 500))
def test_rounded_bounds_hold_what_they_are_for(low, span):
    start, end = round_bounds(low, low + span)
    assert start <= low
    assert low + span <= end
    assert end - start <= span + 20


@given(st.integers(0, 10**12))
def test_a_rounded_count_has_two_digits_and_is_near(rows):
    rounded = round_count(rows)
    assert abs(rounded - rows) * 20 <= max(rows, 1)
    assert len(str(rounded).rstrip("0")) <= 2


@given(st.dates(), st.dates())
def test_whole_periods_hold_what_they_are_for(one, other):
    low, high = min(one, other), max(one, other)
    for unit in ("day", "month", "quarter", "year"):
        start, end = whole_periods(low, high, unit)
        assert start <= low <= high <= end
        assert start.day == 1
        assert end == dt.date.max or (end + dt.timedelta(days=1)).day == 1


def test_no_error_of_looking_at_a_file_quotes_a_row(tmp_path):
    source = tmp_path / "people.csv"
    source.write_text("age,name\n1,secretive\n2,secretive,secretive\n")
    with pytest.raises(SharewellError) as caught:
        show_init(str(source), str(tmp_path / "sharewell.toml"), False)
    assert "secretive" not in str(caught.value)
    assert caught.value.__context__ is None


def test_a_column_that_is_left_out_comes_with_a_description_of_its_type_that_can_be_used(tmp_path):
    rows = range(3_000)
    columns = {"sex": ["f", "m"] * 1_500, "number": [*rows], "note": [f"note {at}" for at in rows]}
    _, text = init(write_csv(tmp_path / "people.csv", columns))
    assert set(left_out(text)) == {"number", "note"}
    used = re.sub(r"^# (?=\[attributes|type|low|high|categories)", "", text, flags=re.MULTILINE)
    for kind, lines in EXAMPLES.items():
        used += "\n".join(["", f"[attributes.any_{kind}]", f'type = "{kind}"', *lines, ""])
    domain = parse_config(used, tmp_path / "used.toml").domain
    kinds = {attribute.name: type(attribute).__name__.lower() for attribute in domain.attributes}
    own = {"sex": "category", "number": "integer", "note": "category"}
    assert kinds == own | {f"any_{kind}": kind for kind in EXAMPLES}


@pytest.mark.parametrize("written", ["{d:02}.{m:02}.{y}", "{m}/{d}/{y}", "{y}.{m}.{d}", "{d}-{m}-99"])
def test_days_that_are_written_in_another_way_are_told_from_other_texts(tmp_path, written):
    days = [written.format(d=at % 28 + 1, m=at % 12 + 1, y=2000 + at % 20) for at in range(900)]
    source = write_csv(tmp_path / "people.csv", {"sex": ["f", "m"] * 450, "admitted": days})
    assert "written as 2024-12-31" in left_out(init(source)[1])["admitted"]


def test_an_identifier_that_repeats_is_proposed_as_the_privacy_unit(tmp_path, capsys):
    columns = {"sex": ["f", "m"] * 450, "patient_id": [f"p{at // 2}" for at in range(900)]}
    _, text = init(write_csv(tmp_path / "people.csv", columns))
    assert "values repeat" in line_of(text, '# privacy_unit = "patient_id"')
    assert left_out(text)["patient_id"] == "its name looks like that of an identifier"
    assert (
        "Values of patient_id repeat. If they identify people, set privacy_unit"
        in capsys.readouterr().out
    )
    columns["patient_id"] = [f"p{at}" for at in range(900)]
    (tmp_path / "sharewell.toml").unlink()
    _, text = init(write_csv(tmp_path / "people.csv", columns))
    assert "if one person may have several rows" in line_of(text, '# privacy_unit = "patient_id"')


AMOUNT = {"fee": [n % 90 + 0.25 for n in range(ROWS)]}


def test_numbers_in_bins_are_measures_too(tmp_path, capsys):
    columns: dict[str, list[Any]] = {
        "income": [n % 200 * 451 for n in range(ROWS)],
        "age": [n % 90 for n in range(ROWS)],
        "fee": ["" if n == 3 else round(n % 90 * 1.07, 2) for n in range(ROWS)],
        "rate": [n % 90 / 7 for n in range(ROWS)],
        "account": [n % 90 * 10**16 for n in range(ROWS)],
    }
    for name in ("income", "fee", "rate", "account"):
        config, text = init(write_csv(tmp_path / "one.csv", {name: columns[name]}), force=True)
        measures = {measure.name: measure for measure in config.domain.measures}
        expected = {
            "income": Measure("income", "income", 0, 90_000, 1, nullable=False),
            "fee": Measure("fee", "fee", 0, 100, 0.01, nullable=True),
            # Values with many decimals are rounded to a thousandth of their range.
            "rate": Measure("rate", "rate", 0, 14, 0.02, nullable=False),
        }
        assert measures == {key: each for key, each in expected.items() if key == name}
        marked = [line for line in text.split("\n") if re.match("low|high|nullable", line)]
        assert all("# REVIEW: " in line for line in marked)
    # Whole numbers with a cell each are summed exactly without a measure.
    config, _ = init(write_csv(tmp_path / "one.csv", {"age": columns["age"]}), force=True)
    assert config.domain.measures == ()
    capsys.readouterr()
    show_init(str(write_csv(tmp_path / "fee.csv", AMOUNT)), str(tmp_path / "fee.toml"), False)
    assert "Measures, which SUM and AVG use: fee." in capsys.readouterr().out


def test_a_code_for_a_missing_value_in_a_measure_is_pointed_out(tmp_path):
    fees = [9_999_999, *AMOUNT["fee"][1:]]
    config, text = init(write_csv(tmp_path / "fees.csv", {"fee": fees}))
    [measure] = config.domain.measures
    assert measure.low == 0
    assert measure.high == 90
    said = "REVIEW: 9999999 looks like a code for a missing value: it counts as a bound in sums"
    assert said in line_of(text.partition("[measures.fee]")[2], "low")


def test_bounds_far_from_0_get_a_step_that_sums_can_have(tmp_path):
    far = [10**12 + n / 100 for n in range(ROWS)]
    config, _ = init(write_csv(tmp_path / "far.csv", {"far": far}))
    [measure] = config.domain.measures
    assert measure.high / measure.step <= 2**31


def test_many_distinct_texts_are_categories_where_each_has_many_rows(tmp_path):
    streets = [f"street {n % 90:02}" for n in range(90 * 20)]
    config, _ = init(write_csv(tmp_path / "streets.csv", {"street": streets}))
    assert config.domain["street"] == Category("street", sorted({*streets}), other="other")
    fewer = {"street": streets[1:], "sex": ["f"] + ["f", "m"] * 899}
    _, text = init(write_csv(tmp_path / "fewer.csv", fewer), force=True)
    assert left_out(text)["street"] == "it has more than 89 distinct values, so it looks like free text"


def test_columns_can_be_chosen(tmp_path, capsys):
    source = write_csv(tmp_path / "people.csv", people())
    config, text = init(source, columns="ward, AGE,person_id", quickly=True)
    assert config.domain.names == ("age", "ward")
    assert left_out(text) == {"person_id": "all values differ, so it looks like an identifier"}
    assert "2 of 3 columns are attributes" in capsys.readouterr().out
    with pytest.raises(SourceError, match="Unknown column 'wards'") as refused:
        init(source, columns="age,wards", force=True)
    assert "ward" in refused.value.hint


def test_a_terminal_sees_how_far_a_large_file_is_read(tmp_path, monkeypatch, capsys):
    source = write_csv(tmp_path / "people.csv", {"age": [1, 2, 1], "sex": ["f", "m", "f"]})
    show_init(str(source), str(tmp_path / "a.toml"), False)
    monkeypatch.setattr(render_config, "LARGE_FILE", 1)
    show_init(str(source), str(tmp_path / "b.toml"), False)
    assert capsys.readouterr().err == ""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    show_init(str(source), str(tmp_path / "c.toml"), False)
    assert "reading columns" in capsys.readouterr().err


@pytest.mark.parametrize(("rows", "limit"), [(50, "70"), (1_234, "2_000")])
def test_a_wide_table_has_a_limit_of_its_rows(tmp_path, rows, limit):
    columns = {f"c{n}": [row * (n + 1) % 3 for row in range(rows)] for n in range(20)}
    config, text = init(write_csv(tmp_path / "wide.csv", columns), quickly=True)
    assert config.domain.cells > MANY_CELLS
    assert line_of(text, "max_rows").startswith(f"max_rows = {limit} ")
    assert "# REVIEW: " in line_of(text, "max_rows")
    why = text.partition("\n[budget]")[0].split("\n")[-2:]
    assert all(line.startswith("# ") for line in why)


def test_a_delta_is_below_one_in_the_population(tmp_path):
    proposal = propose(write_csv(tmp_path / "people.csv", {"age": [1, 2]}), tmp_path / "sharewell.toml")
    for population, delta in ((300_000, "1e-6"), (1_000_000, "1e-7"), (277_000_000, "1e-9")):
        text = proposal_text(replace(proposal, population=population), Settings())
        assert line_of(text, "# delta").startswith(f"# delta = {delta} ")


@pytest.mark.slow
def test_a_census_file_of_forty_columns_is_proposed_whole_and_checks(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    config, text = init(write_census(tmp_path, 20_000), quickly=True)
    assert len(config.domain.names) == 40
    assert left_out(text) == {}
    assert [measure.name for measure in config.domain.measures] == [*AMOUNTS, "weight"]
    assert {measure.step for measure in config.domain.measures} == {Fraction(1, 100)}
    capsys.readouterr()
    assert show_check(str(tmp_path / "sharewell.toml"), False)
    shown = " ".join(capsys.readouterr().out.split())
    assert "e+40 cells" in shown
    assert re.search(r"2 780 780 [\d.]+ \(\w+, \w+\) [\d.]+ \(\w+, \w+\) 0 -", shown)
    assert re.search(r"3 9,880 0 - - 9,880 [\d.]+", shown)


def test_yes_and_no_are_attributes_and_codes_are_no_measures(tmp_path):
    rows = range(400)
    table = pa.table(
        {
            "member": [n % 2 for n in rows],
            "zip": [10_000 + 137 * (n % 300) for n in rows],
            "pay": [1_000.5 + 37 * (n % 90) for n in rows],
        }
    )
    config, text = init(_copy(table, tmp_path / "people.parquet"), quickly=True)
    kinds = {each.name: type(each) for each in config.domain.attributes}
    assert kinds == {"member": Boolean, "zip": Binned, "pay": Binned}
    assert [measure.name for measure in config.domain.measures] == ["pay"]
    assert "noise grows with them" in text
