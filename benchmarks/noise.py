"""Exact noise for a histogram of a million cells, against one OpenDP call on the whole vector."""

import numpy as np
import opendp.prelude as dp

from benchmarks.ratio import Ratio, best_of
from sharewell.privacy.noise import ExactNoise

CELLS = 1_000_000


def run() -> list[Ratio]:
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T="i64"))
    noise = ExactNoise()
    zeros = np.zeros(CELLS, dtype=np.int64)
    rows = []
    for name, theirs, ours in (
        ("Laplace", dp.m.make_laplace(space, dp.l1_distance(T="i64"), scale=10.0), noise.laplace),
        ("Gaussian", dp.m.make_gaussian(space, dp.l2_distance(T="i64"), scale=10.0), noise.gaussian),
    ):
        mine, reference = best_of(
            2, lambda draw=ours: draw(10.0, CELLS), lambda call=theirs: call(zeros)
        )
        rows.append(
            Ratio(f"discrete {name}, 1M cells", mine, "OpenDP's vector call", reference, target=0.1)
        )
    return rows
