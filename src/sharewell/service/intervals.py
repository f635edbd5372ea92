"""Numbers that are made of one or two noisy answers: counts, sums and averages, and their intervals."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

from sharewell import wire
from sharewell.mechanisms.base import Answer, EdgeEstimate
from sharewell.query.expression import Aggregate, Average
from sharewell.query.ranges import ANYTHING
from sharewell.query.statement import Statement

#: How much wider an interval must be to hold with 97.5 % instead of 95 %, so that two of them hold at
#: once with 95 %, however their errors are correlated (Bonferroni). Gaussian noise needs
#: 2.2414 / 1.96 = 1.144. One Laplace draw needs ln 40 / ln 20 = 1.231, and 2.6085 / 2.06 = 1.267 from
#: the intervals of older ledgers.
WIDENING = 1.27

#: Where a value may have come from: of several, a number has the first. What was measured before is as
#: reliable as what is measured now; a number that was paid for now in part is not called cached.
LEAST_RELIABLE_FIRST: tuple[str, ...] = (
    "synthetic",
    "reconstructed",
    "measured",
    "cached",
    "public",
)

#: A count, and an average that may be any number.
_COUNT, _AVERAGE = Aggregate(0), Average(0, 1)

Interval = tuple[float, float]


class Combined(NamedTuple):
    """A linear combination of two answers: its standard error, if it is known, and its interval."""

    standard_error: float | None
    interval: Interval | None


def is_undetermined(answer: Answer) -> bool:
    """Whether nothing that was measured determines the answer."""
    return answer.standard_error is not None and math.isinf(answer.standard_error)


# Numbers


def number(answer: Answer, aggregate: Aggregate = _COUNT) -> wire.Number:
    """One answer; the interval of a sum over bins reaches from their lower to their upper edges."""
    if is_undetermined(answer):
        return wire.Number(value=None, interval=ANYTHING, source=answer.source)
    interval = answer.interval
    if aggregate.edges is not None:
        edges = dict(answer.edges).get(aggregate.edges)
        # The answers of older ledgers have none, and are given as they were.
        interval = over_bins(answer.value, edges) if edges else interval
    return wire.Number(
        value=finite(answer.value),
        standard_error=finite(answer.standard_error),
        interval=interval,
        source=answer.source,
    )


def shifted(total: Answer, count: Answer, aggregate: Aggregate) -> wire.Number:
    """The sum of a measure, from its centred sum and the number of its values."""
    source = least_reliable((total.source, count.source))
    if is_undetermined(total) or is_undetermined(count):
        return wire.Number(value=None, interval=ANYTHING, source=source)
    middle, block = float(aggregate.middle), aggregate.count or 0
    error, interval = combined(total, count, middle, covariance(total, block))
    return wire.Number(
        value=finite(total.value + middle * count.value),
        standard_error=error,
        interval=interval,
        source=source,
    )


def mean(
    total: Answer, count: Answer, average: Average = _AVERAGE, limits: Interval | None = None
) -> wire.Number:
    """A sum divided by a count; it has no value where the noisy count is not positive.

    It has an interval and no standard error: the quotient of two noisy numbers has no variance. The
    interval is within the limits of the average, and reaches from one to the other where the count may
    be 0. Without limits there is none then.
    """
    source = least_reliable((total.source, count.source))
    if _is_empty(count):
        return wire.Number(value=None, source=source)
    if is_undetermined(total) or is_undetermined(count):
        return wire.Number(value=None, interval=ANYTHING, source=source)
    middle = float(average.middle)
    value = average.within(total.value / count.value + middle) if count.value > 0 else None
    edges = dict(total.edges).get(average.edges) if average.edges is not None else None
    if average.edges is not None and edges is None:
        limits = None  # The answers of older ledgers have none, and are given as they were.
    if edges is not None:
        found = average_over_bins(total, count, edges)
    else:
        found = ratio(total, count, covariance(total, average.count))
    interval = found and (found[0] + middle, found[1] + middle)
    if limits is not None and total.interval is not None and count.interval is not None:
        low, high = interval or limits
        interval = min(max(low, limits[0]), limits[1]), min(max(high, limits[0]), limits[1])
    return wire.Number(value=finite(value), standard_error=None, interval=interval, source=source)


def range_of(average: Average, statement: Statement) -> Interval | None:
    """The least and the greatest number that an average of a measure or over bins can be."""
    limits = average if average.edges is None else statement.edge_sums[average.edges]
    if limits.low is None or limits.high is None:
        return None
    return float(limits.low), float(limits.high)


def _is_empty(count: Answer) -> bool:
    """Whether a count is 0 whatever the rows are."""
    return count.source == "public" and count.value == 0


def least_reliable(sources: Iterable[str]) -> str:
    """The source of a number that is made of several; "public" for one that is made of none."""
    return min(sources, key=LEAST_RELIABLE_FIRST.index, default="public")


def finite(value: float | None) -> float | None:
    """A number that can be shown; None for what is infinite or not a number."""
    return float(value) if value is not None and math.isfinite(value) else None


# Intervals


def covariance(answer: Answer, block: int) -> float | None:
    """The covariance of an answer with that of another block, if it is known."""
    return dict(answer.covariances).get(block)


def combined(left: Answer, right: Answer, factor: float, together: float | None) -> Combined:
    """The error of `left + factor * right`, from their covariance; without it, an interval only."""
    if left.interval is None or right.interval is None:
        return Combined(None, None)
    value = left.value + factor * right.value
    a, b = left.standard_error, right.standard_error
    if together is not None and a is not None and b is not None:
        variance = a * a + factor * factor * b * b + 2 * factor * together
        error = math.sqrt(max(variance, 0.0))
        reach = critical_of((left, right)) * error
        return Combined(error, (value - reach, value + reach))
    (low, high), ends = widened(left), [factor * end for end in widened(right)]
    return Combined(None, (low + min(ends), high + max(ends)))


def ratio(total: Answer, count: Answer, together: float | None) -> Interval | None:
    """The interval of `total / count`; None where the count may be 0, or an error is not known."""
    if total.interval is None or count.interval is None:
        return None
    a, b = total.standard_error, count.standard_error
    if together is None or a is None or b is None:
        return quotient(widened(total), widened(count))
    return fieller(total.value, count.value, a * a, b * b, together, critical_of((total, count)))


def fieller(
    total: float, count: float, total_variance: float, count_variance: float, both: float, z: float
) -> Interval | None:
    """Fieller's interval: the ratios t for which total - t * count is within z standard errors of 0.

    None where that is unbounded: where the count may be 0.
    """
    square = z * z
    weight = count * count - square * count_variance
    if not (count > 0 and weight > 0):
        return None
    middle = total * count - square * both
    # middle^2 - weight * (total^2 - z^2 total_variance), without its terms that cancel.
    spread = total * total * count_variance - 2 * total * count * both + count * count * total_variance
    spread = square * (spread - square * (total_variance * count_variance - both * both))
    reach = math.sqrt(max(spread, 0.0))
    return _finite_interval((middle - reach) / weight, (middle + reach) / weight)


def quotient(total: Interval, count: Interval) -> Interval | None:
    """The range of the quotient while both numbers lie in their intervals; None where it is unbounded.

    The true quotient lies in it whenever the two true numbers lie in their intervals.
    """
    (low, high), (least, most) = total, count
    # Not only where it crosses 0: a count may then be arbitrarily close to 0.
    if not least > 0 or not all(map(math.isfinite, (low, high, most))):
        return None
    return _finite_interval(low / (most if low >= 0 else least), high / (least if high >= 0 else most))


def widened(answer: Answer) -> Interval:
    """An answer's interval, so wide that two such hold at once with 95 %."""
    low, high = answer.interval or (-math.inf, math.inf)
    below, above = answer.value - low, high - answer.value
    return answer.value - WIDENING * below, answer.value + WIDENING * above


def average_over_bins(total: Answer, count: Answer, edges: EdgeEstimate) -> Interval | None:
    """The interval of an average over bins; None where the count may be 0, or an error is not known.

    The true average is at least the sum of lower edges divided by the count, and at most that of upper
    edges. So the interval reaches from the low end of the interval of the one to the high end of that of
    the other: each end is wrong with 2.5 %. It has the average of midpoints, which lies between.
    """
    if count.interval is None:
        return None
    error, sides = count.standard_error, []
    for value, reach, own, both in (
        (edges.lower, edges.below, edges.lower_error, edges.lower_with_count),
        (edges.upper, edges.above, edges.upper_error, edges.upper_with_count),
    ):
        if error is None or own is None or both is None:
            # The answers of older ledgers, and of mechanisms without covariances.
            sums = over_bins(total.value, edges, WIDENING)
            return sums and quotient(sums, widened(count))
        critical = max(critical_of((count,)), reach / own if own else 0.0)
        sides.append(fieller(value, count.value, own * own, error * error, both, critical))
    low, high = sides
    if low is None or high is None:
        return None
    middle = total.value / count.value
    return min(low[0], middle), max(high[1], middle)


def over_bins(middle: float, edges: EdgeEstimate, widening: float = 1.0) -> Interval | None:
    """The interval of a sum over bins, from the sums of midpoints, lower and upper edges."""
    return _finite_interval(
        min(edges.lower, middle) - widening * edges.below,
        max(edges.upper, middle) + widening * edges.above,
    )


def critical_of(answers: Iterable[Answer]) -> float:
    """Half the width of an interval in standard errors; 0 where all answers are exact."""
    found = 0.0
    for answer in answers:
        if answer.interval is not None and answer.standard_error:
            found = max(found, (answer.interval[1] - answer.value) / answer.standard_error)
    return found


def _finite_interval(low: float, high: float) -> Interval | None:
    return (low, high) if math.isfinite(low) and math.isfinite(high) else None
