"""Play one run of any mechanism by its name."""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from sharewell.errors import ConfigError
from sharewell.lab.engines.laplace import play_laplace
from sharewell.lab.engines.pmw import play_pmw
from sharewell.lab.engines.run import Run
from sharewell.lab.engines.scr import play_scr
from sharewell.lab.engines.setting import Setting
from sharewell.lab.engines.uniform import play_uniform
from sharewell.lab.engines.world import World
from sharewell.lab.noise import SeededNoise
from sharewell.lab.questions import Questions
from sharewell.privacy.noise import Noise

#: A player takes a world and a source of noise, and says what came of the run.
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
    setting: Setting,
    present: NDArray[np.bool_],
    seed: np.random.SeedSequence,
) -> Run:
    """One run of a mechanism: the questions at these places are served in this order.

    >>> stream = Questions.of([[1, 1, 0], [0, 0, 1]], [0, 1], analysts=2)
    >>> setting = Setting(np.array([0.5, 0.5]), population=30, seed_fraction=0.5, query_budget=0.1)
    >>> everybody = np.array([True, True])
    >>> order = stream.places(everybody)
    >>> counts = np.array([4, 5, 20])
    >>> play("uniform", stream, order, counts, setting, everybody, np.random.SeedSequence(1)).error
    array([11., 10.])
    """
    if mechanism not in MECHANISMS:
        raise ConfigError(
            f"There is no mechanism {mechanism!r} to play.", hint=f"There are {', '.join(MECHANISMS)}."
        )
    world = World(questions, order, counts, setting, present)
    return MECHANISMS[mechanism](world, SeededNoise(seed))


def play_scr_both(
    questions: Questions,
    order: NDArray[np.int64],
    counts: NDArray[np.int64],
    setting: Setting,
    present: NDArray[np.bool_],
    seed: np.random.SeedSequence,
) -> tuple[Run, Run]:
    """The runs of "scr" and "scr-as-printed" with the same noise, for the price of one.

    What is measured and paid is the same in both; they differ in what is returned.
    """
    return play_scr(World(questions, order, counts, setting, present), SeededNoise(seed))
