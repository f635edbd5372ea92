"""A ledger that moves: the copy is the same chain, and the service goes on with it."""

import pytest

from sharewell.errors import LedgerError, LedgerInUse
from sharewell.privacy.ledger import Left
from sharewell.service.broker import Broker
from sharewell.service.ledger import Head, copy_ledger, copying, open_ledger, verify_chain
from tests.service.brokers import config, count, table


def serve(place, questions):
    """Ask questions; give the answers, and what is left of each share."""
    settings = config()
    with (
        open_ledger(place) as ledger,
        Broker(settings, ledger, data=table(settings), certificate=False) as service,
    ):
        found = [service.ask("ann", count(0, at), key=f"{at}").plain for at in questions]
        return found, {name: service.status(name).left for name in service.analysts}


def test_a_ledger_moves_to_postgresql_and_back_and_the_service_goes_on(tmp_path, postgres):
    first, there, back = tmp_path / "first.sqlite", postgres.database(), tmp_path / "back.sqlite"
    before = serve(first, range(5))
    head = copy_ledger(first, there)
    assert verify_chain(there, expected_head=head) == []
    assert copy_ledger(there, back) == head
    with open_ledger(first) as one, open_ledger(there) as two, open_ledger(back) as three:
        assert one.head == two.head == three.head == head
        assert list(one.events()) == list(two.events()) == list(three.events())
    assert serve(there, range(5)) == before
    assert serve(back, range(5)) == before


def test_a_ledger_is_not_copied_over_another_nor_from_one_in_use_or_damaged(tmp_path):
    first, second = tmp_path / "first.sqlite", tmp_path / "second.sqlite"
    serve(first, range(2))
    serve(second, range(3))
    with pytest.raises(LedgerError, match="There is a ledger at"):
        copy_ledger(first, second)
    with open_ledger(first), pytest.raises(LedgerInUse):
        copy_ledger(first, tmp_path / "third.sqlite")
    with pytest.raises(LedgerError, match="There is no ledger"):
        copy_ledger(tmp_path / "none.sqlite", tmp_path / "fourth.sqlite")
    assert not (tmp_path / "none.sqlite").exists()
    cut = tmp_path / "cut.sqlite"
    cut.write_bytes(first.read_bytes()[:-5000])
    with pytest.raises(LedgerError, match="cannot be copied"):
        copy_ledger(cut, tmp_path / "fifth.sqlite")


def test_an_empty_ledger_can_be_copied(tmp_path):
    open_ledger(tmp_path / "a.sqlite").close()
    assert copy_ledger(tmp_path / "a.sqlite", tmp_path / "b.sqlite") == Head()


def test_a_ledger_that_is_too_large_for_one_commit_is_not_copied(tmp_path, monkeypatch):
    with open_ledger(tmp_path / "a.sqlite") as ledger:
        ledger.append(Left("ann"))
    monkeypatch.setattr(copying, "MOST_BYTES", 10)
    with pytest.raises(LedgerError, match="up to 10 are copied"):
        copy_ledger(tmp_path / "a.sqlite", tmp_path / "b.sqlite")
    assert not (tmp_path / "b.sqlite").exists()
