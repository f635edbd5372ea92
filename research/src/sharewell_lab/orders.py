"""Orders of service: what a scheduler makes of a stream, computed at once.

`sharewell_lab.timeline.run` plays a stream step by step through a real scheduler. A study needs
that some hundred times a trial, so the same orders are found here without stepping; the tests hold
them against it. At every idle step a question is waiting, since at most one was served at
each step before: so the stalls are the steps beyond the length of the stream.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sharewell.schedulers.round_robin import turns_for


@dataclass(frozen=True)
class ServiceOrder:
    """The places of a stream's questions in the order of being served, and how long it took."""

    places: NDArray[np.int64]
    steps: int
    stalls: int


def in_order(analyst: NDArray[np.int64]) -> ServiceOrder:
    """No scheduler: questions are served as they come."""
    return ServiceOrder(np.arange(len(analyst)), len(analyst), 0)


def rotation(analyst: NDArray[np.int64], turns: Sequence[int]) -> ServiceOrder:
    """Round robin, where analyst i has `turns[i]` turns a round; none if they are absent."""
    seats = sorted(
        ((2 * turn + 1) / (2 * count), seat) for seat, count in enumerate(turns) for turn in range(count)
    )
    slots = [seat for _, seat in seats]
    arrived = [np.flatnonzero(analyst == seat).tolist() for seat in range(len(turns))]
    waiting = [iter(places) for places in arrived]
    left = [len(places) for places in arrived]
    order: list[int] = []
    step = at = 0
    while len(order) < len(analyst):
        # An analyst with nothing left is done. The rotation stops at any other until they ask.
        while not left[slots[at]]:
            at = at + 1 if at + 1 < len(slots) else 0
        seat = slots[at]
        place = next(waiting[seat])
        step = max(step, place) + 1
        order.append(place)
        left[seat] -= 1
        at = at + 1 if at + 1 < len(slots) else 0
    return ServiceOrder(np.array(order, dtype=np.int64), step, step - len(order))


def turns_of(shares: Sequence[float], present: NDArray[np.bool_]) -> list[int]:
    """The turns of a weighted rotation: in proportion to the shares, 0 for those who are absent."""
    # Shares are floats in the lab; their short decimal text or a small fraction is what was meant.
    exact = {
        str(at): Fraction(float(share)).limit_denominator(10_000)
        for at, share in enumerate(np.asarray(shares) / np.sum(shares))
        if present[at]
    }
    turns = turns_for(exact)
    return [turns.get(str(at), 0) for at in range(len(shares))]


def drawn(
    analyst: NDArray[np.int64],
    chances: NDArray[np.float64],
    draws: Callable[[int], NDArray[np.float64]],
) -> ServiceOrder:
    """Randomized: at each step one analyst is drawn; `chances` are 0 for the absent and sum to 1.

    `draws(n)` gives the next n numbers between 0 and 1. If the m-th question of an analyst came before
    step r_m and d_1 < d_2 < ... are the steps at which they are drawn, it is served at the first of
    those that is not before r_m and not yet used: the index i_m = max(i_(m-1) + 1, first d >= r_m),
    which is a running maximum.
    """
    length = len(analyst)
    if not length:
        return ServiceOrder(np.zeros(0, dtype=np.int64), 0, 0)
    names = np.flatnonzero(chances)
    uniform = len(set(chances[names].tolist())) == 1
    cumulative = np.cumsum(chances[names])[:-1]
    arrived = [np.flatnonzero(analyst == name) for name in names]
    taken = np.zeros(0, dtype=np.int64)
    while True:
        fresh = draws(length)
        if uniform:
            chosen = (fresh * len(names)).astype(np.int64)
        else:
            chosen = np.searchsorted(cumulative, fresh, side="right")
        taken = np.concatenate([taken, chosen])
        served = np.empty(length, dtype=np.int64)
        enough = True
        for seat, places in enumerate(arrived):
            turns = np.flatnonzero(taken == seat)
            numbers = np.arange(len(places))
            used = numbers + np.maximum.accumulate(np.searchsorted(turns, places) - numbers)
            if len(used) and used[-1] >= len(turns):
                enough = False
                break
            served[places] = turns[used]
        if enough:
            order = np.argsort(served)
            steps = int(served[order[-1]]) + 1
            return ServiceOrder(order, steps, steps - length)


def drawn_among_active(
    analyst: NDArray[np.int64],
    chances: NDArray[np.float64],
    draws: Callable[[int], NDArray[np.float64]],
) -> ServiceOrder:
    """Randomized among those who are not done: an analyst is drawn until their last question is served.

    The others keep the proportions of their chances, as when the analyst leaves.
    """
    arrived = {int(seat): np.flatnonzero(analyst == seat).tolist() for seat in np.flatnonzero(chances)}
    served = dict.fromkeys(arrived, 0)
    order: list[int] = []
    step = 0
    active = [seat for seat, places in arrived.items() if places]
    fresh: Iterator[float] = iter(())
    while active:
        weights = chances[active]
        uniform = len(set(weights.tolist())) == 1
        up_to = (np.cumsum(weights) / weights.sum())[:-1].tolist()
        done = None
        while done is None:
            draw = next(fresh, None)
            if draw is None:
                fresh = iter(draws(len(analyst)).tolist())
                draw = next(fresh)
            seat = active[int(draw * len(active)) if uniform else bisect_right(up_to, draw)]
            places, at = arrived[seat], served[seat]
            step += 1
            # The question of place r arrives at step r + 1.
            if places[at] < step:
                order.append(places[at])
                served[seat] = at + 1
                if served[seat] == len(places):
                    done = seat
        active.remove(done)
    return ServiceOrder(np.array(order, dtype=np.int64), step, step - len(order))
