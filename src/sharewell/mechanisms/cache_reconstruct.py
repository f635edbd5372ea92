"""Seeded Cache and Reconstruct: pay for a query once, and reconstruct all others from what was paid."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from fractions import Fraction
from itertools import islice
from typing import Any, Literal, NamedTuple, Self, get_args

import numpy as np
from numpy.typing import NDArray

from sharewell.cancellation import checked
from sharewell.errors import PrivacyError
from sharewell.mechanisms import seed as seeds
from sharewell.mechanisms.base import (
    NOTHING,
    Answer,
    Guarantee,
    Mechanism,
    Prospect,
    PublicContext,
    Question,
    Seed,
    Source,
    Work,
    decode,
    standard_errors,
)
from sharewell.mechanisms.marginal_seed import MarginalSeed
from sharewell.mechanisms.reconstruction import Reconstruction
from sharewell.mechanisms.strategy import Strategy
from sharewell.options import AMOUNT, BOOLEAN, FRACTION, Option, choice
from sharewell.privacy.budget import Amount, amount
from sharewell.privacy.curator import Curator
from sharewell.privacy.driver import Step
from sharewell.privacy.measurement import Measurement, MeasureRequest
from sharewell.query.block import ParallelBlock
from sharewell.query.linear import LinearQuery

#: Answer with the best estimate from all measurements, or as Algorithm 1 of the paper is printed.
Answers = Literal["estimate", "as-printed"]


EQUAL_PRICES = "Every paid question costs the same."
FIXED_STREAM = "What analysts ask and pay for, and in which order, does not depend on others' answers."
SAME_ORDER = "Without any one analyst, the scheduler would serve the others in the same order."


#: About how many operations two products of a query take, under a seed of tables.
PER_PAIR = 30_000.0
#: How many counts are compared, at most, and how many of one question.
MOST_COUNTS, MOST_OF_QUESTION = 64, 8


class CachedRow(NamedTuple):
    """A row that was measured: its value and variance, and who paid for it (None for a seed row)."""

    value: float
    variance: float
    payer: str | None


class CacheReconstruct(Mechanism):
    """The paper's Algorithm 1, with every answer the best linear unbiased estimate.

    Every analyst donates `seed_fraction` of their share, and the seed is measured with all of it. A
    query that was never measured is then measured for `query_budget`, charged to the asking analyst
    while they can pay; and every measurement serves all analysts.

    Privacy: post-processing of `Curator.measure`; each analyst pays within their own share.
    """

    name = "Seeded Cache and Reconstruct"
    errors_are_public = True
    key = "cache-reconstruct"
    options = (
        Option("seed", seeds.SEED_NAME, "identity", "rows measured at the start"),
        Option("seed_fraction", FRACTION, "1/2", "fraction of every share that pays for the seed"),
        Option("query_budget", AMOUNT, "1/100", "cost of a paid question, as a fraction of the budget"),
        Option(
            "answers",
            choice(*get_args(Answers)),
            "estimate",
            "best estimate, or the paper's Algorithm 1 as printed",
        ),
        Option(
            "buy_seed_rows", BOOLEAN, False, "whether analysts can pay for rows that the seed measured"
        ),
    )

    @classmethod
    def arguments(cls, options: Mapping[str, Any], context: PublicContext) -> dict[str, Any]:
        """Make the seed that the options name, and the price from the budget."""
        seed = seeds.configured(options["seed"], context)
        return {**options, "seed": seed, "query_budget": options["query_budget"] * context.budget.total}

    @property
    def guarantee(self) -> Guarantee:  # type: ignore[override]
        """All desiderata are proven, except for answers as the paper prints them."""
        proven = None if self.answers == "as-printed" else (EQUAL_PRICES, FIXED_STREAM)
        return Guarantee("guarantees/cache-reconstruct.md", proven, reordered=(SAME_ORDER,))

    def __init__(
        self,
        curator: Curator,
        *,
        seed: Seed,
        seed_fraction: Amount,
        query_budget: Amount,
        answers: Answers = "estimate",
        buy_seed_rows: bool = False,
        signed_rows: bool = False,
    ) -> None:
        super().__init__(curator)
        if answers not in get_args(Answers):
            raise PrivacyError(
                f"Invalid value {answers!r} for `answers`.", hint='Use "estimate" or "as-printed".'
            )
        if seed.domain != curator.domain:
            raise PrivacyError("The seed and the data have different domains.")
        if signed_rows and (curator.neighbours != "add-remove" or answers != "estimate"):
            raise PrivacyError(
                "Signed rows need the neighbours add-remove, and best estimates.",
                hint="Omit `signed_rows`, `neighbours` and `answers`.",
            )
        self.seed = seed
        self.seed_fraction = _fraction(seed_fraction)
        self.query_budget = amount(query_budget, "query_budget")
        self.answers = answers
        self.best_estimates = answers == "estimate"
        self.buy_seed_rows = buy_seed_rows
        #: Whether a single count is measured as 2w - u, which needs a well-known total.
        self.signed_rows = signed_rows
        self._cache: dict[str, CachedRow] = {}
        #: Rows that a question on its way has requested: no other question pays for them.
        self._requested: set[str] = set()
        self._reconstruction = Reconstruction(seed)
        self._seeded = False
        self._donors: set[str] = set()
        for measurement in curator.history(decode):
            self._learn(measurement)
        # Analysts who have not donated yet do so now: all together at the start, and after a restart
        # those who were added with it, one by one, as if they had joined.
        missing = [analyst for analyst in self.analysts if analyst not in self._donors]
        for donors in [[analyst] for analyst in missing] if self._seeded else [missing]:
            self._donate(donors)
        self._reconstruction.choose()  # Built now, so that the first question does not wait for it.

    # Algorithm 1

    def answer(self, block: ParallelBlock, analyst: str, pay: bool) -> Step[list[Answer]]:
        """Buy the rows that were never measured, while the analyst can pay; answer from all there is."""
        rows = self._measured_rows(block)
        can_pay = pay and self.curator.left(analyst) >= self.query_budget
        fresh = self._fresh(rows) if can_pay else ()
        with self._requesting(fresh):
            bought = yield MeasureRequest(fresh, self.query_budget, analyst) if fresh else None
        if bought:
            self._learn(bought)
        return self._estimate(block, rows, bought, as_printed=can_pay and self.answers == "as-printed")

    def _measured_rows(self, block: ParallelBlock) -> ParallelBlock:
        """The rows that a purchase measures: those of the question, or the signed row of one count.

        The question alone decides, never what is left of it to buy: so they are the same in every
        collective, which the proof of monotonicity needs.
        """
        return (block.signed if self.signed_rows else None) or block.primitive

    def _fresh(self, rows: ParallelBlock) -> ParallelBlock | tuple[()]:
        """The rows that are neither measured nor requested by an earlier question."""
        pairs = zip(rows, self._lookup(rows), strict=True)
        fresh = [
            at
            for at, (row, cached) in enumerate(pairs)
            if cached is None and row.key not in self._requested
        ]
        return rows.take(fresh) if fresh else ()

    @contextmanager
    def _requesting(self, rows: Iterable[LinearQuery]) -> Iterator[None]:
        """Keep later questions from buying rows that are being bought."""
        keys = [row.key for row in rows]
        self._requested.update(keys)
        try:
            yield
        finally:
            self._requested.difference_update(keys)

    def _learn(self, measured: Measurement) -> None:
        """Add a measurement to the cache."""
        if isinstance(measured.block, Strategy | MarginalSeed):
            seed = self.seed.bought_by(measured.bill)
            if measured.block is not seed and measured.block.to_json() != seed.to_json():
                raise PrivacyError(
                    "The ledger holds measurements of another seed.",
                    hint=f"Use the seed that it was begun with: {measured.block.name}.",
                )
            parts = seed if isinstance(seed, MarginalSeed) else None
            self._reconstruction.observe_seed(measured.values, measured.variances, parts)
            self._donors.update(measured.bill)
            self._seeded = True
            return
        rows = list(measured.block)  # type: ignore[call-overload]
        self._reconstruction.observe(rows, measured.values, measured.variances)
        payer = next(iter(measured.bill))
        values, variances = measured.values.tolist(), measured.variances.tolist()
        for row, value, variance in zip(rows, values, variances, strict=True):
            self._cache[row.key] = CachedRow(float(value), variance, payer)

    def _lookup(self, rows: Iterable[LinearQuery]) -> list[CachedRow | None]:
        """The measurement of each row; a seed row counts, unless those may be bought.

        Without donations at the start, seed rows come from analysts who leave, if at all. They may then
        be bought too: a small donation must not deprive an analyst of a better answer.
        """
        has_seed = self._seeded and self.seed_fraction and not self.buy_seed_rows
        found = []
        for row in rows:
            cached = self._cache.get(row.key)
            if cached is None and has_seed and (at := self.seed.row_of(row)) is not None:
                cached = CachedRow(*self._reconstruction.measurements.seed_row(at), None)
            found.append(cached)
        return found

    def _estimate(
        self,
        block: ParallelBlock,
        rows: ParallelBlock,
        bought: Measurement | None,
        *,
        as_printed: bool,
    ) -> list[Answer]:
        """The best estimate of every row; as printed, its own noisy value."""
        known = self._known(block, rows)
        if as_printed:
            values = [cached.value for cached in known if cached]
            variances = [cached.variance for cached in known if cached]
        else:
            estimates = self._reconstruction.estimate(block.primitive)
            values, variances = (part.tolist() for part in estimates)
        measured = {row.key for row in bought.block} if bought else set()  # type: ignore[attr-defined]
        answers = []
        for query, row, cached, value, variance in zip(
            block, rows, known, values, variances, strict=True
        ):
            source: Source = "cached" if cached else "reconstructed"
            paid, payer = None, cached.payer if cached else None
            if row.key in measured:
                source, paid = "measured", bought
            answers.append(self._answered(query, value, variance, source, paid, payer))
        return answers

    def _known(self, block: ParallelBlock, rows: ParallelBlock) -> list[CachedRow | None]:
        """What was measured of a question: the rows that a purchase measures, or each row as it is."""
        known = self._lookup(rows)
        if rows is block.primitive:
            return known
        return [own or as_is for own, as_is in zip(known, self._lookup(block.primitive), strict=True)]

    def expect(self, block: ParallelBlock, analyst: str, pay: bool) -> Prospect | None:
        """The standard errors after a purchase; None where there is something to buy and no money."""
        rows = self._measured_rows(block)
        known = self._lookup(checked(rows))
        if not pay or (None not in known and self.answers == "estimate"):
            variances = self._reconstruction.estimate(block.primitive)[1]
            sources = tuple("cached" if each else "reconstructed" for each in self._known(block, rows))
            return Prospect(NOTHING, standard_errors(variances, block), sources)
        if self.curator.left(analyst) < self.query_budget:
            return None
        missing = [at for at, cached in enumerate(known) if cached is None]
        bought = rows.take(missing)
        noise = self.curator.variances(bought, self.query_budget) if missing else np.zeros(0)
        if self.answers == "as-printed":
            variances = np.array([cached.variance if cached else 0.0 for cached in known])
            variances[missing] = noise
        else:
            variances = self._reconstruction.variances_after(block.primitive, bought, noise)
        # Rows that an earlier question has requested cost nothing more.
        fresh = any(row.key not in self._requested for row in bought)
        cost = self.query_budget if fresh else NOTHING
        sources = tuple("cached" if cached else "measured" for cached in known)
        return Prospect(cost, standard_errors(variances, block), sources)

    def covariances(
        self, left: Sequence[LinearQuery], right: Sequence[LinearQuery], analyst: str
    ) -> NDArray[np.float64] | None:
        """Those of the best estimates; the paper's printed answers are not estimates."""
        if not self.best_estimates:
            return None
        scales = [float(a.scale * b.scale) for a, b in zip(left, right, strict=True)]
        places = np.flatnonzero(scales)
        rows = [[block[at].primitive for at in places.tolist()] for block in (left, right)]
        found = np.zeros(len(scales))
        found[places] = self._reconstruction.covariances(*rows) if len(places) else 0.0
        return found * scales

    def snapshot(self) -> Self:
        """With its own cache; the solver's arrays are shared until they change."""
        frozen = super().snapshot()
        frozen._cache, frozen._requested = dict(self._cache), set(self._requested)
        frozen._reconstruction = self._reconstruction.snapshot()
        return frozen

    def work(self, question: Question, *, pay: bool = True) -> Work:
        """What the solver takes for all rows; with `pay`, as if none of them were measured yet.

        Under a seed of tables, only those that were not: the last rows of a table cost little.
        """
        queries = [question] if isinstance(question, LinearQuery) else question
        known, many = self._reconstruction, len(queries)
        if isinstance(self.seed, Strategy):
            return Work(*known.choose(many).solver.work(many, many if pay else 0))
        fresh = self._bought_by(question) if pay else None
        noise = self.curator.variances(fresh, self.query_budget) if fresh else None
        operations, memory = known.work(many, fresh or (), noise)
        # Every pair of a query's products is weighed.
        operations += PER_PAIR * sum(n**2 for n in (q.product_count for q in queries) if n > 1)
        return Work(operations, memory)

    def can_sell(self, question: Question, analyst: str) -> bool:
        """Not rows far more precise than the seed, where that has too many rows to be written out."""
        if self._reconstruction.writes_seed_out or not self.best_estimates:
            return True
        rows = self._bought_by(question)
        noise = self.curator.variances(rows, self.query_budget) if len(rows) else np.zeros(0)
        return self._reconstruction.suits(rows, noise)

    def _bought_by(self, question: Question) -> ParallelBlock:
        """The rows that a question would buy, as far as they were not measured."""
        block = ParallelBlock(self.domain, [question]) if isinstance(question, LinearQuery) else question
        if not isinstance(block, ParallelBlock):
            block = ParallelBlock.of(block)
        rows = self._measured_rows(block.filled[0])
        return rows.take([at for at, cached in enumerate(self._lookup(rows)) if cached is None])

    # The seed

    def join(self, analyst: str, share: Amount) -> None:
        """Admit a new analyst, whose donation is measured as further seed rows."""
        if self.seed_fraction:
            # Refuses a share that is too small to measure with, before it is granted.
            donation = amount(share, "A share") * self.seed_fraction
            self.curator.scales(self.seed.bought_by({analyst: donation}), donation)
        super().join(analyst, share)
        self._donate([analyst])

    def leave(self, analyst: str, *, donate: bool = False) -> None:
        """Let an analyst leave; with `donate`, what they have left is measured as further seed rows."""
        self.require(analyst)
        if donate and (left := self.curator.left(analyst)):
            bill = {analyst: left}
            self._learn(self.curator.measure(self.seed.bought_by(bill), left, bill))
        self.curator.retire(analyst)

    def closing_request(self, done: Iterable[str]) -> MeasureRequest | None:
        """The seed once more, for all that these analysts have left together."""
        bill = {analyst: left for analyst in done if (left := self.curator.left(analyst))}
        if not bill:
            return None
        seed, cost = self.seed.bought_by(bill), sum(bill.values(), NOTHING)
        try:
            self.curator.scales(seed, cost)
        except PrivacyError:
            return None
        return MeasureRequest(seed, cost, bill)

    def close_round(self, done: Iterable[str]) -> None:
        """Measure the seed once more with all that analysts who are done have left, together.

        They pay for nothing more, even where the rest is too little to measure with: in a smaller
        collective it may be, and no analyst may have more left there.
        """
        analysts = list(done)
        for analyst in analysts:
            self.require(analyst)
        if measured := self.curator.close_round(analysts, self.closing_request(analysts)):
            self._learn(measured)

    def _donate(self, analysts: Iterable[str]) -> None:
        """Measure the seed with a fraction of these analysts' shares, or with what is left of it."""
        parts = {a: self.curator.share(a) * self.seed_fraction for a in analysts}
        bill = {a: min(part, self.curator.left(a)) for a, part in parts.items()}
        bill = {analyst: part for analyst, part in bill.items() if part}
        if not bill:
            return
        try:
            cost = sum(bill.values(), NOTHING)
            reservation = self.curator.reserve(MeasureRequest(self.seed.bought_by(bill), cost, bill))
        except PrivacyError:
            return  # Too little to measure anything with.
        [measured] = self.curator.charge([reservation])
        self.curator.store([measured])
        self._learn(measured)


def _fraction(value: Amount) -> Fraction:
    """A fraction between 0 and 1, both included."""
    exact = Fraction(0) if str(value) in ("0", "0.0") else amount(value, "seed_fraction")
    if exact > 1:
        raise PrivacyError(f"seed_fraction must be at most 1, not {value}.")
    return exact


def signing_helps(mechanism: CacheReconstruct, questions: Iterable[Question]) -> bool:
    """Whether the counts among some questions are more precise if each is bought as a signed row.

    A signed row measures a single count with weights w from 0 to u as 2w - u. Under add-remove both
    rows cost the same and have the same noise. With T the number of all rows of the table, the count is
    half of the signed row plus u T / 2: where T is known well, that has a quarter of the variance. Where
    T is known badly it has more. So it is decided before anything is measured, and stored.

    `mechanism` is that of the analyst with the smallest share, alone, before any purchase: nowhere is
    the total known worse. It must be determined there.

    Privacy: costs nothing; no row is read.
    """
    curator, known = mechanism.curator, mechanism._reconstruction
    if curator.neighbours != "add-remove" or not mechanism.best_estimates:
        return False
    if not math.isfinite(known.estimate([LinearQuery.all(mechanism.domain)])[1][0]):
        return False
    plain = signed = 0.0
    for block in islice(_counts(questions), MOST_COUNTS):
        if block.signed is None:
            continue
        for rows in (block.primitive, block.signed):
            try:
                noise = curator.variances(rows, mechanism.query_budget)
            except PrivacyError:
                return False  # Too little to measure anything with.
            # In units of the largest weight, so that no sum outweighs all counts.
            unit = float(block.primitive[0].max_abs)
            variance = float(known.variances_after(block.primitive, rows, noise)[0]) / unit**2
            if rows is block.primitive:
                plain += variance
            else:
                signed += variance
    return signed < plain


def _counts(questions: Iterable[Question]) -> Iterator[ParallelBlock]:
    """Queries of all questions, each as if it were asked alone; a few of those with many."""
    for question in questions:
        block = (
            ParallelBlock(question.domain, [question]) if isinstance(question, LinearQuery) else question
        )
        step = max(1, len(block) // MOST_OF_QUESTION)
        chosen = range(step // 2, len(block), step)
        # A large block makes its rows one by one: only those that are chosen.
        few = block.take(chosen) if isinstance(block, ParallelBlock) else block[step // 2 :: step]
        for query in few:
            if not query.is_zero:
                yield ParallelBlock(query.domain, [query])
