"""Seeds of marginals in closed form, against dense matrices, pseudo-inverses and fractions."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from functools import reduce
from operator import and_

import numpy as np
import pytest
import scipy.sparse as sp

from sharewell import Binned, Domain, Integer, LinearQuery
from sharewell.errors import DomainError, QueryError
from sharewell.mechanisms.cell_prior import MeasuredPart
from sharewell.mechanisms.marginal_prior import MarginalPrior
from sharewell.mechanisms.marginal_seed import MarginalPart, MarginalSeed, marginal_cell
from sharewell.mechanisms.measurements import Measurements
from sharewell.mechanisms.product_store import AxisTable, DenseWeights, RunWeights
from sharewell.mechanisms.products import Axis, products_of
from sharewell.mechanisms.seed import marginals_of
from sharewell.mechanisms.strategy import Rows
from sharewell.query.measure import Measure
from tests.mechanisms.measurements import line_of, random_query
from tests.mechanisms.oracle import dense

PRIME = 2**26 - 5


class WithVectors(Domain):
    """A domain with three data vectors, along a last axis."""

    def __init__(self, attributes):
        super().__init__(attributes, [Measure("wage", "wage", 0, 10, 1)])


def marginal_matrix(shape, mask: int, vectors: int = 1, vector: int = 0) -> np.ndarray:
    """All rows of a marginal, written out over the cells (and over the data vectors)."""
    matrix: np.ndarray = np.ones((1, 1))
    for level, size in enumerate(shape):
        matrix = np.kron(matrix, np.eye(size) if mask >> level & 1 else np.ones((1, size)))
    return matrix if vectors == 1 else np.kron(matrix, np.eye(vectors)[vector])


def centred_matrix(shape, mask: int, vectors: int = 1, vector: int = 0) -> np.ndarray:
    """The rows n e_j - 1 along the attributes of a set, and sums along the others, written out."""
    matrix: np.ndarray = np.ones((1, 1))
    for level, size in enumerate(shape):
        along = size * np.eye(size) - 1 if mask >> level & 1 else np.ones((1, size))
        matrix = np.kron(matrix, along)
    return matrix if vectors == 1 else np.kron(matrix, np.eye(vectors)[vector])


class MeasuredWorld:
    """A random table, marginals of it with noise, and the same for a dense oracle."""

    def __init__(self, domain: Domain, rng: np.random.Generator, *, most: int = 3) -> None:
        shape = domain.shape[: len(domain.attributes)]
        vectors = domain.size // math.prod(shape)
        self.prior = MarginalPrior(domain)
        self.rows: list[np.ndarray] = []
        self.values: list[float] = []
        self.noise: list[float] = []
        self.table = rng.integers(0, 30, domain.size)
        for _ in range(rng.integers(0, most + 1)):
            mask, vector = int(rng.integers(2 ** len(shape))), int(rng.integers(vectors))
            if rng.random() < 0.5:
                self._measure(marginal_matrix(shape, mask, vectors, vector), mask, vector, rng)
                continue
            # A part alone, and so all parts within it: what is determined is closed under subsets.
            several = sum(1 << level for level, size in enumerate(shape) if size > 1)
            for part in range(2 ** len(shape)):
                if not part & ~(mask & several):
                    matrix = centred_matrix(shape, part, vectors, vector)
                    self._measure(matrix, part, vector, rng, centred=True)

    def _measure(self, matrix, mask: int, vector: int, rng, centred: bool = False) -> None:
        variance = float(10 ** rng.uniform(0, 2))
        noise = np.rint(rng.normal(0, variance**0.5, len(matrix)))
        values = (matrix @ self.table + noise).astype(float)
        self.prior = self.prior.with_marginal(mask, vector, values, variance, centred=centred)
        self.rows += list(matrix)
        self.values += values.tolist()
        self.noise += [variance] * len(matrix)

    def dense(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The estimate of every cell, its covariance, and the projector on what was measured."""
        cells = len(self.table)
        if not self.rows:
            return np.zeros(cells), np.zeros((cells, cells)), np.zeros((cells, cells))
        matrix, noise = np.array(self.rows), np.array(self.noise)
        covariance = np.linalg.pinv(matrix.T @ (matrix / noise[:, None]), rcond=1e-10)
        estimate = covariance @ (matrix.T @ (np.array(self.values) / noise))
        return estimate, covariance, np.linalg.pinv(matrix, rcond=1e-10) @ matrix


@pytest.mark.parametrize("kind", [Domain, WithVectors])
def test_the_rows_of_a_measured_seed_can_be_written_out(kind):
    """Marginals, centred rows and rows of their own, with the values and variances they were given."""
    rng = np.random.default_rng(5)
    for _ in range(20):
        domain = kind([Integer("a", 0, int(rng.integers(4))), Integer("b", 0, 2)])
        world = MeasuredWorld(domain, rng)
        measurements = Measurements(MarginalSeed.of(domain, [()]), marginals=world.prior)
        rows = sp.csr_array(rng.integers(1, 5, (2, 3)))
        part = MarginalPart((1,), domain.vectors - 1, Fraction(1), False, (Rows(3, rows),))
        own = MeasuredPart(part, 0.5, np.array([3.0, 4.0]))
        measurements.products[part.key] = own
        unit = np.eye(domain.vectors)[-1:]
        along = [np.ones((1, domain.shape[0])), rows.toarray(), *([unit] if domain.measures else [])]
        expected = np.array([*world.rows, *reduce(np.kron, along)])
        values, noise = np.array([*world.values, 6.0, 8.0]), np.array([*world.noise, 2.0, 2.0])
        batch = measurements.seed_rows()
        assert len(batch.rows) <= measurements.seed_count <= len(expected)
        found, variances = dense(batch.rows), batch.variances
        np.testing.assert_allclose(
            found.T @ (found / variances[:, None]), expected.T @ (expected / noise[:, None])
        )
        np.testing.assert_allclose(
            found.T @ (batch.values / variances), expected.T @ (values / noise), atol=1e-9
        )


@pytest.mark.parametrize("number", range(4))
def test_estimates_covariances_and_open_parts_are_those_of_the_pseudo_inverse(number):
    """In all numbers together 480 random seeds over random domains, with and without measures."""
    rng = np.random.default_rng(number)
    for _ in range(120):
        sizes = rng.integers(1, 5, rng.integers(1, 5 if number else 4)).tolist()
        attributes = [Integer(f"a{at}", 0, size - 1) for at, size in enumerate(sizes)]
        domain = (Domain if number else WithVectors)(attributes)
        world = MeasuredWorld(domain, rng)
        estimate, covariance, measured = world.dense()
        queries = [random_query(domain, rng) for _ in range(5)]
        matrix = dense(queries)
        rows = world.prior.rows([PRIME])
        for query in queries:
            rows.append(query)
        found = rows.covariances(queries)
        scale = max(1.0, float(np.abs(found).max()))
        assert found == pytest.approx(matrix @ covariance @ matrix.T, abs=1e-10 * scale)
        assert world.prior.variances(queries) == pytest.approx(np.diag(found))
        means = world.prior.means(queries)
        assert means == pytest.approx(matrix @ estimate, abs=1e-10 * max(1.0, np.abs(means).max()))
        cells = math.prod(sizes)
        left = matrix @ (np.eye(domain.size) - measured) @ matrix.T
        assert left * cells == pytest.approx(np.rint(left * cells), abs=1e-6)
        squares = world.prior.open_squares(queries, PRIME)
        assert squares.tolist() == rows.open_products(queries, 0).diagonal().tolist()
        for query, exact in zip(queries, np.rint(left * cells).astype(np.int64).tolist(), strict=True):
            residues = rows.open_products([query], 0)[0].tolist()
            assert [value * cells**2 % PRIME for value in residues] == [e % PRIME for e in exact]
            if world.prior.determines(query):
                assert not any(exact)


def open_square(query: LinearQuery, measured: list[int]) -> Fraction:
    """D(q, q) over the number of cells, in fractions, from its definition."""
    total = Fraction(0)
    for one in products_of(query):
        for other in products_of(query):
            levels = sorted(one.axes.keys() | other.axes.keys())
            terms: dict[int, Fraction] = {0: Fraction(1)}
            whole = Fraction(1)
            for level in levels:
                n = query.domain.shape[level]
                left, right = (
                    each.axes[level].dense().tolist() if level in each.axes else [1] * n
                    for each in (one, other)
                )
                mean = Fraction(sum(left), n) * Fraction(sum(right), n)
                both = Fraction(sum(a * b for a, b in zip(left, right, strict=True)), n)
                whole *= both
                terms = {
                    **{t: v * mean for t, v in terms.items()},
                    **{t | 1 << level: v * (both - mean) for t, v in terms.items()},
                }
            total += whole - sum(v for t, v in terms.items() if any(not t & ~s for s in measured))
    return total


def test_not_all_of_five_equalities_has_an_open_part_that_is_small_and_exact():
    """Over 10^30 cells, and with all marginals but the one over all five attributes measured."""
    domain = Domain([Integer(f"a{at}", 0, 49) for at in range(18)])
    assert domain.size > 10**30
    query = ~reduce(and_, (LinearQuery.of(domain, **{f"a{at}": [at]}) for at in range(5)))
    assert len(products_of(query)) == 5
    prior, five = MarginalPrior(domain), 0b11111
    sets = [five & ~(1 << at) for at in range(5)]
    for mask in sets:
        prior = prior.with_marginal(mask, 0, np.zeros(50**4), 1.0)
    rows = prior.rows([PRIME])
    rows.append(query)
    exact = open_square(query, sets)
    assert exact == Fraction(49**5, 50**10)
    residue = exact.numerator * pow(exact.denominator, -1, PRIME) % PRIME
    assert rows.open_products([query], 0).tolist() == [[residue]]
    whole = prior.with_marginal(five, 0, np.zeros(1), 1.0)  # Its values are never looked at.
    assert whole.rows([PRIME]).count == 0
    again = whole.rows([PRIME])
    again.append(query)
    assert again.open_products([query], 0).tolist() == [[0]]


def test_the_cost_of_a_query_does_not_depend_on_attributes_that_it_does_not_mention(monkeypatch):
    """Counted in inner products along attributes."""
    computed = []
    compute = DenseWeights.dots

    def counted(self, axis):
        computed.append(axis)
        return compute(self, axis)

    monkeypatch.setattr(DenseWeights, "dots", counted)
    counts = []
    for columns in (4, 60):
        domain = Domain([Integer(f"a{at}", 0, 9) for at in range(columns)])
        prior = MarginalPrior(domain).with_marginal(0b11, 0, np.zeros(100), 1.0)
        rows = prior.rows()
        for at in range(3):
            rows.append(LinearQuery.of(domain, a0=[at], a1=[at + 1]))
        computed.clear()
        rows.covariances([LinearQuery.of(domain, a0=[2], a1=[4], a3=[1])])
        counts.append(len(computed))
    assert counts == [2, 2]


@pytest.mark.parametrize("limit", [0, 1024])
def test_inner_products_of_the_heaviest_weights_are_exact(limit, monkeypatch):
    monkeypatch.setattr("sharewell.mechanisms.product_store.DENSE", limit)
    rng = np.random.default_rng(3)
    domain = line_of(700)
    table, vectors = AxisTable(700), []
    assert type(table._weights) is (DenseWeights if limit else RunWeights)
    for _ in range(20):
        vector = rng.integers(-(2**31), 2**31, 700)
        query = LinearQuery.from_vector(domain, vector).primitive
        vectors.append(query.to_vector())
        [product] = products_of(query)
        assert table.number(product.axes[0]) == len(vectors)
        assert np.array_equal(product.axes[0].dense(), vectors[-1])
    for vector in vectors:
        axis = products_of(LinearQuery.from_vector(domain, vector))[0].axes[0]
        found = table.dots(axis).tolist()
        assert found[0] == int(vector.sum())
        exact = [sum(a * b for a, b in zip(vector.tolist(), v.tolist(), strict=True)) for v in vectors]
        assert found[1:] == exact
    assert isinstance(axis, Axis)
    assert axis.cell is None


def test_a_row_of_a_seed_is_found_where_it_is_one():
    domain = Domain([Integer(f"a{at}", 0, size - 1) for at, size in enumerate((3, 4, 2))])
    seed = MarginalSeed.of(domain, [("a0", "a1"), ("a2",), ()], weights=[2, 1, 1])
    assert [part.weight for part in seed.parts] == [Fraction(1, 2), Fraction(1, 4), Fraction(1, 4)]
    assert len(seed) == 12 + 2 + 1
    assert seed.row_of(LinearQuery.of(domain, a0=[2], a1=[1])) == 9
    assert seed.row_of(LinearQuery.of(domain, a2=[1])) == 13
    assert seed.row_of(LinearQuery.all(domain)) == 14
    for other in (
        LinearQuery.of(domain, a0=[0]),
        LinearQuery.of(domain, a0=[0, 1], a1=[1]),
        LinearQuery.of(domain, a2=[1]) * 2,
        LinearQuery.of(domain, a0=[0], a1=[0], a2=[0]),
    ):
        assert seed.row_of(other) is None
    assert marginal_cell(LinearQuery.of(domain, a1=[3])) == (0b10, 0, 3)
    again = MarginalSeed.from_json(domain, json.loads(json.dumps(seed.to_json())))
    assert (again.parts, again.name) == (seed.parts, seed.name)
    assert [(list(factors), weight) for factors, weight in seed.products] == [
        ([0, 1], Fraction(1, 2)),
        ([2], Fraction(1, 4)),
        ([], Fraction(1, 4)),
    ]
    measured = MarginalSeed.of(WithVectors(domain.attributes), [("a0",), ()], vectors=[0, 2])
    assert [part.vector for part in measured.parts] == [0, 0, 2, 2]
    chosen = measured.products[2][0][3]
    assert isinstance(chosen, sp.csr_array)
    assert chosen.toarray().tolist() == [[0, 0, 1]]
    assert MarginalSeed.from_json(measured.domain, measured.to_json()).parts == measured.parts


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ([], "sum to 1"),
        ([((0,), 0, "1/2")], "sum to 1"),
        ([((0,), 0, "1/2"), ((0,), 0, "1/2")], "twice"),
        ([((1, 0), 0, "1")], "in order"),
        ([((7,), 0, "1")], "in order"),
        ([((0,), 1, "1")], "vector of the domain"),
        ([((0,), 0, "2"), ((1,), 0, "-1")], "positive weight"),
    ],
)
def test_a_seed_that_makes_no_sense_is_refused(parts, message):
    with pytest.raises(QueryError, match=message):
        MarginalSeed(line_of(2, 2), tuple(MarginalPart(s, k, Fraction(w)) for s, k, w in parts), "seed")


def test_a_column_that_is_attribute_and_measure_can_be_named_as_either():
    wage = Measure("wage", "wage", 0, 100, 1, nullable=True)
    domain = Domain([Integer("age", 0, 9), Binned("wage", [0, 10, 50, 100])], [wage])
    named = marginals_of(domain, [["age", "wage"], ["age", "SUM(wage)"], ["wage", "sum(wage)"]])
    parts = [(part.attributes, part.vector) for part in named.parts]
    assert parts == [((0, 1), 0), ((0,), 1), ((0,), 2), ((1,), 1), ((1,), 2)]
    alone = Domain([Integer("age", 0, 9)], [wage])
    assert (
        marginals_of(alone, [["age", "wage"]]).parts == marginals_of(alone, [["age", "SUM(wage)"]]).parts
    )
    with pytest.raises(DomainError, match="Unknown measure 'hours'"):
        marginals_of(domain, [["SUM(hours)"]])
    with pytest.raises(QueryError, match="cannot be by wage, wage"):
        marginals_of(domain, [["wage", "wage"]])
