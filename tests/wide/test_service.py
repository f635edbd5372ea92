"""A table of forty columns and about 10^38 cells, served: questions, restart, verify."""

from __future__ import annotations

import math
from contextlib import closing
from pathlib import Path

import duckdb
import pytest

from sharewell import wire
from sharewell.config import Config, parse_config, read_config
from sharewell.errors import ConfigError
from sharewell.mechanisms.base import is_seed
from sharewell.mechanisms.marginal_seed import MarginalSeed
from sharewell.privacy.ledger import Charged
from sharewell.service.dataset import DatasetService
from sharewell.service.ledger import open_ledger
from sharewell.service.lifecycle import begin
from sharewell.service.verify import verify
from tests.wide.census import census_config, write_census

pytestmark = pytest.mark.slow

ROWS = 20_000
THREE = "age BETWEEN 30 AND 50 AND sex = 'sex 1' AND education = 'education 3'"
COUNT = f"SELECT COUNT(*) FROM census WHERE {THREE}"
GROUPED = "SELECT race, union_member, COUNT(*) FROM census WHERE age > 60 GROUP BY race, union_member"
#: What is asked, by whom, and whether it may be paid for.
ASKED = [
    ("ann", COUNT, False),
    ("ann", COUNT, True),
    ("ben", COUNT, True),
    ("ben", GROUPED, True),
    ("ann", "SELECT sex, COUNT(*) FROM census GROUP BY sex", True),
    ("ben", "SELECT COUNT(*) FROM census WHERE born = 'born 7' AND age < 40", False),
    ("ann", "SELECT COUNT(*) FROM census WHERE NOT (age = 3 AND sex = 'sex 0' AND year = 1)", True),
    ("ben", "SELECT COUNT(*) FROM census", False),
]


def ask(service: DatasetService, analyst: str, sql: str, pay: bool, key: str) -> wire.Ticket:
    ticket = service.submit(analyst, sql, pay=pay, key=key)
    ticket.outcome(60)
    return service.describe(ticket)


@pytest.fixture(scope="module")
def before():
    """What was answered for nothing before the restart."""
    return []


@pytest.fixture(scope="module")
def folder(tmp_path_factory, before):
    """The table, its configuration, and a ledger with the answers to what was asked."""
    folder = tmp_path_factory.mktemp("census")
    write_census(folder, ROWS)
    path = folder / "sharewell.toml"
    text = census_config(ROWS, ["ann", "ben"])
    path.write_text(f'{text}\n[service]\nwitness = "witness.json"\ncertificate = false\n')
    begin(read_config(path))
    with DatasetService.open(read_config(path)) as service:
        for number, (analyst, sql, pay) in enumerate(ASKED):
            ask(service, analyst, sql, pay, str(number))
        for number, (analyst, sql, _) in enumerate(ASKED):
            before.append(ask(service, analyst, sql, False, f"before {number}").result().rows)
    return folder


@pytest.fixture(scope="module")
def service(folder):
    """The service after a restart."""
    with DatasetService.open(read_config(folder / "sharewell.toml")) as service:
        yield service


@pytest.fixture
def answers(service):
    """The stored answers, in the order of the questions."""
    return [ask(service, *asked, str(number)).answer for number, asked in enumerate(ASKED)]


def test_the_dataset_is_described_whatever_its_number_of_cells(service):
    info = service.dataset()
    assert info.cells > 10**37
    assert len(info.attributes) == 40
    assert wire.DatasetInfo.model_validate_json(info.model_dump_json()) == info
    assert "about 8.9e+37 cells" in repr(info)


def test_an_undetermined_question_is_null_until_it_is_paid_for(answers):
    free, paid, again = answers[:3]
    [[number]] = free.rows
    assert (number.value, number.standard_error, free.cost) == (None, None, 0)
    [[number]] = paid.rows
    assert (number.source, paid.paid_by) == ("measured", "ann")
    assert again.rows[0][0].value == number.value
    assert (again.cost, again.paid_by) == (0, "ann")


def test_answers_are_near_the_truth(folder, answers):
    with duckdb.connect() as connection:
        connection.execute(f"CREATE VIEW census AS FROM '{folder / 'census.parquet'}'")
        for (_, sql, _), answer in zip(ASKED[1:], answers[1:], strict=True):
            truth = {row[:-1]: row[-1] for row in connection.execute(sql).fetchall()}
            for *labels, number in answer.rows:
                expected = truth.get(tuple(labels), 0)
                assert abs(number.value - expected) < 8 * number.standard_error


def test_a_restart_rebuilds_the_state_to_the_last_bit(service, before):
    for number, (analyst, sql, _) in enumerate(ASKED):
        assert ask(service, analyst, sql, False, f"after {number}").result().rows == before[number]


def test_quotes_say_what_paying_would_determine(service):
    quote = service.quote(
        "ben", "SELECT COUNT(*) FROM census WHERE race = 'race 1' AND year = 0 AND age = 9"
    )
    [[most, least]] = quote.paid.errors
    assert 0 < least <= most < 100
    assert quote.free is None
    assert service.quote("ben", COUNT).paid.cost == 0


def test_the_seed_is_stored_once_and_small(folder):
    config = read_config(folder / "sharewell.toml")
    with closing(open_ledger(config.service.ledger, read_only=True)) as ledger:
        charges = [event.purpose["measure"] for event in ledger.events() if isinstance(event, Charged)]
    assert [is_seed(charge) for charge in charges].count(True) == 1
    assert [charge["kind"] for charge in charges if not is_seed(charge)].count("grouped") == 1
    assert Path(config.service.ledger).stat().st_size < 40 * len(seed_of(config))


def test_the_ledger_verifies(folder):
    """Its certificate takes longest: that of a wide ledger is recomputed in `test_whole_way.py`."""
    found = verify(read_config(folder / "sharewell.toml").service.ledger, certificate=False)
    assert found.findings == []
    assert found.ok


@pytest.mark.parametrize(
    ("mechanism", "says"),
    [
        ("", "mechanism.seed: The seed identity measures every cell"),
        ('seed = "h2"', "mechanism.seed: The seed h2 measures every cell"),
        ('seed = "marginals(6)"', "from 1 to 10,000 tables"),
        ('seed = "marginals(3)"', "has .* rows; the limit is"),
        ('seed = [["age", "sax"]]', "Unknown attribute 'sax'"),
        ('seed = [["age", "age"]]', "cannot be by age, age"),
        ('seed = [["age"], ["age"]]', "names a marginal twice"),
        ("seed = []", "from 1 to 10,000 tables"),
        ('seed = ["age"]', "a list of lists of columns"),
        ('name = "multiplicative-weights"', "keeps a synthetic table of every cell"),
    ],
)
def test_what_needs_every_cell_is_refused_by_a_sentence(mechanism, says):
    text = census_config(ROWS, ["ann"], mechanism=mechanism)
    if "multiplicative" in mechanism:
        text = text.replace('query_budget = "1/400"\n', "")
    with pytest.raises(ConfigError, match=says):
        parse_config(text)


def seed_of(config: Config) -> MarginalSeed:
    assert isinstance(config.make.seed, MarginalSeed)
    return config.make.seed


def test_seeds_are_listed_or_named():
    listed = parse_config(
        census_config(ROWS, ["ann"], mechanism='seed = [["sex", "age"], ["race"], []]')
    )
    assert seed_of(listed).sizes == (182, 5, 1)
    assert seed_of(listed).name == '[["sex", "age"], ["race"], []]'
    pairs = parse_config(census_config(ROWS, ["ann"], mechanism='seed = "marginals(2)"'))
    assert len(seed_of(pairs).parts) == math.comb(40, 2)
    tables = parse_config(census_config(ROWS, ["ann"]))
    assert len(seed_of(tables)) <= 250_000
    assert len(seed_of(tables).parts) == 40 + math.comb(40, 2)
