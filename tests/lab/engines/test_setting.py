"""Settings: floats that stand for exact amounts, and what is refused."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharewell.errors import ConfigError
from sharewell_lab.engines import PlaySettings
from sharewell_lab.engines.world import exact

GOOD: dict[str, Any] = {
    "shares": np.array([0.1, 0.2]),
    "population": 100.0,
    "seed_fraction": 0.5,
    "query_budget": 0.01,
}


@given(st.integers(1, 10**5), st.integers(1, 10**6))
def test_a_float_stands_for_the_fraction_that_it_was_made_from(above, below):
    assert exact(above / below) == Fraction(above, below)


@given(st.integers(1, 1000), st.integers(1, 1000), st.integers(1, 50))
def test_a_share_pays_for_as_many_questions_as_it_was_divided_into(above, below, parts):
    share = above / below
    assert exact(share) * Fraction(1, 2) / exact(share * 0.5 / parts) == parts


def test_shares_add_up_exactly():
    setting = PlaySettings(**{**GOOD, "shares": np.array([0.1, 0.2, 0.7])})
    assert setting.pot(np.array([True, True, False])) == Fraction(3, 10)
    assert setting.pot(np.ones(3, dtype=bool)) == 1


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("shares", np.array([0.1, 0.0])),
        ("shares", np.array([0.1, np.nan])),
        ("shares", np.array([])),
        ("shares", np.array([[0.1]])),
        ("population", 0.0),
        ("population", np.inf),
        ("seed_fraction", 0.0),
        ("seed_fraction", 1.5),
        ("query_budget", -1.0),
        ("updates", 0),
        ("threshold", -1),
    ],
)
def test_a_setting_that_makes_no_sense_is_refused_by_name(name, value):
    PlaySettings(**GOOD)
    with pytest.raises(ConfigError, match="[Ss]hare" if name == "shares" else name):
        PlaySettings(**{**GOOD, name: value})


def test_an_amount_too_small_to_be_one_is_refused():
    with pytest.raises(ConfigError, match="too small"):
        exact(1e-12)
