"""Signed rows: decided by the question, keyed by what is measured, and what goes wrong otherwise."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from sharewell import Budget, Curator, DataVector, Domain, Integer, LinearQuery, NoNoise
from sharewell.errors import PrivacyError
from sharewell.mechanisms import reconstruction, seed
from sharewell.mechanisms.cache_reconstruct import CacheReconstruct, signing_helps
from sharewell.query.block import GroupedBlock, ParallelBlock
from tests.mechanisms.measurements import line_of
from tests.mechanisms.oracle import Ask
from tests.sharing.broken import KeyedByCount, SignsWhatIsLeft, signed
from tests.sharing.search import search, worse
from tests.sharing.streams import Stream

#: A vague identity, which knows the total badly. Ann buys a count that is a row of bob's GROUP BY.
#: Alone, bob buys all his rows as they are.
FIRST, SECOND = (1, 0, 0, 0, 0, 0), (0, 1, 1, 0, 0, 0)
ANN_FIRST = Stream(
    line_of(6),
    "identity",
    {"ann": Fraction(1), "bob": Fraction(1)},
    (Ask("ann", (FIRST,)), Ask("bob", (FIRST, SECOND))),
    seed_fraction=Fraction(1, 20),
    query_budget=Fraction(1, 4),
    currency="zcdp",
    neighbours="add-remove",
    buy_seed_rows=True,
    signed_rows=True,
)


def test_keyed_by_the_count_an_answer_can_be_worse_for_others_being_there():
    """A GROUP BY must buy its row although the signed row of the same count was bought."""
    assert worse(ANN_FIRST, {"bob"}) == []
    [(at, place, joint, alone)] = worse(ANN_FIRST, {"bob"}, kind=KeyedByCount)
    assert (at, place) == (1, 0)
    assert joint > 1.2 * alone


def test_signed_by_what_is_left_to_buy_an_answer_can_be_worse_for_others_being_there():
    """With ann, one row of the GROUP BY is left; signed, it says less."""
    assert [case[:2] for case in worse(ANN_FIRST, {"bob"}, kind=SignsWhatIsLeft)] == [(1, 0), (1, 1)]


def test_the_search_finds_no_answer_that_is_worse():
    counts, found = search(40, number=1)
    assert counts["signed"] > 10
    assert found == []


# The row that is measured

DOMAIN = Domain([Integer("age", 0, 9), Integer("size", 0, 4)])
YOUNG = LinearQuery.of(DOMAIN, age=range(3), size=range(2))


def single(query: LinearQuery) -> ParallelBlock:
    return ParallelBlock(DOMAIN, [query])


@pytest.mark.parametrize(
    "weights", [{"age": [1, 1, 1] + [0] * 7}, {"age": list(range(10))}, {"age": [2] * 9 + [4]}]
)
def test_the_signed_row_of_a_count_has_no_larger_sensitivity_and_gives_it_back_with_the_total(weights):
    count = LinearQuery.product(DOMAIN, weights).primitive
    row = signed(count)
    assert row.max_abs <= count.max_abs
    most = int(count.max_abs)
    for sign in (1, -1):
        back = (sign * row.to_vector() * (most / int(row.max_abs)) + most) / 2
        if np.array_equal(back, count.to_vector()):
            break
    else:
        assert set(count.to_vector()) == {1, 2}, "2w - 2 is 0 or 2, and is divided by 2"
    assert single(~YOUNG).signed == single(YOUNG).signed, "a count and its complement are one row"


def test_only_a_single_count_has_a_signed_row():
    groups = {0: [0] * 5 + [1] * 5}
    assert GroupedBlock(YOUNG, groups).signed is None, "the rows of a GROUP BY are measured as they are"
    assert len(GroupedBlock(YOUNG, groups)) == 1
    assert ParallelBlock.group_by(LinearQuery.all(DOMAIN), groups).signed is None
    difference = YOUNG - LinearQuery.of(DOMAIN, age=range(5, 8))
    assert single(difference).signed is None
    assert single(LinearQuery.all(DOMAIN)).signed == single(LinearQuery.all(DOMAIN)).primitive


def mechanism(total, *, neighbours="add-remove", budget="1", **options) -> CacheReconstruct:
    """A seed of one-way tables with a part of its budget on the total."""
    weights = [(1 - Fraction(total)) / 2] * 2 + [Fraction(total)]
    chosen = seed.marginals_of(DOMAIN, [["age"], ["size"], []], weights)
    empty = DataVector(DOMAIN, np.full(50, 7, dtype=np.int64))
    options = {"seed": chosen, "seed_fraction": "1/2", "query_budget": "1/20", **options}
    zcdp = Budget("zcdp", Fraction(budget), Fraction(budget))
    curator = Curator(empty, zcdp, {"ann": budget}, neighbours=neighbours, noise=NoNoise())
    return CacheReconstruct(curator, **options)


def test_counts_are_signed_where_the_total_is_known_well_enough():
    assert signing_helps(mechanism("1/3"), [YOUNG])
    assert not signing_helps(mechanism("1/3", neighbours="replace-one"), [YOUNG])
    assert not signing_helps(mechanism("1/3", answers="as-printed"), [YOUNG])
    assert not signing_helps(mechanism("1/3", seed=seed.identity(DOMAIN)), [YOUNG])
    unseeded = mechanism("1/3", seed_fraction="0")
    assert not signing_helps(unseeded, [YOUNG]), "nothing determines the total"


def test_a_signed_count_is_right_and_has_about_a_quarter_of_the_variance():
    answers = [mechanism("1/3", signed_rows=signed).ask(YOUNG, "ann") for signed in (False, True)]
    assert [answer.value for answer in answers] == pytest.approx([42, 42])
    assert [answer.source for answer in answers] == ["measured", "measured"]
    plain, halved = (answer.standard_error or 0.0 for answer in answers)
    assert 0 < halved < 0.63 * plain


def test_signed_rows_are_refused_where_they_would_not_be_as_private_or_as_good():
    for options in ({"neighbours": "replace-one"}, {"answers": "as-printed"}):
        with pytest.raises(PrivacyError, match="Signed rows need"):
            mechanism("1/3", signed_rows=True, **options)


@pytest.mark.parametrize("strategy", [seed.identity, seed.marginals])
def test_a_count_that_was_paid_for_has_an_answer_where_rounding_spoils_all_estimates(
    strategy, monkeypatch
):
    """The last resort: half of the signed row and of the total that the seed knows."""
    domain, counts = line_of(4, 3), np.arange(12)
    curator = Curator(DataVector(domain, counts), Budget.pure("1"), {"ann": 1}, noise=NoNoise())
    mechanism = CacheReconstruct(
        curator,
        seed=strategy(domain),
        seed_fraction="1/2",
        query_budget="1/4",
        signed_rows=True,
    )
    query = LinearQuery.of(domain, a0=[0, 3], a1=[1, 2]) * 3
    row = ParallelBlock(domain, [query]).signed
    assert row is not None
    total = mechanism.ask(LinearQuery.all(domain), "ann", pay=False).standard_error
    spoilt = lambda variances, limits: np.zeros(len(variances), dtype=bool)  # noqa: E731
    monkeypatch.setattr(reconstruction, "_plausible", spoilt)
    answer = mechanism.ask(query, "ann")
    assert answer.value == pytest.approx(query.dot(counts))
    own = float(curator.variances(row, Fraction(1, 4))[0])
    assert total is not None
    assert answer.standard_error == pytest.approx(3 * math.sqrt(own + total**2) / 2)
    other = mechanism.ask(LinearQuery.of(domain, a0=[1]), "ann", pay=False)
    assert not other.is_determined
