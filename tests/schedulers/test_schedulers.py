"""Every scheduler passes the common suite, and each keeps its own promise."""

import math
import random
from collections import Counter
from fractions import Fraction
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharewell.errors import SharingError
from sharewell.schedulers import InOrder, Randomized, RoundRobin, WeightedRoundRobin, make_scheduler
from sharewell.schedulers.registry import SCHEDULERS
from sharewell.schedulers.round_robin import turns_for
from tests.schedulers.check_scheduler import CHECKS, NAMES, Make, drain


def growing(analysts):
    """Turns 1, 2, 3, ... for the analysts."""
    return {analyst: at for at, analyst in enumerate(analysts, start=1)}


def in_proportion(analysts):
    """Probabilities in proportion to 1, 2, 3, ... for the analysts."""
    total = len(analysts) * (len(analysts) + 1) // 2
    return {analyst: Fraction(at, total) for analyst, at in growing(analysts).items()}


KINDS: dict[str, Make] = {
    "none": lambda analysts, draw: InOrder[Any](analysts),
    "round robin": lambda analysts, draw: RoundRobin[Any](analysts),
    "round robin, not strict": lambda analysts, draw: RoundRobin[Any](analysts, idle_after=2),
    "weighted": lambda analysts, draw: WeightedRoundRobin[Any](growing(analysts)),
    "weighted, not strict": lambda analysts, draw: WeightedRoundRobin[Any](growing(analysts), 1.5),
    "randomized": lambda analysts, draw: Randomized[Any](analysts, draw),
    "randomized, as given": lambda analysts, draw: Randomized[Any](
        in_proportion(analysts) if analysts else analysts, draw
    ),
}


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("kind", KINDS)
def test_every_scheduler_passes_the_common_suite(kind, check):
    CHECKS[check](KINDS[kind])


def test_the_suite_has_checks():
    assert len(CHECKS) >= 15


def fill(scheduler, count):
    """So many questions of everybody."""
    for item in range(count):
        for analyst in scheduler.analysts:
            scheduler.submit(analyst, item)


def served_by(scheduler, now=0):
    """Who is served at one decision; None where nobody is."""
    ticket = scheduler.next(now)
    return ticket and ticket.analyst


def who(scheduler, count, start=1):
    """Who is served at each of so many decisions; None where nobody is."""
    return [served_by(scheduler, start + step) for step in range(count)]


class TestInOrder:
    def test_the_order_of_arrival_is_the_order_of_serving(self):
        scheduler = InOrder[Any](NAMES)
        order = [random.Random(2).choice(NAMES) for _ in range(50)]
        for analyst in order:
            scheduler.submit(analyst, None)
        assert who(scheduler, 51) == [*order, None]


class TestRoundRobin:
    def test_analysts_take_turns_whoever_asked_first(self):
        scheduler = RoundRobin[Any](NAMES)
        for analyst in ("cat", "cat", "bob", "ann", "ann", "bob"):
            scheduler.submit(analyst, None)
        assert who(scheduler, 5) == ["ann", "bob", "cat", "ann", "bob"]
        assert scheduler.turn == "cat"

    def test_it_waits_for_the_analyst_whose_turn_it_is(self):
        scheduler = RoundRobin[Any](NAMES)
        scheduler.submit("bob", 1)
        assert who(scheduler, 1000) == [None] * 1000
        assert (scheduler.turn, scheduler.stalls, scheduler.strict) == ("ann", 1000, True)
        scheduler.submit("ann", 2)
        assert who(scheduler, 3) == ["ann", "bob", None]
        assert scheduler.turn == "cat"

    def test_the_rotation_passes_over_who_is_done(self):
        scheduler = RoundRobin[Any](NAMES)
        fill(scheduler, 2)
        scheduler.done("bob")
        for analyst in ("ann", "cat"):
            scheduler.submit(analyst, 2)
        assert who(scheduler, 9) == ["ann", "bob", "cat", "ann", "bob", "cat", "ann", "cat", None]
        assert scheduler.turn == "ann"

    def test_who_comes_back_before_a_decision_keeps_the_turn(self):
        scheduler = RoundRobin[Any](NAMES)
        scheduler.done("ann")
        scheduler.submit("bob", 1)
        assert scheduler.turn == "bob"
        scheduler.submit("ann", 2)
        assert scheduler.turn == "ann"
        assert who(scheduler, 2) == ["ann", "bob"]

    def test_nobody_has_the_turn_when_all_are_done(self):
        scheduler = RoundRobin[Any](NAMES)
        for analyst in NAMES:
            scheduler.done(analyst)
        assert scheduler.turn is None
        assert RoundRobin[int]().turn is None

    def test_joining_changes_nobodys_turn_and_comes_last(self):
        scheduler = RoundRobin[Any](NAMES)
        fill(scheduler, 3)
        assert who(scheduler, 1) == ["ann"]
        scheduler.join("dan")
        scheduler.submit("dan", 1)
        scheduler.submit("dan", 2)
        assert scheduler.turn == "bob"
        assert who(scheduler, 7) == ["bob", "cat", "dan", "ann", "bob", "cat", "dan"]

    def test_who_joins_at_the_end_of_a_round_comes_last_in_the_next(self):
        scheduler = RoundRobin[Any](NAMES)
        fill(scheduler, 2)
        who(scheduler, 3)
        scheduler.join("dan")
        scheduler.submit("dan", 1)
        assert who(scheduler, 4) == ["ann", "bob", "cat", "dan"]

    @pytest.mark.parametrize(
        ("leaver", "after"),
        [("ann", "bob cat bob"), ("bob", "cat ann cat"), ("cat", "bob ann bob")],
    )
    def test_when_somebody_leaves_the_turn_is_the_next_ones(self, leaver, after):
        scheduler = RoundRobin[Any](NAMES)
        fill(scheduler, 4)
        who(scheduler, 1)
        assert len(scheduler.leave(leaver)) == 4 - (leaver == "ann")
        assert who(scheduler, 3) == after.split()

    @given(st.data())
    def test_between_two_turns_of_one_who_waits_each_other_has_at_most_one(self, data):
        """Whatever the others do, short of leaving; `test_who_leaves_and_joins_again_gains_a_turn`."""
        scheduler = RoundRobin[Any](NAMES, idle_after=data.draw(st.sampled_from([None, 2])))
        served: list[str] = []
        scheduler.submit("bob", None)
        for now in range(data.draw(st.integers(20, 80))):
            move = data.draw(st.sampled_from(["ask", "ask", "ask", "done", "join"]))
            other = data.draw(st.sampled_from([n for n in scheduler.analysts if n != "bob"]))
            if move == "ask":
                scheduler.submit(other, None)
            elif move == "done":
                scheduler.done(other)
            elif len(scheduler.analysts) < 6:
                scheduler.join(f"late {now}")
            ticket = scheduler.next(now)
            if ticket is not None:
                served.append(ticket.analyst)
                if ticket.analyst == "bob":
                    scheduler.submit("bob", None)
        mine = [at for at, analyst in enumerate(served) if analyst == "bob"]
        for one, two in pairwise([-1, *mine, len(served)]):
            assert max(Counter(served[one + 1 : two]).values(), default=0) <= 1
        assert len(mine) >= len(served) // len(scheduler.analysts)

    def test_who_leaves_and_joins_again_gains_a_turn(self):
        """Why the promise excludes it: cat is served twice between two turns of ann."""
        scheduler = RoundRobin[Any](["ann", "cat", "bob"])
        fill(scheduler, 2)
        assert who(scheduler, 2) == ["ann", "cat"]
        scheduler.leave("cat")
        scheduler.join("cat")
        scheduler.submit("cat", "again")
        assert who(scheduler, 3) == ["bob", "cat", "ann"]


class TestSilence:
    def test_who_is_silent_for_too_long_is_passed_over_until_they_ask(self):
        scheduler = RoundRobin[Any](["ann", "bob"], idle_after=3)
        assert not scheduler.strict
        for item in range(5):
            scheduler.submit("bob", item)
        assert who(scheduler, 4, start=10) == [None, None, None, "bob"]
        assert (scheduler.silent, scheduler.stalls) == (("ann",), 3)
        assert who(scheduler, 2, start=14) == ["bob", "bob"]
        scheduler.submit("ann", 0)
        assert not scheduler.silent
        assert who(scheduler, 6, start=16) == ["ann", "bob", None, None, "bob", None]
        assert scheduler.silent == ("ann",)

    def test_the_time_is_counted_from_when_the_rotation_came(self):
        scheduler = RoundRobin[Any](["ann", "bob"], idle_after=5)
        for _ in range(2):
            scheduler.submit("ann", None)
        assert served_by(scheduler, 100) == "ann"
        assert scheduler.next(104.9) is None
        assert served_by(scheduler, 105) == "ann"
        assert scheduler.silent == ("bob",)

    def test_each_silent_analyst_is_waited_for_once(self):
        scheduler = RoundRobin[Any](NAMES, idle_after=5)
        for _ in range(3):
            scheduler.submit("cat", None)
        times = [0, 4, 5, 9, 10, 11, 12]
        served = [scheduler.next(now) is not None for now in times]
        assert served == [False, False, False, False, True, True, True]
        assert scheduler.silent == ("ann", "bob")

    def test_a_clock_that_jumps_back_adds_no_time(self):
        scheduler = RoundRobin[Any](["ann", "bob"], idle_after=10)
        scheduler.submit("bob", 1)
        for now in (1000, 5, 1, 9, 2, 3):
            assert scheduler.next(now) is None
        assert scheduler.next(3.5) is None
        assert served_by(scheduler, 4) == "bob"

    def test_silence_is_not_the_end(self):
        scheduler = RoundRobin[Any](["ann"], idle_after=1)
        scheduler.next(0)
        scheduler.next(1)
        assert (scheduler.silent, scheduler.finished) == (("ann",), False)
        scheduler.done("ann")
        assert (scheduler.silent, scheduler.finished) == ((), True)

    def test_who_leaves_is_silent_no_more(self):
        scheduler = RoundRobin[Any](NAMES, idle_after=1)
        scheduler.next(0)
        scheduler.next(1)
        scheduler.leave("ann")
        scheduler.join("ann")
        assert not scheduler.silent

    def test_when_the_turn_passes_to_another_the_time_begins_anew(self):
        scheduler = RoundRobin[Any](["ann", "bob", "cat"], idle_after=10)
        scheduler.submit("cat", None)
        scheduler.next(0)
        scheduler.next(8)
        scheduler.leave("ann")
        assert scheduler.next(17) is None
        assert served_by(scheduler, 18) == "cat"

    def test_the_time_that_a_service_was_down_is_nobodys_silence(self):
        scheduler = RoundRobin[Any](["ann", "bob"], idle_after=10)
        scheduler.submit("bob", 1)
        scheduler.next(100)
        scheduler.next(104)
        for now, silent_at in [(None, 110), (5000, 5006), (0, 6)]:
            anew = RoundRobin[int]((), idle_after=10)
            anew.restore(scheduler.state(), now)
            anew.submit("bob", 1)
            assert anew.next(silent_at - 0.5) is None
            assert served_by(anew, silent_at) == "bob"

    @pytest.mark.parametrize("wrong", [0, -1, math.nan, math.inf, "5", True])
    def test_a_time_that_is_none_is_refused(self, wrong):
        with pytest.raises(SharingError, match="idle_after must be a time greater than 0"):
            RoundRobin[Any](NAMES, idle_after=wrong)


TURNS = st.lists(st.integers(1, 9), min_size=1, max_size=6).map(
    lambda counts: {f"a{at}": count for at, count in enumerate(counts)}
)


class TestWeightedRoundRobin:
    def test_turns_are_spread_over_the_round(self):
        scheduler = WeightedRoundRobin[Any]({"ann": 4, "bob": 2, "cat": 1})
        fill(scheduler, 8)
        assert "".join(name[0] for name in who(scheduler, 14)) == "abacabaabacaba"

    @given(TURNS)
    def test_nobody_is_ever_ahead_by_more_than_half_a_turn_each(self, turns):
        """And so never by a round, in which everybody has all their turns."""
        scheduler = WeightedRoundRobin[Any](turns)
        size = sum(turns.values())
        fill(scheduler, 2 * max(turns.values()))
        served = Counter(dict.fromkeys(turns, 0))
        for step in range(1, 2 * size + 1):
            served[served_by(scheduler, step)] += 1
            rounds = {name: Fraction(served[name], turns[name]) for name in turns}
            for one in turns:
                for two in turns:
                    most = Fraction(1, 2 * turns[one]) + Fraction(1, 2 * turns[two])
                    assert rounds[one] - rounds[two] <= most <= 1
            if step % size == 0:
                assert set(rounds.values()) == {step // size}

    @given(st.integers(1, 7), st.integers(1, 40))
    def test_with_one_turn_each_it_is_round_robin(self, count, steps):
        names = [f"a{at}" for at in range(count)]
        one, two = RoundRobin[int](names), WeightedRoundRobin[int](dict.fromkeys(names, 1))
        fill(one, steps)
        fill(two, steps)
        assert who(one, steps) == who(two, steps)

    def test_a_newcomer_has_the_turns_that_lie_ahead(self):
        scheduler = WeightedRoundRobin[Any]({"ann": 2, "bob": 2})
        fill(scheduler, 9)
        assert who(scheduler, 2) == ["ann", "bob"]
        scheduler.join("dan", turns=4)
        assert scheduler.turns == {"ann": 2, "bob": 2, "dan": 4}
        for _ in range(9):
            scheduler.submit("dan", None)
        assert "".join(name[0] for name in who(scheduler, 11)) == "abddabddabd"

    @pytest.mark.parametrize("wrong", [0, -1, 1.5, 2.0, math.nan, "2", True, None])
    def test_turns_that_are_no_whole_number_are_refused(self, wrong):
        scheduler = WeightedRoundRobin[Any]({"ann": 1})
        words = "The turns of bob must be a whole number"
        with pytest.raises(SharingError, match=words):
            WeightedRoundRobin[Any]({"ann": 1, "bob": wrong})
        with pytest.raises(SharingError, match=words):
            scheduler.join("bob", wrong)
        assert scheduler.analysts == ("ann",)

    def test_a_list_of_names_has_no_turns(self):
        with pytest.raises(SharingError, match="`turns` must map names"):
            WeightedRoundRobin[Any](NAMES)  # type: ignore[arg-type]

    @given(st.dictionaries(st.sampled_from("abcdef"), st.integers(1, 50), min_size=1), st.data())
    def test_turns_are_the_smallest_in_proportion(self, counts, data):
        factor = data.draw(st.fractions("1/50", 50))
        turns = turns_for({name: count * factor for name, count in counts.items()})
        assert math.gcd(*turns.values()) == 1
        assert len({Fraction(turns[name], counts[name]) for name in counts}) == 1
        assert list(turns) == list(counts)

    def test_proportions_that_need_too_many_turns_are_refused(self):
        assert sum(turns_for({"ann": "0.9999", "bob": "0.0001"}).values()) == 10_000
        with pytest.raises(SharingError, match=r"need 10,001 turns a round.*Round the amounts"):
            turns_for({"ann": 10_000, "bob": 1})
        with pytest.raises(SharingError, match="the maximum is 10,000"):
            WeightedRoundRobin[Any]({"ann": 10**9})
        assert turns_for({}) == {}

    @pytest.mark.parametrize("wrong", [0, "-1", 0.5, "much", math.nan])
    def test_amounts_that_are_none_are_refused(self, wrong):
        with pytest.raises(SharingError, match="What bob could ask alone must be"):
            turns_for({"ann": 1, "bob": wrong})


def harmonic(count):
    return sum(1 / n for n in range(1, count + 1))


def completion(scheduler):
    """The number of steps until every buffer is empty."""
    drain(scheduler)
    return scheduler.steps


class TestRandomized:
    @pytest.mark.statistical
    @pytest.mark.parametrize(
        ("analysts", "quota", "runs", "exact"),
        [(10, 1, 2000, 10 * harmonic(10)), (4, 1, 2000, 4 * harmonic(4)), (10, 50, 150, 614.290)],
    )
    def test_full_buffers_take_the_coupon_collectors_time(self, analysts, quota, runs, exact):
        """Six standard errors: a right scheduler fails for 2 seeds in a thousand million."""
        draw = random.Random(quota)
        times = []
        for _ in range(runs):
            scheduler = Randomized[Any]([f"a{at}" for at in range(analysts)], draw)
            fill(scheduler, quota)
            times.append(completion(scheduler))
        mean = sum(times) / runs
        spread = math.sqrt(sum((time - mean) ** 2 for time in times) / (runs - 1) / runs)
        assert abs(mean - exact) < 6 * spread
        assert abs(mean - 0.9 * exact) > 6 * spread
        assert abs(mean - 1.1 * exact) > 6 * spread

    @pytest.mark.statistical
    @pytest.mark.parametrize("given_as", ["uniform", "exact", "text", "float"])
    @pytest.mark.parametrize("source", [random.Random(4), None], ids=["seeded", "system"])
    def test_everybody_has_their_part_of_the_turns(self, given_as, source):
        """Six standard errors for each of three counts: fails once in a hundred million runs."""
        parts = {"ann": Fraction(1, 2), "bob": Fraction(3, 10), "cat": Fraction(1, 5)}
        if given_as == "uniform":
            parts = dict.fromkeys(NAMES, Fraction(1, 3))
        analysts = {
            "uniform": list(NAMES),
            "exact": parts,
            "text": {name: str(part) for name, part in parts.items()},
            "float": {name: float(part) for name, part in parts.items()},
        }[given_as]
        steps = 20_000
        scheduler = Randomized[None](analysts, source)
        counts = Counter[str]()
        for _ in range(steps):
            for analyst in NAMES:
                if not scheduler._buffers[analyst]:
                    scheduler.submit(analyst, None)
            counts[served_by(scheduler)] += 1
        for name, part in parts.items():
            error = 6 * math.sqrt(steps * part * (1 - part))
            assert abs(counts[name] - steps * part) < error
            assert abs(counts[name] - steps * part * Fraction(6, 5)) > error

    def test_who_is_done_is_still_drawn(self):
        scheduler = Randomized[Any](NAMES, random.Random(1))
        scheduler.done("ann")
        scheduler.done("bob")
        for _ in range(200):
            scheduler.submit("cat", None)
        served = [name for name in who(scheduler, 300) if name]
        assert 60 < len(served) < 140
        assert scheduler.stalls == 300 - len(served)

    def test_the_default_source_is_the_operating_system(self):
        def drawn():
            scheduler = Randomized[Any]([f"a{at}" for at in range(50)])
            fill(scheduler, 30)
            return who(scheduler, 30)

        assert drawn() != drawn()
        source = getattr(Randomized[Any](NAMES)._random, "__self__", None)
        assert isinstance(source, random.SystemRandom)

    def test_a_seed_repeats_the_run(self):
        def drawn(seed):
            scheduler = Randomized[Any](NAMES, random.Random(seed))
            fill(scheduler, 50)
            return who(scheduler, 50)

        assert drawn(1) == drawn(1) != drawn(2)

    def test_who_joins_takes_from_all_in_proportion(self):
        scheduler = Randomized[Any]({"ann": "3/4", "bob": "1/4"})
        scheduler.join("cat", probability="0.2")
        assert scheduler.probabilities == {
            "ann": Fraction(3, 5),
            "bob": Fraction(1, 5),
            "cat": Fraction(1, 5),
        }
        scheduler.join("dan")
        assert scheduler.probabilities["dan"] == Fraction(1, 4)
        assert sum(scheduler.probabilities.values()) == 1

    def test_who_leaves_gives_to_all_in_proportion(self):
        scheduler = Randomized[Any]({"ann": "1/2", "bob": "1/3", "cat": "1/6"})
        scheduler.leave("ann")
        assert scheduler.probabilities == {"bob": Fraction(2, 3), "cat": Fraction(1, 3)}
        scheduler.leave("bob")
        scheduler.leave("cat")
        scheduler.join("dan", probability="1/2")
        assert scheduler.probabilities == {"dan": 1}

    def test_a_uniform_draw_stays_uniform(self):
        scheduler = Randomized[Any](NAMES)
        scheduler.join("dan")
        scheduler.leave("bob")
        assert set(scheduler.probabilities.values()) == {Fraction(1, 3)}

    @pytest.mark.parametrize(
        ("probabilities", "words"),
        [
            ({"ann": "0.5", "bob": "0.4"}, "sum to 0.9, not to 1"),
            ({"ann": 0.5, "bob": 0.500001}, "sum to 1.000001, not to 1"),
            ({"ann": "0.333333333333", "bob": "0.666666666666"}, "sum to 0.999999999999, not to 1"),
            ({"ann": Fraction(10**30 - 1, 10**30)}, "sum to 9{30}/10{30}, not to 1"),
            ({"ann": 1.5, "bob": -0.5}, "probability of bob must be a number greater than 0"),
            ({"ann": "1", "bob": "0"}, "probability of bob must be greater than 0"),
            ({"ann": math.nan, "bob": 1.0}, "probability of ann must be a number greater than 0"),
            ({"ann": math.inf}, "probability of ann must be a number greater than 0"),
            ({"ann": "most"}, "probability of ann must be a plain number"),
            ({"ann": None}, "probability of ann must be an exact number"),
            ({}, "sum to 0, not to 1"),
        ],
    )
    def test_probabilities_that_are_none_are_refused(self, probabilities, words):
        with pytest.raises(SharingError, match=words):
            Randomized[Any](probabilities)

    def test_floats_need_to_sum_to_one_nearly(self):
        scheduler = Randomized[Any](dict.fromkeys(map(str, range(10)), 0.1))
        assert sum(scheduler.probabilities.values()) == 1

    @pytest.mark.parametrize("wrong", ["1", 1.0, 2, "0", -0.5, math.nan, "much"])
    def test_nobody_joins_with_a_probability_that_is_none(self, wrong):
        scheduler = Randomized[Any](NAMES)
        with pytest.raises(SharingError, match="The probability of dan must be"):
            scheduler.join("dan", wrong)
        assert scheduler.analysts == tuple(scheduler.probabilities) == NAMES

    def test_only_a_source_of_random_numbers_can_draw(self):
        with pytest.raises(SharingError, match=r"must be a random\.Random, not of type int"):
            Randomized[Any](NAMES, 7)  # type: ignore[arg-type]


class TestMakeScheduler:
    @pytest.mark.parametrize("name", SCHEDULERS)
    @pytest.mark.parametrize("analysts", [NAMES, {"ann": "1/2", "bob": "1/3", "cat": "1/6"}])
    def test_every_scheduler_is_made_by_its_name(self, name, analysts):
        scheduler = make_scheduler(name, analysts)
        assert scheduler.name == name
        assert scheduler.analysts == NAMES

    def test_options_reach_the_scheduler(self):
        made = make_scheduler("round-robin", NAMES, idle_after=3)
        assert isinstance(made, RoundRobin)
        assert made.idle_after == 3
        made = make_scheduler("weighted-round-robin", NAMES, idle_after=None)
        assert isinstance(made, WeightedRoundRobin)
        assert (made.turns, made.strict) == (dict.fromkeys(NAMES, 1), True)
        shares = {"ann": Fraction(1, 2), "bob": Fraction(1, 4)}
        made = make_scheduler("weighted-round-robin", shares)
        assert isinstance(made, WeightedRoundRobin)
        assert made.turns == {"ann": 2, "bob": 1}
        made = make_scheduler("weighted-round-robin", shares, turns={"bob": 5, "ann": 1})
        assert isinstance(made, WeightedRoundRobin)
        assert list(made.turns.items()) == [("ann", 1), ("bob", 5)]
        made = make_scheduler("randomized", shares)
        assert isinstance(made, Randomized)
        assert made.probabilities == {"ann": Fraction(1, 2), "bob": Fraction(1, 2)}
        draw = random.Random(1)
        made = make_scheduler("randomized", shares, probabilities={"bob": 0.75, "ann": 0.25}, draw=draw)
        assert isinstance(made, Randomized)
        assert list(made.probabilities.items()) == [("ann", Fraction(1, 4)), ("bob", Fraction(3, 4))]
        assert getattr(made._random, "__self__", None) is draw

    def test_an_unknown_name_is_refused_and_the_known_ones_are_told(self):
        words = r"Unknown scheduler 'fifo'.*none, round-robin, weighted-round-robin, randomized"
        with pytest.raises(SharingError, match=words):
            make_scheduler("fifo", NAMES)

    def test_an_unknown_option_is_refused(self):
        words = r"no option 'idle_after'\. It takes probabilities and draw"
        with pytest.raises(SharingError, match=words):
            make_scheduler("randomized", NAMES, idle_after=3)
        with pytest.raises(SharingError, match="It takes no options"):
            make_scheduler("none", NAMES, draw=random.Random(1))

    @pytest.mark.parametrize(
        ("name", "option"),
        [("weighted-round-robin", "turns"), ("randomized", "probabilities")],
    )
    @pytest.mark.parametrize("wrong", [{"ann": 1}, {"ann": 1, "bob": 1, "zoe": 1}, [1, 2]])
    def test_an_option_by_name_needs_every_name(self, name, option, wrong):
        with pytest.raises(SharingError, match=f"`{option}` must have a value for each analyst"):
            make_scheduler(name, ["ann", "bob"], **{option: wrong})

    @pytest.mark.parametrize("name", SCHEDULERS)
    def test_names_are_given_once_and_as_a_list(self, name):
        with pytest.raises(SharingError, match="'bob' is named twice"):
            make_scheduler(name, ["ann", "bob", "bob"])
        with pytest.raises(SharingError, match="must be a list of names"):
            make_scheduler(name, "ann")
