"""The bundled table is what its page says."""

import subprocess
import sys
import zipfile
from pathlib import Path

import duckdb

from sharewell import Category, Domain, Integer, datasets
from sharewell.engine.vectorize import vectorize

ROOT = Path(__file__).parents[2]


def test_every_row_of_the_table_has_a_cell():
    people = datasets.massachusetts()
    assert people.vector().counts.sum() == people.population == 277_677
    assert people.vector() is people.vector()
    assert people.vector().domain is people.domain


def test_every_label_of_every_attribute_has_rows():
    people = datasets.massachusetts()
    counts = people.vector().counts.reshape(people.domain.shape)
    for axis, attribute in enumerate(people.domain.attributes):
        others = tuple(i for i in range(counts.ndim) if i != axis)
        assert counts.sum(axis=others).all(), attribute.name


def test_the_counts_are_those_of_the_survey():
    people = datasets.massachusetts()
    counts = people.vector().counts.reshape(people.domain.shape)
    assert counts.sum(axis=(0, 2, 3, 4, 5)).tolist() == [144_019, 133_658]
    assert counts.sum(axis=(0, 1, 3, 4, 5)).tolist() == [226_569, 16_793, 506, 17_479, 96, 8_491, 7_743]
    assert counts.sum(axis=(0, 1, 2, 3, 5)).tolist() == [113_995, 13_955, 22_077, 3_377, 124_273]
    assert counts.sum(axis=(0, 1, 2, 3, 4)).tolist() == [241_858, 35_819]


def test_nobody_under_three_went_to_school():
    people = datasets.massachusetts()
    by_age = people.vector().counts.reshape(people.domain.shape).sum(axis=(1, 2, 4, 5))
    assert by_age[:3, 1:].sum() == 0
    assert by_age[:3, 0].sum() == 7_237


def test_movers_by_age_have_86_cells_and_none_under_one_year_old():
    movers = datasets.movers_by_age()
    assert movers.domain.names == ("age",)
    assert movers.domain.size == 86
    assert movers.counts.sum() == 35_819
    assert movers.counts[0] == 0
    assert (movers.counts[1:] > 0).all()


def test_the_columns_beyond_the_domain_can_be_counted_too():
    domain = Domain(
        [
            Integer("year", 2015, 2018),
            Category("citizenship", ["born a citizen", "naturalized", "not a citizen"]),
        ]
    )
    counts = vectorize(datasets.massachusetts().path, domain).counts.reshape(domain.shape)
    assert counts.sum(axis=1).tolist() == [68_785, 69_126, 69_635, 70_131]
    assert counts.sum(axis=0).tolist() == [237_344, 22_584, 17_749]


def test_the_page_names_every_column_and_every_label():
    page = (ROOT / "src/sharewell/datasets/README.md").read_text(encoding="utf-8")
    people = datasets.massachusetts()
    with duckdb.connect() as connection:
        columns = connection.execute("DESCRIBE FROM read_parquet($1)", [str(people.path)]).fetchall()
    assert all(f"`{name}`" in page for name, *_ in columns)
    categories = [a for a in people.domain.attributes if isinstance(a, Category)]
    assert all(label in page for attribute in categories for label in attribute.values)


def test_the_provenance_is_told_wherever_the_table_is():
    page = (ROOT / "src/sharewell/datasets/README.md").read_text(encoding="utf-8")
    for words in (
        "US Census Bureau",
        "American Community Survey",
        "Massachusetts, 2015 to 2018",
        "nannyml 0.13.1",
    ):
        assert words in datasets.massachusetts().provenance
        assert words in page


def test_the_table_is_small_and_in_the_wheel(tmp_path):
    assert datasets.massachusetts().path.stat().st_size < 2_000_000
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", tmp_path, ROOT],
        check=True,
        capture_output=True,
    )
    (wheel,) = tmp_path.glob("*.whl")
    assert "sharewell/datasets/massachusetts.parquet" in zipfile.ZipFile(wheel).namelist()
