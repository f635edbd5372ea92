"""Which tables of counts are free from the start, with what error, and what the others cost.

Everything follows from the configuration alone, in closed form: the time depends on the number of tables
that the seed determines, and not on the number of cells.

Privacy: reads no row and spends nothing.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

import numpy as np

from sharewell.config.config import Config
from sharewell.errors import PrivacyError
from sharewell.mechanisms.marginal_seed import MarginalPart, MarginalSeed
from sharewell.mechanisms.measurements import Measurements
from sharewell.mechanisms.planned_seed import PlannedSeed
from sharewell.mechanisms.strategy import Rows, Strategy
from sharewell.privacy.noise import gaussian_scale, gaussian_variance, laplace_scale, laplace_variance
from sharewell.query.block import GroupedBlock, Neighbours
from sharewell.query.linear import LinearQuery
from sharewell.sharing.closed_form import dry_curator, part_variances

#: Tables by up to so many columns are summarized.
MAX_COLUMNS = 3
#: Of a table whose cells have different errors, so many are looked at.
FEW_CELLS = 16

#: Attributes, by position.
Attributes = tuple[int, ...]
#: The mean variance of the cells of each determined table.
Variances = Mapping[Attributes, float]


@dataclass(frozen=True)
class TableSummary:
    """The tables of counts by some number of columns; errors are standard errors of a cell, in rows."""

    columns: int
    tables: int
    #: How many the seed determines, the smallest and largest error among them, and the columns of those.
    free: int
    best: float | None
    worst: float | None
    best_table: tuple[str, ...]
    worst_table: tuple[str, ...]
    #: How many others there are, the error of one that is paid for, and how many of them have more
    #: cells than one question may ask for.
    others: int
    paid: float | None
    too_large: int


def marginal_parts(seed: object) -> tuple[MarginalPart, ...]:
    """The parts of a seed of marginals; none for others."""
    return seed.parts if isinstance(seed, MarginalSeed) else ()


def _most(config: Config) -> tuple[str, Fraction]:
    return max(config.shares.items(), key=lambda each: each[1])


def _least(config: Config) -> tuple[str, Fraction]:
    return min(config.shares.items(), key=lambda each: each[1])


def summarize_tables(config: Config) -> tuple[TableSummary, ...]:
    """Summarize the tables by one, two and three columns; empty where errors depend on the data."""
    make, domain = config.make, config.domain
    if not make.errors_are_public:
        return ()
    sizes = [attribute.size for attribute in domain.attributes]
    shares = list(config.shares.values())
    # Analysts who are alone have seeds of their own; the best and the worst are shown.
    donations = [max(shares), min(shares)] if make.independent else [sum(shares, Fraction(0))] * 2
    if isinstance(make.seed, PlannedSeed) and make.independent:
        # Each has a plan of their own.
        seeds = [make.seed_of({who: share}) for who, share in (_most(config), _least(config))]
    else:
        seeds = [make.seed_of(config.shares)] * 2
    best, worst = (
        _free_variances(config, seed, each * make.seed_fraction)
        for seed, each in zip(seeds, donations, strict=True)
    )
    paid = None if make.price is None else math.sqrt(_variance(config, make.price, 1, 1))
    found = []
    for count in range(1, min(MAX_COLUMNS, len(sizes)) + 1):
        free = {table for table in worst if len(table) == count}
        low = min(free, key=lambda table: best.get(table, math.inf), default=None)
        high = max(free, key=lambda table: worst[table], default=None)
        tables, limit = math.comb(len(sizes), count), config.service.most_numbers
        large_free = sum(math.prod(sizes[at] for at in table) > limit for table in free)
        found.append(
            TableSummary(
                count,
                tables,
                len(free),
                None if low is None else math.sqrt(best[low]),
                None if high is None else math.sqrt(worst[high]),
                tuple(domain.names[at] for at in low or ()),
                tuple(domain.names[at] for at in high or ()),
                tables - len(free),
                paid,
                _count_larger(sizes, count, limit) - large_free,
            )
        )
    return tuple(found)


def _free_variances(
    config: Config, seed: Strategy | MarginalSeed | None, donated: Fraction
) -> Variances:
    """The variances of all tables that a seed determines, if it is measured for an amount."""
    sizes = [attribute.size for attribute in config.domain.attributes]
    try:
        if seed is None or not donated:
            return {}
        if isinstance(seed, MarginalSeed):
            curator = dry_curator(
                config.domain, config.budget.currency, config.neighbours, config.max_rows_per_person
            )
            noise_of = part_variances(seed, donated, curator)
            pairs = list(zip(seed.parts, noise_of, strict=True))
            if any(part.rows for part in seed.parts):
                return dict(_variances_of_cells(seed, noise_of))
            return _variances_of_marginals(sizes, [(p, v) for p, v in pairs if p.vector == 0])
        noise = _variance(config, donated, *_sensitivities(seed, config.neighbours))
        if seed.marginals is not None:
            levels = range(len(sizes))
            masks = [tuple(at for at in levels if mask >> at & 1) for mask in seed.marginals]
            parts = [MarginalPart(mask, 0, Fraction(1)) for mask in masks]
            return _variances_of_marginals(sizes, [(part, noise) for part in parts])
        return dict(_variances_of_product(seed, len(sizes), noise))
    except PrivacyError:
        return {}  # Too little to measure anything with: nothing is free.


def _sensitivities(seed: Strategy, neighbours: Neighbours) -> tuple[int, int]:
    """What one row of the table changes, relative to a table of counts."""
    one, two = (1, 1) if neighbours == "add-remove" else (2, 2)
    return seed.l1_sensitivity(neighbours) // one, seed.l2_sensitivity_squared(neighbours) // two


def _variance(config: Config, cost: Fraction, absolute: int, squared: int) -> float:
    """The variance of counts that a cost buys: of a table, whose cells are disjoint, or times that."""
    factor = 1 if config.neighbours == "add-remove" else 2
    if config.budget.currency == "pure":
        return laplace_variance(laplace_scale(factor * absolute * config.max_rows_per_person, cost))
    return gaussian_variance(gaussian_scale(factor * squared * config.max_rows_per_person**2, cost))


def _variances_of_marginals(
    sizes: Sequence[int], measured: Iterable[tuple[MarginalPart, float]]
) -> Variances:
    """The variance of a cell of every determined table: K0 of `mechanisms/marginal_seed.py`."""
    precisions: defaultdict[Attributes, float] = defaultdict(float)
    for rows, variance in measured:
        size = math.prod(sizes[at] for at in rows.attributes)
        if rows.centred:
            precisions[rows.attributes] += size / variance
            continue
        for part in _subsets(rows.attributes):
            precisions[part] += 1 / (variance * size)
    return {
        table: sum(
            math.prod(sizes[at] - 1 for at in part) / precisions[part] for part in _subsets(table)
        )
        / math.prod(sizes[at] for at in table) ** 2
        for table in precisions
        if len(table) <= MAX_COLUMNS
    }


def _variances_of_cells(
    seed: MarginalSeed, noise: Sequence[float]
) -> Iterator[tuple[Attributes, float]]:
    """The mean variance of some cells of every table, from a seed that determines everything."""
    known, domain = Measurements(seed), seed.domain
    rows = np.repeat(noise, seed.sizes)
    known.observe_parts(seed, np.zeros(len(seed)), rows)
    prior, _ = known.prior()
    for table in _subsets(tuple(range(len(domain.attributes)))):
        cells = GroupedBlock(LinearQuery.all(domain), {at: range(domain.shape[at]) for at in table})
        some = cells.take(sorted({len(cells) * at // FEW_CELLS for at in range(FEW_CELLS)}))
        yield table, float(np.mean(prior.variances(some)))


def _subsets(attributes: Attributes) -> Iterator[Attributes]:
    """The sets of at most MAX_COLUMNS of some attributes."""
    for count in range(min(MAX_COLUMNS, len(attributes)) + 1):
        yield from combinations(attributes, count)


def _variances_of_product(
    seed: Strategy, attributes: int, noise: float
) -> Iterator[tuple[Attributes, float]]:
    """The mean variance of the cells of every table, from one product of rows of each attribute."""
    [part] = seed.parts
    found = [_cell_and_total(rows) for rows in part[:attributes]]
    if seed.covariance is None:
        return
    for table in _subsets(tuple(range(attributes))):
        own = (cell if at in table else total for at, (cell, total) in enumerate(found))
        yield table, noise * math.prod(own)


def _cell_and_total(rows: Rows) -> tuple[float, float]:
    """The mean variance of the cells of one attribute, and that of their total, for unit noise."""
    if rows.inverse is None or rows.inverse.matrix is None:
        return 1.0, float(rows.size)
    inverse = rows.inverse.matrix
    return float(inverse.trace()) / rows.size, float(inverse.sum())


def _count_larger(sizes: Sequence[int], count: int, limit: int) -> int:
    """How many sets of so many attributes have more than `limit` cells, without listing them."""
    ordered = np.sort(np.array(sizes, dtype=np.float64))
    products, last = np.ones(1), np.full(1, -1)
    for _ in range(count - 1):
        at = [np.arange(end + 1, len(ordered)) for end in last]
        products = np.concatenate([p * ordered[own] for p, own in zip(products, at, strict=True)])
        last = np.concatenate(at)
    first = np.searchsorted(ordered, limit / products, side="right")
    return int((len(ordered) - np.maximum(first, last + 1)).sum())
