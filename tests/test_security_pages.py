"""What the threat model says is so: which replies wait for a slot, and what the certificate is given."""

import io
import pickle
import re
from functools import cache
from pathlib import Path

import pytest

from sharewell.config import read_config
from sharewell.engine.data_vector import DataVector
from sharewell.privacy.curator import Curator
from sharewell.privacy.ledger import Answered, MemoryLedger, Released
from sharewell.service import certificate_worker, dataset
from sharewell.service.release_slots import ReleaseSlots
from sharewell.sharing.certificate import Report
from tests.service.http.operations import DATASET, OPERATIONS, Operation
from tests.service.http.servers import COUNT, running, write_dataset
from tests.service.waiting import comes_true

PAGE = Path(__file__).parent.parent / "docs" / "threat-model.md"
HEAD = "| in a release slot | at once |"
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
    wait = ReleaseSlots.wait

    def noted(self, *given):
        waits.append(given)
        return wait(self, *given)

    with (
        pytest.MonkeyPatch.context() as patch,
        running(write_dataset(tmp_path_factory.mktemp("served"), certificate=True)) as server,
    ):
        patch.setattr(ReleaseSlots, "wait", noted)
        holders = {"analysts": server.analyst("ann"), "curators": server.curator()}
        holders["analysts and curators"] = holders["analysts"]
        number = holders["analysts"].ask().json()["number"]
        for operation in SERVED:
            holder = holders[operation.audience]
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


class RecordingProcess:
    """Stands in for the certificate's process and the line to it, and keeps what it was given."""

    def __init__(self) -> None:
        self.given: list[object] = []

    def Pipe(self) -> tuple[object, object]:
        return self, self

    def Process(self, *, args: tuple[object, ...], **options: object) -> object:
        assert args[0] is self
        self.given += [*args[1:], options]
        return self

    def send(self, message: list[object]) -> None:
        self.given += message

    def recv(self) -> Report:
        return Report("", "", 1.0, (), (), 0)

    def poll(self) -> bool:
        return False

    def start(self) -> None: ...

    kill = join = close = start


def test_what_the_certificates_process_is_given_holds_no_data(tmp_path, monkeypatch):
    process = RecordingProcess()
    monkeypatch.setattr(certificate_worker, "get_context", lambda _: process)
    config = read_config(write_dataset(tmp_path))
    with dataset.DatasetService(config, MemoryLedger(), certificate=True) as service:
        service.ask("ann", COUNT)
        service.leave("ben", donate=True)
        comes_true(lambda: len(process.given) == 6)
    assert not holds_data(types_in(*process.given))
    assert holds_data(types_in(*process.given, config.vector()))
