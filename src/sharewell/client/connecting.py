"""The three ways to a session: a server, a server from an event loop, and a file in this process."""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path

from sharewell.client.address import read_address, read_token, read_verify
from sharewell.client.async_session import AsyncSession
from sharewell.client.core import Core
from sharewell.client.retry import Patience
from sharewell.client.session import Session
from sharewell.errors import RequestError

Verify = bool | str | Path | ssl.SSLContext


def connect(
    url: str | None = None,
    token: str | None = None,
    *,
    verify: Verify = True,
    allow_http: bool = False,
    timeout: float = 15.0,
    patience: float = 60.0,
) -> Session:
    """Connect to a server, and see at once whether the token opens something there.

    Without a url or a token, those of SHAREWELL_URL and SHAREWELL_TOKEN are taken. `verify` may name a
    file with the certificates of one's own authority. A token goes over plain http to this machine only,
    unless `allow_http`. What fails on the way, or takes longer than `timeout`, is tried again for up to
    `patience` seconds.
    """
    from sharewell.client.http import Http

    address = read_address(url, allow_http=allow_http)
    transport = Http(address, read_token(token), read_verify(verify))
    session = Session(Core(Patience(patience, timeout)), transport)
    try:
        session._run(session._core.greet())
    except BaseException:
        session.close()
        raise
    return session


def connect_async(
    url: str | None = None,
    token: str | None = None,
    *,
    verify: Verify = True,
    allow_http: bool = False,
    timeout: float = 15.0,
    patience: float = 60.0,
) -> AsyncSession:
    """Connect to a server from an event loop, with `async with`; see `connect`.

    Nothing is sent before the session is entered or first used.
    """
    from sharewell.client.http import AsyncHttp

    address = read_address(url, allow_http=allow_http)
    transport = AsyncHttp(address, read_token(token), read_verify(verify))
    return AsyncSession(Core(Patience(patience, timeout)), transport)


def open(path: str | Path, analyst: str | None = None) -> Session:
    """Open a `sharewell.toml` in this process, without a server, as one of its analysts.

    The ledger is the file's own, so that what is spent here is spent for good; it is held until the
    session is closed, and nobody else can serve the dataset meanwhile.
    """
    from sharewell.client.local import AtDesk
    from sharewell.config import read_config
    from sharewell.service.desk import Desk

    desk = Desk.open(read_config(path))
    try:
        who = _chosen(analyst, desk.broker.analysts)
        session = Session(Core(Patience()), AtDesk(desk, who))
        session._run(session._core.greet())
        return session
    except BaseException:
        desk.close()
        raise


def _chosen(analyst: str | None, analysts: Sequence[str]) -> str:
    """Who is meant, where that is clear."""
    if analyst is not None and analyst in analysts:
        return analyst
    names = ", ".join(analysts) or "nobody"
    if analyst is not None:
        near = get_close_matches(analyst, analysts, n=1)
        hint = f"Did you mean {near[0]}?" if near else f"There are {names}."
        raise RequestError(f"There is no analyst called {analyst!r}.", hint=hint)
    if len(analysts) != 1:
        raise RequestError(
            f"The dataset has {len(analysts)} analysts: {names}.",
            hint=f"Say whose questions these are: analyst={analysts[0]!r}." if analysts else "",
        )
    return analysts[0]
