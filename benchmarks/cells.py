"""A dense table of 2.6 million cells under an identity seed: opening, first question, join, verify.

Times are of the processor, in all threads.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.ratio import Ratio, cpu_seconds
from benchmarks.wide import close
from sharewell.config import parse_config
from sharewell.service.dataset import DatasetService
from sharewell.service.ledger import open_ledger
from sharewell.service.tokens import TokenStore
from sharewell.service.verify import verify
from sharewell.wire import Newcomer

ROWS, SIZES = 300_000, {"age": 91, "occupation": 48, "industry": 24, "race": 5, "citizenship": 5}
CONFIG = """
[dataset]
name = "cells"
source = "cells.parquet"
population = 300_000
[budget]
epsilon = 3
delta = "1e-7"
error_threshold = 100
[analysts.ann]
share = "1/3"
expects = ["SELECT COUNT(*) FROM cells WHERE age > 50"]
[mechanism]
seed = "identity"
seed_fraction = "1/2"
query_budget = "1/400"
"""
QUESTION = "SELECT COUNT(*) FROM cells WHERE age > 30 AND occupation = 3"


def run() -> list[Ratio]:
    rng = np.random.default_rng(15)
    table = pa.table({name: rng.integers(0, size, ROWS) for name, size in SIZES.items()})
    attributes = "".join(
        f'[attributes.{name}]\ntype = "integer"\nlow = 0\nhigh = {size - 1}\n'
        for name, size in SIZES.items()
    )
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        pq.write_table(table, folder / "cells.parquet")
        config = parse_config(CONFIG + attributes, folder / "sharewell.toml")
        start = time.process_time()
        ledger = open_ledger(folder / "ledger.sqlite", create=True)
        service = DatasetService(
            config, ledger, TokenStore(folder / "access.json"), certificate=False, tick=0.001
        )
        times = {
            "open": (time.process_time() - start, 5.0),
            "the first question": (cpu_seconds(lambda: service.ask("ann", QUESTION, timeout=60)), 1.0),
            "join": (cpu_seconds(lambda: service.join(Newcomer(name="ben", share="1/3"))), 2.0),
        }
        close(service)
        times["verify"] = cpu_seconds(lambda: verify(folder / "ledger.sqlite")), 30.0
    cells = config.domain.size
    return [
        Ratio(f"{what}, {cells:,} cells", taken, "the bound", bound, 1)
        for what, (taken, bound) in times.items()
    ]
