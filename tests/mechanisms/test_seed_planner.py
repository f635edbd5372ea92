"""Plans: against dense traces, against bounds that no strategy passes, and against each other."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import reduce
from itertools import combinations

import numpy as np
import pytest

from sharewell import Block, Domain, Integer, LinearQuery
from sharewell.mechanisms import seed_planner, workload_terms
from sharewell.mechanisms.marginal_seed import MarginalPart
from sharewell.mechanisms.seed_planner import SeedPlanner, plan_seed
from sharewell.mechanisms.workload_terms import squares_of, terms_of
from sharewell.privacy.kronecker import Centred, KroneckerProduct
from sharewell.query import workload
from sharewell.query.block import GroupedBlock
from sharewell.query.measure import Measure
from tests.mechanisms.measurements import line_of, random_query


def gram_of(part: MarginalPart, domain: Domain) -> np.ndarray:
    """A'A of a part's rows, written out over the cells."""
    matrices = dict(zip(part.attributes, part.matrices(domain.shape), strict=True))
    factors = []
    for level, size in enumerate(domain.shape):
        matrix = matrices.get(level)
        rows = np.eye(size) if level in matrices else np.ones((1, size))
        if isinstance(matrix, Centred):
            rows = size * np.eye(size) - 1
        elif matrix is not None:
            rows = matrix.toarray()
        factors.append(rows.T @ rows)
    return reduce(np.kron, factors)


def variance_of(plan, domain: Domain, matrix: np.ndarray, currency: str = "zcdp") -> float:
    """The total variance of queries that a donation of 1 buys, with continuous noise, by its trace."""
    information = np.zeros((domain.size, domain.size))
    for part in plan:
        pairs = zip(part.attributes, part.matrices(domain.shape), strict=True)
        rows, weight = KroneckerProduct(domain, dict(pairs)), float(part.weight)
        if currency == "zcdp":
            precision = 2 * weight / rows.l2_sensitivity_squared("add-remove")
        else:
            precision = (weight / rows.l1_sensitivity("add-remove")) ** 2 / 2
        information += precision * gram_of(part, domain)
    inverse = np.linalg.pinv(information, rcond=1e-12, hermitian=True)
    return float(np.trace(matrix @ inverse @ matrix.T))


def dense(questions) -> np.ndarray:
    """All queries, written out; the squares of a question's rows have weights that sum to 1."""
    blocks = [[asks] if isinstance(asks, LinearQuery) else list(asks) for asks in questions]
    return np.array(
        [
            query.to_vector() * float(query.scale) / math.sqrt(len(block))
            for block in blocks
            for query in block
        ]
    )


def table(domain: Domain, *levels: int) -> GroupedBlock:
    cells = {level: np.arange(domain.shape[level]) for level in levels}
    return GroupedBlock(LinearQuery.all(domain), cells)


@pytest.mark.parametrize(
    ("shape", "tables"),
    [
        ((5, 3, 4), [(0, 1), (2,)]),
        ((2, 6), [(0, 1), (0,), ()]),
        ((3, 2, 2, 3), [(0, 1, 2), (3,), (1, 3)]),
    ],
)
def test_a_plan_for_tables_reaches_the_bound_exactly(shape, tables):
    """The least total variance is (sum of sqrt(d_U g_U))^2 / n, at a donation of one half."""
    domain = line_of(*shape)
    questions = [table(domain, *levels) for levels in tables]
    plan = SeedPlanner(domain, "zcdp", "add-remove").of_terms(terms_of(questions))
    matrix = dense(questions)
    squares: dict[tuple[int, ...], float] = {}
    for count in range(len(shape) + 1):
        for chosen in combinations(range(len(shape)), count):
            centring = [
                np.eye(n) - 1 / n if at in chosen else np.full((n, n), 1 / n)
                for at, n in enumerate(shape)
            ]
            squares[chosen] = float(((matrix @ reduce(np.kron, centring)) ** 2).sum())
    sizes = {chosen: math.prod(shape[at] - 1 for at in chosen) for chosen in squares}
    bound = sum(math.sqrt(sizes[u] * max(g, 0.0)) for u, g in squares.items() if g > 1e-9) ** 2
    assert 2 * variance_of(plan, domain, matrix) == pytest.approx(bound / domain.size, rel=1e-5)
    # The bound of singular values, which holds for every strategy, is the same here.
    singular = np.linalg.svd(matrix, compute_uv=False).sum() ** 2 / domain.size
    assert bound / domain.size == pytest.approx(singular)


def test_what_a_workload_asks_is_what_its_written_out_queries_ask():
    rng = np.random.default_rng(1)
    domain = line_of(4, 3, 5)
    grouped = GroupedBlock(LinearQuery.of(domain, a0=[1, 2, 3]), {0: [0, 0, 1, 1], 2: [0, 1, 1, 0, 2]})
    questions: list[LinearQuery | Block] = [grouped, *(random_query(domain, rng) for _ in range(20))]
    squares = squares_of(terms_of(questions))
    matrix = dense(questions)
    matrix /= abs(matrix).max(axis=1, keepdims=True)  # In rows: over the largest weight.
    matrix[: len(grouped)] /= math.sqrt(len(grouped))
    for mask in range(8):
        centring = [
            np.eye(n) - 1 / n if mask >> at & 1 else np.full((n, n), 1 / n)
            for at, n in enumerate(domain.shape)
        ]
        square = ((matrix @ reduce(np.kron, centring)) ** 2).sum() / domain.size
        assert squares.get((0, mask), 0.0) == pytest.approx(square, abs=1e-9)


def test_a_question_counts_once_however_many_rows_it_has():
    """A table of 200 cells beside a count takes no more of the donation than one of 10 cells."""
    for size in (10, 200):
        domain = line_of(size, 2)
        small, large = LinearQuery.of(domain, a1=[0]), table(domain, 0)
        plan = SeedPlanner(domain, "zcdp", "add-remove").of_terms(terms_of([small, large]))
        variances = [variance_of(plan, domain, dense([each])) for each in (small, large)]
        assert variances[0] > variances[1] / 4
    listed = Block(domain, [LinearQuery.of(domain, a0=[at]) for at in range(size)])
    found, same = (squares_of(terms_of([asked, small])) for asked in (large, listed))
    assert found == pytest.approx(same)


def test_of_very_many_queries_some_of_every_question_count(monkeypatch):
    domain = line_of(64, 3)
    listed = Block(domain, [LinearQuery.of(domain, a0=[at]) for at in range(64)])
    single = [LinearQuery.of(domain, a1=[at]) for at in range(3)]
    questions: list[LinearQuery | Block] = [listed, *single]
    every = squares_of(terms_of(questions))
    monkeypatch.setattr(workload_terms, "MOST_QUERIES", 16)
    assert squares_of(terms_of(questions)) == pytest.approx(every)


def test_the_default_workload_is_that_of_its_tables():
    domain = line_of(4, 3, 2)
    every = [(), (0,), (1,), (2,), (0, 1), (0, 2), (1, 2)]
    found = squares_of(terms_of([table(domain, *levels) for levels in every]))
    assert found == pytest.approx(workload_terms.default_squares(domain, 3))
    assert found == pytest.approx(squares_of(workload_terms.default_terms(domain)))


def test_of_the_default_tables_by_two_attributes_the_smallest_are_parts_of_their_own():
    domain = line_of(4, 3, 2, 9, 4)
    every, some = (workload_terms.default_squares(domain, most) for most in (10, 4))
    left_out = {0b01001, 0b01010, 0b01100, 0b11000, 0b10001, 0b10010}
    assert {mask for _, mask in every} - {mask for _, mask in some} == left_out
    assert some == {key: every[key] for key in some}


def test_the_default_workload_has_tables_of_sums_too():
    wage = Measure("wage", "wage", -10, 100, 5)
    domain = Domain([Integer("a", 0, 2), Integer("b", 0, 3)], (wage,))
    row = LinearQuery.of_vectors(domain, {2: np.array([0, 0, 1])})
    tables = [
        GroupedBlock(row, {at: range(n) for at, n in enumerate(domain.shape) if at in by})
        for by in ({0}, {1})
    ]
    expected = squares_of(terms_of([row, *tables]))
    found = workload_terms.default_squares(domain, 10)
    assert {key: square for key, square in found.items() if key[0] == 2} == pytest.approx(expected)


@pytest.mark.parametrize("queries", [workload.prefixes, workload.h2])
def test_on_86_cells_a_plan_is_within_5_percent_of_the_bound(queries):
    domain = line_of(86)
    block = queries(domain)
    plan = SeedPlanner(domain, "zcdp", "add-remove").of_terms(terms_of([block]))
    matrix = dense([block])
    bound = np.linalg.svd(matrix, compute_uv=False).sum() ** 2 / 86 / 2
    assert variance_of(plan, domain, matrix) < 1.05**2 * bound


def test_ranges_beside_other_attributes_are_within_10_percent_of_the_bound():
    domain = Domain([Integer("age", 0, 29), Integer("sex", 0, 1), Integer("race", 0, 3)])
    ages = workload.prefixes(domain, "age")
    men = LinearQuery.of(domain, sex=[0])
    questions = [ages, Block(domain, [q & men for q in ages]), table(domain, 1, 2)]
    plan = SeedPlanner(domain, "zcdp", "add-remove").of_terms(terms_of(questions))
    matrix = dense(questions)
    bound = np.linalg.svd(matrix, compute_uv=False).sum() ** 2 / domain.size / 2
    assert variance_of(plan, domain, matrix) < 1.1**2 * bound
    # Rows that treat all ages alike are far from it.
    alike = SeedPlanner(domain, "zcdp", "add-remove")
    alike._dense = False
    assert variance_of(alike.of_terms(terms_of(questions)), domain, matrix) > 1.4**2 * bound


def test_two_ordered_attributes_have_a_union_of_products():
    domain = line_of(12, 10)
    ranges = [
        LinearQuery.of(domain, a0=range(a + 1), a1=range(b + 1)) for a in range(12) for b in range(10)
    ]
    questions = [Block(domain, ranges), table(domain, 0), table(domain, 1)]
    plan = SeedPlanner(domain, "zcdp", "add-remove").of_terms(terms_of(questions))
    matrix = dense(questions)
    bound = np.linalg.svd(matrix, compute_uv=False).sum() ** 2 / domain.size / 2
    assert variance_of(plan, domain, matrix) < 1.1**2 * bound
    assert any(len(part.rows) == 2 for part in plan)


def test_with_laplace_noise_a_plan_beats_the_usual_strategies():
    domain = line_of(8, 3, 4)
    questions = [table(domain, 0, 1), table(domain, 2)]
    plan = SeedPlanner(domain, "pure", "add-remove").of_terms(terms_of(questions))
    matrix = dense(questions)
    found = variance_of(plan, domain, matrix, "pure")
    half = Fraction(1, 2)
    for parts in (
        [MarginalPart((0, 1, 2), 0, Fraction(1))],
        [MarginalPart((0, 1), 0, half), MarginalPart((2,), 0, half)],
    ):
        assert found < variance_of(parts, domain, matrix, "pure")


def test_with_laplace_noise_ranges_get_p_identity_rows():
    domain = line_of(40)
    questions = [workload.prefixes(domain)]
    plan = SeedPlanner(domain, "pure", "add-remove").of_terms(terms_of(questions))
    assert len(plan) == 1
    assert plan[0].rows
    identity = [MarginalPart((0,), 0, Fraction(1))]
    found, cells = (variance_of(each, domain, dense(questions), "pure") for each in (plan, identity))
    assert found < 0.7 * cells


@pytest.mark.parametrize("currency", ["zcdp", "pure"])
def test_weights_sum_to_one_and_what_is_determined_is_closed_under_subsets(currency):
    domain = Domain([Integer(f"a{at}", 0, at) for at in range(5)], [Measure("wage", "wage", 0, 10, 1)])
    contrast = LinearQuery.of(domain, a1=[0]) - LinearQuery.of(domain, a1=[1])
    for questions in ([], [table(domain, 1, 2, 3)], [contrast.where(LinearQuery.of(domain, a2=[1]))]):
        plan = plan_seed(domain, questions, currency, "replace-one")
        assert sum(part.weight for part in plan) == 1
        assert min(part.weight for part in plan) > 0
        masks = {(part.vector, part.mask) for part in plan if part.centred}
        for vector, mask in masks:
            for level in range(5):
                smaller = mask & ~(1 << level)
                assert smaller == 0 or (vector, smaller) in masks


def test_the_floor_bounds_the_loss_on_questions_that_were_not_expected():
    domain = line_of(6, 5, 4)
    expected, other = [table(domain, 0)], [table(domain, 1, 2)]
    own = plan_seed(domain, expected, "zcdp", "add-remove")
    default = plan_seed(domain, [], "zcdp", "add-remove")
    for questions, most in ((expected, 1.0), (other, float(1 / seed_planner.FLOOR))):
        matrix = dense(questions)
        loss = variance_of(own, domain, matrix) / variance_of(default, domain, matrix)
        assert loss < most * (1 + 1e-6)


def test_the_floor_makes_expected_questions_at_most_a_thirtieth_less_precise():
    """A table by one and a table by two of four columns: what docs/guarantees/planned-seeds.md says."""
    domain = line_of(6, 5, 4, 3)
    planner = SeedPlanner(domain, "zcdp", "add-remove")
    default = plan_seed(domain, [], "zcdp", "add-remove")
    for levels in ((0, 1), (2, 3)):
        questions = [table(domain, 0), table(domain, *levels)]
        best, matrix = planner.of_terms(terms_of(questions)), dense(questions)
        alone = variance_of(best, domain, matrix)
        for floor, most in ((seed_planner.FLOOR, 0.033), (Fraction(3, 10), 0.113)):
            plan = seed_planner.mixed([(best, 1 - floor), (default, floor)])
            loss = math.sqrt(variance_of(plan, domain, matrix) / alone) - 1
            assert 0.6 * most < loss < most
    assert plan_seed(domain, questions, "zcdp", "add-remove") == seed_planner.mixed(
        [(best, 1 - seed_planner.FLOOR), (default, seed_planner.FLOOR)]
    )


def test_a_workload_without_anything_to_count_has_the_default_plan():
    domain = line_of(3, 2)
    default = plan_seed(domain, [], "zcdp", "add-remove")
    assert plan_seed(domain, [LinearQuery.zero(domain)], "zcdp", "add-remove") == default


def test_a_plan_for_a_wide_table_has_few_enough_rows():
    domain = line_of(*[30] * 40)
    plan = plan_seed(domain, [table(domain, 0, 1), table(domain, 2, 3, 4)], "zcdp", "add-remove")
    rows = sum(math.prod(domain.shape[at] for at in part.attributes) for part in plan)
    assert rows <= 2 * seed_planner.MOST_ROWS
    assert MarginalPart((2, 3, 4), 0, Fraction(1), True).key in {part.key for part in plan}


def test_sums_in_steps_too_fine_for_centred_rows_have_plain_tables():
    wage = Measure("wage", "wage", 0, 10**6, Fraction(1, 100))
    domain = Domain([Integer("age", 0, 89)], [wage])
    parts = {
        (each.vector, each.attributes): each for each in plan_seed(domain, [], "zcdp", "add-remove")
    }
    assert parts[0, (0,)].centred
    assert parts[1, (0,)].centred
    assert not parts[2, (0,)].centred


def test_sums_weigh_as_much_as_counts_in_units_of_their_largest_value():
    """A measure in cents must not take the whole donation from the counts."""
    attributes = [Integer("a", 0, 3), Integer("b", 0, 2)]
    wage = Measure("wage", "wage", 0, 1000, Fraction(1, 100))
    counts = []
    for domain in (Domain(attributes), Domain(attributes, [wage])):
        plan = plan_seed(domain, [], "zcdp", "add-remove")
        counts.append(sum(part.weight for part in plan if not part.vector))
    assert counts[0] == 1
    assert counts[1] > 0.3
