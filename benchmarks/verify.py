"""A ledger of 108,000 events: how long it takes to verify, with the certificate, and to restart.

Five analysts have asked 53,000 questions about 86 ages, and paid for 1,000 of them.
The promises: `verify` takes less than a minute of processor time, and what it samples, it counts; a
service is restarted in less than four seconds of it.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.ratio import Ratio
from sharewell import DataVector
from sharewell.config import Config, parse_config
from sharewell.privacy.curator import Curator
from sharewell.privacy.ledger import Answered, Asked, Configured, MemoryLedger
from sharewell.query.sql import compile_sql
from sharewell.service.dataset import DatasetService
from sharewell.service.ledger import open_ledger
from sharewell.service.ledger.codec import free_answers
from sharewell.service.submissions import to_plain
from sharewell.service.tokens import TokenStore
from sharewell.service.verify import verify

ANALYSTS = 5
EVENTS = 108_000
PAID = 1_000

SETTINGS = """
[dataset]
source = "people.csv"
[budget]
epsilon = 100
error_threshold = 100
[attributes.age]
type = "integer"
low = 0
high = 85
[mechanism]
query_budget = "1/2000"
"""


def run() -> list[Ratio]:
    with tempfile.TemporaryDirectory() as folder:
        path = write_ledger(Path(folder) / "ledger.sqlite")
        restarted = restart(path, TokenStore(Path(folder) / "access.json"))
        started = time.process_time()
        found = verify(path)
        taken = time.process_time() - started
    if not found.ok or found.events < EVENTS:
        raise RuntimeError(f"The ledger should be intact: {found.findings[:3]}")
    for check in found.checks:
        print(f"  {check.name}: {check.counts}")
    return [
        Ratio(f"verify {found.events:,} events", taken, "a minute", 60.0, 1.0),
        Ratio(f"restart with {found.events:,} events", restarted, "4 s", 4.0, 1.0),
    ]


def restart(path: Path, tokens: TokenStore) -> float:
    """The processor time until a service on the ledger can answer."""
    config = settings()
    data = DataVector(config.domain, np.arange(config.domain.size))
    started = time.process_time()
    with (
        open_ledger(path) as ledger,
        DatasetService(config, ledger, tokens, data=data, certificate=False),
    ):
        return time.process_time() - started


def settings() -> Config:
    """The configuration of the ledger."""
    shares = "".join(f'[analysts.a{at}]\nshare = "1/{ANALYSTS}"\n' for at in range(ANALYSTS))
    return parse_config(SETTINGS + shares)


def write_ledger(path: Path) -> Path:
    """A ledger as the service writes it, question by question, and much faster."""
    config = settings()
    events = MemoryLedger()
    data = DataVector(config.domain, np.arange(config.domain.size))
    curator = Curator(data, config.budget, config.shares, ledger=events)
    curator.record([Configured({"config": config.text})])
    mechanism = config.make(curator)
    rng = np.random.default_rng(0)
    known: list[tuple[int, int]] = []
    for number in range(EVENTS):
        if len(events) >= EVENTS:
            break
        pay = number % 8 == 0 and len(known) < PAID
        low, high = sorted(rng.integers(0, 86, 2).tolist())
        if number % 3 and known and not pay:
            low, high = known[int(rng.integers(len(known)))]
        analyst = f"a{number % ANALYSTS}"
        sql = f"SELECT COUNT(*) FROM people WHERE age BETWEEN {low} AND {high}"
        asked = curator.record([Asked(f"k{number}", analyst, {"sql": sql}, pay)])
        [block] = compile_sql(sql, config.domain, table=config.name).blocks
        answers = mechanism.ask(block, analyst, pay=pay)
        plain = tuple(to_plain(answer) for answer in answers)
        bought = any(answer.charge is not None for answer in answers)
        if bought:
            known.append((low, high))
        curator.record([Answered(asked, plain) if bought else free_answers(asked, plain)])
    with open_ledger(path, create=True) as ledger:
        every = list(events.events())
        for at in range(0, len(every), 5_000):
            ledger.append_many(every[at : at + 5_000])
    return path
