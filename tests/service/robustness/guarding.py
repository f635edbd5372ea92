"""A server under attack: what it holds before and after, and that it goes on answering others."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from sharewell.privacy.ledger import CuratorAction
from tests.service.http.servers import COUNT, Running
from tests.service.waiting import comes_true


class Standing(NamedTuple):
    """What an attack must not change: everybody's budgets, the ledger, and what waits."""

    budgets: tuple[Any, ...]
    events: int


def standing(server: Running) -> Standing:
    """How a server stands just now: from its own state, which is published only as slots end.

    Without the tokens that tests make, which the ledger tells of when something else is stored.
    """
    service = server.registry.datasets["people"]
    curator = service._worker.state.curator
    budgets = [(name, curator.spent(name), curator.left(name)) for name in curator.payers]
    stored = sum(not isinstance(event, CuratorAction) for event in service.ledger.events())
    return Standing(tuple(budgets), stored)


def still_answers(server: Running) -> None:
    """Somebody else, on a connection of their own, gets a quote as ever."""
    with server.client(server.token("ben")) as client:
        reply = client.post("/v1/datasets/people/quote", json={"sql": COUNT})
    assert reply.status_code == 200, reply.text


@contextmanager
def nothing_happens(server: Running) -> Iterator[None]:
    """Whatever is sent meanwhile spends nothing, stores nothing, fails nowhere, and stops nobody."""
    before, logged = standing(server), len(server.log)
    yield
    still_answers(server)
    assert standing(server) == before
    lines = [json.loads(line) for line in server.log[logged:].splitlines()]
    failed = [line for line in lines if line["event"] != "request" or line["status"] >= 500]
    assert not failed, failed


def all_gone(server: Running) -> None:
    """Nobody is connected any more, and nothing that was begun for them goes on."""
    comes_true(lambda: not server.server.server_state.connections)
    comes_true(lambda: not server.server.server_state.tasks)


def is_problem(found: Any) -> bool:
    """Whether this is the one shape of a refusal, in sentences and without the insides of anything."""
    return (
        isinstance(found, dict)
        and set(found) == {"code", "message", "hint", "where", "suggestion", "request_id"}
        and is_sentence(found["message"])
        and (found["hint"] == "" or is_sentence(found["hint"]))
    )


#: What only Python would say.
INSIDES = ("Traceback", "<sqlglot", "object at 0x", "<class", "Expression(", 'File "')


def is_sentence(text: str) -> bool:
    """Whether a text ends like a sentence and shows nothing of Python's own."""
    return text.endswith((".", "?")) and not any(inside in text for inside in INSIDES)
