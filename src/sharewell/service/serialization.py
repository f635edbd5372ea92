"""What a dataset service sends beside results and quotes: datasets, budgets, certificates and events."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import orjson

from sharewell import wire
from sharewell.config.config import Config
from sharewell.errors import LedgerCorrupt, SharewellError
from sharewell.mechanisms.base import Mechanism
from sharewell.privacy.ledger import SECRET, Answered, AnsweredFree, Ending, Event
from sharewell.query.attribute import Attribute
from sharewell.query.domain import Domain
from sharewell.query.measure import Measure
from sharewell.service.intervals import finite, least_reliable
from sharewell.service.ledger.codec import encode, read_answers
from sharewell.service.ledger.durable import DurableLedger
from sharewell.service.state import PublicState
from sharewell.sharing.certificate import Promise, Report, Standing, promises
from sharewell.sharing.collective import DryRun

#: How many questions the activity shows at most, among how many of the newest events, and how many bytes
#: of free answers it reads for that.
ACTIVITY_QUESTIONS, ACTIVITY_EVENTS, ACTIVITY_BYTES = 400, 1_000, 4_000_000
#: Seconds that the times of questions are rounded down to: more than any `service.release_every`.
MINUTE = 60

# Datasets and certificates


def dataset_info(config: Config, mechanism: Mechanism | None = None) -> wire.DatasetInfo:
    """What is public about a dataset; all of it comes from the configuration."""
    budget, price = config.budget, config.make.price
    # A mechanism without data knows its name and its promises as well as the real one.
    mechanism = mechanism or DryRun(config.collective).mechanism
    return wire.DatasetInfo(
        name=config.name,
        attributes=tuple(map(attribute_info, config.domain.attributes)),
        measures=tuple(measure_info(each, config.domain) for each in config.domain.measures),
        cells=config.domain.cells,
        currency=budget.currency,
        epsilon=budget.epsilon,
        delta=budget.delta,
        total=budget.total,
        neighbours=config.neighbours,
        privacy_unit=config.privacy_unit,
        population=tomllib.loads(config.text)["dataset"].get("population"),
        error_threshold=config.error_threshold,
        mechanism=mechanism.name,
        query_budget=price,
        scheduler=config.scheduler_name,
        release_every=config.service.release_every,
        promises=promise_infos(promises(mechanism, config.scheduler())),
    )


def measure_info(measure: Measure, domain: Domain) -> wire.MeasureInfo:
    """What is public about a column whose values are summed."""
    return wire.MeasureInfo(
        name=measure.name,
        low=float(measure.low),
        high=float(measure.high),
        step=float(measure.step),
        nullable=measure.nullable,
        products=domain.multiplied_with(measure.name),
    )


def attribute_info(attribute: Attribute) -> wire.AttributeInfo:
    """What is public about a column; its kind is the configuration's word for it."""
    return wire.AttributeInfo(
        name=attribute.name,
        kind=type(attribute).__name__.lower(),
        size=attribute.size,
        labels=attribute.labels,
        bins={name: bins.labels for name, bins in attribute.bins_by_name.items()},
    )


def promise_infos(known: Iterable[Promise]) -> tuple[wire.PromiseInfo, ...]:
    """What is promised."""
    return tuple(
        wire.PromiseInfo(
            desideratum=each.desideratum,
            meaning=each.meaning,
            status=each.status,
            assumptions=each.assumptions,
            page=each.page,
        )
        for each in known
    )


def budget_status(config: Config, public: PublicState, analyst: str) -> wire.BudgetStatus:
    """An analyst's share, and what is left of it, as published."""
    curator, price = public.mechanism.curator, config.make.price
    share, left = curator.share(analyst), curator.left(analyst)
    return wire.BudgetStatus(
        analyst=analyst,
        currency=config.budget.currency,
        part=share / config.budget.total,
        share=share,
        spent=curator.spent(analyst),
        left=left,
        asked=public.asked.get(analyst, 0),
        waiting=public.waiting.get(analyst, 0),
        done=analyst in public.done,
        questions_left=None if price is None else left // price,
    )


def certificate_report(report: Report, analyst: str | None = None) -> wire.CertificateReport:
    """A certificate: of one analyst, or with None of all.

    An analyst's own says how they fare, and not which other analyst does well or badly.
    """
    # An analyst who has just joined is not in it yet, which does not make it inexact.
    exact = report.exact
    if analyst is not None:
        own = tuple(standing for standing in report.standings if standing.analyst == analyst)
        report = replace(report, standings=own)
    known = bool(report.standings)
    return wire.CertificateReport(
        mechanism=report.mechanism,
        scheduler=report.scheduler,
        error_threshold=report.error_threshold,
        entries=report.entries,
        behind=report.behind,
        checked=report.checked,
        contradicted=report.contradicted,
        exact=exact,
        holds=report.holds,
        worst_ratio=finite(report.worst_ratio) if known else None,
        worst_interference=finite(report.worst_interference) if known else None,
        analysts=tuple(_standing(each, for_curator=analyst is None) for each in report.standings),
        promises=promise_infos(report.promises),
    )


def _standing(standing: Standing, *, for_curator: bool) -> wire.AnalystStanding:
    return wire.AnalystStanding(
        analyst=standing.analyst,
        answers=standing.answers,
        here=standing.here,
        alone=standing.alone,
        without=dict(standing.without) if for_curator else None,
        ratio=finite(standing.ratio),
        interference=finite(standing.interference),
        worse_answers=standing.worse_answers,
    )


# Events and refusals


def event_message(number: int, event: Event) -> wire.LedgerEvent:
    """An event as the ledger stores it."""
    stored = orjson.loads(encode(event))
    return wire.LedgerEvent(number=number, kind=stored["kind"], content=stored["data"])


def event_page(ledger: DurableLedger, after: int, limit: int) -> wire.EventPage:
    """A page of a ledger, without its secret events."""
    head = ledger.head
    page: list[wire.LedgerEvent] = []
    last = after
    for number, event in enumerate(ledger.events(after + 1), start=after + 1):
        if number >= head.count or len(page) == limit:
            break
        last = number
        if not isinstance(event, SECRET):
            page.append(event_message(number, event))
    more = last + 1 < head.count
    return wire.EventPage(head=str(head), events=tuple(page), next=last if more else None)


def activity(ledger: DurableLedger) -> wire.Activity:
    """The newest questions of a ledger: the sources of their answers, and the minutes of asking."""
    events = ledger.events(max(0, ledger.head.count - ACTIVITY_EVENTS))
    endings = [event for event in events if isinstance(event, Ending)][-ACTIVITY_QUESTIONS:]
    times = ledger.times([ending.asked for ending in endings])
    sources: list[str] = []
    room = ACTIVITY_BYTES
    for ending in reversed(endings):
        if isinstance(ending, AnsweredFree):
            room -= ending.length
            sources.append(_free_source(ledger, ending.asked) if room >= 0 else "free")
        else:
            sources.append(_source(ending.answers) if isinstance(ending, Answered) else "refused")
    return wire.Activity(
        sources=tuple(reversed(sources)),
        times=tuple(int(times[ending.asked] // MINUTE) * MINUTE for ending in endings),
    )


def _free_source(ledger: DurableLedger, asked: int) -> str:
    """The source of an answer that is stored beside the chain; verification reports a damaged one."""
    with suppress(LedgerCorrupt):
        found = ledger.question(asked)
        if found and isinstance(found.ending, AnsweredFree):
            return _source(read_answers(found.ending))
    return "free"


def _source(answers: Sequence[Mapping[str, Any]]) -> str:
    """The source of an answer: a measurement if any part is one, else its least reliable part's."""
    sources = {answer["source"] for answer in answers} or {"public"}
    return "measured" if "measured" in sources else least_reliable(sources)


def problem(error: Exception) -> wire.Problem:
    """Why a question was refused; of unexpected errors, only that it was."""
    if not isinstance(error, SharewellError):
        return wire.Problem(code=SharewellError.code, message="The question could not be answered.")
    return wire.Problem.of(error)


# Settings


def compare_settings(config: Config) -> wire.SettingsComparison:
    """The settings of a configuration, which are in the ledger, beside those that its file has now."""
    try:
        now = _flatten(tomllib.loads(config.path.read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return wire.SettingsComparison(changes=(), readable=False)
    then = _flatten(tomllib.loads(config.text))
    changes = [
        wire.SettingChange(setting=key, ledger=then.get(key), file=now.get(key))
        for key in sorted(then.keys() | now.keys())
        if then.get(key) != now.get(key)
    ]
    return wire.SettingsComparison(changes=tuple(changes))


def _flatten(table: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    """The values of a TOML document by their dotted keys."""
    found: dict[str, str] = {}
    for key, value in table.items():
        if isinstance(value, Mapping):
            found |= _flatten(value, f"{prefix}{key}.")
        else:
            found[f"{prefix}{key}"] = str(value)
    return found
