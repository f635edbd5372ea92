"""What the checks say of answers that nothing determines, and of seeds with several noise scales."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from sharewell.mechanisms.base import Answer
from sharewell.service.verify.accounts import _in_hex
from sharewell.service.verify.answers import _difference, _read_answer

STORED = {
    "value": None,
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


@pytest.mark.parametrize("value", [None, "nan", 12.5])
@pytest.mark.parametrize("interval", [None, ["-inf", "inf"]])
def test_an_undetermined_answer_may_have_any_value(value, interval):
    stored = _read_answer({**STORED, "value": value, "interval": interval})
    assert _difference(stored, UNDETERMINED) == ""


def test_an_undetermined_answer_has_no_finite_error_and_no_finite_interval():
    stored = _read_answer({**STORED, "value": 12.5, "interval": [1, 20]})
    assert _difference(stored, UNDETERMINED) == "interval"
    assert _difference(replace(stored, standard_error=3.0), UNDETERMINED) == "standard_error"
    finite = replace(UNDETERMINED, value=12.5, standard_error=3.0, interval=(1.0, 20.0))
    assert _difference(_read_answer(STORED), finite) == "standard_error"


@pytest.mark.parametrize("scales", [[], [2.5], [2.5, 2.5, 0.1, 0.1, 2.5], [0.0, 0.0]])
def test_scales_are_compared_as_they_are_stored(scales):
    array = np.array(scales, dtype=np.float64)
    assert _in_hex(array) == [scale.hex() for scale in array.tolist()]
