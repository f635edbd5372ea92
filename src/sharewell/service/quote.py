"""Quotes: what a whole statement would cost, and how far off its answers may be."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from sharewell.mechanism.base import Mechanism
from sharewell.query.block import Block
from sharewell.query.statement import Statement


@dataclass(frozen=True)
class Quote:
    """A statement's cost when one pays, with all standard errors, and those that come for nothing.

    None where there is no such way: nothing is left to pay with, or nothing can be had for nothing.
    """

    statement: Statement
    cost: Fraction
    #: What there is to pay with: the rest of one's share, or a common pot.
    means: Fraction
    paid: tuple[float | None, ...] | None
    free: tuple[float | None, ...] | None

    @property
    def is_free(self) -> bool:
        """Whether paying would cost nothing: everything was measured before."""
        return self.paid is not None and self.cost == 0


def quote(mechanism: Mechanism, statement: Statement, analyst: str) -> Quote:
    """The quote of a statement: its blocks are bought one after the other, while something is left."""
    means = mechanism.means(analyst)
    cost = Fraction(0)
    paid: list[float | None] = []
    free: list[float | None] = []
    payable, for_nothing, short = True, True, False
    for block in statement.blocks:
        found = mechanism.preview(block, analyst)
        affordable = found.paid is not None and cost + found.paid.cost <= means
        best = found.paid if affordable else found.free
        short |= not affordable
        cost += best.cost if best else 0
        payable &= best is not None
        for_nothing &= found.free is not None
        paid += best.standard_errors if best else _unknown(block)
        free += found.free.standard_errors if found.free else _unknown(block)
    # Where nothing can be bought that would have to be, paying is no way at all.
    payable &= not short or cost > 0
    return Quote(
        statement,
        cost if payable else Fraction(0),
        means,
        tuple(paid) if payable else None,
        tuple(free) if for_nothing else None,
    )


def _unknown(block: Block) -> tuple[None, ...]:
    return (None,) * len(block)
