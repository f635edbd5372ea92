"""Events: a page of the ledger, read where it is stored."""

from __future__ import annotations

from sharewell import wire
from sharewell.config import read_config
from sharewell.errors import RequestError
from sharewell.service.ledger import open_ledger
from sharewell.service.shown import show_events


def read_events(
    where: str | None, name: str, config: str | None, after: int | None, limit: int
) -> wire.Events:
    """The events of a ledger, or of that of a dataset; whoever writes to it is not disturbed."""
    if where is None and config is not None:
        read = read_config(config)
        where, name = read.service.ledger, read.name
    elif where is None or config is not None:
        raise RequestError("Name one ledger.", hint="Give --file, or --config with the dataset's file.")
    with open_ledger(where, name=name, read_only=True) as ledger:
        first = ledger.head.count - limit - 1 if after is None else after
        return show_events(ledger, max(-1, first), limit)
