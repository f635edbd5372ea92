"""Results as files: what a spreadsheet makes of them."""

import csv
import io
from fractions import Fraction

import pyarrow.parquet
import pytest

from sharewell import wire
from sharewell.service.downloads import to_csv, to_parquet

FORMULAS = ["=1+1", "+1", "-2+3", "@SUM(A1)", "\tx", '=HYPERLINK("x")']


def result(labels, column="label"):
    """One number for each label."""
    number = wire.Number(value=-1.5, standard_error=1.0, interval=(-3.5, 0.5), source="reconstructed")
    columns = (
        wire.ResultColumn(name=column, kind="group"),
        wire.ResultColumn(name="n", kind="number"),
    )
    rows = tuple((label, number) for label in labels)
    return wire.Result(columns=columns, rows=rows, cost=Fraction(0))


@pytest.mark.parametrize("formula", FORMULAS)
def test_no_text_is_a_formula(formula):
    header, row = csv.reader(io.StringIO(to_csv(result([formula], column=formula)).decode(), newline=""))
    assert (header[0], row[0]) == (f"'{formula}", f"'{formula}")
    table = pyarrow.parquet.read_table(io.BytesIO(to_parquet(result([formula]))))
    assert table["label"].to_pylist() == [formula]


def test_other_labels_and_numbers_are_as_they_are():
    labels = ["0-17", "a=b", "'quoted'", "", None]
    _, *rows = csv.reader(io.StringIO(to_csv(result(labels)).decode(), newline=""))
    assert [row[0] for row in rows] == ["0-17", "a=b", "'quoted'", "", ""]
    assert [float(each) for each in rows[0][1:]] == [-1.5, 1.0, -3.5, 0.5]
    _, row = csv.reader(io.StringIO(to_csv(result([-5])).decode(), newline=""))
    assert row[0] == "-5"
