"""Configurations and services for the tests of a dataset."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from tempfile import mkdtemp
from threading import Event, Thread
from typing import Any, NamedTuple

import numpy as np

from sharewell import DataVector, wire
from sharewell.config import Config, parse_config
from sharewell.mechanisms.base import Answer, Mechanism
from sharewell.privacy.budget import Amount
from sharewell.privacy.driver import run
from sharewell.privacy.ledger import MemoryLedger, QuestionLedger
from sharewell.query.statement import Statement
from sharewell.service.answers import answer_steps, to_plain
from sharewell.service.dataset import DatasetService
from sharewell.service.submissions import Submission
from sharewell.service.tokens import TokenStore

CONFIG = """
[dataset]
source = "people.csv"
population = 1000
[budget]
epsilon = 10
error_threshold = 20
[attributes.age]
type = "integer"
low = 0
high = 19
[attributes.sex]
type = "category"
categories = ["F", "M"]
[analysts.ann]
share = "1/4"
[analysts.ben]
share = "1/4"
[analysts.cleo]
share = "1/4"
[mechanism]
{mechanism}
[scheduler]
{scheduler}
"""

#: Each share pays for ten questions after its half has gone to the seed.
SCR = 'query_budget = "1/80"'
MECHANISMS = {
    "cache-reconstruct": SCR,
    "as-printed": f'{SCR}\nanswers = "as-printed"',
    "laplace": 'name = "laplace"\nquery_budget = "1/80"',
    "multiplicative-weights": 'name = "multiplicative-weights"\nupdates = 20\nthreshold = 5',
    "independent": f"{SCR}\nindependent = true",
}
SCHEDULERS = {
    "none": 'name = "none"',
    "round-robin": 'name = "round-robin"',
    "weighted": 'name = "weighted-round-robin"\nturns = { ann = 2, ben = 1, cleo = 1 }',
    "randomized": 'name = "randomized"',
}


def config(mechanism: str = "cache-reconstruct", scheduler: str = "none") -> Config:
    return parse_config(CONFIG.format(mechanism=MECHANISMS[mechanism], scheduler=SCHEDULERS[scheduler]))


def table(of: Config) -> DataVector:
    return DataVector(of.domain, np.arange(of.domain.size, dtype=np.int64))


def count(low: int, high: int, sex: str | None = None) -> str:
    """A question."""
    also = f" AND sex = '{sex}'" if sex else ""
    return f"SELECT COUNT(*) FROM people WHERE age BETWEEN {low} AND {high}{also}"


class Status(NamedTuple):
    """What an analyst has, in exact numbers."""

    share: Fraction
    spent: Fraction
    left: Fraction
    asked: int
    waiting: int


def status(service: DatasetService, analyst: str) -> Status:
    found = service.budget(analyst)
    share, spent, left = (Fraction(each) for each in (found.share, found.spent, found.left))
    return Status(share, spent, left, found.asked, found.waiting)


def join(service: DatasetService, name: str, amount: Amount) -> str:
    """Admit an analyst with an amount in the budget's currency."""
    part = Fraction(amount) / service.config.budget.total
    return service.join(wire.Newcomer(name=name, share=str(part)))


def plain(submission: Submission) -> list[dict[str, Any]]:
    """A question's answers as they are stored."""
    return [to_plain(answer) for answer in submission.answers]


def serve(settings: Config, ledger: QuestionLedger | None = None, **options: Any) -> DatasetService:
    """A dataset on a ledger, with tokens of its own, on made-up rows and without a certificate."""
    tokens = TokenStore(Path(mkdtemp(dir=os.environ.get("XDG_STATE_HOME"))) / "access.json")
    options = {
        "data": table(settings),
        "certificate": False,
        "tick": 0.001,
        **options,
    }
    return DatasetService(settings, MemoryLedger() if ledger is None else ledger, tokens, **options)


@contextmanager
def held(service: DatasetService) -> Iterator[None]:
    """Keep the worker from taking anything, so that all that is submitted meanwhile comes at once."""
    begun, go_on = Event(), Event()

    def wait(_: object) -> None:
        begun.set()
        go_on.wait(60)

    holding = Thread(target=service._worker.run, args=("", wait))
    holding.start()
    begun.wait(60)
    try:
        yield
    finally:
        go_on.set()
        holding.join()


def answered(
    mechanism: Mechanism, statement: Statement, analyst: str, *, pay: bool = True
) -> tuple[Answer, ...]:
    """The answers to a statement, computed step by step as the service does, and stored nowhere."""
    steps = answer_steps(mechanism, statement, analyst, pay=pay)
    return [run(step, mechanism.curator) for step in steps][-1]
