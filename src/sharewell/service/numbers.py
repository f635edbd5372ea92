"""The numbers of a result: values, standard errors and intervals, computed from answers.

The leaves of an expression have intervals of their own; see `query.expression`. An interval holds with
95 %. Where several must hold at once, all are made wider: the leaves of one computed number, and all
rows of a result of which noise has chosen some: the one at the top is there because its noise is large.
"""

from __future__ import annotations

import datetime as dt
import itertools
import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cache, cached_property, lru_cache
from statistics import NormalDist
from typing import Any

from sharewell import wire
from sharewell.mechanisms.base import GAUSSIAN_CRITICAL, LAPLACE_CRITICAL, Answer
from sharewell.query.expression import (
    Aggregate,
    Average,
    Call,
    Constant,
    Expression,
    GroupKey,
    Linear,
    Number,
    OrderKey,
    Quantile,
    Rank,
    Ratio,
    Spread,
    is_public,
    numbers,
)
from sharewell.query.ranges import ANYTHING, Range, union
from sharewell.query.statement import Statement
from sharewell.service.intervals import (
    Interval,
    critical_of,
    fieller,
    finite,
    is_undetermined,
    least_reliable,
    mean,
    number,
    over_bins,
    quotient,
    range_of,
    shifted,
)
from sharewell.service.spread_intervals import NoisySums, spread_interval, statements


def values(answers: Sequence[Answer]) -> list[float | None]:
    """The values of answers: None for those that nothing determines, which are NULL."""
    return [None if is_undetermined(answer) else answer.value for answer in answers]


def is_number(expression: Expression) -> bool:
    """Whether an expression is shown as a number with an interval, and not as a label."""
    match expression:
        case Call():
            return expression.type == "number" and not is_public(expression)
        case Quantile():
            return not expression.is_date
    return isinstance(expression, Number)


class RowNumbers:
    """The numbers of a result: values, standard errors and intervals, column by column."""

    def __init__(self, statement: Statement, answers: Sequence[Answer]) -> None:
        self.statement = statement
        self.answers = answers
        self.values = values(answers)
        #: How many rows an interval must hold for at once.
        self._rows_at_once = len(statement.group_labels) if statement.selects_by_noise else 1
        #: The answers, by how much wider their intervals are made.
        self._widened: dict[float, Sequence[Answer]] = {1.0: answers}
        # By identity: the hash of a ratio is that of all its rows.
        self._columns: dict[int, Sequence[Any]] = {}
        self._ranks: dict[int, tuple[str, Sequence[Interval]]] = {}
        if statement.forms:
            # Many rows may share a form, such as the total of all: it is looked at once.
            self._form_value = cache(self._form_value_of)
            self._form_source = cache(self._form_source_of)
            self._form_critical = cache(self._form_critical_of)

    def column(self, expression: Expression) -> Callable[[int], Any]:
        """A function from a row to a column's field there."""
        if isinstance(expression, GroupKey):
            return expression.labels.__getitem__
        if isinstance(expression, Number):
            widening = self._widening(self._rows_at_once)
            if isinstance(expression, Quantile) and expression.is_date:
                return lambda row: self._date(expression, row, widening)
            return lambda row: self._number(expression, row, widening)
        if isinstance(expression, Call) and is_number(expression):
            leaves = list(numbers(expression))
            widening = self._widening(len(leaves) * self._rows_at_once)
            return lambda row: self._computed(expression, leaves, row, widening)
        shown = self._values_of(expression)
        return lambda row: _label(shown[row])

    def _computed(
        self, expression: Call, leaves: Sequence[Number], row: int, widening: float
    ) -> wire.Number:
        """The number that a function or an operator makes of others."""
        found = self._bounds(expression, row, widening)
        value = finite(self._values_of(expression)[row])
        parts = [self._number(leaf, row, widening) for leaf in leaves]
        if any(part.interval == ANYTHING and part.value is None for part in parts):
            found = ANYTHING if value is None else None
        source = least_reliable(part.source for part in parts)
        interval = None if found is None or any(map(math.isnan, found)) else found
        if interval is not None and value is not None:
            interval = min(interval[0], value), max(interval[1], value)
        return wire.Number(value=value, interval=interval, source=source)

    def _values_of(self, expression: Expression) -> Sequence[Any]:
        if id(expression) not in self._columns:
            self._columns[id(expression)] = self.statement.column(expression, self.values)
        return self._columns[id(expression)]

    @cached_property
    def _is_laplace(self) -> bool:
        """Whether the noise has the tails of Laplace noise: then intervals are 2.12 errors wide."""
        ratios = [
            (answer.interval[1] - answer.value) / answer.standard_error
            for answer in self.answers
            if answer.interval and answer.standard_error and math.isfinite(answer.standard_error)
        ]
        return not ratios or min(ratios) > (GAUSSIAN_CRITICAL + LAPLACE_CRITICAL) / 2

    def _widening(self, count: int) -> float:
        """How much wider intervals must be for so many to hold at once."""
        return 1.0 if count <= 1 else widening(count, laplace=self._is_laplace)

    def _scaled(self, widening: float) -> Sequence[Answer]:
        """The answers with wider intervals."""
        if widening not in self._widened:
            self._widened[widening] = [_wider(answer, widening) for answer in self.answers]
        return self._widened[widening]

    # Leaves

    def _number(self, leaf: Number, row: int, widening: float) -> wire.Number:
        answers, starts = self._scaled(widening), self.statement.starts
        match leaf:
            case Aggregate(block, _, None):
                return number(answers[starts[block] + row], leaf)
            case Aggregate(block, _, int(count)):
                return shifted(answers[starts[block] + row], answers[starts[count] + row], leaf)
            case Average(total, count):
                own, of_rows = answers[starts[total] + row], answers[starts[count] + row]
                return mean(own, of_rows, leaf, range_of(leaf, self.statement))
            case Linear(forms):
                return self._linear(forms[row], leaf.edges, widening)
            case Ratio():
                return self._ratio(leaf, row, widening)
            case Spread():
                return self._spread(leaf, row, widening)
            case Quantile():
                return self._quantile(leaf, row, widening)
            case Rank():
                return self._rank(leaf, row)
        raise TypeError(f"{leaf!r} is not a number")

    def _form_source_of(self, form: int) -> str:
        used = [self.answers[at].source for at, _ in self.statement.forms[form]]
        return least_reliable(used)

    def _form_value_of(self, form: int) -> Any:
        """The value of a linear combination; None if nothing determines one of its answers."""
        [value] = self.statement.combine([form], self.values)
        return value

    def _form_critical_of(self, form: int, widening: float) -> float | None:
        """Half the width of a form's interval in standard errors; None if one of them is not known."""
        used = self._form_answers(form, widening)
        return None if any(answer.interval is None for answer in used) else critical_of(used)

    def _is_undetermined(self, *forms: int) -> bool:
        return any(self._form_value(form) is None for form in forms)

    @cached_property
    def _moments(self) -> dict[tuple[int, int], float]:
        pairs = self.statement.moments
        found = (moment for answer in self.answers for moment in answer.moments)
        return {pairs[place]: each for place, each in found}

    def _variance(self, form: int) -> float | None:
        terms = self.statement.forms[form]
        if not terms:
            return 0.0
        if len(terms) == 1:
            error = self.answers[terms[0][0]].standard_error
            return None if error is None else (float(terms[0][1]) * error) ** 2
        return self._moments.get((form, form))

    def _form_answers(self, form: int, widening: float) -> list[Answer]:
        answers = self._scaled(widening)
        return [answers[at] for at, _ in self.statement.forms[form]]

    def _linear(self, form: int, edges: int | None, widening: float) -> wire.Number:
        source = self._form_source(form)
        if self._is_undetermined(form):
            return wire.Number(value=None, interval=ANYTHING, source=source)
        value = self._form_value(form)
        variance, error = self._variance(form), None
        if variance is not None:
            error = math.sqrt(max(variance, 0.0))
        interval = self._form_interval(form, widening)
        if edges is not None:
            interval = self._interval_over_bins(form, edges, widening)
        return wire.Number(value=finite(value), standard_error=error, interval=interval, source=source)

    def _interval_over_bins(self, form: int, edges: int, widening: float) -> Interval | None:
        """The interval of a sum of sums over bins; None if an answer has no estimates of its edges.

        However the errors of the parts are correlated, that of their sum is at most the sum of theirs.
        """
        found = [dict(answer.edges).get(edges) for answer in self._form_answers(form, widening)]
        parts = [each for each in found if each is not None]
        if not parts or len(parts) < len(found):
            return None
        names = ("lower", "below", "upper", "above")
        total = {name: sum(getattr(each, name) for each in parts) for name in names}
        return over_bins(float(self._form_value(form)), parts[0]._replace(**total))

    def _form_interval(self, form: int, widening: float) -> Interval | None:
        """The interval of a linear combination; without its variance, from those of all its answers."""
        terms = self.statement.forms[form]
        value, variance = self._form_value(form), self._variance(form)
        critical = self._form_critical(form, widening)
        if critical is None:
            return None
        if variance is not None:
            reach = critical * math.sqrt(max(variance, 0.0))
            return float(value) - reach, float(value) + reach
        wider = self._form_answers(form, widening * self._widening(len(terms)))
        reach = sum(
            abs(float(factor)) * (answer.interval[1] - answer.value)
            for answer, (_, factor) in zip(wider, terms, strict=True)
            if answer.interval is not None
        )
        return float(value) - reach, float(value) + reach

    def _ratio(self, leaf: Ratio, row: int, widening: float) -> wire.Number:
        above, below = leaf.numerators[row], leaf.denominators[row]
        source = least_reliable(self._form_source(form) for form in (above, below))
        if self._is_undetermined(above, below):
            return wire.Number(value=None, interval=ANYTHING, source=source)
        value = self._values_of(leaf)[row]
        interval = self._ratio_interval(above, below, widening)
        if leaf.edges is not None:
            wider = widening * self._widening(2)
            sums = self._interval_over_bins(above, leaf.edges, wider)
            counts = self._form_interval(below, wider)
            interval = quotient(sums, counts) if sums and counts else None
        if leaf.low is not None and leaf.high is not None:
            middle = float(leaf.middle)
            low, high = interval or (-math.inf, math.inf)
            interval = leaf.within(low + middle), leaf.within(high + middle)
        return wire.Number(value=finite(value), interval=interval, source=source)

    def _spread(self, leaf: Spread, row: int, widening: float) -> wire.Number:
        forms = {name: of_rows[row] for name, of_rows in leaf.sums}
        source = least_reliable(self._form_source(form) for form in forms.values())
        if self._is_undetermined(*forms.values()):
            return wire.Number(value=None, interval=ANYTHING, source=source)
        value = finite(self._values_of(leaf)[row])
        if source == "public" and value is None:
            return wire.Number(value=None, source=source)
        wider = widening * self._widening(statements(leaf.kind))
        criticals = [self._form_critical(form, wider) for form in forms.values()]
        covariances = self._covariances(forms)
        if covariances is None or None in criticals:
            return wire.Number(value=value, source=source)
        values = {name: float(self._form_value(form)) for name, form in forms.items()}
        critical = max(each or 0.0 for each in criticals)
        interval = spread_interval(leaf, NoisySums.of(values, covariances, critical))
        if interval is not None and value is not None:
            interval = min(interval[0], value), max(interval[1], value)
        return wire.Number(value=value, interval=interval, source=source)

    def _covariances(self, forms: Mapping[str, int]) -> dict[tuple[str, str], float] | None:
        """The covariances of named forms; None if an error is not known.

        Where those of two are not known, none counts, and the variances are multiplied by the number of
        forms: no correlation makes the variance of a combination of them larger.
        """
        variances = {name: self._largest_variance(form) for name, form in forms.items()}
        if any(each is None for each in variances.values()):
            return None
        found = {(name, name): each or 0.0 for name, each in variances.items()}
        for (one, a), (two, b) in itertools.permutations(forms.items(), 2):
            if self.statement.forms[a] and self.statement.forms[b]:
                both = self._moments.get((a, b), self._moments.get((b, a)))
                found[one, two] = math.nan if both is None else both
            else:
                found[one, two] = 0.0
        if any(map(math.isnan, found.values())):
            found = {(a, b): len(forms) * each if a == b else 0.0 for (a, b), each in found.items()}
        return found

    def _largest_variance(self, form: int) -> float | None:
        """The variance of a linear combination, or the largest that it can be; None if it is unknown."""
        if (variance := self._variance(form)) is not None:
            return variance
        terms = [(self.answers[at].standard_error, float(f)) for at, f in self.statement.forms[form]]
        if any(error is None for error, _ in terms):
            return None
        return float(sum(abs(factor) * error for error, factor in terms if error is not None) ** 2)

    def _ratio_interval(self, above: int, below: int, widening: float) -> Interval | None:
        top, bottom = float(self._form_value(above)), float(self._form_value(below))
        criticals = [self._form_critical(form, widening) for form in (above, below)]
        if None in criticals:
            return None
        variances = self._variance(above), self._variance(below)
        both = self._moments.get((above, below))
        if above == below:
            both = variances[0]
        sign = 1.0 if bottom > 0 else -1.0
        if None in variances or both is None:
            ends = [self._form_interval(form, widening * self._widening(2)) for form in (above, below)]
            if None in ends:
                return None
            (low, high), (least, most) = ends  # type: ignore[misc]
            if sign < 0:
                (low, high), (least, most) = (-high, -low), (-most, -least)
            return quotient((low, high), (least, most))
        # Fieller's interval divides by a positive number; a ratio is that of both with other signs.
        own, other = variances
        critical = max(each or 0.0 for each in criticals)
        return fieller(sign * top, sign * bottom, own or 0.0, other or 0.0, both, critical)

    def _quantile(self, leaf: Quantile, row: int, widening: float) -> wire.Number:
        counts, crossings = leaf.counts[row], leaf.crossings[row]
        source = least_reliable(self._form_source(form) for form in counts)
        if self._is_undetermined(*counts):
            return wire.Number(value=None, interval=ANYTHING, source=source)
        value = self._values_of(leaf)[row]
        if isinstance(value, dt.date):
            value = value.toordinal()
        ranges = [self._form_interval(form, widening) for form in crossings]
        # The quantile is at most a value where the rows up to it may be the fraction of all, and more
        # than it where they may be fewer. A continuous one lies between two neighbours: one row more.
        slack = 1.0 if leaf.continuous else 0.0
        low, high = float(leaf.ends[0][0]), float(leaf.ends[-1][1])
        if any(each is None for each in ranges):
            return wire.Number(value=finite(value), source=source)
        reaching = [at for at, each in enumerate(ranges) if each and each[1] + slack >= 0]
        short = [at for at, each in enumerate(ranges) if each and each[0] - slack < 0]
        if reaching:
            low = float(leaf.ends[reaching[0]][0])
        last = min(short[-1] + 1, len(ranges) - 1) if short else 0
        high = float(leaf.ends[max(last, reaching[0] if reaching else last)][1])
        if value is not None:
            low, high = min(low, float(value)), max(high, float(value))
        return wire.Number(value=finite(value), interval=(low, high), source=source)

    def _date(self, leaf: Quantile, row: int, widening: float) -> str | None:
        """A quantile of dates, or one end of its interval, as a label."""
        found = self._quantile(leaf, row, widening)
        low, high = found.interval or (None, None)
        day = {"": found.value, "low": low, "high": high}[leaf.bound]
        if day is None or not math.isfinite(day):
            return None
        return dt.date.fromordinal(int(day)).isoformat()

    def _rank(self, leaf: Rank, row: int) -> wire.Number:
        value = float(self._values_of(leaf)[row])
        if id(leaf) not in self._ranks:
            self._ranks[id(leaf)] = self._sources(leaf), self._rank_intervals(leaf)
        source, intervals = self._ranks[id(leaf)]
        return wire.Number(value=value, interval=intervals[row], source=source)

    def _rank_intervals(self, leaf: Rank) -> Sequence[Interval]:
        """How far each row may move: past those whose intervals overlap with its own."""
        key: OrderKey = leaf.order[0]
        rows = range(len(self.statement.group_labels))
        if all(is_public(each.source) for each in leaf.order):
            return [(float(exact), float(exact)) for exact in self._values_of(leaf)]
        if is_public(key.source):
            ranks = self.statement.order_values(key, self.values)
            ends: list[Range | None] = [None if r is None else (float(r), float(r)) for r in ranks]
        else:
            count = len(rows) * len(list(numbers(key.source)))
            ends = [self._bounds(key.source, row, self._widening(count)) for row in rows]
        members: dict[int, list[int]] = {}
        for row in rows:
            members.setdefault(leaf.partitions[row], []).append(row)
        found: list[Interval] = [(1.0, 1.0)] * len(rows)
        sign = -1 if key.descending else 1
        for own in members.values():
            known = [each for row in own if (each := ends[row]) and not any(map(math.isnan, each))]
            if len(known) < len(own):
                for row in own:
                    found[row] = 1.0, float(len(own))
                continue
            spans = [sorted(sign * end for end in each) for each in known]
            least, most = (sorted(span[side] for span in spans) for side in (0, 1))
            for row, (low, high) in zip(own, spans, strict=True):
                before = bisect_left(most, low)
                first = before if leaf.kind != "DENSE_RANK" else min(before, 1)
                found[row] = 1.0 + first, float(bisect_right(least, high))
        return found

    def _sources(self, leaf: Rank) -> str:
        used = [each for key in leaf.order for each in numbers(key.source)]
        parts = [self._number(each, 0, 1.0).source for each in used if not isinstance(each, Rank)]
        return least_reliable(parts)

    # Bounds of computed numbers

    def _bounds(self, expression: Expression, row: int, widening: float) -> Range | None:
        """The range of an expression while all its leaves are in their intervals; None if unknown."""
        match expression:
            case Constant(value):
                return _point(value)
            case GroupKey(labels, _, of_groups):
                return _point((of_groups or labels)[row])
            case Call(function, arguments):
                if function.name == "CASE":
                    return self._case(arguments, row, widening)
                first = self._bounds(arguments[0], row, widening)
                if function.name in ("COALESCE", "NULLIF"):
                    return first
                rest = [self._bounds(each, row, widening) for each in arguments[1:]]
                ranges = [first, *rest]
                if function.name in ("GREATEST", "LEAST"):
                    ranges = [
                        each for each, own in zip(ranges, arguments, strict=True) if not _is_null(own)
                    ]
                if function.bounds is None or any(each is None for each in ranges):
                    return None
                found: Range | None = function.bounds(*ranges)
                return found
        return self._number(expression, row, widening).interval  # type: ignore[arg-type]

    def _case(self, arguments: Sequence[Expression], row: int, widening: float) -> Range | None:
        possible: list[Range] = []
        for condition, value in zip(arguments[:-1:2], arguments[1:-1:2], strict=True):
            truths = self._truths(condition, row, widening)
            if True in truths and not _is_null(value):
                found = self._bounds(value, row, widening)
                if found is None:
                    return None
                possible.append(found)
            if truths == {True}:
                return union(possible) if possible else None
        if not _is_null(arguments[-1]):
            found = self._bounds(arguments[-1], row, widening)
            if found is None:
                return None
            possible.append(found)
        return union(possible) if possible else None

    def _truths(self, condition: Expression, row: int, widening: float) -> set[bool | None]:
        """The truth values that a condition may have."""
        match condition:
            case Constant(value):
                return {value}
            case GroupKey(labels, _, of_groups):
                label: Any = (of_groups or labels)[row]
                return {label}
            case Call(function, arguments) if function.name in ("AND", "OR", "NOT"):
                found: set[bool | None] = {function.name == "AND"} if function.name != "NOT" else set()
                for part in arguments:
                    own = self._truths(part, row, widening)
                    if function.name == "NOT":
                        return {None if each is None else not each for each in own}
                    found = {function.evaluate(a, b) for a in found for b in own}
                return found
            case Call(function, (left, right)) if function.name in ("<", "<=", ">", ">="):
                a, b = (self._bounds(each, row, widening) for each in (left, right))
                if a is not None and b is not None:
                    ends = [(a[0], b[1]), (a[1], b[0])]
                    return {function.evaluate(x, y) for x, y in ends}
        return {True, False, None}


@lru_cache(maxsize=1024)
def widening(count: int, *, laplace: bool) -> float:
    """How much wider 95 % intervals must be for several to hold at once, by Bonferroni's inequality.

    >>> round(widening(20, laplace=False), 3), round(widening(20, laplace=True), 3)
    (1.543, 2.0)
    """
    if laplace:
        return math.log(20 * count) / math.log(20)
    return NormalDist().inv_cdf(1 - 0.025 / count) / NormalDist().inv_cdf(0.975)


def _wider(answer: Answer, widening: float) -> Answer:
    if answer.interval is None or is_undetermined(answer):
        return answer
    low, high = (answer.value + widening * (end - answer.value) for end in answer.interval)
    edges = tuple(
        (at, each._replace(below=widening * each.below, above=widening * each.above))
        for at, each in answer.edges
    )
    return replace(answer, interval=(low, high), edges=edges)


def _point(value: Any) -> Range | None:
    if isinstance(value, int | float | Fraction):
        return float(value), float(value)
    return None


def _is_null(expression: Expression) -> bool:
    return isinstance(expression, Constant) and expression.value is None


def _label(value: Any) -> Any:
    if isinstance(value, Fraction):
        return value.numerator if value.denominator == 1 else float(value)
    return value.isoformat() if isinstance(value, dt.date) else value
