"""The service under load: 64 analysts at once, on SQLite and on PostgreSQL; and a long ledger opened.

A paid question needs two commits: question and charge before the data is touched, value and answer
before they are given. So paid answers are set beside as many threads that append the same events in two
breaths to the bare ledger, which shares commits among them; the other answers beside single commits,
one after the other. Questions are in words that were compiled before, as they are when somebody has
asked for a quote; how fast new words are compiled is a benchmark of `sql`.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from fractions import Fraction
from itertools import count, islice
from pathlib import Path

import numpy as np

from benchmarks.ratio import Ratio, best_of, in_the_middle, in_turns
from sharewell import DataVector
from sharewell.config import Config, parse_config
from sharewell.gc_tuning import tune_gc
from sharewell.privacy.ledger import Answered, Asked, Charged, Event, Released
from sharewell.query.sql import compile_sql
from sharewell.service.dataset import DatasetService
from sharewell.service.ledger import DurableLedger, open_ledger
from sharewell.service.submissions import to_plain
from tests.service.ledger.postgres_server import PostgresServer, postgres_ledger

ANALYSTS = 64
EACH = 5
ROUNDS = 9
ALONE = 200
LONG = 100_000
#: Different texts in a long ledger, and how many of them are paid for.
TEXTS, PAID = 2_000, 300
COST = Fraction(1, 100)
#: How often whoever hands in questions looks which are answered, in seconds.
SLOT = 0.001

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
seed_fraction = "1/10"
query_budget = "1/10000"
"""


def run() -> list[Ratio]:
    tune_gc()  # As the server does.
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        server = PostgresServer(on_disk=True)
        stack.callback(server.remove)
        url = server.database()
        return [
            *under_load("SQLite", lambda name: open_ledger(folder / name, create=True)),
            *under_load("PostgreSQL", lambda name: postgres_ledger(url, name)),
            *opened_again(folder / "long"),
        ]


def config() -> Config:
    shares = "".join(f'[analysts.a{at}]\nshare = "1/{ANALYSTS}"\n' for at in range(ANALYSTS))
    return parse_config(SETTINGS + shares)


def service_on(settings: Config, ledger: DurableLedger) -> DatasetService:
    data = DataVector(settings.domain, np.arange(settings.domain.size, dtype=np.int64))
    return DatasetService(settings, ledger, data=data, certificate=False)


def questions() -> list[str]:
    """More different questions than are ever asked, in an order that mixes them well."""
    found = [
        f"SELECT COUNT(*) FROM people WHERE {word} (age BETWEEN {low} AND {high})"
        for low in range(1, 85)
        for high in range(low + 1, 85)
        for word in ("", "NOT")
    ]
    return [found[at] for at in np.random.default_rng(1).permutation(len(found))]


def under_load(store: str, open_ledger: Callable[[str], DurableLedger]) -> list[Ratio]:
    """Answers a second of each kind, as seconds an answer, beside the store's own commits."""
    total = ANALYSTS * EACH
    fresh = iter(questions())

    def ask(texts: list[str], *, pay: bool) -> None:
        """Everybody asks, and asks again when answered; as the server does it, one thread for all."""
        to_ask = {f"a{at}": iter(texts[at::ANALYSTS]) for at in range(ANALYSTS)}
        waiting = {name: service.submit(name, next(mine), pay=pay) for name, mine in to_ask.items()}
        while waiting:
            time.sleep(SLOT)
            for name in [name for name, ticket in waiting.items() if ticket.done]:
                waiting.pop(name).result()
                if text := next(to_ask[name], None):
                    waiting[name] = service.submit(name, text, pay=pay)

    def together(work: Callable[[int], None]) -> None:
        list(pool.map(work, range(ANALYSTS)))

    def compiled() -> list[str]:
        batch = list(islice(fresh, total))
        for text in batch:
            compile_sql(text, settings.domain, table=settings.name)
        return batch

    def paid() -> None:
        known.append(to_buy.pop())
        ask(known[-1], pay=True)

    def free() -> None:
        ask(to_guess, pay=False)

    def cached() -> None:
        ask(known[0], pay=True)

    def append(at: int) -> None:
        before, after = events_of(at)
        for _ in range(EACH):
            bare.append_many(before)
            bare.append_many(after)

    def alone() -> None:
        event = events_of(0)[0][0]
        for _ in range(ALONE):
            bare.append(event)

    settings = config()
    known: list[list[str]] = []
    to_buy = [compiled() for _ in range(ROUNDS + 1)]
    to_guess = compiled()
    with (
        open_ledger("bare") as bare,
        open_ledger("served") as ledger,
        service_on(settings, ledger) as service,
        ThreadPoolExecutor(ANALYSTS) as pool,
    ):
        paid()
        rounds = in_turns(ROUNDS, free, paid, lambda: together(append), alone, cached)

    def beside(what: int, times: int, reference: int, repeats: int) -> tuple[float, float]:
        return in_the_middle((took[what] / times, took[reference] / repeats) for took in rounds)

    def ratio(kind: str, pair: tuple[float, float], reference: str, target: float) -> Ratio:
        name = f"{store}, {ANALYSTS} analysts: {kind}"
        return Ratio(name, pair[0], reference, pair[1], target, at_most=False)

    return [
        ratio("paid", beside(1, total, 2, total), "its events, as many threads", 0.5),
        ratio("reconstructed", beside(0, total, 3, ALONE), "one commit", 1.0),
        ratio("cached", beside(4, total, 3, ALONE), "one commit", 1.0),
    ]


def events_of(at: int) -> tuple[list[Event], list[Event]]:
    """What a paid question leaves behind, in two breaths."""
    answer = {
        "value": 1234.5,
        "standard_error": 14.1,
        "interval": [1205.6, 1263.4],
        "source": "measured",
        "cost": "1/10000",
        "payer": f"a{at}",
        "charge": 17,
    }
    text = "SELECT COUNT(*) FROM people WHERE age BETWEEN 20 AND 29"
    query = {"scale": "1", "nodes": [[[[[0, 20], [1, 10], [0, 56]], 0]]]}
    purpose = {"measure": {"kind": "parallel", "queries": [query]}, "scales": [[(200.0).hex(), 1]]}
    return (
        [Asked("0" * 32, f"a{at}", {"sql": text}, pay=True), Charged({f"a{at}": COST}, purpose)],
        [Released(17, (1234,)), Answered(16, (answer,))],
    )


def opened_again(path: Path) -> list[Ratio]:
    """How long it takes to go on with a ledger of many events."""
    settings = config()
    with open_ledger(path, create=True) as ledger:
        write_long(settings, ledger)

        def open_and_close() -> None:
            service_on(settings, ledger).close()

        took = best_of(3, open_and_close)[0]
        events = len(ledger)
    return [Ratio(f"open a ledger of {events:,} events", took, "5 s", 5, target=1)]


def write_long(settings: Config, ledger: DurableLedger) -> None:
    """A ledger as months of use leave it: a few hundred paid questions, and many asked again."""
    texts = questions()[:TEXTS]
    keys = (f"question {number}" for number in count())
    with service_on(settings, ledger) as service:
        for at, text in enumerate(texts[:PAID]):
            service.ask(f"a{at % ANALYSTS}", text, key=next(keys))
        sample = [to_plain(answer) for answer in service.ask("a0", texts[0]).answers]
    chance = np.random.default_rng(2)
    while len(ledger) < LONG:
        batch: list[Event] = []
        for number in range(len(ledger), len(ledger) + 2_000, 2):
            question = {"sql": texts[int(chance.integers(TEXTS))]}
            analyst = f"a{int(chance.integers(ANALYSTS))}"
            batch += [Asked(next(keys), analyst, question, pay=False), Answered(number, sample)]
        ledger.append_many(batch)
