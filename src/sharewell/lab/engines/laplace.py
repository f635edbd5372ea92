"""The simple baseline, fast: every question is measured on its own until the pot is empty."""

from __future__ import annotations

import math

import numpy as np

from sharewell.lab.engines.run import NOBODY, Run
from sharewell.lab.engines.setting import exact
from sharewell.lab.engines.world import World
from sharewell.privacy.noise import Noise, laplace_scale, laplace_variance


def play_laplace(world: World, noise: Noise) -> Run:
    """As `mechanism.laplace.Laplace`: each step costs `query_budget`, first come first served.

    Draws, all of one scale: one for each step that the pot pays for.
    """
    cost = exact(world.setting.query_budget)
    steps = len(world.order)
    paid = min(steps, math.floor(world.pot / cost))
    scale = laplace_scale(1, cost)
    value, expected = np.full(steps, np.nan), np.full(steps, np.inf)
    payer = np.full(steps, NOBODY)
    value[:paid] = world.truth[world.served[:paid]] + noise.laplace(scale, paid)
    expected[:paid] = math.sqrt(laplace_variance(scale))
    payer[:paid] = world.asker[:paid]
    return Run.of(world, value, expected, payer)
