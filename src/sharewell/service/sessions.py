"""Sessions of browsers: what a sign-in gives in exchange for a token."""

from __future__ import annotations

import json
import logging
import re
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import Any

from sharewell.errors import ConfigError
from sharewell.service.ledger.files import replace_private
from sharewell.service.tokens import Principal, TokenStore

#: The format of the sessions file.
FORMAT = "sharewell sessions 1"
#: How long a session and a sign-in code last, in seconds.
SESSION_SECONDS = CODE_SECONDS = 12 * 60 * 60
#: The most sessions of one token; a further one ends the oldest.
MAX_SESSIONS = 20

_SECRET = re.compile(r"[A-Za-z0-9_-]{43}", re.ASCII)
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class SessionRecord:
    """A stored session: the id of the token that began it, and when it ends, in Unix time."""

    token_id: str
    ends: float


class SessionStore:
    """The sessions of a dataset, in a file beside its access file.

    A session is a random secret, of which only the hash is stored. It belongs to the token that began
    it, so it ends when that token is replaced or revoked; by itself it ends after `SESSION_SECONDS`. The
    file is written by the serving process alone. If it is damaged, users sign in again.
    """

    def __init__(self, tokens: TokenStore, clock: Callable[[], float] = time.time) -> None:
        self.path = tokens.path.with_name(f"{tokens.path.stem}.sessions.json")
        self._tokens = tokens
        self._clock = clock
        self._lock = Lock()
        self._sessions = _read(self.path)
        #: Single-use sign-in codes of this process, by hash: their token, and when they end.
        self._codes: dict[str, SessionRecord] = {}

    def begin(self, token_id: str) -> str:
        """Begin a session for the owner of a token: its secret."""
        secret = secrets.token_urlsafe(32)
        with self._lock:
            kept = dict(self._living())
            own = [at for at, session in kept.items() if session.token_id == token_id]
            for at in own[: max(0, len(own) - MAX_SESSIONS + 1)]:
                del kept[at]
            kept[_digest(secret)] = SessionRecord(token_id, self._clock() + SESSION_SECONDS)
            self._write(kept)
        return secret

    def owner(self, secret: str) -> Principal | None:
        """The owner of a session, or None if it is unknown or has ended."""
        session = self._sessions.get(_digest(secret)) if _SECRET.fullmatch(secret) else None
        if session is None or self._clock() >= session.ends:
            return None
        return self._tokens.owner(session.token_id)

    def end(self, secret: str) -> None:
        """End a session."""
        with self._lock:
            kept = dict(self._living())
            if kept.pop(_digest(secret), None) is not None:
                self._write(kept)

    def issue_code(self, token_id: str) -> str:
        """Make a code that begins one session in place of a token; it is kept in memory only."""
        code = secrets.token_urlsafe(32)
        with self._lock:
            self._codes[_digest(code)] = SessionRecord(token_id, self._clock() + CODE_SECONDS)
        return code

    def redeem(self, code: str) -> str | None:
        """The id of the token that a code stands for, once; None if it is unknown, used or too old."""
        with self._lock:
            found = self._codes.pop(_digest(code), None)
        return found.token_id if found and self._clock() < found.ends else None

    def _living(self) -> Iterator[tuple[str, SessionRecord]]:
        now = self._clock()
        for at, session in self._sessions.items():
            if now < session.ends and self._tokens.owner(session.token_id) is not None:
                yield at, session

    def _write(self, sessions: Mapping[str, SessionRecord]) -> None:
        plain = [
            {"sha256": at, "token": session.token_id, "ends": session.ends}
            for at, session in sessions.items()
        ]
        try:
            text = json.dumps({"format": FORMAT, "sessions": plain}, indent=1) + "\n"
            replace_private(self.path, text.encode())
        except OSError as error:
            raise ConfigError(
                f"Cannot write the sessions file {self.path}: {error.strerror}.",
                hint="Check that its folder is writable and has free space.",
            ) from None
        self._sessions = dict(sessions)


def csrf_token(secret: str) -> str:
    """What a page sends in a header to show that it may read the responses of its own server."""
    return _digest(f"csrf {secret}")


def _digest(secret: str) -> str:
    return sha256(secret.encode("utf-8", "replace")).hexdigest()


def _read(path: Path) -> dict[str, SessionRecord]:
    try:
        plain: dict[str, Any] = json.loads(path.read_bytes())
        if plain["format"] != FORMAT:
            raise ValueError(FORMAT)
        return {
            str(each["sha256"]): SessionRecord(str(each["token"]), float(each["ends"]))
            for each in plain["sessions"]
        }
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        _log.warning("%s cannot be read: all users have to sign in again.", path)
        return {}
