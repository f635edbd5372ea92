import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharewell import Block, Boolean, Category, Domain, Integer, LinearQuery
from sharewell.errors import ConfigError
from sharewell.query import workload
from sharewell_lab import streams
from sharewell_lab.streams import Asker, Workload

AGES = Domain([Integer("age", 0, 85)])
SMALL = Domain([Integer("age", 0, 4), Category("sex", ["f", "m"]), Boolean("moved")])


def rng(seed=0):
    return np.random.default_rng(seed)


@given(st.integers(0, 86), st.integers(0, 86))
def test_a_restricted_workload_is_that_of_a_block_with_a_condition(one, other):
    start, end = sorted((one, other))
    predicate = LinearQuery.of(AGES, age=range(start, end))
    for block in (workload.h2(AGES), workload.prefixes(AGES)):
        cut = streams.restricted(streams.rows_of(block), predicate.to_vector().astype(np.bool_))
        wanted = [query.to_vector().tolist() for query in block.where(predicate)]
        assert cut.tolist() == wanted


def test_the_papers_workloads_have_the_sizes_of_the_paper():
    made = {one.name: one.rows for one in streams.paper_workloads(AGES)}
    sizes = {name: len(rows) for name, rows in made.items()}
    assert sizes == {"race1": 7, "race2": 70, "race3": 1, "identity": 86, "prefixes": 86, "h2": 171}
    assert all(rows.shape[1] == 86 for rows in made.values())
    assert not any(made[race][:, 64:].any() for race in ("race1", "race2", "race3"))
    assert made["race1"].sum(axis=1).tolist() == [1] * 6 + [58]


def test_the_papers_workloads_need_64_cells():
    with pytest.raises(ConfigError, match="64 cells does not fit into 50"):
        streams.paper_workloads(Domain([Integer("age", 0, 49)]))


@given(st.integers(0, 2**32))
def test_a_random_predicate_is_an_interval_or_a_value_of_one_attribute(seed):
    mask = streams.random_predicate(SMALL, rng(seed)).reshape(SMALL.shape)
    assert mask.any()
    sides = [mask.any(axis=tuple(o for o in range(3) if o != level)) for level in range(3)]
    assert (mask == np.multiply.outer(np.multiply.outer(*sides[:2]), sides[2])).all()
    narrow = [side for side in sides if not side.all()]
    assert len(narrow) <= 1
    ages = np.flatnonzero(sides[0])
    assert (np.diff(ages) == 1).all()
    assert all(np.sum(side) in (1, np.size(side)) for side in sides[1:])


@given(st.integers(0, 2**32))
def test_an_asker_always_has_something_to_ask(seed):
    one = Asker((Workload("last", np.eye(86, dtype=np.uint8)[85:]),), restrict=1.0)
    rows = one.draw(AGES, rng(seed))
    assert rows.tolist() == np.eye(86, dtype=np.uint8)[85:].tolist()


def test_an_asker_whom_no_predicate_leaves_anything_is_refused():
    nothing = Asker((Workload("nothing", np.zeros((1, 86), dtype=np.uint8)),), restrict=1.0)
    with pytest.raises(ConfigError, match="No random predicate leaves anything of the workload nothing"):
        nothing.draw(AGES, rng())


def test_an_asker_shuffles_and_loses_nothing():
    rows = streams.rows_of(workload.h2(AGES))
    one = Asker((Workload("h2", rows),)).draw(AGES, rng())
    assert one.tolist() != rows.tolist()
    assert sorted(map(bytes, one)) == sorted(map(bytes, rows))


def test_about_half_of_the_workloads_are_restricted_when_half_should_be():
    asker = Asker(streams.paper_workloads(AGES)[3:4], restrict=0.5)
    whole = sum(len(asker.draw(AGES, rng(seed))) == 86 for seed in range(2000))
    # One interval in 3,741 is the whole line. Five standard deviations are 112.
    assert 880 < whole < 1120


@given(st.lists(st.integers(0, 30), min_size=1, max_size=5), st.floats(0, 1), st.integers(0, 2**32))
def test_everybody_asks_all_of_their_questions(asked, p, seed):
    who = streams.arrivals(asked, streams.first_with(p, len(asked)), rng(seed))
    assert np.bincount(who, minlength=len(asked)).tolist() == asked


def test_the_first_asks_with_probability_p_and_the_others_alike():
    who = streams.arrivals([10_000] * 5, streams.first_with(0.6, 5), rng())[:10_000]
    part = np.bincount(who, minlength=5) / 10_000
    # Five standard deviations.
    assert abs(part[0] - 0.6) < 0.025
    assert (np.abs(part[1:] - 0.1) < 0.015).all()


def test_who_has_no_chance_asks_when_the_others_are_done():
    who = streams.arrivals([3, 2, 2], streams.first_with(1.0, 3), rng())
    assert who[:3].tolist() == [0, 0, 0]


def test_what_an_analyst_asks_stays_when_others_join_or_ask_more_often():
    asker = Asker(streams.paper_workloads(AGES), restrict=0.5)
    seed = np.random.SeedSequence(7)
    few = streams.draw_questions(AGES, [asker] * 2, streams.first_with(0.5, 2), seed)
    many = streams.draw_questions(AGES, [asker] * 4, streams.first_with(0.9, 4), seed)
    for analyst in range(2):
        assert (few.weights[few.analyst == analyst] == many.weights[many.analyst == analyst]).all()
    other = streams.draw_questions(AGES, [asker] * 2, streams.first_with(0.5, 2), streams.child(seed, 1))
    assert other.weights.shape != few.weights.shape or (other.weights != few.weights).any()


def test_a_workload_of_sums_is_refused():
    ages = LinearQuery.product(AGES, {"age": np.arange(86)})
    with pytest.raises(ConfigError, match="weights other than 0 and 1"):
        Workload.of("sum", Block(AGES, [ages]))
