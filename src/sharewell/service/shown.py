"""What is shown: a dataset, a certificate, an event and a refusal, in the words of the wire."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any

import orjson

from sharewell import wire
from sharewell.config.config import Config
from sharewell.errors import SharewellError
from sharewell.privacy.ledger import SECRET, Event
from sharewell.query.attribute import Attribute
from sharewell.service.ledger.codec import encode
from sharewell.service.ledger.durable import DurableLedger
from sharewell.sharing.collective import Rehearsal
from sharewell.sharing.promises import Promise, promises
from sharewell.sharing.report import Report, Standing


def show_dataset(config: Config) -> wire.Dataset:
    """What is public about a dataset; all of it comes from the configuration."""
    budget = config.budget
    # A mechanism without data knows its name and its promises as well as the real one.
    mechanism = Rehearsal(config.collective).mechanism
    price = price_of(config)
    return wire.Dataset(
        name=config.name,
        attributes=tuple(map(show_attribute, config.domain.attributes)),
        cells=config.domain.size,
        currency=budget.currency,
        epsilon=str(budget.epsilon),
        delta=str(budget.delta),
        total=str(budget.total),
        neighbours=config.neighbours,
        privacy_unit=config.privacy_unit,
        population=tomllib.loads(config.text)["dataset"].get("population"),
        error_threshold=config.error_threshold,
        mechanism=mechanism.name,
        query_budget=None if price is None else str(price),
        scheduler=config.scheduler_name,
        release_every=config.service.release_every,
        promises=show_promises(promises(mechanism, config.scheduler())),
    )


def show_attribute(attribute: Attribute) -> wire.Attribute:
    """What is public about a column; its kind is the configuration's word for it."""
    return wire.Attribute(
        name=attribute.name,
        kind=type(attribute).__name__.lower(),
        size=attribute.size,
        labels=attribute.labels,
        bins={name: bins.labels for name, bins in attribute.bins_by_name.items()},
    )


def price_of(config: Config) -> Fraction | None:
    """What every paid question costs, where the mechanism has one price."""
    make: Any = config.make
    while isinstance(make, partial):
        if "query_budget" in make.keywords:
            return Fraction(make.keywords["query_budget"])
        # An independent mechanism is made of one for each analyst, which have the price.
        make = make.keywords.get("make")
    return None


def show_certificate(report: Report, analyst: str | None = None) -> wire.Certificate:
    """A certificate: one analyst's own, or with None everybody's.

    An analyst's says how they fare themselves, and not who else does well or badly.
    """
    if analyst is not None:
        own = tuple(standing for standing in report.standings if standing.analyst == analyst)
        # An analyst who has just come is not in it yet, which is not to say that it cannot be computed.
        exact, report = report.exact, replace(report, standings=own)
    else:
        exact = report.exact
    known = bool(report.standings)
    return wire.Certificate(
        mechanism=report.mechanism,
        scheduler=report.scheduler,
        error_threshold=report.error_threshold,
        entries=report.entries,
        exact=exact,
        holds=report.holds if known else None,
        worst_ratio=_finite(report.worst_ratio) if known else None,
        worst_interference=_finite(report.worst_interference) if known else None,
        analysts=tuple(_standing(each, for_curator=analyst is None) for each in report.standings),
        promises=show_promises(report.promises),
    )


def _standing(standing: Standing, *, for_curator: bool) -> wire.Standing:
    return wire.Standing(
        analyst=standing.analyst,
        answers=standing.answers,
        here=standing.here,
        alone=standing.alone,
        without=dict(standing.without) if for_curator else None,
        ratio=_finite(standing.ratio),
        interference=_finite(standing.interference),
        worse_answers=standing.worse_answers,
    )


def show_promises(known: Iterable[Promise]) -> tuple[wire.Promise, ...]:
    """What is promised."""
    return tuple(
        wire.Promise(
            desideratum=each.desideratum,
            meaning=each.meaning,
            status=each.status,
            assumptions=each.assumptions,
            page=each.page,
        )
        for each in known
    )


def show_event(number: int, event: Event) -> wire.Event:
    """An event as the ledger stores it."""
    stored = orjson.loads(encode(event))
    return wire.Event(number=number, kind=stored["kind"], content=stored["data"])


def show_events(ledger: DurableLedger, after: int, limit: int) -> wire.Events:
    """A page of a ledger, without what is secret in it."""
    head = ledger.head
    shown: list[wire.Event] = []
    last = after
    for number, event in enumerate(ledger.events(after + 1), start=after + 1):
        if number >= head.count or len(shown) == limit:
            break
        last = number
        if not isinstance(event, SECRET):
            shown.append(show_event(number, event))
    more = last + 1 < head.count
    return wire.Events(head=str(head), events=tuple(shown), next=last if more else None)


def show_problem(error: Exception) -> wire.Problem:
    """Why something was refused; of what is no error of ours, nothing but that it was."""
    if not isinstance(error, SharewellError):
        return wire.Problem(code=SharewellError.code, message="The question could not be answered.")
    return wire.Problem.of(error)


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None
