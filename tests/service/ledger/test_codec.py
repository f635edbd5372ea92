"""The codec: every event comes back as it was, and what could not is refused."""

import json
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharewell.errors import LedgerCorrupt, LedgerError
from sharewell.privacy.ledger import Answered, Charged, Configured, Done, Granted, Left, Released
from sharewell.service.ledger.codec import KINDS, decode, encode
from tests.service.ledger.events import BY_KIND, SAMPLES, events


def test_every_kind_is_tried():
    assert set(BY_KIND) == set(KINDS.values()) == {type(event) for event in SAMPLES}


@pytest.mark.parametrize("kind", BY_KIND, ids=lambda kind: kind.__name__)
@given(data=st.data())
def test_every_event_comes_back_as_it_was(kind, data):
    event = data.draw(BY_KIND[kind])
    back = decode(encode(event))
    assert back == event
    assert type(back) is kind
    # Equality takes 1, 1.0 and True for the same; what is written tells them apart.
    assert encode(back) == encode(event)


@given(events)
def test_what_is_stored_is_canonical_with_its_kind_and_version(event):
    def in_order(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        assert [key for key, _ in pairs] == sorted(key for key, _ in pairs)
        return dict(pairs)

    body = encode(event)
    stored = json.loads(body, object_pairs_hook=in_order)
    assert (stored["kind"], stored["version"]) == (type(event).__name__.lower(), event.version)
    # Another library may write a float in another way, but no space and no other sign.
    plain = json.dumps(stored, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert body.count(b" ") == plain.encode().count(b" ")
    assert encode(decode(body)) == body


def test_the_order_in_which_a_bill_was_written_does_not_matter():
    one = Charged({"ann": Fraction(1), "bob": Fraction(2)}, {"a": 1, "b": 2})
    two = Charged({"bob": Fraction(2), "ann": Fraction(1)}, {"b": 2, "a": 1})
    assert encode(one) == encode(two)


@pytest.mark.parametrize(
    "event",
    [
        Configured({1: "a key that is no text"}),  # type: ignore[dict-item]
        Configured({"inside": {1: 2}}),
        Configured({"a tuple": (1, 2)}),
        Configured({"a set": {1}}),
        Configured({"not a number": float("nan")}),
        Configured({"endless": float("inf")}),
        Configured({"exact": Fraction(1, 3)}),
        Configured({"bytes": b"0"}),
        Configured({"too long": 10**5000}),
        Configured({"more than 64 bits": 2**64}),
        Configured({"half of a pair": "\ud800"}),
        Configured(7),  # type: ignore[arg-type]
        Granted("ann", 0.1),  # type: ignore[arg-type]
        Granted("ann", 1),  # type: ignore[arg-type]
        Released(0, [1, 2]),  # type: ignore[arg-type]
        Released(0, (True,)),
        Released(0, (1.0,)),  # type: ignore[arg-type]
        Released("0", (1,)),  # type: ignore[arg-type]
        Answered(0, ([],)),  # type: ignore[arg-type]
        Left(None),  # type: ignore[arg-type]
        Charged({1: Fraction(1)}, {}),  # type: ignore[dict-item]
    ],
)
def test_what_would_not_come_back_as_it_was_is_refused(event):
    with pytest.raises(LedgerError, match="cannot be stored as plain data") as caught:
        encode(event)
    assert caught.value.hint


def test_something_else_than_an_event_is_refused():
    @dataclass(frozen=True)
    class Done:
        version: ClassVar[int] = 1
        analyst: str = "ann"

    for thing in ({"kind": "done"}, "done", None, Done()):
        with pytest.raises(LedgerError, match="is not an event"):
            encode(thing)  # type: ignore[arg-type]


def changed(event, **parts):
    return json.dumps({**json.loads(encode(event)), **parts}).encode()


def test_a_kind_that_is_not_known_is_refused_by_name():
    with pytest.raises(
        LedgerError, match="'forgiven' of version 1, and this Sharewell knows no events"
    ) as e:
        decode(changed(Done("ann"), kind="forgiven"))
    assert "newer" in e.value.hint
    assert not isinstance(e.value, LedgerCorrupt)


def test_a_newer_version_of_a_kind_is_refused_and_not_guessed_at():
    with pytest.raises(LedgerError, match=r"'done' of version 2, .* knows versions up to 1"):
        decode(changed(Done("ann"), version=2, data={"analyst": "ann", "until": "noon"}))


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\xff",
        b"{",
        b"[]",
        b"7",
        b"[" * 100_000,
        b'{"kind":"done"}',
        changed(Done("ann"), kind=1),
        changed(Done("ann"), version="1"),
        changed(Done("ann"), version=True),
        changed(Done("ann"), version=0),
        changed(Done("ann"), data=[]),
        changed(Done("ann"), data={}),
        changed(Done("ann"), data={"analyst": 1}),
        changed(Done("ann"), data={"payer": "ann"}),
        changed(Done("ann"), data={"analyst": "ann", "more": 1}),
        changed(Granted("ann", Fraction(1)), data={"payer": "ann", "share": "1/0"}),
        changed(Granted("ann", Fraction(1)), data={"payer": "ann", "share": "0.5"}),
        changed(Granted("ann", Fraction(1)), data={"payer": "ann", "share": 1}),
        changed(Granted("ann", Fraction(1)), data={"payer": "ann", "share": []}),
        changed(Released(0, ()), data={"charge": 0, "values": {"0": 1}}),
    ],
)
def test_what_is_no_event_is_called_corrupt(body):
    with pytest.raises(LedgerCorrupt):
        decode(body)


@given(st.binary(max_size=60) | st.sampled_from(SAMPLES).map(encode), st.data())
def test_whatever_the_bytes_decoding_gives_an_event_or_an_error_of_ours(body, data):
    if body:
        at = data.draw(st.integers(0, len(body) - 1))
        body = body[:at] + bytes([data.draw(st.integers(0, 255))]) + body[at + 1 :]
    with suppress(LedgerError):
        assert encode(decode(body))
