"""Each donation buys its donor's own plan: the theorem and the sharing incentive, exactly.

The streams are those of `test_monotonicity.py`. What analysts expect to ask are their own questions, or
those of another analyst: a plan may be a bad one, and still no answer is worse for others being there.
"""

from __future__ import annotations

from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings

from sharewell import LinearQuery
from sharewell.mechanisms.cache_reconstruct import CacheReconstruct
from sharewell.mechanisms.planned_seed import PlannedSeed
from sharewell.privacy.budget import Budget
from sharewell.query import workload
from sharewell.query.block import GroupedBlock
from sharewell.sharing.collective import Collective, DryRun, Join, Leave, expected_errors
from tests.mechanisms.measurements import line_of
from tests.sharing.search import worse
from tests.sharing.streams import streams_and_subsets
from tests.sharing.wide_streams import planned_streams


@settings(max_examples=25, deadline=None)
@given(streams_and_subsets(planned_streams()))
def test_no_answer_is_worse_for_others_being_there(case):
    stream, some = case
    assert worse(stream, some) == []


@settings(max_examples=10, deadline=None)
@given(streams_and_subsets(planned_streams()))
def test_the_second_implementation_finds_the_same_errors(case):
    stream, some = case
    for present in (stream.analysts, some):
        dry_run = DryRun(stream.collective(), present)
        for entry in stream.entries.values():
            errors = dry_run.play(entry)
            if errors is not None:
                again = dry_run.recompute(entry, range(len(errors)))
                assert again is not None
                assert list(errors) == pytest.approx(again, rel=1e-6)


def test_a_plan_for_all_would_make_an_analyst_worse_off():
    """A table of 7 cells beside one of 1,000: why a donation never pays for others' wishes."""
    domain = line_of(7, 10, 10, 10)
    small, large = (
        GroupedBlock(LinearQuery.all(domain), {at: np.arange(domain.shape[at]) for at in levels})
        for levels in ([0], [1, 2, 3])
    )
    shares = {"ann": Fraction(1, 2), "bob": Fraction(1, 2)}
    stream = [("ann", small, "free")]
    many = [large] * 20
    own = PlannedSeed(domain, "zcdp", expected={"ann": [small], "bob": many})
    both = PlannedSeed(domain, "zcdp", expected={"ann": [small, *many], "bob": [small, *many]})

    def error(seed, present):
        [found] = expected_errors(
            domain,
            stream,
            shares,
            seed=seed,
            seed_fraction=1,
            query_budget=1,
            privacy="zcdp",
            present=present,
        )
        assert isinstance(found, tuple)
        return max(found)

    assert error(own, {"ann", "bob"}) <= error(own, {"ann"})
    assert error(both, {"ann", "bob"}) > 1.4 * error(own, {"ann"})


@pytest.mark.parametrize("currency", ["pure", "zcdp"])
def test_a_part_of_two_plans_is_measured_once_for_both_amounts(currency):
    domain = line_of(6, 4)
    seed = PlannedSeed(domain, currency)
    bill = {"ann": Fraction(1, 3), "bob": Fraction(1, 6)}
    together, alone = seed.bought_by(bill), seed.bought_by({"ann": Fraction(1, 3)})
    assert [part.key for part in together.parts] == [part.key for part in alone.parts]
    assert together.plans is not None
    assert together.plans["ann"] == together.plans["bob"]
    wanted = PlannedSeed(domain, currency, expected={"bob": [workload.prefixes(domain, "a0")]})
    mixture = wanted.bought_by(bill)
    keys = [part.key for part in mixture.parts]
    assert len(set(keys)) == len(keys)
    assert sum(part.weight for part in mixture.parts) == 1
    for part, ann, bob in zip(mixture.parts, *mixture.plans.values(), strict=True):  # type: ignore[union-attr]
        assert part.weight * Fraction(1, 2) == ann / 3 + bob / 6


def test_a_late_donation_is_measured_by_the_donors_own_plan():
    domain = line_of(12)
    seed = PlannedSeed(domain, "zcdp", expected={"bob": [workload.prefixes(domain)]})
    make = partial(CacheReconstruct, seed=seed, seed_fraction="1/2", query_budget="1/10")
    dry_run = DryRun(
        Collective(domain, Budget("zcdp", Fraction(2), Fraction(2)), {"ann": Fraction(1)}, make)
    )
    for who in ("bob", "cem"):
        dry_run.play(Join(who, Fraction(1, 2)))
    dry_run.play(Leave("bob", donate=True))
    measured = [each.block for each in dry_run.mechanism.curator.measured]  # type: ignore[attr-defined]
    assert [list(block.plans) for block in measured] == [["ann"], ["bob"], ["cem"], ["bob"]]
    founder, late, default, again = ([part.key for part in block.parts] for block in measured)
    assert founder == default != late == again
    assert [any(part.rows for part in block.parts) for block in measured] == [False, True, False, True]


def test_what_donors_buy_follows_each_bill():
    """Rows bought before are remembered: never those of other donors, or of other amounts."""
    domain = line_of(6, 4)
    expected = {"bob": [workload.prefixes(domain, "a0")]}
    seed = PlannedSeed(domain, "zcdp", expected=expected)
    bills = [{"ann": 1, "bob": 2}, {"ann": 2, "bob": 4}, {"ann": 2, "bob": 1}, {"bob": 1}, {"ann": 1}]
    for bill in [*bills, *bills]:
        amounts = {name: Fraction(amount) for name, amount in bill.items()}
        anew = PlannedSeed(domain, "zcdp", expected=expected).bought_by(amounts)
        bought = seed.bought_by(amounts)
        assert bought.plans is not None
        assert bought.plans.keys() == amounts.keys()
        assert [(part.key, part.weight) for part in bought.parts] == [
            (part.key, part.weight) for part in anew.parts
        ]
