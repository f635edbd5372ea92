"""Planned seeds: their errors over a bound that no strategy passes, and useful answers on 2,408 cells.

The bound on the root mean square error of a workload is the sum of its singular values over the root of
twice the number of cells (Li and Miklau, 2013). Every question counts once. The plans are those that
donors get: with the floor for questions that were not expected.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scipy.special import erf

from benchmarks.ratio import Ratio
from sharewell import Block, Budget, Domain, LinearQuery, datasets
from sharewell.mechanisms.planned_seed import PlannedSeed
from sharewell.mechanisms.seed_planner import SeedPlanner
from sharewell.mechanisms.workload_terms import squares_of, terms_of
from sharewell.query import workload
from sharewell.query.block import GroupedBlock
from sharewell.sharing.closed_form import errors_of
from sharewell_lab.studies import Study, wide

ONE = Fraction(1)
#: The streams of the wide study that are drawn, its epsilon, and what each donates to the seed.
STREAMS, EPSILON, FRACTION = 5, "0.1", Fraction(19, 20)
#: Answers are useful within this part of the population.
ALPHA = 0.001


def run() -> list[Ratio]:
    ages, people = datasets.movers_by_age().domain, datasets.massachusetts().domain
    ranges = [workload.prefixes(ages), workload.h2(ages), workload.identity(ages)]
    study = wide([0.1])
    domain = study.data.domain
    kinds = [block_of(domain, choice.rows) for choice in study.askers[0].choices]
    pairs = combinations(range(len(people.shape)), 2)
    tables = [table_by(people, pair) for pair in pairs]
    squares = squares_of(terms_of(tables))
    least = SeedPlanner(people, "zcdp", "add-remove").least_variance(squares)
    useless = 1 - worst_off(study)
    return [
        Ratio("86 cells: error", error(ages, ranges), "bound", bound(ranges), 1.05, times=False),
        Ratio("2,408 cells: error", error(domain, kinds), "bound", bound(kinds), 1.15, times=False),
        Ratio(
            "120,400 cells: error", error(people, tables), "bound", math.sqrt(least), 1.05, times=False
        ),
        Ratio("2,408 cells: useless answers, worst-off", useless, "goal", 0.15, 1, times=False),
    ]


def block_of(domain: Domain, rows: NDArray[np.uint8]) -> Block:
    return Block(domain, [LinearQuery.from_vector(domain, row) for row in rows])


def table_by(domain: Domain, levels: Iterable[int]) -> GroupedBlock:
    return GroupedBlock(LinearQuery.all(domain), {at: range(domain.shape[at]) for at in levels})


def error(domain: Domain, questions: Sequence[Block]) -> float:
    """The root of the questions' total variance, from one donation of 1."""
    seed = PlannedSeed(domain, "zcdp", expected={"ann": questions})
    found = errors(domain, seed, [("ann", block) for block in questions], {"ann": ONE}, ONE)
    return math.sqrt(sum(float(np.mean(np.square(each))) for each in found))


def errors(
    domain: Domain,
    seed: PlannedSeed,
    stream: Sequence[tuple[str, Block]],
    shares: Mapping[str, Fraction],
    fraction: Fraction,
) -> list[tuple[float, ...]]:
    """The standard errors of a stream, from the seed alone."""
    return errors_of(
        domain,
        stream,
        shares,
        seed=seed.bought_by(shares),
        seed_fraction=fraction,
        query_budget=ONE,
        privacy="zcdp",
    )


def bound(questions: Sequence[Block]) -> float:
    """No strategy has a smaller root of the total variance, for a donation of 1."""
    rows = [query.to_vector() / math.sqrt(len(block)) for block in questions for query in block]
    matrix = np.array(rows, dtype=float)
    return float(np.linalg.svd(matrix, compute_uv=False).sum()) / math.sqrt(2 * matrix.shape[1])


def worst_off(study: Study) -> float:
    """The useful part of the worst-off analyst's answers, on average over some streams."""
    domain, found = study.data.domain, []
    total = Budget.zcdp(EPSILON, "1e-6").total
    threshold = ALPHA * float(study.data.counts.sum())
    for trial in range(STREAMS):
        rng = np.random.default_rng(trial)
        [case, *_] = study.cases
        drawn = [asker.draw(domain, rng) for asker in study.asker(case)]
        asked = {str(at): [block_of(domain, rows)] for at, rows in enumerate(drawn)}
        shares = dict.fromkeys(asked, total / len(asked))
        seed = PlannedSeed(domain, "zcdp", expected=asked)
        stream = [(name, block) for name, [block] in asked.items()]
        reached = [threshold / np.array(e) for e in errors(domain, seed, stream, shares, FRACTION)]
        found.append(min(float(erf(each / math.sqrt(2)).mean()) for each in reached))
    return float(np.mean(found))
