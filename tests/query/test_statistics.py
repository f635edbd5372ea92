"""Quantiles of noisy counts against the definition of isotonic regression."""

from __future__ import annotations

from fractions import Fraction
from itertools import accumulate
from statistics import fmean

from hypothesis import given
from hypothesis import strategies as st

from sharewell.query.statistics import quantile


def increasing(totals: list[float]) -> list[float]:
    """The nearest increasing numbers: of the runs with a place, the largest of the smallest means."""
    places = range(len(totals))
    return [
        max(min(fmean(totals[first : last + 1]) for last in places[at:]) for first in places[: at + 1])
        for at in places
    ]


@given(st.lists(st.integers(-30, 60), min_size=1, max_size=9), st.integers(1, 39))
def test_running_totals_of_noisy_counts_are_made_to_increase(counts, fortieths):
    fraction = Fraction(fortieths, 40)
    ends = [(Fraction(x), Fraction(x)) for x in range(len(counts))]
    totals = increasing([max(float(total), 0.0) for total in accumulate(counts)])
    found = quantile(fraction, ends, counts, continuous=False)
    if totals[-1] <= 0:
        assert found is None
    else:
        # Rounding may decide where a total is what is wanted.
        wanted = [float(fraction) * totals[-1] * (1 + slack) for slack in (-1e-9, 1e-9)]
        assert found in [
            next(x for x, t in enumerate(totals) if t >= each or x == len(totals) - 1) for each in wanted
        ]


def test_a_negative_count_moves_no_quantile_backwards():
    ends = [(Fraction(x), Fraction(x)) for x in range(5)]
    counts = [40, -25, 30, -10, 50]
    found = [quantile(Fraction(n, 10), ends, counts, continuous=True) for n in range(1, 10)]
    assert None not in found
    assert found == sorted(each for each in found if each is not None)
