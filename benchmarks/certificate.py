"""The certificate: what it costs those who are being answered, and how far it falls behind.

Ten analysts ask 1,000 new questions of a service with a SQLite ledger, as fast as they are answered.
The promises: with the certificate on, the latency of an answer changes by less than 10 %, and it is
never more than 2 seconds behind.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.ratio import Ratio
from sharewell import DataVector, datasets
from sharewell.config import Config, parse_config
from sharewell.gc_tuning import tune_gc
from sharewell.query.sql import compile_sql
from sharewell.service.dataset import DatasetService
from sharewell.service.ledger import open_ledger

ANALYSTS = 10
QUESTIONS = 1000
ROUNDS = 5

SETTINGS = """
[dataset]
source = "people.csv"
[budget]
epsilon = 1
error_threshold = 100
[attributes.age]
type = "integer"
low = 0
high = 85
[mechanism]
query_budget = "1/600"
"""
RACE = """
[attributes.race]
type = "integer"
low = 0
high = 1399
"""


def run() -> list[Ratio]:
    line = datasets.movers_by_age()
    people = datasets.massachusetts().vector()
    return [*_measure("86 cells", SETTINGS, line), *_measure("120,400 cells", SETTINGS + RACE, people)]


def _measure(what: str, settings: str, counts: DataVector) -> list[Ratio]:
    shares = "".join(f'[analysts.a{at}]\nshare = "1/{ANALYSTS}"\n' for at in range(ANALYSTS))
    config = parse_config(settings + shares)
    data = DataVector(config.domain, counts.counts)
    off, on, behind = [], [], []
    tune_gc()  # As the server does.
    for round_ in range(ROUNDS):
        questions = _questions(config, round_)
        for sql in questions:  # In words that were compiled before, for both.
            compile_sql(sql, config.domain, table=config.name)
        off.append(_play(config, data, questions, certificate=False)[0])
        latency, lag = _play(config, data, questions, certificate=True)
        on.append(latency)
        behind.append(lag)
    return [
        Ratio(f"answer, certificate on, {what}", np.median(on), "certificate off", np.median(off), 1.1),
        Ratio(f"certificate behind by, {what}", max(behind), "a second", 1.0, 2.0),
    ]


def _play(
    config: Config, data: DataVector, questions: list[str], *, certificate: bool
) -> tuple[float, float]:
    """The median latency of an answer, and how long the certificate takes to catch up after the last."""
    with (
        tempfile.TemporaryDirectory() as folder,
        open_ledger(Path(folder) / "ledger.sqlite", create=True) as ledger,
        DatasetService(config, ledger, data=data, certificate=certificate) as service,
    ):
        if certificate:
            service.report(up_to_date=True)
        moments = [time.perf_counter()]
        for at, sql in enumerate(questions):
            service.ask(f"a{at % ANALYSTS}", sql)
            moments.append(time.perf_counter())
        if certificate:
            service.report(up_to_date=True)
        return float(np.median(np.diff(moments))), time.perf_counter() - moments[-1]


def _questions(config: Config, seed: int) -> list[str]:
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(QUESTIONS):
        low = int(rng.integers(0, 80))
        text = f"SELECT COUNT(*) FROM people WHERE age BETWEEN {low} AND {int(rng.integers(low, 86))}"
        if "race" in config.domain.names:
            first = int(rng.integers(0, 1300))
            text += f" AND race BETWEEN {first} AND {first + int(rng.integers(1, 100))}"
        found.append(text)
    return found
