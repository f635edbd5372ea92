"""`sharewell init --unit`: the views that it proposes are accepted, and count what they should."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas
import pytest

from sharewell import Binned, Category, Date, Integer
from sharewell.cli.render_config import show_init_view
from sharewell.config import Config, read_config
from sharewell.config.propose_view import sql_name
from sharewell.config.template import review_lines
from sharewell.engine.view_text import ViewText
from sharewell.errors import ConfigError, SourceError
from tests.cli.commands import refused, said

PEOPLE = 40


def patients() -> pandas.DataFrame:
    people = range(PEOPLE)
    return pandas.DataFrame(
        {
            "person": [f"p{n:03}" for n in people],
            "sex": ["f" if n % 2 else "m" for n in people],
            "age": [n % 7 + 30 for n in people],
            "group": ["a" if n % 3 else "b" for n in people],
        }
    )


def visits() -> pandas.DataFrame:
    """Every second person has n % 5 visits; one visit has no person."""
    rows = [
        {"person": f"p{n:03}", "fee": n + visit + 0.25, "day": f"2024-0{visit + 1}-15", "sex": "f"}
        for n in range(0, PEOPLE, 2)
        for visit in range(n % 5)
    ]
    return pandas.DataFrame([*rows, {"person": None, "fee": 1e6, "day": "2030-01-01", "sex": "f"}])


def write(folder: Path, **tables: pandas.DataFrame) -> list[str]:
    for name, table in tables.items():
        table.to_csv(folder / f"{name}.csv", index=False)
    return [str(folder / f"{name}.csv") for name in tables]


def init(folder: Path, sources: list[str], **options: Any) -> tuple[Config, str]:
    """The proposal, which must be one that Sharewell reads."""
    out = folder / "sharewell.toml"
    show_init_view(sources, "person", str(out), force=True, **options)
    return read_config(out), out.read_text(encoding="utf-8")


def counts(config: Config) -> np.ndarray:
    """The true counts, with an axis for each attribute."""
    sizes = [attribute.size for attribute in config.domain.attributes]
    return config.vector().counts.reshape(*sizes, -1)[..., 0]


def test_two_files_become_a_view_that_counts_what_pandas_counts(tmp_path, capsys):
    config, text = init(tmp_path, write(tmp_path, visits=visits(), patients=patients()))
    assert "one row per person" in capsys.readouterr().out
    assert {name: table.unit for name, table in config.tables.items()} == {
        "patients": "person",
        "visits": "person",
    }
    assert (config.name, config.privacy_unit, config.population) == ("people", "person", PEOPLE)
    kinds = {each.name: type(each) for each in config.domain.attributes}
    assert kinds == {
        "sex": Category,
        "age": Integer,
        "group": Category,
        "visits": Integer,
        "max_fee": Binned,
        "last_day": Date,
    }
    assert [measure.name for measure in config.domain.measures] == ["max_fee"]
    assert counts(config).sum() == PEOPLE
    lines = text.split("\n")
    (view,) = [at for at in review_lines(text) if lines[at - 1].startswith('"""')]
    assert lines[view - 2].endswith("= patients.person")
    at = config.domain.index("visits")
    axes = tuple(n for n in range(len(config.domain.attributes)) if n != at)
    found = counts(config).sum(axis=axes)
    per_person = visits().groupby("person").size().reindex(patients()["person"], fill_value=0)
    expected = per_person.value_counts().to_dict()
    labels = config.domain.attributes[at].labels
    assert {label: count for label, count in zip(labels, found, strict=True) if count} == expected


def test_tables_without_a_row_for_each_person_are_grouped(tmp_path):
    config, _ = init(tmp_path, write(tmp_path, visits=visits()))
    assert config.domain.names == ("visits", "max_fee", "last_day")
    assert config.population == visits()["person"].nunique()


def test_tables_of_a_database_are_named(tmp_path):
    file = tmp_path / "all.duckdb"
    with duckdb.connect(str(file)) as database:
        database.execute("CREATE SCHEMA clinic")
        for name, table in {"patients": patients(), "visits": visits()}.items():
            database.register("frame", table)
            database.execute(f"CREATE TABLE clinic.{name} AS FROM frame")
    with pytest.raises(ConfigError, match="which of its tables"):
        init(tmp_path, [str(file)])
    config, text = init(tmp_path, [str(file)], tables=["clinic.patients", "clinic.visits"])
    assert list(config.tables) == ["clinic_patients", "clinic_visits"]
    assert "max_fee" in config.domain.names
    assert "MAX(fee)" in text


def test_columns_can_be_chosen_and_tables_without_them_are_left_out(tmp_path):
    sources = write(tmp_path, patients=patients(), visits=visits())
    config, _ = init(tmp_path, sources, columns="sex, Visits")
    assert config.domain.names == ("sex", "visits")
    config, _ = init(tmp_path, sources, columns="sex")
    assert list(config.tables) == ["patients"]
    with pytest.raises(SourceError, match="Unknown column 'fee'"):
        init(tmp_path, sources, columns="fee")


def test_names_that_sql_or_toml_would_misread_are_quoted(tmp_path):
    odd = ['say "hi"', "back\\slash", "a.b", "select", "naïve", "# REVIEW: x", "two\nlines"]
    table = patients().assign(**dict.fromkeys(odd, "x"))
    again = patients()[["person", "sex"]]
    config, _ = init(tmp_path, write(tmp_path, order=table, again=again))
    assert config.domain.names == ("sex", "age", "group", *odd[:-1], "again_sex")
    assert counts(config).sum() == PEOPLE


@pytest.mark.parametrize("name", ["fee", "fee in EUR", 'the "fee"', "order", "date", "1st"])
def test_a_quoted_name_is_read_back(name):
    assert ViewText.parse(f"SELECT {sql_name(name)} FROM visits").tree.expressions[0].name == name


def test_what_cannot_be_proposed_is_refused_in_a_sentence(tmp_path):
    districts = pandas.DataFrame({"id": [1, 2], "region": ["north", "south"]})
    sources = write(tmp_path, patients=patients(), districts=districts)
    with pytest.raises(SourceError, match="'districts': Unknown column 'person'"):
        init(tmp_path, sources)
    (tmp_path / "other").mkdir()
    with pytest.raises(ConfigError, match="Two tables are called 'patients'"):
        init(tmp_path, [sources[0], *write(tmp_path / "other", patients=patients())])
    with pytest.raises(ConfigError, match="would be overwritten"):
        show_init_view(sources, "person", sources[1], force=True)


def test_the_command_takes_several_files_and_a_unit(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path, patients=patients(), visits=visits())
    assert "Several tables need --unit" in refused("init", "patients.csv", "visits.csv")
    assert "--table is for one source" in refused("init", "a.csv", "b.csv", "--table", "x")
    assert "Wrote sharewell.toml: 6 of 6 columns" in said(
        "init", "patients.csv", "visits.csv", "--unit", "person"
    )
    assert "sharewell.toml can be served." in said("check")
