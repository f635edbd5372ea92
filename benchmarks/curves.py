"""Curves: how the time of each step grows with cells, columns, paid rows, analysts and ledger events.

Each point is measured alone; the slope between two points is that of their logarithms. A step is a
point whose slope is well above the curve's own: the time then grows faster than the work.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.ratio import Ratio, cpu_seconds
from sharewell import Block, Budget, Curator, DataVector, Domain, Integer, LinearQuery
from sharewell.mechanisms.cache_reconstruct import CacheReconstruct
from sharewell.mechanisms.marginal_seed import MarginalSeed
from sharewell.privacy.dry_run import DryCurator
from sharewell.privacy.ledger import Asked, Refused
from sharewell.service.ledger import open_ledger

#: A step: the time grows by this many times more than the power of the curve allows.
STEP = 4.0
#: Times below this are mostly overhead, and are not compared.
NOISE = 1e-3
ROWS = 20_000


class Curve(NamedTuple):
    """Times over growing sizes, and the largest slope that they should have."""

    name: str
    points: tuple[tuple[float, float], ...]
    power: float

    @property
    def slopes(self) -> list[float]:
        """The slopes between neighbouring points, of logarithms."""
        return [
            math.log(max(t2, 1e-9) / max(t1, 1e-9)) / math.log(n2 / n1)
            for (n1, t1), (n2, t2) in pairwise(self.points)
        ]

    @property
    def worst(self) -> float:
        """How many times more than the power allows the time grows from one point to the next."""
        return max(
            max(t2, NOISE) / max(t1, NOISE) / (n2 / n1) ** self.power
            for (n1, t1), (n2, t2) in pairwise(self.points)
        )

    def show(self) -> None:
        """Print the points and the slopes between them."""
        points = "  ".join(f"{size:.3g}: {1e3 * taken:.3g} ms" for size, taken in self.points)
        slopes = ", ".join(f"{slope:+.2f}" for slope in self.slopes)
        print(
            f"  {self.name}\n    {points}\n    slopes {slopes}; expected at most {self.power:g}",
            flush=True,
        )
        if self.worst > STEP:
            print(f"    a step: {self.worst:.1f} times more than that")


def run() -> list[Ratio]:
    found = []
    for each in curves():
        each.show()
        found.append(
            Ratio(f"{each.name}, worst step", each.worst, "a curve without", 1.0, STEP, times=False)
        )
    return found


def curves() -> Iterator[Curve]:
    """All curves, one after the other."""
    yield curve("cells: open and answer", cells(), 0.1)
    yield curve("columns: open and answer", columns(), 2)
    yield curve("analysts: open the accounts", analysts(), 1.2)
    yield curve("ledger events: open", events(), 1.2)
    yield from paid_rows()


def curve(name: str, points: Iterator[tuple[float, float]], power: float) -> Curve:
    return Curve(name, tuple(points), power)


def best(task: Callable[[], object], times: int = 3) -> float:
    return min(cpu_seconds(task) for _ in range(times))


def wide(columns: int, values: int) -> tuple[Domain, DataVector]:
    """Twenty thousand rows of so many columns with so many values each."""
    domain = Domain([Integer(f"a{at}", 0, values - 1) for at in range(columns)])
    rng = np.random.default_rng(1)
    if domain.size <= 2**22:
        counts = np.bincount(rng.integers(0, domain.size, ROWS), minlength=domain.size)
        return domain, DataVector(domain, counts)
    codes = [rng.integers(0, values, ROWS) for _ in range(columns)]
    return domain, DataVector.of_cells(domain, codes, np.ones(ROWS, dtype=np.int64), max_rows=ROWS)


def served(domain: Domain, data: DataVector) -> float:
    """Seconds of opening with a seed of all one-way tables, and of ten paid answers."""
    budget = Budget.zcdp(4, "1e-6")
    seed = MarginalSeed.of(domain, [[at] for at in range(len(domain.attributes))])

    def task() -> None:
        curator = Curator(data, budget, {"ann": budget.total})
        mechanism = CacheReconstruct(
            curator, seed=seed, seed_fraction="1/2", query_budget=budget.total / 100
        )
        for at in range(10):
            mechanism.ask(LinearQuery.of(domain, a0=range(1 + at % 5), a1=[at % 10], a2=range(2)), "ann")

    return best(task)


def cells() -> Iterator[tuple[float, float]]:
    for power in (3, 4, 5, 6, 8, 12, 18, 24, 30):
        domain, data = wide(power, 10)
        yield 10.0**power, served(domain, data)


def columns() -> Iterator[tuple[float, float]]:
    for count in (3, 7, 15, 30, 60):
        domain, data = wide(count, 10)
        yield count, served(domain, data)


def paid_rows() -> list[Curve]:
    """A quote and a purchase beside so many paid rows, which a seed of two tables leaves open or not."""
    domain = Domain([Integer("a", 0, 199), Integer("b", 0, 199)])
    budget = Budget.zcdp(4, "1e-6")
    curator = DryCurator(DataVector.empty(domain), budget, {"ann": budget.total})
    mechanism = CacheReconstruct(
        curator,
        seed=MarginalSeed.of(domain, [["a", "b"]]),
        seed_fraction="1/2",
        query_budget=budget.total / 100_000,
    )
    rng = np.random.default_rng(2)

    def fresh(*b: int) -> LinearQuery:
        """A rectangle, or for one value of b a range of a."""
        sides = [range(*sorted(rng.choice(201, 2, replace=False).tolist())) for _ in range(2)]
        return LinearQuery.of(domain, a=sides[0], b=b or sides[1])

    quotes, answers, statements, bought = [], [], [], 0
    for size in (10, 100, 500, 1_000, 2_000, 5_000, 10_000, ROWS):
        while bought < size:
            rows = Block(domain, [fresh(at) for at in range(min(size - bought, 200))])
            taken = cpu_seconds(lambda: mechanism.ask(rows, "ann")) / len(rows)  # noqa: B023
            bought += len(rows)
        statements.append((float(size), taken))
        answers.append((float(size), best(lambda: mechanism.ask(fresh(), "ann"))))
        quotes.append((float(size), best(lambda: mechanism.preview(fresh(), "ann"))))
        bought += 3
    return [
        curve("paid rows: one bought alone", iter(answers), 2),
        curve("paid rows: one of a statement with 200", iter(statements), 2),
        curve("paid rows: a quote", iter(quotes), 2),
    ]


def analysts() -> Iterator[tuple[float, float]]:
    """The accounts of so many analysts: one share, and one charge each."""
    domain = Domain([Integer("a", 0, 9)])
    for count in (2, 10, 100, 300, 1_000):
        budget = Budget.pure(1)
        shares = {f"analyst {at}": Fraction(1, count) for at in range(count)}
        seed = MarginalSeed.of(domain, [["a"]])

        def task(shares=shares, budget=budget, seed=seed) -> None:  # type: ignore[no-untyped-def]
            curator = DryCurator(DataVector.empty(domain), budget, shares)
            CacheReconstruct(curator, seed=seed, seed_fraction="1/2", query_budget="1/100000")

        yield count, best(task)


def events() -> Iterator[tuple[float, float]]:
    """Opening a ledger with so many events, which are hashed and read."""
    for count in (10_000, 100_000, 1_000_000):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "ledger.sqlite"
            with open_ledger(path, create=True) as ledger:
                for start in range(0, count, 10_000):
                    ledger.append_many(_questions(start, 10_000))

            def task(path: Path = path) -> None:
                with open_ledger(path, read_only=True) as ledger:
                    if sum(1 for _ in ledger.events()) != count:  # noqa: B023
                        raise RuntimeError("events are missing")

            yield count, best(task, 1)


def _questions(start: int, count: int) -> Sequence[Asked | Refused]:
    found: list[Asked | Refused] = []
    for at in range(start, start + count, 2):
        found.append(Asked(str(at), "ann", {"sql": f"SELECT COUNT(*) FROM t WHERE a < {at}"}, pay=True))
        found.append(Refused(at, "query.invalid", "It is too long."))
    return found
