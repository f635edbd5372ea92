"""Configurations and ledgers for the broker's tests."""

from __future__ import annotations

import numpy as np

from sharewell import DataVector
from sharewell.config import Config, parse_config

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
