"""The kernel computes what one row can change, whatever a mechanism states."""

import json
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from sharewell import Budget, Domain, Integer
from sharewell.engine.data_vector import DataVector
from sharewell.errors import PrivacyError, QueryTooComplex
from sharewell.mechanisms import seed
from sharewell.mechanisms.strategy import Rows, Strategy
from sharewell.privacy.driver import run
from sharewell.privacy.ledger import Charged, MemoryLedger
from sharewell.privacy.measurement import Measure
from sharewell.privacy.sensitivity import KroneckerRows, checked
from sharewell.query import Block, LinearQuery, ParallelBlock, diagram, workload
from tests.privacy.tables import LINE, curator, table

OVERLAPPING = ParallelBlock(LINE, workload.prefixes(LINE))


class ModestBlock(Block):
    """A block that states less than one row can change."""

    def l1_sensitivity(self, neighbours):
        return 1

    def l2_sensitivity_squared(self, neighbours):
        return 1


class ModestStrategy(Strategy):
    """A strategy that states less than one row can change."""

    def l1_sensitivity(self, neighbours):
        return 1

    def l2_sensitivity_squared(self, neighbours):
        return 1


class CarelessBlock(Block):
    """A block whose rows get a smaller unit than they have."""

    def units(self, neighbours):
        return np.zeros(len(self), dtype=np.int64)


class RestlessBlock(Block):
    """A block that answers something else than its rows say."""

    def answers(self, array):
        return super().answers(array) * 1000


@dataclass(frozen=True, eq=False)
class Opaque:
    """Something that shows no weights at all."""

    domain: Domain = LINE

    def __len__(self):
        return 1

    def units(self, neighbours):
        return np.ones(1, dtype=np.int64)

    def answers(self, array):
        return array[:1]

    def l1_sensitivity(self, neighbours):
        return 1

    l2_sensitivity_squared = l1_sensitivity

    def to_json(self):
        return {}


class AgreeableDomain(Domain):
    """A domain that equals every other, and says that no row can fall outside it."""

    may_drop = False

    def __eq__(self, other):
        return True

    __hash__ = Domain.__hash__


class ForgetfulBlock(Block):
    """A block that is stored as other rows than it has."""

    def to_json(self):
        return Block(LINE, [LinearQuery.all(LINE) * 1000]).to_json()


class ForgetfulStrategy(Strategy):
    """A strategy that is stored as other rows than it has."""

    def to_json(self):
        return seed.total(LINE).to_json()


#: Every row falls in a cell, so under replace-one the total is public.
CLOSED = Domain([Integer("a", 0, 2, other="other"), Integer("b", 0, 2, other="other")])
AGREEABLE = AgreeableDomain(LINE.attributes)
HIERARCHY = seed.h2(LINE)
#: Two entries for one cell: its weight is 2, and the square of that is not the sum of their squares.
TWICE = sp.csr_array((np.array([1, 1]), np.array([0, 0]), np.array([0, 2])), shape=(1, 4))

LIES = {
    "rows that overlap": OVERLAPPING,
    "two equal rows": ParallelBlock(LINE, [LinearQuery.all(LINE)] * 2),
    "a block that states too little": ModestBlock(LINE, workload.prefixes(LINE)),
    "a block with too small units": CarelessBlock(LINE, workload.prefixes(LINE)),
    "a strategy that states too little": ModestStrategy(LINE, HIERARCHY.parts, "modest"),
    "a cell that is listed twice": ModestStrategy(LINE, ((Rows(4, TWICE),),), "twice"),
    "a strategy of another domain": ModestStrategy(LINE, ((Rows(5),), (Rows(4, TWICE),)), "wide"),
    "no weights": Opaque(),
}


@pytest.mark.parametrize("budget", [Budget.pure("1"), Budget.zcdp("30", "1e-6")], ids=["pure", "zcdp"])
@pytest.mark.parametrize("block", LIES.values(), ids=LIES)
def test_a_mechanism_that_lies_is_refused_before_anything_is_charged(block, budget):
    ledger = MemoryLedger()
    kernel = curator(ledger=ledger, budget=budget)

    def lying_mechanism():
        yield Measure(block, Fraction(1, 10), "ann")

    with pytest.raises(PrivacyError):
        run(lying_mechanism(), kernel)
    assert kernel.spent("ann") == 0
    assert not any(isinstance(event, Charged) for event in ledger.events())


CORNER = LinearQuery(CLOSED, Fraction(1), diagram.ones(2, 2))
UNEVEN = diagram.make(
    4, np.array([0, 2]), np.ones(2, dtype=int), np.arange(2), [(1, diagram.ones(s)) for s in (2, 4)]
)
SPOOFS = {
    "a block over a domain that no row can leave": (
        LINE,
        Block(AGREEABLE, [LinearQuery.all(AGREEABLE)]),
    ),
    "a query over such a domain": (LINE, Block(LINE, [LinearQuery.all(AGREEABLE)])),
    "a strategy over such a domain": (LINE, Strategy(AGREEABLE, HIERARCHY.parts, "agreeable")),
    "a total of some of the cells": (CLOSED, Block(CLOSED, [CORNER])),
    "a total of an attribute more": (
        CLOSED,
        Block(CLOSED, [LinearQuery(CLOSED, Fraction(1), diagram.ones(4, 4, 4))]),
    ),
    "a total of rows of cells of unequal length": (
        CLOSED,
        Block(CLOSED, [LinearQuery(CLOSED, Fraction(1), UNEVEN[1])]),
    ),
}


@pytest.mark.parametrize(("domain", "block"), SPOOFS.values(), ids=SPOOFS)
def test_rows_are_measured_over_the_domain_of_the_data_alone(domain, block):
    data = table(*range(domain.size), domain=domain)
    kernel = curator(data=data, neighbours="replace-one")
    with pytest.raises(PrivacyError, match="different domains"):
        kernel.measure(block, "1/10", "ann")
    assert kernel.spent("ann") == 0


@pytest.mark.parametrize(
    ("lying", "honest"),
    [
        (ForgetfulBlock(LINE, workload.prefixes(LINE)), workload.prefixes(LINE)),
        (ForgetfulStrategy(LINE, HIERARCHY.parts, "h2"), HIERARCHY),
    ],
    ids=["block", "strategy"],
)
def test_the_ledger_stores_the_rows_that_are_measured(lying, honest):
    charged = curator().reserve(Measure(lying, Fraction(1, 10), "ann")).charged
    assert charged.purpose["measure"] == honest.to_json()


def test_a_block_that_changes_after_it_was_reserved_changes_neither_the_values_nor_the_ledger():
    query = LinearQuery.cell(LINE, 2)
    block = Block(LINE, [query])
    kernel, stored = curator(5, 0, 7, 1), block.to_json()
    reserved = kernel.reserve(Measure(block, Fraction(1, 10), "ann"))
    query.root = LinearQuery.all(LINE).root
    object.__setattr__(block, "queries", (LinearQuery.all(LINE) * 1000,))
    [measured] = kernel.charge([reserved])
    assert measured.values.tolist() == [7]
    assert reserved.charged.purpose["measure"] == stored


@pytest.mark.parametrize("strategy", [seed.h2, seed.identity, seed.total, seed.prefix, seed.marginals])
def test_a_strategy_is_stored_as_it_writes_itself(strategy):
    given = strategy(CLOSED)
    stored = checked(given, CLOSED, "add-remove", 1).to_json()
    assert json.dumps(stored) == json.dumps(given.to_json())


@pytest.mark.parametrize(
    "scales", [["0x1.0p+0"], [], ["nan"]], ids=["too small", "missing", "no number"]
)
def test_a_charge_with_less_noise_than_its_rows_need_is_not_completed(scales):
    """As left behind by a crash, in a ledger that was written or changed by something else."""
    ledger = MemoryLedger()
    reserved = curator(ledger=ledger).reserve(Measure(workload.total(LINE), Fraction(1, 10), "ann"))
    honest = reserved.charged
    ledger.append_many([Charged(honest.bill, {**honest.purpose, "scales": scales})])
    events = len(list(ledger.events()))
    with pytest.raises(PrivacyError, match="not consistent"):
        curator(ledger=ledger).complete(Block.from_json)
    assert len(list(ledger.events())) == events


def test_answers_are_computed_from_the_rows_and_not_by_the_block():
    measured = curator(5, 0, 7, 1).measure(RestlessBlock(LINE, workload.prefixes(LINE)), "1/10", "ann")
    assert measured.values.tolist() == [5, 5, 12, 13]


@st.composite
def strategies(draw) -> Strategy:
    domain = Domain([Integer("a", 1, draw(st.integers(1, 4))), Integer("b", 1, draw(st.integers(1, 3)))])

    def rows(size: int) -> Rows:
        if draw(st.booleans()):
            return Rows(size)
        count = draw(st.integers(1, 3))
        number = count * size
        weights = draw(st.lists(st.integers(-3, 3), min_size=number, max_size=number).filter(any))
        return Rows(size, sp.csr_array(np.array(weights).reshape(count, size)))

    parts = tuple(tuple(map(rows, domain.shape)) for _ in range(draw(st.integers(1, 2))))
    return Strategy(domain, parts, "drawn")


@given(strategies(), st.sampled_from(["add-remove", "replace-one"]), st.sampled_from([1, 2]), st.data())
def test_a_strategys_sensitivity_and_answers_are_those_of_the_dense_matrix(
    strategy, neighbours, power, data
):
    rows = checked(strategy, strategy.domain, neighbours, power)
    assert isinstance(rows, KroneckerRows)
    size = strategy.domain.size
    dense = np.array(
        [rows.answers(DataVector(strategy.domain, cell)) for cell in np.eye(size, dtype=np.int64)]
    )  # a row per cell
    assert len(rows) == dense.shape[1]
    counts = np.array(data.draw(st.lists(st.integers(0, 9), min_size=size, max_size=size)))
    assert np.array_equal(rows.answers(DataVector(strategy.domain, counts)), counts @ dense)
    assert np.array_equal(rows.answers(DataVector(strategy.domain, counts)), strategy.answers(counts))
    others = (
        [np.zeros(dense.shape[1])] if neighbours == "add-remove" else [np.zeros(dense.shape[1]), *dense]
    )
    exact = max((np.abs(u - v) ** power).sum() for u in dense for v in others)
    claim = rows.l1_sensitivity(neighbours) if power == 1 else rows.l2_sensitivity_squared(neighbours)
    assert claim >= exact
    if neighbours == "add-remove" and len(strategy.parts) == 1:
        assert claim == exact


def test_ten_thousand_groups_are_checked_in_one_pass(monkeypatch):
    domain = Domain([Integer("a", 1, 100), Integer("b", 1, 100)])
    groups = {0: range(100), 1: range(100)}
    block = ParallelBlock.group_by(LinearQuery.all(domain), groups)
    monkeypatch.setattr(diagram, "MAX_STEPS", 2 * len(block))
    assert len(checked(block, domain, "add-remove", 1)) == 10_000
    shifted = ParallelBlock(domain, [*block.queries[:-1], block.queries[0] + block.queries[-1]])
    with pytest.raises(PrivacyError, match="overlap"):
        checked(shifted, domain, "add-remove", 1)


def test_rows_that_are_interleaved_in_too_many_ways_are_refused(monkeypatch):
    monkeypatch.setattr(diagram, "MAX_STEPS", 20)
    domain = Domain([Integer("a", 1, 9), Integer("b", 1, 9)])
    rows = [LinearQuery.of(domain, a=range(i), b=[i]) for i in range(1, 9)]
    with pytest.raises(QueryTooComplex):
        checked(ParallelBlock(domain, rows), domain, "add-remove", 1)
