"""Every mechanism passes the one suite for mechanisms, in both currencies."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from sharewell import LinearQuery
from sharewell.errors import PrivacyError, SharewellError
from sharewell.lab.noise import NoNoise, SeededNoise
from sharewell.mechanism import seed
from sharewell.mechanism.cache_reconstruct import CacheReconstruct
from sharewell.mechanism.independent import Independent
from sharewell.mechanism.laplace import Laplace
from sharewell.mechanism.pmw import PrivateMultiplicativeWeights
from sharewell.privacy.ledger import Charged, MemoryLedger
from tests.mechanism.check_mechanism import (
    CHECKS,
    COUNTS,
    DOMAIN,
    POPULATION,
    QUESTIONS,
    Kind,
    all_free,
    ask,
    left,
)
from tests.mechanism.evidence import SEEDS

IDENTITY = seed.identity(DOMAIN)


def scr(seed_name="identity", **options):
    settings = {"seed_fraction": "1/2", "query_budget": "1/20", **options}
    strategy = SEEDS[seed_name](DOMAIN)
    return lambda curator: CacheReconstruct(curator, seed=strategy, **settings)


def pmw(**options):
    return lambda curator: PrivateMultiplicativeWeights(curator, **options)


def laplace(**options):
    return lambda curator: Laplace(curator, **{"query_budget": "1/20", **options})


def independent(make):
    return lambda curator: Independent(curator, make)


MAKE = {
    "SCR": scr(),
    "SCR as printed": scr(answers="as-printed"),
    "SCR as printed, h2": scr("h2", answers="as-printed", buy_seed_rows=True),
    "SCR, seed rows bought": scr("prefix", buy_seed_rows=True),
    "SCR, marginals": scr("marginals(1)", seed_fraction="9/10"),
    "SCR, optimised": scr("optimized"),
    "SCR, total": scr("total", seed_fraction="1/10"),
    "SCR, no seed": scr("h2", seed_fraction="0"),
    "PMW": pmw(population=POPULATION, updates=12, threshold=30),
    "PMW, tuned": pmw(population=POPULATION),
    "PMW, sign": pmw(population=POPULATION, updates=12, threshold=30, update="sign"),
    "PMW, measured total": pmw(updates=12, threshold=30),
    "PMW, threshold 0": pmw(population=2 * POPULATION, updates=40, threshold=0),
    "Laplace": laplace(),
    "independent SCR": independent(scr()),
    "independent SCR as printed": independent(scr("h2", answers="as-printed")),
    "independent PMW": independent(pmw(updates=12, threshold=30)),
    "independent Laplace": independent(laplace()),
}
KINDS = {
    **{
        f"{name}, {currency}": Kind(make, currency)
        for name, make in MAKE.items()
        for currency in ("pure", "zcdp")
    },
    "SCR, replace-one": Kind(MAKE["SCR"], "zcdp", "replace-one"),
    "PMW, replace-one": Kind(MAKE["PMW"], "pure", "replace-one"),
    "Laplace, replace-one": Kind(MAKE["Laplace"], "pure", "replace-one"),
}


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("kind", KINDS)
def test_every_mechanism_passes_the_common_suite(kind, check):
    CHECKS[check](KINDS[kind])


def test_the_suite_has_checks():
    assert len(CHECKS) >= 15
