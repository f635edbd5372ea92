"""A ledger that moves: the copy is the same chain, and the service goes on with it."""

import pytest

from sharewell.errors import LedgerError, LedgerInUse
from sharewell.service.ledger import Head, copy_ledger, open_ledger, store, verify_chain
from tests.service.ledger.events import SAMPLES
from tests.service.services import config, count, plain, serve, status


def ask_at(place, questions):
    """Ask questions; give the answers, and what is left of each share."""
    settings = config()
    with (
        open_ledger(place, create=True) as ledger,
        serve(settings, ledger) as service,
    ):
        found = [plain(service.ask("ann", count(0, at), key=f"{at}")) for at in questions]
        return found, {name: status(service, name).left for name in service.analyst_names}


def test_a_ledger_moves_to_postgresql_and_back_and_the_service_goes_on(tmp_path, postgres):
    first, there, back = tmp_path / "first.sqlite", postgres.database(), tmp_path / "back.sqlite"
    before = ask_at(first, range(5))
    head = copy_ledger(first, there)
    assert verify_chain(there, expected_head=head) == []
    assert copy_ledger(there, back) == head
    with (
        open_ledger(first, create=True) as one,
        open_ledger(there, create=True) as two,
        open_ledger(back, create=True) as three,
    ):
        assert one.head == two.head == three.head == head
        assert list(one.events()) == list(two.events()) == list(three.events())
    assert ask_at(there, range(5)) == before
    assert ask_at(back, range(5)) == before


def test_a_ledger_is_not_copied_over_another_nor_from_one_in_use_or_damaged(tmp_path):
    first, second = tmp_path / "first.sqlite", tmp_path / "second.sqlite"
    ask_at(first, range(2))
    ask_at(second, range(3))
    with pytest.raises(LedgerError, match="A ledger already exists at"):
        copy_ledger(first, second)
    with open_ledger(first, create=True), pytest.raises(LedgerInUse):
        copy_ledger(first, tmp_path / "third.sqlite")
    with pytest.raises(LedgerError, match="No ledger at"):
        copy_ledger(tmp_path / "none.sqlite", tmp_path / "fourth.sqlite")
    assert not (tmp_path / "none.sqlite").exists()
    cut = tmp_path / "cut.sqlite"
    cut.write_bytes(first.read_bytes()[:-5000])
    with pytest.raises(LedgerError, match="Cannot copy"):
        copy_ledger(cut, tmp_path / "fifth.sqlite")


def test_an_empty_ledger_can_be_copied(tmp_path):
    open_ledger(tmp_path / "a.sqlite", create=True).close()
    assert copy_ledger(tmp_path / "a.sqlite", tmp_path / "b.sqlite") == Head()


def test_a_ledger_that_is_too_large_for_one_statement_is_copied_in_several(
    tmp_path, postgres, monkeypatch
):
    with open_ledger(tmp_path / "a.sqlite", create=True) as ledger:
        ledger.append_many(SAMPLES)
    monkeypatch.setattr(store, "STATEMENT_BYTES", 200)
    there = postgres.database()
    head = copy_ledger(tmp_path / "a.sqlite", there)
    assert copy_ledger(there, tmp_path / "b.sqlite") == head
    assert verify_chain(there, expected_head=head) == []
    assert verify_chain(tmp_path / "b.sqlite", expected_head=head) == []
