"""The paper's claims that need no trials: the coupon collector's time, and the query limit."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from sharewell.lab.estimates import Estimate, mean
from sharewell.lab.limit import REALISED, LimitNumbers
from sharewell.lab.verdicts import Claim, Finding, below
from sharewell.sharing.theory.coupons import coupons

#: How far a formula may be from the exact value, as a part of it, and still be said to give it.
CLOSE = 0.05
#: The coupon times that are compared: analysts, and turns that each wants.
COUPONS = ((2, 5), (10, 50), (50, 20))
#: How many runs are simulated for each.
DRAWS = 400


def theory(limit: LimitNumbers | None) -> Iterator[Claim]:
    """The claims about the coupon time and, where it was measured, about the query limit."""
    times = tuple(_coupon_time(analysts, quota) for analysts, quota in COUPONS)
    yield Claim(
        "coupon-formula",
        "The coupon collector's formula k (ln k + (m - 1) ln ln k) gives the time of the randomized "
        "scheduler, when k analysts want m turns each and always have a question waiting.",
        f"The formula by the exact expected time; holds where it is within {100 * CLOSE:.0f} % of it. "
        f"Simulated times are means of {DRAWS} runs.",
        times,
        also="; ".join(f"{time.place}: {time.note}" for time in times) + ".",
    )
    if limit is not None:
        growth = tuple(_growth(limit, name) for name in limit.alone if name != "Uniform")
        yield Claim(
            "query-limit",
            "Of hard queries, k times the budget answers less than k times as many within alpha, so "
            "that not everybody can have together what each would have alone.",
            f"The mean over runs of the number answered with all of epsilon by that with 1/"
            f"{limit.limit.analysts} of it; holds where its interval is below {limit.limit.analysts}. "
            f"Undecided where all {limit.hard} queries are answered.",
            growth,
            also="; ".join(f"{one.place}: {one.note}" for one in growth) + ".",
        )


def _coupon_time(analysts: int, quota: int) -> Finding:
    time = coupons(analysts, quota)
    formula = time.asymptotic.value if time.asymptotic else float("nan")
    rng = np.random.default_rng([analysts, quota])
    simulated = mean([_draws_until_all(analysts, quota, rng) for _ in range(DRAWS)])
    by_exact = formula / time.expected
    note = f"formula {formula:.1f}, exact {time.expected:.1f}"
    return Finding(
        {"k": f"{analysts}", "m": f"{quota}"},
        Estimate(by_exact, by_exact, by_exact, DRAWS),
        abs(by_exact - 1) <= CLOSE,
        f"{note}, simulated {simulated.shown('{:.1f}'.format)}",
    )


def _draws_until_all(analysts: int, quota: int, rng: np.random.Generator) -> int:
    """How many draws one run takes until everybody has been drawn as often as the quota says."""
    drawn = np.zeros(0, dtype=np.int64)
    while True:
        drawn = np.append(drawn, rng.integers(analysts, size=2 * analysts * quota))
        counts = np.bincount(drawn, minlength=analysts)
        if counts.min() >= quota:
            by_analyst = np.argsort(drawn, kind="stable")
            return int(by_analyst[np.cumsum(counts) - counts + quota - 1].max()) + 1


def _growth(limit: LimitNumbers, name: str) -> Finding:
    alone, together = limit.alone[name], limit.together[name]
    growth = mean(together / np.maximum(alone, 1))
    spent = bool(np.all(together == limit.hard))
    holds = None if spent else below(growth, limit.limit.analysts)
    errors = "realised" if name in REALISED else "expected"
    return Finding(
        {"mechanism": name},
        growth,
        holds,
        f"{alone.mean():.4g} and {together.mean():.4g} of {limit.hard} within alpha, {errors}",
    )
