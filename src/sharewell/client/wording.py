"""Numbers and amounts as people write them."""

from __future__ import annotations

import math
from fractions import Fraction

#: Fractions with larger denominators are shown as decimals: nobody reads 24355970357/1000000000000.
LARGEST_DENOMINATOR = 10_000


def number(value: float | None, give: float | None = None) -> str:
    """A number to as many digits as what it may be off by deserves.

    >>> number(6231.2841, 28.4), number(0.51234, 0.027), number(12), number(None)
    ('6,231', '0.512', '12', 'NULL')
    """
    if value is None:
        return "NULL"
    if not math.isfinite(value):
        return "∞" if value > 0 else "-∞" if value < 0 else "not a number"
    if give is None or not math.isfinite(give) or give <= 0:
        # Whole numbers are shown whole, however large; of others six digits are enough.
        return f"{value:,.0f}" if value == round(value) else f"{value:,.6g}"
    shown = f"{value:,.{decimals(give)}f}"
    return shown[1:] if shown.startswith("-") and not shown.strip("-0.,") else shown


def decimals(give: float) -> int:
    """How many digits after the point still say something: those of the error's first two.

    >>> decimals(280), decimals(28), decimals(2.8), decimals(0.028)
    (0, 0, 1, 3)
    """
    return max(0, 1 - math.floor(math.log10(give)))


def give_or_take(value: float | None, interval: tuple[float, float] | None) -> str:
    """A number with its 95 % interval; with both ends where the interval is lopsided.

    >>> give_or_take(6231.0, (6203.0, 6259.0)), give_or_take(3.0, (0.0, 9.0)), give_or_take(3.0, None)
    ('6,231 ± 28 (95 %)', '3.0 (0.0 to 9.0, 95 %)', '3 ± ?')
    """
    if value is None:
        return number(value)
    low, high = interval or (-math.inf, math.inf)
    half = half_width((low, high))
    if not math.isfinite(half):
        return f"{number(value)} ± ?"
    if math.isclose(value - low, high - value, rel_tol=1e-3, abs_tol=1e-9):
        return f"{number(value, half)} ± {number(half, half)} (95 %)"
    return f"{number(value, half)} ({number(low, half)} to {number(high, half)}, 95 %)"


def half_width(interval: tuple[float, float]) -> float:
    """Half of an interval's width."""
    return (interval[1] - interval[0]) / 2


def amount(of: Fraction) -> str:
    """An amount of budget: exact where that can be read.

    >>> amount(Fraction(1, 100)), amount(Fraction(24355970357, 10**12))
    ('1/100', '0.02436')
    """
    return str(of) if of.denominator <= LARGEST_DENOMINATOR else f"{float(of):.4g}"


def price(of: Fraction) -> str:
    """What something costs.

    >>> price(Fraction(1, 100)), price(Fraction(0))
    ('cost 1/100', 'free')
    """
    return f"cost {amount(of)}" if of else "free"


def currency(name: str) -> str:
    """What a budget is counted in.

    >>> currency("pure"), currency("zcdp")
    ('epsilon', 'rho')
    """
    return {"pure": "epsilon", "zcdp": "rho"}.get(name, name)


def several(count: int, one: str, many: str = "") -> str:
    """A number of things.

    >>> several(1, "question"), several(1200, "question"), several(2, "entry", "entries")
    ('1 question', '1,200 questions', '2 entries')
    """
    return f"{count:,} {one if count == 1 else many or one + 's'}"
