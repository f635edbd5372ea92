"""What curators do is in the ledger: by whom, about whom, and without any secret."""

import pytest

from sharewell import wire
from sharewell.config import read_config
from sharewell.errors import LedgerUnavailable
from sharewell.privacy.ledger import CuratorAction
from sharewell.service.dataset import DatasetService
from sharewell.service.ledger import open_ledger
from sharewell.service.ledger.codec import encode
from sharewell.service.tokens import TokenStore
from sharewell.service.verify import verify
from tests.service.datasets import write_dataset
from tests.service.services import count


@pytest.fixture
def config(tmp_path):
    return read_config(write_dataset(tmp_path))


def actions(config) -> list[tuple[str, str, str]]:
    with open_ledger(config.service.ledger, read_only=True) as ledger:
        found = [event for event in ledger.events() if isinstance(event, CuratorAction)]
    return [(each.curator, each.action, each.subject) for each in found][1:]


def test_what_a_curator_does_is_stored_with_their_name(config):
    with DatasetService.open(config) as service:
        first = service.join(wire.Newcomer(name="dora", share="1/8"), "curator")
        second = service.token("dora", "curator")
        service.pause("curator")
        service.resume("curator")
        service.leave("dora", by="curator")
    assert actions(config) == [
        ("curator", "add-analyst", "dora"),
        ("curator", "issue-token", "dora"),
        ("curator", "revoke-token", "dora"),
        ("curator", "issue-token", "dora"),
        ("curator", "pause", ""),
        ("curator", "resume", ""),
        ("curator", "remove-analyst", "dora"),
        ("curator", "revoke-token", "dora"),
    ]
    with open_ledger(config.service.ledger, read_only=True) as ledger:
        stored = b"".join(encode(event) for event in ledger.events())
    for token in (first, second):
        assert token[-43:].encode() not in stored
    assert verify(config.service.ledger).findings == []


def test_what_is_done_on_the_command_line_is_stored_by_the_next_start(config):
    store = TokenStore(config.service.access)
    store.issue("ann", "analyst")
    store.pause()
    with DatasetService.open(config):
        pass
    assert actions(config) == [("", "issue-token", "ann"), ("", "pause", "")]
    with DatasetService.open(config):
        pass
    assert len(actions(config)) == 2


def test_what_is_done_beside_a_running_service_is_stored_with_the_next_question(config):
    with DatasetService.open(config) as service:
        TokenStore(config.service.access).issue("ben", "analyst")
        service.ask("ann", count(0, 4), timeout=120)
        service.done("ann")
        TokenStore(config.service.access).revoke("ben", "analyst")
        service.token("cleo", "curator")
    assert actions(config) == [
        ("", "issue-token", "ben"),
        ("", "revoke-token", "ben"),
        ("curator", "issue-token", "cleo"),
    ]


def test_a_dataset_is_paused_even_where_the_ledger_cannot_say_so(config, monkeypatch):
    def fail(*_):
        raise LedgerUnavailable("The disk is full.")

    with DatasetService.open(config) as service:
        with monkeypatch.context() as broken:
            broken.setattr(service.ledger, "append_many", fail)
            service.pause("curator")
        assert service.tokens.read().paused
    with DatasetService.open(config):
        pass
    assert actions(config)[-1][1] == "pause"


def test_an_analyst_who_is_deleted_from_the_file_is_told_at_the_start(config, caplog):
    with DatasetService.open(config) as service:
        service.join(wire.Newcomer(name="dora", share="1/8"))
    text = config.text.replace('[analysts.ben]\nshare = "1/4"\n', "")
    config.path.write_text(text)
    for _ in range(2):
        caplog.clear()
        with DatasetService.open(read_config(config.path)):
            pass
        assert "ben is no longer in" in caplog.text
        assert "still holds 1/4 of the budget" in caplog.text
        assert "sharewell analysts remove ben" in caplog.text
        assert "dora" not in caplog.text
