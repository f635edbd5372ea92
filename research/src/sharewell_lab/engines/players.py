"""Players: one run of a mechanism by its name, equal to the real mechanism draw for draw."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from sharewell.errors import ConfigError
from sharewell.mechanisms.pmw import MAX_STEP, TEST_PART, Tuning, tuned
from sharewell.mechanisms.reconstruction import TINY
from sharewell.privacy.noise import Noise, laplace_scale, laplace_variance
from sharewell.privacy.sparse_vector import SparseVectorPlan
from sharewell_lab.engines.world import NO_PAYER, PlaySettings, Run, World, exact
from sharewell_lab.noise import SeededNoise
from sharewell_lab.streams import Questions


def play_uniform(world: World, noise: Noise) -> Run:
    """The public number of people, divided evenly among the cells. Draws no noise."""
    size = world.distinct.size[world.served]
    guess = world.setting.population * (size / world.questions.cells)
    return Run.of(world, guess, np.full(len(guess), np.nan), np.full(len(guess), NO_PAYER))


def play_laplace(world: World, noise: Noise) -> Run:
    """As `mechanism.laplace.Laplace`: each step costs `query_budget`, first come first served.

    Draws, all of one scale: one for each step that the pot pays for.
    """
    cost = exact(world.setting.query_budget)
    steps = len(world.order)
    paid = min(steps, math.floor(world.pot / cost))
    scale = laplace_scale(1, cost)
    value, expected = np.full(steps, np.nan), np.full(steps, np.inf)
    payer = np.full(steps, NO_PAYER)
    value[:paid] = world.truth[world.served[:paid]] + noise.laplace(scale, paid)
    expected[:paid] = math.sqrt(laplace_variance(scale))
    payer[:paid] = world.asker[:paid]
    return Run.of(world, value, expected, payer)


def pmw_tuning(setting: PlaySettings, epsilon: float) -> Tuning:
    """PMW's update cap and threshold, for the error threshold alpha and the epsilon of a world.

    Without alpha they are the product's defaults, whose constants are for an alpha of 1 % of the
    population. With it there are 0.27 sqrt(population epsilon) updates, as there, but at most 8
    sqrt(population / alpha) and not 60; and the threshold is twice the noise of a test, as there, but
    not below alpha / 2 instead of half a percent. In the wide study, where alpha is 0.1 %, this lifts
    the useful answers at epsilon = 10 from 0.6 to above 0.9.
    """
    population, alpha, updates = setting.population, setting.error_threshold, setting.updates
    if alpha is None:
        default = tuned(population, epsilon, updates)
    else:
        if updates is None:
            most = max(4, round(8 * math.sqrt(population / alpha)))
            updates = max(4, min(most, round(0.27 * math.sqrt(population * epsilon))))
        # Of one person half a percent is nothing, so that this threshold is that of the noise.
        noise = tuned(1, epsilon, updates).threshold
        default = Tuning(updates, max(1, round(max(noise, alpha / 2))))
    return default if setting.threshold is None else replace(default, threshold=setting.threshold)


def play_pmw(world: World, noise: Noise) -> Run:
    """As `mechanism.pmw.PrivateMultiplicativeWeights` with a public population and `update="replay"`.

    The update cap and the threshold are those of `pmw_tuning`.

    Draws: first the threshold's; then, of two further scales, one for each test and one for each
    measurement. More of both are drawn than are used. The real mechanism draws tests and measurements
    as they come, but draws of one scale are alike, so drawing each kind together changes nothing.

    Sums over cells run in another order here, so a guess that is exactly half a person off a whole
    number may be rounded the other way before it is tested.
    """
    from sharewell_lab.engines.compiled import serve_pmw

    setting, distinct, runs = world.setting, world.distinct, world.distinct.runs
    tuning = pmw_tuning(setting, float(world.pot))
    plan = SparseVectorPlan(world.pot * TEST_PART, tuning.threshold, tuning.updates)
    scale = laplace_scale(1, world.pot * (1 - TEST_PART) / tuning.updates)
    value, measured = serve_pmw(
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
        np.where(measured, world.asker, NO_PAYER),
    )


def play_scr(world: World, noise: Noise) -> tuple[Run, Run]:
    """As `mechanism.cache_reconstruct.CacheReconstruct` with `seed.identity`.

    Returns the run with `answers="estimate"` and the one with `answers="as-printed"`.

    Draws: first the seed's, one for each cell, together; then one for each row that is bought, in the
    order of buying. More of the latter are drawn than are used.
    """
    from sharewell_lab.engines.compiled import serve_scr

    setting, distinct = world.setting, world.distinct
    donated, cost = exact(setting.seed_fraction), exact(setting.query_budget)
    affordable = np.array([math.floor(share * (1 - donated) / cost) for share in setting.exact_shares])
    seed_scale, row_scale = laplace_scale(1, world.pot * donated), laplace_scale(1, cost)
    seed_noise = noise.laplace(seed_scale, len(world.counts))
    rows = min(len(np.unique(world.served)), int(affordable.sum()))
    row_noise = noise.laplace(row_scale, rows)
    value, variance, printed, printed_variance, payer = serve_scr(
        world.served,
        world.asker,
        affordable,
        distinct.size == 1,
        world.truth,
        distinct.answers(world.counts + seed_noise),
        distinct.overlaps,
        max(laplace_variance(seed_scale), TINY),
        laplace_variance(row_scale),
        TINY,
        row_noise.astype(np.float64),
    )
    return (
        Run.of(world, value, np.sqrt(variance), payer),
        Run.of(world, printed, np.sqrt(printed_variance), payer),
    )


#: A player takes a world and a source of noise, and returns the run.
MECHANISMS: MappingProxyType[str, Callable[[World, Noise], Run]] = MappingProxyType(
    {
        "uniform": play_uniform,
        "laplace": play_laplace,
        "pmw": play_pmw,
        "scr": lambda world, noise: play_scr(world, noise)[0],
        "scr-as-printed": lambda world, noise: play_scr(world, noise)[1],
    }
)


def play(
    mechanism: str,
    questions: Questions,
    order: NDArray[np.int64],
    counts: NDArray[np.int64],
    setting: PlaySettings,
    present: NDArray[np.bool_],
    seed: np.random.SeedSequence,
) -> Run:
    """One run of a mechanism: the questions at these places are served in this order.

    >>> stream = Questions.of([[1, 1, 0], [0, 0, 1]], [0, 1], analysts=2)
    >>> setting = PlaySettings(np.array([0.5, 0.5]), population=30, seed_fraction=0.5, query_budget=0.1)
    >>> present = np.array([True, True])
    >>> order = stream.places(present)
    >>> counts = np.array([4, 5, 20])
    >>> play("uniform", stream, order, counts, setting, present, np.random.SeedSequence(1)).error
    array([11., 10.])
    """
    if mechanism not in MECHANISMS:
        raise ConfigError(
            f"Unknown mechanism {mechanism!r}.", hint=f"Choose one of {', '.join(MECHANISMS)}."
        )
    world = World(questions, order, counts, setting, present)
    return MECHANISMS[mechanism](world, SeededNoise(seed))


def play_scr_both(
    questions: Questions,
    order: NDArray[np.int64],
    counts: NDArray[np.int64],
    setting: PlaySettings,
    present: NDArray[np.bool_],
    seed: np.random.SeedSequence,
) -> tuple[Run, Run]:
    """The runs of "scr" and "scr-as-printed" with the same noise, for the price of one.

    What is measured and paid is the same in both; they differ in what is returned.
    """
    return play_scr(World(questions, order, counts, setting, present), SeededNoise(seed))
