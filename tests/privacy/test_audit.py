"""An empirical privacy audit of the kernel, and of kernels broken on purpose to show that it sees."""

import math
from fractions import Fraction
from functools import cached_property

import numpy as np
import pytest

from sharewell import LinearQuery
from sharewell.lab.noise import SeededNoise
from sharewell.privacy.audit import observed_loss
from sharewell.privacy.budget import Budget
from sharewell.privacy.curator import Curator
from sharewell.privacy.noise import ExactNoise, laplace_scale
from sharewell.privacy.sparse_vector import SparseVector, SparseVectorPlan
from sharewell.query import workload
from tests.privacy.tables import LINE, table

pytestmark = pytest.mark.statistical

RUNS = 20_000
HISTOGRAM = workload.identity(LINE)
NEIGHBOURS = (table(5, 0, 7, 1), table(5, 0, 8, 1))


class Halved(ExactNoise):
    """Noise of half the scale that was paid for."""

    def laplace(self, scale, size):
        return super().laplace(scale / 2, size)

    def gaussian(self, scale, size):
        return super().gaussian(scale / 2, size)


def measured(data, budget: Budget, cost: str, noise) -> list[int]:
    """The third count, many times. One block of equal rows would cost more, so each is drawn alone."""
    kernel = Curator(data, budget, {"ann": budget.total}, noise=noise)
    scale = float(kernel.scales(HISTOGRAM, cost)[2])
    draw = noise.laplace if budget.currency == "pure" else noise.gaussian
    kernel.measure(HISTOGRAM, cost, "ann")
    return (data.counts[2] + draw(scale, RUNS)).tolist()


@pytest.mark.parametrize("epsilon", ["1/2", "1", "2"])
def test_a_measurement_loses_no_more_than_it_costs(epsilon):
    left, right = (measured(d, Budget.pure(epsilon), epsilon, ExactNoise()) for d in NEIGHBOURS)
    assert float(Fraction(epsilon)) * 0.7 < observed_loss(left, right) <= float(Fraction(epsilon))


def test_the_audit_catches_a_kernel_with_halved_noise():
    left, right = (measured(d, Budget.pure("1"), "1", Halved()) for d in NEIGHBOURS)
    assert observed_loss(left, right) > 1.5


def test_whole_measurements_through_the_curator_lose_no_more_than_they_cost():
    def runs(data, noise):
        kernel = Curator(data, Budget.pure(3000), {"ann": 3000}, noise=noise)
        return [int(kernel.measure(HISTOGRAM, "1", "ann").values[2]) for _ in range(3000)]

    assert observed_loss(*(runs(d, ExactNoise()) for d in NEIGHBOURS)) <= 1
    assert observed_loss(*(runs(d, Halved()) for d in NEIGHBOURS)) > 1.2


def test_under_zcdp_a_measurement_keeps_its_delta():
    """A tail may hold delta more than e^epsilon times what it holds on the other side."""
    budget = Budget.zcdp("1", "1/100")

    def excess(noise) -> float:
        left, right = (np.array(measured(d, budget, str(budget.total), noise)) for d in NEIGHBOURS)
        cuts = np.arange(right.min(), right.max() + 1)
        p = np.array([(right >= cut).mean() for cut in cuts])
        q = np.array([(left >= cut).mean() for cut in cuts])
        return float((p - math.e * q - 5 * np.sqrt(p / RUNS)).max())

    assert excess(ExactNoise()) <= 0.01
    assert excess(Halved()) > 0.01


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
        test = SparseVector(plan, lambda _: count, noise, lambda *_: None)
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
