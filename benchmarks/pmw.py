"""Private Multiplicative Weights on ten million cells, against one in-place product of two arrays."""

import numpy as np

from benchmarks.ratio import Ratio, best_of
from sharewell import Domain, Integer, LinearQuery
from sharewell.mechanisms.pmw import SyntheticTable


def run() -> list[Ratio]:
    domain = Domain([Integer("a", 0, 99), Integer("b", 0, 99), Integer("c", 0, 999)])
    table = SyntheticTable(domain, 1e6)
    box = LinearQuery.of(domain, a=range(20, 80), b=range(10, 90), c=range(700))
    sets = LinearQuery.of(domain, a=range(0, 100, 2), b=range(0, 100, 3))
    x, y = np.ones(domain.size), np.ones(domain.size)

    def in_place() -> None:
        np.multiply(x, y, out=x)

    step = iter(np.tile([0.01, -0.01], 1000))
    guess, guess_sets, update, update_sets, reference = best_of(
        7,
        lambda: table.answer(box),
        lambda: table.answer(sets),
        lambda: table.bend(box, next(step)),
        lambda: table.bend(sets, next(step)),
        in_place,
    )
    return [
        Ratio("PMW guess, a box of 10M cells", guess, "x *= y", reference, 3),
        Ratio("PMW guess, scattered sets", guess_sets, "x *= y", reference, 3),
        Ratio("PMW update, a box of 10M cells", update, "x *= y", reference, 3),
        Ratio("PMW update, scattered sets", update_sets, "x *= y", reference, 3),
    ]
