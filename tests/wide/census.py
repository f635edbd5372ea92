"""A made-up census file of forty columns: skewed, dependent, with missing values and amounts."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

#: Text columns and the number of their values, in the proportions of a real census questionnaire.
CATEGORIES = {
    "worker_class": 9,
    "industry": 24,
    "occupation": 47,
    "education": 17,
    "enrolled": 3,
    "marital": 7,
    "race": 5,
    "origin": 10,
    "sex": 2,
    "union_member": 3,
    "unemployed_why": 6,
    "employment": 8,
    "tax_filer": 6,
    "previous_region": 6,
    "previous_state": 50,
    "family_status": 38,
    "household": 8,
    "moved_msa": 10,
    "moved_region": 9,
    "moved_within": 10,
    "same_house": 3,
    "from_sunbelt": 4,
    "minors_with": 5,
    "father_born": 43,
    "mother_born": 43,
    "born": 43,
    "citizenship": 5,
    "own_business": 3,
    "veteran_form": 3,
    "veteran_benefits": 3,
    "income_class": 2,
}
#: Columns of whole numbers, and their largest values.
NUMBERS = {"age": 90, "weeks_worked": 52, "employer_size": 6, "year": 1}
#: Columns of amounts, most of which are 0, and their scale.
AMOUNTS = {"wage_per_hour": 9.0, "capital_gain": 400.0, "capital_loss": 40.0, "dividends": 200.0}


def census(rows: int, seed: int = 15) -> pa.Table:
    """The table: 40 columns, one of them a survey weight."""
    rng = np.random.default_rng(seed)
    # One hidden number makes the columns depend on each other.
    hidden = rng.random(rows)
    columns: dict[str, pa.Array] = {}
    for name, size in CATEGORIES.items():
        mixed = 0.6 * rng.random(rows) ** 2 + 0.4 * hidden**2
        codes = np.minimum((mixed * size).astype(np.int32), size - 1)
        labels = pa.array([f"{name} {code}" for code in range(size)])
        columns[name] = pa.DictionaryArray.from_arrays(codes, labels).cast(pa.string())
    for name, high in NUMBERS.items():
        numbers = np.rint(high * (0.7 * rng.random(rows) + 0.3 * hidden))
        columns[name] = pa.array(numbers.astype(np.int32))
    for name, scale in AMOUNTS.items():
        amounts = np.where(rng.random(rows) < 0.7, 0, rng.exponential(scale * (0.5 + hidden)))
        missing = rng.random(rows) < 0.02
        columns[name] = pa.array(np.round(amounts, 2), mask=missing)
    columns["weight"] = pa.array(np.round(100 + 4000 * rng.random(rows), 2))
    return pa.table(columns)


def write_census(folder: Path, rows: int) -> Path:
    """Write the table as a Parquet file."""
    path = folder / "census.parquet"
    pq.write_table(census(rows), path)
    return path


def census_config(rows: int, analysts: Sequence[str], *, mechanism: str = 'seed = "tables"') -> str:
    """A configuration for the table, all of whose columns are attributes: about 10^38 cells."""
    lines = [
        "[dataset]",
        'name = "census"',
        'source = "census.parquet"',
        f"population = {rows}",
        f"max_rows = {rows + rows // 10}",
        "[budget]",
        "epsilon = 3",
        'delta = "1e-7"',
        "error_threshold = 100",
    ]
    for name, size in CATEGORIES.items():
        labels = ", ".join(f'"{name} {code}"' for code in range(size))
        lines += [f"[attributes.{name}]", 'type = "category"', f"categories = [{labels}]"]
    for name, high in NUMBERS.items():
        lines += [f"[attributes.{name}]", 'type = "integer"', "low = 0", f"high = {high}"]
    for name, scale in AMOUNTS.items():
        cuts = ", ".join(str(scale * step / 2) for step in range(1, 8))
        lines += [f"[attributes.{name}]", 'type = "binned"', "nullable = true", 'other = "more"']
        lines += [f"cuts = [0, 0.01, {cuts}]"]
    lines += ["[attributes.weight]", 'type = "binned"', "cuts = [0, 1000, 2000, 3000, 5000]"]
    for name in analysts:
        lines += [f"[analysts.{name}]", f'share = "1/{len(analysts) + 1}"']
        lines += ['expects = ["SELECT COUNT(*) FROM census WHERE age > 50"]']
    return "\n".join([*lines, "[mechanism]", 'query_budget = "1/400"', mechanism])
