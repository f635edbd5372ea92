"""The analyst's client: the same session over a server, from an event loop, or in this process.

::

    connect, connect_async, open      the three ways to a session
        Session, AsyncSession         what can be done: one short method each
            Core                      what is said and heard, as talks without input or output
                persist               tries again what may be tried again
                Call                  one request, and how it is made over HTTP or at a desk
            Http, AsyncHttp, AtDesk   what carries calls
        Answer, AnswerTable, ...      what comes back

A talk is a generator that yields the calls it wants to be made and the pauses it wants to be taken. The
two kinds of session differ only in how they drive one.
"""

from sharewell.client.answer import Answer, Estimate
from sharewell.client.async_session import AsyncSession, AsyncTicket
from sharewell.client.connecting import connect, connect_async, open
from sharewell.client.session import Session, Ticket
from sharewell.client.table import AnswerTable
from sharewell.client.told import Analysts, Budget, Certificate, Dataset, Offer, Quote

__all__ = [
    "Analysts",
    "Answer",
    "AnswerTable",
    "AsyncSession",
    "AsyncTicket",
    "Budget",
    "Certificate",
    "Dataset",
    "Estimate",
    "Offer",
    "Quote",
    "Session",
    "Ticket",
    "connect",
    "connect_async",
    "open",
]
