"""Events of every kind, for tests: a few of each, and any that Hypothesis can think of."""

from __future__ import annotations

from fractions import Fraction
from types import MappingProxyType

from hypothesis import strategies as st

from sharewell.privacy.ledger import (
    Answered,
    AnsweredFree,
    Armed,
    Asked,
    Begun,
    Charged,
    Configured,
    CuratorAction,
    Done,
    Event,
    Exceeded,
    Granted,
    Left,
    Opened,
    Recovered,
    Refused,
    Released,
    RoundClosed,
    SourceChanged,
    SourceSeen,
    Turn,
)
from sharewell.service.ledger.codec import free_answers

SAMPLES: tuple[Event, ...] = (
    Opened("pure", Fraction(1), Fraction(0), Fraction(1), "add-remove", "5f2a"),
    Configured({"mechanism": "cache-reconstruct", "scheduler": None, "error_threshold": 0.01}),
    Granted("ann", Fraction(1, 3)),
    Asked("key 1", "ann", {"sql": "SELECT COUNT(*) FROM people"}, pay=True),
    Turn((3,), {"scheduler": "round-robin", "turn": 1}),
    Turn((), {}),
    Charged(MappingProxyType({"ann": Fraction(1, 10)}), {"measure": {"queries": [[0, 1]]}}),
    Released(6, (0, -5, 2**63 - 1)),
    Armed(6, noisy_threshold=-314159),
    Exceeded(6, {"scale": "1/2"}, -7),
    Answered(3, ({"value": 0.0, "interval": [-1.5, 1.5]}, {"value": -0.0})),
    free_answers(4, [{"value": 1.5, "source": "cached"}]),
    Refused(3, "privacy.over-budget", "ann has 0 left, and this costs 0.1."),
    Done("ann"),
    Left("ann"),
    Begun("5f2a"),
    Recovered({"ann": Fraction(1, 10)}, f"2:{'00' * 32}"),
    CuratorAction("dana", "token", "ann", "id"),
    RoundClosed(("ann", "Änne")),
    SourceSeen("c0ffee"),
    SourceChanged(),
    Asked("clé\n🙂", "Änne", {"sql": "SELECT 'Ølsted \u2028\0'"}, pay=False),
    Released(6, (-(2**63),), rest=2),
)

#: Any text that is Unicode, with zeros and signs, which databases do not like.
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
numbers = st.integers(0, 2**62)
#: Noise and answers have 64 bits, and so has what is stored of them.
signed = st.integers(-(2**63), 2**63 - 1)
amounts = st.fractions()
plain = st.recursive(
    st.none() | st.booleans() | signed | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
mappings = st.dictionaries(texts, plain, max_size=3)

BY_KIND: dict[type[Event], st.SearchStrategy[Event]] = {
    Opened: st.builds(Opened, texts, amounts, amounts, amounts, texts, texts),
    Granted: st.builds(Granted, texts, amounts),
    Charged: st.builds(Charged, st.dictionaries(texts, amounts, max_size=3), mappings),
    Released: st.builds(Released, numbers, st.lists(signed, max_size=4).map(tuple), numbers),
    Armed: st.builds(Armed, numbers, signed),
    Exceeded: st.builds(Exceeded, numbers, mappings, signed),
    Left: st.builds(Left, texts),
    Configured: st.builds(Configured, mappings, st.booleans()),
    Asked: st.builds(Asked, texts, texts, mappings, st.booleans()),
    Answered: st.builds(Answered, numbers, st.lists(mappings, max_size=3).map(tuple)),
    AnsweredFree: st.builds(
        free_answers, numbers, st.lists(st.dictionaries(texts, texts, max_size=3), max_size=3)
    ),
    Refused: st.builds(Refused, numbers, texts, texts),
    Turn: st.builds(Turn, st.lists(numbers, max_size=3).map(tuple), mappings),
    Done: st.builds(Done, texts),
    Begun: st.builds(Begun, texts),
    Recovered: st.builds(Recovered, st.dictionaries(texts, amounts, max_size=3), texts),
    CuratorAction: st.builds(CuratorAction, texts, texts, texts, texts),
    RoundClosed: st.builds(RoundClosed, st.lists(texts, max_size=3).map(tuple)),
    SourceSeen: st.builds(SourceSeen, texts),
    SourceChanged: st.builds(SourceChanged),
}

events = st.one_of(*BY_KIND.values())


def numbered(number: int) -> Event:
    """An event that says which it is."""
    return Done(f"event {number}")
