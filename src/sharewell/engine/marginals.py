"""Marginals of sparse counts: sums by combination of codes, many of them in few passes.

The passes over the listed cells depend on the sizes of the attributes alone, never on what is in them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sharewell.query.block import Marginal

#: The most cells of a table from which several marginals are taken: it stays in the processor's cache.
MAX_SHARED = 2**15

#: Attributes whose codes are combined into one.
Pack = tuple[int, ...]


def sum_by(
    values: NDArray[np.int64], codes: Sequence[NDArray[Any]], groups: Mapping[int, NDArray[np.int64]]
) -> NDArray[np.int64]:
    """Sum a value of every listed cell by combination of groups, in integers."""
    sizes = [int(of_cell.max()) + 1 for of_cell in groups.values()]
    placed = [of_cell.take(codes[level]) for level, of_cell in groups.items()]
    return _sum_by_codes([values], placed, sizes).reshape(sizes)


def sum_marginals(
    sums: NDArray[np.int64],
    codes: Sequence[NDArray[Any]],
    sizes: Sequence[int],
    wanted: Sequence[Marginal],
) -> list[NDArray[np.int64]]:
    """Return marginals of the vectors `sums`, vectors first and then the attributes in their order.

    Attributes with few values are packed, so that one pass counts several marginals at once: all pairs
    of forty columns, and the columns themselves, take 150 passes and not 820.
    """
    found: dict[int, NDArray[np.int64]] = {}
    code_of: dict[Pack, NDArray[Any]] = {}
    for (packs, vectors), places in _share(sizes, wanted).items():
        for pack in packs:
            if pack not in code_of:
                code_of[pack] = _combine([codes[at] for at in pack], [sizes[at] for at in pack])
        tables = _sum_by_codes(
            [sums[vector] for vector in vectors],
            [code_of[pack] for pack in packs],
            [math.prod(sizes[at] for at in pack) for pack in packs],
        )
        held = list(chain(*packs))
        table = tables.reshape(len(vectors), *(sizes[level] for level in held))
        first = packs[0] if packs else ()
        rest = held[len(first) :]
        #: Sums over the other attributes of the first pack, which several marginals share.
        partial: dict[Pack, NDArray[np.int64]] = {}
        for at in places:
            levels = wanted[at].levels
            kept = tuple(level for level in first if level in levels)
            if kept not in partial:
                partial[kept] = _sum_to(table, held, [*kept, *rest])
            found[at] = _sum_to(partial[kept], [*kept, *rest], levels)
    return [found[at] for at in range(len(wanted))]


def _share(
    sizes: Sequence[int], wanted: Sequence[Marginal]
) -> dict[tuple[tuple[Pack, ...], tuple[int, ...]], list[int]]:
    """Return the tables to count, by their packs and vectors, and which marginals each gives.

    Those of most attributes first: their tables also give marginals of fewer.
    """
    shared: dict[tuple[tuple[Pack, ...], tuple[int, ...]], list[int]] = {}
    most = max((len(each.levels) for each in wanted), default=0)
    for order in sorted({len(each.levels) for each in wanted}, reverse=True):
        places = [at for at, each in enumerate(wanted) if len(each.levels) == order]
        packs = _pack(sorted({level for at in places for level in wanted[at].levels}), sizes, order)
        pack_of = {level: pack for pack in packs for level in pack}
        keys = {
            at: (tuple(sorted({pack_of[level] for level in wanted[at].levels})), wanted[at].vectors)
            for at in places
        }
        for at in sorted(places, key=lambda at: -len(keys[at][0])):
            key = keys[at]
            if key not in shared and len(key[0]) < most:
                key = next((each for each in shared if _holds(*each, wanted[at])), key)
            shared.setdefault(key, []).append(at)
    return shared


def _holds(packs: Sequence[Pack], vectors: tuple[int, ...], marginal: Marginal) -> bool:
    """Whether a marginal can be summed from the table of some packs."""
    return vectors == marginal.vectors and set(marginal.levels) <= set(chain(*packs))


def _pack(levels: Sequence[int], sizes: Sequence[int], order: int) -> list[Pack]:
    """Pack attributes so that as many packs as a marginal has attributes make no large table.

    An attribute that is large itself has a pack of its own. First fit, the largest first.
    """
    most = MAX_SHARED ** (1 / max(order, 1))
    packs: list[list[int]] = []
    products: list[int] = []
    for level in sorted(levels, key=lambda level: -sizes[level]):
        fits = (at for at, size in enumerate(products) if size * sizes[level] <= most)
        if (at := next(fits, None)) is None:
            packs.append([level])
            products.append(sizes[level])
        else:
            packs[at].append(level)
            products[at] *= sizes[level]
    return [tuple(pack) for pack in packs]


def _combine(codes: Sequence[NDArray[Any]], sizes: Sequence[int]) -> NDArray[Any]:
    """Return one code for each combination of codes, in C order, in as few bytes as possible."""
    kind = np.min_scalar_type(math.prod(sizes) - 1)
    combined = codes[0].astype(kind)
    for code, size in zip(codes[1:], sizes[1:], strict=True):
        combined *= kind.type(size)
        combined += code.astype(kind, copy=False)
    return combined


def _sum_by_codes(
    values: Sequence[NDArray[np.int64]], codes: Sequence[NDArray[Any]], sizes: Sequence[int]
) -> NDArray[np.int64]:
    """Sum values of every listed cell by combination of codes, in C order: a row for each of them."""
    place = _combine(codes or [np.zeros(len(values[0]), np.uint8)], sizes).astype(np.intp)
    summed = np.zeros((len(values), math.prod(sizes)), dtype=np.int64)
    for row, each in zip(summed, values, strict=True):
        np.add.at(row, place, each)
    return summed


def _sum_to(table: NDArray[np.int64], held: Sequence[int], levels: Sequence[int]) -> NDArray[np.int64]:
    """Sum a table, vectors first, to some of the attributes that it holds, in the order given."""
    others = tuple(at for at, level in enumerate(held, 1) if level not in levels)
    left = [level for level in held if level in levels]
    summed: NDArray[np.int64] = table.sum(axis=others) if others else table
    return summed.transpose(0, *(1 + left.index(level) for level in levels))
