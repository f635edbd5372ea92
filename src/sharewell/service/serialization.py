"""What a dataset service sends: results, quotes, certificates and events as messages of the wire."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import orjson

from sharewell import wire
from sharewell.cancellation import checked
from sharewell.config.check import LITTLE_GAIN
from sharewell.config.config import Config
from sharewell.errors import SharewellError
from sharewell.mechanisms.base import Answer, Mechanism, Prospect, Source, total_cost
from sharewell.privacy.ledger import SECRET, Event
from sharewell.query.attribute import Attribute
from sharewell.query.block import Block
from sharewell.query.statement import Aggregate, Average, GroupKey, Projection, Statement
from sharewell.service.ledger.codec import encode
from sharewell.service.ledger.durable import DurableLedger
from sharewell.sharing.certificate import Promise, Report, Standing, promises
from sharewell.sharing.collective import DryRun

#: How much wider an interval must be to hold with 97.5 % instead of 95 %, so that two of them hold at
#: once with 95 %, however their errors are correlated (Bonferroni). Gaussian noise needs
#: 2.2414 / 1.96 = 1.144. One Laplace draw needs ln 40 / ln 20 = 1.231 from the exact 95 % interval, and
#: 2.6085 / 2.06 = 1.267 from the one of `Mechanism.critical`, which lies between those of one draw and
#: of sums of many.
WIDENING = 1.27

#: Where a value may have come from, the least reliable first.
LEAST_RELIABLE_FIRST: tuple[Source, ...] = (
    "synthetic",
    "reconstructed",
    "cached",
    "measured",
    "public",
)

Interval = tuple[float, float]

SHARE_USED_UP = "Not measured: your remaining share does not cover the cost."
GAINS_LITTLE = "Paying would hardly make the answer more precise."


# Results


def result(statement: Statement, answers: Sequence[Answer], *, pay: bool = False) -> wire.Result:
    """A result: one row for each group that HAVING, ORDER BY and LIMIT leave."""
    fields = [_field(output, statement, answers) for output in statement.outputs]
    kept = statement.select_rows([answer.value for answer in answers])
    rows = tuple([tuple([field(row) for field in fields]) for row in kept])
    unpaid = pay and any(answer.source == "reconstructed" for answer in answers)
    payers = {answer.payer for answer in answers if answer.source != "public"}
    return wire.Result(
        columns=columns(statement),
        rows=rows,
        cost=total_cost(answers),
        paid_by=payers.pop() if len(payers) == 1 else None,
        notes=(
            *notes(statement),
            *(_average_notes(rows) if statement.has_average else ()),
            *((SHARE_USED_UP,) if unpaid else ()),
        ),
    )


def notes(statement: Statement) -> tuple[str, ...]:
    """What to know about the numbers of a result."""
    found = [
        f"{column} is stored in bins: sums and averages use each bin's midpoint, and no interval covers "
        "the resulting error."
        for column in statement.midpoint_columns
    ]
    if statement.selects_by_noise:
        found.append("Noisy numbers choose the rows, so the largest values tend to be too large.")
    return tuple(found)


def _average_notes(rows: Sequence[Sequence[Any]]) -> Iterator[str]:
    """Why some averages have no value, or no interval."""
    numbers = [field for row in rows for field in row if isinstance(field, wire.Number)]
    if any(each.value is None and each.source == "public" for each in numbers):
        yield "NULL: the average of an empty set, whatever the rows are."
    if any(each.value is None and each.source != "public" for each in numbers):
        yield "NULL: the noisy count of the average is not positive."
    if any(each.value is not None and each.interval is None for each in numbers):
        yield "An average without an interval can have any value: its count may be 0."


def columns(statement: Statement) -> tuple[wire.ResultColumn, ...]:
    """The columns of a statement's result."""
    return tuple(
        [
            wire.ResultColumn(
                name=each.name, kind="group" if isinstance(each.source, GroupKey) else "number"
            )
            for each in statement.outputs
        ]
    )


def _field(output: Projection, statement: Statement, answers: Sequence[Answer]) -> Callable[[int], Any]:
    """A function from a row to a column's value there."""
    rows = len(statement.group_labels)
    match output.source:
        case GroupKey(labels):
            return labels.__getitem__
        case Aggregate(block):
            return lambda row: number(answers[block * rows + row])
        case Average(total, count):
            return lambda row: mean(answers[total * rows + row], answers[count * rows + row])


def number(answer: Answer) -> wire.Number:
    """One answer."""
    return wire.Number(
        value=_finite(answer.value),
        standard_error=_finite(answer.standard_error),
        interval=answer.interval,
        source=answer.source,
    )


def mean(total: Answer, count: Answer) -> wire.Number:
    """A sum divided by a count; it has no value where the noisy count is not positive.

    It has an interval and no standard error: the quotient of two noisy numbers has no variance, and a
    linear approximation would need the covariance of the two, which is not kept.
    """
    return wire.Number(
        value=_finite(total.value / count.value) if count.value > 0 else None,
        standard_error=None,
        interval=_quotient(total, count),
        source=min(total.source, count.source, key=LEAST_RELIABLE_FIRST.index),
    )


def _quotient(total: Answer, count: Answer) -> Interval | None:
    """The range of the quotient while both numbers lie in their intervals; None where it is unbounded.

    The true quotient lies in it whenever the two true numbers lie in their intervals.
    """
    if total.interval is None or count.interval is None:
        return None
    (low, high), (least, most) = _widened(total), _widened(count)
    # Not only where it crosses 0: a count may then be arbitrarily close to 0.
    if not least > 0 or not all(map(math.isfinite, (low, high, most))):
        return None
    return low / (most if low >= 0 else least), high / (least if high >= 0 else most)


def _widened(answer: Answer) -> Interval:
    low, high = answer.interval or (-math.inf, math.inf)
    below, above = answer.value - low, high - answer.value
    return answer.value - WIDENING * below, answer.value + WIDENING * above


# Quotes


def quote(mechanism: Mechanism, statement: Statement, analyst: str) -> wire.Quote:
    """The quote of a statement: its blocks are bought one after the other, while there is money."""
    funds = mechanism.spendable(analyst)
    cost = Fraction(0)
    paid: list[float | None] = []
    free: list[float | None] = []
    can_pay, can_ask_free, short = True, True, False
    for block in checked(statement.blocks, 1):
        preview = mechanism.preview(block, analyst)
        affordable = preview.paid is not None and cost + preview.paid.cost <= funds
        best = preview.paid if affordable else preview.free
        short |= not affordable
        cost += best.cost if best else 0
        can_pay &= best is not None
        can_ask_free &= preview.free is not None
        paid += _errors(best, block)
        free += _errors(preview.free, block)
    # Where something would have to be bought and nothing can be, paying is not an option.
    can_pay &= not short or cost > 0
    return quote_message(
        statement, cost, funds, paid if can_pay else None, free if can_ask_free else None
    )


def quote_message(
    statement: Statement,
    cost: Fraction,
    funds: Fraction,
    paid: Sequence[float | None] | None,
    free: Sequence[float | None] | None,
) -> wire.Quote:
    """A quote, from the standard errors of all answers with and without paying; None: impossible."""
    groups = len(statement.group_labels)
    gains_little = paid is not None and free is not None and cost > 0 and _gains_little(paid, free)
    return wire.Quote(
        sql=statement.text,
        columns=columns(statement),
        groups=groups if statement.limit is None else min(groups, statement.limit),
        paid=None if paid is None else _offer(statement, cost, paid),
        free=None if free is None else _offer(statement, Fraction(0), free),
        means=funds,
        notes=(*notes(statement), *((GAINS_LITTLE,) if gains_little else ())),
    )


def _errors(prospect: Prospect | None, block: Block) -> tuple[float | None, ...]:
    return prospect.standard_errors if prospect else (None,) * len(block)


def _gains_little(paid: Sequence[float | None], free: Sequence[float | None]) -> bool:
    """Whether paying would buy next to nothing."""
    pairs = list(zip(paid, free, strict=True))
    return all(p is not None and f is not None and p >= LITTLE_GAIN * f for p, f in pairs) and any(free)


def _offer(statement: Statement, cost: Fraction, errors: Sequence[float | None]) -> wire.Offer:
    rows = len(statement.group_labels)
    numbers = [each.source for each in statement.outputs if not isinstance(each.source, GroupKey)]
    return wire.Offer(
        cost=cost,
        errors=tuple([_extremes(each, rows, errors) for each in numbers]),
        averages=tuple([_parts(each, rows, errors) for each in numbers])
        if statement.has_average
        else (),
    )


def _parts(column: Aggregate | Average, rows: int, errors: Sequence[float | None]) -> Interval | None:
    """The largest errors of an average's sums and of its counts; None where one is not known."""
    if isinstance(column, Aggregate):
        return None
    total, count = (_extremes(Aggregate(at), rows, errors) for at in (column.total, column.count))
    return (total[0], count[0]) if total and count else None


def _extremes(column: Aggregate | Average, rows: int, errors: Sequence[float | None]) -> Interval | None:
    """The largest and the smallest error of a column; None for averages, and where one is not known."""
    if isinstance(column, Average):
        return None
    own = errors[column.block * rows : (column.block + 1) * rows]
    known = [error for error in own if error is not None and math.isfinite(error)]
    return (max(known), min(known)) if known and len(known) == len(own) else None


# Datasets and certificates


def dataset_info(config: Config) -> wire.DatasetInfo:
    """What is public about a dataset; all of it comes from the configuration."""
    budget, price = config.budget, config.make.price
    # A mechanism without data knows its name and its promises as well as the real one.
    mechanism = DryRun(config.collective).mechanism
    return wire.DatasetInfo(
        name=config.name,
        attributes=tuple(map(attribute_info, config.domain.attributes)),
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
        worst_ratio=_finite(report.worst_ratio) if known else None,
        worst_interference=_finite(report.worst_interference) if known else None,
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
        ratio=_finite(standing.ratio),
        interference=_finite(standing.interference),
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


def problem(error: Exception) -> wire.Problem:
    """Why a question was refused; of unexpected errors, only that it was."""
    if not isinstance(error, SharewellError):
        return wire.Problem(code=SharewellError.code, message="The question could not be answered.")
    return wire.Problem.of(error)


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
