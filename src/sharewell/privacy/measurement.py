"""Measurements: what was ordered of the kernel, and what came out of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sharewell.privacy.ledger import Charged, Released
from sharewell.query.block import Measurable


@dataclass(frozen=True, eq=False)
class Measurement:
    """A block's noisy values, public from now on, and the exact variance of each.

    `charge` is the number of its event in the ledger.
    """

    block: Measurable
    values: NDArray[np.int64]
    variances: NDArray[np.float64]
    cost: Fraction
    bill: Mapping[str, Fraction]
    charge: int

    @property
    def released(self) -> Released:
        """The event that says so."""
        return Released(self.charge, tuple(self.values.tolist()))


@dataclass(frozen=True, eq=False)
class Order:
    """Something that can be measured, checked, with its cost set aside: to be filled once."""

    block: Measurable
    scales: NDArray[np.float64]
    cost: Fraction
    bill: Mapping[str, Fraction]

    @cached_property
    def charged(self) -> Charged:
        """The event that says who pays what for it."""
        scales = [scale.hex() for scale in self.scales.tolist()]
        return Charged(self.bill, {"measure": self.block.to_json(), "scales": scales})
