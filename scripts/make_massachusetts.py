"""Make the bundled table from Census codes: `make_massachusetts.py CODED.parquet LABELLED.parquet`.

The codes are those of the American Community Survey's public-use microdata, as PyPI's nannyml 0.13.1
carries them for Massachusetts, 2015 to 2018.
"""

import sys
from collections.abc import Iterable

import duckdb

RACE = {
    "white": [1],
    "black": [2],
    "native american": [3, 4, 5],
    "asian": [6],
    "pacific islander": [7],
    "other": [8],
    "two or more": [9],
}
SCHOOLING = {
    "none": [0, 1],
    "preschool": [2, 3],
    "grades 1-8": range(4, 12),
    "grades 9-12": range(12, 16),
    "high school": [16, 17],
    "some college": [18, 19],
    "associate": [20],
    "bachelor": [21],
    "master": [22],
    "doctorate or professional": [23, 24],
}
MARITAL = {"married": [1], "widowed": [2], "divorced": [3], "separated": [4], "never married": [5]}
CITIZENSHIP = {"born a citizen": [1, 2, 3], "naturalized": [4], "not a citizen": [5]}


def labelled(column: str, labels: dict[str, Iterable[int]]) -> str:
    """Map a column of codes to labels; a code without a label is an error, not NULL."""
    whens = "".join(
        f" WHEN '{code}' THEN '{label}'" for label, codes in labels.items() for code in codes
    )
    return f"CASE {column}{whens} ELSE error('a code without a label') END"


def main(coded: str, output: str) -> None:
    """Write the table, sorted so that the order of its rows reveals nothing."""
    duckdb.connect().execute(
        f"""
        COPY (
            SELECT
                CAST(LEAST(AGEP, 85) AS UTINYINT) AS age,
                {labelled("SEX", {"male": [1], "female": [2]})} AS sex,
                {labelled("RAC1P", RACE)} AS race,
                {labelled("SCHL", SCHOOLING)} AS schooling,
                {labelled("MAR", MARITAL)} AS marital,
                MIG IN ('2', '3') AS moved,
                {labelled("CIT", CITIZENSHIP)} AS citizenship,
                DIS = '1' AS disability,
                CAST(year AS USMALLINT) AS year
            FROM read_parquet($coded)
            ORDER BY ALL
        ) TO '{output}' (FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL 19)
        """,
        {"coded": coded},
    ).fetchall()


if __name__ == "__main__":
    main(*sys.argv[1:])
