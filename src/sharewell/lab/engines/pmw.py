"""Private Multiplicative Weights, fast: one compiled pass over the stream."""

from __future__ import annotations

import math

import numpy as np

from sharewell.lab.engines.libraries import lab_libraries
from sharewell.lab.engines.run import NOBODY, Run
from sharewell.lab.engines.world import World
from sharewell.mechanism.pmw import TEST_PART, tuned
from sharewell.mechanism.synthetic import MAX_STEP
from sharewell.privacy.noise import Noise, laplace_scale, laplace_variance
from sharewell.privacy.sparse_vector import SparseVectorPlan


def play_pmw(world: World, noise: Noise) -> Run:
    """As `mechanism.pmw.PrivateMultiplicativeWeights` with a public population and `update="replay"`.

    Draws: first the threshold's; then, of two further scales, one for each test and one for each
    measurement. More of both are drawn than are used. The real mechanism draws tests and measurements
    as they come, but draws of one scale are alike, so drawing each kind together changes nothing.

    Sums over cells run in another order here, so a guess that is exactly half a person off a whole
    number may be rounded the other way before it is tested.
    """
    with lab_libraries():
        from sharewell.lab.engines.compiled.pmw import serve

    setting, distinct, runs = world.setting, world.distinct, world.distinct.runs
    tuning = tuned(setting.population, float(world.pot), setting.updates)
    threshold = tuning.threshold if setting.threshold is None else setting.threshold
    plan = SparseVectorPlan(world.pot * TEST_PART, threshold, tuning.updates)
    scale = laplace_scale(1, world.pot * (1 - TEST_PART) / tuning.updates)
    value, measured = serve(
        world.served,
        world.truth,
        runs.first,
        runs.start,
        runs.stop,
        distinct.width / world.questions.cells,
        setting.population,
        tuning.passes,
        MAX_STEP,
        float(plan.arm(noise)),
        noise.laplace(plan.query_scale, len(world.served)).astype(np.float64),
        noise.laplace(scale, tuning.updates).astype(np.float64),
    )
    return Run.of(
        world,
        value,
        np.where(measured, math.sqrt(laplace_variance(scale)), np.nan),
        np.where(measured, world.asker, NOBODY),
    )
