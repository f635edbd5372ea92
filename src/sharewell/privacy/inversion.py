"""Exact discrete noise by inversion: for many draws of one scale, a hundred times as fast as one by one.

The size of a draw is the least m with V < P(|noise| <= m), for a V that is uniform on [0, 1): a real
number, of which random bits are drawn until they decide m. With the first `bits` of them, u, it is known
that u <= 2^bits V < u + 1. Let t_m be the whole part of 2^bits P(|noise| <= m). Where u < t_m, V is
below P(|noise| <= m); where u > t_m, it is not; where u = t_m, once in 10^14 draws, more bits decide.

Thresholds are computed in ball arithmetic, which encloses every rounding error. A draw is whole numbers
that are compared. `docs/guarantees/kernel.md` has the proof.
"""

from __future__ import annotations

import math
import os
import secrets
from bisect import bisect_left
from collections.abc import Iterator
from functools import lru_cache
from itertools import accumulate, count
from threading import Lock
from typing import Literal

import numpy as np
from flint import arb, ctx
from numpy.typing import NDArray

Kind = Literal["laplace", "gaussian"]

#: The scales that have tables of a reasonable size and precision.
LEAST_SCALE, MOST_SCALE = 1 / 8, 2.0**13
#: Of a word of 64 random bits, one is the sign, and these are the first bits of V.
WORD_BITS = 63
#: How many draws are made at a time.
CHUNK = 2**20
#: Bits by which probabilities are more precise than what is rounded, at first.
GUARD_BITS = 128
#: The precision of balls belongs to the process.
_PRECISION = Lock()


class Inversion:
    """Draws from a discrete Laplace or Gaussian distribution, on the operating system's entropy.

    Privacy: trusts FLINT's ball arithmetic. The time of a draw is that of a search in a table, which
    depends on what is drawn, as in every sampler that is not of constant time.
    """

    def __init__(self, kind: Kind, scale: float, bits: int = WORD_BITS) -> None:
        self._kind: Kind = kind
        self._scale, self._bits = scale, bits
        self._thresholds = np.array(thresholds(kind, scale, bits), dtype=np.int64)

    def draw(self, size: int) -> NDArray[np.int64]:
        """Independent draws."""
        parts = [min(CHUNK, size - start) for start in range(0, size, CHUNK)]
        return np.concatenate([np.zeros(0, dtype=np.int64), *map(self._draw, parts)])

    def _draw(self, size: int) -> NDArray[np.int64]:
        words = np.frombuffer(os.urandom(8 * size), dtype=np.uint64)
        first = (words >> np.uint64(64 - self._bits)).astype(np.int64)
        found = np.searchsorted(self._thresholds, first)
        for at in np.flatnonzero(self._thresholds[found] == first).tolist():
            found[at] = self._refined(int(first[at]))
        return np.where(words & np.uint64(1), -found, found)

    def _refined(self, first: int) -> int:
        """The size of a draw whose first bits are a threshold: more bits decide."""
        bits = self._bits
        while True:
            first, bits = first << 64 | secrets.randbits(64), bits + 64
            table = thresholds(self._kind, self._scale, bits)
            found = bisect_left(table, first)
            if table[found] != first:
                return found


@lru_cache(maxsize=32)
def inversion(kind: Kind, scale: float) -> Inversion:
    """The sampler for a scale, whose table is kept."""
    return Inversion(kind, scale)


def thresholds(kind: Kind, scale: float, bits: int) -> list[int]:
    """The whole part of 2^bits P(|noise| <= m) for every m, up to the first that is 2^bits - 1.

    >>> thresholds("laplace", 1.0, 4)
    [7, 12, 14, 15]
    """
    guard = GUARD_BITS
    while True:
        with _PRECISION, ctx.workprec(bits + guard):
            found = _whole_parts(kind, scale, bits)
        if found:
            return found
        guard *= 2


def _whole_parts(kind: Kind, scale: float, bits: int) -> list[int]:
    """The thresholds; none where the precision does not decide one of them."""
    found = list[int]()
    cumulative = _laplace(arb(scale)) if kind == "laplace" else _gaussian(arb(scale))
    for probability in cumulative:
        whole = (probability * 2**bits).floor().unique_fmpz()
        if whole is None:
            return []
        found.append(int(whole))
        if whole == 2**bits - 1:
            break
    return found


def _laplace(scale: arb) -> Iterator[arb]:
    """P(|noise| <= m) for m = 0, 1, ..., where P(noise = k) is proportional to exp(-|k| / scale)."""
    beyond = 2 / (1 + (-1 / scale).exp())
    return (1 - beyond * (-m / scale).exp() for m in count(1))


def _gaussian(scale: arb) -> Iterator[arb]:
    """The same where it is proportional to exp(-k^2 / (2 scale^2)), as far as precision goes.

    Beyond the last m the weights fall faster than a geometric series: (m + i)^2 >= m^2 + 2 m i.
    """
    variance = scale**2
    last = math.ceil(float(scale) * math.sqrt(2 * math.log(2) * ctx.prec)) + 1
    weights = [(-arb(m * m) / (2 * variance)).exp() for m in range(last + 1)]
    beyond = weights[-1] / ((last / variance).exp() - 1)
    within = list(accumulate([weights[0], *(2 * weight for weight in weights[1:])]))
    total = within[-1].union(within[-1] + 2 * beyond)
    return (each / total for each in within)
