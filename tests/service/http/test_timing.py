"""How long an answer takes does not tell what the table holds.

One server has two datasets with the same public description and the same questions: one table is
nearly empty, the other large and skewed. Both are asked in pairs, in an order that is drawn for each
pair, and a sign test compares what each of a pair took. If nothing depends on the data, either is the
slower one equally often, and the test fails once in a million runs. Should one be slower all the same,
the two change places: what comes from the data goes with it, and what comes from elsewhere stays.
"""

import random
import time
from math import comb
from typing import Any

import pytest

from sharewell.service.desk import Desk
from tests.service.http.servers import running, write_dataset

FAILURE_RATE = 1e-6
FEW = "3,F\n"
MANY = "7,M\n" * 60_000 + "8,F\n"


def probability_by_chance(smaller: int, larger: int) -> float:
    """How likely so uneven a split of the pairs is, either way round, if a coin decides each."""
    pairs = smaller + larger
    tail = sum(comb(pairs, at) for at in range(min(smaller, larger) + 1)) / 2**pairs
    return min(1.0, 2 * tail)


def told_apart(server, pairs: int, every: float) -> tuple[float, str]:
    """How likely it is that chance alone has made the two differ so, in slots; and the slower one."""
    left, right = server.analyst("ann", "left"), server.analyst("ann", "right")
    for each in (left, right):
        each.ask(f"SELECT COUNT(*) FROM {each.path.rpartition('/')[2]}")
    draw = random.SystemRandom()
    slower = {"left": 0, "right": 0}
    for at in range(pairs):
        low = draw.randrange(20)
        condition = f"WHERE age BETWEEN {low} AND {draw.randrange(low, 20)} OR age = {at % 20}"
        took = {}
        for name, holder in draw.sample([("left", left), ("right", right)], 2):
            begun = time.perf_counter()
            assert holder.ask(f"SELECT COUNT(*) FROM {name} {condition}").status_code == 200
            took[name] = round((time.perf_counter() - begun) / every)
        if took["left"] != took["right"]:
            slower[max(took, key=took.__getitem__)] += 1
    return probability_by_chance(slower["left"], slower["right"]), max(slower, key=slower.__getitem__)


def tables(folder, every: float, *, left: str = FEW, right: str = MANY):
    options: dict[str, Any] = {"every": every, "price": "1/100000"}
    return (
        write_dataset(folder, "left", rows=left, **options),
        write_dataset(folder, "right", rows=right, **options),
    )


class Late:
    """A question whose answer seems to be ready only after a while."""

    def __init__(self, ticket, seconds: float) -> None:
        self._ticket = ticket
        self._from = time.monotonic() + seconds

    @property
    def ready(self) -> bool:
        return self._ticket.ready and time.monotonic() >= self._from

    def __getattr__(self, name):
        return getattr(self._ticket, name)


@pytest.mark.statistical
def test_two_very_different_tables_cannot_be_told_apart(tmp_path):
    suspects: list[str] = []
    for left, right in ((FEW, MANY), (MANY, FEW)):
        with running(*tables(tmp_path / f"{len(suspects)}", 0.01, left=left, right=right)) as server:
            probability, slower = told_apart(server, 120, 0.01)
        if probability > FAILURE_RATE:
            return
        suspects.append({"left": left, "right": right}[slower])
    assert suspects[0] is not suspects[1]


@pytest.mark.statistical
def test_a_leak_is_found_where_slots_are_too_short_to_hide_it(tmp_path, monkeypatch):
    # As if each answer took the longer, the more rows there are.
    seconds = {"left": 0.0, "right": 0.04}
    submit = Desk.submit
    monkeypatch.setattr(
        Desk, "submit", lambda self, who, asked: Late(submit(self, who, asked), seconds[self.name])
    )
    with running(*tables(tmp_path, 0.001)) as server:
        probability, slower = told_apart(server, 60, 0.001)
        assert probability < FAILURE_RATE
        assert slower == "right"


@pytest.mark.parametrize(("split", "probability"), [((0, 0), 1.0), ((5, 5), 1.0), ((0, 10), 2 / 1024)])
def test_a_split_is_as_likely_as_coins_say(split, probability):
    assert probability_by_chance(*split) == pytest.approx(probability, abs=1e-12)
