"""The codec: an event as canonical JSON and back, with the name and the version of its kind.

Canonical means that equal events are equal bytes: UTF-8, keys in order, no spaces. Amounts are exact
text such as `"1/10"`. The chain hashes these bytes, so what is read back is what was written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from fractions import Fraction
from functools import lru_cache
from typing import Any, get_args, get_type_hints

import orjson

from sharewell.errors import LedgerCorrupt, LedgerError
from sharewell.privacy.ledger import Event

#: Objects that only look plain are refused rather than written as something else.
_PLAIN = orjson.OPT_SORT_KEYS | orjson.OPT_PASSTHROUGH_SUBCLASS | orjson.OPT_PASSTHROUGH_DATACLASS

#: Every kind by its name in the ledger.
KINDS: Mapping[str, type[Event]] = {kind.__name__.lower(): kind for kind in get_args(Event)}


def encode(event: Event) -> bytes:
    """An event as the bytes that are stored and hashed."""
    name = type(event).__name__.lower()
    if KINDS.get(name) is not type(event):
        raise LedgerError(f"A {type(event).__name__} is not an event.", hint="Append an event.")
    try:
        data = {field: write(getattr(event, field)) for field, write, _ in _FIELDS[name]}
        body = orjson.dumps({"kind": name, "version": event.version, "data": data}, option=_PLAIN)
        # JSON would quietly turn a tuple into a list and NaN into null. What cannot come back as it was
        # is refused here, while somebody is there to hear it.
        if orjson.loads(body)["data"] == data:
            return body
    except (AttributeError, TypeError, ValueError, RecursionError):
        pass
    raise LedgerError(
        f"This {name} event cannot be stored as plain data.",
        hint="Use texts, whole numbers of 64 bits, finite floats, true, false, None, and lists and "
        "dictionaries with texts as keys.",
    )


def decode(body: bytes) -> Event:
    """The event that `encode` wrote; a kind or a version that is not known is refused."""
    try:
        stored = orjson.loads(body)
        name, version, data = stored["kind"], stored["version"], stored["data"]
        if type(name) is not str or type(version) is not int or type(data) is not dict or version < 1:
            raise TypeError
    except (ValueError, RecursionError, TypeError, KeyError):
        raise LedgerCorrupt(
            "What is stored is not an event.", hint="Restore the ledger from a backup."
        ) from None
    kind = KINDS.get(name)
    if kind is None or version > kind.version:
        known = "no events of that kind" if kind is None else f"versions up to {kind.version}"
        raise LedgerError(
            f"There is an event {name!r} of version {version}, and this Sharewell knows {known}.",
            hint="Open the ledger with the version of Sharewell that wrote it, or a newer one.",
        )
    converters = _FIELDS[name]
    try:
        if len(data) != len(converters):
            raise TypeError
        return kind(*[read(data[field]) for field, _, read in converters])
    except (AttributeError, KeyError, TypeError, ValueError, ArithmeticError):
        raise LedgerCorrupt(
            f"A stored {name} event does not have the fields of one.",
            hint="Restore the ledger from a backup.",
        ) from None


def _exactly(*types: type) -> Callable[[Any], Any]:
    """Passes a value on if it has one of these types; a bool is no int here."""

    def check(value: Any) -> Any:
        if type(value) not in types:
            raise TypeError
        return value

    return check


def _write_amount(value: Fraction) -> str:
    if type(value) is not Fraction:
        raise TypeError
    return f"{value.numerator}/{value.denominator}"


@lru_cache(maxsize=4096)
def _read_amount(text: str) -> Fraction:
    numerator, _, denominator = text.partition("/")
    return Fraction(int(numerator), int(denominator))


def _write_mapping(value: Mapping[str, Any]) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise TypeError
    return dict(value)


def _write_bill(bill: Mapping[str, Fraction]) -> dict[str, str]:
    return {_a_text(payer): _write_amount(cost) for payer, cost in bill.items()}


def _read_bill(stored: Any) -> dict[str, Fraction]:
    return {payer: _read_amount(cost) for payer, cost in _a_dict(stored).items()}


def _read_each(read: Callable[[Any], Any]) -> Callable[[Any], tuple[Any, ...]]:
    return lambda stored: tuple([read(value) for value in _a_list(stored)])


def _write_each(write: Callable[[Any], Any]) -> Callable[[Any], list[Any]]:
    return lambda values: [write(value) for value in _a_tuple(values)]


_a_dict, _a_list, _a_tuple = _exactly(dict), _exactly(list), _exactly(tuple)
_an_int, _a_text = _exactly(int), _exactly(str)

#: How a field of each type is written and read. A new kind of event needs no code, only these types.
_CONVERTERS: dict[Any, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    **{
        hint: (_exactly(*types), _exactly(*types))
        for hint, types in {
            str: (str,),
            int: (int,),
            bool: (bool,),
            str | None: (str, type(None)),
            int | None: (int, type(None)),
        }.items()
    },
    Fraction: (_write_amount, _read_amount),
    Mapping[str, Any]: (_write_mapping, _a_dict),
    Mapping[str, Fraction]: (_write_bill, _read_bill),
    tuple[int, ...]: (_write_each(_an_int), _read_each(_an_int)),
    tuple[Mapping[str, Any], ...]: (_write_each(_write_mapping), _read_each(_a_dict)),
}


def _converters(kind: type[Event]) -> list[tuple[str, Callable[[Any], Any], Callable[[Any], Any]]]:
    hints = get_type_hints(kind)
    return [(field.name, *_CONVERTERS[hints[field.name]]) for field in fields(kind)]


_FIELDS = {name: _converters(kind) for name, kind in KINDS.items()}
