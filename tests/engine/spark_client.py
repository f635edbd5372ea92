"""Run the common suite as a client of Spark: a process has one Spark, or is a client of another.

python -m tests.engine.spark_client ADDRESS FOLDER [all]

The address is that of a server of Spark Connect (sc://) or of a cluster (spark://). Without `all`, one
part of the suite: the statements are those that Spark runs in this machine.
"""

import sys
import time
import warnings
from itertools import count
from pathlib import Path
from threading import Thread

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from sharewell import Domain, Integer, vectorize
from sharewell.engine.sources import open_source
from tests.engine.check_engine import check_attributes_together, check_engine

AGE = Domain([Integer("age", 0, 3)])


def main(address: str, folder: Path, *, everything: bool) -> None:
    warnings.simplefilter("ignore")
    pq.write_table(pa.table({"age": [0, 1, 1, 9]}), folder / "people.parquet")
    table = f"parquet.`{folder / 'people.parquet'}`"
    # The engine connects by itself, and stays.
    opened = open_source(address, ["age"], table=table)
    began = time.monotonic()
    check(address, folder, everything=everything)
    print(f"{time.monotonic() - began:.1f} s")
    # An engine of another thread does not end the session.
    thread = Thread(target=lambda: open_source(address, ["age"], table=table).close())
    thread.start()
    thread.join()
    assert vectorize(address, AGE, table=table).counts.tolist() == [1, 2, 0, 0]
    opened.close()


def check(address: str, folder: Path, *, everything: bool) -> None:
    session, numbers = SparkSession.active(), count()

    def make(table: pa.Table) -> str:
        path = folder / f"{next(numbers)}.parquet"
        pq.write_table(table, path)
        session.read.parquet(str(path)).createOrReplaceTempView("people")
        return address

    (check_engine if everything else check_attributes_together)(make)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), everything="all" in sys.argv)
