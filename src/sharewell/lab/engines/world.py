"""One world: a stream, the order in which it is served, the data, and who is there."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sharewell.errors import ConfigError
from sharewell.lab.engines.distinct import Distinct, distinct
from sharewell.lab.engines.setting import Setting
from sharewell.lab.questions import Questions


@dataclass(frozen=True, eq=False)
class World:
    """All that a run depends on but its noise.

    `order` lists the places of the questions in the order of being served, each once at the most, and
    only of analysts who are present. Those who are absent hold no share here.
    """

    questions: Questions
    order: NDArray[np.int64]
    counts: NDArray[np.int64]
    setting: Setting
    present: NDArray[np.bool_]

    def __post_init__(self) -> None:
        questions, order = self.questions, self.order
        if self.counts.shape != (questions.cells,):
            raise ConfigError(
                f"There are {self.counts.size} counts for {questions.cells} cells.",
                hint="Give the data that the questions are about.",
            )
        if self.present.shape != (questions.analysts,) or len(self.setting.shares) != questions.analysts:
            raise ConfigError(
                f"The stream has {questions.analysts} analysts, who need one share each.",
                hint="Give `shares` and `present` one entry an analyst.",
            )
        if not self.present.any():
            raise ConfigError("Nobody is present, so there is no budget.")
        if len(order) and not 0 <= order.min() <= order.max() < len(questions):
            raise ConfigError("`order` names a question that the stream does not have.")
        if np.bincount(order, minlength=1).max() > 1:
            raise ConfigError("`order` names a question twice.")
        if not self.present[questions.analyst[order]].all():
            raise ConfigError(
                "`order` names a question of somebody who is absent.",
                hint="Serve only questions of those present, as `Questions.places` lists them.",
            )

    @cached_property
    def distinct(self) -> Distinct:
        """The different questions of the stream."""
        return distinct(self.questions)

    @cached_property
    def served(self) -> NDArray[np.int64]:
        """Which of the different questions is served, step by step."""
        return self.distinct.which[self.order]

    @cached_property
    def asker(self) -> NDArray[np.int64]:
        """Who asks it, step by step."""
        return self.questions.analyst[self.order]

    @cached_property
    def truth(self) -> NDArray[np.float64]:
        """The true answer of every different question."""
        return self.distinct.answers(self.counts)

    @cached_property
    def pot(self) -> Fraction:
        """What those present hold together."""
        return self.setting.pot(self.present)
