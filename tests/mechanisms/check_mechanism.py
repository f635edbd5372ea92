"""What every mechanism must do: `CHECKS` puts the same awkward questions to any of them.

A mechanism's own test gives a function that makes one for a curator; see `test_mechanisms.py`.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import get_args

import numpy as np
import pytest

from sharewell import Block, Boolean, Domain, Integer, LinearQuery
from sharewell.engine.data_vector import DataVector
from sharewell.errors import OverBudget, PrivacyError, QueryError, SharewellError, UnknownPayer
from sharewell.mechanisms.base import (
    Answer,
    Mechanism,
    Preview,
    Prospect,
    Question,
    Source,
    reach_of,
)
from sharewell.mechanisms.cache_reconstruct import CacheReconstruct
from sharewell.mechanisms.pmw import PrivateMultiplicativeWeights
from sharewell.privacy.budget import Budget
from sharewell.privacy.curator import Curator
from sharewell.privacy.ledger import Charged, MemoryLedger
from sharewell.privacy.noise import Noise
from sharewell.query import workload
from sharewell.query.block import ParallelBlock
from sharewell_lab.noise import NoNoise, SeededNoise

DOMAIN = Domain([Integer("age", 0, 5), Boolean("moved")])
COUNTS = np.array([310, 40, 5, 0, 120, 77, 3, 1, 64, 250, 18, 130])
POPULATION = int(COUNTS.sum())
SHARES = {"ann": Fraction(6, 5), "bob": Fraction(4, 5)}

ADULTS = LinearQuery.of(DOMAIN, age=range(2, 6))
AGE = LinearQuery.product(DOMAIN, {"age": range(6)})
BY_AGE = {0: [0, 0, 1, 1, 2, 2]}

#: Counts, sums, differences, scales of both signs, and blocks, also with rows that select nothing.
QUESTIONS: dict[str, Question] = {
    "a count": LinearQuery.of(DOMAIN, age=range(1, 4), moved=[1]),
    "one cell": LinearQuery.cell(DOMAIN, 4),
    "everybody": LinearQuery.all(DOMAIN),
    "a union": LinearQuery.of(DOMAIN, age=[0, 5]) | LinearQuery.of(DOMAIN, moved=[1]),
    "a sum": AGE,
    "half a sum": AGE.where(ADULTS) * Fraction(1, 2),
    "a difference": LinearQuery.product(DOMAIN, {"moved": [1, -1]}) * -3,
    "a grouping": ParallelBlock.group_by(LinearQuery.all(DOMAIN), BY_AGE),
    "a grouped sum": ParallelBlock.group_by(AGE, BY_AGE),
    "empty groups": ParallelBlock.group_by(ADULTS, {1: [0, 1], **BY_AGE}),
    "rows out of order": Block(DOMAIN, [ADULTS * 2, ~ADULTS * -1]),
    "all cells": workload.identity(DOMAIN),
}


@dataclass(frozen=True)
class Kind:
    """A way to make a mechanism, and the currency that it is paid in."""

    make: Callable[[Curator], Mechanism]
    currency: str = "pure"
    neighbours: str = "add-remove"

    def curator(
        self, noise: Noise | None = None, ledger: MemoryLedger | None = None, shares=SHARES
    ) -> Curator:
        total = sum(SHARES.values(), Fraction(1, 2))
        return Curator(
            DataVector(DOMAIN, COUNTS),
            Budget(self.currency, total, total),  # type: ignore[arg-type]
            shares,
            neighbours=self.neighbours,  # type: ignore[arg-type]
            noise=noise or SeededNoise(1),
            ledger=ledger,
        )

    def made(self, noise: Noise | None = None, ledger: MemoryLedger | None = None) -> Mechanism:
        return self.make(self.curator(noise, ledger))


def rows_of(question: Question) -> list[LinearQuery]:
    return [question] if isinstance(question, LinearQuery) else list(question)


def ask(mechanism: Mechanism, question: Question, analyst: str, pay: bool = True) -> list[Answer]:
    """The answers, one a row, whether the question is a query or a block."""
    found = mechanism.ask(question, analyst, pay=pay)
    return [found] if isinstance(found, Answer) else list(found)


def spent(mechanism: Mechanism) -> Fraction:
    return sum((mechanism.curator.spent(analyst) for analyst in SHARES), Fraction(0))


def left(mechanism: Mechanism) -> dict[str, Fraction]:
    return {analyst: mechanism.curator.left(analyst) for analyst in SHARES}


def play(mechanism: Mechanism, rounds: int = 1) -> None:
    """Ask everything in turns; a pot that is empty refuses."""
    for at, question in enumerate([*QUESTIONS.values()] * rounds):
        try:
            ask(mechanism, question, "ann" if at % 3 else "bob")
        except OverBudget:
            assert mechanism.preview(question, "ann").paid is None


def all_free(mechanism: Mechanism) -> list[list[Answer]]:
    """Every answer that can be had for nothing, as everybody gets it."""
    return [
        ask(mechanism, question, analyst, pay=False)
        for question in QUESTIONS.values()
        for analyst in mechanism.analysts
        if mechanism.preview(question, analyst).free is not None
    ]


# Previews


def check_a_preview_spends_nothing_and_changes_nothing(kind: Kind) -> None:
    ledgers = MemoryLedger(), MemoryLedger()
    watched, plain = (kind.made(ledger=ledger) for ledger in ledgers)
    for analyst, question in [("ann", q) for q in QUESTIONS.values()] * 2:
        before = list(ledgers[0].events())
        first = watched.preview(question, analyst)
        watched.preview(question, "bob")
        assert watched.preview(question, analyst) == first
        assert list(ledgers[0].events()) == before
        try:
            expected = ask(plain, question, analyst)
        except OverBudget:
            assert first.paid is None
        else:
            assert ask(watched, question, analyst) == expected
    assert list(ledgers[0].events()) == list(ledgers[1].events())


def check_a_preview_tells_what_then_happens(kind: Kind) -> None:
    mechanism = kind.made()
    paid_at_all = False
    for question in [*QUESTIONS.values()] * 3:
        preview = mechanism.preview(question, "ann")
        if preview.free is not None:
            before = left(mechanism)
            _check_offer(preview.free, question, ask(mechanism, question, "ann", pay=False))
            assert left(mechanism) == before
        before_all = spent(mechanism)
        if preview.paid is not None:
            _check_offer(preview.paid, question, ask(mechanism, question, "ann"))
            cost = spent(mechanism) - before_all
            assert cost <= preview.paid.cost
            assert cost == preview.paid.cost or None in preview.paid.standard_errors
            paid_at_all = paid_at_all or cost > 0
        elif preview.free is not None:
            _check_offer(preview.free, question, ask(mechanism, question, "ann"))
            assert spent(mechanism) == before_all
    assert paid_at_all


def _check_offer(offer: Prospect, question: Question, answers: list[Answer]) -> None:
    """The answers are as they were offered: one a row, and as far off as was said, if it was."""
    assert len(offer.standard_errors) == len(offer.sources) == len(answers) == len(rows_of(question))
    for error, source, answer in zip(offer.standard_errors, offer.sources, answers, strict=True):
        if error is None:
            assert source == "synthetic"
            assert answer.source in {"synthetic", "measured"}
        else:
            assert answer.source == source
            assert answer.standard_error == pytest.approx(error, rel=1e-9)
    known = [error for error in offer.standard_errors if error is not None]
    expected = max(known) if len(known) == len(answers) else None
    assert offer.standard_error == expected


# Spending


def check_nobody_ever_pays_more_than_their_share(kind: Kind) -> None:
    ledger = MemoryLedger()
    mechanism = kind.made(ledger=ledger)
    for _ in range(12):
        play(mechanism)
        for analyst, share in SHARES.items():
            assert 0 <= mechanism.curator.spent(analyst) <= share
    charged = [event.bill for event in ledger.events() if isinstance(event, Charged)]
    for analyst in SHARES:
        paid = sum((bill.get(analyst, Fraction(0)) for bill in charged), Fraction(0))
        assert paid == mechanism.curator.spent(analyst)
    assert spent(mechanism) > 0


def check_who_has_nothing_left_is_answered_for_free_or_refused(kind: Kind) -> None:
    mechanism = kind.made()
    question = QUESTIONS["a count"]
    for at in range(1, 2**12):
        if mechanism.preview(question, "ann").paid is None:
            break
        # A different set of cells every time, of all sizes.
        cells = [at * 1367 % 2**12 >> cell & 1 for cell in range(12)]
        mechanism.ask(LinearQuery.from_vector(DOMAIN, np.array(cells)), "ann")
    preview = mechanism.preview(question, "ann")
    assert preview.paid is None
    before = left(mechanism)
    if preview.free is None:
        with pytest.raises(OverBudget, match="pot holds"):
            ask(mechanism, question, "ann")
    else:
        for answer in ask(mechanism, QUESTIONS["a grouping"], "ann"):
            assert answer.source != "measured"
            assert answer.cost == 0
    assert left(mechanism) == before


# What must be refused

OTHER = Domain([Integer("age", 0, 5), Boolean("moved", nullable=True)])
BAD: dict[str, tuple[Callable[[Mechanism], object], type[SharewellError], str]] = {
    "an unknown analyst": (lambda m: m.ask(AGE, "eve"), UnknownPayer, "'eve'"),
    "an unknown analyst's preview": (lambda m: m.preview(AGE, "eve"), UnknownPayer, "'eve'"),
    "no analyst": (lambda m: m.ask(AGE, ""), UnknownPayer, "Unknown analyst"),
    "an empty query": (
        lambda m: m.ask(LinearQuery.zero(DOMAIN), "ann"),
        QueryError,
        "selects no cell",
    ),
    "an empty query's preview": (
        lambda m: m.preview(LinearQuery.zero(DOMAIN), "ann"),
        QueryError,
        "selects no cell",
    ),
    "an empty block": (lambda m: m.ask(Block(DOMAIN, []), "ann"), QueryError, "selects no cell"),
    "another domain": (lambda m: m.ask(LinearQuery.all(OTHER), "ann"), QueryError, "domain"),
    "a block over another domain": (
        lambda m: m.ask(workload.identity(OTHER), "ann"),
        QueryError,
        "domain",
    ),
    "overlapping rows": (
        lambda m: m.ask(Block(DOMAIN, [ADULTS, AGE]), "ann"),
        QueryError,
        "overlap in a cell",
    ),
    "a row twice": (
        lambda m: m.ask(Block(DOMAIN, [ADULTS, ADULTS]), "ann"),
        QueryError,
        "overlap in a cell",
    ),
    "overlapping rows' preview": (
        lambda m: m.preview(Block(DOMAIN, [ADULTS, AGE]), "ann"),
        QueryError,
        "overlap in a cell",
    ),
    "an unknown analyst's leave": (lambda m: m.leave("eve"), UnknownPayer, "'eve'"),
    "a share of nothing": (lambda m: m.join("cem", "0"), SharewellError, "greater than 0"),
    "a share below nothing": (lambda m: m.join("cem", "-1"), SharewellError, "greater than 0"),
    "a share that is not exact": (lambda m: m.join("cem", 0.1), SharewellError, "exact"),  # type: ignore[arg-type]
}


def check_bad_questions_cost_nothing_and_change_nothing(kind: Kind) -> None:
    ledger = MemoryLedger()
    mechanism = kind.made(ledger=ledger)
    play(mechanism)
    events, state = list(ledger.events()), all_free(mechanism)
    for bad, error, says in BAD.values():
        with pytest.raises(error, match=says):
            bad(mechanism)
        assert list(ledger.events()) == events
    assert all_free(mechanism) == state


# Answers


def check_without_noise_what_is_known_is_exact(kind: Kind) -> None:
    """A guess from a synthetic table says nothing of its error, nor does what nothing determines."""
    mechanism = kind.made(NoNoise())
    exact = 0
    for question in [*QUESTIONS.values()] * 2:
        preview = mechanism.preview(question, "ann")
        if preview.paid is None and preview.free is None:
            continue
        for query, answer in zip(rows_of(question), ask(mechanism, question, "ann"), strict=True):
            assert (answer.standard_error is None) == (answer.source == "synthetic")
            if answer.standard_error is not None and math.isfinite(answer.standard_error):
                assert answer.value == pytest.approx(float(query.dot(COUNTS)), abs=1e-6)
                exact += 1
    assert exact >= 6


def check_an_answer_says_all_that_it_should(kind: Kind) -> None:
    ledger = MemoryLedger()
    mechanism = kind.made(ledger=ledger)
    sources = set()
    for at, question in enumerate([*QUESTIONS.values()] * 2):
        analyst = ("ann", "bob")[at % 2]
        try:
            answers = ask(mechanism, question, analyst)
        except OverBudget:
            continue
        events = list(ledger.events())
        for query, answer in zip(rows_of(question), answers, strict=True):
            sources.add(answer.source)
            assert answer.source in get_args(Source)
            assert isinstance(answer.value, float)
            assert isinstance(answer.cost, Fraction)
            if answer.standard_error is None:
                assert answer.interval is None
            else:
                assert answer.interval is not None
                low, high = answer.interval
                assert low <= answer.value <= high
                if math.isfinite(answer.standard_error):
                    reach = reach_of(answer.standard_error, abs(float(query.scale)), mechanism.critical)
                    assert high - answer.value == pytest.approx(reach)
                    assert answer.value - low == pytest.approx(reach)
            assert (answer.cost > 0) == (answer.charge is not None) == (answer.source == "measured")
            if answer.charge is not None:
                charge = events[answer.charge]
                assert isinstance(charge, Charged)
                assert sum(charge.bill.values()) == answer.cost
                assert answer.payer == analyst
                assert analyst in charge.bill
                stored = charge.purpose["measure"]["queries"]
                assert query.primitive.to_json() in stored
            assert answer.payer is None or answer.payer in SHARES
            if query.is_zero:
                assert answer == Answer(0.0, 0.0, (0.0, 0.0), "public")
    assert "measured" in sources
    assert "public" in sources


def check_a_block_is_answered_row_by_row(kind: Kind) -> None:
    mechanism = kind.made()
    play(mechanism)
    for question in QUESTIONS.values():
        queries = rows_of(question)
        if mechanism.preview(question, "ann").free is not None:
            together = ask(mechanism, question, "ann", pay=False)
            for query, answer in zip(queries, together, strict=True):
                if not query.is_zero:
                    alone = mechanism.ask(query, "ann", pay=False)
                    assert (answer.source, answer.payer) == (alone.source, alone.payer)
                    assert answer.value == pytest.approx(alone.value)
                    assert answer.standard_error == pytest.approx(alone.standard_error)


def check_a_paid_block_is_measured_as_its_rows_would_be(kind: Kind) -> None:
    """For one price, or one a row; each row with the noise that it would have alone."""
    block = QUESTIONS["a grouping"]
    together = ask(kind.made(NoNoise()), block, "ann")
    compared = 0
    for query, answer in zip(rows_of(block), together, strict=True):
        alone = kind.made(NoNoise()).ask(query, "ann")
        if answer.source == alone.source == "measured":
            compared += 1
            assert answer.cost == alone.cost
            assert answer.value == pytest.approx(alone.value)
            # What was measured beside it can only make an estimate better.
            assert answer.standard_error is not None
            assert alone.standard_error is not None
            assert answer.standard_error <= alone.standard_error * (1 + 1e-9)
    assert compared


def check_rows_that_select_nothing_are_public_zeros(kind: Kind) -> None:
    mechanism = kind.made()
    before = left(mechanism)
    nothing = Block(DOMAIN, [LinearQuery.zero(DOMAIN)] * 2)
    preview = mechanism.preview(nothing, "ann")
    assert preview.paid is not None
    assert preview.paid.cost == 0
    assert preview.paid.sources == ("public", "public")
    assert ask(mechanism, nothing, "ann") == [Answer(0.0, 0.0, (0.0, 0.0), "public")] * 2
    assert left(mechanism) == before
    answers = ask(mechanism, QUESTIONS["empty groups"], "ann")
    empty = [query.is_zero for query in rows_of(QUESTIONS["empty groups"])]
    assert [answer.source == "public" for answer in answers] == empty
    assert any(empty)


# Starting again


def check_a_mechanism_made_anew_from_the_ledger_goes_on_where_it_was(kind: Kind) -> None:
    ledger = MemoryLedger()
    mechanism = kind.made(ledger=ledger)
    for _ in range(2):
        play(mechanism)
        before = list(ledger.events())
        again = kind.made(SeededNoise(99), ledger)
        assert list(ledger.events()) == before, "starting again costs nothing"
        assert left(again) == left(mechanism)
        assert again.analysts == mechanism.analysts
        assert all_free(again) == all_free(mechanism), "to the last bit"
        for question in QUESTIONS.values():
            assert again.preview(question, "bob") == mechanism.preview(question, "bob")


def check_it_goes_on_where_it_was_after_somebody_has_left(kind: Kind) -> None:
    ledger = MemoryLedger()
    mechanism = kind.made(ledger=ledger)
    ask(mechanism, QUESTIONS["a count"], "ann")
    mechanism.leave("bob")
    ask(mechanism, QUESTIONS["everybody"], "ann")
    again = kind.made(SeededNoise(99), ledger)
    assert again.analysts == mechanism.analysts == ("ann",)
    assert left(again) == left(mechanism)
    assert all_free(again) == all_free(mechanism)
    for question in QUESTIONS.values():
        assert again.preview(question, "ann") == mechanism.preview(question, "ann")
    with pytest.raises(UnknownPayer):
        mechanism.ask(AGE, "bob")
    for _ in range(12):
        for question in QUESTIONS.values():
            if mechanism.preview(question, "ann").paid is not None:
                ask(mechanism, question, "ann")


def check_the_same_noise_gives_the_same_answers(kind: Kind) -> None:
    first, second = kind.made(SeededNoise(5)), kind.made(SeededNoise(5))
    for question in [*QUESTIONS.values()] * 2:
        if first.preview(question, "bob").paid is not None:
            assert ask(first, question, "bob") == ask(second, question, "bob")


# Snapshots


def previews(mechanism: Mechanism) -> list[Preview]:
    return [mechanism.preview(question, "bob") for question in QUESTIONS.values()]


def check_a_snapshot_stays_as_it_is_while_the_mechanism_goes_on(kind: Kind) -> None:
    """Read from another thread meanwhile; and equal to a mechanism made from the ledger of then."""
    ledger = MemoryLedger()
    mechanism = kind.made(ledger=ledger)
    for question in list(QUESTIONS.values())[:5]:
        if mechanism.preview(question, "ann").paid is not None:
            ask(mechanism, question, "ann")
    then = MemoryLedger()
    then.append_many(list(ledger.events()))
    expected = previews(mechanism)
    frozen = mechanism.snapshot()
    found: list[list[Preview]] = []
    reader = threading.Thread(target=lambda: found.extend(previews(frozen) for _ in range(3)))
    reader.start()
    play(mechanism)
    mechanism.leave("ann")
    reader.join()
    assert [*found, previews(frozen)] == [expected] * 4
    again = kind.made(SeededNoise(99), then)
    assert previews(again) == expected
    assert frozen.analysts == ("ann", "bob")
    assert left(frozen) == left(again)


def check_a_snapshot_charges_nothing_and_holds_no_data(kind: Kind) -> None:
    ledger = MemoryLedger()
    mechanism = kind.made(ledger=ledger)
    frozen = mechanism.snapshot()
    before = list(ledger.events())
    for attempt in (
        lambda: ask(frozen, QUESTIONS["a count"], "ann"),
        lambda: frozen.curator.measure(AGE, "1/10", "ann"),
        lambda: frozen.leave("ann"),
    ):
        with pytest.raises(PrivacyError, match="read-only"):
            attempt()
    assert list(ledger.events()) == before
    assert not hasattr(frozen.curator, "_data")
    assert ask(mechanism, QUESTIONS["a count"], "ann")


def check_work_grows_with_the_question(kind: Kind) -> None:
    mechanism = kind.made()
    questions = [QUESTIONS[name] for name in ("a count", "all cells")]
    one, all_cells = (mechanism.work(question, pay=False) for question in questions)
    assert 0 < one.operations < all_cells.operations
    assert 0 <= one.bytes <= all_cells.bytes
    # To buy a whole table may take less work than to buy one count: a seed of tables absorbs it.
    assert all(work.operations > 0 for work in map(mechanism.work, questions))


# Coming and going


def check_those_who_join_may_ask_unless_nobody_can(kind: Kind) -> None:
    ledger = MemoryLedger()
    mechanism = kind.made(ledger=ledger)
    before = list(ledger.events())
    if isinstance(mechanism, PrivateMultiplicativeWeights):
        with pytest.raises(QueryError, match="join later"):
            mechanism.join("cem", "1/2")
        assert list(ledger.events()) == before
        return
    mechanism.join("cem", "1/2")
    assert mechanism.analysts == ("ann", "bob", "cem")
    assert ask(mechanism, QUESTIONS["a count"], "cem")
    with pytest.raises(SharewellError, match="already holds"):
        mechanism.join("cem", "1/100")


def check_a_donation_is_taken_or_refused_whole(kind: Kind) -> None:
    ledger = MemoryLedger()
    mechanism = kind.made(ledger=ledger)
    before = list(ledger.events())
    if isinstance(mechanism, CacheReconstruct):
        mechanism.leave("bob", donate=True)
        assert mechanism.curator.spent("bob") == SHARES["bob"]
    else:
        with pytest.raises(QueryError, match="cannot use a donation"):
            mechanism.leave("bob", donate=True)
        assert list(ledger.events()) == before
        mechanism.leave("bob")
    assert mechanism.analysts == ("ann",)
    for again in (lambda: mechanism.leave("bob"), lambda: mechanism.preview(AGE, "bob")):
        with pytest.raises(UnknownPayer):
            again()


CHECKS: dict[str, Callable[[Kind], None]] = {
    name.removeprefix("check_"): check
    for name, check in list(globals().items())
    if name.startswith("check_")
}
