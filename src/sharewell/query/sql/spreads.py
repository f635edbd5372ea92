"""Products of measures: SUM(x * x), VARIANCE, CORR and their relatives, from sums of products.

A sum of products is one of the domain's vectors where the curator has declared the square or the
product. All sums are of distances from the middles of the columns' bounds: noise is in proportion to
the largest product, which is then least. Products with integer attributes need no declaration: they
weigh the counts and the sums of a measure by the cells.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

from sqlglot import exp

from sharewell.query.attribute import Binned, Integer
from sharewell.query.diagram import MAX_WEIGHT, spend
from sharewell.query.expression import Expression, Linear, Ratio, Spread
from sharewell.query.linear import LinearQuery
from sharewell.query.measure import Measure
from sharewell.query.sql.forms import Terms
from sharewell.query.sql.grammar import CALL
from sharewell.query.sql.text import shortened

if TYPE_CHECKING:
    from sharewell.query.sql.select import Draft

#: The functions of one column, by what they are called here.
OF_ONE = {
    "STDDEV": "STDDEV_SAMP",
    "VARIANCE": "VAR_SAMP",
    **{name: name for name in ("STDDEV_SAMP", "STDDEV_POP", "VAR_SAMP", "VAR_POP")},
}
#: The functions of two columns, and the sums of products that they use.
PRODUCTS = {
    "COVAR_POP": ("xy",),
    "COVAR_SAMP": ("xy",),
    "CORR": ("xx", "yy", "xy"),
    "REGR_R2": ("xx", "yy", "xy"),
    "REGR_SLOPE": ("xx", "xy"),
    "REGR_INTERCEPT": ("xx", "xy"),
}
#: How many steps of a diagram it takes to compile a sum of products, besides two for each attribute.
STEPS_OF_SUM = 32


@dataclass(frozen=True)
class _Variable:
    """A column of numbers: a measure, or weights of the cells of an attribute.

    `weights` are the distances from the centre, on the rows that `present` counts.
    """

    measure: Measure | None
    centre: Fraction
    span: tuple[Fraction, Fraction]
    weights: LinearQuery | None = None
    present: LinearQuery | None = None
    half_bin: Fraction = Fraction(0)


class ProductSums:
    """Sums of products of variables over the rows of an aggregate that have all of `given`."""

    def __init__(self, draft: Draft, node: exp.Expr, given: Sequence[_Variable]) -> None:
        self.draft = draft
        self.node = node
        self.given = given
        self.rows = draft.aggregates.rows
        if isinstance(node, exp.Filter):
            self.rows = self.rows & draft.aggregates.select(node.expression.this)
        for each in given:
            if each.present is not None:
                self.rows = self.rows & each.present

    def sum(self, *factors: _Variable) -> list[Terms]:
        """Return the sum of a product in each row of the result, as a combination of answers."""
        domain = self.draft.source.domain
        spend(STEPS_OF_SUM + 2 * len(domain.shape))
        measures = [each.measure for each in factors if each.measure is not None]
        found = domain.product_vector(measures, [each.measure for each in self.given if each.measure])
        if found is None:
            raise self._undeclared(measures)
        at, product = found
        query = LinearQuery.vector(domain, at) * product.unit if at else self.draft.aggregates.everything
        for each in factors:
            query = query if each.weights is None else query.where(each.weights)
        query = query.where(self.rows)
        if query.primitive.max_abs > MAX_WEIGHT:
            message = f"{shortened(self.draft.source.quote(self.node))} has products that are too large."
            hint = "Ask for the sums of smaller numbers, or ask the curator for a coarser step."
            raise self.draft.source.error(self.node, message, hint)
        terms = self.draft.terms_of(self.draft.block(query, self.node))
        if product.zero and not any(each.weights for each in factors):
            counts = self.draft.forms.scaled(self.sum(), [product.zero] * len(terms))
            terms = self.draft.forms.added(terms, counts)
        return terms

    def _undeclared(self, measures: Sequence[Measure]) -> Exception:
        source, named = self.draft.source, [each.measure for each in self.given if each.measure]
        first, *others = dict.fromkeys([*named, *measures])
        written = shortened(source.quote(self.node))
        if not others:
            message = f'{written} needs the square of the measure "{first.name}", which is not declared.'
            hint = f"The curator can declare it: square = true in [measures.{first.name}]."
        elif len(others) == 1:
            message = f'{written} needs the product of "{first.name}" and "{others[0].name}", '
            message += "which is not declared."
            line = f'products = ["{others[0].name}"]'
            hint = f"The curator can declare it: {line} in [measures.{first.name}]."
        else:
            message = f"{written} combines more than two measures."
            hint = "Combine two measures at a time."
        return source.error(self.node, message, hint)


# SUM and AVG of products


def compile_products(
    draft: Draft, node: exp.Expr, inner: exp.Expr, argument: exp.Expr
) -> Expression | None:
    """Compile SUM or AVG of a polynomial of measures, such as x * y; None if it is anything else."""
    if (scaled := _scaled(draft, node, argument)) is not None:
        return scaled
    columns = [draft.source.find_measure(each) for each in argument.find_all(exp.Column)]
    measures = list(dict.fromkeys(each for each in columns if each is not None))
    found = _polynomial(draft, argument) if measures and None not in columns else None
    if found is None:
        return None
    variables = {each: _of_measure(each) for each in measures}
    sums = ProductSums(draft, node, list(variables.values()))
    rows = len(draft.groups.rows)
    total: list[Terms] = [{}] * rows
    for factors, coefficient in found.coefficients.items():
        if coefficient:
            own = sums.sum(*(variables[each] for each in factors))
            total = draft.forms.added(total, draft.forms.scaled(own, [coefficient] * rows))
    numerators = draft.forms.add_all(total)
    if isinstance(inner, exp.Sum):
        return Linear(numerators)
    counts = draft.forms.add_all(sums.sum())
    return Ratio(numerators, counts, positive=True, low=found.low, high=found.high)


def _scaled(draft: Draft, node: exp.Expr, argument: exp.Expr) -> Expression | None:
    """Compile SUM(measure * 40) as SUM(measure) * 40; None if it is anything else."""
    if not isinstance(argument, exp.Mul | exp.Div):
        return None
    left, right = argument.this.unnest(), argument.expression.unnest()
    if isinstance(argument, exp.Mul) and isinstance(right, exp.Column):
        left, right = right, left
    is_measure = isinstance(left, exp.Column) and draft.source.find_measure(left) is not None
    if not is_measure or right.find(exp.Column):
        return None
    copied = node.copy()
    (copied.this if isinstance(copied, exp.Filter) else copied).set("this", left.copy())
    name = "*" if isinstance(argument, exp.Mul) else "/"
    factor = draft.translate(right)
    return draft.apply(argument, name, [draft.translate(copied), factor])


class _Polynomial(NamedTuple):
    """Coefficients of products of at most two measures' distances from their middles, and its range."""

    coefficients: dict[tuple[Measure, ...], Fraction]
    low: Fraction
    high: Fraction

    def plus(self, other: _Polynomial) -> _Polynomial:
        both = dict(self.coefficients)
        for factors, each in other.coefficients.items():
            both[factors] = both.get(factors, Fraction(0)) + each
        return _Polynomial(both, self.low + other.low, self.high + other.high)

    def times(self, other: _Polynomial) -> _Polynomial | None:
        found: dict[tuple[Measure, ...], Fraction] = {}
        for one, a in self.coefficients.items():
            for two, b in other.coefficients.items():
                factors = tuple(sorted((*one, *two), key=lambda each: each.name))
                found[factors] = found.get(factors, Fraction(0)) + a * b
        ends = [a * b for a in (self.low, self.high) for b in (other.low, other.high)]
        if self == other:
            ends = [self.low**2, self.high**2, *([Fraction(0)] if self.low < 0 < self.high else [])]
        return _Polynomial(found, min(ends), max(ends)) if max(map(len, found)) <= 2 else None


def _polynomial(draft: Draft, node: exp.Expr) -> _Polynomial | None:
    """Read a polynomial of measures; None for any other expression."""
    node = node.unnest()
    if isinstance(node, exp.Column):
        measure = draft.source.find_measure(node)
        if measure is None:
            return None
        coefficients = {(measure,): Fraction(1), (): measure.middle}
        return _Polynomial(coefficients, measure.low, measure.high)
    if not node.find(exp.Column):
        number = draft.constant(node)
        return _constant(number) if isinstance(number, Fraction) else None
    if isinstance(node, exp.Neg):
        found = _polynomial(draft, node.this)
        return found and found.times(_constant(Fraction(-1)))
    if isinstance(node, exp.Pow) or (isinstance(node, exp.Anonymous) and node.name in _POWERS):
        base, exponent = node.expressions or (node.this, node.expression)
        found = _polynomial(draft, base) if draft.constant(exponent) == 2 else None
        return found and found.times(found)
    if not isinstance(node, exp.Add | exp.Sub | exp.Mul | exp.Div):
        return None
    left, right = _polynomial(draft, node.this), _polynomial(draft, node.expression)
    if left is None or right is None:
        return None
    if isinstance(node, exp.Mul):
        return left.times(right)
    if isinstance(node, exp.Div):
        divisor = right.coefficients[()]
        is_number = not node.expression.find(exp.Column) and divisor
        return left.times(_constant(1 / divisor)) if is_number else None
    if isinstance(node, exp.Sub):
        negative = right.times(_constant(Fraction(-1)))
        return negative and left.plus(negative)
    return left.plus(right)


_POWERS = (f"POWER{CALL}", f"POW{CALL}")


def _constant(number: Fraction) -> _Polynomial:
    return _Polynomial({(): number}, number, number)


# Variances, correlations and lines


def compile_spread(draft: Draft, node: exp.Expr, inner: exp.Anonymous) -> Expression:
    """Compile STDDEV, VARIANCE, COVAR_POP, CORR, REGR_SLOPE or one of their relatives."""
    name, arguments = inner.name.removesuffix(CALL), inner.expressions
    count = 1 if name in OF_ONE else 2
    if len(arguments) != count:
        message = f"{name} takes {count} argument{'s' * (count - 1)}, not {len(arguments)}."
        raise draft.source.error(node, message, "Name a column." if count == 1 else "Name two columns.")
    arguments = [each.unnest() for each in arguments]
    binned = [each for each in arguments if _bins(draft, each)]
    if name in PRODUCTS and binned:
        written = draft.source.quote(binned[0])
        message = f'{name} requires numbers, but "{written}" is only known by its bins.'
        raise draft.source.error(
            binned[0], message, f"The curator can declare it as a measure: [measures.{written}]."
        )
    if name in OF_ONE and not binned and not _uses_measure(draft, arguments[0]):
        return _of_numbers(draft, node, OF_ONE[name], arguments[0])
    variables = [_variable(draft, each) for each in arguments]
    sums = ProductSums(draft, node, variables)
    # SQL names the dependent column first: CORR(y, x).
    x = variables[-1]
    named = {"count": sums.sum()}
    if name == "REGR_COUNT":
        return Linear(draft.forms.add_all(named["count"]))
    named["x"] = sums.sum(x)
    if name in OF_ONE:
        named["xx"] = sums.sum(x, x)
    else:
        y = variables[0]
        named["y"] = sums.sum(y)
        pairs = {"xx": (x, x), "yy": (y, y), "xy": (x, y)}
        named |= {product: sums.sum(*pairs[product]) for product in PRODUCTS[name]}
    return Spread(
        OF_ONE.get(name, name),
        _forms(draft, named),
        spans=tuple(each.span for each in reversed(variables)),
        centres=tuple(each.centre for each in reversed(variables)),
        column=draft.source.quote(binned[0]) if binned else "",
        half_bin=x.half_bin,
    )


def _uses_measure(draft: Draft, argument: exp.Expr) -> bool:
    return any(draft.source.find_measure(each) for each in argument.find_all(exp.Column))


def _bins(draft: Draft, argument: exp.Expr) -> Binned | None:
    """Return the bins that a column of numbers is divided into, if it is one."""
    if not isinstance(argument, exp.Column) or draft.source.find_measure(argument):
        return None
    column = draft.source.column(argument)
    return column.attribute if not column.bins and isinstance(column.attribute, Binned) else None


def _of_numbers(draft: Draft, node: exp.Expr, kind: str, argument: exp.Expr) -> Expression:
    """Compile a spread of numbers that the cells tell: from the sums of squares, values, and rows."""

    def over(aggregate: exp.Expr) -> list[Terms]:
        if isinstance(node, exp.Filter):
            aggregate = exp.Filter(this=aggregate, expression=node.expression.copy())
        return draft.forms.terms(draft.translate(aggregate), len(draft.groups.rows)) or []

    span = _span_of(draft, argument, draft.aggregates.numbers_of(argument)[0])
    squares = over(exp.Sum(this=exp.Mul(this=argument.copy(), expression=argument.copy())))
    totals = over(exp.Sum(this=argument.copy()))
    counts = over(exp.Count(this=argument.copy(), big_int=True))
    named = {"count": counts, "xx": squares, "x": totals}
    return Spread(kind, _forms(draft, named), (span,), (Fraction(0),))


def _forms(draft: Draft, named: Mapping[str, list[Terms]]) -> tuple[tuple[str, tuple[int, ...]], ...]:
    return tuple((name, draft.forms.add_all(terms)) for name, terms in named.items())


def _span_of(draft: Draft, argument: exp.Expr, weights: LinearQuery) -> tuple[Fraction, Fraction]:
    """Return the bounds of a column or of an expression: those of its weights include 0."""
    attribute = draft.source.column(argument).attribute if isinstance(argument, exp.Column) else None
    if isinstance(attribute, Integer):
        return Fraction(attribute.low), Fraction(attribute.high)
    return (attribute.edges[0], attribute.edges[-1]) if isinstance(attribute, Binned) else weights.bounds


def _of_measure(measure: Measure) -> _Variable:
    span = measure.low - measure.middle, measure.high - measure.middle
    return _Variable(measure, measure.middle, span)


def _variable(draft: Draft, argument: exp.Expr) -> _Variable:
    """Read an argument: a measure, bins, or an expression of attributes whose cells tell its number."""
    measure = draft.source.find_measure(argument) if isinstance(argument, exp.Column) else None
    if measure is not None:
        return _of_measure(measure)
    if _uses_measure(draft, argument):
        message = f"{shortened(draft.source.quote(argument))} is an expression of a measure."
        raise draft.source.error(argument, message, "Name the measure itself.")
    bins = _bins(draft, argument)
    weights, present = draft.aggregates.numbers_of(argument)
    low, high = _span_of(draft, argument, weights)
    unit = weights.scale or Fraction(1)
    centre = (low + high) / 2 // unit * unit
    half = max((b - a) / 2 for a, b in itertools.pairwise(bins.edges)) if bins else Fraction(0)
    return _Variable(
        None, centre, (low - centre, high - centre), weights - present * centre, present, half
    )
