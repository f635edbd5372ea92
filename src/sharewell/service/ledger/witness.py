"""The witness: a second, small record of how far a ledger has come, in another place.

A ledger cannot tell that it was deleted, emptied or replaced by an older copy. The witness can: it holds
the dataset's id, the head of the chain and what each payer has spent, and is synced after every commit,
before the commit returns. So no data is touched under a charge, and no value is given away, that the
witness has not seen. It has one writer at a time, whatever ledger that writer keeps.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import orjson

from sharewell.errors import LedgerCorrupt, LedgerError, LedgerInUse, LedgerUnavailable
from sharewell.privacy.ledger import Begun, Charged, Event, Granted, Left, Opened, Recovered
from sharewell.service.ledger.codec import decode, encode
from sharewell.service.ledger.files import FileLock, make_private_folder, replace_private
from sharewell.service.ledger.store import Head

FORMAT = "sharewell witness 1"
#: The fewest bytes of a key file: 128 bits in hexadecimal.
MIN_KEY_BYTES = 32


@dataclass(frozen=True)
class WitnessRecord:
    """What a witness says of a ledger, up to its head; a fold over the events of the chain."""

    dataset: str = ""
    head: Head = field(default_factory=Head)
    #: What the dataset promises, once it was opened: the event, as it is stored.
    opened: str | None = None
    shares: Mapping[str, Fraction] = field(default_factory=dict)
    spent: Mapping[str, Fraction] = field(default_factory=dict)
    #: Path, size and time of the source when it was last opened. Private: no ledger holds them.
    source: Mapping[str, Any] = field(default_factory=dict)
    #: Who has left; None in a witness that was written before these were kept.
    gone: tuple[str, ...] | None = ()

    def after(self, events: Iterable[Event], head: Head) -> WitnessRecord:
        """The record after further events, the last of which is the head's."""
        dataset, opened = self.dataset, self.opened
        shares, spent, gone = dict(self.shares), dict(self.spent), self.gone
        for event in events:
            match event:
                case Begun(dataset):
                    pass
                case Opened():
                    opened = encode(event).decode()
                case Granted(payer, share):
                    shares[payer], spent[payer] = share, Fraction(0)
                case Charged(bill) | Recovered(bill):
                    for payer, cost in bill.items():
                        spent[payer] += cost
                case Left(payer) if gone is not None:
                    gone = (*gone, payer)
        return WitnessRecord(dataset, head, opened, shares, spent, self.source, gone)

    def to_json(self) -> dict[str, Any]:
        """The record as plain data."""
        return {
            "dataset": self.dataset,
            "head": str(self.head),
            "opened": self.opened,
            "shares": {payer: str(share) for payer, share in self.shares.items()},
            "spent": {payer: str(cost) for payer, cost in self.spent.items()},
            "source": dict(self.source),
            # Not a new format: earlier versions, which do not know this key, may read the file.
            **({} if self.gone is None else {"gone": list(self.gone)}),
        }

    @classmethod
    def from_json(cls, plain: Mapping[str, Any]) -> WitnessRecord:
        """The record that `to_json` wrote; raises ValueError, TypeError or KeyError otherwise."""
        opened = plain["opened"]
        if opened is not None and not isinstance(decode(opened.encode()), Opened):
            raise TypeError
        return cls(
            str(plain["dataset"]),
            Head.parse(plain["head"]),
            opened,
            {payer: Fraction(share) for payer, share in plain["shares"].items()},
            {payer: Fraction(cost) for payer, cost in plain["spent"].items()},
            dict(plain["source"]),
            tuple(map(str, plain["gone"])) if "gone" in plain else None,
        )


class Witness:
    """A record in a file, which only its owner may read; with a key, authenticated by an HMAC.

    Without the key, a witness that agrees with a rewritten or truncated ledger cannot be made; an older
    witness can still be put back together with the ledger of its time.
    """

    def __init__(self, path: Path, record: WitnessRecord, key: bytes | None = None) -> None:
        self.path = path
        self.record = record
        self._key = key
        #: What the file may hold if this process alone writes it: after a failed write, the old or the
        #: new content. Empty before the first read or write.
        self._expected: tuple[bytes, ...] = ()

    @classmethod
    def read(cls, path: Path, key: bytes | None = None) -> Witness | None:
        """Read a witness; None if there is none."""
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise LedgerUnavailable(
                f"Cannot read the witness {path}: {error.strerror}.",
                hint="Make it readable and writable for the user that runs the service.",
            ) from None
        try:
            plain = orjson.loads(content)
            if plain.pop("format") != FORMAT:
                raise ValueError(FORMAT)
            mac = plain.pop("hmac", None)
            record = WitnessRecord.from_json(plain)
        except (ValueError, TypeError, KeyError, AttributeError, ArithmeticError, LedgerError):
            raise LedgerCorrupt(
                f"{path} is damaged or not a witness of Sharewell.",
                hint="Check the path; or move the file away, and run `sharewell adopt` if you are sure "
                "that the ledger is complete.",
            ) from None
        if (mac is None) != (key is None):
            has, hint = (
                ("an HMAC", "Set service.ledger_key to its key file.")
                if key is None
                else ("no HMAC", "It was begun without a key: remove service.ledger_key.")
            )
            raise LedgerError(f"The witness {path} has {has}.", hint=hint)
        if key is not None and not hmac.compare_digest(_hmac(key, plain), str(mac)):
            raise LedgerCorrupt(
                f"The HMAC of the witness {path} is wrong: the file or the key has changed.",
                hint="Check service.ledger_key; otherwise restore ledger and witness from a backup.",
            )
        witness = cls(path, record, key)
        witness._expected = (content,)
        return witness

    def forget_chain(self) -> None:
        """Have the next sync make the record anew, from the first event of the chain on."""
        self.record = WitnessRecord(source=self.record.source)

    def write(self, record: WitnessRecord) -> None:
        """Replace the file, durably. After a failure, the next write covers everything since the last.

        Raises LedgerInUse if another process has written since: locks may not hold between hosts.
        """
        plain = record.to_json()
        mac = {} if self._key is None else {"hmac": _hmac(self._key, plain)}
        content = orjson.dumps({"format": FORMAT, **plain, **mac}, option=orjson.OPT_INDENT_2) + b"\n"
        try:
            # Not the link, if it is one: other writers would keep the file that it stood for.
            file = self.path.resolve()
            try:
                found = file.read_bytes()
            except FileNotFoundError:
                found = None
                make_private_folder(file.parent)
            if self._expected and found is not None and found not in self._expected:
                raise LedgerInUse(
                    f"Another process has changed the witness {self.path} since this one last wrote it.",
                    hint="Find the other writer and stop one of the two; then open the ledger again.",
                )
            self._expected = (content,) if found is None else (found, content)
            replace_private(file, content)
        except OSError as error:
            raise LedgerUnavailable(
                f"Cannot write the witness {self.path}: {error.strerror}.",
                hint="Check that its folder is writable and has free space.",
            ) from None
        self.record, self._expected = record, (content,)


def lock_witness(path: Path, wait: float = 0.0) -> FileLock:
    """Lock a witness against other processes, and other ledgers of this process, until `release`."""
    path = path.resolve()
    try:
        make_private_folder(path.parent)
        return FileLock(path.with_name(f"{path.name}.lock"), path, wait, kind="witness")
    except OSError as error:
        raise LedgerUnavailable(
            f"Cannot lock the witness {path}: {error.strerror}.",
            hint="Check that its folder is writable, and that its file system has locks.",
        ) from None


def read_key(path: Path) -> bytes:
    """Read a key file; it must hold enough bytes to be a key."""
    try:
        key = path.read_bytes().strip()
    except OSError as error:
        raise LedgerError(f"Cannot read the key file {path}: {error.strerror}.") from None
    if len(key) < MIN_KEY_BYTES:
        raise LedgerError(
            f"The key file {path} has {len(key)} bytes; a key needs at least {MIN_KEY_BYTES}.",
            hint="Make one: openssl rand -hex 32.",
        )
    return key


def _hmac(key: bytes, plain: Mapping[str, Any]) -> str:
    return hmac.digest(key, orjson.dumps(plain, option=orjson.OPT_SORT_KEYS), "sha256").hex()
