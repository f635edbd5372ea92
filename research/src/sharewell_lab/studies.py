"""Studies: a table, who asks what of it, who competes, and the cases to compare; the paper's by name."""

from __future__ import annotations

import csv
import hashlib
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

import sharewell
from sharewell import datasets
from sharewell.engine.data_vector import DataVector
from sharewell.errors import ConfigError
from sharewell.query import workload
from sharewell.query.attribute import Integer
from sharewell.query.domain import Domain
from sharewell_lab.streams import Asker, RandomQueries, Workload, first_cells, paper_workloads
from sharewell_lab.trials import CONTESTANTS, Case, Columns, Contestant, play_trial

#: The part of the public population that an answer may be off by, as in the paper.
ALPHA = 0.01
#: The same for the wide study. Its table has eight times as many people, so that 1 % of them is more
#: than almost any noise, and all contestants would do equally well.
WIDE_ALPHA = 0.001
#: How many random questions each of the two analysts asks in the motivating experiment.
RANDOM = 200
#: The contestants of the studies with ten analysts.
TEN_ANALYSTS = ("Uniform", "Ind", "PMW", "RR", "RS", "RS skip", "SCR printed", "SCR")


@dataclass(frozen=True, eq=False)
class Study:
    """Everything that a trial depends on, but its number and the seed.

    One asker stands for all analysts, or there is one for each. `one_trial_in` says how much dearer a
    trial is than the others': so many fewer are played where a number of trials is asked for.
    """

    name: str
    data: DataVector
    askers: tuple[Asker, ...]
    contestants: tuple[Contestant, ...]
    cases: tuple[Case, ...]
    one_trial_in: int = 1

    def __post_init__(self) -> None:
        labels = [contestant.label for contestant in self.contestants]
        if len(set(labels)) < len(labels) or not labels:
            raise ConfigError(
                f"The study {self.name} needs contestants, each with a name of its own.",
                hint=f"It has {', '.join(labels) or 'none'}.",
            )
        for case in self.cases:
            for contestant in self.contestants:
                contestant.check(case.analysts)
            if len(self.askers) not in (1, case.analysts):
                raise ConfigError(
                    f"{len(self.askers)} askers for {case.analysts} analysts.",
                    hint="Give one for all analysts, or one for each.",
                )

    def trials(self, asked_for: int) -> int:
        """How many trials are played where so many are asked for."""
        return max(1, -(-asked_for // self.one_trial_in))

    def asker(self, case: Case) -> tuple[Asker, ...]:
        """What every analyst of a case asks."""
        return self.askers * case.analysts if len(self.askers) == 1 else self.askers

    def play(self, case: Case, trial: int, seed: int) -> Columns:
        """One trial's rows of tidy results."""
        own = np.random.SeedSequence(seed, spawn_key=(zlib.crc32(self.name.encode()), trial))
        rows = play_trial(
            self.data.domain, self.data.counts, self.asker(case), self.contestants, case, own
        )
        count = len(rows["analyst"])
        keys: Columns = {
            "study": np.full(count, self.name),
            "epsilon": np.full(count, case.epsilon),
            "p": np.full(count, float(case.arrival[0])),
            "trial": np.full(count, trial),
        }
        swept: Columns = {f"set_{name}": np.full(count, float(value)) for name, value in case.swept}
        return {**keys, **rows, **swept}

    def fingerprint(self) -> str:
        """A short text that differs where results would; cases and trials are not part of it."""
        digest = hashlib.blake2b(digest_size=16)
        digest.update(repr((sharewell.__version__, self.name, self.contestants)).encode())
        digest.update(self.data.domain.fingerprint.encode())
        digest.update(self.data.counts.tobytes())
        for asker in self.askers:
            digest.update(repr((asker.restrict, asker.twin)).encode())
            for choice in asker.choices:
                digest.update(choice.describe())
        return digest.hexdigest()


def fig1(data: DataVector, epsilons: Sequence[float]) -> Study:
    """The motivating experiment: two analysts ask the same of disjoint halves, one more often.

    They ask single cells and ranges, which are drawn anew in every trial.
    """
    half = data.domain.size // 2
    return Study(
        "fig1",
        data,
        tuple(
            Asker((RandomQueries(f"points and ranges of the {name} half", RANDOM, at, half),), twin=0)
            for name, at in (("lower", 0), ("upper", half))
        ),
        _those("Uniform", "Ind", "Laplace", "PMW", "SCR printed", "SCR"),
        _cases(data, epsilons, 2, (0.5, 0.6, 0.7, 0.8, 0.9, 1.0)),
    )


def fig1_h2(data: DataVector, epsilons: Sequence[float]) -> Study:
    """The motivating experiment with a hierarchy: both ask H2 of their half, in random order."""
    size = data.domain.size
    half = size // 2
    lower = first_cells(half, size, workload.h2)
    upper = np.roll(lower, half, axis=1)
    return Study(
        "fig1-h2",
        data,
        (
            Asker((Workload("h2 of the lower half", lower),)),
            Asker((Workload("h2 of the upper half", upper),)),
        ),
        _those("Uniform", "Ind", "Laplace", "PMW", "SCR printed", "SCR"),
        _cases(data, epsilons, 2, (0.5, 0.6, 0.7, 0.8, 0.9, 1.0)),
    )


def fig3(data: DataVector, epsilons: Sequence[float]) -> Study:
    """The main experiment: ten analysts with random workloads, the first asking seldom or often."""
    return Study(
        "fig3",
        data,
        (Asker(paper_workloads(data.domain), restrict=0.5),),
        _those(*TEN_ANALYSTS),
        _cases(data, epsilons, 10, (0.01, 0.1, 0.9)),
    )


def wide(epsilons: Sequence[float]) -> Study:
    """The main experiment on a second domain: age by sex by race by moved, 2,408 cells.

    The workloads are marginals of the sizes of the paper's, and the same ones along the age. A random
    predicate is an interval of ages, or one value of another attribute.
    """
    data = people_by("age", "sex", "race", "moved")
    domain = data.domain
    choices = (
        Workload.of("movers", workload.marginal(domain, ["moved"])[1:]),
        Workload.of("race", workload.marginal(domain, ["race"])),
        Workload.of("sex by race by moved", workload.marginal(domain, ["sex", "race", "moved"])),
        Workload.of("ages", workload.marginal(domain, ["age"])),
        Workload.of("prefixes of the age", workload.prefixes(domain, "age")),
        Workload.of("h2 of the age", workload.h2(domain, "age")),
    )
    return Study(
        "wide",
        data,
        (Asker(choices, restrict=0.5),),
        _those(*TEN_ANALYSTS),
        _cases(data, epsilons, 10, (0.01, 0.1, 0.9), WIDE_ALPHA),
        one_trial_in=30,
    )


#: The paper's studies, made for a table (where it matters) and budgets.
STUDIES: Mapping[str, Callable[[DataVector, Sequence[float]], Study]] = {
    "fig1": fig1,
    "fig1-h2": fig1_h2,
    "fig3": fig3,
    "wide": lambda _, epsilons: wide(epsilons),
}


def people_by(*names: str) -> DataVector:
    """The bundled table counted by some of its columns, in the table's order."""
    whole = datasets.massachusetts()
    kept = [whole.domain.index(name) for name in names]
    if sorted(set(kept)) != kept:
        raise ConfigError(
            "Columns are given once each, in the order of the table.",
            hint=f"It has {', '.join(whole.domain.names)}.",
        )
    counts = whole.vector().counts.reshape(whole.domain.shape)
    # Public already, so that taking its counts out of one vector and into another gives nothing away.
    summed = counts.sum(axis=tuple(level for level in range(counts.ndim) if level not in kept))
    return DataVector(Domain([whole.domain.attributes[level] for level in kept]), summed.reshape(-1))


def read_histogram(path: Path, name: str = "cell") -> DataVector:
    """A histogram from a CSV file: one count a line, in the last column, with or without a header."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            last = [(number, row[-1].strip()) for number, row in enumerate(csv.reader(file), 1) if row]
    except (OSError, UnicodeDecodeError, csv.Error):
        raise ConfigError(
            f"The histogram {str(path)!r} cannot be read.", hint="Give a CSV file with one count a line."
        ) from None
    if last and not last[0][1].lstrip("+-").replace(".", "").isdigit():
        last = last[1:]
    counts = [_count(path, number, text) for number, text in last]
    if not sum(counts):
        raise ConfigError(
            f"The histogram {str(path)!r} has no positive count.",
            hint="Give one count a line, not all of them 0.",
        )
    return DataVector(Domain([Integer(name, 0, len(counts) - 1)]), np.array(counts, dtype=np.int64))


def _count(path: Path, number: int, text: str) -> int:
    if not text.isdigit():
        raise ConfigError(
            f"Line {number} of {str(path)!r} ends in {text!r}, which is not a count.",
            hint="Counts are whole numbers from 0 on, one a line, in the last column.",
        )
    return int(text)


def population_of(data: DataVector) -> float:
    """The number of people of a table that is public, as those of the lab are."""
    return float(data.counts.sum())


def _those(*labels: str) -> tuple[Contestant, ...]:
    return tuple(CONTESTANTS[label] for label in labels)


def _cases(
    data: DataVector,
    epsilons: Iterable[float],
    analysts: int,
    chances: Sequence[float],
    alpha: float = ALPHA,
) -> tuple[Case, ...]:
    population = population_of(data)
    first = Case(1.0, analysts, population, alpha * population)
    return tuple(replace(first, epsilon=float(e), p=p) for e in epsilons for p in chances)
