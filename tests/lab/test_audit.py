"""An empirical privacy audit of the kernel, and of kernels broken on purpose to show that it sees."""

import math
from fractions import Fraction
from functools import cached_property

import numpy as np
import pytest

from sharewell import LinearQuery
from sharewell.privacy.budget import Budget, rho_for
from sharewell.privacy.curator import Curator
from sharewell.privacy.noise import ExactNoise, laplace_scale
from sharewell.privacy.sparse_vector import SparseVector, SparseVectorPlan
from sharewell.query import workload
from sharewell.query.block import Block, ParallelBlock
from sharewell_lab.audit import observed_loss
from sharewell_lab.noise import SeededNoise
from tests.privacy.tables import LINE, table

pytestmark = pytest.mark.statistical

RUNS = 20_000
#: For audits of noise without a seed: a private kernel fails one of them once in 10^8 runs.
STERN = 1 - 1e-8
HISTOGRAM = workload.identity(LINE)
NEIGHBOURS = (table(5, 0, 7, 1), table(5, 0, 8, 1))


class Halved(ExactNoise):
    """Noise of half the scale that was paid for."""

    def laplace(self, scale, size):
        return super().laplace(scale / 2, size)

    def gaussian(self, scale, size):
        return super().gaussian(scale / 2, size)


class Quartered(SeededNoise):
    """Noise of a quarter of the scale, with the lab's fast draws."""

    def gaussian(self, scale, size):
        return super().gaussian(scale / 4, size)


def measured(data, cost, noise, *, block=HISTOGRAM, row=2, runs=2500, currency="pure", **options):
    """One row of a block, measured afresh many times by one curator whose budget suffices for all."""
    total = Fraction(cost) * runs
    budget = Budget(currency, total, total)
    kernel = Curator(data, budget, {"ann": total}, noise=noise, **options)
    return [int(kernel.measure(block, cost, "ann").values[row]) for _ in range(runs)]


def sides(values):
    """On which side of the step between the neighbours' counts, 7 and 8, each value lies.

    The likelihood ratio of the noise is e^epsilon on one side and e^-epsilon on the other, so the side
    shows the whole loss. With two outcomes, how often the audit falls short is a sum over two binomials.
    """
    return ["up to 7" if value <= 7 else "above" for value in values]


# The audit sees less than `seen` with probability below 3e-9. Of the runs that it judges by, on one
# side lie Binomial(runs / 2, p) on one table and Binomial(runs / 2, 1 - p) on the other:
# p = 1/(1 + e^-epsilon).
@pytest.mark.parametrize(("epsilon", "runs", "seen"), [("1", 2000, 0.2), ("2", 1200, 0.8)])
def test_a_measurement_loses_no_more_than_it_costs(epsilon, runs, seen):
    left, right = (measured(data, epsilon, ExactNoise(), runs=runs) for data in NEIGHBOURS)
    assert observed_loss(left, right, confidence=STERN) <= float(Fraction(epsilon))
    loss = observed_loss(sides(left), sides(right), confidence=STERN)
    assert seen < loss <= float(Fraction(epsilon))


def test_the_audit_catches_a_kernel_with_halved_noise():
    """Except once in 3e8 runs, as above: half of the noise for epsilon 2 is that for epsilon 4."""
    left, right = (measured(data, "2", Halved(), runs=1600) for data in NEIGHBOURS)
    assert observed_loss(sides(left), sides(right), confidence=STERN) > 2


SIGNED = LinearQuery.product(LINE, {"age": [5, -5, 0, 0]})
REPLACED = (table(5, 4, 7, 1), table(4, 5, 7, 1))


@pytest.mark.parametrize("block", [Block(LINE, [SIGNED]), ParallelBlock(LINE, [SIGNED])])
def test_a_row_replaced_under_weights_of_both_signs_loses_no_more_than_it_costs(block):
    """The hardest case: the row leaves the largest weight and enters the smallest."""
    options = {"block": block, "row": 0, "neighbours": "replace-one", "runs": 2000}
    left, right = (measured(data, "1", SeededNoise(at), **options) for at, data in enumerate(REPLACED))
    assert observed_loss(left, right) <= 1


def tail_excess(tables, rho: str, noise, **options) -> float:
    """How far a tail passes e^epsilon times its share on the other side, at epsilon = 1."""
    runs = options.setdefault("runs", 600)
    left, right = (np.array(measured(t, rho, noise, currency="zcdp", **options)) for t in tables)
    both = np.concatenate([left, right])
    cuts = np.arange(both.min(), both.max() + 1)
    worst = 0.0
    for one, other in ((left, right), (right, left)):
        p = np.array([(one >= cut).mean() for cut in cuts])
        q = np.array([(other >= cut).mean() for cut in cuts])
        worst = max(worst, float((p - math.e * q - 5 * np.sqrt(p / runs)).max()))
    return worst


@pytest.mark.parametrize(
    ("tables", "options"),
    [
        (NEIGHBOURS, {}),
        (REPLACED, {"block": ParallelBlock(LINE, [SIGNED]), "row": 0, "neighbours": "replace-one"}),
        (REPLACED, {"block": Block(LINE, [SIGNED]), "row": 0, "neighbours": "replace-one"}),
    ],
)
def test_under_zcdp_a_measurement_keeps_its_delta_and_too_little_noise_does_not(tables, options):
    delta = Fraction(1, 100)
    rho = str(rho_for(Fraction(1), delta))
    assert tail_excess(tables, rho, SeededNoise(3), **options) <= delta
    assert tail_excess(tables, rho, Quartered(3), **options) > delta


class WithoutTheTwo(SparseVectorPlan):
    """A sparse vector whose tests have noise of scale c / e2: private for monotone queries only."""

    @cached_property
    def query_scale(self) -> float:
        return laplace_scale(self.positives * self.sensitivity, self.parts[1])


class HalvedThreshold(SparseVectorPlan):
    """A sparse vector that draws half the noise on its threshold."""

    @cached_property
    def threshold_scale(self) -> float:
        return laplace_scale(self.sensitivity, 2 * self.parts[0])


def transcripts(
    plan: SparseVectorPlan, count: int, seed: int, runs: int = RUNS
) -> list[tuple[bool, ...]]:
    """Five guesses a little too low, then one a little too high: a row moves them in opposite ways."""
    noise = SeededNoise(seed)
    query = LinearQuery.all(LINE)
    low, high = 100 - (plan.threshold - 1), 100 + plan.threshold
    told = []
    for _ in range(runs):
        armed = plan.arm(noise)
        test = SparseVector(plan, LINE, lambda _: count, noise, lambda *_: None, armed, plan.positives)
        answers = []
        for guess in [low] * 5 + [high]:
            answers.append(test.exceeds(query, guess))
            if answers[-1]:
                break
        told.append(tuple(answers))
    return told


def sparse_vector_loss(kind: type[SparseVectorPlan], epsilon: int) -> float:
    plan = kind(Fraction(epsilon), threshold=20, positives=1)
    return observed_loss(transcripts(plan, 100, 11), transcripts(plan, 101, 12))


@pytest.mark.parametrize("epsilon", [1, 3])
def test_a_sparse_vector_loses_no_more_than_its_epsilon(epsilon):
    assert sparse_vector_loss(SparseVectorPlan, epsilon) <= epsilon


@pytest.mark.parametrize("broken", [WithoutTheTwo, HalvedThreshold])
def test_the_audit_catches_a_broken_sparse_vector(broken):
    assert sparse_vector_loss(broken, 3) > 3


def test_the_audit_stays_below_the_truth_and_near_it():
    """Randomised response with a known epsilon."""
    rng = np.random.default_rng(1)
    for epsilon in (0.0, 0.5, 1.5):
        keep = math.exp(epsilon) / (1 + math.exp(epsilon))
        left = ["yes" if u < keep else "no" for u in rng.random(RUNS)]
        right = ["no" if u < keep else "yes" for u in rng.random(RUNS)]
        assert max(0, epsilon - 0.15) <= observed_loss(left, right) <= epsilon + 1e-9


def test_the_same_output_on_both_sides_shows_no_loss():
    assert observed_loss([1] * 100, [1] * 100) == 0
    assert observed_loss([], []) == 0
