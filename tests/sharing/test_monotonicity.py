"""Nobody is worse off for anybody joining: the theorem, exactly, on the real mechanism.

The standard error of every answer depends on public things alone. So a stream is played with all
analysts and with some of them, and no answer to any of those may have a larger one with all.
"""

from __future__ import annotations

import math
from fractions import Fraction
from random import Random

import numpy as np
import pytest
from hypothesis import Phase, example, find, given, settings

from sharewell.query import workload
from tests.mechanisms.measurements import line_of
from tests.mechanisms.oracle import Ask, Join, Leave
from tests.sharing.search import worse
from tests.sharing.streams import Stream, play, streams_and_subsets


def stream(seed_name: str, cells: int, shares, events, **options) -> Stream:
    """A stream on a line, with the settings that most have."""
    settings = {
        "seed_fraction": Fraction(9, 10),
        "query_budget": Fraction(1, 50),
        "currency": "pure",
        "neighbours": "add-remove",
        "buy_seed_rows": False,
    }
    return Stream(line_of(cells), seed_name, shares, tuple(events), **{**settings, **options})


PAIR = ((1, 1, 0),)
#: Each can pay for one question. Alone, ann pays for it and reconstructs from then on. With bob, who
#: paid for it, she keeps her budget, and as printed she gets the raw value for ever.
BOB_FIRST = stream(
    "identity",
    3,
    {"ann": Fraction(1, 5), "bob": Fraction(1, 5)},
    [Ask("bob", PAIR), Ask("ann", PAIR), Ask("ann", PAIR)],
)
#: Nobody donates at the start. What bob leaves is little, and must not stand in ann's way.
BOB_LEAVES = stream(
    "identity",
    3,
    {"ann": Fraction(1, 5), "bob": Fraction(1, 500)},
    [Leave("bob", donate=True), Ask("ann", ((1, 0, 0),))],
    seed_fraction=Fraction(0),
)
#: Whoever comes late finds nobody there.
ANN_COMES_LATE = stream(
    "h2",
    4,
    {"bob": Fraction(1, 5)},
    [Ask("bob", ((1, 1, 1, 0),)), Join("ann", Fraction(1, 5)), Ask("ann", ((1, 1, 1, 0),))],
)
#: A very precise total beside a weak row: both count.
PRECISE_TOTAL = stream(
    "total",
    4,
    {"ann": Fraction(10), "bob": Fraction(40)},
    [Ask("ann", ((1, 0, 0, 0),)), Ask("ann", ((0, 1, 1, 1),), pay=False)],
    query_budget=Fraction(1, 100),
)


@given(streams_and_subsets())
@example((BOB_FIRST, frozenset({"ann"})))
@example((BOB_LEAVES, frozenset({"ann"})))
@example((ANN_COMES_LATE, frozenset({"ann"})))
@example((PRECISE_TOTAL, frozenset({"ann"})))
def test_no_answer_to_anybody_is_worse_for_others_being_there(case):
    stream, some = case
    assert worse(stream, some) == []


def test_as_printed_an_answer_can_be_worse_for_somebody_being_there():
    assert worse(BOB_FIRST, {"ann"}) == []
    [(at, _, joint, alone)] = worse(BOB_FIRST, {"ann"}, "as-printed")
    assert at == 2
    assert joint > 3 * alone


def test_the_same_search_finds_what_is_wrong_with_the_printed_algorithm():
    case = find(
        streams_and_subsets(),
        lambda case: bool(worse(case[0], case[1], "as-printed")),
        settings=settings(max_examples=3000, database=None, phases=[Phase.generate], deadline=None),
        random=Random(8),
    )
    assert worse(*case) == []


@pytest.mark.parametrize("currency", ["pure", "zcdp"])
def test_it_holds_where_answers_are_reconstructed_from_rows_and_then_from_cells(currency):
    """More cells than a dense covariance is kept for at once, and in the end more rows than cells."""
    rng = np.random.default_rng(4)
    shares = {"ann": Fraction(1), "bob": Fraction(1, 2), "cem": Fraction(1, 4)}
    asks = []
    for at in range(45):
        if at % 9 == 4:
            group = (np.arange(270) + at // 9) // 3
            rows = [tuple((group == g).astype(int).tolist()) for g in range(group.max() + 1)]
        else:
            chosen = workload.random_ranges(line_of(270), 1, rng)[0]
            rows = [tuple(chosen.to_vector().tolist())]
        asks.append(Ask(str(rng.choice(list(shares))), tuple(rows)))
    whole = stream("h2", 270, shares, asks, currency=currency, seed_fraction=Fraction(1, 2))
    played = play(whole, whole.analysts)
    assert len(played.mechanism._reconstruction) > 270
    for some in ({"ann"}, {"bob", "cem"}):
        assert worse(whole, some) == []


@given(streams_and_subsets())
@example((BOB_LEAVES, frozenset({"ann"})))
def test_nobody_has_less_left_and_no_row_is_lost_for_others_being_there(case):
    """The two invariants of the proof."""
    stream, some = case
    with_all, with_some = (play(stream, who) for who in (stream.analysts, some))
    assert all(with_all.left[name] >= left for name, left in with_some.left.items())
    rows, fewer = (played.mechanism._cache for played in (with_all, with_some))
    assert rows.keys() >= fewer.keys()
    assert all(rows[key].variance <= row.variance for key, row in fewer.items())
    assert len(with_all.mechanism._reconstruction) == len(rows), "no row is ever paid for twice"


@given(streams_and_subsets())
@example((BOB_LEAVES, frozenset({"ann"})))
def test_every_standard_error_is_that_of_a_naive_simulation(case):
    stream, some = case
    for present in (stream.analysts, some):
        played, expected = play(stream, present), stream.simulate(present)
        assert played.errors.keys() == expected.variances.keys()
        for at, variances in expected.variances.items():
            errors = [math.sqrt(variance) for variance in variances]
            assert played.errors[at] == pytest.approx(errors, rel=1e-8)
        assert played.left == expected.left
