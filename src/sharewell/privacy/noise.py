"""Noise: whole numbers from exact discrete distributions, never a rounded float.

A scale is rounded *up* to a double before it reaches a sampler, so what is drawn is never less than
what was paid for, and the variances reported here are those of what is really drawn.
"""

from __future__ import annotations

import math
import os
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from functools import lru_cache
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from sharewell.errors import PrivacyError
from sharewell.privacy.inversion import LEAST_SCALE, MOST_SCALE, Kind, inversion

#: Larger scales are refused: noise must stay far inside 64-bit integers.
MAX_SCALE = 2.0**40
#: From this many draws of one scale on, a table pays, or several threads; and how many draws pay for a
#: table, whose size is in proportion to the scale.
MANY, DRAWS_PER_SCALE = 4096, 64


class Noise(Protocol):
    """A source of discrete noise."""

    #: Whether the draws are exact and come from the operating system's entropy.
    exact: bool

    def laplace(self, scale: float, size: int) -> NDArray[np.int64]:
        """Draws with probability proportional to exp(-|k| / scale)."""

    def gaussian(self, scale: float, size: int) -> NDArray[np.int64]:
        """Draws with probability proportional to exp(-k^2 / (2 scale^2))."""


class ExactNoise:
    """Exact samplers on the operating system's entropy: no seed, no floating-point draw.

    OpenDP's for few draws, and for scales of which a table would be large; `Inversion` for many.

    Privacy: trusts OpenDP's discrete Laplace and discrete Gaussian samplers, and `Inversion`.
    """

    exact = True

    def __init__(self) -> None:
        _sampler("laplace", 1.0)  # Imports OpenDP now, so that the first question does not wait for it.

    def laplace(self, scale: float, size: int) -> NDArray[np.int64]:
        """Exact discrete Laplace draws."""
        return _draw("laplace", scale, size)

    def gaussian(self, scale: float, size: int) -> NDArray[np.int64]:
        """Exact discrete Gaussian draws."""
        return _draw("gaussian", scale, size)


class NoNoise:
    """No noise at all: for dry runs on an empty table, and to see that exact answers are recovered.

    Privacy: none. Not for real data; the service refuses any source that is not `exact`.
    """

    exact = False

    def laplace(self, scale: float, size: int) -> NDArray[np.int64]:
        """Zeros."""
        return np.zeros(size, dtype=np.int64)

    gaussian = laplace


def _draw(kind: Kind, scale: float, size: int) -> NDArray[np.int64]:
    """Draws by the way that suits scale and number, which are public."""
    if size >= MANY and LEAST_SCALE <= scale <= min(MOST_SCALE, size / DRAWS_PER_SCALE):
        return inversion(kind, scale).draw(size)
    sampler = _sampler(kind, scale)
    workers = min(os.cpu_count() or 1, 1 + size // MANY)
    if workers == 1:
        return np.asarray(sampler([0] * size), dtype=np.int64)
    parts = [len(part) for part in np.array_split(np.empty(size), workers)]
    with ThreadPoolExecutor(workers) as pool:
        drawn = list(pool.map(lambda part: np.asarray(sampler([0] * part), dtype=np.int64), parts))
    return np.concatenate(drawn)


@lru_cache(maxsize=256)
def _sampler(kind: Kind, scale: float) -> Any:
    # Imported here, so that `sharewell --help` need not wait for it, and by module: the prelude loads
    # data frame libraries too, which takes six times as long.
    from opendp.domains import atom_domain, vector_domain
    from opendp.measurements import make_gaussian, make_laplace
    from opendp.metrics import l1_distance, l2_distance
    from opendp.mod import enable_features

    enable_features("contrib")
    space = vector_domain(atom_domain(T="i64"))
    if kind == "laplace":
        return make_laplace(space, l1_distance(T="i64"), scale=scale)
    return make_gaussian(space, l2_distance(T="i64"), scale=scale)


@lru_cache(maxsize=1024)
def laplace_scale(sensitivity: int, epsilon: Fraction) -> float:
    """The scale sensitivity / epsilon, rounded up to a double."""
    return _up(sensitivity / epsilon, lambda scale: Fraction(scale))


@lru_cache(maxsize=1024)
def gaussian_scale(sensitivity_squared: int, rho: Fraction) -> float:
    """The standard deviation sqrt(sensitivity^2 / (2 rho)), rounded up to a double."""
    return _up(sensitivity_squared / (2 * rho), lambda scale: Fraction(scale) ** 2, math.sqrt)


def _up(exact: Fraction, value: Any, first: Any = float) -> float:
    """The smallest double near first(exact) whose value is at least the exact one."""
    if exact > Fraction(MAX_SCALE) ** 2 or first(exact) > MAX_SCALE:
        raise PrivacyError(
            "The cost is too small: the noise would exceed any answer.", hint="Pay more for it."
        )
    scale = float(first(exact))
    while value(scale) < exact:
        scale = math.nextafter(scale, math.inf)
    return scale


def laplace_variance(scale: float) -> float:
    """The exact variance of the discrete Laplace: 2 e^(1/s) / (e^(1/s) - 1)^2."""
    if scale == 0 or 0.5 / scale > 350:
        return 0.0
    return 0.5 / math.sinh(0.5 / scale) ** 2


def gaussian_variance(scale: float) -> float:
    """The exact variance of the discrete Gaussian, which is below scale^2 only where it is small."""
    if scale == 0 or scale > 20:
        return scale**2  # By Poisson summation the difference is below exp(-2 pi^2 scale^2).
    k = np.arange(1, int(40 * scale) + 2)
    mass = np.exp(-(k**2) / (2 * scale**2))
    return float(2 * (k**2 * mass).sum() / (1 + 2 * mass.sum()))
