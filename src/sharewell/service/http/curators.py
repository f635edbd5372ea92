"""What curators do: read the ledger, take analysts in, let them go, give out tokens, pause."""

from __future__ import annotations

from sharewell import wire
from sharewell.service.http.call import Call
from sharewell.service.http.operations import DATASET, Operation
from sharewell.service.http.parameters import AFTER, DONATE, LIMIT
from sharewell.service.http.replies import NOTHING, Reply, said


async def ledger(call: Call) -> Reply:
    """Read the ledger, page by page, without what is secret in it."""
    window, holder = call.visitor("curator")
    after, limit = AFTER.of(call), LIMIT.of(call)
    return said(await window.in_thread(holder, window.desk.events, after, limit))


async def analysts(call: Call) -> Reply:
    """List everybody who may ask, how they stand, and what nobody holds yet."""
    window, holder = call.visitor("curator")
    return said(await window.in_thread(holder, window.desk.analysts))


async def join(call: Call) -> Reply:
    """Take in a new analyst, with a part of the budget that nobody holds; the reply has their token."""
    window, holder = call.visitor("curator")
    newcomer = await call.read(wire.Newcomer)
    token = await window.in_thread(holder, window.desk.join, newcomer)
    return said(wire.Token(name=newcomer.name, role="analyst", token=token), 201)


async def leave(call: Call) -> Reply:
    """Let an analyst go: their token ends, and questions of theirs that wait are refused."""
    window, holder = call.visitor("curator")
    donate = DONATE.of(call)
    await window.in_thread(holder, window.desk.leave, call.path_params["name"], donate)
    return NOTHING


async def token(call: Call) -> Reply:
    """Give out a new token for an analyst; the former one ends."""
    window, holder = call.visitor("curator")
    name = call.path_params["name"]
    issued = await window.in_thread(holder, window.desk.token, name)
    return said(wire.Token(name=name, role="analyst", token=issued))


async def pause(call: Call) -> Reply:
    """Take no more questions until `resume`, also after a restart."""
    window, holder = call.visitor("curator")
    await window.in_thread(holder, window.desk.pause)
    return NOTHING


async def resume(call: Call) -> Reply:
    """Take questions again."""
    window, holder = call.visitor("curator")
    await window.in_thread(holder, window.desk.resume)
    return NOTHING


OPERATIONS = (
    Operation(
        "GET",
        f"{DATASET}/ledger",
        ledger,
        {200: ("A page of the ledger.", wire.Events)},
        for_="curators",
        parameters=(AFTER, LIMIT),
    ),
    Operation(
        "GET",
        f"{DATASET}/analysts",
        analysts,
        {200: ("The analysts.", wire.Analysts)},
        for_="curators",
    ),
    Operation(
        "POST",
        f"{DATASET}/analysts",
        join,
        {201: ("The newcomer's token. It is shown once.", wire.Token)},
        for_="curators",
        body=wire.Newcomer,
        problems=(402,),
    ),
    Operation(
        "DELETE",
        f"{DATASET}/analysts/{{name}}",
        leave,
        {204: ("They have left.", None)},
        for_="curators",
        parameters=(DONATE,),
    ),
    Operation(
        "POST",
        f"{DATASET}/analysts/{{name}}/token",
        token,
        {200: ("The token. It is shown once.", wire.Token)},
        for_="curators",
    ),
    Operation("POST", f"{DATASET}/pause", pause, {204: ("It is paused.", None)}, for_="curators"),
    Operation("POST", f"{DATASET}/resume", resume, {204: ("It goes on.", None)}, for_="curators"),
)
