"""Round robin: analysts take turns in a fixed rotation, each one turn a round, or several."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from fractions import Fraction
from math import gcd, lcm
from typing import Any, ClassVar

from sharewell.errors import PrivacyError, SharingError
from sharewell.options import INTEGER, SECONDS, Option, by_analyst
from sharewell.privacy.budget import Amount, amount
from sharewell.schedulers.base import Item, QueueEntry, Scheduler

#: The maximum number of turns in a round.
MAX_TURNS = 10_000

WHOLE_ROUNDS = (
    "The whole budget answers at least one full round for each round's worth of questions that any "
    "share answers alone."
)
NEVER_SILENT = "The analyst is never silent long enough to lose a turn."


class RoundRobin(Scheduler[Item]):
    """Serves one question of each analyst in turn, and waits for the analyst whose turn it is.

    The rotation passes over an analyst whose buffer is empty if they said `done`. With `idle_after` it
    also passes over a `silent` analyst: one whose buffer stays empty for that long after the rotation
    has reached them, until they ask again. This is decided only at a decision, so an analyst who asks
    before it keeps their turn.

    >>> scheduler = RoundRobin(["ann", "bob"])
    >>> for analyst, item in [("ann", 1), ("ann", 2), ("bob", 3)]:
    ...     _ = scheduler.submit(analyst, item)
    >>> [scheduler.next().item for _ in range(3)]
    [1, 3, 2]
    >>> scheduler.turn
    'bob'
    """

    name = "round-robin"
    options: ClassVar[tuple[Option, ...]] = (
        Option(
            "idle_after",
            SECONDS,
            None,
            "seconds of silence after which the rotation passes over an analyst",
            unset="the rotation waits",
        ),
    )

    def __init__(self, analysts: Iterable[str] = (), idle_after: float | None = None) -> None:
        super().__init__(analysts)
        self.idle_after = _validate_idle_after(idle_after)
        # Seats are never reused, so they order the analysts even after some have left.
        self._seats = {analyst: seat for seat, analyst in enumerate(self._buffers)}
        self._next_seat = len(self._seats)
        self._turns = dict.fromkeys(self._buffers, 1)
        # The time passed between decisions, its value when the rotation reached the current slot, and
        # the last reading of the caller's clock.
        self._clock = self._reached = 0.0
        self._last: float | None = None
        self._at = 0
        self._slots: list[tuple[float, int, str]] = []
        self._arrange()

    @property
    def strict(self) -> bool:
        """Whether it waits for each analyst until they ask or say done: without `idle_after`."""
        return self.idle_after is None

    @property
    def turn_assumptions(self) -> tuple[str, ...]:
        """A round for a round's worth of questions; and no silence, where it is passed over."""
        return (WHOLE_ROUNDS,) if self.strict else (WHOLE_ROUNDS, NEVER_SILENT)

    @property
    def silent(self) -> tuple[str, ...]:
        """The analysts who count as done until they ask again."""
        return tuple(analyst for analyst in self._buffers if analyst in self._silent)

    @property
    def turn(self) -> str | None:
        """The analyst whose turn it is; None where all are done or silent and nothing waits."""
        for analyst in self._round[self._at :] + self._round[: self._at]:
            if self._buffers[analyst] or not self._is_out(analyst):
                return analyst
        return None

    def join(self, analyst: str) -> None:
        """Add an analyst at the end of the rotation; the current turn does not change."""
        self._seat(analyst, 1)

    def leave(self, analyst: str) -> tuple[QueueEntry[Item], ...]:
        """Remove an analyst; their turn passes to the next."""
        withdrawn = super().leave(analyst)
        had_the_turn = self._round[self._at] == analyst
        del self._seats[analyst], self._turns[analyst]
        self._arrange()
        if had_the_turn:
            self._reached = self._clock
        return withdrawn

    def _choose(self, now: float) -> str | None:
        if self.idle_after is not None:
            self._let_time_pass(now)
        buffers, rotation, size = self._buffers, self._round, len(self._round)
        for _ in range(size):
            at = self._at
            analyst = rotation[at]
            waits = buffers[analyst]
            if not waits and not self._is_out(analyst):
                if self.idle_after is None or self._clock - self._reached < self.idle_after:
                    return None
                self._silent.add(analyst)
            self._at = at + 1 if at + 1 < size else 0
            self._reached = self._clock
            if waits:
                return analyst
        return None

    def _is_out(self, analyst: str) -> bool:
        return analyst in self._done or analyst in self._silent

    def _let_time_pass(self, now: float) -> None:
        """Add the time since the last decision; a clock that jumps back adds nothing."""
        if not math.isfinite(now):
            raise SharingError(f"{now} is not a time.", hint="Pass the clock in seconds or steps.")
        if self._last is not None and now > self._last:
            self._clock += now - self._last
        self._last = now

    def _seat(self, analyst: str, turns: int) -> None:
        self._add([analyst])
        self._seats[analyst] = self._next_seat
        self._next_seat += 1
        self._turns[analyst] = turns
        self._arrange()

    def _arrange(self) -> None:
        """Lay out the round: the j-th of w turns at the fraction (j + 1/2) / w, ties by seat.

        Division rounds correctly, so equal fractions are equal floats; with at most MAX_TURNS turns,
        different ones are far apart.
        """
        present = self._slots[self._at][:2] if self._slots else (0.0, 0)
        self._slots = sorted(
            ((2 * j + 1) / (2 * turns), self._seats[analyst], analyst)
            for analyst, turns in self._turns.items()
            for j in range(turns)
        )
        self._round = [analyst for *_, analyst in self._slots]
        # The turn stays at its slot, or moves to the next one if that is gone.
        place = bisect_left(self._slots, present, key=lambda slot: slot[:2])
        self._at = place % len(self._slots) if self._slots else 0

    def state(self) -> dict[str, Any]:
        """The common state and the position of the rotation."""
        return {
            **super().state(),
            "at": self._at,
            "silent": list(self.silent),
            "waited": self._clock - self._reached,
            "now": self._last,
        }

    def _restore(self, state: Mapping[str, Any], now: float | None) -> None:
        super()._restore(state, now)
        self._seats = {analyst: seat for seat, analyst in enumerate(self._buffers)}
        self._next_seat = len(self._seats)
        self._turns = self._restored_turns(state)
        self._slots = []
        self._arrange()
        self._at = range(len(self._slots))[state["at"]] if self._slots else 0
        for analyst in state["silent"]:
            self._buffer(analyst)
            self._silent.add(analyst)
        self._clock, self._reached = 0.0, -float(state["waited"])
        self._last = state["now"] if now is None else now

    def _restored_turns(self, state: Mapping[str, Any]) -> dict[str, int]:
        return dict.fromkeys(self._buffers, 1)


def _validate_idle_after(idle_after: float | None) -> float | None:
    """The time to wait for a silent analyst; None waits forever."""
    if idle_after is None:
        return None
    number = isinstance(idle_after, int | float) and not isinstance(idle_after, bool)
    if not number or not 0 < idle_after < math.inf:
        raise SharingError(
            f"idle_after must be a time greater than 0, not {idle_after!r}.",
            hint="Omit it to wait until each analyst asks or says done.",
        )
    return idle_after


class WeightedRoundRobin(RoundRobin[Item]):
    """A rotation in which analysts have several turns a round, evenly spread.

    >>> scheduler = WeightedRoundRobin({"ann": 3, "bob": 1})
    >>> for at in range(8):
    ...     _ = scheduler.submit("ann", at), scheduler.submit("bob", at)
    >>> " ".join(scheduler.next().analyst for _ in range(8))
    'ann ann bob ann ann ann bob ann'
    """

    name = "weighted-round-robin"
    options = (
        *RoundRobin.options,
        Option(
            "turns",
            by_analyst(INTEGER, "a table of whole numbers by analyst"),
            None,
            "turns of each analyst in a round",
            unset="in proportion to the shares",
        ),
    )

    @classmethod
    def create(
        cls, analysts: tuple[str, ...], shares: Mapping[str, Amount] | None, **options: Any
    ) -> WeightedRoundRobin[Any]:
        """Take the turns from the option, else from the shares; without either, one each."""
        turns = options.pop("turns", None)
        if turns is None:
            turns = dict.fromkeys(analysts, 1) if shares is None else turns_for(shares)
        return cls(cls._for_each(analysts, turns, "turns"), **options)

    def __init__(self, turns: Mapping[str, int], idle_after: float | None = None) -> None:
        if not isinstance(turns, Mapping):
            raise SharingError("`turns` must map names to numbers.", hint='Write {"ann": 2, "bob": 1}.')
        super().__init__(turns, idle_after)
        self._turns = _validate_turns(turns)
        self._arrange()
        self._at = 0

    @property
    def turns(self) -> dict[str, int]:
        """The number of turns of each analyst in a round."""
        return dict(self._turns)

    def join(self, analyst: str, turns: int = 1) -> None:
        """Add an analyst with a number of turns; the current turn does not change.

        In the current round they have the turns that lie after the current one.
        """
        _validate_turns({**self._turns, analyst: turns})
        self._seat(analyst, turns)

    def state(self) -> dict[str, Any]:
        """The common state, the position of the rotation, and the turns."""
        return {**super().state(), "turns": self.turns}

    def _restored_turns(self, state: Mapping[str, Any]) -> dict[str, int]:
        return _validate_turns({analyst: state["turns"][analyst] for analyst in self._buffers})


def turns_for(amounts: Mapping[str, Amount]) -> dict[str, int]:
    """The smallest whole numbers in proportion to what each analyst could ask alone.

    >>> turns_for({"ann": "0.5", "bob": "0.3", "cat": "0.2"})
    {'ann': 5, 'bob': 3, 'cat': 2}
    """
    exact: dict[str, Fraction] = {}
    for analyst, value in amounts.items():
        try:
            exact[analyst] = amount(value, f"What {analyst} could ask alone")
        except PrivacyError as error:
            raise SharingError(error.message, hint=error.hint) from None
    whole = lcm(*(value.denominator for value in exact.values()))
    scaled = {analyst: int(value * whole) for analyst, value in exact.items()}
    common = gcd(*scaled.values()) or 1
    return _validate_turns({analyst: turns // common for analyst, turns in scaled.items()})


def _validate_turns(turns: Mapping[str, int]) -> dict[str, int]:
    """The turns of a round, validated."""
    for analyst, count in turns.items():
        if not isinstance(count, int) or isinstance(count, bool) or count < 1:
            raise SharingError(
                f"The turns of {analyst} must be a whole number greater than 0, not {count!r}.",
                hint="Use turns_for(...) to compute turns from amounts.",
            )
    if sum(turns.values()) > MAX_TURNS:
        raise SharingError(
            f"These proportions need {sum(turns.values()):,} turns a round; "
            f"the maximum is {MAX_TURNS:,}.",
            hint="Round the amounts, for example to hundredths of the largest.",
        )
    return dict(turns)
