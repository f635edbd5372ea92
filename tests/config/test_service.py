"""The service table: its defaults, its keys, and what every mistake is told."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest

from sharewell.config import Service, parse_config, read_config
from sharewell.config.section import validate_person, validate_table
from sharewell.errors import ConfigError
from tests.config.test_config import SMALL

ROOT = Path(__file__).parents[2]


def with_service(lines: str) -> str:
    return f"{SMALL}\n[service]\n{lines}\n"


def test_a_file_without_a_service_table_has_all_defaults(tmp_path):
    file = tmp_path / "a.toml"
    file.write_text(SMALL.replace("[dataset]", '[dataset]\nname = "visits"'))
    assert read_config(file).service == Service(
        ledger=str(tmp_path / "visits.ledger.sqlite"),
        access=tmp_path / "visits.access.json",
        curators=("curator",),
        release_every=0.1,
        requests_per_second=50.0,
        most_waiting=100,
        most_numbers=10_000,
        max_sql_bytes=16_384,
        max_queue_seconds=5.0,
        max_free_bytes=64_000_000,
        max_seconds=5.0,
        max_seconds_waiting=60.0,
        max_megabytes=500,
        certificate=True,
        tick=0.05,
    )


def test_every_key_is_read(tmp_path):
    lines = (
        'ledger = "kept/money.sqlite"\naccess = "/etc/sharewell/access.json"\n'
        'curators = ["eve", "o.k-1"]\n'
        "release_every = 0.5\nrequests_per_second = 2.5\nmost_waiting = 3\nmost_numbers = 7\n"
        "max_sql_bytes = 999\nmax_queue_seconds = 9\nmax_free_bytes = 9\n"
        "max_seconds = 4\nmax_seconds_waiting = 5\nmax_megabytes = 6\n"
        "certificate = false\ntick = 1"
    )
    assert parse_config(with_service(lines), tmp_path / "sharewell.toml").service == Service(
        ledger=str(tmp_path / "kept" / "money.sqlite"),
        access=Path("/etc/sharewell/access.json"),
        curators=("eve", "o.k-1"),
        release_every=0.5,
        requests_per_second=2.5,
        most_waiting=3,
        most_numbers=7,
        max_sql_bytes=999,
        max_queue_seconds=9.0,
        max_free_bytes=9,
        max_seconds=4.0,
        max_seconds_waiting=5.0,
        max_megabytes=6,
        certificate=False,
        tick=1.0,
    )


def test_paths_are_absolute_wherever_the_file_was_named_from(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    service = parse_config(SMALL, Path("in/here.toml")).service
    assert Path(service.ledger) == tmp_path / "in" / "people.ledger.sqlite"
    assert service.access == tmp_path / "in" / "people.access.json"


@pytest.mark.parametrize("scheme", ["postgresql", "postgres"])
def test_a_ledger_may_be_in_a_database(scheme):
    address = f"{scheme}://sharewell@db/ledgers?sslmode=require"
    service = parse_config(with_service(f'ledger = "{address}"')).service
    assert (service.ledger, service.ledger_is_file) == (address, False)


MISTAKES = [
    ("ledger = 3", "service.ledger must be a string", ""),
    ('ledger = ""', "service.ledger must name a file", "people.ledger.sqlite"),
    ('access = "/"', "service.access must name a file", "people.access.json"),
    ('ledger = "mysql://a/b"', "service.ledger has an unknown scheme", "postgresql://"),
    ('ledger = "postgresql://a:secret@b/c"', "service.ledger contains a password", "PGPASSWORD"),
    ('ledger = "postgresql://b/c?password=secret"', "service.ledger contains a password", ".pgpass"),
    ('ledger = "a"\naccess = "a"', "service.access and service.ledger are the same", "Remove"),
    ('curators = "eve"', "service.curators must be a list", ""),
    ("curators = []", "service.curators is empty", '["curator"]'),
    ("curators = [1]", "service.curators must be a list of strings", '["a", "b"]'),
    ('curators = ["a b"]', "service.curators: invalid name 'a b'", "letters"),
    ('curators = ["eve", "eve"]', "service.curators lists 'eve' twice", "Remove"),
    ('curators = ["ann"]', "'ann' is both an analyst and one of service.curators", "two names"),
    ("release_every = 0.0001", "service.release_every must be a number from 0.001 to 10", ""),
    ("release_every = 11", "service.release_every must be a number from 0.001 to 10", ""),
    ("release_every = true", "service.release_every must be a number", ""),
    ("release_every = nan", "service.release_every must be a plain number", ""),
    ("requests_per_second = 0", "service.requests_per_second must be greater than 0", ""),
    ("most_waiting = 0", "service.most_waiting must be a whole number from 1", ""),
    ("most_waiting = 1.5", "service.most_waiting must be a whole number", ""),
    ("most_numbers = -1", "service.most_numbers must be a whole number", ""),
    ("certificate = 1", "service.certificate must be true or false", ""),
    ("tick = 61", "service.tick must be a number from 0.001 to 60", ""),
    ("port = 80", "Unknown key 'service.port'", "access"),
    ("most_wating = 3", "Unknown key 'service.most_wating'", "most_waiting"),
]


@pytest.mark.parametrize(("lines", "message", "hint"), MISTAKES)
def test_every_mistake_names_its_key_and_says_how_to_mend_it(lines, message, hint):
    with pytest.raises(ConfigError) as caught:
        parse_config(with_service(lines))
    assert message in caught.value.message
    assert hint in caught.value.hint
    assert "secret" not in str(caught.value)


def test_an_analyst_called_curator_needs_another_curator():
    text = SMALL.replace("[analysts.ann]", "[analysts.curator]")
    with pytest.raises(ConfigError, match="'curator' is both an analyst"):
        parse_config(text)
    assert parse_config(f'{text}\n[service]\ncurators = ["eve"]').service.curators == ("eve",)


@pytest.mark.parametrize("name", ["ann", "Ann.Lee-2", "_x", "7", "a" * 100])
def test_people_may_have_names_that_fit_into_an_address(name):
    assert validate_person(name, "analysts") == name
    quoted = SMALL.replace("[analysts.ann]", f'[analysts."{name}"]')
    assert name in parse_config(quoted).shares


@pytest.mark.parametrize("name", ["", ".", "..", "-a", "a b", "a/b", "ä", "a\n", "a%2f", "a" * 101])
def test_people_may_not_have_other_names(name):
    with pytest.raises(ConfigError, match=r"analysts: invalid name"):
        validate_person(name, "analysts")


@pytest.mark.parametrize("name", ["people", "Visits_2024", "_x", "date", "a" * 100])
def test_tables_may_have_names_that_fit_into_sql(name):
    assert validate_table(name, "dataset.name") == name
    assert parse_config(SMALL.replace("[dataset]", f'[dataset]\nname = "{name}"')).name == name


@pytest.mark.parametrize(
    "name", ["", "2024", "a b", "a-b", "a.b", "ä", "x" * 101, "group", "SELECT", "null"]
)
def test_tables_may_not_have_other_names(name):
    with pytest.raises(ConfigError) as caught:
        parse_config(SMALL.replace("[dataset]", f'[dataset]\nname = "{name}"'))
    assert caught.value.message.startswith("dataset.name cannot be")
    assert caught.value.hint


def test_a_population_is_a_number_of_rows():
    for wrong in ("0", "-5"):
        with pytest.raises(ConfigError, match=r"dataset.population must be a whole number from 1"):
            parse_config(SMALL.replace("[dataset]", f"[dataset]\npopulation = {wrong}"))


def test_every_key_of_the_service_is_documented():
    page = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
    missing = [field.name for field in fields(Service) if f"`service.{field.name}`" not in page]
    assert missing == []


def test_names_that_differ_in_case_alone_are_refused():
    with pytest.raises(ConfigError, match="'ann' and 'Ann' differ only in case"):
        parse_config(f'{SMALL}\n[analysts.Ann]\nshare = "1/8"\n')
