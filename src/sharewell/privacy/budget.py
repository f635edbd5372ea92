"""Budgets: exact amounts in one of two currencies, in both of which costs simply add up."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Literal, get_args

import scipy

from sharewell.errors import PrivacyError

#: Pure epsilon with Laplace noise, or rho of zero-concentrated privacy with Gaussian noise.
Currency = Literal["pure", "zcdp"]
Amount = str | int | Decimal | Fraction

#: What an amount may be written as: 2, 0.5, 1e-6 or 1/3.
PLAIN_NUMBER = re.compile(r"[-+]?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?(/[0-9]+)?", re.ASCII)
#: How many digits after the point a rho is rounded down to.
RHO_DIGITS = 12


def amount(value: Amount, what: str = "A budget") -> Fraction:
    """An exact amount of budget from decimal text; zero, negative and floating amounts are refused.

    >>> amount("0.1") + amount("0.2") == amount("0.3")
    True
    """
    if type(value) is Fraction and value.numerator > 0:
        return value
    if isinstance(value, bool) or not isinstance(value, str | int | Decimal | Fraction):
        raise PrivacyError(
            f"{what} must be an exact number, not a {type(value).__name__}.",
            hint='Write it as text, such as "0.1".',
        )
    try:
        # Through Decimal, since the exponent of a text such as 1e999999999 would never end.
        exact = Fraction(value) if isinstance(value, int | Fraction) else _read(str(value))
    except (ValueError, OverflowError, InvalidOperation, ZeroDivisionError):
        raise PrivacyError(
            f"{what} must be a plain number, not {str(value)[:40]!r}.",
            hint='Write it as "0.1", "1e-6" or "1/3", with exponents of at most 100.',
        ) from None
    if exact <= 0:
        raise PrivacyError(f"{what} must be greater than 0, not {value}.")
    return exact


def _read(text: str) -> Fraction:
    if not PLAIN_NUMBER.fullmatch(text):
        raise ValueError(text)
    above, _, below = text.partition("/")
    parts = [Decimal(part) for part in (above, below or "1")]
    if len(text) > 100 or any(not part.is_finite() or abs(part.adjusted()) > 100 for part in parts):
        raise ValueError(text)
    return Fraction(parts[0]) / Fraction(parts[1])


@dataclass(frozen=True)
class Budget:
    """The whole of what one dataset may ever spend.

    >>> Budget.pure("1").total
    Fraction(1, 1)
    >>> float(Budget.zcdp("1", "1e-6").total)
    0.024355970357
    """

    currency: Currency
    total: Fraction
    #: What the curator stated; delta is 0 in the pure currency.
    epsilon: Fraction
    delta: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        if self.currency not in get_args(Currency):
            raise PrivacyError(f"Unknown currency {self.currency!r}.", hint="Use pure or zcdp.")

    @classmethod
    def pure(cls, epsilon: Amount) -> Budget:
        """Epsilon-differential privacy; noise is discrete Laplace."""
        exact = amount(epsilon, "epsilon")
        return cls("pure", exact, exact)

    @classmethod
    def zcdp(cls, epsilon: Amount, delta: Amount) -> Budget:
        """(epsilon, delta)-differential privacy, spent as rho; noise is discrete Gaussian."""
        eps, tiny = amount(epsilon, "epsilon"), amount(delta, "delta")
        if not Fraction(1, 10**300) <= tiny < 1:
            raise PrivacyError(
                "delta must be below 1, and not below 1e-300.", hint='It is usually about "1e-6".'
            )
        return cls("zcdp", rho_for(eps, tiny), eps, tiny)

    def cost_of_pure(self, epsilon: Fraction) -> Fraction:
        """What an epsilon-private step costs here: itself, or epsilon^2 / 2 as rho."""
        return epsilon if self.currency == "pure" else epsilon**2 / 2


def delta_of(rho: float, epsilon: float) -> float:
    """The least delta for which every rho-zCDP mechanism is known to be (epsilon, delta)-private.

    Canonne, Kamath and Steinke (2020), Proposition 12: the infimum over orders a > 1 of
    exp((a - 1)(a rho - epsilon)) / (a - 1) * (1 - 1/a)^a.
    """

    def log_delta(log_order: float) -> float:
        excess = math.exp(log_order)  # a - 1
        order = excess + 1
        return excess * (order * rho - epsilon) - log_order + order * (log_order - math.log(order))

    # SciPy loads this part here, and not for servers of budgets that need no conversion.
    best = scipy.optimize.minimize_scalar(
        log_delta, bounds=(-20.0, 40.0), method="bounded", options={"xatol": 1e-10}
    )
    return math.exp(min(0.0, float(best.fun)))


def rho_for(epsilon: Fraction, delta: Fraction) -> Fraction:
    """The largest rho, rounded down, whose every mechanism is (epsilon, delta)-private."""
    low, high = 0.0, float(epsilon)
    goal = float(delta) * (1 - 1e-9)
    while delta_of(high, float(epsilon)) <= goal:
        low, high = high, 2 * high
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if delta_of(middle, float(epsilon)) <= goal else (low, middle)
    exact = Fraction(math.floor(Fraction(low) * 10**RHO_DIGITS), 10**RHO_DIGITS)
    if exact <= 0:
        raise PrivacyError("epsilon and delta leave no budget to spend.", hint="Raise epsilon or delta.")
    return exact
