"""The answers to a statement: the steps that compute them, and their stored form."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from fractions import Fraction
from typing import Any

from sharewell.config.service import Service
from sharewell.errors import QueryError, QueryTooComplex, SharewellError
from sharewell.mechanisms.base import Answer, EdgeEstimate, Mechanism, Work
from sharewell.privacy.driver import Step, run_free
from sharewell.privacy.measurement import MeasureRequest
from sharewell.query.block import ParallelBlock
from sharewell.query.statement import EdgeSums, Statement

Answers = tuple[Answer, ...]

#: About how many elementary operations one core does in a second, and how long it takes to make an
#: answer of each number, to store it and to show it.
OPERATIONS_PER_SECOND, SECONDS_PER_NUMBER = 1e9, 2e-4
#: For each term of a linear combination, whose error is computed with its answer.
SECONDS_PER_TERM = 1.2e-5
#: For each function whose range is found for a number that is shown, and for each that is evaluated.
SECONDS_PER_RANGE, SECONDS_PER_FUNCTION = 1e-5, 2e-6
#: The maximum number of terms of a statement's linear combinations whose covariances a quote has.
MAX_QUOTED_TERMS = 1024


def answer_steps(
    mechanism: Mechanism, statement: Statement, analyst: str, *, pay: bool
) -> Iterator[Step[Answers]]:
    """The steps of all blocks; the last one, which buys nothing, returns the answers of all of them.

    All are estimated after the last purchase, so that their covariances are those of one time.
    """
    found: list[Answers] = []
    for block in statement.blocks:
        yield _collected(mechanism.step(block, analyst, pay=pay), found)
    yield _together(mechanism, statement, analyst, found)


def estimate_seconds(mechanism: Mechanism, statement: Statement, limits: Service, *, pay: bool) -> float:
    """The estimated seconds that a quote or an answer takes; refuses more than the limits allow."""
    seconds = statement.size * SECONDS_PER_NUMBER + sum(map(len, statement.forms)) * SECONDS_PER_TERM
    ranges, functions = statement.computed
    seconds += ranges * SECONDS_PER_RANGE + functions * SECONDS_PER_FUNCTION
    work: list[Work] = []
    if seconds <= limits.max_seconds:
        work += [mechanism.work(block, pay=pay) for block in statement.blocks]
        work += [mechanism.work(block, pay=False) for block in statement.free_blocks]
    seconds += sum(each.operations for each in work) / OPERATIONS_PER_SECOND
    megabytes = max((each.bytes for each in work), default=0.0) / 1e6
    if seconds > limits.max_seconds or megabytes > limits.max_megabytes:
        takes = f"{seconds:,.0f}" if seconds >= 10 else f"{seconds:.2g}"
        raise QueryTooComplex(
            f"Computing this takes about {takes} s and {megabytes:,.0f} MB; the limits are "
            f"{limits.max_seconds:g} s and {limits.max_megabytes:,} MB.",
            hint="Nothing was spent. Group by fewer columns, or split the question.",
        )
    return seconds


def require_exact(mechanism: Mechanism, statement: Statement, analyst: str) -> None:
    """Refuse to sell an answer that could not be as good as what is paid for."""
    if not all(mechanism.can_sell(block, analyst) for block in statement.blocks):
        raise QueryError(
            "The seed is far too imprecise for this question: double precision cannot combine it with a "
            "paid answer.",
            hint="Nothing was spent. Ask for the free answer, or about fewer cells at a time. The "
            "curator can begin a dataset with a larger `seed_fraction`, or with 0.",
        )


def would_buy(mechanism: Mechanism, statement: Statement, analyst: str) -> bool:
    """Whether a mechanism would buy something for a statement; spends nothing."""
    for block in statement.blocks:
        with closing(mechanism.step(block, analyst)) as step:
            if isinstance(next(step), MeasureRequest):
                return True
    return False


def free_answers(mechanism: Mechanism, block: ParallelBlock, analyst: str) -> Answers | None:
    """What a block is answered with for nothing; None where a mechanism cannot."""
    with suppress(SharewellError):
        return run_free(mechanism.step(block, analyst, pay=False))
    return None


def released_answers(mechanism: Mechanism, statement: Statement, analyst: str) -> Answers | None:
    """What a statement is answered with for nothing; None where a mechanism cannot.

    Without the covariances of long linear combinations: a quote must be quick.

    Privacy: post-processes estimates that every analyst can have for nothing.
    """
    found = [free_answers(mechanism, block, analyst) for block in statement.blocks]
    answers = [each for each in found if each is not None]
    if len(answers) < len(found):
        return None
    if sum(map(len, statement.forms)) > MAX_QUOTED_TERMS:
        return tuple([answer for part in answers for answer in part])
    return run_free(_together(mechanism, statement, analyst, answers))


def _collected(step: Step[Answers], found: list[Answers]) -> Step[Answers]:
    """A step that keeps its answers for the last step of its statement."""
    answers = yield from step
    found.append(answers)
    return answers


def _together(
    mechanism: Mechanism, statement: Statement, analyst: str, found: list[Answers]
) -> Step[Answers]:
    """The last step of a statement: the answers of all blocks, with what they have in common.

    Privacy: post-processes what was released before, and buys nothing.
    """
    yield None
    parts = [list(answers) for answers in found]
    if mechanism.best_estimates:
        _estimate_again(mechanism, statement, analyst, parts)
    for left, right in statement.pairs:
        with suppress(SharewellError):
            blocks = statement.blocks[left], statement.blocks[right]
            covariances = mechanism.covariances(*blocks, analyst)
            for row, each in enumerate([] if covariances is None else covariances.tolist()):
                if math.isfinite(each):
                    before = parts[left][row]
                    more = (*before.covariances, (right, each))
                    parts[left][row] = replace(before, covariances=more)
    if statement.moments:
        _add_moments(mechanism, statement, analyst, parts)
    for place, sums in enumerate(statement.edge_sums):
        count = statement.count_of(place)
        for row, limits in enumerate(_limits(mechanism, sums, count, analyst)):
            before = parts[sums.block][row]
            parts[sums.block][row] = replace(before, edges=(*before.edges, (place, limits)))
    changed = mechanism.curator.source.changed
    return tuple(
        [replace(each, source_changed=True) if changed else each for part in parts for each in part]
    )


def _estimate_again(
    mechanism: Mechanism, statement: Statement, analyst: str, parts: list[list[Answer]]
) -> None:
    """Replace estimates that were made before the last purchase."""
    bought = [at for at, part in enumerate(parts) if any(a.charge is not None for a in part)]
    for at in range(bought[-1] if bought else 0):
        again = free_answers(mechanism, statement.blocks[at], analyst)
        if again is not None:
            parts[at] = [
                replace(
                    before,
                    value=after.value,
                    standard_error=after.standard_error,
                    interval=after.interval,
                )
                for before, after in zip(parts[at], again, strict=True)
            ]


def _add_moments(
    mechanism: Mechanism, statement: Statement, analyst: str, parts: list[list[Answer]]
) -> None:
    """Add the variances and covariances of linear combinations, each to its first answer."""
    queries = statement.form_queries
    with suppress(SharewellError):
        left, right = ([queries[pair[side]] for pair in statement.moments] for side in (0, 1))
        found = mechanism.covariances(left, right, analyst)
        for place, each in enumerate([] if found is None else found.tolist()):
            if math.isfinite(each):
                first = statement.forms[statement.moments[place][0]][0][0]
                block = bisect_right(statement.starts, first) - 1
                row = first - statement.starts[block]
                before = parts[block][row]
                parts[block][row] = replace(before, moments=(*before.moments, (place, each)))


def _limits(
    mechanism: Mechanism, sums: EdgeSums, count: ParallelBlock | None, analyst: str
) -> Iterator[EdgeEstimate]:
    """The sums of lower and of upper edges; they may be off by any amount where they are not known."""
    edges = sums.lower, sums.upper
    lower, upper = (free_answers(mechanism, block, analyst) for block in edges)
    shared = [_covariances(mechanism, block, count, analyst) for block in edges]
    for at in range(len(sums.lower)):
        low, high = lower and lower[at].interval, upper and upper[at].interval
        if not (low and high and lower and upper and all(map(math.isfinite, (*low, *high)))):
            yield EdgeEstimate(0.0, math.inf, 0.0, math.inf)
            continue
        least, most = lower[at].value, upper[at].value
        errors = lower[at].standard_error, upper[at].standard_error
        together = (None if each is None or math.isnan(each[at]) else each[at] for each in shared)
        yield EdgeEstimate(least, least - low[0], most, high[1] - most, *errors, *together)


def _covariances(
    mechanism: Mechanism, block: ParallelBlock, count: ParallelBlock | None, analyst: str
) -> list[float] | None:
    """The covariances of sums with the counts that they are divided by, if there are any."""
    if count is None:
        return None
    with suppress(SharewellError):
        found = mechanism.covariances(block, count, analyst)
        return None if found is None else found.tolist()
    return None


# The stored form


def to_plain(answer: Answer) -> dict[str, Any]:
    """An answer as plain data for the ledger; infinite numbers are written as text.

    Covariances, moments and edges are left out where there are none, as in older ledgers.
    """
    more: dict[str, Any] = {}
    if answer.covariances:
        more["covariances"] = [[block, each] for block, each in answer.covariances]
    if answer.moments:
        more["moments"] = [[place, each] for place, each in answer.moments]
    if answer.edges:
        more["edges"] = [[place, *map(_write, edges)] for place, edges in answer.edges]
    if answer.source_changed:
        more["source_changed"] = True
    return {
        "value": _write(answer.value),
        "standard_error": _write(answer.standard_error),
        "interval": None if answer.interval is None else [_write(end) for end in answer.interval],
        "source": answer.source,
        "cost": str(answer.cost),
        "payer": answer.payer,
        "charge": answer.charge,
        **more,
    }


def from_plain(stored: Mapping[str, Any]) -> Answer:
    """The answer that `to_plain` wrote."""
    ends: Sequence[Any] | None = stored["interval"]
    value = float(stored["value"])
    return Answer(
        math.nan if math.isnan(value) else value,  # The same object for all, so that answers are equal.
        _read(stored["standard_error"]),
        None if ends is None else (float(ends[0]), float(ends[1])),
        stored["source"],
        Fraction(stored["cost"]),
        stored["payer"],
        stored["charge"],
        tuple([(block, each) for block, each in stored.get("covariances", ())]),
        tuple([(each[0], EdgeEstimate(*map(_read, each[1:]))) for each in stored.get("edges", ())]),
        tuple([(place, each) for place, each in stored.get("moments", ())]),
        bool(stored.get("source_changed", False)),
    )


def _read(number: Any) -> Any:
    return None if number is None else float(number)


def _write(number: float | None) -> float | str | None:
    return number if number is None or math.isfinite(number) else str(number)
