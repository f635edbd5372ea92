"""Random worlds, small enough that everything happens: shares run out, questions come again."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from hypothesis import strategies as st

from sharewell import Domain, Integer
from sharewell_lab.streams import Questions
from tests.lab.engines.real import Case

AMOUNTS = [Fraction(text) for text in ("1/20", "1/10", "1/7", "1/3", "1/2", "1", "5/2")]
FRACTIONS = [Fraction(text) for text in ("1/10", "1/4", "1/3", "1/2", "9/10", "1")]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """A stream of few different questions over few cells, some analysts absent, in any order."""
    rows, columns = draw(st.integers(1, 4)), draw(st.integers(1, 3))
    cells = rows * columns
    masks = draw(st.lists(st.integers(1, 2**cells - 1), min_size=1, max_size=8))
    analysts = draw(st.integers(1, 4))
    asked = draw(
        st.lists(
            st.tuples(st.sampled_from(masks), st.integers(0, analysts - 1)), min_size=1, max_size=40
        )
    )
    weights = np.array([[mask >> cell & 1 for cell in range(cells)] for mask, _ in asked])
    questions = Questions.of_rows(weights, [analyst for _, analyst in asked], analysts=analysts)
    here = draw(st.sets(st.integers(0, analysts - 1), min_size=1))
    present = np.isin(np.arange(analysts), list(here))
    shares = draw(st.lists(st.sampled_from(AMOUNTS), min_size=analysts, max_size=analysts))
    # A query budget that divides a share evenly, or nearly so, is where floats and fractions part.
    parts = draw(st.integers(1, 12)) + draw(
        st.sampled_from([Fraction(0), Fraction(1, 1000), Fraction(1, 2)])
    )
    return Case(
        domain=Domain([Integer("a", 0, rows - 1), Integer("b", 0, columns - 1)]),
        questions=questions,
        order=np.array(draw(st.permutations(questions.places(present).tolist())), dtype=np.int64),
        counts=np.array(draw(st.lists(st.integers(0, 900), min_size=cells, max_size=cells))),
        shares=shares,
        seed_fraction=draw(st.sampled_from(FRACTIONS)),
        query_budget=draw(st.sampled_from(shares)) / parts,
        # Not a number that makes guesses end in one half: those may be rounded either way.
        population=draw(st.sampled_from([99.37, 2718.28, 10_000.01])),
        present=present,
        updates=draw(st.sampled_from([None, 1, 3, 8])),
        threshold=draw(st.sampled_from([None, 0, 20, 100])),
    )
