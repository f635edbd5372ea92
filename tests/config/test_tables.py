"""Which tables are free from the start, and with what error: against the mechanism's own quotes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from sharewell import LinearQuery
from sharewell.config import Config, parse_config
from sharewell.config.forecast import dry_run
from sharewell.config.tables import (
    _count_larger,
    _variances_of_marginals,
    summarize_tables,
)
from sharewell.mechanisms.marginal_prior import MarginalPrior
from sharewell.mechanisms.marginal_seed import MarginalPart
from sharewell.query.workload import marginal

CONFIG = """
[dataset]
source = "people.csv"
neighbours = "{neighbours}"
[budget]
epsilon = 1
{delta}
error_threshold = 20
[attributes.age]
type = "integer"
low = 0
high = 6
[attributes.sex]
type = "category"
categories = ["F", "M"]
[attributes.region]
type = "integer"
low = 1
high = 4
[attributes.employed]
type = "boolean"
[analysts.ann]
share = "1/2"
[analysts.ben]
share = "1/4"
[mechanism]
{mechanism}
"""


def configured(mechanism: str, neighbours: str = "add-remove", delta: str = "") -> Config:
    return parse_config(CONFIG.format(mechanism=mechanism, neighbours=neighbours, delta=delta))


def quoted_errors(config: Config, analyst: str) -> dict[int, list[float]]:
    """The root mean square of the quoted errors of every table's cells, by the number of columns."""
    mechanism = dry_run(config)
    found: dict[int, list[float]] = {1: [], 2: [], 3: []}
    for count, errors in found.items():
        for names in combinations(config.domain.names, count):
            cells = marginal(config.domain, names)
            offer = mechanism.preview(cells, analyst).free
            own = offer.standard_errors if offer is not None else ()
            known = [math.inf if error is None else error for error in own]
            if len(known) == len(cells) and max(known) < math.inf:
                errors.append(math.sqrt(np.mean(np.square(known))))
    return found


@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
@pytest.mark.parametrize("delta", ["", "delta = 1e-6"])
@pytest.mark.parametrize("seed", ["identity", "total", "marginals(1)", "marginals(2)", "h2", "prefix"])
def test_free_errors_are_those_that_the_mechanism_quotes(seed, neighbours, delta):
    config = configured(f'seed = "{seed}"', neighbours, delta)
    quoted = quoted_errors(config, "ann")
    for summary in summarize_tables(config):
        errors = quoted[summary.columns]
        assert summary.free == len(errors)
        assert summary.others == summary.tables - summary.free
        if errors:
            assert summary.best == pytest.approx(min(errors))
            assert summary.worst == pytest.approx(max(errors))
            assert len(summary.best_table) == len(summary.worst_table) == summary.columns


@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
@pytest.mark.parametrize("delta", ["", "delta = 1e-6"])
def test_other_tables_cost_one_question_and_have_its_error(neighbours, delta):
    config = configured('name = "laplace"\nquery_budget = "1/50"', neighbours, delta)
    offer = dry_run(config).preview(marginal(config.domain, ["age", "sex"]), "ann").paid
    assert offer is not None
    for summary, tables in zip(summarize_tables(config), (4, 6, 4), strict=True):
        assert (summary.tables, summary.free, summary.others) == (tables, 0, tables)
        assert (summary.best, summary.worst) == (None, None)
        assert summary.paid == pytest.approx(offer.standard_errors[0])


def test_analysts_who_are_alone_have_a_best_and_a_worst_seed():
    config = configured('seed = "identity"\nindependent = true')
    best, worst = (quoted_errors(config, name) for name in ("ann", "ben"))
    for summary in summarize_tables(config):
        assert summary.best == pytest.approx(min(best[summary.columns]))
        assert summary.worst == pytest.approx(max(worst[summary.columns]))


def test_nothing_is_said_where_errors_depend_on_the_data():
    assert summarize_tables(configured('name = "multiplicative-weights"')) == ()


@pytest.mark.parametrize("fraction", ["0", "1e-14"])
def test_nothing_is_free_without_a_seed(fraction):
    config = configured(f'seed_fraction = "{fraction}"')
    assert [summary.free for summary in summarize_tables(config)] == [0, 0, 0]


def test_any_set_of_marginals_determines_what_its_prior_says():
    domain = configured("").domain
    rng = np.random.default_rng(15)
    sets = [s for count in range(5) for s in combinations(range(4), count)]
    for _ in range(20):
        chosen = [sets[at] for at in rng.choice(len(sets), rng.integers(1, 6), replace=False)]
        measured = [(s, float(rng.uniform(0.5, 30))) for s in chosen]
        prior = MarginalPrior(domain)
        for s, variance in measured:
            mask, rows = sum(1 << at for at in s), math.prod(domain.shape[at] for at in s)
            prior = prior.with_marginal(mask, 0, np.zeros(rows), variance)
        parts = [(MarginalPart(s, 0, Fraction(1)), variance) for s, variance in measured]
        found = _variances_of_marginals(domain.shape, parts)
        for s in (each for each in sets if len(each) <= 3):
            cell = LinearQuery.of_vectors(domain, {at: np.eye(domain.shape[at])[0] for at in s})
            if prior.determines(cell):
                assert found[s] == pytest.approx(prior.variances([cell]).item())
            else:
                assert s not in found


def test_large_tables_are_counted_without_listing_them():
    rng = np.random.default_rng(4)
    for _ in range(50):
        sizes: Sequence[int] = rng.integers(1, 30, rng.integers(3, 9)).tolist()
        for count in (1, 2, 3):
            limit = int(rng.integers(1, 3_000))
            listed = sum(math.prod(chosen) > limit for chosen in combinations(sizes, count))
            assert _count_larger(sizes, count, limit) == listed


def test_a_table_that_is_too_large_for_one_question_is_counted():
    config = configured('seed = "total"\n[service]\nmost_numbers = 40')
    # age, region and another; age, sex and employed have 28 cells.
    assert [summary.too_large for summary in summarize_tables(config)] == [0, 0, 2]


def test_a_thousand_columns_are_summarized():
    sizes = [2 + at % 90 for at in range(1_000)]
    assert _count_larger(sizes, 3, 10_000) > 10**7
    measured = [(MarginalPart((at, at + 1), 0, Fraction(1)), 3.0) for at in range(999)]
    assert len([s for s in _variances_of_marginals(sizes, measured) if len(s) == 2]) == 999


def test_shares_of_a_seed_are_exact():
    config = configured('seed = "identity"\nseed_fraction = "1/3"')
    noise = 1 / (2 * math.sinh(float(Fraction(3, 4) / 3) / 2) ** 2)
    three = summarize_tables(config)[2]
    # A cell of three of the columns is a sum over the cells of the fourth.
    assert three.best == pytest.approx(math.sqrt(noise * 2))
    assert three.worst == pytest.approx(math.sqrt(noise * 7))
