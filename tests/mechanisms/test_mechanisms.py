"""Every mechanism passes the one suite for mechanisms, in both currencies."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from sharewell import LinearQuery
from sharewell.errors import PrivacyError, SharewellError
from sharewell.mechanisms import seed
from sharewell.mechanisms.cache_reconstruct import CacheReconstruct
from sharewell.mechanisms.independent import Independent
from sharewell.mechanisms.laplace import Laplace
from sharewell.mechanisms.pmw import PrivateMultiplicativeWeights
from sharewell.privacy.ledger import Charged, MemoryLedger
from sharewell_lab.noise import NoNoise
from tests.mechanisms.check_mechanism import (
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
from tests.mechanisms.measurements import SEEDS, line_of

TABLES: dict[str, Any] = {
    "tables": seed.tables,
    "list of tables": lambda domain: seed.marginals_of(
        domain, [["age"], []], [Fraction(3), Fraction(1)]
    ),
}


def scr(seed_name="identity", **options):
    settings = {"seed_fraction": "1/2", "query_budget": "1/20", **options}
    strategy = {**SEEDS, **TABLES}[seed_name](DOMAIN)
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
    "SCR, tables": scr("tables"),
    "SCR, list of tables": scr("list of tables", buy_seed_rows=True),
    "SCR, optimised": scr("optimized"),
    "SCR, total": scr("total", seed_fraction="1/10"),
    "SCR, no seed": scr("h2", seed_fraction="0"),
    "PMW": pmw(population=POPULATION, updates=6, threshold=30),
    "PMW, tuned": pmw(population=POPULATION / 20),
    "PMW, sign": pmw(population=POPULATION, updates=6, threshold=30, update="sign"),
    "PMW, measured total": pmw(updates=6, threshold=30),
    "PMW, threshold 0": pmw(population=2 * POPULATION, updates=9, threshold=0),
    "Laplace": laplace(),
    "independent SCR": independent(scr()),
    "independent SCR as printed": independent(scr("h2", answers="as-printed")),
    "independent PMW": independent(pmw(updates=5, threshold=30)),
    "independent Laplace": independent(laplace()),
}
#: The currency is the curator's: one of each family shows that the mechanism does not depend on it.
ALSO_IN_ZCDP = (
    "SCR as printed, h2",
    "SCR, seed rows bought",
    "SCR, tables",
    "SCR, list of tables",
    "SCR, total",
    "PMW, measured total",
    "Laplace",
    "independent PMW",
)
KINDS = {
    **{f"{name}, pure": Kind(make) for name, make in MAKE.items()},
    **{f"{name}, zcdp": Kind(MAKE[name], "zcdp") for name in ALSO_IN_ZCDP},
    "SCR, replace-one": Kind(MAKE["SCR"], "zcdp", "replace-one"),
    "PMW, replace-one": Kind(MAKE["PMW"], "pure", "replace-one"),
    "Laplace, replace-one": Kind(MAKE["Laplace"], "pure", "replace-one"),
}


@pytest.mark.no_cover
@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("kind", KINDS)
def test_every_mechanism_passes_the_common_suite(kind, check):
    CHECKS[check](KINDS[kind])


def test_the_suite_has_checks():
    assert len(CHECKS) >= 15


BAD_SETTINGS = {
    "no query budget": scr(query_budget="0"),
    "a negative query budget": scr(query_budget="-1/20"),
    "a query budget that is not exact": scr(query_budget=0.05),
    "a query budget that is no number": scr(query_budget="much"),
    "a negative seed fraction": scr(seed_fraction="-1/2"),
    "more than all for the seed": scr(seed_fraction="3/2"),
    "answers of another kind": scr(answers="raw"),
    "a seed over another domain": lambda curator: CacheReconstruct(
        curator, seed=seed.identity(line_of(12)), seed_fraction="0", query_budget="1/20"
    ),
    "no query budget for Laplace": laplace(query_budget="0"),
    "a negative query budget for Laplace": laplace(query_budget="-1"),
    "no updates": pmw(updates=0),
    "negative updates": pmw(updates=-3),
    "half an update": pmw(updates=2.5),
    "a true update": pmw(updates=True),
    "a negative threshold": pmw(threshold=-1),
    "a threshold that is not whole": pmw(threshold=1.5),
    "an update of another kind": pmw(update="newton"),
    "nobody": pmw(population=0),
    "a negative population": pmw(population=-5),
    "an infinite population": pmw(population=float("inf")),
    "a population that is no number": pmw(population=float("nan")),
    "a prior of the wrong length": pmw(prior=[1.0] * 11),
    "a prior with a cell that cannot be": pmw(prior=[0.0] + [1.0] * 11),
    "a prior that is no number": pmw(prior=[float("nan")] + [1.0] * 11),
}


@pytest.mark.parametrize("settings", BAD_SETTINGS)
@pytest.mark.parametrize("alone", [False, True], ids=["joint", "independent"])
def test_bad_settings_are_refused_before_anything_is_spent(settings, alone):
    """Also where a measured total would have been the first thing to be paid for."""
    make = independent(BAD_SETTINGS[settings]) if alone else BAD_SETTINGS[settings]
    ledger = MemoryLedger()
    with pytest.raises(SharewellError):
        Kind(make).made(ledger=ledger)
    assert not any(isinstance(event, Charged) for event in ledger.events())


@pytest.mark.parametrize("name", ["SCR", "SCR as printed, h2", "PMW, measured total", "Laplace"])
def test_an_independent_analyst_is_not_touched_by_what_the_others_do(name):
    """The same answers, costs and errors, to the last bit, whether bob asks or not."""
    kind = Kind(independent(MAKE[name]))
    with_bob, without = kind.made(NoNoise()), kind.made(NoNoise())
    for question in [*QUESTIONS.values()] * 2:
        if with_bob.preview(question, "bob").paid is not None:
            ask(with_bob, question, "bob")
        assert with_bob.preview(question, "ann") == without.preview(question, "ann")
        if without.preview(question, "ann").paid is not None:
            found, expected = (ask(m, question, "ann") for m in (with_bob, without))
            assert [replace(a, charge=None) for a in found] == [
                replace(a, charge=None) for a in expected
            ]
    assert left(with_bob)["ann"] == left(without)["ann"]


@pytest.mark.parametrize("currency", ["pure", "zcdp"])
@pytest.mark.parametrize("update", ["replay", "sign"])
def test_without_noise_and_with_threshold_0_every_measured_answer_of_pmw_is_exact(update, currency):
    make = pmw(population=100, updates=30, threshold=0, update=update)
    mechanism: Any = Kind(make, currency).made(NoNoise())
    for cell in range(30):
        query = LinearQuery.of(DOMAIN, age=range(cell % 5 + 1), moved=[cell % 2])
        answer = mechanism.ask(query, "ann")
        assert answer.source == "measured"
        assert answer.value == query.dot(COUNTS)
    assert mechanism.updates_left == 0
    assert mechanism.ask(LinearQuery.all(DOMAIN), "ann").source == "synthetic"


def test_what_somebody_takes_with_them_pmw_cannot_spend():
    """When the pot no longer pays for an update, the table answers, and no test is wasted."""
    mechanism: Any = Kind(pmw(population=100, updates=10, threshold=0)).made(NoNoise())
    mechanism.leave("ann")
    paid = mechanism.updates_left
    assert paid == 4, "bob's two fifths of ten"
    sources = [mechanism.ask(LinearQuery.cell(DOMAIN, at), "bob").source for at in range(12)]
    assert sources == ["measured"] * 4 + ["synthetic"] * 8
    assert mechanism._test.positives_left == 6


def test_a_ledger_with_another_seed_is_refused():
    """Of as many rows, too: the identity and the running totals."""
    ledger = MemoryLedger()
    Kind(scr("identity")).made(ledger=ledger)
    with pytest.raises(PrivacyError, match="another seed"):
        Kind(scr("prefix")).made(ledger=ledger)
    assert len(seed.prefix(DOMAIN)) == len(seed.identity(DOMAIN))
    again = Kind(scr("identity")).made(ledger=ledger)
    assert all_free(again)


def test_the_settings_of_pmw_are_those_that_its_tests_were_opened_with():
    ledger = MemoryLedger()
    first: Any = Kind(pmw(population=500, updates=3, threshold=9)).made(ledger=ledger)
    again: Any = Kind(pmw(population=500, updates=50, threshold=1)).made(ledger=ledger)
    assert again.tuning == first.tuning
    assert again.measurement_cost == first.measurement_cost


def test_laplace_charges_all_in_proportion_to_what_they_have_left():
    mechanism = Kind(laplace(query_budget="1/2")).made()
    mechanism.ask(LinearQuery.all(DOMAIN), "bob")
    assert left(mechanism) == {"ann": Fraction(9, 10), "bob": Fraction(3, 5)}
    for _ in range(3):
        mechanism.ask(LinearQuery.all(DOMAIN), "bob")
    assert left(mechanism) == {"ann": 0, "bob": 0}
