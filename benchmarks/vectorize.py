"""Ten million rows into 17,200 cells, against a hand-written GROUP BY over the same bins."""

import tempfile
from pathlib import Path

import duckdb
import numpy as np

from benchmarks.ratio import Ratio, best_of
from sharewell.engine.vectorize import vectorize
from sharewell.query.attribute import Binned, Integer
from sharewell.query.domain import Domain

ROWS = 10_000_000
DOMAIN = Domain(
    [
        Integer("age", 0, 85),
        Binned("income", range(0, 100_001, 5_000)),
        Binned("hours", range(0, 101, 10)),
    ]
)
# Some rows fall outside the domain.
PEOPLE = f"""
    SELECT
        CAST(floor(random() * 90) AS INTEGER) AS age,
        random() * 105000 AS income,
        random() * 105 AS hours
    FROM range({ROWS})
"""
BY_HAND = """
    SELECT
        age,
        CAST(floor(income / 5000) AS INTEGER) AS income_bin,
        CAST(floor(hours / 10) AS INTEGER) AS hours_bin,
        count(*) AS count
    FROM {source}
    WHERE age BETWEEN 0 AND 85 AND income >= 0 AND income < 100000 AND hours >= 0 AND hours < 100
    GROUP BY ALL
"""


def run() -> list[Ratio]:
    with tempfile.TemporaryDirectory() as folder:
        parquet, database = make_sources(Path(folder))
        return [
            compare("Parquet", parquet, f"read_parquet('{parquet}')"),
            compare("DuckDB file", database, "people.people", attach=database),
        ]


def make_sources(folder: Path) -> tuple[Path, Path]:
    """Write the same rows to a Parquet file and to a DuckDB file."""
    parquet, database = folder / "people.parquet", folder / "people.duckdb"
    with duckdb.connect(database) as connection:
        connection.execute(f"CREATE TABLE people AS {PEOPLE}").fetchall()
        connection.execute(f"COPY people TO '{parquet}' (FORMAT parquet)").fetchall()
    return parquet, database


def compare(kind: str, source: Path, relation: str, attach: Path | None = None) -> Ratio:
    """Compare from scratch: open a session, count the rows, fetch the counts."""

    def by_hand() -> np.ndarray:
        with duckdb.connect() as connection:
            if attach:
                connection.execute(f"ATTACH '{attach}' AS people (READ_ONLY)").fetchall()
            found = connection.execute(BY_HAND.format(source=relation)).fetchnumpy()
        counts = np.zeros(DOMAIN.shape, dtype=np.int64)
        counts[found["age"], found["income_bin"], found["hours_bin"]] = found["count"]
        return counts.reshape(-1)

    if not np.array_equal(by_hand(), vectorize(source, DOMAIN).counts):
        raise RuntimeError("the two results differ")
    ours, theirs = best_of(7, lambda: vectorize(source, DOMAIN), by_hand)
    name = f"vectorize, 10M rows, 17,200 cells, {kind}"
    return Ratio(name, ours, "a GROUP BY by hand", theirs, target=1.3)
