"""Numbers, amounts and counts as text."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

#: Fractions with larger denominators are shown as decimals: 24355970357/1000000000000 is unreadable.
LARGEST_DENOMINATOR = 10_000
#: Numbers of cells from here on are rounded.
ROUNDED = 10**12
#: The note of a quote that hardly pays for anything.
GAINS_LITTLE = "Paying would hardly make the answer more precise."


def format_number(value: float | None, error: float | None = None) -> str:
    """Format a number with as many digits as its error justifies: its first two.

    >>> format_number(6231.2841, 28.4), format_number(0.51234, 0.027), format_number(12)
    ('6,231', '0.512', '12')
    >>> format_number(6231.2841, 2.8), format_number(0.51234, 0.0999)
    ('6,231.3', '0.51')
    """
    if value is None:
        return "NULL"
    if not math.isfinite(value):
        return "∞" if value > 0 else "-∞" if value < 0 else "NaN"
    if error is None or not math.isfinite(error) or error <= 0:
        # Integers in full, however large; six significant digits of other numbers.
        return f"{value:,.0f}" if value == round(value) else f"{value:,.6g}"
    exponent = int(f"{error:.1e}".partition("e")[2])  # of the rounded error: 0.0999 is 0.10
    text = f"{value:,.{max(0, 1 - exponent)}f}"
    return text[1:] if text.startswith("-") and not text.strip("-0.,") else text


def format_estimate(
    value: float | None, interval: tuple[float, float] | None, *, level: bool = True
) -> str:
    """Format a number with its 95 % interval; an asymmetric interval with both ends.

    >>> format_estimate(6231.0, (6203.0, 6259.0)), format_estimate(2.5, (0.0, 9.0))
    ('6,231 ± 28 (95 %)', '2.5 (0.0 to 9.0, 95 %)')
    >>> format_estimate(6231.0, (6203.0, 6259.0), level=False)
    '6,231 ± 28'
    """
    if value is None:
        return format_number(value)
    low, high = interval or (-math.inf, math.inf)
    half = (high - low) / 2
    if not math.isfinite(half):
        return f"{format_number(value)} ± ?"
    if math.isclose(value - low, high - value, rel_tol=1e-3, abs_tol=1e-9):
        return f"{format_number(value, half)} ± {format_number(half, half)}{' (95 %)' if level else ''}"
    if all(each == round(each) for each in (value, low, high)):
        half = 0  # whole numbers, such as the median of integers, need no decimals
    ends = f"{format_number(low, half)} to {format_number(high, half)}"
    return f"{format_number(value, half)} ({ends}{', 95 %' if level else ''})"


def format_group_sizes(sizes: Sequence[int] | None) -> str:
    """Format the sizes of the groups that errors of averages are stated for; empty for other numbers.

    >>> f"0.31{format_group_sizes([5000])}", f"0.31 to 2.40{format_group_sizes([5000, 80])}"
    ('0.31 for a group of 5,000', '0.31 to 2.40 for groups of 5,000 to 80')
    """
    if not sizes:
        return ""
    different = list(dict.fromkeys(sizes))
    groups = "groups" if len(different) > 1 else "a group"
    return f" for {groups} of {' to '.join(f'{size:,}' for size in different)}"


def format_cells(cells: int) -> str:
    """Format a number of cells; one that is too long to read is rounded.

    >>> format_cells(1), format_cells(4_800), format_cells(123 * 10**28), format_cells(2**19_999)
    ('1 cell', '4,800 cells', 'about 1.2e+30 cells', 'about 2.0e+6020 cells')
    """
    if cells < ROUNDED:
        return pluralize(cells, "cell")
    return f"about {Decimal(cells):.1e} cells"  # No float is so large.


def format_label(label: Any) -> str:
    """Format the label of a group as SQL does.

    >>> format_label(None), format_label(True), format_label("18-64")
    ('NULL', 'true', '18-64')
    """
    if label is None:
        return "NULL"
    return str(label).lower() if isinstance(label, bool) else str(label)


def format_amount(amount: Fraction) -> str:
    """Format a budget amount, exactly where that is readable.

    >>> format_amount(Fraction(1, 100)), format_amount(Fraction(24355970357, 10**12))
    ('1/100', '0.02436')
    """
    return str(amount) if amount.denominator <= LARGEST_DENOMINATOR else f"{float(amount):.4g}"


def format_cost(cost: Fraction) -> str:
    """Format what a question cost.

    >>> format_cost(Fraction(1, 100)), format_cost(Fraction(0))
    ('cost 1/100', 'free')
    """
    return f"cost {format_amount(cost)}" if cost else "free"


def budget_unit(currency: str) -> str:
    """Return the name of a currency's unit.

    >>> budget_unit("pure"), budget_unit("zcdp")
    ('epsilon', 'rho')
    """
    return {"pure": "epsilon", "zcdp": "rho"}.get(currency, currency)


def pluralize(count: int, one: str, many: str = "") -> str:
    """Format a count with its noun.

    >>> pluralize(1, "question"), pluralize(1200, "question"), pluralize(2, "entry", "entries")
    ('1 question', '1,200 questions', '2 entries')
    """
    return f"{count:,} {one if count == 1 else many or one + 's'}"
