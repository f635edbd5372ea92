"""Round robin: analysts take turns in a fixed rotation."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from typing import Any

from sharewell.errors import SharingError
from sharewell.sharing.schedulers.base import Item, Scheduler, Ticket


class RoundRobin(Scheduler[Item]):
    """Serves one question of each analyst in turn, and waits for whoever's turn it is.

    The rotation passes over an analyst whose buffer is empty if they said `done`. With `idle_after` it
    also passes over an analyst who was `silent`: whose buffer stayed empty for that long after the
    rotation had reached them. They are back as soon as they ask. Who is passed over is settled at a
    decision and not before, so whoever comes back in time keeps their turn.

    >>> scheduler = RoundRobin(["ann", "bob"])
    >>> for analyst, item in [("ann", 1), ("ann", 2), ("bob", 3)]:
    ...     _ = scheduler.submit(analyst, item)
    >>> [scheduler.next().item for _ in range(3)]
    [1, 3, 2]
    >>> scheduler.turn
    'bob'
    """

    name = "round-robin"

    def __init__(self, analysts: Iterable[str] = (), idle_after: float | None = None) -> None:
        super().__init__(analysts)
        self.idle_after = _checked(idle_after)
        self._silent: set[str] = set()
        # A seat is never given twice, so it orders the analysts also after some have left.
        self._seats = {analyst: seat for seat, analyst in enumerate(self._buffers)}
        self._next_seat = len(self._seats)
        self._turns = dict.fromkeys(self._buffers, 1)
        # Time that has passed between decisions, what it was when the rotation reached whose turn it
        # is, and what the caller's clock said last.
        self._clock = self._reached = 0.0
        self._last: float | None = None
        self._at = 0
        self._slots: list[tuple[float, int, str]] = []
        self._arrange()

    @property
    def strict(self) -> bool:
        """Whether it waits for everybody until they ask or say done: without `idle_after`."""
        return self.idle_after is None

    @property
    def silent(self) -> tuple[str, ...]:
        """Those who are treated as done until they ask again."""
        return tuple(analyst for analyst in self._buffers if analyst in self._silent)

    @property
    def turn(self) -> str | None:
        """Whose turn it is; None when nobody is waiting and everybody is done or silent."""
        for analyst in self._round[self._at :] + self._round[: self._at]:
            if self._buffers[analyst] or not self._is_out(analyst):
                return analyst
        return None

    def submit(self, analyst: str, item: Item) -> Ticket[Item]:
        """Put a question into the analyst's buffer; whoever was done or silent is back."""
        ticket = super().submit(analyst, item)
        self._silent.discard(analyst)
        return ticket

    def done(self, analyst: str) -> None:
        """Take note that nothing more will come: the rotation no longer waits for them."""
        super().done(analyst)
        self._silent.discard(analyst)

    def join(self, analyst: str) -> None:
        """Take in a new analyst at the end of the rotation; nobody's turn changes."""
        self._seat(analyst, 1)

    def leave(self, analyst: str) -> tuple[Ticket[Item], ...]:
        """Let an analyst go; if it was their turn, it is the next one's."""
        withdrawn = super().leave(analyst)
        had_the_turn = self._round[self._at] == analyst
        del self._seats[analyst], self._turns[analyst]
        self._silent.discard(analyst)
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
        """Add what has passed since the last decision; a clock that jumps back adds nothing."""
        if not math.isfinite(now):
            raise SharingError(f"{now} is not a time.", hint="Give the clock in seconds or in steps.")
        if self._last is not None and now > self._last:
            self._clock += now - self._last
        self._last = now

    def _seat(self, analyst: str, turns: int) -> None:
        self._admit([analyst])
        self._seats[analyst] = self._next_seat
        self._next_seat += 1
        self._turns[analyst] = turns
        self._arrange()

    def _arrange(self) -> None:
        """Lay out the round anew: the j-th of w turns at (j + 1/2) / w of it, ties by seat.

        Division rounds correctly, so equal fractions are equal floats, and with the few turns of a
        round different ones are far apart.
        """
        present = self._slots[self._at][:2] if self._slots else (0.0, 0)
        self._slots = sorted(
            ((2 * j + 1) / (2 * turns), self._seats[analyst], analyst)
            for analyst, turns in self._turns.items()
            for j in range(turns)
        )
        self._round = [analyst for *_, analyst in self._slots]
        # The turn stays where it was; if that slot is gone, it goes to the one that follows it.
        place = bisect_left(self._slots, present, key=lambda slot: slot[:2])
        self._at = place % len(self._slots) if self._slots else 0

    def state(self) -> dict[str, Any]:
        """The common state, and where the rotation is."""
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


def _checked(idle_after: float | None) -> float | None:
    """A time to wait for a silent analyst, or None to wait for ever."""
    if idle_after is None:
        return None
    number = isinstance(idle_after, int | float) and not isinstance(idle_after, bool)
    if not number or not 0 < idle_after < math.inf:
        raise SharingError(
            f"idle_after must be a time greater than 0, not {idle_after!r}.",
            hint="Leave it out to wait until everybody asks or says done.",
        )
    return idle_after
