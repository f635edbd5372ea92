"""Access: who may enter, by tokens of which only hashes are kept."""

from __future__ import annotations

import hmac
import json
import logging
import math
import os
import re
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import Any, Literal, NamedTuple, get_args

from sharewell.config.names import person_name
from sharewell.errors import ConfigError, LedgerInUse, RequestError
from sharewell.service.ledger.file_lock import FileLock

Role = Literal["analyst", "curator"]

#: What the file calls itself. A change of its meaning gets another number.
FORMAT = "sharewell access 1"
#: How long to wait for another process that changes the file, in seconds.
PATIENCE = 5.0

_ID_LENGTH, _SECRET_LENGTH = 12, 43
_SECRET_AT = len("sw_") + _ID_LENGTH + len("_")
_ID = re.compile(rf"[A-Za-z0-9_-]{{{_ID_LENGTH}}}", re.ASCII)
_DIGEST = re.compile(r"[0-9a-f]{64}", re.ASCII)
#: Compared with where a token's id is not known, so that it takes as long as where it is.
_NOBODY = bytes(32)

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Holder:
    """Somebody who was given a token, and what for."""

    name: str
    role: Role


class _Record(NamedTuple):
    """A holder's token: its id, and the hash of its secret."""

    holder: Holder
    id: str
    digest: bytes


#: What tells one version of a file from another; None where there is no file.
_Mark = tuple[int, int, int] | None


@dataclass(frozen=True)
class _Contents:
    """What a file says."""

    records: Mapping[str, _Record] = field(default_factory=dict, repr=False)
    paused: bool = False

    def without(self, holder: Holder) -> dict[str, _Record]:
        return {at: record for at, record in self.records.items() if record.holder != holder}


class Access:
    """Tokens and their holders, in one file; and whether the dataset is paused.

    A token is shown when it is issued and kept nowhere: the file has its id and a SHA-256 hash of its
    secret. The secret is 256 random bits, so a hash that is slow on purpose would add nothing.

    Several processes may change the file, one at a time, and all of them see it: what was read is taken
    for true for `fresh_for` seconds, and then the operating system is asked whether the file has
    changed. Where it is lost or damaged, those who were known before go on, nobody new is let in and
    nothing can be changed; `trouble` says so.
    """

    def __init__(self, path: str | Path, *, fresh_for: float = 0.0) -> None:
        self.path = Path(path).resolve()
        self._fresh_for = fresh_for
        self._fresh_until = -math.inf
        self._where = str(self.path)
        self._changing = Lock()
        self._reading = Lock()
        self._contents = _Contents()
        self._seen: _Mark = None
        #: Why the file cannot be read just now; None where it can.
        self._trouble: str | None = None
        if self._mark() is not None:
            self._contents, self._seen = self._read()

    # Who enters

    def holder(self, token: str) -> Holder | None:
        """Who a token was given to; None where it is none of ours, or no longer."""
        if not isinstance(token, str) or len(token) != _SECRET_AT + _SECRET_LENGTH:
            return None
        if not token.startswith("sw_") or token[_SECRET_AT - 1] != "_":
            return None
        record = self._current().records.get(token[len("sw_") : _SECRET_AT - 1])
        same = hmac.compare_digest(_digest(token[_SECRET_AT:]), record.digest if record else _NOBODY)
        return record.holder if record and same else None

    @property
    def holders(self) -> tuple[Holder, ...]:
        """Everybody who holds a token."""
        return tuple(record.holder for record in self._current().records.values())

    @property
    def paused(self) -> bool:
        """Whether the dataset is paused."""
        return self._current().paused

    @property
    def trouble(self) -> str | None:
        """What is wrong with the file since it was last read, in a sentence; None if nothing is."""
        self._current()
        return self._trouble

    # What is changed

    def issue(self, name: str, role: Role) -> str:
        """A new token, which is shown this once; a former one of the same holder ends."""
        holder = _checked(name, role)
        token_id, secret = _new_id(), secrets.token_urlsafe(32)

        def add(contents: _Contents) -> _Contents:
            record = _Record(holder, token_id, _digest(secret))
            return replace(contents, records={**contents.without(holder), token_id: record})

        self._change(add)
        return f"sw_{token_id}_{secret}"

    def revoke(self, name: str, role: Role) -> bool:
        """End somebody's token; False where they had none."""
        holder = _checked(name, role)
        # Whoever has it may have got it a moment ago, from another process.
        self._fresh_until = -math.inf
        if holder not in self.holders and self._trouble is None:
            return False
        self._change(lambda contents: replace(contents, records=contents.without(holder)))
        return True

    def pause(self) -> None:
        """Take no questions until `resume`, also after a restart."""
        self._change(lambda contents: replace(contents, paused=True))

    def resume(self) -> None:
        """Go on."""
        self._change(lambda contents: replace(contents, paused=False))

    def __repr__(self) -> str:
        return f"Access({str(self.path)!r}, {len(self._contents.records)} tokens)"

    # The file

    def _current(self) -> _Contents:
        """What the file says by now."""
        now = time.monotonic()
        if now >= self._fresh_until:
            if self._trouble is not None or self._mark() != self._seen:
                with self._reading:
                    self._take_up()
            self._fresh_until = now + self._fresh_for
        return self._contents

    def _take_up(self) -> None:
        """Read the file anew; where that fails, keep what was known and say why."""
        mark = self._mark()
        if mark == self._seen and self._trouble is None:
            return
        try:
            if mark is None:
                raise self._gone()
            self._contents, self._seen = self._read()
        except ConfigError as error:
            if error.message != self._trouble:
                _log.error("%s Known tokens go on; nobody new is let in.", error.message)
            self._trouble = error.message
        else:
            if self._trouble is not None:
                _log.warning("The access file %s can be read again.", self.path)
            self._trouble = None

    def _mark(self) -> _Mark:
        try:
            return _mark(os.stat(self._where))
        except FileNotFoundError:
            return None
        except OSError:
            # It may be there: that is for `_read` to say.
            return (0, 0, 0)

    def _read(self) -> tuple[_Contents, _Mark]:
        """What the file says, and its mark; refuses what cannot be read or is none of ours."""
        try:
            with self.path.open("rb") as file:
                mark = _mark(os.fstat(file.fileno()))
                text = file.read()
        except OSError as error:
            raise ConfigError(
                f"The access file {self.path} cannot be read: {error.strerror}.",
                hint="See to it that whoever runs the service can read and write it.",
            ) from None
        try:
            return _parsed(text), mark
        except (ValueError, TypeError, KeyError, RecursionError):
            raise ConfigError(
                f"{self.path} is damaged, or is no access file of Sharewell.",
                hint="Check the path; the file was not touched. Put a backup back, or move it away and "
                "issue new tokens.",
            ) from None

    def _change(self, change: Callable[[_Contents], _Contents]) -> None:
        """Read the file as it is by now, and replace it by a changed one."""
        with self._changing, self._locked(), self._reading:
            changed = change(self._as_it_is())
            mark = self._write(changed)
            self._contents, self._seen, self._trouble = changed, mark, None

    def _as_it_is(self) -> _Contents:
        """What the file says; nothing, where there never was one."""
        if self._mark() is not None:
            return self._read()[0]
        if self._seen is None:
            return _Contents()
        # One that holds a single token would lock out everybody who was known.
        raise self._gone()

    def _write(self, contents: _Contents) -> _Mark:
        """Put a new file in the place of the old one, for good: a crash leaves one of the two."""
        new = self.path.with_name(f"{self.path.name}.new")
        try:
            # What a crash left behind may be anybody's to read, or a link.
            new.unlink(missing_ok=True)
            descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                # Whoever makes a token as root must not take the file from the service's own user.
                with suppress(FileNotFoundError, PermissionError, AttributeError):
                    old = os.stat(self.path)
                    os.fchown(file.fileno(), old.st_uid, old.st_gid)
                file.write(_text(contents))
                file.flush()
                self._move_on(new)
                os.fsync(file.fileno())
                mark = _mark(os.fstat(file.fileno()))
            new.replace(self.path)
            _sync_folder(self.path.parent)
            return mark
        except OSError as error:
            with suppress(OSError):
                new.unlink(missing_ok=True)
            raise self._not_written(error) from None

    def _move_on(self, new: Path) -> None:
        """Date a new file later than the old one, however fast they follow each other.

        Clocks of file systems tick every few milliseconds, and the number of a file that was replaced is
        given to the next one: without this, two versions could look the same.
        """
        with suppress(FileNotFoundError):
            later = max(time.time_ns(), os.stat(self.path).st_mtime_ns + 1_000_000)
            os.utime(new, ns=(later, later))

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Keep other processes from changing the file meanwhile."""
        try:
            lock = FileLock(self.path.with_name(f"{self.path.name}.lock"), self.path, PATIENCE)
        except LedgerInUse:
            raise ConfigError(
                f"Another process is changing the access file {self.path}.", hint="Try again."
            ) from None
        except OSError as error:
            raise self._not_written(error) from None
        try:
            yield
        finally:
            lock.release()

    def _gone(self) -> ConfigError:
        return ConfigError(
            f"The access file {self.path} has gone.",
            hint="Put it back; or restart the service, and issue new tokens to everybody.",
        )

    def _not_written(self, error: OSError) -> ConfigError:
        return ConfigError(
            f"The access file {self.path} cannot be written: {error.strerror}.",
            hint="See to it that its folder is there, can be written, and has room.",
        )


def check_name(name: str) -> str:
    """A name that somebody can be called by; refuses all others."""
    try:
        if not isinstance(name, str):
            raise ConfigError("A name is a text.")
        return person_name(name, "A token or a share")
    except ConfigError as error:
        raise RequestError(error.message, hint=error.hint) from None


def _checked(name: str, role: Role) -> Holder:
    if role not in get_args(Role):
        raise RequestError(
            f"Nobody can be a {str(role)[:40]!r} here.", hint="There are analysts and curators."
        )
    return Holder(check_name(name), role)


def _new_id() -> str:
    """Twelve url-safe letters: 72 random bits, so that no two tokens ever have the same."""
    return secrets.token_urlsafe(9)


def _digest(secret: str) -> bytes:
    return sha256(secret.encode("utf-8", "replace")).digest()


def _mark(found: os.stat_result) -> _Mark:
    return found.st_mtime_ns, found.st_size, found.st_ino


def _text(contents: _Contents) -> bytes:
    tokens = [
        {"name": holder.name, "role": holder.role, "id": token_id, "sha256": digest.hex()}
        for holder, token_id, digest in contents.records.values()
    ]
    plain = {"format": FORMAT, "paused": contents.paused, "tokens": tokens}
    return (json.dumps(plain, indent=1) + "\n").encode()


def _parsed(text: bytes) -> _Contents:
    """What the text of a file says; a ValueError, TypeError or KeyError where it is none of ours."""
    plain = json.loads(text)
    if plain["format"] != FORMAT or type(plain["paused"]) is not bool:
        raise ValueError(FORMAT)
    records = [_parsed_record(each) for each in plain["tokens"]]
    by_id = {record.id: record for record in records}
    if len(by_id) < len(records) or len({record.holder for record in records}) < len(records):
        raise ValueError("twice")
    return _Contents(by_id, plain["paused"])


def _parsed_record(plain: Mapping[str, Any]) -> _Record:
    name, role, token_id, digest = (plain[key] for key in ("name", "role", "id", "sha256"))
    if not _ID.fullmatch(token_id) or not _DIGEST.fullmatch(digest):
        raise ValueError("token")
    try:
        return _Record(_checked(name, role), token_id, bytes.fromhex(digest))
    except RequestError:
        raise ValueError("holder") from None


def _sync_folder(folder: Path) -> None:
    """Make a change of names in a folder last, where folders can be synchronised."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
