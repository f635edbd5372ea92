"""The uniform guess: what can be said of every question with no budget at all."""

from __future__ import annotations

import numpy as np

from sharewell.lab.engines.run import NOBODY, Run
from sharewell.lab.engines.world import World
from sharewell.privacy.noise import Noise


def play_uniform(world: World, noise: Noise) -> Run:
    """The public number of people, divided evenly among the cells. Draws no noise."""
    size = world.distinct.size[world.served]
    guess = world.setting.population * (size / world.questions.cells)
    return Run.of(world, guess, np.full(len(guess), np.nan), np.full(len(guess), NOBODY))
