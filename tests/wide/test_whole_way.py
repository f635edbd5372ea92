"""A census file from `init` to the certificate, by the command line and a real server.

Forty columns and about 10^39 cells; `python -m benchmarks wide` has the figures at 300,000 rows.
"""

from __future__ import annotations

import re
import signal
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import duckdb
import pytest

import sharewell
from sharewell import wire
from sharewell.service.verify import answers
from sharewell.sharing import certificate as certificates
from tests.cli.commands import said
from tests.cli.test_shell import RUN
from tests.wide.census import CATEGORIES, write_census

pytestmark = pytest.mark.slow

ROWS, QUESTIONS = 20_000, 200
ANALYSTS = ("ann", "ben", "cleo", "dan")
#: What the curator writes after the review: four analysts, a smaller seed, and a server for a test.
ANALYST = '[analysts.{}]\nshare = "1/5"\n'
SETTINGS = {
    "seed_fraction": '"1/2"',
    "seed": '[["sex", "age"], ["race", "enrolled"], []]',
    "query_budget": '"1/200"',
}
CHANGES = {
    "release_every = 0.1 ": "release_every = 0.002 ",
    "requests_per_second = 50 ": "requests_per_second = 100000 ",
    "max_queue_seconds = 5 ": "max_queue_seconds = 600 ",
    "[service]": '[service]\nwitness = "witness.json"',
}


def questions() -> Iterator[tuple[str, str, bool]]:
    """Who asks, what, and whether it may be paid for: counts, sums, averages, groups."""
    names = list(CATEGORIES)
    for at in range(QUESTIONS):
        a, b, c = (names[(at * step) % len(names)] for step in (1, 3, 7))
        chosen = " AND ".join(f"{each} = '{each} {at % CATEGORIES[each]}'" for each in sorted({a, b, c}))
        sql = (
            f"SELECT COUNT(*) FROM census WHERE {chosen}",
            f"SELECT sex, COUNT(*) FROM census WHERE age BETWEEN {at % 40} AND 60 GROUP BY sex",
            f"SELECT SUM(wage_per_hour), AVG(wage_per_hour) FROM census WHERE age > {at % 60}",
            f"SELECT enrolled, COUNT(*), AVG(dividends) FROM census WHERE {chosen} GROUP BY enrolled",
            "SELECT race, enrolled, COUNT(*) FROM census GROUP BY race, enrolled",
            f"SELECT COUNT(capital_gain), SUM(weight) FROM census WHERE NOT ({chosen})",
            f"SELECT COUNT(*) FROM census WHERE sex = 'sex 0' AND age < {1 + at % 80}",
        )[at % 7]
        yield ANALYSTS[at % 4], sql, at % 3 > 0


@contextmanager
def server(folder: Path) -> Iterator[str]:
    """`sharewell serve` in a process of its own; its address."""
    screen = folder / "screen.txt"
    with screen.open("w") as output:
        command = [*RUN, "serve", "sharewell.toml", "--port", "0"]
        started = subprocess.Popen(command, cwd=folder, stdout=output, stderr=output)
    try:
        while (found := re.search(r"at (http://\S+);", screen.read_text(encoding="utf-8"))) is None:
            assert started.poll() is None, screen.read_text(encoding="utf-8")
            time.sleep(0.05)
        yield found[1]
    finally:
        started.send_signal(signal.SIGINT)
        assert started.wait(120) == 0


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return write_census(tmp_path_factory.mktemp("whole way"), ROWS).parent


@pytest.fixture(scope="module")
def config(folder) -> Path:
    """What `init` proposes, reviewed."""
    path = folder / "sharewell.toml"
    shown = said("init", str(folder / "census.parquet"), "--out", str(path))
    assert "40 of 40 columns are attributes" in shown
    text = path.read_text(encoding="utf-8")
    first, last = text.index("[analysts.ann]"), text.index("[mechanism]")
    text = text[:first] + "".join(map(ANALYST.format, ANALYSTS)) + text[last:]
    for key, value in SETTINGS.items():
        text, found = re.subn(rf'^{key} = "[^"]*"', f"{key} = {value}", text, flags=re.MULTILINE)
        assert found == 1
    for old, new in CHANGES.items():
        assert old in text
        text = text.replace(old, new)
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def tokens(config) -> dict[str, str]:
    shown = {
        name: said("token", name, "--config", str(config)).split() for name in (*ANALYSTS, "curator")
    }
    return {name: max(words, key=len) for name, words in shown.items()}


def ask_all(url: str, tokens: dict[str, str]) -> list[wire.Result]:
    """The results of all questions, which four analysts ask at once, each in order."""
    asked = list(enumerate(questions()))

    def of(analyst: str) -> dict[int, wire.Result]:
        with sharewell.connect(url, tokens[analyst]) as session:
            return {
                at: session.ask(sql, pay=pay, key=f"question {at}", timeout=120)
                for at, (name, sql, pay) in asked
                if name == analyst
            }

    with ThreadPoolExecutor(4) as pool:
        found = {at: result for part in pool.map(of, ANALYSTS) for at, result in part.items()}
    return [found[at] for at in range(QUESTIONS)]


@pytest.fixture(scope="module")
def results(
    folder, config, tokens
) -> tuple[list[wire.Result], list[wire.Result], wire.CertificateReport]:
    """All answers, those to the same keys after a restart, and the certificate at the end."""
    said("begin", str(config), "--yes")
    with server(folder) as url:
        before = ask_all(url, tokens)
    with server(folder) as url:
        after = ask_all(url, tokens)
        with sharewell.connect_curator(url, tokens["curator"]) as curator:
            certificate = curator.certificate()
    return before, after, certificate


def test_the_proposal_is_checked_and_says_what_is_free(config):
    shown = said("check", str(config))
    assert "can be served. No row was read and nothing was spent." in shown
    assert "Tables of counts" in shown
    assert re.search(r"^3 +9,880 +0 ", shown, re.MULTILINE)


def test_the_same_keys_have_the_same_answers_after_a_restart(results):
    before, after, _ = results
    assert [(each.rows, each.cost) for each in before] == [(each.rows, each.cost) for each in after]
    paid = [each for each in before if each.cost]
    free = [each for each in before if not each.cost]
    nulls = [each for each in free if any("needs a paid question" in note for note in each.notes)]
    assert len(paid) > 20
    assert len(free) > 20
    assert len(nulls) > 5


def test_answers_are_near_the_truth(folder, results):
    """Sums are of values within bounds that were rounded outwards, so they are those of the rows."""
    seen = 0
    with duckdb.connect() as connection:
        connection.execute(f"CREATE VIEW census AS FROM '{folder / 'census.parquet'}'")
        for (_, sql, _), result in zip(questions(), results[0], strict=True):
            labels = [column.kind for column in result.columns].count("group")
            truth = {row[:labels]: row[labels:] for row in connection.execute(sql).fetchall()}
            for row in result.rows:
                for number, expected in zip(row[labels:], truth.get(row[:labels], ()), strict=False):
                    if number.standard_error and expected is not None:
                        seen += 1
                        assert abs(number.value - expected) < 8 * number.standard_error, sql
    assert seen > 300


def test_the_ledger_verifies_and_the_certificate_holds(config, results, monkeypatch):
    """A small part of the answers that a verification usually computes twice."""
    monkeypatch.setattr(answers, "CHECKS", 1e8)
    monkeypatch.setattr(certificates, "THOROUGH_CHECKS", 1e8)
    shown = said("verify", str(config.with_name("census.ledger.sqlite")))
    assert "it holds over" in shown
    certificate = results[2]
    assert certificate.contradicted == 0
    assert certificate.holds is not False
    assert (certificate.holds is None) == (certificate.entries == 0)
