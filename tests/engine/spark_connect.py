"""Run the common suite on a server of Spark Connect: a process has Spark, or a client of it, not both.

python -m tests.engine.spark_connect sc://HOST:PORT FOLDER [all]

Without `all`, one part of it: the statements are those that Spark runs in this machine.
"""

import sys
import time
import warnings
from itertools import count
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from sharewell import Domain, Integer, vectorize
from tests.engine.check_engine import check_attributes_together, check_engine


def main(address: str, folder: Path, *, everything: bool) -> None:
    warnings.simplefilter("ignore")
    session = SparkSession.builder.remote(address).getOrCreate()

    numbers = count()

    def make(table: pa.Table) -> str:
        path = folder / f"{next(numbers)}.parquet"
        pq.write_table(table, path)
        session.read.parquet(str(path)).createOrReplaceTempView("people")
        return address

    began = time.monotonic()
    (check_engine if everything else check_attributes_together)(make)
    print(f"{time.monotonic() - began:.1f} s")
    session.stop()
    # Without a session of the caller's, the engine connects by itself.
    domain = Domain([Integer("age", 0, 3)])
    pq.write_table(pa.table({"age": [0, 1, 1, 9]}), folder / "people.parquet")
    table = f"parquet.`{folder / 'people.parquet'}`"
    assert vectorize(address, domain, table=table).counts.tolist() == [1, 2, 0, 0]


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), everything="all" in sys.argv)
