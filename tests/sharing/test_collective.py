"""Collectives and what can be known of them beforehand."""

import math
import pickle
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest

from sharewell import Block, Budget, DataVector, Domain, Integer, LinearQuery
from sharewell.errors import OverBudget, SharewellError, SharingError
from sharewell.mechanisms import seed
from sharewell.mechanisms.cache_reconstruct import CacheReconstruct
from sharewell.mechanisms.independent import Independent
from sharewell.mechanisms.laplace import Laplace
from sharewell.mechanisms.pmw import PrivateMultiplicativeWeights
from sharewell.query import workload
from sharewell.sharing.collective import (
    Ask,
    Collective,
    DryRun,
    Join,
    Leave,
    expected_errors,
    read_stream,
)
from sharewell_lab.noise import SeededNoise

LINE = Domain([Integer("age", 0, 15)])
MINORS = LinearQuery.of(LINE, age=range(5))
SHARES = {"ann": Fraction(1, 2), "bob": Fraction(1, 2)}
SCR = partial(CacheReconstruct, seed=seed.identity(LINE), seed_fraction="1/2", query_budget="1/10")
SETTINGS: dict[str, Any] = {"seed": seed.identity(LINE), "seed_fraction": "1/2", "query_budget": "1/10"}
HALVES = Block(LINE, [LinearQuery.of(LINE, age=range(8)), LinearQuery.of(LINE, age=range(8, 16))])


@pytest.mark.parametrize("make", [SCR, partial(Laplace, query_budget="1/10")])
@pytest.mark.parametrize("budget", [Budget.pure("1"), Budget.zcdp("1", "1e-6")])
def test_a_dry_run_tells_the_errors_of_the_real_table_with_any_noise(make, budget):
    shares = {name: share * budget.total for name, share in SHARES.items()}
    make = partial(make, query_budget=budget.total / 10)
    collective = Collective(LINE, budget, shares, make)
    asked: list[Any] = [("ann", MINORS), ("bob", MINORS), ("bob", HALVES), ("ann", MINORS)]
    real = collective.open(DataVector(LINE, np.arange(16)), noise=SeededNoise(3))
    told = list(collective.errors(asked))
    for (analyst, question), errors in zip(asked, told, strict=True):
        found: Any = real.ask(question, analyst)
        answers = (found,) if isinstance(question, LinearQuery) else found
        assert errors == tuple(answer.standard_error for answer in answers)


def test_refused_questions_are_infinitely_far_off():
    collective = Collective(
        LINE, Budget.pure("1"), SHARES, partial(Laplace, query_budget=Fraction(1, 3))
    )
    found: list[Any] = list(collective.errors([Ask("ann", HALVES)] * 4))
    assert [math.isinf(errors[0]) for errors in found] == [False, False, False, True]
    assert found[3] == (math.inf, math.inf)


def test_a_dry_run_leaves_absent_analysts_out():
    collective = Collective(LINE, Budget.pure("1"), SHARES, SCR)
    assert DryRun(collective, {"bob"}).mechanism.analysts == ("bob",)
    assert DryRun(collective, absent={"bob"}).mechanism.analysts == ("ann",)
    assert DryRun(collective, {"bob"}).play(Ask("ann", MINORS)) is None


def test_errors_that_depend_on_the_data_have_no_dry_run():
    make = partial(PrivateMultiplicativeWeights, threshold=50, updates=4, population=100)
    for wrapped in (make, partial(Independent, make=make)):
        collective = Collective(LINE, Budget.pure("1"), SHARES, wrapped)
        with pytest.raises(SharingError, match="depend on the data"):
            list(collective.errors([Ask("ann", MINORS)] * 3))


def test_a_collective_travels_to_another_process_without_its_empty_table():
    collective = Collective(LINE, Budget.pure("1"), SHARES, SCR)
    before = len(pickle.dumps(collective))
    assert collective.empty.domain == LINE
    assert len(pickle.dumps(collective)) == before
    again = pickle.loads(pickle.dumps(collective))
    assert list(again.errors([Ask("ann", MINORS)])) == list(collective.errors([Ask("ann", MINORS)]))


def test_expected_errors_come_one_an_entry_in_the_shape_of_the_question():
    stream = [
        ("ann", MINORS),
        ("ann", HALVES, "free"),
        Join("cem", Fraction(1, 4)),
        ("cem", MINORS, "pay"),
        Leave("bob", donate=True),
        Ask("cem", HALVES, pay=False),
    ]
    found: list[Any] = expected_errors(LINE, stream, SHARES, **SETTINGS)
    assert [type(errors) for errors in found] == [float, tuple, type(None), float, type(None), tuple]
    some: list[Any] = expected_errors(LINE, stream, SHARES, **SETTINGS, present={"ann"})
    assert [errors is None for errors in some] == [False, False, True, True, True, True]
    assert found[0] < some[0]


def test_expected_errors_for_every_way_to_set_it_up_differ():
    stream = [("ann", MINORS), ("bob", MINORS), ("bob", HALVES)]

    def told(**changes):
        return tuple(map(str, expected_errors(LINE, stream, SHARES, **{**SETTINGS, **changes})))

    variants = [
        told(),
        told(privacy="zcdp"),
        told(neighbours="replace-one"),
        told(seed=seed.h2(LINE)),
        told(seed_fraction="3/4"),
        told(query_budget="1/20"),
        told(answers="as-printed"),
    ]
    assert len(set(variants)) == len(variants)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"privacy": "renyi"}, "Unknown currency"),
        ({"present": {"zoe"}}, "Unknown analyst 'zoe'"),
        ({"present": "ann"}, "set of names"),
        ({"answers": "raw"}, "Invalid value 'raw'"),
        ({"query_budget": 0.1}, "exact number"),
        ({"query_budget": "0"}, "greater than 0"),
        ({"seed_fraction": "2"}, "at most 1"),
    ],
)
def test_a_setting_that_makes_no_sense_is_refused(change, problem):
    with pytest.raises(SharewellError, match=problem):
        expected_errors(LINE, [("ann", MINORS)], SHARES, **{**SETTINGS, **change})


@pytest.mark.parametrize(
    ("stream", "problem"),
    [
        ([("ann",)], "Entry 0"),
        ([("ann", MINORS), ("ann", "SELECT 1")], "Entry 1"),
        ([("ann", MINORS, "cheap")], "Entry 0"),
        ([("zoe", MINORS)], "Unknown analyst 'zoe'"),
        ([Leave("ann"), ("ann", MINORS)], "ann"),
        ([Join("ann", Fraction(1))], "already holds"),
        ([("ann", LinearQuery.all(Domain([Integer("age", 0, 3)])))], "different domains"),
    ],
)
def test_a_stream_that_cannot_happen_is_refused(stream, problem):
    with pytest.raises(SharewellError, match=problem):
        expected_errors(LINE, stream, SHARES, **SETTINGS)


def test_nobody_at_all_is_refused_and_somebody_who_comes_later_is_not():
    with pytest.raises(SharingError, match="No analyst has a share"):
        expected_errors(LINE, [], {}, **SETTINGS)
    late = [Join("ann", Fraction(1)), ("ann", MINORS)]
    found: list[Any] = expected_errors(LINE, late, {}, **SETTINGS)
    assert found[1] > 0


def test_plain_tuples_are_read_as_questions():
    assert read_stream([("ann", MINORS), ("ann", MINORS, "free")]) == [
        Ask("ann", MINORS),
        Ask("ann", MINORS, pay=False),
    ]


def test_shares_that_pass_the_budget_are_refused():
    collective = Collective(LINE, Budget.pure("1/2"), SHARES, SCR)
    with pytest.raises(OverBudget):
        list(collective.errors([("ann", workload.identity(LINE))]))
