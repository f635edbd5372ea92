"""Made-up results: a model with known verdicts in place of mechanisms, in the columns of real ones.

`Model` says for each contestant how likely an answer is useful with everybody, alone and without
another, and how many steps a question takes. A test changes one number and knows which claim it breaks.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
from numpy.typing import NDArray

Columns = dict[str, NDArray[Any]]

PAIR = ("Uniform", "Ind", "Laplace", "PMW", "SCR printed", "SCR")
TEN = ("Uniform", "Ind", "PMW", "RR", "RS", "RS skip", "SCR printed", "SCR")
CONTESTANTS = {"fig1": PAIR, "fig1-h2": PAIR, "fig3": TEN, "wide": TEN}
ANALYSTS = {"fig1": 2, "fig1-h2": 2, "fig3": 10, "wide": 10}
PROBABILITIES = {
    **dict.fromkeys(("fig1", "fig1-h2"), (0.5, 0.6, 0.7, 0.8, 0.9, 1.0)),
    **dict.fromkeys(("fig3", "wide"), (0.01, 0.1, 0.9)),
}
#: Those that know their standard errors.
EXPECT = ("Laplace", "SCR printed", "SCR")
ASKED = 40


@dataclass(frozen=True)
class Part:
    """How a contestant does: parts of the questions that are useful, and steps a question."""

    joint: float
    alone: float
    without: float
    steps: float = 1.0
    #: The part of the trials in which one analyst has nothing when everybody is there.
    nothing: float = 0.0


#: A world in which all claims of the paper hold.
AS_THE_PAPER_SAYS = {
    "Uniform": Part(0.4, 0.4, 0.4),
    "Ind": Part(0.5, 0.5, 0.5),
    "Laplace": Part(0.3, 0.7, 0.3),
    "PMW": Part(0.88, 0.95, 0.95, nothing=0.3),
    "RR": Part(0.9, 0.6, 1.0, steps=1.3),
    "RS": Part(0.9, 0.6, 0.95, steps=1.1),
    "RS skip": Part(0.9, 0.6, 0.95, steps=1.2),
    "SCR printed": Part(0.7, 0.4, 0.6),
    "SCR": Part(0.75, 0.4, 0.6),
}


@dataclass(frozen=True)
class Model:
    """A made-up world; `changed` gives one in which some contestants do otherwise."""

    parts: dict[str, Part] = field(default_factory=lambda: dict(AS_THE_PAPER_SAYS))
    trials: int = 40
    studies: tuple[str, ...] = ("fig1", "fig1-h2", "fig3", "wide")
    epsilons: tuple[float, ...] = (1.0,)
    #: How much accuracy differs from trial to trial, in questions of an analyst.
    spread: int = 2
    #: How many times longer a round takes at the smallest p.
    rare: float = 1.5
    #: How many more questions of 40 the first of two analysts gains on the second from p = 0.5 to 1.
    gap: float = 6.0

    def changed(self, **parts: dict[str, float]) -> Model:
        """The same with other numbers for the contestants named; `SCR_printed` is "SCR printed"."""
        new = {who.replace("_", " "): numbers for who, numbers in parts.items()}
        return replace(
            self,
            parts={who: replace(part, **new.get(who, {})) for who, part in self.parts.items()},
        )

    def columns(self) -> Columns:
        """Tidy results."""
        tables = [
            self._table(study, epsilon, p, who)
            for study in self.studies
            for epsilon in self.epsilons
            for p in PROBABILITIES[study]
            for who in CONTESTANTS[study]
        ]
        return {name: np.concatenate([table[name] for table in tables]) for name in tables[0]}

    def write(self, path: Path) -> Path:
        """The same as a Parquet file."""
        return write(self.columns(), path)

    def _table(self, study: str, epsilon: float, p: float, who: str) -> Columns:
        part, analysts = self.parts[who], ANALYSTS[study]
        count = self.trials * analysts
        trial = np.repeat(np.arange(self.trials), analysts)
        analyst = np.tile(np.arange(analysts), self.trials)
        # The same shift for all three cases and contestants, so that ratios are those of the model.
        shift = (trial + analyst) % (self.spread + 1)
        useful, alone, without = (
            np.rint(ASKED * level).astype(int) - shift
            for level in (part.joint, part.alone, part.without)
        )
        if analysts == 2 and who in ("PMW", "Laplace"):
            useful = useful - np.where(analyst == 1, round(self.gap * (p - 0.5) * 2), 0)
        useful = np.where((analyst == 0) & (trial < part.nothing * self.trials), 0, useful)
        known = np.where(who in EXPECT, 1.0, np.nan)
        slow = self.rare if who == "RR" and p == min(PROBABILITIES[study]) else 1.0
        return {
            "study": np.full(count, study),
            "epsilon": np.full(count, epsilon),
            "p": np.full(count, p),
            "trial": trial,
            "contestant": np.full(count, who),
            "analyst": analyst,
            "asked": np.full(count, ASKED),
            "useful": useful,
            "alone": alone,
            "without": without,
            "expected_useful": useful * known,
            "expected_alone": alone * known,
            "expected_without": without * known,
            "steps": np.rint(ASKED * analysts * part.steps * slow).astype(int) + trial % 3,
            "stalls": np.zeros(count, dtype=int),
        }


def write(columns: Columns, path: Path) -> Path:
    """Columns as a Parquet file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with duckdb.connect() as connection:
        names = ", ".join(f'unnest(${name}) AS "{name}"' for name in columns)
        values = {name: column.tolist() for name, column in columns.items()}
        connection.execute(f"CREATE TABLE results AS SELECT {names}", values)
        connection.execute(f"COPY results TO '{path}' (FORMAT parquet)")
    return path
