"""Expressions over the answers of a statement: what a result shows, from what was bought.

A statement compiles to *blocks* of linear queries, which are bought or reconstructed, and to
expressions: trees that are evaluated row by row once all answers are known. Expressions are
post-processing. They cost nothing, and however often an answer occurs in them, it is bought once.

The leaves are public values (`Constant`, `GroupKey`) and numbers that come from answers. Of these every
kind has an interval of its own:

- `Aggregate` and `Linear` are linear in the answers. A `Form` lists the answers of one number with exact
  coefficients; its standard error is that of the linear query it adds up to, so all covariances count.
- `Average` and `Ratio` divide two linear numbers; their intervals are Fieller's.
- `Spread` is a variance, a correlation or a slope: of sums of values and of their products. Given the
  means, it is a ratio of linear numbers; its interval is that for all means in their own intervals.
- `Quantile` finds where running totals of a histogram cross a fraction of its total, and `Rank` compares
  the rows of the result; both invert intervals of linear numbers.

Every other number is a `Call`. Its interval is the range of the function while all leaves below it are
in intervals that hold together with 95 % (Bonferroni's inequality). It is never simulated from the
estimates: at a truth of 0, that would exclude the truth of ABS always.

Privacy: everything here post-processes noisy answers and public labels, and costs nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from sharewell.query.attribute import Label
from sharewell.query.domain import Column
from sharewell.query.functions import FUNCTIONS, Function, Type, Unknown

#: An answer, exact or noisy: int, float or Fraction. None is NULL: undetermined, or an average of none.
Value = Any
#: A linear combination of answers: their places among all answers of the statement, and coefficients.
Form = tuple[tuple[int, Fraction], ...]


@dataclass(frozen=True)
class Constant:
    """The same public value in every row."""

    value: Any
    type: Type


@dataclass(frozen=True)
class Field:
    """A column of the table, in an expression over its cells."""

    column: Column
    type: Type


@dataclass(frozen=True)
class GroupKey:
    """A public column of the result, one label per row: of grouped columns, and computed from them.

    `ranks` sort the rows as SQL sorts the values; None for NULL. `values` are what functions are
    applied to: of a bin, its span.
    """

    labels: tuple[Label, ...] = field(repr=False)
    ranks: tuple[int | None, ...] = field(repr=False)
    values: tuple[Any, ...] = field(default=(), repr=False, hash=False)
    type: Type = "text"


@dataclass(frozen=True)
class Aggregate:
    """The answers of one block: a COUNT or a SUM; `edges` of a sum over bins is one of `edge_sums`.

    The block of a measure's sum is centred: `middle` is to be added for each row that `count` counts.
    """

    block: int
    edges: int | None = None
    count: int | None = None
    middle: Fraction = Fraction(0)


@dataclass(frozen=True)
class Average:
    """The answers of one block divided by those of another; None unless the count is positive.

    That of a measure is centred: `middle` is to be added; and it lies between `low` and `high`.
    """

    total: int
    count: int
    edges: int | None = None
    low: Fraction | None = None
    high: Fraction | None = None
    middle: Fraction = Fraction(0)

    def within(self, value: float) -> float:
        """Return the nearest number that the average can be."""
        return _clamped(value, self.low, self.high)


@dataclass(frozen=True)
class Linear:
    """A linear combination of answers in each row, by its place in `Statement.forms`.

    Where it adds up sums over bins, `edges` is one of `edge_sums`.
    """

    forms: tuple[int, ...] = field(repr=False)
    edges: int | None = None


@dataclass(frozen=True)
class Ratio:
    """A linear combination divided by another; None where the divisor is 0.

    An average is None unless its count is positive: `positive`. That of a measure is centred: `middle`
    is to be added; and it lies between `low` and `high`.
    """

    numerators: tuple[int, ...] = field(repr=False)
    denominators: tuple[int, ...] = field(repr=False)
    positive: bool = False
    low: Fraction | None = None
    high: Fraction | None = None
    middle: Fraction = Fraction(0)
    edges: int | None = None

    def within(self, value: float) -> float:
        """Return the nearest number that the ratio can be."""
        return _clamped(value, self.low, self.high)


@dataclass(frozen=True)
class Spread:
    """A variance, covariance, correlation or line, from sums over the rows that have x, or both x and y.

    The sums are of 1 (`count`), of `x` and `y` less their `centres`, and of the products of these, such
    as `xx`; each has one form in each row of the result. `spans` are the bounds of x and y less their
    centres. A value of `column` that is only known by its bin is off by at most `half_bin`.
    """

    kind: str
    sums: tuple[tuple[str, tuple[int, ...]], ...] = field(repr=False)
    spans: tuple[tuple[Fraction, Fraction], ...]
    centres: tuple[Fraction, ...]
    column: str = ""
    half_bin: Fraction = Fraction(0)


@dataclass(frozen=True)
class Quantile:
    """A quantile of a column's values, from the number of rows with each of them.

    `counts` has one form for each value in each row of the result, and `crossings` the rows up to a
    value less the fraction of all. `ends` are the least and the most that a row counted with a value may
    have: the same number, or the edges of its bin; the column implies them, and to hash many fractions
    is slow. One of dates, which are numbered by days, is shown in three columns: itself and, by `bound`,
    the ends of its interval.
    """

    column: str
    fraction: Fraction
    ends: tuple[tuple[Fraction, Fraction], ...] = field(repr=False, hash=False)
    counts: tuple[tuple[int, ...], ...] = field(repr=False)
    crossings: tuple[tuple[int, ...], ...] = field(repr=False)
    continuous: bool = True
    is_date: bool = False
    bound: str = ""

    @property
    def has_bins(self) -> bool:
        """Whether a value is only known by its bin."""
        return any(low < high for low, high in self.ends)


@dataclass(frozen=True)
class Rank:
    """The position of each row in an order, among the rows of its partition: RANK and its relatives."""

    kind: str
    order: tuple[OrderKey, ...]
    partitions: tuple[int, ...] = field(repr=False)


@dataclass(frozen=True)
class Call:
    """A function of other expressions, row by row."""

    function: Function
    arguments: tuple[Expression, ...]
    type: Type

    def __hash__(self) -> int:
        return self._hash  # type: ignore[attr-defined, no-any-return]

    def __post_init__(self) -> None:
        # Kept: what a deep tree has would otherwise be computed at every level again.
        object.__setattr__(self, "_hash", hash((self.function.name, self.arguments)))
        object.__setattr__(self, "_size", 1 + sum(map(size_of, self.arguments)))


Number = Aggregate | Average | Linear | Ratio | Spread | Quantile | Rank
Expression = Constant | Field | GroupKey | Number | Call


@dataclass(frozen=True)
class OrderKey:
    """An ORDER BY term."""

    source: Expression
    descending: bool = False
    nulls_first: bool = False

    def sort(self, rows: Iterable[int], ranks: Sequence[Any]) -> list[int]:
        """Sort rows by their ranks, None for NULL; ties keep their order, even if it is descending."""
        nulls: list[int] = []
        known: list[int] = []
        for row in rows:
            (nulls if ranks[row] is None else known).append(row)
        known.sort(key=ranks.__getitem__, reverse=self.descending)
        return nulls + known if self.nulls_first else known + nulls


def size_of(expression: Expression) -> int:
    """The number of functions of an expression, each as often as it is evaluated."""
    return expression._size if isinstance(expression, Call) else 0  # type: ignore[attr-defined]


def _clamped(value: float, low: Fraction | None, high: Fraction | None) -> float:
    least = -math.inf if low is None else float(low)
    most = math.inf if high is None else float(high)
    return min(max(value, least), most)


def type_of(expression: Expression) -> Type:
    """The type of an expression's values."""
    if isinstance(expression, Constant | Field | GroupKey | Call):
        return expression.type
    return "date" if isinstance(expression, Quantile) and expression.is_date else "number"


def is_public(expression: Expression) -> bool:
    """Whether the expression uses no answer."""
    return not any(True for _ in numbers(expression))


def numbers(expression: Expression) -> Iterator[Number]:
    """The distinct numbers that come from answers, below an expression."""
    found: dict[Number, None] = {}
    seen: set[int] = set()
    pending = [expression]
    while pending:
        node = pending.pop()
        if isinstance(node, Call):
            if id(node) not in seen:
                seen.add(id(node))
                pending.extend(reversed(node.arguments))
        elif not isinstance(node, Constant | Field | GroupKey):
            found.setdefault(node)
    return iter(found)


#: The values of a leaf, one for each row.
Leaf = Callable[[Any], Sequence[Any]]


def evaluate(expression: Expression, leaf: Leaf, rows: Sequence[int]) -> list[Any]:
    """The values of an expression in some rows; conditions and branches only where they are reached."""
    match expression:
        case Constant(value):
            return [value] * len(rows)
        case Call(function, arguments) if function.name == "CASE":
            return _evaluate_case(arguments, leaf, rows)
        case Call(function, arguments) if function.name in ("AND", "OR"):
            return _evaluate_logic(function, arguments, leaf, rows)
        case Call(function, arguments):
            columns = [evaluate(each, leaf, rows) for each in arguments]
            return [function(*values) for values in zip(*columns, strict=True)]
    values = leaf(expression)
    return [values[row] for row in rows]


def _evaluate_case(arguments: Sequence[Expression], leaf: Leaf, rows: Sequence[int]) -> list[Any]:
    found: dict[int, Any] = {}
    left = list(range(len(rows)))
    for condition, value in zip(arguments[:-1:2], arguments[1:-1:2], strict=True):
        if not left:
            break
        truths = evaluate(condition, leaf, [rows[at] for at in left])
        found.update({at: truth for at, truth in zip(left, truths, strict=True) if _is_unknown(truth)})
        chosen = [at for at, truth in zip(left, truths, strict=True) if truth is True]
        found.update(zip(chosen, evaluate(value, leaf, [rows[at] for at in chosen]), strict=True))
        left = [at for at, t in zip(left, truths, strict=True) if t is not True and not _is_unknown(t)]
    found.update(zip(left, evaluate(arguments[-1], leaf, [rows[at] for at in left]), strict=True))
    return [found[at] for at in range(len(rows))]


def _evaluate_logic(
    function: Function, arguments: Sequence[Expression], leaf: Leaf, rows: Sequence[int]
) -> list[Any]:
    decisive = function.name == "OR"
    found: list[Any] = [not decisive] * len(rows)
    for part in arguments:
        left = [at for at, value in enumerate(found) if value is not decisive]
        if not left:
            break
        truths = evaluate(part, leaf, [rows[at] for at in left])
        for at, truth in zip(left, truths, strict=True):
            found[at] = function.evaluate(found[at], truth)
    return found


def _is_unknown(value: Any) -> bool:
    return isinstance(value, Unknown)


def call(name: str, *arguments: Expression, type: Type = "number") -> Expression:
    """Apply a function by its name; to constants at once."""
    function = FUNCTIONS[name]
    if all(isinstance(each, Constant) for each in arguments):
        return Constant(function(*(each.value for each in arguments)), type)  # type: ignore[union-attr]
    return Call(function, arguments, type)
