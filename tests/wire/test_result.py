"""Results: how they print, how rows are looked up, and what frames they make."""

import json
import math
import re
import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction
from html.parser import HTMLParser
from operator import attrgetter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from sharewell.errors import NotFound, RequestError, SharewellError
from sharewell.wire import Number, Result, ResultColumn
from sharewell.wire.frames import as_columns
from sharewell.wire.html import WIDTH, Scale
from sharewell.wire.result import MAX_ROWS_SHOWN
from sharewell.wire.text import format_amount, format_estimate, format_number


def est(value, half=None, source="measured") -> Number:
    if half is None or value is None:
        return Number(value=value, source=source)
    interval = (value - half, value + half)
    return Number(value=value, standard_error=half / 2, interval=interval, source=source)


def table(names, grouped, rows, cost="1/100", **more) -> Result:
    columns = [
        {"name": name, "kind": "group" if group else "number"}
        for name, group in zip(names, grouped, strict=True)
    ]
    return Result.model_validate({"columns": columns, "rows": rows, "cost": cost, **more})


def html(result: Result) -> str:
    page = result._repr_html_()
    assert page is not None
    return page


BY_AGE = table(
    ("age_group", "COUNT(*)"),
    (True, False),
    [("0-17", est(1200.4, 28)), ("18-64", est(-3.2, 28.0)), (None, est(64.0, 28, "cached"))],
)
TWO_BY_TWO = table(
    ("sex", "n", "moved", "AVG(age)"),
    (True, False, True, False),
    [("F", est(10.0, 4), True, est(41.2)), ("M", est(20.0, 4), False, est(None))],
    cost="0",
)


class TestOneNumber:
    NUMBER = Number(value=6231.4, standard_error=14.3, interval=(6203.4, 6259.4), source="measured")
    ANSWER = table(("n",), (False,), [[NUMBER]])

    def test_it_has_what_its_number_has(self):
        assert self.ANSWER.is_scalar
        assert (self.ANSWER.value, self.ANSWER.standard_error) == (6231.4, 14.3)
        assert (self.ANSWER.interval, self.ANSWER.source) == ((6203.4, 6259.4), "measured")
        assert self.ANSWER.cost == Fraction(1, 100)
        assert list(self.ANSWER) == [(self.NUMBER,)]
        assert self.ANSWER._repr_html_() is None
        assert self.ANSWER.to_pandas().n_low.tolist() == [6203.4]

    def test_it_reads_as_a_person_would_write_it(self):
        assert repr(self.ANSWER) == "6,231 ± 28 (95 %), measured, cost 1/100"
        assert str(self.ANSWER) == "6,231 ± 28 (95 %)"

    def test_it_is_a_number_where_one_is_needed(self):
        assert float(self.ANSWER) == 6231.4
        assert int(self.ANSWER) == 6231
        assert int(est(2.7)) == 3
        assert int(est(-2.7)) == -3
        assert f"{self.ANSWER:.2f}" == "6231.40"
        assert f"{self.ANSWER}" == "6,231 ± 28 (95 %)"

    def test_null_is_no_number_and_says_so(self):
        null = est(None)
        assert str(null) == "NULL"
        for make in (float, int, lambda each: f"{each:.1f}"):
            with pytest.raises(RequestError, match="NULL"):
                make(null)

    def test_one_that_cost_nothing_is_free(self):
        free = table(("n",), (False,), [[est(1.0, source="cached")]], cost="0")
        assert repr(free) == "1 ± ?, cached, free"


class TestReading:
    COLUMNS = (ResultColumn(name="sex", kind="group"), ResultColumn(name="n", kind="number"))

    def told(self, columns, *rows):
        sent = Result(columns=columns, rows=rows, cost=Fraction(1, 50), paid_by="ann")
        return Result.model_validate_json(sent.model_dump_json())

    def test_one_number_is_an_answer(self):
        number = Number(value=3.5, interval=(-math.inf, 9.0), source="synthetic")
        answer = self.told(self.COLUMNS[1:], (number,))
        assert answer.is_scalar
        assert (answer.value, answer.interval) == (3.5, (-math.inf, 9.0))
        assert (answer.cost, answer.paid_by) == (Fraction(1, 50), "ann")

    def test_json_has_amounts_as_text_and_infinite_ends_as_null(self):
        number = Number(value=3.5, interval=(-math.inf, 9.0), source="synthetic")
        sent = Result(columns=self.COLUMNS[1:], rows=((number,),), cost=Fraction(1, 50))
        for content in (json.loads(sent.model_dump_json()), sent.model_dump(mode="json")):
            assert json.dumps(content, allow_nan=False)
            assert content["cost"] == "1/50"
            assert list(content["rows"][0][0]["interval"]) == [None, 9.0]
            assert content.keys() == {"columns", "rows", "cost", "paid_by", "notes"}

    @pytest.mark.parametrize("cost", ["1/0", "much", 0.1, None, [1]])
    def test_what_is_no_exact_amount_is_invalid(self, cost):
        with pytest.raises(ValidationError):
            Result.model_validate({"columns": [], "rows": [], "cost": cost})

    @pytest.mark.parametrize("rows", [[["F"]], [["F", "many"]], [["F", None]], [["F", {}, {}]]])
    def test_rows_that_do_not_fit_the_columns_are_invalid(self, rows):
        columns = [column.model_dump() for column in self.COLUMNS]
        sent = json.dumps({"columns": columns, "rows": rows, "cost": "0"})
        with pytest.raises(ValidationError):
            Result.model_validate_json(sent)

    def test_groups_are_a_table_though_there_is_only_one(self):
        number = Number(value=3.0, source="measured")
        found = self.told(self.COLUMNS, ("F", number))
        assert not found.is_scalar
        assert found.rows == (("F", number),)
        assert (found.cost, found.paid_by, found.column_names) == (Fraction(1, 50), "ann", ("sex", "n"))

    def test_a_number_that_having_has_removed_leaves_an_empty_table(self):
        found = self.told(self.COLUMNS[1:])
        assert not found.is_scalar
        assert len(found) == 0
        assert "0 rows" in repr(found)
        assert "0 rows" in html(found)

    @pytest.mark.parametrize("label", ["F", "", None, True, 0, 17])
    def test_a_label_comes_through_as_it_is(self, label):
        number = Number(value=3.0, source="measured")
        found = self.told(self.COLUMNS, (label, number))
        assert found.labels == [label]
        assert type(found.labels[0]) is type(label)


class TestLookingUp:
    def test_a_row_is_found_by_its_label(self):
        assert BY_AGE["0-17"].value == 1200.4
        assert BY_AGE[None].source == "cached"
        assert "18-64" in BY_AGE
        assert "18" not in BY_AGE

    def test_several_labels_are_a_tuple_and_several_numbers_a_dict(self):
        assert TWO_BY_TWO["F", True] == {"n": est(10.0, 4), "AVG(age)": est(41.2)}
        assert TWO_BY_TWO.labels == [("F", True), ("M", False)]

    def test_a_table_is_no_number_and_says_how_to_find_one(self):
        parts = map(attrgetter, ("value", "standard_error", "interval", "source"))
        readers: list[Callable[[Any], Any]] = [float, int, "{:.1f}".format, *parts]
        for read in readers:
            with pytest.raises(RequestError, match=r"a table of 3 rows and 2 columns, not one number"):
                read(BY_AGE)
        assert not hasattr(BY_AGE, "source")
        assert getattr(BY_AGE, "value", None) is None

    def test_rows_can_be_unpacked(self):
        assert [(group, int(count)) for group, count in BY_AGE] == [
            ("0-17", 1200),
            ("18-64", -3),
            (None, 64),
        ]

    @pytest.mark.parametrize(
        ("label", "hint"),
        [
            ("18-46", "Did you mean '18-64'?"),
            (99, "The labels are '0-17', '18-64', None."),
            ("None", "Did you mean None?"),
            ("NULL", "Did you mean None?"),
        ],
    )
    def test_a_label_that_is_not_there_is_told_with_those_that_are(self, label, hint):
        with pytest.raises(NotFound, match=re.escape(f"No row has the label {label!r}. {hint}")):
            _ = BY_AGE[label]

    def test_what_cannot_be_a_label_is_not_there(self):
        with pytest.raises(NotFound):
            _ = BY_AGE[["0-17"]]


class TestText:
    def test_notes_come_last(self):
        note = "The largest tend to be too large."
        noted = BY_AGE.model_copy(update={"notes": (note,)})
        assert repr(noted) == f"{BY_AGE!r}\n{note}"
        assert f"<br>{note}</caption>" in html(noted)
        one = table(("n",), (False,), [[est(1.0)]], notes=[note])
        assert repr(one).splitlines()[1:] == [note]

    def test_a_table_is_aligned(self):
        assert repr(BY_AGE).splitlines() == [
            "age_group    COUNT(*)",
            "─────────  ──────────",
            "0-17       1,200 ± 28",
            "18-64         -3 ± 28",
            "NULL          64 ± 28",
            "(3 rows, measured, cached, cost 1/100)",
        ]

    def test_of_many_rows_the_first_are_shown(self):
        many = table(
            ("age", "n"), (True, False), [(age, est(1.0, 2)) for age in range(MAX_ROWS_SHOWN + 2)]
        )
        lines = repr(many).splitlines()
        assert len(lines) == 2 + MAX_ROWS_SHOWN + 2
        assert lines[-2:] == ["… and 2 more rows", "(52 rows, measured, cost 1/100)"]
        assert "… and 2 more rows" in html(many)
        assert html(many).count("<svg") == MAX_ROWS_SHOWN

    @given(st.floats(-1e15, 1e15), st.floats(1e-6, 1e12))
    def test_a_number_is_shown_no_more_wrongly_than_a_tenth_of_its_error(self, value, give):
        shown = float(format_number(value, give).replace(",", ""))
        assert abs(shown - value) <= 0.1 * give + 1e-9 or give > 9
        assert abs(shown - value) <= max(0.5, 0.1 * give) + 1e-9

    @pytest.mark.parametrize(
        ("value", "interval", "text"),
        [
            (-0.2, (-28.2, 27.8), "0 ± 28 (95 %)"),
            (5.0, (-math.inf, math.inf), "5 ± ?"),
            (5.0, (5.0, 5.0), "5 ± 0 (95 %)"),
            (0.5, (0.49, 0.51), "0.500 ± 0.010 (95 %)"),
            (10.0, (4.0, 28.0), "10 (4 to 28, 95 %)"),
            (1234567.25, None, "1.23457e+06 ± ?"),
        ],
    )
    def test_intervals_of_all_kinds(self, value, interval, text):
        assert format_estimate(value, interval) == text

    def test_amounts_that_nobody_could_read_are_shown_as_decimals(self):
        assert format_amount(Fraction(1, 3)) == "1/3"
        assert format_amount(Fraction(24355970357, 10**12)) == "0.02436"


class Reader(HTMLParser):
    """All tags, attributes and texts of a page; every tag must be closed in order."""

    VOID = frozenset({"br"})

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.texts: list[str] = []
        self.open: list[str] = []
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)


class TestHtml:
    @given(st.text(max_size=20), st.text(max_size=20))
    def test_labels_and_names_are_texts_whatever_they_hold(self, name, label):
        page = Reader(html(table((name, "n"), (True, False), [(label, est(3.0, 2))])))
        plain = Reader(html(table(("x", "n"), (True, False), [("y", est(3.0, 2))])))
        assert page.tags == plain.tags

    def test_a_script_in_a_label_stays_a_text(self):
        rows = [("<script>", est(1.0, 2, "'><b>"))]
        page = Reader(html(table(("<script>", "'\"><img onerror=x>"), (True, False), rows)))
        assert not {"script", "img", "b"} & set(page.tags)
        assert not any(name.startswith("on") for name, _ in page.attributes)
        assert "<script>" in page.texts

    def test_colours_are_the_pages_own(self):
        page = html(BY_AGE)
        assert "currentColor" in page
        assert "#000" not in page
        assert "black" not in page

    def test_every_number_has_a_picture_and_null_has_none(self):
        assert html(BY_AGE).count("<svg") == 3
        assert html(TWO_BY_TWO).count("<svg") == 3

    @given(st.lists(st.tuples(st.floats(-1e9, 1e9), st.floats(0, 1e9)), min_size=1, max_size=9))
    def test_everything_is_drawn_within_the_picture_and_in_order(self, pairs):
        scale = Scale.of([est(value, half) for value, half in pairs])
        for value, half in pairs:
            low, middle, high = (scale.at(each) for each in (value - half, value, value + half))
            assert 0 <= low <= middle <= high <= WIDTH
        assert scale.low <= 0 <= scale.high

    def test_what_is_infinite_ends_at_the_edge(self):
        column = [Number(value=5.0, interval=(-math.inf, math.inf), source="reconstructed")]
        scale = Scale.of(column)
        assert (scale.low, scale.high) == (0, 5)
        assert scale.at(-math.inf) == scale.at(0)
        assert scale.at(math.inf) == scale.at(5)


class TestFrames:
    NAMES = (
        "sex",
        "moved",
        "n",
        "n_error",
        "n_low",
        "n_high",
        "avg_age",
        "avg_age_error",
        "avg_age_low",
        "avg_age_high",
    )

    def test_pandas(self):
        frame = TWO_BY_TWO.to_pandas()
        assert tuple(frame.columns) == self.NAMES
        assert frame.n.tolist() == [10, 20]
        assert frame.n_error.tolist() == [2, 2]
        assert frame.n_low.tolist() == [6, 16]
        assert frame.n_high.tolist() == [14, 24]
        assert frame.moved.tolist() == [True, False]
        assert {str(frame[name].dtype) for name in self.NAMES[2:]} == {"float64"}
        assert frame.avg_age_error.isna().all()

    def test_polars(self):
        import polars

        frame = TWO_BY_TWO.to_polars()
        assert tuple(frame.columns) == self.NAMES
        assert frame["n_high"].to_list() == [14, 24]
        assert frame["avg_age"].to_list() == [41.2, None]
        assert {frame.schema[name] for name in self.NAMES[2:]} == {polars.Float64()}

    def test_arrow(self):
        found = TWO_BY_TWO.to_arrow()
        assert tuple(found.column_names) == self.NAMES
        assert found.column("n_low").to_pylist() == [6, 16]
        assert str(found.schema.field("avg_age_low").type) == "double"

    @pytest.mark.parametrize("make", ["to_pandas", "to_polars", "to_arrow"])
    def test_an_empty_table_and_labels_of_two_kinds_make_frames_too(self, make):
        for rows in ([], [(17, est(1.0)), ("other", est(2.0)), (None, est(3.0))]):
            frame = getattr(table(("age", "n"), (True, False), rows), make)()
            assert len(frame) == len(rows)

    def test_names_that_are_taken_get_a_number(self):
        labels, numbers = as_columns(
            table(
                ("n_error", "n", "COUNT(*)", "COUNT(*)"),
                (True, False, False, False),
                [("x", est(1.0), est(2.0), est(3.0))],
            )
        )
        assert labels == {"n_error": ["x"]}
        assert numbers["n_2"] == [1.0]
        assert numbers["count"] == [2.0]
        assert numbers["count_2_error"] == [None]
        assert len(numbers) == 12

    @pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
    def test_a_missing_library_is_named_with_the_extra_that_has_it(self, library, monkeypatch):
        monkeypatch.setitem(sys.modules, library, None)
        make = getattr(BY_AGE, {"pyarrow": "to_arrow"}.get(library, f"to_{library}"))
        with pytest.raises(SharewellError, match=rf"package {library}.*sharewell\[dataframes\]"):
            make()


def test_the_client_brings_no_large_library_that_it_does_not_need():
    """In a process of its own: this one has everything."""
    heavy = ["pandas", "polars", "pyarrow", "typer", "duckdb", "opendp", "fastapi"]
    code = f"import sys, sharewell.client; print([name for name in {heavy} if name in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
