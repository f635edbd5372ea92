"""The service table: where a running service keeps its files, who looks after it, what it allows."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from sharewell.config.names import person_name
from sharewell.config.section import Section
from sharewell.errors import ConfigError

#: How the address of a ledger in PostgreSQL begins.
DATABASES = ("postgresql://", "postgres://")


@dataclass(frozen=True)
class Service:
    """What `sharewell serve` does with one dataset."""

    #: An absolute path, or the address of a PostgreSQL database.
    ledger: str
    #: The file of the tokens' hashes.
    access: Path
    curators: tuple[str, ...]
    #: Seconds between two moments at which answers are released.
    release_every: float
    #: Of each token.
    requests_per_second: float
    #: How many questions of one analyst may wait at a time.
    most_waiting: int
    #: How many numbers one question may ask for.
    most_numbers: int
    #: Whether the fairness certificate is kept while the service runs.
    certificate: bool
    #: Seconds between two turns of the randomized scheduler.
    tick: float

    @property
    def ledger_is_file(self) -> bool:
        """Whether the ledger is a file, and not in a database."""
        return not self.ledger.startswith(DATABASES)


def read_service(section: Section, path: Path, name: str, analysts: Collection[str]) -> Service:
    """Read the table; `path` is the file that it stands in, `name` the dataset's."""
    found = Service(
        ledger=_ledger(section, path, name),
        access=_beside(section, path, "access", f"{name}.access.json"),
        curators=_curators(section, analysts),
        release_every=section.number("release_every", 0.001, 10, "0.01"),
        requests_per_second=section.number("requests_per_second", 0.01, 1_000_000, "50"),
        most_waiting=section.whole("most_waiting", 1, 1_000_000, 100),
        most_numbers=section.whole("most_numbers", 1, 100_000_000, 10_000),
        certificate=section.flag("certificate", default=True),
        tick=section.number("tick", 0.001, 60, "0.05"),
    )
    section.end()
    if str(found.access) == found.ledger:
        raise ConfigError(
            f"{section.where('access')} and {section.where('ledger')} are the same file.",
            hint="Leave one of them out.",
        )
    return found


def _ledger(section: Section, path: Path, name: str) -> str:
    address = section.text("ledger", "")
    if not address.startswith(DATABASES):
        if "://" in address:
            raise ConfigError(
                f"{section.where('ledger')} is an address of no kind that is known.",
                hint="Write a path, or postgresql://user@host/database.",
            )
        return str(_beside(section, path, "ledger", f"{name}.ledger.sqlite"))
    if _has_password(address):
        # The file's text is stored in the ledger itself, and addresses are shown in messages.
        raise ConfigError(
            f"{section.where('ledger')} holds a password, and this file is no place for one.",
            hint="Put it into ~/.pgpass or the variable PGPASSWORD, and leave it out here.",
        )
    return str(address)


def _has_password(address: str) -> bool:
    try:
        parts = urlsplit(address)
        return bool(parts.password) or "password" in parse_qs(parts.query)
    except ValueError:
        return False


def _beside(section: Section, path: Path, key: str, default: str) -> Path:
    """A file, relative to the one that names it."""
    written = section.text(key, default)
    found = Path(path.parent, written).absolute()
    if not written.strip() or "\0" in written or not found.name:
        raise ConfigError(
            f"{section.where(key)} must name a file.",
            hint=f"Leave it out for {default}, beside this file.",
        )
    return found


def _curators(section: Section, analysts: Collection[str]) -> tuple[str, ...]:
    key = section.where("curators")
    names = tuple(person_name(name, key) for name in section.texts("curators", ["curator"]))
    if not names:
        raise ConfigError(f"{key} names nobody.", hint='Name at least one: ["curator"].')
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise ConfigError(f"{key} names {twice!r} twice.", hint="Name everybody once.")
    if both := next((name for name in names if name in analysts), None):
        given = "" if section.has("curators") else " if none is given"
        raise ConfigError(
            f"{both!r} is an analyst, and also one of {key}{given}.",
            hint="Whoever is both needs two names: curators see the ledger, analysts only their own.",
        )
    return names
