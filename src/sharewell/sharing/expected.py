"""Expected errors: how far off every answer of a stream will be, before a single row is read."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from fractions import Fraction
from functools import partial
from typing import Any, get_args

from sharewell.errors import SharingError
from sharewell.mechanism.cache_reconstruct import Answers, CacheReconstruct
from sharewell.mechanism.strategy import Strategy
from sharewell.privacy.budget import Amount, Budget, Currency, amount
from sharewell.query.block import Neighbours
from sharewell.query.domain import Domain
from sharewell.query.linear import LinearQuery
from sharewell.sharing.collective import Collective
from sharewell.sharing.stream import Ask, Entry, Join, read_stream


def expected_errors(
    domain: Domain,
    stream: Iterable[Any],
    shares: Mapping[str, Amount],
    *,
    seed: Strategy,
    seed_fraction: Amount,
    query_budget: Amount,
    privacy: Currency = "pure",
    answers: Answers = "estimate",
    present: Collection[str] | None = None,
    neighbours: Neighbours = "add-remove",
    buy_seed_rows: bool = False,
) -> list[float | tuple[float, ...] | None]:
    """The exact standard error of every answer that Seeded Cache and Reconstruct gives to a stream.

    One item an entry: a number for a query, one number a query for a block, and None for those who
    come or leave and for analysts who are not `present`. Shares and prices are in the currency of
    `privacy`: epsilon, or rho for "zcdp".

    Privacy: costs nothing; no row is read.

    >>> from sharewell import Domain, Integer, LinearQuery
    >>> from sharewell.mechanism import seed
    >>> ages = Domain([Integer("age", 0, 85)])
    >>> minors = LinearQuery.of(ages, age=range(18))
    >>> settings = dict(seed=seed.identity(ages), seed_fraction="1/2", query_budget="1/10")
    >>> stream = [("ann", minors), ("ben", minors, "free")]
    >>> shares = {"ann": "1/2", "ben": "1/2"}
    >>> [round(error, 1) for error in expected_errors(ages, stream, shares, **settings)]
    [9.1, 9.1]
    >>> alone = expected_errors(ages, stream, shares, **settings, present={"ben"})
    >>> alone[0] is None, round(alone[1], 1)
    (True, 23.9)
    """
    if privacy not in get_args(Currency):
        raise SharingError(f"There is no currency {privacy!r}.", hint='Use "pure" or "zcdp".')
    entries = read_stream(stream)
    exact = {name: amount(share, f"The share of {name}") for name, share in shares.items()}
    _check_present(present, [*exact, *(e.analyst for e in entries if isinstance(e, Join))])
    make = partial(
        CacheReconstruct,
        seed=seed,
        seed_fraction=seed_fraction,
        query_budget=query_budget,
        answers=answers,
        buy_seed_rows=buy_seed_rows,
    )
    # The total is whatever the shares come to: it bounds what can be spent, and no error depends on it.
    late = [amount(e.share, f"The share of {e.analyst}") for e in entries if isinstance(e, Join)]
    total = sum(exact.values(), Fraction(0)) + sum(late, Fraction(0))
    if not total:
        raise SharingError(
            "Nobody holds a share.", hint='Name the analysts: {"ann": "1/2", "ben": "1/2"}.'
        )
    collective = Collective(domain, Budget(privacy, total, total), exact, make, neighbours)
    return [
        errors[0] if errors is not None and _is_single(entry) else errors
        for entry, errors in zip(entries, collective.errors(entries, present), strict=True)
    ]


def _is_single(entry: Entry) -> bool:
    return isinstance(entry, Ask) and isinstance(entry.question, LinearQuery)


def _check_present(present: Collection[str] | None, known: Collection[str]) -> None:
    if isinstance(present, str):
        raise SharingError("`present` is a set of analysts, not a text.", hint=f"Write {{{present!r}}}.")
    if strangers := sorted(set(present or ()) - set(known)):
        raise SharingError(
            f"Nobody called {strangers[0]!r} is in this collective.",
            hint=f"There are {', '.join(known)}.",
        )
