"""The theorem on tables of any width: marginals and plans without dense cells, against small ones."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from sharewell import Domain, Integer, LinearQuery
from sharewell.mechanisms.marginal_seed import MarginalPart
from tests.mechanisms.oracle import Ask, Close, Measured
from tests.sharing.broken import ClosesWhenAllAreDone, KeyedByCount, PlansForAll, SignsWhatIsLeft
from tests.sharing.search import differs, search, worse
from tests.sharing.wide_streams import WideStream


def test_the_search_finds_no_answer_that_is_worse():
    counts, found = search(8, number=3, of="wide")
    assert found == []
    assert counts["differ from the simulation"] == 0
    assert 0 < counts["seed planned"] < 8
    assert min(counts[name] for name in ("pure", "zcdp", "Join", "Leave", "Close", "two blocks")) > 0


# The small problem is the whole one


def test_merged_cells_have_the_errors_of_all_cells():
    """Marginals and centred rows, of attributes that are asked about or not, in classes of any size."""
    rng = np.random.default_rng(5)
    domain = Domain([Integer(f"a{at}", 0, size - 1) for at, size in enumerate((4, 2, 3))])
    stream = table_of(domain, asked=((0, (1, 3)), (2, (2, 1))))
    known, merged = Measured(), Measured()
    for centred in (False, True):
        for count in range(1, 4):
            for levels in combinations(range(3), count):
                part = MarginalPart(levels, 0, Fraction(1), centred)
                noise = float(rng.uniform(1, 9))
                rows = written_out(part, domain)
                known.add(rows, [0] * len(rows), [noise] * len(rows))
                few, factors = stream.merged(part)
                merged.add(few, [0] * len(few), (noise * factors).tolist())
    queries = rng.integers(-2, 3, (5, 4))
    whole = np.array([stream.lifted(row).to_vector() for row in queries], dtype=float)
    assert merged.estimate(queries)[1] == pytest.approx(known.estimate(whole)[1])


def written_out(part: MarginalPart, domain: Domain) -> np.ndarray:
    rows: np.ndarray = np.ones((1, 1))
    for level, size in enumerate(domain.shape):
        along = size * np.eye(size) - 1 if part.centred else np.eye(size)
        rows = np.kron(rows, along if level in part.attributes else np.ones((1, size)))
    return rows


# Each guarantee broken, on a table of 10^10 cells and more


def table_of(domain: Domain, **options: Any) -> WideStream:
    settings: dict[str, Any] = {
        "seed_name": "planned",
        "shares": {"ann": Fraction(1), "bob": Fraction(1, 5)},
        "events": (),
        "seed_fraction": Fraction(9, 10),
        "query_budget": Fraction(1, 10),
        "currency": "zcdp",
        "neighbours": "add-remove",
        "buy_seed_rows": False,
        **options,
    }
    return WideStream(domain, **settings)


WIDE = Domain([Integer(f"a{at}", 0, size - 1) for at, size in enumerate([2, 5] + [7] * 11)])
ASKED = ((0, (1, 1)), (1, (1,) * 5))
CELLS = np.indices((2, 5)).reshape(2, -1)
BY_FIRST = tuple(tuple((CELLS[0] == at).astype(int).tolist()) for at in range(2))
BY_BOTH = tuple(tuple((np.arange(10) == at).astype(int).tolist()) for at in range(10))
#: Ann asks for a table of two cells; bob, with a small share, often for one of ten.
DIFFERENT_WISHES = table_of(
    WIDE,
    asked=ASKED,
    events=(Ask("ann", BY_FIRST, pay=False), *[Ask("bob", BY_BOTH, pay=False)] * 8),
)
#: Ann is done, and bob never is.
ANN_IS_DONE = table_of(
    WIDE,
    asked=ASKED,
    events=(Close(("ann",)), Ask("ann", BY_FIRST, pay=False)),
    seed_fraction=Fraction(1, 10),
)
#: A seed that knows the total badly. Ann buys a count that is a row of bob's GROUP BY.
FIRST, SECOND = ((1, 0, 0, 0, 0), (0, 1, 1, 0, 0))
ANN_FIRST = table_of(
    WIDE,
    asked=((1, (1,) * 5),),
    tables=(((1,), 1), ((2, 3), 20)),
    shares={"ann": Fraction(1), "bob": Fraction(1)},
    events=(Ask("ann", (FIRST,)), Ask("bob", (FIRST, SECOND))),
    seed_fraction=Fraction(1, 20),
    query_budget=Fraction(1, 4),
    buy_seed_rows=True,
    signed_rows=True,
)


@pytest.mark.parametrize(
    ("stream", "some", "broken"),
    [
        (ANN_FIRST, {"bob"}, KeyedByCount),
        (ANN_FIRST, {"bob"}, SignsWhatIsLeft),
        (DIFFERENT_WISHES, {"ann"}, PlansForAll),
        (ANN_IS_DONE, {"ann"}, ClosesWhenAllAreDone),
    ],
)
def test_without_any_one_guarantee_an_answer_can_be_worse(stream, some, broken):
    assert math.prod(stream.domain.shape) > 10**10
    assert worse(stream, some) == []
    assert differs(stream, stream.analysts) == []
    assert worse(stream, some, kind=broken)


def test_a_question_about_classes_is_one_about_their_cells():
    stream = table_of(WIDE, asked=((0, (1, 1)), (1, (2, 3))))
    weights = LinearQuery.of(WIDE, a0=[1], a1=[0, 1]) * 3 + LinearQuery.of(WIDE, a1=[2, 3, 4])
    assert stream.lifted(np.array([0, 1, 3, 1])) == weights
