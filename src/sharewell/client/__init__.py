"""The Python client: the same session over HTTP, from an event loop, or in this process.

::

    connect, connect_async, open, ...          open a session
        Session, AsyncSession, ...             its methods, each one line
            Api                                the protocol, as generators without input or output
                retry                          repeats what may be repeated
                ApiCall                        one request, over HTTP or to a DatasetService
            HttpTransport, AsyncHttpTransport, LocalTransport

A generator of `Api` yields the calls to send and the pauses to take; sessions with and without an event
loop differ only in how they drive it. Methods return the models of `sharewell.wire`.
"""

from sharewell.client.connection import (
    begin,
    connect,
    connect_async,
    connect_curator,
    connect_curator_async,
    open,
    open_curator,
)
from sharewell.client.session import AsyncCuratorSession, AsyncSession, CuratorSession, Session

__all__ = [
    "AsyncCuratorSession",
    "AsyncSession",
    "CuratorSession",
    "Session",
    "begin",
    "connect",
    "connect_async",
    "connect_curator",
    "connect_curator_async",
    "open",
    "open_curator",
]
