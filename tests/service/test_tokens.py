"""Tokens: what is kept of them, who is let in, and what becomes of the file."""

from __future__ import annotations

import hmac
import json
import os
import re
import stat
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharewell.errors import ConfigError, RequestError
from sharewell.service import tokens as access_module
from sharewell.service.ledger.files import FileLock
from sharewell.service.tokens import Principal, TokenStore

ANN, CURATOR = Principal("ann", "analyst"), Principal("curator", "curator")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "people.access.json"


def other_letter(letter: str) -> str:
    return "A" if letter != "A" else "B"


def test_a_token_opens_for_its_holder_and_no_other_text_does(path):
    access = TokenStore(path)
    token = access.issue("ann", "analyst")
    assert re.fullmatch(r"sw_[A-Za-z0-9_-]{12}_[A-Za-z0-9_-]{43}", token)
    assert access.authenticate(token) == ANN
    for at in range(len(token)):
        changed = token[:at] + other_letter(token[at]) + token[at + 1 :]
        assert access.authenticate(changed) is None
    for wrong in ("", token + "A", token[:-1], token.upper(), f" {token}", token.encode(), None, 7):
        assert access.authenticate(wrong) is None  # type: ignore[arg-type]


@given(
    st.one_of(
        st.text(),
        st.text(min_size=59, max_size=59),
        st.text(min_size=43, max_size=43).map("sw_123456789012_".__add__),
    )
)
def test_any_text_may_be_tried(tmp_path_factory, text):
    access = TokenStore(tmp_path_factory.getbasetemp() / "nobody.json")
    assert access.authenticate(text) is None


def test_half_a_surrogate_pair_is_no_token(path):
    access = TokenStore(path)
    token = access.issue("ann", "analyst")
    assert access.authenticate(token[:-1] + "\ud800") is None


def test_no_two_tokens_are_alike(path):
    access = TokenStore(path)
    tokens = [access.issue("ann", "analyst") for _ in range(20)]
    assert len({token[3:15] for token in tokens}) == len({token[16:] for token in tokens}) == 20


def test_a_new_token_ends_the_former_one_of_the_same_holder_only(path):
    access = TokenStore(path)
    first, curator = access.issue("ann", "analyst"), access.issue("curator", "curator")
    namesake = access.issue("ann", "curator")
    second = access.issue("ann", "analyst")
    assert access.authenticate(first) is None
    assert access.authenticate(second) == ANN
    assert access.authenticate(curator) == CURATOR
    assert access.authenticate(namesake) == Principal("ann", "curator")
    assert set(access.holders) == {ANN, CURATOR, Principal("ann", "curator")}


def test_a_revoked_token_opens_nothing(path):
    access = TokenStore(path)
    token, other = access.issue("ann", "analyst"), access.issue("ann", "curator")
    assert access.revoke("ann", "analyst") is True
    assert access.authenticate(token) is None
    assert access.authenticate(other) == Principal("ann", "curator")
    assert access.revoke("ann", "analyst") is False


def test_tokens_and_the_pause_outlive_the_process(path):
    first = TokenStore(path)
    token = first.issue("ann", "analyst")
    assert first.read().paused is False
    first.pause()
    again = TokenStore(path)
    assert again.authenticate(token) == ANN
    assert again.read().paused is True
    again.resume()
    assert first.read().paused is False
    assert first.authenticate(token) == ANN


def test_nothing_shows_a_secret_nor_its_hash(path):
    access = TokenStore(path)
    token = access.issue("ann", "analyst")
    assert token[16:] not in path.read_text()
    digest = json.loads(path.read_text())["tokens"][0]["sha256"]
    shown = repr(access) + repr(access._contents) + repr(access.holders)
    assert digest not in shown
    assert str(bytes.fromhex(digest)) not in shown


def test_secrets_are_compared_in_constant_time_also_where_nobody_is_known(path, monkeypatch):
    access = TokenStore(path)
    token = access.issue("ann", "analyst")
    compared = []
    compare = hmac.compare_digest

    def note(one, other):
        compared.append((len(one), len(other)))
        return compare(one, other)

    monkeypatch.setattr(hmac, "compare_digest", note)
    assert access.authenticate(token) == ANN
    assert access.authenticate(f"{token[:16]}{'A' * 43}") is None
    assert access.authenticate(f"sw_{'A' * 12}_{'A' * 43}") is None
    assert compared == [(32, 32)] * 3


@pytest.mark.parametrize("name", ["", "a b", "a/b", "..", "é", "-a", "a" * 101, "a\n", None, 7])
def test_a_name_that_no_address_can_hold_is_refused(path, name):
    with pytest.raises(RequestError):
        TokenStore(path).issue(name, "analyst")
    assert not path.exists()


def test_there_are_two_roles(path):
    with pytest.raises(RequestError, match="Unknown role"):
        TokenStore(path).issue("ann", "king")  # type: ignore[arg-type]


@pytest.fixture
def no_umask():
    before = os.umask(0)
    yield
    os.umask(before)


def test_the_file_is_nobody_elses_to_read_from_its_first_moment(path, no_umask, monkeypatch):
    modes = []
    opened = os.open

    def note(name, *rest, **named):
        descriptor = opened(name, *rest, **named)
        modes.append(stat.S_IMODE(os.fstat(descriptor).st_mode) if not Path(name).is_dir() else 0o600)
        return descriptor

    monkeypatch.setattr(os, "open", note)
    TokenStore(path).issue("ann", "analyst")
    assert set(modes) == {0o600}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_what_a_crash_left_behind_is_not_written_into(path, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("as it was")
    Path(f"{path}.new").symlink_to(elsewhere)
    token = TokenStore(path).issue("ann", "analyst")
    assert elsewhere.read_text() == "as it was"
    assert TokenStore(path).authenticate(token) == ANN
    assert not path.is_symlink()


def test_the_file_and_then_its_folder_are_synchronised(path, monkeypatch):
    synced = []
    sync = os.fsync

    def note(descriptor):
        is_folder = stat.S_ISDIR(os.fstat(descriptor).st_mode)
        synced.append(("folder", path.exists()) if is_folder else ("file", path.exists()))
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", note)
    TokenStore(path).issue("ann", "analyst")
    assert synced == [("file", False), ("folder", True)]


@pytest.mark.parametrize("step", ["fsync", "replace", "utime"])
def test_a_change_that_fails_leaves_the_file_as_it_was(path, monkeypatch, step):
    access = TokenStore(path)
    token = access.issue("ann", "analyst")
    before = path.read_bytes()

    def full(*_args, **_named):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as broken:
        broken.setattr(os, step, full)
        broken.setattr(Path, "replace", full)
        with pytest.raises(ConfigError, match=r"Cannot write .*: No space left"):
            access.issue("ann", "analyst")
    assert path.read_bytes() == before
    assert not Path(f"{path}.new").exists()
    assert access.authenticate(token) == ANN
    assert access.authenticate(access.issue("ben", "analyst")) == Principal("ben", "analyst")


def test_a_missing_folder_is_named(tmp_path):
    access = TokenStore(tmp_path / "none" / "people.json")
    assert access.holders == ()
    with pytest.raises(ConfigError, match="Cannot write the access file"):
        access.issue("ann", "analyst")


def test_versions_that_follow_at_once_never_look_alike(path, monkeypatch):
    access, watcher = TokenStore(path), TokenStore(path)
    monkeypatch.setattr(time, "time_ns", lambda: 1)
    dates = []
    for _ in range(10):
        token = access.issue("ann", "analyst")
        assert watcher.authenticate(token) == ANN
        dates.append(path.stat().st_mtime_ns)
    assert dates == sorted(set(dates))


ISSUE = """
import sys
from sharewell.service.tokens import TokenStore
access = TokenStore(sys.argv[1])
for number in range(8):
    access.issue(f"{sys.argv[2]}{number}", "analyst")
"""


def test_a_running_server_sees_what_other_processes_write_and_nothing_is_lost(path):
    server = TokenStore(path)
    mine = server.issue("ann", "analyst")
    others = [
        subprocess.Popen([sys.executable, "-c", ISSUE, str(path), name]) for name in ("ben", "cleo")
    ]
    for number in range(8):
        server.issue(f"dan{number}", "analyst")
    assert [other.wait(60) for other in others] == [0, 0]
    expected = {f"{name}{number}" for name in ("ben", "cleo", "dan") for number in range(8)} | {"ann"}
    assert {holder.name for holder in server.holders} == expected
    assert {holder.name for holder in TokenStore(path).holders} == expected
    assert server.authenticate(mine) == ANN


def test_a_token_issued_rotated_or_revoked_by_another_process_counts_at_once(path):
    server, other = TokenStore(path), TokenStore(path)
    former = other.issue("ann", "analyst")
    for _ in range(50):
        assert server.authenticate(former) == ANN
        token = other.issue("ann", "analyst")
        assert (server.authenticate(former), server.authenticate(token)) == (None, ANN)
        pauses = []
        for change in (other.pause, other.resume):
            change()
            pauses.append(server.read().paused)
        assert pauses == [True, False]
        former = token
    other.revoke("ann", "analyst")
    assert server.authenticate(former) is None
    assert not server.revoke("ann", "analyst")


@pytest.mark.parametrize("resolution", [1, 1_000_000_000, 2_000_000_000])
def test_versions_are_told_apart_however_coarse_the_clock_is(path, monkeypatch, resolution):
    def coarse(file, ns):
        utime(file, ns=tuple(at // resolution * resolution for at in ns))

    utime = os.utime
    monkeypatch.setattr("sharewell.service.tokens.os.utime", coarse)
    server, other = TokenStore(path), TokenStore(path)
    for _ in range(5):
        token = other.issue("ann", "analyst")
        assert server.authenticate(token) == ANN


def test_many_threads_may_issue_and_look(path):
    access = TokenStore(path)
    known = access.issue("ann", "analyst")

    def work(number: int) -> str:
        token = access.issue(f"a{number}", "analyst")
        assert access.authenticate(token) == Principal(f"a{number}", "analyst")
        assert access.authenticate(known) == ANN
        return token

    with ThreadPoolExecutor(8) as pool:
        tokens = list(pool.map(work, range(40)))
    expected = [Principal(f"a{number}", "analyst") for number in range(40)]
    assert [access.authenticate(token) for token in tokens] == expected


def test_whoever_changes_the_file_keeps_others_from_it(path, monkeypatch):
    monkeypatch.setattr(access_module, "LOCK_TIMEOUT", 0.0)
    access = TokenStore(path)
    lock = FileLock(Path(f"{path}.lock"), path)
    with pytest.raises(ConfigError, match="Another process is changing the access file"):
        access.pause()
    lock.release()
    access.pause()
    assert access.read().paused


GOOD = {"name": "ann", "role": "analyst", "id": "a" * 12, "sha256": "0" * 64}


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"\xff\xfe",
        b"[]",
        b"{}",
        b"7",
        b'{"format": "sharewell access 2", "paused": false, "tokens": []}',
        b'{"format": "sharewell access 1", "paused": 0, "tokens": []}',
        b'{"format": "sharewell access 1", "paused": false}',
        b'{"format": "sharewell access 1", "paused": false, "tokens": {"a": 1}}',
        b"[" * 100_000,
        *(
            json.dumps({"format": access_module.FORMAT, "paused": False, "tokens": tokens}).encode()
            for tokens in (
                [7],
                [{**GOOD, "name": "a/b"}],
                [{**GOOD, "role": "king"}],
                [{**GOOD, "id": "short"}],
                [{**GOOD, "id": 7}],
                [{**GOOD, "sha256": "0" * 63}],
                [{**GOOD, "sha256": "é" * 64}],
                [GOOD, {**GOOD, "id": "b" * 12}],
                [GOOD, {**GOOD, "name": "ben"}],
            )
        ),
    ],
)
def test_a_file_that_is_none_of_ours_is_refused_and_not_touched(path, text):
    path.write_bytes(text)
    with pytest.raises(ConfigError, match="damaged or not an access file"):
        TokenStore(path)
    assert path.read_bytes() == text


def test_a_folder_in_its_place_is_refused(path):
    path.mkdir()
    with pytest.raises(ConfigError, match="Cannot read the access file"):
        TokenStore(path)


@pytest.mark.parametrize("damage", ["gone", "damaged", "a folder"])
def test_a_file_lost_while_the_server_runs_lets_nobody_new_in_and_says_so(path, caplog, damage):
    access = TokenStore(path)
    token = access.issue("ann", "analyst")
    access.pause()
    good = path.read_bytes()
    new = TokenStore(path).issue("ben", "analyst")
    newer = path.read_bytes()
    path.write_bytes(good)
    assert access.authenticate(new) is None
    assert access.failure is None
    path.unlink()
    if damage == "damaged":
        path.write_bytes(newer[:-20])
    elif damage == "a folder":
        path.mkdir()
    for _ in range(3):
        assert access.authenticate(token) == ANN
        assert access.authenticate(new) is None
    assert access.read().paused
    assert str(path) in str(access.failure)
    assert len(caplog.records) == 1
    assert "new tokens are not accepted" in caplog.text
    with pytest.raises(ConfigError):
        access.resume()
    with pytest.raises(ConfigError):
        access.issue("cleo", "analyst")
    with pytest.raises(ConfigError):
        access.revoke("ben", "analyst")
    if damage == "a folder":
        path.rmdir()
    path.write_bytes(newer)
    assert access.authenticate(new) == Principal("ben", "analyst")
    assert access.failure is None


def test_the_same_file_put_back_ends_the_trouble(path):
    access = TokenStore(path)
    token = access.issue("ann", "analyst")
    aside = path.rename(f"{path}.aside")
    assert "has disappeared" in str(access.failure)
    aside.rename(path)
    assert access.failure is None
    assert access.authenticate(token) == ANN


def test_a_link_stays_a_link(path, tmp_path):
    real = tmp_path / "real.json"
    token = TokenStore(real).issue("ann", "analyst")
    path.symlink_to(real)
    access = TokenStore(path)
    access.pause()
    assert path.is_symlink()
    assert TokenStore(real).read().paused
    assert access.authenticate(token) == ANN
