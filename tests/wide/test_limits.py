"""What must stay bounded on wide tables: the work of a question, and what a vague seed can spoil."""

import numpy as np
import pytest

from sharewell import Domain, Integer, LinearQuery
from sharewell.config import parse_config
from sharewell.mechanisms.marginal_seed import MarginalSeed
from sharewell.mechanisms.product_store import Modular
from sharewell.mechanisms.reconstruction import Reconstruction
from sharewell.query.block import ParallelBlock
from sharewell.query.sql import compile_sql
from sharewell.service.answers import OPERATIONS_PER_SECOND
from sharewell.sharing.collective import DryRun
from tests.wide.census import CATEGORIES, census_config

CONFIG = parse_config(census_config(20_000, ["ann"]))


def pairs(count: int) -> LinearQuery:
    """People who have the first value in both columns of at least one of so many pairs."""
    names = list(CATEGORIES)
    both = [
        f"({a} = '{a} 1' AND {b} = '{b} 1')"
        for a, b in zip(names[:count], names[count : 2 * count], strict=True)
    ]
    text = f"SELECT COUNT(*) FROM census WHERE {' OR '.join(both)}"
    [query] = compile_sql(text, CONFIG.domain, "census").queries
    return query


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_products_are_counted_without_making_them(count):
    assert pairs(count).product_count == len(list(pairs(count).products()))


def test_a_condition_that_splits_into_many_products_is_estimated_as_what_it_takes():
    mechanism = DryRun(CONFIG.collective).mechanism
    assert mechanism.work(pairs(3)).operations < 1e9
    assert mechanism.work(pairs(10)).operations > 1e11


def groups(text: str) -> ParallelBlock:
    [block] = compile_sql(f"SELECT COUNT(*) FROM census {text}", CONFIG.domain, "census").blocks
    return block


def test_the_groups_of_a_group_by_share_what_depends_on_one_column(monkeypatch):
    """Counted in axes: 17 + 7 + 3 for each chunk of the 357 groups, and not three for each group."""
    mechanism, computed = DryRun(CONFIG.collective).mechanism, []
    own_moments = Modular.own_moments

    def counted(self, axis, size):
        computed.append(axis)
        return own_moments(self, axis, size)

    monkeypatch.setattr(Modular, "own_moments", counted)
    block = groups("GROUP BY education, marital, enrolled")
    answers = mechanism.ask(block, "ann", pay=False)
    assert len(answers) == 357
    assert not any(answer.is_determined for answer in answers)
    assert 0 < len(computed) <= 2 * (17 + 7 + 3)


def test_a_free_group_by_of_thousands_of_groups_is_within_the_limit():
    mechanism = DryRun(CONFIG.collective).mechanism
    block = groups("GROUP BY industry, education, marital")
    assert len(block) == 2_856
    assert mechanism.work(block, pay=False).operations < OPERATIONS_PER_SECOND


def test_buying_a_whole_table_takes_little_work_and_as_many_other_rows_much():
    """A table is added to the seed in closed form, whichever part of it was bought before."""
    mechanism = DryRun(CONFIG.collective).mechanism
    table = groups("GROUP BY education, marital, enrolled")
    other = groups("WHERE age < 50 GROUP BY education, marital, enrolled")
    assert len(table) == len(other)
    little, much = (mechanism.work(each).operations for each in (table, other))
    assert 10 * little < much
    mechanism.ask(table.take(range(5)), "ann")
    assert mechanism.work(table).operations < 2 * little
    assert mechanism.work(table.take(range(5, 300))).operations > 10 * little
    mechanism.ask(table, "ann")
    assert mechanism.work(table).operations < little


@pytest.mark.parametrize("variance", [1e4, 1e8, 1e16, 1e20])
def test_rows_beside_a_vague_seed_of_tables_are_answered_from_the_rows(variance):
    domain = Domain([Integer("a", 0, 9), Integer("b", 0, 9)])
    known = Reconstruction(MarginalSeed.of(domain, [("a",)]))
    known.observe_seed(np.full(10, 100), np.full(10, variance))
    for low, high in ((0, 3), (3, 7), (0, 7), (1, 7), (0, 1)):
        row = LinearQuery.of(domain, a=range(low, high))
        known.observe([row], np.array([100.0 * (high - low)]), np.array([2.0]))
    values, variances = known.estimate([LinearQuery.of(domain, a=range(3))])
    assert values == pytest.approx(300)
    assert variances == pytest.approx(1.25, rel=1e-3 if variance < 1e6 else 1e-7)
