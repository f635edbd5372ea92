"""Events as canonical JSON: UTF-8, sorted keys, no spaces, amounts as exact text such as "1/10".

Equal events are equal bytes. The chain hashes these bytes, and they are never rewritten: an event of an
older version is converted while it is read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, fields
from fractions import Fraction
from functools import lru_cache
from hashlib import sha256
from itertools import groupby
from typing import Any, NamedTuple, get_args, get_type_hints

import orjson

from sharewell.errors import LedgerCorrupt, LedgerError
from sharewell.privacy.ledger import Answered, AnsweredFree, Event

#: Subclasses and dataclasses are rejected instead of being written as something else.
_PLAIN = orjson.OPT_SORT_KEYS | orjson.OPT_PASSTHROUGH_SUBCLASS | orjson.OPT_PASSTHROUGH_DATACLASS

#: Every kind of event by its name in the ledger.
KINDS: Mapping[str, type[Event]] = {kind.__name__.lower(): kind for kind in get_args(Event)}

#: Turns the stored data of one version of a kind into the data of the next version.
Upcaster = Callable[[dict[str, Any]], dict[str, Any]]


def _group_scales(data: dict[str, Any]) -> dict[str, Any]:
    """Turn the scales of a charge, one for each row, into runs of equal ones."""
    purpose = data["purpose"]
    if type(scales := purpose.get("scales")) is not list:
        return data
    runs = [[scale, len(list(same))] for scale, same in groupby(scales)]
    return {**data, "purpose": {**purpose, "scales": runs}}


#: The upcaster of each (kind, version) whose fields changed in the next version. A version that only
#: adds fields with defaults needs none.
UPCASTERS: dict[tuple[str, int], Upcaster] = {("charged", 1): _group_scales}


def encode(event: Event) -> bytes:
    """Serialize an event as the bytes that are stored and hashed."""
    name = type(event).__name__.lower()
    if KINDS.get(name) is not type(event):
        raise LedgerError(f"{type(event).__name__} is not a ledger event.", hint="Append an event.")
    data = {field.name: getattr(event, field.name) for field in _FIELDS[name]}
    try:
        stored = {"kind": name, "version": event.version, "data": data}
        body = orjson.dumps(stored, _to_plain, option=_PLAIN)
        # JSON turns tuples into lists and NaN into null without an error. Reject here what would be
        # read back as something else.
        if decode(body) == event:
            return body
    except (LedgerError, TypeError, ValueError, RecursionError):
        pass
    raise LedgerError(
        f"Cannot store this {name} event as plain data.",
        hint="Use strings, 64-bit integers, finite floats, booleans, None, lists, and dictionaries with "
        "string keys.",
    )


def decode(body: bytes) -> Event:
    """Read the bytes that `encode` wrote, in this or an earlier version of Sharewell."""
    try:
        stored = orjson.loads(body)
        name, version, data = stored["kind"], stored["version"], stored["data"]
        if type(name) is not str or type(version) is not int or type(data) is not dict or version < 1:
            raise TypeError
    except (ValueError, RecursionError, TypeError, KeyError):
        raise LedgerCorrupt(
            "The stored bytes are not an event.", hint="Restore the ledger from a backup."
        ) from None
    kind = KINDS.get(name)
    if kind is None or version > kind.version:
        known = "does not know this kind" if kind is None else f"knows versions up to {kind.version}"
        raise LedgerError(
            f"Unknown event {name!r} of version {version}: this version of Sharewell {known}.",
            hint="Open the ledger with the version of Sharewell that wrote it, or a newer one.",
        )
    try:
        for older in range(version, kind.version):
            if upcast := UPCASTERS.get((name, older)):
                data = upcast(data)
        return kind(*_read_fields(name, data))
    except (AttributeError, KeyError, TypeError, ValueError, ArithmeticError):
        raise LedgerCorrupt(
            f"A stored {name} event has invalid fields.", hint="Restore the ledger from a backup."
        ) from None


def free_answers(asked: int, answers: Sequence[Mapping[str, Any]]) -> AnsweredFree:
    """The event of answers that cost nothing."""
    body = orjson.dumps(answers, option=_PLAIN)
    return AnsweredFree(asked, len(answers), len(body), sha256(body).hexdigest(), body.decode())


def read_answers(event: Answered | AnsweredFree) -> tuple[Mapping[str, Any], ...]:
    """The answers of an event, checked where they are stored beside the chain."""
    if isinstance(event, Answered):
        return event.answers
    if damage := text_damage(event, event.text):
        raise LedgerCorrupt(
            f"The answers to question {event.asked} {damage}.", hint="Restore the ledger from a backup."
        )
    return tuple(orjson.loads(event.text or ""))


def text_damage(event: AnsweredFree, text: str | None) -> str:
    """What is wrong with the text stored for free answers; empty where nothing is."""
    if text is None:
        return "are missing"
    body = text.encode(errors="replace")
    if sha256(body).hexdigest() != event.digest:
        return "were changed"
    stated = (event.length, event.size)
    return "" if (len(body), len(orjson.loads(body))) == stated else "do not have the stated size"


def _read_fields(name: str, data: dict[str, Any]) -> list[Any]:
    """The values of an event's fields; a field that is not stored has its default."""
    known = _FIELDS[name]
    if len(data) == len(known):
        return [field.read(data[field.name]) for field in known]
    if data.keys() - {field.name for field in known}:
        raise KeyError
    return [
        field.make_default()
        if field.name not in data and field.make_default
        else field.read(data[field.name])
        for field in known
    ]


def _exactly(*types: type) -> Callable[[Any], Any]:
    """Accept values of exactly these types; a bool is not an int."""

    def check(value: Any) -> Any:
        if type(value) not in types:
            raise TypeError
        return value

    return check


def _to_plain(value: Any) -> Any:
    """An amount as exact text, and a read-only mapping as a dictionary; nothing else is plain data."""
    if type(value) is Fraction:
        return f"{value.numerator}/{value.denominator}"
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError


@lru_cache(maxsize=4096)
def _read_amount(text: str) -> Fraction:
    numerator, _, denominator = text.partition("/")
    return Fraction(int(numerator), int(denominator))


def _read_bill(stored: Any) -> dict[str, Fraction]:
    return {payer: _read_amount(cost) for payer, cost in _a_dict(stored).items()}


def _read_numbers(stored: Any) -> tuple[int, ...]:
    """Accept signed integers of 64 bits; a release may have millions."""
    values = tuple(_a_list(stored))
    if not {*map(type, values)} <= {int}:
        raise TypeError
    if values and max(values) >= 2**63:
        raise ValueError
    return values


def _read_each(read: Callable[[Any], Any]) -> Callable[[Any], tuple[Any, ...]]:
    return lambda stored: tuple([read(value) for value in _a_list(stored)])


_a_dict, _a_list, _a_text = _exactly(dict), _exactly(list), _exactly(str)

#: How a field of each type is read. A new kind of event with these types needs no code.
_READERS: dict[Any, Callable[[Any], Any]] = {
    str: _a_text,
    int: _exactly(int),
    bool: _exactly(bool),
    str | None: _exactly(str, type(None)),
    int | None: _exactly(int, type(None)),
    Fraction: _read_amount,
    Mapping[str, Any]: _a_dict,
    Mapping[str, Fraction]: _read_bill,
    tuple[int, ...]: _read_numbers,
    tuple[str, ...]: _read_each(_a_text),
    tuple[Mapping[str, Any], ...]: _read_each(_a_dict),
}


class _Field(NamedTuple):
    """A field of an event: how it is read, and its value if it is not stored."""

    name: str
    read: Callable[[Any], Any]
    make_default: Callable[[], Any] | None


def _fields_of(kind: type[Event]) -> list[_Field]:
    hints = get_type_hints(kind)
    return [
        _Field(each.name, _READERS[hints[each.name]], _default_of(each))
        for each in fields(kind)
        if each.compare  # The text of free answers is stored beside the chain.
    ]


def _default_of(field: Field[Any]) -> Callable[[], Any] | None:
    if field.default is not MISSING:
        return lambda: field.default
    return None if field.default_factory is MISSING else field.default_factory


_FIELDS = {name: _fields_of(kind) for name, kind in KINDS.items()}
