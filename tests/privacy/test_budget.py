"""Budgets: exact amounts and the conversion from (epsilon, delta)."""

import math
from decimal import Decimal
from fractions import Fraction

import dp_accounting
import pytest
from dp_accounting.rdp import RdpAccountant
from hypothesis import example, given
from hypothesis import strategies as st

from sharewell.errors import PrivacyError
from sharewell.privacy.budget import Budget, amount, delta_of, rho_for


def test_amounts_are_exact():
    assert amount("0.1") * 10 == 1
    assert amount(Decimal("0.3")) - amount("0.1") - amount("0.2") == 0
    assert amount("1/3") * 3 == 1


@pytest.mark.parametrize(
    "bad",
    [
        0.1,
        True,
        None,
        "",
        "x",
        "0",
        "-1",
        0,
        -1,
        "nan",
        "inf",
        "1/0",
        "1e999999999",
        "1_000",
        " 1",
        "٣",
        "1e-400",
        "9" * 5000,
        Decimal("nan"),
    ],
)
def test_an_amount_that_is_not_exact_and_positive_is_refused(bad):
    with pytest.raises(PrivacyError):
        amount(bad)


def naive_log_delta(rho: float, epsilon: float) -> float:
    """The logarithm of the infimum on a fine grid of orders, straight from the formula."""
    orders = [1 + math.exp(x / 200) for x in range(-2000, 2400)]
    logs = [(a - 1) * (a * rho - epsilon) - math.log(a - 1) + a * math.log1p(-1 / a) for a in orders]
    return min(0.0, min(logs))


@given(st.floats(0.001, 5), st.floats(0.01, 20))
@example(rho=0.01570194105977581, epsilon=6.349069731934261)
def test_delta_is_the_infimum_over_orders(rho, epsilon):
    found, expected = delta_of(rho, epsilon), naive_log_delta(rho, epsilon)
    assert found <= math.exp(expected) * (1 + 1e-9)
    # Where delta is tiny, its logarithm L is that of a parabola around the best order, and half a step
    # of the grid adds L / 400^2.
    if expected > math.log(1e-300):
        assert math.log(found) == pytest.approx(expected, rel=1e-5, abs=2e-3)


@given(st.fractions("1/100", 20, max_denominator=1000), st.integers(3, 12))
def test_rho_is_the_largest_that_keeps_the_promise(epsilon, digits):
    delta = Fraction(1, 10**digits)
    rho = rho_for(epsilon, delta)
    assert delta_of(float(rho), float(epsilon)) <= delta
    assert delta_of(float(rho) * 1.0001 + 1e-11, float(epsilon)) > delta


@pytest.mark.parametrize(
    ("epsilon", "delta"), [("0.1", "1e-6"), ("1", "1e-6"), ("1", "1e-9"), ("10", "1e-5")]
)
def test_rho_agrees_with_an_independent_accountant(epsilon, delta):
    """A Gaussian mechanism with that rho, accounted for by another library through Renyi orders."""
    budget = Budget.zcdp(epsilon, delta)
    sigma = math.sqrt(1 / (2 * float(budget.total)))
    accountant = RdpAccountant([1 + math.exp(x / 50) for x in range(-300, 400)])
    accountant.compose(dp_accounting.GaussianDpEvent(sigma))
    assert accountant.get_epsilon(float(delta)) == pytest.approx(float(epsilon), rel=1e-3)


def test_a_pure_step_costs_half_its_square_as_rho():
    assert Budget.zcdp("1", "1e-6").cost_of_pure(Fraction(1, 2)) == Fraction(1, 8)
    assert Budget.pure("1").cost_of_pure(Fraction(1, 2)) == Fraction(1, 2)


@pytest.mark.parametrize(
    ("epsilon", "delta"),
    [("1", "1"), ("1", "0"), ("0", "1e-6"), ("1e-20", "1e-90"), ("1", Fraction(1, 10**400))],
)
def test_impossible_promises_are_refused(epsilon, delta):
    with pytest.raises(PrivacyError):
        Budget.zcdp(epsilon, delta)
