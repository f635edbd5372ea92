"""Findings: what is wrong with a configuration, or worth a second look, before anything is spent."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Literal

from sharewell.config.config import Config
from sharewell.config.forecast import Means, Outlook, Settings
from sharewell.config.proposal_text import marks
from sharewell.engine.sources import open_source
from sharewell.engine.vectorize import cell_counts
from sharewell.errors import DomainTooLarge, SharewellError

Level = Literal["error", "warning", "note"]

#: A larger epsilon is worth a second look.
LARGE_EPSILON = 10
#: What leaves more than this of an error makes an answer hardly more precise.
HARDLY = 0.95
#: With more cells, one notices how long a start takes.
MANY_CELLS = 1_000_000
#: How many numbers of lines are listed.
LISTED = 10


@dataclass(frozen=True)
class Finding:
    """One thing: an error keeps the dataset from being served, a warning or a note does not."""

    level: Level
    message: str
    hint: str = ""


def of_error(error: SharewellError) -> Finding:
    """An error as a finding."""
    return Finding("error", error.message, error.hint)


def of_file(config: Config) -> Iterator[Finding]:
    """What the file itself shows."""
    if marked := marks(config.text):
        lines = ", ".join(map(str, marked[:LISTED])) + (", ..." if len(marked) > LISTED else "")
        yield Finding(
            "warning",
            f"{len(marked):,} lines are marked REVIEW: they may still hold something of private rows.",
            f"Write what everybody may know, and delete the mark (lines {lines}).",
        )
    try:
        config.domain.require_dense()
        if config.domain.size > MANY_CELLS:
            yield Finding(
                "note",
                f"To measure {config.domain.size:,} cells takes a while at the first start, and room in "
                "the ledger: four million took more than a minute and 100 MB.",
                "Coarser bins or fewer columns make it less.",
            )
    except DomainTooLarge as error:
        yield of_error(error)
    left = 1 - sum(config.shares.values()) / config.budget.total
    if left > 0:
        yield Finding("note", f"The file leaves {left} of the budget to those who join later.")


def of_budget(config: Config) -> Iterator[Finding]:
    """Whether the budget protects anybody."""
    epsilon = config.budget.epsilon
    if epsilon > LARGE_EPSILON:
        yield Finding(
            "warning",
            f"An epsilon of {float(epsilon):g} promises little: whoever knows all other rows may become "
            "next to certain of one.",
            "Many who publish statistics stay at 1 to 5.",
        )


def of_scheduler(config: Config) -> Iterator[Finding]:
    """Whether somebody may have to wait for ever."""
    if config.scheduler().strict:
        yield Finding(
            "warning",
            "Whoever has no question and does not say `done` keeps everybody else waiting.",
            "Set scheduler.idle_after, in seconds, unless all of them know.",
        )


def of_source(config: Config) -> Iterator[Finding]:
    """What the source's columns and their types show; no row is read."""
    unit = () if config.privacy_unit is None else (config.privacy_unit,)
    try:
        engine = open_source(config.source, (*config.domain.names, *unit), table=config.table)
        with closing(engine):
            # Making the statement refuses columns that cannot hold what is declared; it is never run.
            cell_counts(config.domain, engine.columns, engine.relation, config.privacy_unit)
    except SharewellError as error:
        yield of_error(error)


def of_unit(config: Config) -> Iterator[Finding]:
    """What is counted, and so what is kept private."""
    if config.privacy_unit is None:
        yield Finding(
            "note",
            "Every row is taken for another person.",
            "Where one may have several, set dataset.privacy_unit: else only each row is kept private.",
        )
    else:
        yield Finding(
            "note",
            f"People are counted, and not rows: each {config.privacy_unit} once, in the first of the "
            "cells that it has. So groups that come first have too many.",
            "For exact groups, give every person one row before Sharewell sees them.",
        )


def of_means(config: Config, means: Sequence[Means]) -> Iterator[Finding]:
    """Who cannot pay for anything."""
    price = Settings.of(config).price
    for each in means:
        if each.questions == 0 and price is not None:
            yield Finding(
                "warning",
                f"{each.analyst} cannot pay for a single question, and has only what others know.",
                "Lower mechanism.query_budget or mechanism.seed_fraction.",
            )


def of_outlooks(config: Config, outlooks: Sequence[Outlook]) -> Iterator[Finding]:
    """Whether any answer will be useful, and whether it helps to pay for one."""
    best = [each.typical for look in outlooks for each in (look.free, look.paid) if each is not None]
    if outlooks and min(best, default=float("inf")) > config.error_threshold:
        yield Finding(
            "warning",
            f"No answer is expected to be off by at most budget.error_threshold, "
            f"{config.error_threshold:,g} rows.",
            "Raise it or epsilon, describe fewer cells, or see what `sharewell plan` proposes.",
        )
    both = [(look.free.typical, look.paid.typical) for look in outlooks if look.free and look.paid]
    if both and all(paid > HARDLY * free for free, paid in both):
        yield Finding(
            "warning",
            "To pay for a question makes it hardly more precise than what the seed tells for nothing.",
            "Raise mechanism.query_budget, or see what `sharewell plan` proposes.",
        )
