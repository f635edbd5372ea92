"""Access tokens, of which only hashes are stored."""

from __future__ import annotations

import hmac
import json
import logging
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

from sharewell.config.section import validate_person
from sharewell.errors import ConfigError, LedgerInUse, RequestError
from sharewell.service.ledger.files import FileLock, replace_private

Role = Literal["analyst", "curator"]

#: The format of the access file; a change of its meaning gets another number.
FORMAT = "sharewell access 1"
#: How long to wait for another process that is changing the file, in seconds.
LOCK_TIMEOUT = 30.0

_ID = re.compile(r"[A-Za-z0-9_-]{12}", re.ASCII)
#: A token: its public id and its secret.
_TOKEN = re.compile(r"sw_(.{12})_(.{43})", re.DOTALL)
_DIGEST = re.compile(r"[0-9a-f]{64}", re.ASCII)
#: Compared against if a token's id is unknown, so that both cases take equally long.
_NO_DIGEST = bytes(32)
#: Resolutions of file systems' clocks, in nanoseconds; the finest that works is used.
_CLOCK_STEPS = (1_000_000, 1_000_000_000, 2_000_000_000)

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Principal:
    """The owner of a token, and their role."""

    name: str
    role: Role


class TokenRecord(NamedTuple):
    """A stored token: its owner, its id, and the hash of its secret."""

    owner: Principal
    id: str
    digest: bytes


#: Distinguishes versions of a file: time, size and inode; None if there is no file.
_FileVersion = tuple[int, int, int] | None


@dataclass(frozen=True)
class AccessFile:
    """The contents of an access file: tokens by their public ids, and whether the dataset is paused."""

    records: Mapping[str, TokenRecord] = field(default_factory=dict, repr=False)
    paused: bool = False

    def without(self, owner: Principal) -> dict[str, TokenRecord]:
        """The tokens of all others."""
        return {at: record for at, record in self.records.items() if record.owner != owner}


class TokenStore:
    """The tokens of a dataset in one file, and whether the dataset is paused.

    A token is returned once, when it is issued. The file holds its id and a SHA-256 hash of its secret;
    the secret has 256 random bits, so a slow hash would add nothing.

    Several processes may change the file, one at a time. Every lookup calls `stat` on it, so a token
    counts from the moment it is issued and ends the moment it is revoked. If the file is lost or
    damaged, known tokens stay valid, new ones are not accepted, changes fail, and `failure` says why.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path).resolve()
        self._path = str(self.path)
        self._changing = Lock()
        self._reading = Lock()
        self._contents = AccessFile()
        self._seen: _FileVersion = None
        self._failure: str | None = None
        if _version(self._path) is not None:
            self._contents, self._seen = self._read()

    def read(self) -> AccessFile:
        """The contents of the file as it is now; those last known if it cannot be read."""
        if self._failure is not None or _version(self._path) != self._seen:
            with self._reading:
                self._reload()
        return self._contents

    def authenticate(self, token: str) -> Principal | None:
        """The owner of a token, or None if it is unknown or was revoked."""
        if not isinstance(token, str) or not (parts := _TOKEN.fullmatch(token)):
            return None
        token_id, secret = parts.groups()
        record = self.read().records.get(token_id)
        digest = sha256(secret.encode("utf-8", "replace")).digest()
        same = hmac.compare_digest(digest, record.digest if record else _NO_DIGEST)
        return record.owner if record and same else None

    def owner(self, token_id: str) -> Principal | None:
        """The owner of a token, by the token's public id; None once it is replaced or revoked."""
        record = self.read().records.get(token_id)
        return record.owner if record else None

    @property
    def holders(self) -> tuple[Principal, ...]:
        """The principals that hold a token."""
        return tuple(record.owner for record in self.read().records.values())

    @property
    def failure(self) -> str | None:
        """Why the file cannot be read, or None if it can."""
        self.read()
        return self._failure

    def issue(self, name: str, role: Role) -> str:
        """Make a new token, which replaces the owner's previous one."""
        owner = _check_principal(name, role)
        # 72 random bits for the id, so that no two tokens share one.
        token_id, secret = secrets.token_urlsafe(9), secrets.token_urlsafe(32)

        def add(contents: AccessFile) -> AccessFile:
            record = TokenRecord(owner, token_id, sha256(secret.encode()).digest())
            return replace(contents, records={**contents.without(owner), token_id: record})

        self._change(add)
        return f"sw_{token_id}_{secret}"

    def revoke(self, name: str, role: Role) -> bool:
        """Revoke a token; False if the owner has none."""
        owner = _check_principal(name, role)
        if owner not in self.holders and self._failure is None:
            return False
        self._change(lambda contents: replace(contents, records=contents.without(owner)))
        return True

    def pause(self) -> None:
        """Accept no questions until `resume`, even after a restart."""
        self._change(lambda contents: replace(contents, paused=True))

    def resume(self) -> None:
        """Accept questions again."""
        self._change(lambda contents: replace(contents, paused=False))

    def __repr__(self) -> str:
        return f"TokenStore({str(self.path)!r}, {len(self._contents.records)} tokens)"

    def _reload(self) -> None:
        """Read the file again; if that fails, keep the known contents and the reason."""
        version = _version(self._path)
        if version == self._seen and self._failure is None:
            return
        try:
            if version is None:
                raise self._missing()
            self._contents, self._seen = self._read()
        except ConfigError as error:
            if error.message != self._failure:
                _log.error("%s Known tokens stay valid; new tokens are not accepted.", error.message)
            self._failure = error.message
        else:
            if self._failure is not None:
                _log.warning("The access file %s can be read again.", self.path)
            self._failure = None

    def _read(self) -> tuple[AccessFile, _FileVersion]:
        """The contents of the file and its version; rejects an unreadable or invalid file."""
        try:
            with self.path.open("rb") as file:
                version = _version(file.fileno())
                text = file.read()
        except OSError as error:
            raise ConfigError(
                f"Cannot read the access file {self.path}: {error.strerror}.",
                hint="Make it readable and writable for the user that runs the service.",
            ) from None
        try:
            return _parse(text), version
        except (ValueError, TypeError, KeyError, RecursionError):
            raise ConfigError(
                f"{self.path} is damaged or not an access file of Sharewell.",
                hint="Check the path; the file was not changed. Restore a backup, or move the file away "
                "and issue new tokens.",
            ) from None

    def _change(self, change: Callable[[AccessFile], AccessFile]) -> None:
        """Read the file, and replace it by a changed one."""
        with self._changing, self._locked(), self._reading:
            before = AccessFile()
            if _version(self._path) is not None:
                before, _ = self._read()
            elif self._seen is not None:
                # Writing a new file with a single token would end all others.
                raise self._missing()
            changed = change(before)
            try:
                replace_private(self.path, _serialize(changed), self._inherit)
            except OSError as error:
                raise self._not_writable(error) from None
            self._contents, self._seen, self._failure = changed, _version(self._path), None

    def _inherit(self, new: Path) -> None:
        """Give a new file the owner of the old one, and a later date.

        A token made by root must not take the file from the service's user. File systems' clocks tick
        every few milliseconds and inodes are reused: without a later date, two versions written in quick
        succession could look the same.
        """
        with suppress(FileNotFoundError):
            old = os.stat(self.path)
            with suppress(PermissionError, AttributeError):
                os.chown(new, old.st_uid, old.st_gid)
            for step in _CLOCK_STEPS:
                later = max(time.time_ns(), old.st_mtime_ns + step)
                os.utime(new, ns=(later, later))
                if os.stat(new).st_mtime_ns > old.st_mtime_ns:
                    return

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Keep other processes from changing the file."""
        try:
            lock = FileLock(self.path.with_name(f"{self.path.name}.lock"), self.path, LOCK_TIMEOUT)
        except LedgerInUse:
            raise ConfigError(
                f"Another process is changing the access file {self.path}.", hint="Try again."
            ) from None
        except OSError as error:
            raise self._not_writable(error) from None
        try:
            yield
        finally:
            lock.release()

    def _missing(self) -> ConfigError:
        return ConfigError(
            f"The access file {self.path} has disappeared.",
            hint="Restore it; or restart the service and issue new tokens to all analysts and curators.",
        )

    def _not_writable(self, error: OSError) -> ConfigError:
        return ConfigError(
            f"Cannot write the access file {self.path}: {error.strerror}.",
            hint="Check that its folder exists, is writable and has free space.",
        )


def id_of(token: str) -> str:
    """The public id of a token."""
    return token[len("sw_") :][:12]


def check_name(name: str) -> str:
    """Validate the name of an analyst or curator."""
    try:
        if not isinstance(name, str):
            raise ConfigError("A name must be a string.")
        return validate_person(name)
    except ConfigError as error:
        raise RequestError(error.message, hint=error.hint) from None


def _check_principal(name: str, role: Role) -> Principal:
    if role not in get_args(Role):
        raise RequestError(f"Unknown role {str(role)[:40]!r}.", hint="Use analyst or curator.")
    return Principal(check_name(name), role)


def _version(file: str | int) -> _FileVersion:
    """The version of a file, by its path or descriptor."""
    try:
        found = os.stat(file)
    except FileNotFoundError:
        return None
    except OSError:
        return (0, 0, 0)  # It may exist; reading it reports why it cannot be read.
    return found.st_mtime_ns, found.st_size, found.st_ino


def _serialize(contents: AccessFile) -> bytes:
    tokens = [
        {"name": owner.name, "role": owner.role, "id": token_id, "sha256": digest.hex()}
        for owner, token_id, digest in contents.records.values()
    ]
    plain = {"format": FORMAT, "paused": contents.paused, "tokens": tokens}
    return (json.dumps(plain, indent=1) + "\n").encode()


def _parse(text: bytes) -> AccessFile:
    """Read the text of a file; raises ValueError, TypeError or KeyError if it is invalid."""
    plain = json.loads(text)
    if plain["format"] != FORMAT or type(plain["paused"]) is not bool:
        raise ValueError(FORMAT)
    records = [_parse_record(each) for each in plain["tokens"]]
    by_id = {record.id: record for record in records}
    if len(by_id) < len(records) or len({record.owner for record in records}) < len(records):
        raise ValueError("duplicate token")
    return AccessFile(by_id, plain["paused"])


def _parse_record(plain: Mapping[str, Any]) -> TokenRecord:
    name, role, token_id, digest = (plain[key] for key in ("name", "role", "id", "sha256"))
    if not _ID.fullmatch(token_id) or not _DIGEST.fullmatch(digest):
        raise ValueError("token")
    try:
        return TokenRecord(_check_principal(name, role), token_id, bytes.fromhex(digest))
    except RequestError:
        raise ValueError("owner") from None
