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
from sharewell.errors import DomainTooLarge, PrivacyError, QueryTooComplex
from sharewell.mechanisms import seed
from sharewell.mechanisms.strategy import Rows, Strategy
from sharewell.privacy.driver import run
from sharewell.privacy.kronecker import Centred, ComposedRows, KroneckerProduct, KroneckerRows
from sharewell.privacy.ledger import Charged, MemoryLedger
from sharewell.privacy.measurement import MeasureRequest
from sharewell.privacy.sensitivity import checked
from sharewell.query import Block, LinearQuery, ParallelBlock, diagram, workload
from sharewell.query.block import GroupedBlock
from tests.privacy.tables import LINE, curator, table
from tests.query.test_measure import all_rows, changes, measured_domains

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


@dataclass(frozen=True, eq=False)
class Composed:
    """Products with fractions of a cost, as a seed hands them over."""

    domain: Domain
    products: tuple
    name: str = "composed"

    def __len__(self):
        return len(ComposedRows(self.domain, self.products, ""))

    def to_json(self):
        return {}


HALF = Fraction(1, 2)
#: Every row falls in a cell, so under replace-one the total is public.
CLOSED = Domain([Integer("a", 0, 2, other="other"), Integer("b", 0, 2, other="other")])
AGREEABLE = AgreeableDomain(LINE.attributes)
HIERARCHY = seed.h2(LINE)
#: Two entries for one cell: its weight is 2, and the square of that is not the sum of their squares.
TWICE = sp.csr_array((np.array([1, 1]), np.array([0, 0]), np.array([0, 2])), shape=(1, 4))


def entry_at(column: int) -> sp.csr_array:
    """One entry, in a column that the matrix need not have: a product would read other memory."""
    matrix = sp.csr_array((np.array([1]), np.array([0]), np.array([0, 1])), shape=(1, 4))
    matrix.indices[0] = column
    return matrix


LIES = {
    "rows that overlap": OVERLAPPING,
    "two equal rows": ParallelBlock(LINE, [LinearQuery.all(LINE)] * 2),
    "fractions above the whole": Composed(LINE, (({0: None}, HALF), ({}, HALF + HALF))),
    "a fraction below zero": Composed(LINE, (({0: None}, 2 * HALF), ({}, -HALF))),
    "a fraction that is none": Composed(LINE, (({0: None}, 0.5),)),
    "a product of another domain": Composed(LINE, (({1: None}, HALF),)),
    "weights that are no whole numbers": Composed(LINE, (({0: sp.csr_array(np.ones((1, 4)))}, HALF),)),
    "a strategy of another domain": ModestStrategy(LINE, ((Rows(5),), (Rows(4, TWICE),)), "wide"),
    "a cell before the first": Composed(LINE, (({0: entry_at(-1)}, HALF),)),
    "a cell after the last": ModestStrategy(LINE, ((Rows(4, entry_at(4)),),), "beside"),
    "no weights": Opaque(),
}


PREFIXES = Block(LINE, workload.prefixes(LINE))
UNDERSTATEMENTS = {
    "a block that states too little": (ModestBlock(LINE, PREFIXES), PREFIXES),
    "a block with too small units": (CarelessBlock(LINE, PREFIXES), PREFIXES),
    "a strategy that states too little": (ModestStrategy(LINE, HIERARCHY.parts, "h2"), HIERARCHY),
    "a cell that is listed twice": (
        ModestStrategy(LINE, ((Rows(4, TWICE),),), "twice"),
        Block(LINE, [LinearQuery.cell(LINE, 0) * 2]),
    ),
}


@pytest.mark.parametrize("budget", [Budget.pure("1"), Budget.zcdp("30", "1e-6")], ids=["pure", "zcdp"])
@pytest.mark.parametrize(("stated", "honest"), UNDERSTATEMENTS.values(), ids=UNDERSTATEMENTS)
def test_what_a_block_states_about_itself_does_not_count(stated, honest, budget):
    kernel = curator(budget=budget)
    needed = kernel.scales(honest, "1/10").tolist()
    assert needed[0] > 0
    assert kernel.scales(stated, "1/10").tolist() == needed
    assert kernel.reserve(MeasureRequest(stated, Fraction(1, 10), "ann")).scales.tolist() == needed


@pytest.mark.parametrize("budget", [Budget.pure("1"), Budget.zcdp("30", "1e-6")], ids=["pure", "zcdp"])
@pytest.mark.parametrize("block", LIES.values(), ids=LIES)
def test_a_mechanism_that_lies_is_refused_before_anything_is_charged(block, budget):
    ledger = MemoryLedger()
    kernel = curator(ledger=ledger, budget=budget)

    def lying_mechanism():
        yield MeasureRequest(block, Fraction(1, 10), "ann")

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
    charged = curator().reserve(MeasureRequest(lying, Fraction(1, 10), "ann")).charged
    assert charged.purpose["measure"] == honest.to_json()


def test_a_block_that_changes_after_it_was_reserved_changes_neither_the_values_nor_the_ledger():
    query = LinearQuery.cell(LINE, 2)
    block = Block(LINE, [query])
    kernel, stored = curator(5, 0, 7, 1), block.to_json()
    reserved = kernel.reserve(MeasureRequest(block, Fraction(1, 10), "ann"))
    query.root = LinearQuery.all(LINE).root
    object.__setattr__(block, "queries", (LinearQuery.all(LINE) * 1000,))
    [measured] = kernel.charge([reserved])
    assert measured.values.tolist() == [7]
    assert reserved.charged.purpose["measure"] == stored


@pytest.mark.parametrize(
    "strategy", [seed.h2, seed.identity, seed.total, seed.prefix, seed.marginals, seed.tables]
)
def test_a_strategy_is_stored_as_it_writes_itself(strategy):
    given = strategy(CLOSED)
    stored = checked(given, CLOSED).to_json()
    assert json.dumps(stored) == json.dumps(given.to_json())


@pytest.mark.parametrize(
    "scales",
    [
        [["0x1.0p+0", 1]],
        [],
        [["nan", 1]],
        [["0x1.0p+9", 10**15]],
        [["0x1.0p+9", 0]],
        [["0x1.0p+9", 2], ["0x1.0p+9", -1]],
    ],
    ids=["too small", "missing", "no number", "too many rows", "no row", "a negative row"],
)
def test_a_charge_with_less_noise_than_its_rows_need_is_not_completed(scales):
    """As left behind by a crash, in a ledger that was written or changed by something else."""
    ledger = MemoryLedger()
    reserved = curator(ledger=ledger).reserve(
        MeasureRequest(workload.total(LINE), Fraction(1, 10), "ann")
    )
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
    rows = checked(strategy, strategy.domain)
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


@st.composite
def compositions(draw) -> ComposedRows:
    """Products of some levels, with random fractions."""
    domain = Domain([Integer(f"c{at}", 1, draw(st.integers(1, 4))) for at in range(3)])
    products = []
    for _ in range(draw(st.integers(1, 3))):
        factors = {}
        for level in draw(st.lists(st.integers(0, 2), unique=True)):
            size, count = domain.shape[level], draw(st.integers(1, 3))
            weights = draw(st.lists(st.integers(-2, 2), min_size=count * size, max_size=count * size))
            dense = sp.csr_array(np.array(weights).reshape(count, size))
            centred = Centred(size) if size > 1 else None
            factors[level] = draw(st.sampled_from([None, dense if any(weights) else None, centred]))
        products.append((factors, Fraction(1, draw(st.integers(3, 9)))))
    return ComposedRows(domain, products, "drawn")


def dense_product(domain: Domain, factors) -> np.ndarray:
    matrix = np.ones((1, 1), dtype=np.int64)
    for level, size in enumerate(domain.shape):
        factor = factors.get(level, sp.csr_array(np.ones((1, size), dtype=np.int64)))
        rows = np.eye(size, dtype=np.int64)
        if isinstance(factor, Centred):
            rows = size * rows - 1
        elif factor is not None:
            rows = factor.toarray()
        matrix = np.kron(matrix, rows)
    return matrix


@given(compositions(), st.sampled_from(["add-remove", "replace-one"]), st.sampled_from([1, 2]))
def test_every_part_of_a_composition_has_the_noise_that_its_fraction_buys(rows, neighbours, power):
    domain = rows.domain
    budget = Budget.pure("1") if power == 1 else Budget.zcdp("30", "1e-6")
    counts = np.arange(domain.size)
    kernel = curator(data=DataVector(domain, counts), budget=budget, neighbours=neighbours)
    again = ComposedRows.from_json(domain, json.loads(json.dumps(rows.to_json())))
    seed_like = Composed(domain, rows.products)
    for each in (rows, again, seed_like):
        reserved = kernel.reserve(MeasureRequest(each, Fraction(1, 50), "ann"))
        assert reserved.charged.purpose["measure"] == {**rows.to_json(), "name": each.name}
    matrices = [dense_product(domain, factors) for factors, _ in rows.products]
    [measured] = kernel.charge([reserved])
    assert measured.values.tolist() == np.concatenate([each @ counts for each in matrices]).tolist()
    loss = Fraction(0)
    for (_, fraction), matrix in zip(rows.products, matrices, strict=True):
        scales, reserved_scales = reserved.scales[: len(matrix)], reserved.scales[len(matrix) :]
        object.__setattr__(reserved, "scales", reserved_scales)
        assert len(set(scales.tolist())) == 1
        others = [np.zeros(len(matrix)), *matrix.T] if neighbours == "replace-one" else [0]
        apart = max((np.abs(u - v) ** power).sum() for u in matrix.T for v in others)
        # What the noise of this part lets through is at most its fraction of the cost.
        scale = Fraction(float(scales[0]))
        if apart:
            lost = Fraction(int(apart)) / scale if power == 1 else Fraction(int(apart)) / (2 * scale**2)
            assert lost <= fraction * Fraction(1, 50)
            loss += lost
            if neighbours == "add-remove":
                assert lost >= fraction * Fraction(1, 50) * Fraction(999, 1000)
    assert loss <= Fraction(1, 50)


@given(
    measured_domains(),
    st.sampled_from(["add-remove", "replace-one"]),
    st.sampled_from([1, 2]),
    st.data(),
)
def test_a_product_over_measures_covers_what_one_row_of_the_table_changes(
    domain, neighbours, power, data
):
    last = len(domain.attributes)
    count = data.draw(st.integers(1, 2))
    entries = st.lists(
        st.integers(-1, 2), min_size=count * domain.vectors, max_size=count * domain.vectors
    )
    of_vectors = sp.csr_array(np.array(data.draw(entries.filter(any))).reshape(count, domain.vectors))
    factors = {0: None, last: data.draw(st.sampled_from([None, of_vectors]))}
    factors = data.draw(st.sampled_from([factors, {last: factors[last]}, {0: None}]))
    part = KroneckerProduct(domain, factors)
    matrix = dense_product(domain, factors)
    found = changes(matrix, domain, neighbours)
    exact = max((np.abs(change) ** power).sum() for change in found)
    claim = part.l1_sensitivity if power == 1 else part.l2_sensitivity_squared
    assert claim(neighbours) >= exact
    if neighbours == "add-remove":
        assert claim(neighbours) == exact
    total = np.sum(all_rows(domain), axis=0)
    assert part.answers(DataVector(domain, total)).tolist() == (matrix @ total).tolist()


def test_marginals_of_a_table_too_wide_for_a_dense_vector_are_measured():
    domain = Domain([Integer(f"c{at}", 0, 99) for at in range(20)])
    rng = np.random.default_rng(3)
    codes = rng.integers(0, 100, (20, 500))
    data = DataVector.of_cells(domain, list(codes), np.ones(500, dtype=np.int64), 600)
    pairs = [({a: None, b: None}, Fraction(1, 40)) for a, b in ((0, 1), (4, 19), (7, 3))]
    kernel = curator(data=data)
    measured = kernel.measure(ComposedRows(domain, [*pairs, ({}, HALF)], "pairs"), "1/10", "ann")
    expected = [
        np.histogram2d(codes[a], codes[b], bins=range(101))[0] for a, b in ((0, 1), (4, 19), (3, 7))
    ]
    assert measured.values.tolist() == [*np.ravel(expected).astype(int).tolist(), 500]
    assert len(set(measured.variances[:-1].tolist())) == 1
    assert measured.variances[-1] < measured.variances[0] / 100
    with pytest.raises(DomainTooLarge):
        kernel.measure(ComposedRows(domain, [(dict.fromkeys(range(5)), HALF)], "five"), "1/10", "ann")


def test_ten_thousand_groups_are_checked_in_one_pass(monkeypatch):
    domain = Domain([Integer("a", 1, 100), Integer("b", 1, 100)])
    groups = {0: range(100), 1: range(100)}
    block = ParallelBlock.group_by(LinearQuery.all(domain), groups)
    monkeypatch.setattr(diagram, "MAX_STEPS", 2 * len(block))
    assert len(checked(block, domain)) == 10_000
    shifted = ParallelBlock(domain, [*block.queries[:-1], block.queries[0] + block.queries[-1]])
    with pytest.raises(PrivacyError, match="overlap"):
        checked(shifted, domain)


class OverlappingGroups(GroupedBlock):
    """A grouped block that shows rows which overlap, and states no sensitivity."""

    queries = (LinearQuery.all(LINE),) * 2

    def units(self, neighbours):
        return np.zeros(2, dtype=np.int64)

    def to_json(self):
        return workload.total(LINE).to_json()


def test_a_grouped_block_is_rebuilt_from_its_groups_alone():
    ages = LinearQuery.product(LINE, {"age": [1, 2, 3, 4]})
    lying, honest = OverlappingGroups(ages, {0: [0, 0, 1, 1]}), GroupedBlock(ages, {0: [0, 0, 1, 1]})
    rows = checked(lying, LINE)
    assert type(rows) is GroupedBlock
    assert rows.units("add-remove").tolist() == [2, 4]
    assert rows.to_json() == honest.to_json()
    kernel = curator(5, 0, 7, 1)
    reserved = kernel.reserve(MeasureRequest(honest, Fraction(1, 10), "ann"))
    [measured] = kernel.charge([reserved])
    assert measured.values.tolist() == [5, 25]
    assert reserved.scales.tolist() == pytest.approx([20, 40])


def test_a_grouped_block_that_is_changed_after_the_check_is_measured_as_checked():
    groups = np.array([0, 0, 1, 1])
    block = GroupedBlock(LinearQuery.all(LINE), {0: groups})
    kernel = curator(5, 0, 7, 1)
    reserved = kernel.reserve(MeasureRequest(block, Fraction(1, 10), "ann"))
    groups[:] = 0
    object.__setattr__(block, "base", LinearQuery.all(LINE) * 1000)
    object.__setattr__(block, "groups", {0: groups})
    [measured] = kernel.charge([reserved])
    assert measured.values.tolist() == [5, 8]


def test_rows_that_are_interleaved_in_too_many_ways_are_refused(monkeypatch):
    monkeypatch.setattr(diagram, "MAX_STEPS", 20)
    domain = Domain([Integer("a", 1, 9), Integer("b", 1, 9)])
    rows = [LinearQuery.of(domain, a=range(i), b=[i]) for i in range(1, 9)]
    with pytest.raises(QueryTooComplex):
        checked(ParallelBlock(domain, rows), domain)


@pytest.mark.parametrize("size", [2, 3, 7])
def test_centred_rows_are_those_of_the_written_out_matrix(size):
    domain = Domain([Integer("a", 0, size - 1), Integer("b", 0, 2)])
    dense = sp.csr_array(size * np.eye(size, dtype=np.int64) - 1)
    data = DataVector(domain, np.arange(domain.size) ** 2)
    for others in ({}, {1: None}, {1: Centred(3)}):
        centred = KroneckerProduct(domain, {0: Centred(size), **others})
        written = KroneckerProduct(domain, {0: dense, **others})
        assert len(centred) == len(written)
        assert centred.answers(data).tolist() == written.answers(data).tolist()
        for neighbours in ("add-remove", "replace-one"):
            assert centred.l1_sensitivity(neighbours) == written.l1_sensitivity(neighbours)
            squared = centred.l2_sensitivity_squared(neighbours)
            assert squared == written.l2_sensitivity_squared(neighbours)
    with pytest.raises(PrivacyError, match="several cells"):
        Centred(1)
    with pytest.raises(PrivacyError, match="different domains"):
        KroneckerProduct(domain, {0: Centred(size + 1)})


def test_a_seed_is_refused_where_its_plans_are_not_those_of_its_payers():
    domain = Domain([Integer("a", 0, 3)])
    half, plans = Fraction(1, 2), {"ann": (Fraction(1), Fraction(0)), "ben": (Fraction(0), Fraction(1))}
    kernel = curator(data=DataVector(domain, np.arange(4)), shares={"ann": "1/2", "ben": "1/2"})

    def measured(fractions, bill):
        products = list(zip(({}, {0: None}), fractions, strict=True))
        rows = ComposedRows(domain, products, "planned", plans)
        assert ComposedRows.from_json(domain, json.loads(json.dumps(rows.to_json()))).plans == rows.plans
        return kernel.measure(rows, sum(bill.values()), bill)

    bill = {"ann": Fraction(1, 10), "ben": Fraction(1, 10)}
    assert len(measured([half, half], bill).values) == 5
    with pytest.raises(PrivacyError, match="fractions of a seed"):
        measured([Fraction(1, 3), Fraction(2, 3)], bill)
    with pytest.raises(PrivacyError, match="not those of its payers"):
        measured([half, half], {"ann": Fraction(1, 10)})
    with pytest.raises(PrivacyError, match="fraction for each product"):
        ComposedRows(domain, [({}, half)], "planned", {"ann": (half, half)})
