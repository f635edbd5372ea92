"""How long an answer takes does not tell what the table holds.

One server has two datasets with the same public description and the same questions: one table is
nearly empty, the other large and skewed. Both are asked in pairs, in an order that is drawn for each
pair, and a sign test compares what each of a pair took. If nothing depends on the data, either is the
slower one equally often, and the test fails once in a million runs. Should one be slower all the same,
the two change places: what comes from the data goes with it, and what comes from elsewhere stays.
"""

import asyncio
import random
import time
from collections.abc import Callable
from math import comb
from typing import Any

import pytest

from sharewell.service.release_slots import ReleaseSlots
from tests.service.http.our_clock import OurClock
from tests.service.http.servers import running, write_dataset

FAILURE_RATE = 1e-6
FEW = "3,F\n"
MANY = "7,M\n" * 60_000 + "8,F\n"


def probability_by_chance(smaller: int, larger: int) -> float:
    """How likely so uneven a split of the pairs is, either way round, if a coin decides each."""
    pairs = smaller + larger
    tail = sum(comb(pairs, at) for at in range(min(smaller, larger) + 1)) / 2**pairs
    return min(1.0, 2 * tail)


def told_apart(pairs: int, every: float, ask: Callable[[str, str], float]) -> tuple[float, str]:
    """How likely it is that chance alone has made the two differ so, in slots; and the slower one.

    `ask` asks a dataset with a condition, and returns how long that took.
    """
    draw = random.SystemRandom()
    slower = {"left": 0, "right": 0}
    for at in range(pairs):
        low = draw.randrange(20)
        condition = f"WHERE age BETWEEN {low} AND {draw.randrange(low, 20)} OR age = {at % 20}"
        took = {name: round(ask(name, condition) / every) for name in draw.sample(["left", "right"], 2)}
        if took["left"] != took["right"]:
            slower[max(took, key=took.__getitem__)] += 1
    return probability_by_chance(slower["left"], slower["right"]), max(slower, key=slower.__getitem__)


def asking(server) -> Callable[[str, str], float]:
    """Ask a real server, by the clock of this machine."""
    holders = {name: server.analyst("ann", name) for name in ("left", "right")}
    for name, holder in holders.items():
        holder.ask(f"SELECT COUNT(*) FROM {name}")

    def ask(name: str, condition: str) -> float:
        begun = time.perf_counter()
        assert holders[name].ask(f"SELECT COUNT(*) FROM {name} {condition}").status_code == 200
        return time.perf_counter() - begun

    return ask


def tables(folder, every: float, *, left: str = FEW, right: str = MANY):
    options: dict[str, Any] = {"every": every, "price": "1/100000"}
    return (
        write_dataset(folder, "left", rows=left, **options),
        write_dataset(folder, "right", rows=right, **options),
    )


@pytest.mark.statistical
def test_two_very_different_tables_cannot_be_told_apart(tmp_path):
    suspects: list[str] = []
    for left, right in ((FEW, MANY), (MANY, FEW)):
        with running(*tables(tmp_path / f"{len(suspects)}", 0.01, left=left, right=right)) as server:
            probability, slower = told_apart(120, 0.01, asking(server))
        if probability > FAILURE_RATE:
            return
        suspects.append({"left": left, "right": right}[slower])
    assert suspects[0] is not suspects[1]


@pytest.mark.parametrize(("every", "is_found"), [(0.001, True), (0.1, False)])
def test_a_leak_is_found_where_slots_are_too_short_to_hide_it(every, is_found):
    """Release slots on a clock of our own, and answers that take longer from the larger table.

    The leak is larger than all that differs by chance, and no answer takes more than 70 ms. Each
    question comes right after a slot, as from an analyst who has just been answered.
    """
    draw = random.SystemRandom()
    with asyncio.Runner(loop_factory=OurClock) as runner:
        loop: Any = runner.get_loop()
        slots = ReleaseSlots(every)

        def ask(name: str, condition: str) -> float:
            async def answered() -> float:
                await slots.wait()
                begun = loop.time()
                ready_at = begun + draw.uniform(0.02, 0.04) + 0.03 * (name == "right")
                await slots.wait(lambda: loop.time() >= ready_at)
                return float(loop.time() - begun)

            return runner.run(answered())

        probability, slower = told_apart(40, every, ask)
    assert (probability < FAILURE_RATE) == is_found
    assert not is_found or slower == "right"


@pytest.mark.parametrize(("split", "probability"), [((0, 0), 1.0), ((5, 5), 1.0), ((0, 10), 2 / 1024)])
def test_a_split_is_as_likely_as_coins_say(split, probability):
    assert probability_by_chance(*split) == pytest.approx(probability, abs=1e-12)
