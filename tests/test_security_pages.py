"""What the threat model says is so: which replies wait for a slot, and what the certificate is given."""

import io
import pickle
import re
from functools import cache
from pathlib import Path
from typing import ClassVar

import pytest

from sharewell.config import read_config
from sharewell.engine.data_vector import DataVector
from sharewell.privacy.curator import Curator
from sharewell.privacy.ledger import Answered, MemoryLedger, Released
from sharewell.service import broker
from sharewell.service.http.app import OPERATIONS
from sharewell.service.http.operations import DATASET, Operation
from sharewell.service.http.slots import Slots
from tests.service.http.servers import COUNT, running, write_dataset

PAGE = Path(__file__).parent.parent / "docs" / "threat-model.md"
HEAD = "| told in a release slot | told at once |"
#: Those that let somebody go come last.
SERVED = sorted(
    (each for each in OPERATIONS if each.path.startswith(DATASET)),
    key=lambda each: each.method == "DELETE",
)


def called(operation: Operation) -> str:
    """An operation as the page names it."""
    return f"{operation.method} {operation.path.removeprefix(DATASET) or '/'}"


@cache
def stated() -> dict[str, bool]:
    """What the page says: whether each operation waits for a slot."""
    _, _, after = PAGE.read_text(encoding="utf-8").partition(f"{HEAD}\n")
    cells = after.splitlines()[1].split("|")[1:-1]
    return {
        name: waits
        for waits, cell in zip((True, False), cells, strict=True)
        for name in re.findall(r"`([^`]+)`", cell)
    }


def test_the_page_names_every_operation_of_a_dataset():
    assert sorted(stated()) == sorted(map(called, SERVED))


@pytest.fixture(scope="module")
def waited(tmp_path_factory) -> dict[str, bool]:
    """Whether each operation waited for a slot before it replied, seen on a real server."""
    found, waits = {}, []
    wait = Slots._wait

    def noted(self, *given):
        waits.append(given)
        return wait(self, *given)

    with (
        pytest.MonkeyPatch.context() as patch,
        running(write_dataset(tmp_path_factory.mktemp("served"), certificate=True)) as server,
    ):
        patch.setattr(Slots, "_wait", noted)
        holders = {"analysts": server.analyst("ann"), "curators": server.curator()}
        holders["everybody"] = holders["analysts"]
        number = holders["analysts"].ask().json()["number"]
        for operation in SERVED:
            holder = holders[operation.for_]
            path = operation.path.removeprefix(DATASET).format(number=number, name="ben")
            body = {"name": "zoe", "share": "1/10"} if path == "/analysts" else {"sql": COUNT}
            waits.clear()
            reply = holder.client.request(
                operation.method, f"{holder.path}{path}", json=body if operation.body else None
            )
            assert reply.is_success, reply.text
            found[called(operation)] = bool(waits)
            if path == "/pause":
                holder.post("/resume")
    return found


@pytest.mark.parametrize("operation", SERVED, ids=called)
def test_the_page_says_which_replies_wait_for_a_release_slot(waited, operation):
    assert waited[called(operation)] == stated()[called(operation)]


class Noting(pickle.Pickler):
    """Notes the type of everything that is pickled."""

    def __init__(self) -> None:
        super().__init__(io.BytesIO())
        self.types: set[type] = set()

    def reducer_override(self, found):
        self.types.add(type(found))
        return NotImplemented


def types_in(*found: object) -> set[type]:
    """The types of all that would be sent to another process."""
    pickler = Noting()
    pickler.dump(found)
    return pickler.types


def holds_data(types: set[type]) -> bool:
    """Whether true counts, noisy values or answers are among them."""
    secret = DataVector | Curator | MemoryLedger | Released | Answered
    return any(issubclass(each, secret) for each in types)


class RecordingFollower:
    """Stands in for the certificate's process, and keeps what it was given."""

    given: ClassVar[list[object]] = []

    def __init__(self, *arguments: object, **named: object) -> None:
        self.given.extend([*arguments, *named.values()])

    def record(self, happened: object) -> None:
        self.given.append(happened)

    def close(self) -> None: ...


def test_what_the_certificates_process_is_given_holds_no_data(tmp_path, monkeypatch):
    monkeypatch.setattr(broker, "Follower", RecordingFollower)
    monkeypatch.setattr(RecordingFollower, "given", [])
    config = read_config(write_dataset(tmp_path))
    with broker.Broker(config, MemoryLedger(), certificate=True) as service:
        service.ask("ann", COUNT)
        service.leave("ben", donate=True)
    assert len(RecordingFollower.given) == 6
    assert not holds_data(types_in(*RecordingFollower.given))
    assert holds_data(types_in(*RecordingFollower.given, config.vector()))
