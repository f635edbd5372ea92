"""Seeded Cache and Reconstruct, fast: with an identity seed, only the questions' overlaps matter."""

from __future__ import annotations

import math

import numpy as np

from sharewell.lab.engines.libraries import lab_libraries
from sharewell.lab.engines.run import Run
from sharewell.lab.engines.setting import exact
from sharewell.lab.engines.world import World
from sharewell.mechanism.reconstruction import TINY
from sharewell.privacy.noise import Noise, laplace_scale, laplace_variance


def play_scr(world: World, noise: Noise) -> tuple[Run, Run]:
    """As `mechanism.cache_reconstruct.CacheReconstruct` with `seed.identity`.

    Returns the run with `answers="estimate"` and the one with `answers="as-printed"`.

    Draws: first the seed's, one for each cell, together; then one for each row that is bought, in the
    order of buying. More of the latter are drawn than are used.
    """
    with lab_libraries():
        from sharewell.lab.engines.compiled.scr import serve

    setting, distinct = world.setting, world.distinct
    donated, cost = exact(setting.seed_fraction), exact(setting.query_budget)
    affordable = np.array([math.floor(share * (1 - donated) / cost) for share in setting.exact_shares])
    seed_scale, row_scale = laplace_scale(1, world.pot * donated), laplace_scale(1, cost)
    seed_noise = noise.laplace(seed_scale, len(world.counts))
    rows = min(len(np.unique(world.served)), int(affordable.sum()))
    row_noise = noise.laplace(row_scale, rows)
    value, variance, printed, printed_variance, payer = serve(
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
