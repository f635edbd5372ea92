"""The service table: the files, the curators and the limits of a running service."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from sharewell.config.section import Section, validate_person
from sharewell.errors import ConfigError
from sharewell.options import BOOLEAN, STRING, STRINGS, Option, integer, number

#: The schemes of a ledger in PostgreSQL.
DATABASES = ("postgresql://", "postgres://")

SERVICE_OPTIONS = (
    Option("ledger", STRING, None, "file or PostgreSQL URL of the ledger", unset="NAME.ledger.sqlite"),
    Option(
        "witness",
        STRING,
        None,
        "file that records the ledger's head; keep it on another disk, or share it with a standby",
        unset="a file in ~/.local/state/sharewell, named after the source",
    ),
    Option(
        "ledger_key", STRING, None, "file with a key that authenticates the witness", unset="no HMAC"
    ),
    Option("access", STRING, None, "file with the hashes of the tokens", unset="NAME.access.json"),
    Option("curators", STRINGS, ["curator"], "who may read the ledger, admit analysts and pause"),
    Option("release_every", number(0.001, 10), 0.1, "seconds between two releases of answers"),
    Option("requests_per_second", number(0.01, 1_000_000), 50, "rate limit per token"),
    Option(
        "most_waiting", integer(1, 1_000_000), 100, "maximum number of waiting questions per analyst"
    ),
    Option("most_numbers", integer(1, 100_000_000), 10_000, "maximum size of one answer, in numbers"),
    Option("max_sql_bytes", integer(100, 100_000), 16_384, "maximum bytes of a question's SQL"),
    Option(
        "max_queue_seconds",
        number(0.01, 3600),
        5,
        "seconds after which a question not yet started is refused",
    ),
    Option(
        "max_free_bytes",
        integer(0, 10**15),
        64_000_000,
        "maximum bytes stored of one analyst's free questions and answers",
    ),
    Option(
        "max_seconds",
        number(0.01, 86_400),
        5,
        "maximum estimated seconds of computing one question",
    ),
    Option(
        "max_seconds_waiting",
        number(0.01, 86_400),
        60,
        "maximum estimated seconds of computing one analyst's waiting questions",
    ),
    Option("max_megabytes", integer(1, 1_000_000), 500, "maximum estimated megabytes for one question"),
    Option("certificate", BOOLEAN, True, "whether the fairness certificate is kept up to date"),
    Option("tick", number(0.001, 60), 0.05, "seconds between two turns of the randomized scheduler"),
)


@dataclass(frozen=True)
class Service:
    """The settings of `sharewell serve` for one dataset; see SERVICE_OPTIONS."""

    #: An absolute path, or the URL of a PostgreSQL database.
    ledger: str
    access: Path
    curators: tuple[str, ...]
    release_every: float
    requests_per_second: float
    most_waiting: int
    most_numbers: int
    max_sql_bytes: int
    max_queue_seconds: float
    max_free_bytes: int
    max_seconds: float
    max_seconds_waiting: float
    max_megabytes: int
    certificate: bool
    tick: float
    #: None for the default, which follows from the source.
    witness: Path | None = None
    ledger_key: Path | None = None

    @property
    def ledger_is_file(self) -> bool:
        """Whether the ledger is a file, and not in a database."""
        return not self.ledger.startswith(DATABASES)


def read_service(section: Section, path: Path, name: str, analysts: Collection[str]) -> Service:
    """Read the table of the file at `path`; `name` is the dataset's."""
    values = section.read_only(SERVICE_OPTIONS)
    values["ledger"] = _ledger(section, path, values["ledger"], f"{name}.ledger.sqlite")
    for key in ("witness", "ledger_key"):
        if values[key] is not None:
            values[key] = _beside(section, path, key, values[key], "")
    values["access"] = _beside(section, path, "access", values["access"], f"{name}.access.json")
    values["curators"] = _curators(section, values["curators"], analysts)
    service = Service(**values)
    files: dict[str, str] = {}
    for key in ("ledger", "access", "witness", "ledger_key"):
        found = getattr(service, key)
        if found is not None and (other := files.setdefault(str(found), key)) != key:
            raise ConfigError(
                f"{section.where(key)} and {section.where(other)} are the same file.",
                hint="Remove one of them to use its default.",
            )
    return service


def _ledger(section: Section, path: Path, address: str | None, default: str) -> str:
    if address is None or "://" not in address:
        return str(_beside(section, path, "ledger", address, default))
    if not address.startswith(DATABASES):
        raise ConfigError(
            f"{section.where('ledger')} has an unknown scheme.",
            hint="Use a path, or postgresql://user@host/database.",
        )
    if _has_password(address):
        # The ledger stores the text of this file, and messages show addresses.
        raise ConfigError(
            f"{section.where('ledger')} contains a password, which the ledger would store.",
            hint="Remove it here, and put it into ~/.pgpass or the environment variable PGPASSWORD.",
        )
    return address


def _has_password(address: str) -> bool:
    try:
        parts = urlsplit(address)
        return bool(parts.password) or "password" in parse_qs(parts.query)
    except ValueError:
        return False


def _beside(section: Section, path: Path, key: str, written: str | None, default: str) -> Path:
    """A file, relative to the one that names it."""
    written = default if written is None else written
    found = Path(path.parent, written).absolute()
    if not written.strip() or "\0" in written or not found.name:
        raise ConfigError(
            f"{section.where(key)} must name a file, and {written!r} does not.",
            hint=f"Remove it to use {default}, in the folder of this file."
            if default
            else "Remove it to use the default.",
        )
    return found


def _curators(section: Section, given: Sequence[str], analysts: Collection[str]) -> tuple[str, ...]:
    key = section.where("curators")
    names = tuple(validate_person(name, key) for name in given)
    if not names:
        raise ConfigError(f"{key} is empty.", hint='Name at least one: ["curator"].')
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise ConfigError(f"{key} lists {twice!r} twice.", hint="Remove one of them.")
    if both := next((name for name in names if name in analysts), None):
        default = "" if section.has("curators") else ", by default"
        raise ConfigError(
            f"{both!r} is both an analyst and one of {key}{default}.",
            hint="Use two names: a curator reads the whole ledger, an analyst only their own answers.",
        )
    return names
