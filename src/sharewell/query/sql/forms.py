"""Forms: expressions that are linear in the answers, with exact coefficients."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

from sharewell.errors import QueryTooComplex
from sharewell.query.block import ParallelBlock
from sharewell.query.diagram import spend
from sharewell.query.expression import (
    Aggregate,
    Call,
    Constant,
    Expression,
    Form,
    GroupKey,
    Linear,
    Ratio,
    call,
)

#: The maximum number of coefficients of all forms of a statement, and of all that are computed for them.
MAX_TERMS = 2**20
MAX_COMPUTED = 2**21
#: How many coefficients are computed in the time of one step of a diagram, and in that of a form without
#: any.
TERMS_OF_STEP, TERMS_OF_FORM = 16, 8

ONE = Fraction(1)
#: The coefficients of one number, by the place of the answer.
Terms = dict[int, Fraction]


@dataclass
class Forms:
    """The blocks of a statement, and the linear combinations of their answers."""

    blocks: list[ParallelBlock] = field(default_factory=list)
    #: The place of each block's first answer, and the number of answers.
    starts: list[int] = field(default_factory=lambda: [0])
    forms: list[Form] = field(default_factory=list)
    _places: dict[tuple[tuple[int, tuple[int, int]], ...], int] = field(default_factory=dict)
    _terms: int = 0
    _computed: int = 0
    _work: int = 0

    def add_block(self, block: ParallelBlock) -> int:
        """Add a block, and return its number."""
        self.blocks.append(block)
        self.starts.append(self.starts[-1] + len(block))
        return len(self.blocks) - 1

    def add(self, terms: Terms) -> int:
        """Add a form, and return its place; equal forms have the same."""
        # As integers, whose hashes and comparisons are much quicker than those of fractions.
        ratios = ((at, factor.as_integer_ratio()) for at, factor in terms.items())
        key = tuple(sorted((at, ratio) for at, ratio in ratios if ratio[0]))
        place = self._places.get(key)
        if place is None:
            place = self._places[key] = self.append(tuple((at, terms[at]) for at, _ in key))
        return place

    def append(self, form: Form) -> int:
        """Add a form that there is none like, and return its place."""
        self._count(len(form) // 2)
        self._terms += len(form)
        if self._terms > MAX_TERMS:
            raise _too_many()
        self.forms.append(form)
        return len(self.forms) - 1

    def compute(self, terms: Terms) -> Terms:
        """Return terms that were computed, and refuse those beyond what a statement may compute."""
        self._count(len(terms))
        self._computed += len(terms)
        if self._computed > MAX_COMPUTED:
            raise _too_many()
        return terms

    def _count(self, terms: int) -> None:
        """Count the work of one form."""
        before = self._work // TERMS_OF_STEP
        self._work += terms + TERMS_OF_FORM
        spend(self._work // TERMS_OF_STEP - before)

    def scaled(self, rows: Sequence[Terms], factors: Sequence[Fraction]) -> list[Terms]:
        """Multiply the terms of every row by its factor; rows that share both are computed once."""
        known: dict[tuple[int, Fraction], Terms] = {}
        for own, factor in zip(rows, factors, strict=True):
            if (id(own), factor) not in known:
                known[id(own), factor] = self.compute({at: factor * each for at, each in own.items()})
        return [known[id(own), factor] for own, factor in zip(rows, factors, strict=True)]

    def added(self, left: Sequence[Terms], right: Sequence[Terms]) -> list[Terms]:
        """Add the terms of every row; rows that share both are computed once."""
        known: dict[tuple[int, int], Terms] = {}
        for a, b in zip(left, right, strict=True):
            if (id(a), id(b)) not in known:
                known[id(a), id(b)] = self.compute(_sum(a, b))
        return [known[id(a), id(b)] for a, b in zip(left, right, strict=True)]

    def add_all(self, rows: Sequence[Terms]) -> tuple[int, ...]:
        """Add the forms of all rows of the result."""
        # Rows that share one object, as the total of all does, are looked up once.
        known = {id(terms): self.add(terms) for terms in {id(each): each for each in rows}.values()}
        return tuple(known[id(terms)] for terms in rows)

    def terms(self, expression: Expression, rows: int) -> list[Terms] | None:
        """Return the coefficients of an expression in each row; None if it is not linear."""
        match expression:
            case Linear(forms, None):
                shared = {at: self.compute(dict(self.forms[at])) for at in dict.fromkeys(forms)}
                return [shared[at] for at in forms]
            case Aggregate(block, None, count, middle):
                self._count(TERMS_OF_FORM * rows)
                found: list[Terms] = [{self.starts[block] + row: ONE} for row in range(rows)]
                if count is not None:
                    for row, own in enumerate(found):
                        own[self.starts[count] + row] = middle
                return found
            case Call(function, (left, right)) if function.name in ("+", "-"):
                a, b = self.terms(left, rows), self.terms(right, rows)
                if b is not None and function.name == "-":
                    b = self.scaled(b, [Fraction(-1)] * rows)
                return None if a is None or b is None else self.added(a, b)
            case Call(function, (left, right)) if function.name in ("*", "/"):
                inner, factors = self.terms(left, rows), _numbers(right, rows)
                if function.name == "*" and inner is None:
                    inner, factors = self.terms(right, rows), _numbers(left, rows)
                if inner is None or factors is None:
                    return None
                if function.name == "/":
                    factors = [1 / factor if factor else Fraction(0) for factor in factors]
                return self.scaled(inner, factors)
            case Call(function, (argument,)) if function.name in ("negate", "number"):
                inner = self.terms(argument, rows)
                factor = Fraction(-1 if function.name == "negate" else 1)
                return None if inner is None else self.scaled(inner, [factor] * rows)
        return None


def _numbers(expression: Expression, rows: int) -> list[Fraction] | None:
    """Return public numbers, one for each row; None if one is missing."""
    if isinstance(expression, Constant) and isinstance(expression.value, Fraction):
        return [expression.value] * rows
    if isinstance(expression, GroupKey) and all(
        isinstance(each, Fraction) for each in expression.values
    ):
        return list(expression.values) or None
    return None


def simplified(expression: Expression, forms: Forms, rows: int) -> Expression:
    """Replace what is linear in the answers, and ratios of such, by nodes with exact intervals."""
    if not isinstance(expression, Call):
        return expression
    terms = forms.terms(expression, rows)
    if terms is not None and _divides_by_zero(expression):
        terms = None
    if terms is not None:
        return Linear(forms.add_all(terms))
    name, arguments = expression.function.name, expression.arguments
    if name == "/":
        above, below = forms.terms(arguments[0], rows), forms.terms(_not_zero(arguments[1]), rows)
        if above is not None and below is not None:
            return Ratio(forms.add_all(above), forms.add_all(below))
    arguments = tuple(simplified(each, forms, rows) for each in arguments)
    if name in ("*", "/"):
        ratio, factor = arguments if isinstance(arguments[0], Ratio) else reversed(arguments)
        factors = _numbers(factor, rows) if isinstance(ratio, Ratio) else None
        if (
            isinstance(ratio, Ratio)
            and ratio.edges is None
            and factors is not None
            and (name == "*" or ratio is arguments[0])
            and all(factors)
            and (ratio.low is None or len(set(factors)) == 1)
        ):
            if name == "/":
                factors = [1 / each for each in factors]
            numerators = forms.terms(Linear(ratio.numerators), rows) or []
            scaled = forms.add_all(forms.scaled(numerators, factors))
            return _scaled_limits(replace(ratio, numerators=scaled), factors[0])
    return call_again(expression, arguments)


def _scaled_limits(ratio: Ratio, factor: Fraction) -> Ratio:
    """Multiply the bounds of an average, and its middle; a ratio without them has none."""
    if ratio.low is None or ratio.high is None:
        return ratio
    low, high = sorted((ratio.low * factor, ratio.high * factor))
    return replace(ratio, low=low, high=high, middle=ratio.middle * factor)


def call_again(expression: Call, arguments: tuple[Expression, ...]) -> Expression:
    """Return a call with other arguments."""
    if arguments == expression.arguments:
        return expression
    if all(isinstance(each, Constant) for each in arguments):
        return call(expression.function.name, *arguments, type=expression.type)
    return Call(expression.function, arguments, expression.type)


def _divides_by_zero(expression: Expression) -> bool:
    """Whether a public divisor is 0 in some row, where the result is NULL."""
    if not isinstance(expression, Call):
        return False
    if expression.function.name == "/" and isinstance(expression.arguments[1], GroupKey):
        return not all(expression.arguments[1].values)
    return any(map(_divides_by_zero, expression.arguments))


def _not_zero(expression: Expression) -> Expression:
    """Return x of NULLIF(x, 0), by which a quotient is NULL where x is 0, as it is anyway."""
    match expression:
        case Call(function, (inner, Constant(value))) if function.name == "NULLIF" and value == 0:
            return inner
    return expression


def _sum(a: Terms, b: Terms) -> Terms:
    return {**a, **b} | {at: a[at] + b[at] for at in a.keys() & b.keys()}


def _too_many() -> QueryTooComplex:
    return QueryTooComplex("The result adds up too many numbers.", hint="Group by fewer values.")
