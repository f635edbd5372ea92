"""The witness: synced after every commit, never behind what a caller was told, and private."""

import os
import stat
from fractions import Fraction
from pathlib import Path

import pytest

from sharewell.errors import LedgerCorrupt, LedgerError, LedgerInUse, LedgerUnavailable
from sharewell.privacy.ledger import Begun, Charged, Done, Event, Granted, Left, Opened, Recovered
from sharewell.service.ledger import Head, files, open_ledger
from sharewell.service.ledger import witness as module
from sharewell.service.ledger.codec import encode
from sharewell.service.ledger.witness import Witness, WitnessRecord, lock_witness, read_key

OPENED = Opened("pure", Fraction(1), Fraction(0), Fraction(1), "add-remove", "5f2a")
STORY: list[Event] = [
    Begun("id"),
    OPENED,
    Granted("ann", Fraction(1, 2)),
    Charged({"ann": Fraction(1, 8)}, {}),
]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "state" / "witness.json"


@pytest.fixture
def ledger(tmp_path):
    with open_ledger(tmp_path / "ledger.sqlite", create=True) as ledger:
        yield ledger


def on_disk(path) -> WitnessRecord:
    found = Witness.read(path)
    assert found is not None
    return found.record


def test_a_witness_says_who_has_spent_what_and_where_the_chain_ends(ledger, path):
    ledger.attach(Witness(path, WitnessRecord(source={"bytes": 7})))
    ledger.append_many(STORY)
    ledger.append(Recovered({"ann": Fraction(1, 8)}, str(Head())))
    shares, spent = {"ann": Fraction(1, 2)}, {"ann": Fraction(1, 4)}
    assert on_disk(path) == WitnessRecord(
        "id", ledger.head, encode(OPENED).decode(), shares, spent, {"bytes": 7}
    )


def test_every_commit_is_witnessed_before_it_returns(ledger, path):
    ledger.attach(Witness(path, WitnessRecord()))
    for _ in range(3):
        ledger.append(Done("ann"))
        assert on_disk(path).head == ledger.head


def test_a_witness_that_is_behind_is_brought_up_to_date_when_it_is_attached(ledger, path):
    ledger.attach(Witness(path, WitnessRecord()))
    ledger.append_many(STORY[:2])
    behind = on_disk(path)
    ledger.append_many(STORY[2:])
    ledger.attach(Witness(path, behind))
    assert on_disk(path) == WitnessRecord().after(STORY, ledger.head)


def test_a_commit_is_uncertain_until_it_is_witnessed(ledger, path, monkeypatch):
    ledger.attach(Witness(path, WitnessRecord()))
    ledger.append_many(STORY[:2])
    with monkeypatch.context() as broken:
        broken.setattr(module, "replace_private", full)
        with pytest.raises(LedgerUnavailable, match="No space left") as caught:
            ledger.append_many(STORY[2:])
        assert caught.value.uncertain
        # What is stored and not witnessed is not read, so that nothing is measured under it.
        for use in (lambda: list(ledger.events()), lambda: len(ledger), lambda: ledger.append(OPENED)):
            with pytest.raises(LedgerUnavailable):
                use()
    assert on_disk(path).head.count == 2
    assert list(ledger.events()) == STORY
    assert on_disk(path) == WitnessRecord().after(STORY, ledger.head)


def full(*_):
    raise OSError(28, "No space left on device")


STEPS = {
    "create": (files, "create_private"),
    "sync the file": (os, "fsync"),
    "rename": (Path, "replace"),
    "sync the folder": (files, "sync_folder"),
}


@pytest.mark.parametrize("step", STEPS)
def test_whichever_step_of_writing_fails_the_witness_is_whole_and_the_next_commit_mends_it(
    ledger, path, monkeypatch, step
):
    ledger.attach(Witness(path, WitnessRecord()))
    ledger.append_many(STORY[:2])
    before = on_disk(path).head
    with monkeypatch.context() as broken:
        broken.setattr(*STEPS[step], full)
        with pytest.raises(LedgerUnavailable) as caught:
            ledger.append_many(STORY[2:3])
        assert caught.value.uncertain
        assert on_disk(path).head in (before, ledger.head)
    ledger.append_many(STORY[3:])
    assert list(ledger.events()) == STORY
    assert on_disk(path) == WitnessRecord().after(STORY, ledger.head)
    assert not path.with_name(f"{path.name}.new").exists()


def other_writer(path) -> None:
    other = Witness.read(path)
    assert other is not None
    other.write(other.record.after([Done("ben")], Head(3, b"o" * 32)))


@pytest.mark.parametrize("failing", [False, True], ids=["after a commit", "after a failed one"])
def test_a_witness_that_another_process_has_written_is_never_written_again(
    ledger, path, monkeypatch, failing
):
    """Even where a lock does not hold, as between hosts: the other may have sold what is left."""
    ledger.attach(Witness(path, WitnessRecord()))
    ledger.append_many(STORY[:2])
    before = path.read_bytes()
    if failing:
        with monkeypatch.context() as broken:
            broken.setattr(module, "replace_private", full)
            with pytest.raises(LedgerUnavailable):
                ledger.append(STORY[2])
    other_writer(path)
    others = path.read_bytes()
    with pytest.raises(LedgerInUse, match="Another process has changed the witness"):
        ledger.append(STORY[2])
    assert path.read_bytes() == others
    # For good: what happened meanwhile is not known, also when the old file is back.
    path.write_bytes(before)
    for use in (lambda: list(ledger.events()), lambda: ledger.append(OPENED), lambda: ledger.probe(1)):
        with pytest.raises(LedgerInUse, match="the witness"):
            use()
    assert path.read_bytes() == before


def test_a_deleted_witness_is_written_again(ledger, path):
    ledger.attach(Witness(path, WitnessRecord()))
    ledger.append_many(STORY[:2])
    path.unlink()
    ledger.append_many(STORY[2:])
    assert on_disk(path) == WitnessRecord().after(STORY, ledger.head)


def test_a_link_to_a_witness_stays_one(ledger, path, tmp_path):
    link = tmp_path / "link.json"
    link.symlink_to(path)
    ledger.attach(Witness(link, WitnessRecord()))
    ledger.append_many(STORY)
    assert link.is_symlink()
    assert on_disk(path).head == ledger.head


def test_a_witness_is_locked_under_all_its_names_until_its_ledger_is_closed(ledger, path, tmp_path):
    link = tmp_path / "link.json"
    link.symlink_to(path)
    ledger.attach(Witness(path, WitnessRecord()), lock_witness(path))
    assert stat.S_IMODE(path.with_name("witness.json.lock").stat().st_mode) == 0o600
    for name in (path, link):
        with pytest.raises(
            LedgerInUse, match=rf"The witness .*witness.json is in use by .*{os.getpid()}"
        ):
            lock_witness(name)
    ledger.close()
    lock_witness(link).release()


def test_a_witness_that_cannot_be_locked_is_unavailable(path):
    path.parent.write_bytes(b"no folder")
    with pytest.raises(LedgerUnavailable, match="Cannot lock the witness"):
        lock_witness(path)


def test_a_chain_contains_every_head_that_it_had_and_no_other(ledger):
    heads = [ledger.head]
    for event in STORY:
        ledger.append(event)
        heads.append(ledger.head)
    assert all(ledger.contains(head) for head in heads)
    assert not ledger.contains(Head(2, heads[3].hash))
    assert not ledger.contains(Head(9, heads[-1].hash))


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_only_the_owner_may_read_a_witness(ledger, path, umask):
    before = os.umask(umask)
    try:
        ledger.attach(Witness(path, WitnessRecord()))
        ledger.append(OPENED)
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


@pytest.mark.parametrize("content", [b"", b"{}", b"[]", b'{"format": "sharewell witness 2"}', b"\xff"])
def test_a_file_that_is_no_witness_is_refused(path, content):
    path.parent.mkdir()
    path.write_bytes(content)
    with pytest.raises(LedgerCorrupt, match="not a witness"):
        Witness.read(path)


EARLIER = """{
  "format": "sharewell witness 1",
  "dataset": "id",
  "head": "4:0000000000000000000000000000000000000000000000000000000000000000",
  "opened": null,
  "shares": {"ann": "1/2"},
  "spent": {"ann": "1/8"},
  "source": {"bytes": 7}
}
"""


def test_a_witness_that_was_written_before_departures_were_kept_is_read(path):
    path.parent.mkdir()
    path.write_text(EARLIER)
    shares, spent = {"ann": Fraction(1, 2)}, {"ann": Fraction(1, 8)}
    expected = WitnessRecord("id", Head(4, bytes(32)), None, shares, spent, {"bytes": 7}, None)
    assert on_disk(path) == expected
    # What was not known stays so until the whole chain is read.
    assert expected.after([Left("ann")], Head(5, bytes(32))).gone is None


def test_departures_are_witnessed(ledger, path):
    ledger.attach(Witness(path, WitnessRecord()))
    ledger.append_many([*STORY, Left("ann")])
    assert on_disk(path).gone == ("ann",)


def test_a_missing_witness_is_none(path):
    assert Witness.read(path) is None


KEY = b"k" * 32


def test_with_a_key_nothing_in_a_witness_can_be_changed(path):
    witness = Witness(path, WitnessRecord(), KEY)
    witness.write(WitnessRecord().after(STORY, Head(4, bytes(32))))
    assert Witness.read(path, KEY) is not None
    text = path.read_text()
    for old, new in [("1/8", "1/9"), ("4:", "3:"), ('"id"', '"di"')]:
        assert old in text
        path.write_text(text.replace(old, new))
        with pytest.raises(LedgerCorrupt, match="HMAC"):
            Witness.read(path, KEY)
    path.write_text(text)
    with pytest.raises(LedgerCorrupt, match="HMAC"):
        Witness.read(path, b"j" * 32)
    with pytest.raises(LedgerError, match="has an HMAC"):
        Witness.read(path)


def test_a_witness_without_hmac_is_refused_where_a_key_is_configured(path):
    Witness(path, WitnessRecord()).write(WitnessRecord())
    with pytest.raises(LedgerError, match="has no HMAC"):
        Witness.read(path, KEY)


def test_a_short_key_is_refused(tmp_path):
    file = tmp_path / "key"
    file.write_bytes(KEY + b"\n")
    assert read_key(file) == KEY
    file.write_bytes(KEY[:-1])
    with pytest.raises(LedgerError, match="31 bytes"):
        read_key(file)
    with pytest.raises(LedgerError, match="No such file"):
        read_key(tmp_path / "nothing")
