"""What the checks say of answers that nothing determines, and of seeds with several noise scales."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import pytest

from sharewell.mechanisms.base import Answer
from sharewell.service.answers import from_plain
from sharewell.service.verify.answers import _difference

STORED = {
    "value": "nan",
    "standard_error": "inf",
    "interval": None,
    "source": "reconstructed",
    "cost": "0",
    "payer": None,
    "charge": None,
}
UNDETERMINED = Answer(
    math.nan, math.inf, (-math.inf, math.inf), "reconstructed", Fraction(0), None, None
)


@pytest.mark.parametrize("value", ["nan", 12.5])
@pytest.mark.parametrize("interval", [None, ["-inf", "inf"]])
def test_an_undetermined_answer_may_have_any_value(value, interval):
    stored = from_plain({**STORED, "value": value, "interval": interval})
    assert _difference(stored, UNDETERMINED) == ""


def test_an_undetermined_answer_has_no_finite_error_and_no_finite_interval():
    stored = from_plain({**STORED, "value": 12.5, "interval": [1, 20]})
    assert _difference(stored, UNDETERMINED) == "interval"
    assert _difference(replace(stored, standard_error=3.0), UNDETERMINED) == "standard_error"
    finite = replace(UNDETERMINED, value=12.5, standard_error=3.0, interval=(1.0, 20.0))
    assert _difference(from_plain(STORED), finite) == "standard_error"
