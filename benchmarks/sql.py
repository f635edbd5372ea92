"""compile_sql of typical conditions: new texts, and texts seen before."""

import random

from benchmarks.ratio import Ratio, best_of
from sharewell import compile_sql, datasets

DOMAIN = datasets.massachusetts().domain
TEXTS = 500


def new_texts(seed: int) -> list[str]:
    """Conditions that nobody has asked before, of the usual shape."""
    rng = random.Random(seed)
    return [
        "SELECT COUNT(*) FROM people "
        f"WHERE age >= {rng.randrange(40)} AND age < {rng.randrange(40, 86)} "
        f"AND sex = 'female' AND marital IN ('married', 'widowed')" + f" AND {rng.randrange(10**9)} > -1"
        for _ in range(TEXTS)
    ]


def run() -> list[Ratio]:
    seeds = iter(range(1_000_000))

    def fresh() -> None:
        for text in new_texts(next(seeds)):
            compile_sql(text, DOMAIN)

    known = new_texts(-1)

    def again() -> None:
        for text in known:
            compile_sql(text, DOMAIN)

    again()
    fresh()
    new, cached = best_of(5, fresh, again)
    return [
        Ratio("compile_sql, new text", new / TEXTS, "1,000 a second", 1e-3, target=1),
        Ratio("compile_sql, equal text", cached / TEXTS, "1,000 a second", 1e-3, target=1),
    ]
