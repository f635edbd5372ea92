"""What a workload asks: its queries as products along attributes, and its squares in every part.

A query's weights split into one part for every set U of attributes (see `marginal_seed.py`); g_U is the
square of the workload in part U over the number of cells.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from sharewell.mechanisms.products import QueryProduct, products_of
from sharewell.query.block import Block, GroupedBlock
from sharewell.query.domain import Domain
from sharewell.query.linear import LinearQuery

Vector = NDArray[np.float64]
Question = LinearQuery | Block
Item = TypeVar("Item")

#: The tables of the default workload have at most so many cells.
MOST_TABLE_CELLS = 10_000
#: Of a workload the most queries that are looked at one by one, and of a query the most products.
MOST_QUERIES, MOST_PRODUCTS = 4_096, 16
#: A query about more attributes at a time has too many parts.
MOST_MENTIONED = 10


class Along(NamedTuple):
    """What a question asks along one attribute: two weights of every cell for each of its queries.

    They are the same, but for a query that is a sum of products, where each meets each.
    """

    left: NDArray[np.int64]
    right: NDArray[np.int64]

    @property
    def moments(self) -> tuple[float, float]:
        """With all cells equally likely: the weights' covariances, and products of means, summed."""
        size = self.left.shape[1]
        means = float((self.left.sum(axis=1) / size) @ (self.right.sum(axis=1) / size))
        return float((self.left.astype(np.float64) * self.right).sum()) / size - means, means

    @property
    def gram(self) -> Vector:
        """The sum of the weights' outer products, made symmetric."""
        product = self.left.astype(np.float64).T @ self.right
        return np.asarray(product + product.T) / 2


class Term(NamedTuple):
    """Queries of one data vector that are products: a factor, and what they ask along attributes."""

    vector: int
    factor: float
    axes: Mapping[int, Along]


def terms_of(questions: Iterable[Question]) -> list[Term]:
    """What a workload asks. Every question counts once, and all its rows alike, however many it has.

    Of very many queries that are no tables, some of every question are looked at, at even distances.
    """
    found, listed = list[Term](), list[Sequence[LinearQuery]]()
    for question in questions:
        table = _of_table(question) if isinstance(question, GroupedBlock) else None
        if table is not None:
            found.append(table)
        else:
            listed.append([question] if isinstance(question, LinearQuery) else question.queries)
    chosen = evenly(listed, MOST_QUERIES)
    most = MOST_QUERIES
    while sum(min(len(queries), most) for queries in chosen) > MOST_QUERIES:
        most //= 2
    for queries in chosen:
        some = evenly(queries, most)
        for query in some:
            found += _of_query(query, len(listed) / len(chosen) / len(some))
    return found


def evenly(every: Sequence[Item], most: int) -> Sequence[Item]:
    """Some of very many, at even distances."""
    count = min(len(every), most)
    return [every[at * len(every) // count] for at in range(count)]


def _of_table(block: GroupedBlock) -> Term | None:
    """All rows of a GROUP BY at once, where its base is one product and no group is left out."""
    products = products_of(block.base)
    if len(products) != 1 or not len(block):
        return None
    [product] = products
    axes, full = {level: _same(axis.dense()[None, :]) for level, axis in product.axes.items()}, 1
    for level, groups in block.groups.items():
        own = product.axes.get(level)
        weights = np.ones(len(groups), dtype=np.int64) if own is None else own.dense()
        used = np.unique(groups[weights != 0])
        axes[level] = _same((used[:, None] == groups) * weights)
        full *= len(used)
    if full != len(block):
        return None
    return Term(product.vector, (product.factor * _in_rows(block.base)) ** 2 / len(block), axes)


def _in_rows(query: LinearQuery) -> float:
    """What a unit of a primitive query's error is in rows: of a sum, over its largest weight."""
    return float(query.scale) / (float(query.max_abs) or 1.0)


def _same(weights: NDArray[np.int64]) -> Along:
    return Along(weights, weights)


def _of_query(query: LinearQuery, times: float) -> Iterator[Term]:
    """Every product of a query with every other on the same data vector."""
    products = products_of(query) if not query.is_zero else ()
    if len(products) > MOST_PRODUCTS:
        return
    for one in products:
        for other in products:
            if one.vector == other.vector:
                factor = times * _in_rows(query) ** 2 * one.factor * other.factor
                yield Term(one.vector, factor, _axes(one, other, query.domain.shape))


def _axes(one: QueryProduct, other: QueryProduct, shape: Sequence[int]) -> dict[int, Along]:
    def weights(product: QueryProduct, level: int) -> NDArray[np.int64]:
        axis = product.axes.get(level)
        return (np.ones(shape[level], dtype=np.int64) if axis is None else axis.dense())[None, :]

    return {at: Along(weights(one, at), weights(other, at)) for at in {**one.axes, **other.axes}}


def default_squares(domain: Domain, most: int) -> dict[tuple[int, int], float]:
    """g_U of the default workload, in closed form; of parts along two attributes, the `most` smallest.

    The workload is the totals and the tables by one attribute, of counts and sums, and the tables of
    counts by two. A table's rows give each U within it the product of n - 1 along U, over the square of
    the number of its cells.
    """
    squares = dict[tuple[int, int], float]()
    sizes = np.array([attribute.size for attribute in domain.attributes], dtype=np.float64)
    one_by_one = np.where(sizes <= MOST_TABLE_CELLS, 1.0 / sizes**2, 0.0)
    pairs = np.outer(sizes, sizes)
    two_by_two = np.where(pairs <= MOST_TABLE_CELLS, 1.0 / pairs**2, 0.0)
    np.fill_diagonal(two_by_two, 0.0)
    for vector, largest in enumerate(largest_weights(domain)):
        along = one_by_one if vector else one_by_one + two_by_two.sum(axis=1)
        total = 1 + one_by_one.sum() + (0.0 if vector else two_by_two.sum() / 2)
        squares[vector, 0] = float(total) / largest**2
        for level in np.flatnonzero(one_by_one).tolist():
            squares[vector, 1 << level] = float((sizes[level] - 1) * along[level]) / largest**2
    second, first = np.nonzero(np.tril(two_by_two))
    smallest = np.lexsort((first, second, pairs[first, second]))[:most]
    for i, j in zip(first[smallest].tolist(), second[smallest].tolist(), strict=True):
        square = (sizes[i] - 1) * (sizes[j] - 1) * two_by_two[i, j]
        squares[0, 1 << i | 1 << j] = float(square)
    return squares


def largest_weights(domain: Domain) -> list[int]:
    """The largest weight of a row in each data vector."""
    every = range(domain.vectors)
    return [max(abs(int(row[at])) for row in domain.row_extremes([at])) or 1 for at in every]


def default_terms(domain: Domain) -> list[Term]:
    """The default workload of counts, table by table: the same as `default_squares`."""
    shape, levels = domain.shape, range(len(domain.attributes))
    along = [_same(np.eye(n, dtype=np.int64)) for n in shape]
    sets = [table for count in (0, 1, 2) for table in combinations(levels, count)]
    sized = [(table, math.prod(shape[at] for at in table)) for table in sets]
    return [
        Term(0, 1 / cells, {at: along[at] for at in table})
        for table, cells in sized
        if cells <= MOST_TABLE_CELLS
    ]


def squares_of(terms: Iterable[Term]) -> dict[tuple[int, int], float]:
    """g_U of a workload, by data vector and set of attributes."""
    squares: defaultdict[tuple[int, int], float] = defaultdict(float)
    for vector, factor, axes in terms:
        if len(axes) <= MOST_MENTIONED:
            for mask, part in parts_of({at: along.moments for at, along in axes.items()}).items():
                squares[vector, mask] += factor * part
    return {key: max(square, 0.0) for key, square in squares.items()}


def parts_of(moments: Mapping[int, tuple[float, float]]) -> dict[int, float]:
    """The product of covariances along each set of attributes, and of squared means along the others."""
    found = {0: 1.0}
    for level, (covariance, square) in moments.items():
        found = {
            mask | bit: part * factor
            for mask, part in found.items()
            for bit, factor in ((0, square), (1 << level, covariance))
        }
    return found


def levels_of(mask: int) -> list[int]:
    """The attributes of a set, lowest first."""
    levels = []
    while mask:
        lowest = mask & -mask
        levels.append(lowest.bit_length() - 1)
        mask ^= lowest
    return levels
