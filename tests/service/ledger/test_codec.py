"""The codec: every event comes back as it was, and what could not is refused."""

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharewell.errors import LedgerCorrupt, LedgerError
from sharewell.privacy.ledger import Answered, Charged, Configured, Done, Granted, Left, Released
from sharewell.service.ledger import codec
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
        Released(0, (2**63,)),
        Released("0", (1,)),  # type: ignore[arg-type]
        Answered(0, ([],)),  # type: ignore[arg-type]
        Left(None),  # type: ignore[arg-type]
        Charged({1: Fraction(1)}, {}),  # type: ignore[dict-item]
    ],
)
def test_what_would_not_come_back_as_it_was_is_refused(event):
    with pytest.raises(LedgerError, match="as plain data") as caught:
        encode(event)
    assert caught.value.hint


def test_something_else_than_an_event_is_refused():
    @dataclass(frozen=True)
    class Done:
        version: ClassVar[int] = 1
        analyst: str = "ann"

    for thing in ({"kind": "done"}, "done", None, Done()):
        with pytest.raises(LedgerError, match="is not a ledger event"):
            encode(thing)  # type: ignore[arg-type]


def changed(event, **parts):
    return json.dumps({**json.loads(encode(event)), **parts}).encode()


def test_a_kind_that_is_not_known_is_refused_by_name():
    with pytest.raises(LedgerError, match=r"'forgiven' of version 1: .* does not know this kind") as e:
        decode(changed(Done("ann"), kind="forgiven"))
    assert "newer" in e.value.hint
    assert not isinstance(e.value, LedgerCorrupt)


def test_a_newer_version_of_a_kind_is_refused_and_not_guessed_at():
    with pytest.raises(LedgerError, match=r"'done' of version 2: .* knows versions up to 1"):
        decode(changed(Done("ann"), version=2, data={"analyst": "ann", "until": "noon"}))


@dataclass(frozen=True)
class Moved:
    """A made-up kind: version 1 had one text `place`, version 2 split it, version 3 added fields."""

    version: ClassVar[int] = 3
    city: str
    street: str
    floor: int = 0
    notes: Mapping[str, Any] = field(default_factory=dict)


@pytest.fixture
def moved(monkeypatch):
    def split(data):
        city, street = data["place"].split(", ")
        return {"city": city, "street": street}

    monkeypatch.setattr(codec, "KINDS", {**KINDS, "moved": Moved})
    monkeypatch.setitem(codec._FIELDS, "moved", codec._fields_of(Moved))  # type: ignore[arg-type]
    monkeypatch.setitem(codec.UPCASTERS, ("moved", 1), split)


def stored(version, **data):
    return json.dumps({"kind": "moved", "version": version, "data": data}).encode()


def decoded(version, **data) -> Any:
    return decode(stored(version, **data))


@pytest.mark.usefixtures("moved")
def test_events_of_older_versions_are_read():
    assert decoded(1, place="Bern, Am Hang") == Moved("Bern", "Am Hang")
    assert decoded(2, city="Bern", street="Am Hang") == Moved("Bern", "Am Hang")
    now: Any = Moved("Bern", "Am Hang", 2, {"bell": "left"})
    assert decode(encode(now)) == now
    assert json.loads(encode(now))["version"] == 3


@pytest.mark.usefixtures("moved")
def test_a_missing_field_with_a_default_is_no_corruption():
    first, second = (decoded(3, city="Bern", street="Am Hang") for _ in range(2))
    assert first == second == Moved("Bern", "Am Hang")
    assert first.notes is not second.notes


@pytest.mark.usefixtures("moved")
@pytest.mark.parametrize(
    "body",
    [
        stored(1, place="nowhere"),
        stored(1, city="Bern"),
        stored(2, city="Bern"),
        stored(3, city="Bern", street="Am Hang", flor=1),
        stored(3, city="Bern", street="Am Hang", floor="1"),
    ],
)
def test_an_older_version_with_wrong_fields_is_corrupt(body):
    with pytest.raises(LedgerCorrupt, match="invalid fields"):
        decode(body)


@pytest.mark.usefixtures("moved")
def test_a_version_newer_than_an_upcast_kind_is_refused():
    with pytest.raises(LedgerError, match=r"'moved' of version 4: .* up to 3"):
        decode(stored(4, city="Bern"))


@pytest.mark.parametrize(
    ("scales", "runs"),
    [
        (["0x1p+1", "0x1p+1", "0x1p+2", "0x1p+1"], [["0x1p+1", 2], ["0x1p+2", 1], ["0x1p+1", 1]]),
        ([], []),
        ("0x1p+1", "0x1p+1"),
    ],
)
def test_charges_with_a_scale_for_each_row_are_read_as_runs(scales, runs):
    now = Charged({"ann": Fraction(1, 2)}, {"measure": {}, "scales": runs})
    then = {"bill": {"ann": "1/2"}, "purpose": {"measure": {}, "scales": scales}}
    assert decode(changed(now, version=1, data=then)) == now
    assert json.loads(encode(now))["version"] == 2


def test_releases_and_sparse_vectors_of_version_1_are_read():
    data = {"charge": 4, "values": [1, -2]}
    assert decode(changed(Released(4, ()), version=1, data=data)) == Released(4, (1, -2), rest=0)
    vector = Charged({}, {"sparse_vector": {"threshold": 3}})
    assert decode(changed(vector, version=1)) == vector


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
        changed(Released(0, ()), data={"charge": 0, "values": [1, True]}),
        changed(Released(0, ()), data={"charge": 0, "values": [2**63]}),
        changed(Released(0, ()), data={"charge": 0, "values": [1], "rest": None}),
        changed(Charged({}, {}), version=1, data={"bill": {}, "purpose": ["scales"]}),
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
