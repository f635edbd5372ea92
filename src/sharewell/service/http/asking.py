"""Asking and quoting: the way that most requests go, so nothing on it that need not be."""

from __future__ import annotations

from sharewell import wire
from sharewell.errors import SharewellError
from sharewell.service.http.call import Call
from sharewell.service.http.operations import DATASET, Operation
from sharewell.service.http.problems import told
from sharewell.service.http.replies import Reply, said


async def ask(call: Call) -> Reply:
    """Ask a question, and get its answer.

    The answer comes at the next release slot after it is there. Where a scheduler makes the question
    wait for its turn, the reply is 202 and `Location` names the ticket. Asked again with the same key, a
    question has the same answer and costs nothing more, also where the first reply was lost.
    """
    window, holder = call.visitor("analyst")
    question = await call.read(wire.Question)
    desk, metrics = window.desk, call.reception.metrics
    try:
        # What may take long is done in a thread: everybody else would wait for it.
        if desk.is_light(question.sql):
            ticket = desk.submit(holder.name, question)
            await window.slots.ready(ticket)
            shown = desk.shown(ticket)
        else:
            ticket = await window.in_thread(holder, desk.submit, holder.name, question)
            await window.slots.ready(ticket)
            shown = await window.in_thread(holder, desk.shown, ticket)
    except SharewellError:
        metrics.asked(desk.name, "refused")
        raise
    metrics.asked(desk.name, shown.state)
    if shown.problem is not None:
        window.note_ledger(works=not shown.problem.code.startswith("ledger."))
        return told(shown.problem, call.request_id)
    window.note_ledger(works=True)
    if shown.state == "waiting":
        path = f"/v1/datasets/{desk.name}/tickets/{shown.number}"
        return said(shown, 202, ((b"location", path.encode()),))
    return said(shown)


async def quote(call: Call) -> Reply:
    """Say what a question would cost, and how far off its answers may be; spends nothing.

    `pay` and `key` of the question play no part. A quote comes in a release slot, too: it shows what
    others have bought.
    """
    window, holder = call.visitor("analyst")
    question = await call.read(wire.Question)
    await window.slots.next()
    desk, quotes = window.desk, window.quotes
    if desk.is_light(question.sql) and quotes.are_quick:
        found = quotes.timed(desk.quote_at_once, holder.name, question.sql)
        if found is not None:
            return said(found)
    found = await window.in_thread(holder, quotes.timed, desk.quote, holder.name, question.sql)
    await window.slots.next()
    return said(found)


OPERATIONS = (
    Operation(
        "POST",
        f"{DATASET}/ask",
        ask,
        {
            200: ("The answer.", wire.Ticket),
            202: ("It waits for its turn. `Location` names the ticket.", wire.Ticket),
        },
        for_="analysts",
        body=wire.Question,
        problems=(402, 409),
    ),
    Operation(
        "POST",
        f"{DATASET}/quote",
        quote,
        {200: ("The quote.", wire.Quote)},
        for_="analysts",
        body=wire.Question,
    ),
)
