"""The rows that a collective can measure at the start, by name or as a list of tables."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from itertools import combinations
from math import comb, prod
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from sharewell.errors import ConfigError, QueryError, SharewellError
from sharewell.mechanisms.base import PublicContext
from sharewell.mechanisms.marginal_seed import MarginalPart, MarginalSeed
from sharewell.mechanisms.optimization import p_identity
from sharewell.mechanisms.planned_seed import PlannedSeed
from sharewell.mechanisms.strategy import Rows, Strategy
from sharewell.options import ValueType, invalid_choice
from sharewell.query.block import Block
from sharewell.query.domain import MAX_CELLS, Domain
from sharewell.query.workload import tree

#: An optimised row is rounded to a grid of this many bits, fewer where several attributes multiply.
GRID_BITS = 12
#: The number of rows of `tables`, and the most rows and tables of any seed of marginals.
TABLE_ROWS, MOST_ROWS, MOST_TABLES = 250_000, 2**24, 10_000


def identity(domain: Domain) -> Strategy:
    """Every cell once."""
    return Strategy(domain, (tuple(Rows(size) for size in domain.shape),), "identity")


def total(domain: Domain) -> Strategy:
    """The number of rows only; most queries cannot be reconstructed from it."""
    return Strategy(domain, (tuple(_total(size) for size in domain.shape),), "total")


def h2(domain: Domain) -> Strategy:
    """The binary hierarchy of every attribute."""
    return Strategy(domain, (tuple(_tree(size, 2) for size in domain.shape),), "h2")


def hb(domain: Domain) -> Strategy:
    """The hierarchy of every attribute, each with the branching factor that suits its ranges best."""
    return Strategy(domain, (tuple(_tree(size, best_branching(size)) for size in domain.shape),), "hb")


def prefix(domain: Domain) -> Strategy:
    """The running totals of every attribute."""
    rows = tuple(_rows(np.tril(np.ones((size, size), dtype=np.int64))) for size in domain.shape)
    return Strategy(domain, (rows,), "prefix")


def marginals(domain: Domain, k: int = 1) -> MarginalSeed:
    """The tables of counts by every k attributes, at equal cost each.

    Questions about more attributes at a time are undetermined until an analyst pays.
    """
    most = len(domain.attributes)
    if not 0 <= k <= most:
        raise QueryError(f"A seed of {k}-way marginals needs k from 0 to {most} here.")
    _require_few_tables(comb(most, k))
    return MarginalSeed.of(domain, combinations(range(most), k), name=f"marginals({k})")


def marginals_of(
    domain: Domain, sets: Iterable[Sequence[str]], weights: Sequence[Fraction] | None = None
) -> MarginalSeed:
    """The marginals over these sets of attributes only, with relative weights; a seed for any width.

    A set that names a measure is the table of its sums, and of the number of its values; a column that
    is attribute and measure at once is the attribute, and `SUM(wage)` the measure. What no set contains
    is undetermined until an analyst pays for it. The empty set is the total.
    """
    names = [list(each) for each in sets]
    _require_few_tables(len(names))
    shares = [Fraction(1)] * len(names) if weights is None else weights
    parts = [
        MarginalPart(levels, vector, Fraction(share))
        for each, share in zip(names, shares, strict=True)
        for levels, vector in _tables(domain, each)
    ]
    return _weighted(domain, parts, json.dumps(names))


def tables(domain: Domain) -> MarginalSeed:
    """One- and two-way tables within 250,000 rows: the largest are left out. The default for any width.

    They are tables of counts; of measures there are the one-way tables. All have the same cost.
    """
    shape, levels = domain.shape, range(len(domain.attributes))
    ways = [(1, vector, each) for vector in range(domain.vectors) for each in combinations(levels, 1)]
    ways += [(2, 0, each) for each in combinations(levels, 2)]
    chosen, rows = list[MarginalPart](), 0
    # One-way tables come first, and the smaller of those with as many attributes.
    for _, size, vector, each in sorted((n, prod(shape[at] for at in s), v, s) for n, v, s in ways):
        rows += size
        if rows > TABLE_ROWS or len(chosen) == MOST_TABLES:
            break
        chosen.append(MarginalPart(each, vector, Fraction(1)))
    return _weighted(domain, chosen or [MarginalPart((), 0, Fraction(1))], "tables")


def _tables(domain: Domain, names: Sequence[str]) -> list[tuple[tuple[int, ...], int]]:
    """The attributes of a table, by position, and the vectors to measure of it.

    A name is that of an attribute if there is one, and otherwise of a measure; `SUM(wage)` is always
    the measure.
    """
    attributes, measures = list[str](), list[str]()
    for name in names:
        summed = None if name in domain.names else _SUM.fullmatch(name)
        own = summed[1] if summed else name
        is_measure = summed or (
            name not in domain.names and name in {measure.name for measure in domain.measures}
        )
        (measures if is_measure else attributes).append(own)
    if len(measures) > 1 or len(set(attributes)) < len(attributes):
        raise QueryError(f"A table of a seed cannot be by {', '.join(names)}.")
    levels = sorted(map(domain.index, attributes))
    # The rows of a measure without NULL are counted by the table of counts.
    vectors = {vector for name in measures for vector in domain.vectors_of(name) if vector} or {0}
    return [(tuple(levels), vector) for vector in sorted(vectors)]


def _weighted(domain: Domain, parts: Sequence[MarginalPart], name: str) -> MarginalSeed:
    """The seed with these relative weights."""
    total = sum((part.weight for part in parts), Fraction(0))
    shares = tuple(part._replace(weight=part.weight / (total or 1)) for part in parts)
    return _within_limit(MarginalSeed(domain, shares, name))


def _within_limit(seed: MarginalSeed) -> MarginalSeed:
    if len(seed) > MOST_ROWS:
        raise QueryError(
            f"The seed {seed.name} has {len(seed):,} rows; the limit is {MOST_ROWS:,}.",
            hint="Use the seed tables, or name fewer and smaller tables.",
        )
    return seed


def _require_few_tables(count: int) -> None:
    if not 0 < count <= MOST_TABLES:
        raise QueryError(
            f"A seed has from 1 to {MOST_TABLES:,} tables, not {count:,}.", hint="Use the seed tables."
        )


def optimized(domain: Domain, workload: Block, *, starts: int = 3) -> Strategy:
    """For every attribute the p-Identity strategy that suits a workload best.

    The rows [I; B] D, with D such that every column sums to 1, are chosen by gradient descent from
    several starts to minimise the workload's total error (McKenna, Miklau, Hay and Machanavajjhala,
    "Optimizing error of high-dimensional statistical queries under differential privacy", 2018).
    Then they are rounded to whole numbers on a grid, since only such rows are ever measured.
    """
    if workload.domain != domain or all(query.is_zero for query in workload):
        raise QueryError("An optimised seed needs a workload of queries over its own domain.")
    bits = min(GRID_BITS, 30 // len(domain.shape))
    grams = [gram_of(workload, level) for level in range(len(domain.shape))]
    # On small matrices threads cost more than they save, fifty times more where the machine is busy.
    with threadpool_limits(1):
        rows = tuple(p_identity(gram, bits, starts) for gram in grams)
    return Strategy(domain, (rows,), "optimized")


#: The strategies that need nothing but the domain. All but the total measure every cell.
NAMED: dict[str, Callable[[Domain], Strategy]] = {
    "identity": identity,
    "h2": h2,
    "hb": hb,
    "prefix": prefix,
    "total": total,
}


_SUM = re.compile(r"SUM\((.+)\)", re.IGNORECASE)
_MARGINALS = re.compile(r"marginals\(([0-9]+)\)")
#: The names that a configuration may give, for messages.
KNOWN = (*NAMED, "planned", "tables", "optimized", "marginals(1)", "marginals(2)")


def _read_seed(value: str | list[Any], key: str) -> str | list[list[str]]:
    if isinstance(value, str):
        if value in KNOWN or _MARGINALS.fullmatch(value):
            return value
        raise invalid_choice(key, value, KNOWN)
    for each in value:
        if not isinstance(each, list) or not all(isinstance(name, str) for name in each):
            raise ConfigError(
                f"{key} must be a name, or a list of lists of columns.",
                hint='Example: [["age", "sex"], ["region"], []]; the last is the number of all rows.',
            )
    return value


SEED_NAME = ValueType(
    f"one of {', '.join(NAMED)}, planned, tables, optimized, marginals(K) for K columns at a time, or a "
    'list of tables such as [["age", "sex"], ["region"]]',
    {
        "anyOf": [
            {"enum": list(KNOWN)},
            {"type": "string", "pattern": f"^{_MARGINALS.pattern}$"},
            {"type": "array", "items": {"type": "array", "items": {"type": "string"}}},
        ]
    },
    (str, list),
    _read_seed,
)


def configured(
    given: str | list[list[str]], context: PublicContext
) -> Strategy | MarginalSeed | PlannedSeed:
    """The seed that a configuration names or lists; `optimized` needs the expected workload at once."""
    domain = context.domain
    try:
        if not isinstance(given, str):
            return marginals_of(domain, given)
        if found := _MARGINALS.fullmatch(given):
            return _within_limit(marginals(domain, int(found[1])))
        if given == "planned":
            return PlannedSeed(domain, context.budget.currency, context.neighbours, context.expected)
        if given == "tables":
            return tables(domain)
        if given == "total":
            return total(domain) if not domain.measures else _every_vector(domain, (), given)
        _require_dense(domain, given)
        if domain.measures:
            return _every_vector(domain, range(len(domain.attributes)), given)
        return optimized(domain, context.workload()) if given == "optimized" else NAMED[given](domain)
    except SharewellError as error:
        raise ConfigError(f"mechanism.seed: {error.message}", hint=error.hint) from None


def _require_dense(domain: Domain, name: str) -> None:
    """Refuse a seed that measures every cell where there are too many, or sums of measures too."""
    if domain.size > MAX_CELLS:
        raise QueryError(
            f"The seed {name} measures every cell, and the domain has more than {MAX_CELLS:,}.",
            hint='Use "tables" or "marginals(2)", or list the tables to measure.',
        )
    if domain.measures and name != "identity":
        raise QueryError(
            f"The seed {name} is for counts, and the domain has measures.",
            hint='Use "identity", "tables" or "marginals(2)", or list the tables to measure.',
        )


def _every_vector(domain: Domain, levels: Sequence[int], name: str) -> MarginalSeed:
    """One marginal of the counts, and of every sum."""
    vectors = range(domain.vectors)
    return _within_limit(MarginalSeed.of(domain, [levels], vectors=vectors, name=name))


def best_branching(size: int) -> int:
    """The branching factor with the least total error over all ranges, at equal privacy."""
    size = min(size, 512)  # The best factor grows so slowly that a shorter line tells it.
    if size < 3:
        return 2
    at = np.arange(size)
    ranges = (np.minimum.outer(at, at) + 1) * (size - np.maximum.outer(at, at))

    def error(branching: int) -> float:
        rows = _tree(size, branching)
        return float(rows.norms(1).max() ** 2 * np.trace(np.linalg.solve(rows.gram, ranges)))

    return min(range(2, min(size, 32) + 1), key=error)


def gram_of(workload: Block, level: int) -> NDArray[np.float64]:
    """What a workload asks of one attribute: the Gram matrix of its queries' weights there."""
    size = workload.domain.shape[level]
    gram = np.zeros((size, size))
    for query in workload:
        for factor, vectors in query.products():
            others = prod(float(v @ v) for at, v in enumerate(vectors) if at != level)
            gram += float(factor) ** 2 * others * np.outer(vectors[level], vectors[level])
    return gram


def _tree(size: int, branching: int) -> Rows:
    intervals = list(tree(size, branching))
    indptr = np.cumsum([0, *(b - a for a, b in intervals)])
    indices = np.concatenate([np.arange(a, b) for a, b in intervals])
    ones = np.ones(len(indices), dtype=np.int64)
    return Rows(size, sp.csr_array((ones, indices, indptr), shape=(len(intervals), size)))


def _total(size: int) -> Rows:
    return _rows(np.ones((1, size), dtype=np.int64))


def _rows(matrix: NDArray[np.int64]) -> Rows:
    return Rows(matrix.shape[1], sp.csr_array(matrix))
