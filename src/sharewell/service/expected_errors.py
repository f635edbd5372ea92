"""The errors to expect of computed numbers: ratios, quantiles, and functions of several answers.

Such an error depends on the numbers themselves. They are taken from what is released already. Where that
does not determine them, counts are taken as those of groups of a stated size: a ratio of counts as the
largest that it can be, and the values of a quantile as spread evenly.

Privacy: uses public sizes, and estimates that every analyst can have for nothing.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, cached_property

from sharewell.mechanisms.base import Answer
from sharewell.query.expression import Expression, Quantile, Ratio, Spread, numbers
from sharewell.query.statement import Statement
from sharewell.service.intervals import is_undetermined
from sharewell.service.numbers import RowNumbers

#: The error of a number and, of an average or a ratio, the size of the group that it is stated for.
ErrorOfGroup = tuple[float | None, float | None]


class ExpectedErrors:
    """The errors of a statement's computed numbers, from the standard errors of its answers.

    The errors of answers are taken as uncorrelated: how they will be depends on what is bought
    meanwhile. Where they are those of what is released, the intervals are those of the free result,
    unless it has long linear combinations.
    """

    def __init__(
        self,
        statement: Statement,
        errors: Sequence[float | None],
        released: Sequence[Answer] | None,
        size: float,
        critical: float,
    ) -> None:
        self.statement = statement
        self.errors = errors
        self.size = size
        self.critical = critical
        #: What is released of each answer; None where that does not determine it.
        self.released: list[Answer | None] = [None] * len(errors)
        if released is not None:
            self.released = [None if is_undetermined(answer) else answer for answer in released]

    def column(self, source: Expression) -> list[ErrorOfGroup]:
        """The error of each row of a computed column; None where it is not known."""
        field = self._numbers.column(source)
        leaves = list(numbers(source))
        found: list[ErrorOfGroup] = []
        for row in range(len(self.statement.group_labels)):
            doubt, sizes = 0.0, []
            for leaf in leaves:
                match leaf:
                    case Ratio(above, below):
                        doubt += self._doubt(above[row]) + self._doubt(below[row])
                        sizes.append(self._rows_of(below[row]))
                    case Spread(_, sums):
                        doubt += sum(self._doubt(forms[row]) for _, forms in sums)
                        sizes += [self._rows_of(forms[row]) for name, forms in sums if name == "count"]
                    case Quantile(counts=counts):
                        doubt += sum(map(self._doubt, counts[row]))
                        sizes.append(sum(self._rows_of(form) or 0.0 for form in counts[row]))
                    case _:  # all answers must be known
                        doubt += self._doubt(None)
                        sizes.append(None)
            size = min(each for each in sizes if each is not None) if None not in sizes else None
            if doubt == 0:
                interval = field(row).interval
                found.append((interval and (interval[1] - interval[0]) / 2 / self.critical, size))
            else:
                found.append((None if math.isnan(doubt) else doubt, None))
        return found

    @cached_property
    def _doubt(self) -> Callable[[int | None], float]:
        """0 where all answers of a form can be expected, infinite where one cannot, else NaN."""

        @cache
        def of(form: int | None) -> float:
            every = range(len(self.errors))
            used = every if form is None else [at for at, _ in self.statement.forms[form]]
            if any(self.errors[at] is None for at in used):
                return math.nan
            if any(self.errors[at] == math.inf for at in used):
                return math.inf
            return math.nan if any(self.values[at] is None for at in used) else 0.0

        return of

    @cached_property
    def _rows_of(self) -> Callable[[int], float | None]:
        """The number of rows that a form counts; None if it does not count them."""

        @cache
        def of(form: int) -> float | None:
            terms = self.statement.forms[form]
            counted = all(factor == 1 and at in self._counts for at, factor in terms)
            return sum(self.values[at] or 0.0 for at, _ in terms) if counted else None

        return of

    @cached_property
    def _counts(self) -> set[int]:
        """The answers that count rows."""
        queries = enumerate(self.statement.queries)
        return {at for at, query in queries if query.is_predicate and query.counts_rows}

    @cached_property
    def values(self) -> list[float | None]:
        """The value that each answer is taken to have; None where nothing is known about it."""
        assumed: dict[int, float] = {}
        for source in self.statement.numbers:
            if isinstance(source, Ratio):
                forms = [self.statement.forms[at] for at in {*source.numerators, *source.denominators}]
                assumed |= {at: self.size for form in forms for at, _ in form if at in self._counts}
        for source in self.statement.numbers:
            if isinstance(source, Spread):
                self._assume_even(source, assumed)
        for source in self.statement.numbers:
            if isinstance(source, Quantile):
                for row in source.counts:
                    terms = [term for form in row for term in self.statement.forms[form]]
                    assumed |= {at: self.size / max(1, len(terms)) for at, _ in terms}
        return [
            assumed.get(at) if answer is None else answer.value
            for at, answer in enumerate(self.released)
        ]

    def _assume_even(self, source: Spread, assumed: dict[int, float]) -> None:
        """Take the values of a spread as spread evenly between their bounds, and two as independent."""
        means = {name: float(a + b) / 2 for name, (a, b) in zip("xy", source.spans, strict=False)}
        variances = {
            name: float(b - a) ** 2 / 12 for name, (a, b) in zip("xy", source.spans, strict=False)
        }
        for name, forms in sorted(
            source.sums, key=lambda each: len(each[0]) if each[0] != "count" else 0
        ):
            average = 1.0 if name == "count" else math.prod(means[each] for each in name)
            if name in ("xx", "yy"):
                average += variances[name[0]]
            for form in forms:
                terms = self.statement.forms[form]
                known = sum(float(factor) * assumed.get(at, 0.0) for at, factor in terms)
                new = [(at, float(factor)) for at, factor in terms if at not in assumed]
                # The groups of a subtotal have the size of others.
                for at, factor in new:
                    assumed[at] = (self.size * average - known) / factor / len(new)

    @cached_property
    def _numbers(self) -> RowNumbers:
        """The numbers of the result as it is expected."""
        pairs = zip(self.released, self.errors, strict=True)
        answers = [
            answer
            if answer is not None and answer.standard_error == error
            else self._answer(at, math.inf if error is None else error)
            for at, (answer, error) in enumerate(pairs)
        ]
        as_released = all(new is old for new, old in zip(answers, self.released, strict=True))
        if not as_released or not any(answer.moments for answer in answers):
            self._add_moments(answers)
        return RowNumbers(self.statement, answers)

    def _answer(self, at: int, error: float) -> Answer:
        """An answer with its expected error."""
        value = self.values[at]
        if value is None or not math.isfinite(error):
            return Answer(math.nan, math.inf, (-math.inf, math.inf), "measured")
        reach = self.critical * error
        block = bisect_right(self.statement.starts, at) - 1
        before = self.released[at]
        return Answer(
            value,
            error,
            (value - reach, value + reach),
            "measured",
            covariances=tuple((right, 0.0) for left, right in self.statement.pairs if left == block),
            edges=before.edges if before is not None else (),
        )

    def _add_moments(self, answers: list[Answer]) -> None:
        """Add the variances and covariances of linear combinations, each to its first answer."""
        forms = self.statement.forms
        squares = [0.0 if error is None else error * error for error in self.errors]
        moments: dict[int, list[tuple[int, float]]] = {}
        factors = cache(lambda form: {at: float(factor) for at, factor in forms[form]})
        for place, (left, right) in enumerate(self.statement.moments):
            less, more = sorted((factors(left), factors(right)), key=len)
            together = sum(each * more.get(at, 0.0) * squares[at] for at, each in less.items())
            moments.setdefault(forms[left][0][0], []).append((place, together))
        for at, answer in enumerate(answers):
            answers[at] = replace(answer, moments=tuple(moments.get(at, ())))
