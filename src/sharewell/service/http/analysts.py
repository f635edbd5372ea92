"""What analysts look up: the dataset, their budget, their questions, and the certificate."""

from __future__ import annotations

from sharewell import wire
from sharewell.service.http.call import Call
from sharewell.service.http.operations import DATASET, Operation
from sharewell.service.http.parameters import AFTER, LIMIT
from sharewell.service.http.replies import NOTHING, Reply, said


async def datasets(call: Call) -> Reply:
    """Say which datasets the token opens, for whom, and in which role."""
    window, holder = call.holder()
    names = (window.desk.name,)
    return said(wire.Datasets(datasets=names, name=holder.name, role=holder.role))


async def dataset(call: Call) -> Reply:
    """Say what is public about a dataset: columns, budget, mechanism and promises."""
    window, _ = call.visitor()
    return said(window.desk.dataset())


async def me(call: Call) -> Reply:
    """Say how the analyst stands: share, spent, left, asked, waiting."""
    window, holder = call.visitor("analyst")
    await window.slots.next()
    return said(window.desk.budget(holder.name))


async def questions(call: Call) -> Reply:
    """List one's own questions, oldest first, each with its answer or where it stands."""
    window, holder = call.visitor("analyst")
    after, limit = AFTER.of(call), LIMIT.of(call)
    await window.slots.next()
    desk = window.desk
    return await window.in_thread(holder, lambda: said(desk.questions(holder.name, after, limit)))


async def done(call: Call) -> Reply:
    """Say that one has no more questions for now, so that no rotation waits.

    Whoever asks again is back.
    """
    window, holder = call.visitor("analyst")
    await window.in_thread(holder, window.desk.done, holder.name)
    await window.slots.next()
    return NOTHING


async def certificate(call: Call) -> Reply:
    """Show the fairness certificate: one's own standing; for curators everybody's."""
    window, holder = call.visitor()
    whose = holder.name if holder.role == "analyst" else None
    await window.slots.next()
    return said(await window.in_thread(holder, window.desk.certificate, whose))


OPERATIONS = (
    Operation(
        "GET",
        "/v1/datasets",
        datasets,
        {200: ("The datasets.", wire.Datasets)},
        for_="everybody",
    ),
    Operation("GET", DATASET, dataset, {200: ("The dataset.", wire.Dataset)}, for_="everybody"),
    Operation("GET", f"{DATASET}/me", me, {200: ("The budget.", wire.Budget)}, for_="analysts"),
    Operation(
        "GET",
        f"{DATASET}/questions",
        questions,
        {200: ("A page of questions.", wire.Questions)},
        for_="analysts",
        parameters=(AFTER, LIMIT),
    ),
    Operation("POST", f"{DATASET}/done", done, {204: ("It was noted.", None)}, for_="analysts"),
    Operation(
        "GET",
        f"{DATASET}/certificate",
        certificate,
        {200: ("The certificate.", wire.Certificate)},
        for_="everybody",
    ),
)
