"""compile_sql on typical conditions, new and cached, and on hostile texts; in seconds of CPU."""

import random
import time

from benchmarks import hostile
from benchmarks.ratio import Ratio, best_of
from sharewell import compile_sql, datasets
from sharewell.gc_tuning import tune_gc
from sharewell.query.sql import compile_anew
from sharewell.query.sql.text import Source

DOMAIN = datasets.massachusetts().domain
TEXTS = 500
#: The branches of a CASE of nearly 100,000 characters, the most that a text may have.
LONGEST = 2_000


def new_texts(seed: int) -> list[str]:
    """Return typical texts that are not cached."""
    rng = random.Random(seed)
    return [
        "SELECT COUNT(*) FROM people "
        f"WHERE age >= {rng.randrange(40)} AND age < {rng.randrange(40, 86)} "
        f"AND sex = 'female' AND marital IN ('married', 'widowed')" + f" AND {rng.randrange(10**9)} > -1"
        for _ in range(TEXTS)
    ]


def case_of(branches: int) -> str:
    """Return a SUM over a CASE with conditions on two attributes."""
    schooling = DOMAIN["schooling"].labels
    whens = " ".join(
        f"WHEN age = {i * 37 % 86} AND schooling = '{schooling[i * i % 9]}' THEN {i}"
        for i in range(branches)
    )
    return f"SELECT SUM(CASE {whens} END) FROM people"


def run() -> list[Ratio]:
    tune_gc()  # as the server does
    seeds = iter(range(1_000_000))

    def fresh() -> None:
        for text in new_texts(next(seeds)):
            compile_sql(text, DOMAIN)

    known = new_texts(1_000_000)

    def again() -> None:
        for text in known:
            compile_sql(text, DOMAIN)

    def case_of_100_kb() -> None:
        compile_anew(Source(case_of(LONGEST), DOMAIN, "people"))

    again()
    fresh()
    new, cached = best_of(5, fresh, again, clock=time.process_time)
    [longest] = best_of(5, case_of_100_kb, clock=time.process_time)
    slowest, name = max((hostile.cpu(domain, text)[0], name) for name, domain, text in hostile.texts())
    return [
        Ratio("compile_sql, new text", new / TEXTS, "1,000 a second", 1e-3, target=1),
        Ratio("compile_sql, equal text", cached / TEXTS, "1,000 a second", 1e-3, target=1),
        Ratio("compile_sql, a CASE of 100 kB", longest, "1 s", 1.0, target=1),
        Ratio(f"compile_sql, the slowest hostile text: {name}", slowest, "1 s", 1.0, target=1),
    ]
