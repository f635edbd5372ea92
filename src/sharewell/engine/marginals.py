"""Marginals of sparse counts: sums by combination of codes, many of them in few passes.

The passes over the listed cells depend on the sizes of the attributes alone, never on what is in them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sharewell.query.block import Marginal

#: The most cells of a table from which several marginals are taken: it stays in the processor's cache.
MAX_SHARED = 2**14


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
    of forty columns take 130 passes and not 780.
    """
    found: dict[int, NDArray[np.int64]] = {}
    for order in {len(each.levels) for each in wanted}:
        places = [at for at, each in enumerate(wanted) if len(each.levels) == order]
        packs = _pack(sorted({level for at in places for level in wanted[at].levels}), sizes, order)
        pack_of = {level: at for at, pack in enumerate(packs) for level in pack}
        shared: dict[tuple[tuple[int, ...], tuple[int, ...]], list[int]] = {}
        for at in places:
            levels, vectors = wanted[at]
            within = tuple(sorted({pack_of[level] for level in levels}))
            shared.setdefault((within, vectors), []).append(at)
        packed = [_combine([codes[at] for at in pack], [sizes[at] for at in pack]) for pack in packs]
        lengths = [math.prod(sizes[at] for at in pack) for pack in packs]
        for (within, vectors), own in shared.items():
            tables = _sum_by_codes(
                [sums[vector] for vector in vectors],
                [packed[at] for at in within],
                [lengths[at] for at in within],
            )
            held = [level for at in within for level in packs[at]]
            table = tables.reshape(len(vectors), *(sizes[level] for level in held))
            for at in own:
                found[at] = _sum_to(table, held, wanted[at].levels)
    return [found[at] for at in range(len(wanted))]


def _pack(levels: Sequence[int], sizes: Sequence[int], order: int) -> list[list[int]]:
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
    return packs


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
