"""Tickets: looking after a question that waits, by long polls or by a stream of events."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from sharewell import wire
from sharewell.errors import Closed, NotFound
from sharewell.service.access import Holder
from sharewell.service.http.call import Call, Gone
from sharewell.service.http.operations import DATASET, Operation
from sharewell.service.http.parameters import WAIT
from sharewell.service.http.reception import Window, closing
from sharewell.service.http.replies import Reply, Stream, said
from sharewell.service.shown import show_problem
from sharewell.service.ticket import Ticket

#: How often a stream looks whether a question has moved up, in seconds.
LOOK_EVERY = 1.0
#: How long a stream may be silent, in seconds: proxies cut off what seems to be dead.
BEAT_EVERY = 15.0
HEARTBEAT = b": still waiting\n\n"


async def ticket(call: Call) -> Reply:
    """Show one of one's own questions; with `wait`, once it is answered or the time is up.

    A refused question is shown with state `refused` and the problem; the status is 200.
    """
    window, holder = call.visitor("analyst")
    seconds = WAIT.of(call)
    # Whether it is there, and answered, is told in release slots only, whoever asks how often.
    await window.slots.next()
    found = _own(call, window, holder)
    if seconds and not found.done:
        with window.watching(holder):
            if not await _settled(call, window, found, seconds):
                raise Gone
    shown = await _shown(window, holder, found)
    if _is_left_open(shown) or (seconds and shown.state == "waiting" and call.reception.closing):
        raise closing()
    return said(shown)


async def ticket_events(call: Call) -> Stream:
    """Follow one of one's own questions until it is answered or refused, as server-sent events.

    `position` comes at the start and whenever the question has moved up; `answered` or `refused` ends
    the stream. The data of all three is a ticket. `closed`, with a problem as its data, ends it where
    the service closes. Comments come in between, so that nobody takes the connection for dead.
    """
    window, holder = call.visitor("analyst")
    await window.slots.next()
    found = _own(call, window, holder)
    with window.watching(holder):
        # Refused here, it is a problem; in the stream, whose status has been sent, it could be none.
        pass
    return Stream(_events(call, window, holder, found))


async def _events(call: Call, window: Window, holder: Holder, found: Ticket) -> AsyncIterator[bytes]:
    said_last: int | None = None
    silent = 0.0
    with window.watching(holder):
        await window.slots.next()
        while True:
            shown = await _shown(window, holder, found)
            if _is_left_open(shown) or (call.reception.closing and shown.state == "waiting"):
                yield _event("closed", show_problem(closing()))
                return
            if shown.state != "waiting":
                yield _event(shown.state, shown)
                return
            if shown.position != said_last:
                said_last, silent = shown.position, 0.0
                yield _event("position", shown)
            elif silent >= BEAT_EVERY:
                silent = 0.0
                yield HEARTBEAT
            if not await _settled(call, window, found, LOOK_EVERY):
                return
            silent += LOOK_EVERY


async def _shown(window: Window, holder: Holder, found: Ticket) -> wire.Ticket:
    """A ticket as it stands; where that is much work, beside the loop."""
    if window.desk.is_light(found.sql):
        return window.desk.shown(found)
    return await window.in_thread(holder, window.desk.shown, found)


async def _settled(call: Call, window: Window, found: Ticket, seconds: float) -> bool:
    """Wait until a question is done, time is up or the service closes; false if the client leaves."""
    settled = window.slots.done(found, seconds)
    gone = asyncio.ensure_future(call.until_gone())
    try:
        await asyncio.wait((settled, gone), return_when=asyncio.FIRST_COMPLETED)
        return not gone.done()
    finally:
        settled.cancel()
        gone.cancel()


def _is_left_open(shown: wire.Ticket) -> bool:
    """Whether a question only seems to be refused: the service closes, and the ledger keeps it."""
    return shown.problem is not None and shown.problem.code == Closed.code


def _own(call: Call, window: Window, holder: Holder) -> Ticket:
    """The ticket that the path names; a number that cannot be one is nobody's ticket."""
    number = call.path_params["number"]
    if not (number.isascii() and number.isdigit() and len(number) <= 18):
        raise NotFound(
            "There is no ticket of that number.", hint="GET questions lists all of one's own."
        )
    return window.desk.ticket(holder.name, int(number))


def _event(name: str, message: wire.Message) -> bytes:
    return f"event: {name}\ndata: {message.model_dump_json()}\n\n".encode()


OPERATIONS = (
    Operation(
        "GET",
        f"{DATASET}/tickets/{{number}}",
        ticket,
        {200: ("The ticket.", wire.Ticket)},
        for_="analysts",
        parameters=(WAIT,),
    ),
    Operation(
        "GET",
        f"{DATASET}/tickets/{{number}}/events",
        ticket_events,
        {200: ("A stream of events.", "text/event-stream")},
        for_="analysts",
    ),
)
