"""Seeded Cache and Reconstruct: pay for a query once, and let everybody reconstruct from it."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import Literal, NamedTuple, get_args

import numpy as np

from sharewell.errors import PrivacyError
from sharewell.mechanism.base import (
    Answer,
    Mechanism,
    Offer,
    Prepared,
    Preview,
    Source,
    decode,
    errors_of,
)
from sharewell.mechanism.reconstruction import Reconstruction
from sharewell.mechanism.strategy import Strategy
from sharewell.privacy.budget import Amount, amount
from sharewell.privacy.curator import Curator
from sharewell.privacy.measurement import Measurement, Order
from sharewell.query.block import ParallelBlock
from sharewell.query.linear import LinearQuery

#: Answer with the best estimate from all that was measured, or as Algorithm 1 of the paper is printed.
Answers = Literal["estimate", "as-printed"]


class Cached(NamedTuple):
    """A row that was measured: its value and variance, and who paid for it (nobody for a seed row)."""

    value: float
    variance: float
    payer: str | None


class CacheReconstruct(Mechanism):
    """The paper's Algorithm 1, with every answer the best linear unbiased estimate.

    Every analyst donates `seed_fraction` of their share, and the seed is measured with all of it. A
    query that nobody measured before is then measured for `query_budget`, charged to who asks, while
    they have it; and what anybody measured serves everybody.

    Privacy: post-processing of `curator.measure`; each analyst pays within their own share.
    """

    name = "Seeded Cache and Reconstruct"
    errors_are_public = True

    def __init__(
        self,
        curator: Curator,
        *,
        seed: Strategy,
        seed_fraction: Amount,
        query_budget: Amount,
        answers: Answers = "estimate",
        buy_seed_rows: bool = False,
    ) -> None:
        super().__init__(curator)
        if answers not in get_args(Answers):
            raise PrivacyError(
                f"`answers` cannot be {answers!r}.", hint='Use "estimate" or "as-printed".'
            )
        if seed.domain != curator.domain:
            raise PrivacyError("The seed is over another domain than the data.")
        self.seed = seed
        self.seed_fraction = _fraction(seed_fraction)
        self.query_budget = amount(query_budget, "query_budget")
        self.answers = answers
        self.buy_seed_rows = buy_seed_rows
        self._cache: dict[str, Cached] = {}
        #: Rows that were ordered and not bought yet: nobody else need pay for them.
        self._ordered: set[str] = set()
        self._known = Reconstruction(seed)
        self._seeded = False
        self._donors: set[str] = set()
        for measurement in curator.history(decode):
            self._learn(measurement)
        # Those who have not donated yet do it now: everybody together at the start, and after a restart
        # those who were added with it, one by one, as if they had joined.
        missing = [analyst for analyst in self.analysts if analyst not in self._donors]
        for together in [[analyst] for analyst in missing] if self._seeded else [missing]:
            self._donate(together)

    def join(self, analyst: str, share: Amount) -> None:
        """Take in a new analyst, whose donation is measured as further seed rows."""
        if self.seed_fraction:
            # Refuses a share that is too small to be measured with, before anybody holds it.
            self.curator.scales(self.seed, amount(share, "A share") * self.seed_fraction)
        super().join(analyst, share)
        self._donate([analyst])

    def leave(self, analyst: str, *, donate: bool = False) -> None:
        """Let an analyst go; with `donate`, what they have left is measured as further seed rows."""
        self.require(analyst)
        if donate and self.curator.left(analyst):
            self._sow({analyst: self.curator.left(analyst)})
        self.curator.retire(analyst)

    def _donate(self, analysts: Iterable[str]) -> None:
        """Measure the seed with a part of these analysts' shares, or with what is left of it."""
        parts = {a: self.curator.share(a) * self.seed_fraction for a in analysts}
        bill = {a: min(part, self.curator.left(a)) for a, part in parts.items()}
        if not any(bill.values()):
            return
        try:
            self.curator.scales(self.seed, sum(bill.values(), Fraction(0)))
        except PrivacyError:
            return  # Too little to measure anything with.
        self._sow({analyst: part for analyst, part in bill.items() if part})

    def _sow(self, bill: dict[str, Fraction]) -> None:
        self._learn(self.curator.measure(self.seed, sum(bill.values(), Fraction(0)), bill))

    def _learn(self, measured: Measurement) -> None:
        """Add what was measured to the cache."""
        if isinstance(measured.block, Strategy):
            if measured.block is not self.seed and measured.block.to_json() != self.seed.to_json():
                raise PrivacyError(
                    "The ledger holds measurements of another seed.",
                    hint=f"Begin with the seed that it has: {measured.block.name}.",
                )
            self._known.observe_seed(measured.values, float(measured.variances[0]))
            self._donors.update(measured.bill)
            self._seeded = True
            return
        rows = list(measured.block)  # type: ignore[call-overload]
        self._known.observe(rows, measured.values, measured.variances)
        payer = next(iter(measured.bill))
        self._ordered.difference_update(row.key for row in rows)
        values, variances = measured.values.tolist(), measured.variances.tolist()
        for row, value, variance in zip(rows, values, variances, strict=True):
            self._cache[row.key] = Cached(float(value), variance, payer)

    def _order(self, block: ParallelBlock, analyst: str, pay: bool) -> Order | None:
        """Whatever nobody has measured or ordered yet, while the analyst can pay for it."""
        if not pay:
            return None
        rows = block.primitive
        fresh = [
            at for at, row in enumerate(rows) if not self._recall(row) and row.key not in self._ordered
        ]
        if not fresh or self.curator.left(analyst) < self.query_budget:
            return None
        order = self.curator.order(rows.take(fresh), self.query_budget, analyst)
        self._ordered.update(rows[at].key for at in fresh)
        return order

    def forget(self, prepared: Prepared) -> None:
        """Give up a prepared question, so that its rows can be ordered again."""
        if prepared.order:
            self._ordered.difference_update(row.key for row in prepared.order.block)  # type: ignore[attr-defined]
        super().forget(prepared)

    def _answer(self, prepared: Prepared, bought: Measurement | None) -> list[Answer]:
        block, rows = prepared.block, prepared.block.primitive
        measured: set[str] = set()
        if bought:
            self._learn(bought)
            measured = {row.key for row in bought.block}  # type: ignore[attr-defined]
        known = [self._recall(row) for row in rows]
        if self.answers == "as-printed" and prepared.pay and prepared.left >= self.query_budget:
            values = [cached.value for cached in known if cached]
            variances = [cached.variance for cached in known if cached]
        else:
            values, variances = (part.tolist() for part in self._known.estimate(rows))
        answers = []
        for query, row, cached, value, variance in zip(
            block, rows, known, values, variances, strict=True
        ):
            source: Source = "cached" if cached else "reconstructed"
            payer = cached.payer if cached else None
            if row.key in measured:
                answers.append(self._shown(query, value, variance, "measured", bought, payer))
            else:
                answers.append(self._shown(query, value, variance, source, None, payer))
        return answers

    def _preview(self, block: ParallelBlock, analyst: str) -> Preview:
        rows = block.primitive
        known = [self._recall(row) for row in rows]
        sources: list[Source] = ["cached" if cached else "reconstructed" for cached in known]
        free = Offer(Fraction(0), errors_of(self._known.estimate(rows)[1], block), tuple(sources))
        if None not in known and self.answers == "estimate":
            return Preview(free, free)
        if self.curator.left(analyst) < self.query_budget:
            return Preview(None, free)
        return Preview(self._offer(block, rows, known), free)

    def _offer(self, block: ParallelBlock, rows: ParallelBlock, known: list[Cached | None]) -> Offer:
        """What paying would give: the variances if the rows not yet measured were."""
        fresh = [at for at, cached in enumerate(known) if cached is None]
        bought = rows.take(fresh)
        noise = self.curator.variances(bought, self.query_budget) if fresh else np.zeros(0)
        if self.answers == "as-printed":
            variances = np.array([cached.variance if cached else 0.0 for cached in known])
            variances[fresh] = noise
        else:
            variances = self._known.variances_after(rows, bought, noise)
        sources: list[Source] = ["cached" if cached else "measured" for cached in known]
        cost = self.query_budget if fresh else Fraction(0)
        return Offer(cost, errors_of(variances, block), tuple(sources))

    def _recall(self, row: LinearQuery) -> Cached | None:
        """What is known of a row that was measured; a seed row counts, unless those may be bought.

        Where nobody donates at the start, seed rows come from those who leave, if at all. They may
        then be bought too: a small donation must not take a better answer from anybody.
        """
        cached = self._cache.get(row.key)
        if cached is not None or self.buy_seed_rows or not (self._seeded and self.seed_fraction):
            return cached
        at = self.seed.row_of(row)
        return None if at is None else self._seed_row(at)

    def _seed_row(self, at: int) -> Cached:
        value, variance = self._known.evidence.seed_row(at)
        return Cached(value, variance, None)


def _fraction(value: Amount) -> Fraction:
    """A part between 0 and 1, both possible."""
    exact = Fraction(0) if str(value) in ("0", "0.0") else amount(value, "seed_fraction")
    if exact > 1:
        raise PrivacyError(f"seed_fraction must be at most 1, not {value}.")
    return exact
