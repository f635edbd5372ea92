"""Small tables for the kernel's tests."""

import numpy as np

from sharewell import Domain, Integer
from sharewell.engine.data_vector import DataVector
from sharewell.privacy.budget import Budget
from sharewell.privacy.curator import Curator
from sharewell_lab.noise import NoNoise

LINE = Domain([Integer("age", 0, 3)])


def table(*counts: int, domain: Domain = LINE) -> DataVector:
    return DataVector(domain, np.array(counts, dtype=np.int64))


def curator(*counts: int, total: str = "1", **options) -> Curator:
    """A curator of four cells with two analysts who share a pure budget, without noise unless asked."""
    budget = options.pop("budget", Budget.pure(total))
    shares = options.pop("shares", {"ann": "1/2", "bob": "1/2"})
    options.setdefault("noise", NoNoise())
    data = options.pop("data", None) or table(*(counts or (5, 0, 7, 1)))
    return Curator(data, budget, shares, **options)
