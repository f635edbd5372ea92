"""Hypothesis strategies for few analysts with small quotas, in exact fractions."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import strategies as st


@st.composite
def small_quotas(draw, most_analysts: int = 3, most: int = 4) -> tuple[list[int], list[Fraction]]:
    """Quotas, 0 among them, and probabilities that may differ a thousandfold."""
    count = draw(st.integers(1, most_analysts))
    quotas = draw(st.lists(st.integers(0, most), min_size=count, max_size=count).filter(any))
    weights = draw(st.lists(st.sampled_from([1, 2, 3, 40, 1000]), min_size=count, max_size=count))
    return quotas, [Fraction(weight, sum(weights)) for weight in weights]
