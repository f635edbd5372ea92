"""Planning: what a dry run on an empty table says is what the real table will have."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from sharewell import Budget, Curator, DataVector, Domain, Integer
from sharewell.errors import SharingError
from sharewell.mechanisms import seed
from sharewell.mechanisms.cache_reconstruct import CacheReconstruct
from sharewell.query import workload
from sharewell.sharing.collective import expected_errors
from sharewell.sharing.plan import (
    RESERVE,
    Candidate,
    evaluate,
    how_many,
    in_turns,
    is_exact,
    plan,
    recommended,
)
from sharewell_lab.noise import SeededNoise

LINE = Domain([Integer("age", 0, 15)])
WORKLOADS = {"ann": workload.identity(LINE), "bob": workload.prefixes(LINE)}
SHARES = {"ann": Fraction(1, 2), "bob": Fraction(1, 2)}


def test_a_dry_run_tells_the_errors_that_the_real_table_then_has():
    stream = list(in_turns(WORKLOADS))
    settings: Any = {"seed": seed.h2(LINE), "seed_fraction": "1/2", "query_budget": "1/20"}
    told = expected_errors(LINE, stream, SHARES, **settings)
    vector = DataVector(LINE, np.arange(16))
    curator = Curator(vector, Budget.pure("1"), SHARES, noise=SeededNoise(1))
    real = CacheReconstruct(curator, **settings)
    answers: list[Any] = [real.ask(query, analyst) for analyst, query in stream]
    assert told == [answer.standard_error for answer in answers]


def test_the_plan_puts_the_best_first_and_judges_every_analyst():
    found = plan(
        LINE, WORKLOADS, Budget.pure("1"), SHARES, 5.0, seed_fractions=["1/2"], queries_per_share=[8]
    )
    assert {candidate.seed for candidate in found} == {"identity", "h2", "hb", "planned"}
    ranks = [(-round(candidate.average, 2), candidate.typical_error) for candidate in found]
    assert ranks == sorted(ranks)
    assert all(set(candidate.within) == {"ann", "bob"} for candidate in found)
    assert all(0 <= candidate.worst <= candidate.average <= 1 for candidate in found)
    assert found[0].query_budget == Fraction(1, 32)


@pytest.mark.parametrize("threshold", [0, -1, math.nan, math.inf])
def test_an_impossible_threshold_is_refused(threshold):
    with pytest.raises(SharingError, match="threshold"):
        plan(LINE, WORKLOADS, Budget.pure("1"), SHARES, threshold)


def test_an_analyst_without_a_workload_is_refused():
    with pytest.raises(SharingError, match="workload and a share"):
        plan(LINE, WORKLOADS, Budget.pure("1"), {"ann": "1/2"}, 5.0)


def test_everything_on_the_seed_is_compared_once_for_each_seed():
    found = plan(
        LINE, WORKLOADS, Budget.zcdp("1", "1e-6"), SHARES, 5.0, seed_fractions=["1/2", "19/20", "1"]
    )
    whole = [candidate for candidate in found if candidate.seed_fraction == 1]
    assert len(whole) == 4, "one price for each seed"
    assert not any(candidate.paying_helps for candidate in whole)
    best = recommended(found)
    assert best.seed == found[0].seed == "planned"
    assert best.paying_helps or best.seed_fraction == 1
    assert best.average >= found[0].average - RESERVE
    assert recommended(whole) is whole[0]


def test_a_reserve_is_recommended_that_is_of_use_and_costs_little():
    budget = Budget.pure("1")

    def candidate(fraction: str, within: float, error: float, helps: bool, useful: bool) -> Candidate:
        part = Fraction(fraction)
        seed = ("planned", part, Fraction(1, 100), {"ann": within}, error, budget)
        return Candidate(*seed, paying_helps=helps, paying_is_useful=useful)

    whole = candidate("1", 0.95, 10.0, False, False)
    hardly = candidate("49/50", 0.949, 10.2, False, False)
    helping = candidate("9/10", 0.945, 11.0, True, False)
    useful = candidate("9/10", 0.942, 11.1, True, True)
    wrong = candidate("9/10", 0.93, 11.1, True, True)
    imprecise = candidate("3/4", 0.95, 13.3, True, True)
    assert recommended([whole, hardly, helping, useful, wrong]) is useful
    assert recommended([whole, hardly, helping, useful], lambda each: each is not useful) is helping
    assert recommended([whole, hardly, wrong, imprecise]) is whole
    assert recommended([useful, whole, hardly]) is useful


def test_a_plan_for_many_questions_is_that_of_dry_runs_or_a_little_worse():
    """In closed form, and on a sample: the same settings, within some percent."""
    domain = Domain([Integer("age", 0, 39), Integer("sex", 0, 1)])
    asks = workload.prefixes(domain, "age")
    workloads = {"ann": [*asks], "bob": [*workload.marginal(domain, ["age", "sex"])]}
    settings: Any = {"seed_fractions": ["1/2"], "queries_per_share": [8]}
    budget, shares = Budget.zcdp("1", "1e-6"), {"ann": Fraction(1, 100), "bob": Fraction(1, 100)}
    assert not is_exact(domain, workloads, how_many(domain))
    found = {c.seed: c for c in plan(domain, workloads, budget, shares, 20.0, **settings)}
    stream = list(in_turns(workloads))
    for seed_of in (seed.identity(domain), seed.hb(domain)):
        errors = expected_errors(
            domain,
            stream,
            shares,
            seed=seed_of,
            seed_fraction="1/2",
            query_budget=found[seed_of.name].query_budget,
            privacy="zcdp",
        )
        exact = evaluate((seed_of.name, Fraction(1), Fraction(1)), budget, stream, errors, 20.0)
        assert exact.typical_error <= found[seed_of.name].typical_error * 1.001
        assert exact.typical_error >= found[seed_of.name].typical_error * 0.8
