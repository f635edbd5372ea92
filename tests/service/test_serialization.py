"""Tables: what a result and a quote look like on the wire."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from sharewell import (
    Boolean,
    Budget,
    Category,
    Curator,
    DataVector,
    Domain,
    Integer,
    compile_sql,
    wire,
)
from sharewell.mechanisms.base import LAPLACE_CRITICAL, Answer, EdgeEstimate, reach_of
from sharewell.mechanisms.laplace import Laplace
from sharewell.query.attribute import Binned, Date
from sharewell.query.expression import Average
from sharewell.query.statement import Statement
from sharewell.service import intervals, results
from sharewell.service.intervals import WIDENING, mean
from sharewell.service.quotes import quote_message
from sharewell_lab.noise import SeededNoise

DOMAIN = Domain([Integer("age", 0, 19), Category("sex", ["F", "M"])])


def measured(value: float, error: float | None = 1.0, **more) -> Answer:
    interval = None if error is None else (value - 2 * error, value + 2 * error)
    return Answer(value, error, interval, **{"source": "measured", "payer": "ann", **more})


class Result(NamedTuple):
    """A statement and its answers."""

    statement: Statement
    answers: tuple[Answer, ...]


def answer_table(result: Result, pay: bool = False) -> wire.Result:
    return results.result(*result, pay=pay)


def result(sql: str, values, domain: Domain = DOMAIN, **more) -> Result:
    statement = compile_sql(sql, domain)
    return Result(statement, tuple(measured(value, **more) for value in values))


def plain(answer: wire.Result) -> list[tuple]:
    """The rows with the values of their numbers."""
    return [
        tuple(field.value if isinstance(field, wire.Number) else field for field in row)
        for row in answer.rows
    ]


def test_a_count_comes_straight_from_its_answer():
    found = answer_table(result("SELECT COUNT(*) FROM people", [12.5], error=3.0))
    assert found.columns == (wire.ResultColumn(name="COUNT(*)", kind="number"),)
    number = wire.Number(value=12.5, standard_error=3.0, interval=(6.5, 18.5), source="measured")
    assert found.rows == ((number,),)


def test_groups_show_labels_and_numbers_in_the_order_of_the_columns():
    found = answer_table(result("SELECT SUM(age), sex FROM people GROUP BY sex", [1.0, 2.0]))
    assert [(column.name, column.kind) for column in found.columns] == [
        ("SUM(age)", "number"),
        ("sex", "group"),
    ]
    assert plain(found) == [(1.0, "F"), (2.0, "M")]


@given(
    st.sampled_from(
        [
            "SELECT age, COUNT(*) FROM people GROUP BY age",
            "SELECT age, COUNT(*) FROM people GROUP BY age ORDER BY COUNT(*) DESC LIMIT 3",
            "SELECT age, AVG(age) FROM people GROUP BY age HAVING COUNT(*) > 2 ORDER BY AVG(age)",
            "SELECT COUNT(*), AVG(age) FROM people WHERE sex = 'F'",
            "SELECT age, sex, SUM(age) FROM people GROUP BY age, sex HAVING SUM(age) IS NOT NULL",
        ]
    ),
    st.data(),
)
def test_the_rows_are_those_of_sql(sql, data):
    count = len(compile_sql(sql, DOMAIN).queries)
    # Quotients of tiny values overflow.
    number = st.floats(-9, 9).map(lambda value: value if abs(value) > 1e-100 else 0.0)
    values = data.draw(st.lists(number, min_size=count, max_size=count))
    found = result(sql, values)
    assert plain(answer_table(found)) == found.statement.rows(values)


POINTS = st.floats(-1e6, 1e6)
PARTS = st.floats(0, 1)


@given(POINTS, st.floats(1e-6, 1e4), POINTS, st.floats(1e-6, 1e4), PARTS, PARTS)
def test_the_interval_of_a_mean_holds_wherever_both_numbers_do(total, spread, count, other, here, there):
    above, below = measured(total, spread), measured(count, other)
    found = mean(above, below).interval
    if count - 2 * WIDENING * other <= 0:
        assert found is None
        return
    low, high = found or (None, None)
    assert low is not None
    assert high is not None
    true_total = total + (2 * here - 1) * 2 * WIDENING * spread
    true_count = count + (2 * there - 1) * 2 * WIDENING * other
    slack = 1e-9 * max(abs(low), abs(high))
    assert low - slack <= true_total / true_count <= high + slack


@given(POINTS, st.floats(1e-6, 1e4), st.floats(1, 1e6), st.floats(1e-6, 1e4))
def test_the_interval_of_a_mean_is_no_wider_than_it_must_be(total, spread, count, other):
    found = mean(measured(total, spread), measured(count, other)).interval
    assume(found is not None)
    ends = [
        (total + up * 2 * WIDENING * spread) / (count + right * 2 * WIDENING * other)
        for up in (-1, 1)
        for right in (-1, 1)
    ]
    assert found == pytest.approx((min(ends), max(ends)), rel=1e-9, abs=1e-9)


def test_a_mean_has_no_value_where_the_count_is_not_positive():
    for count in (0.0, -3.0):
        found = mean(measured(10.0), measured(count))
        assert (found.value, found.interval, found.standard_error) == (None, None, None)


def test_a_mean_has_no_interval_where_the_count_may_be_zero():
    found = mean(measured(10.0), measured(2 * WIDENING, 1.0))
    assert found.value == 10 / (2 * WIDENING)
    assert found.interval is None
    assert mean(measured(10.0), measured(2 * WIDENING + 0.01, 1.0)).interval is not None


def test_a_mean_has_no_interval_where_a_part_has_none():
    assert mean(measured(10.0, None), measured(100.0)).interval is None
    assert mean(measured(10.0), measured(100.0, None)).interval is None
    for parts in ((math.inf, 1.0), (1.0, math.inf)):
        found = mean(measured(10.0, parts[0]), measured(100.0, parts[1]))
        assert (found.value, found.interval) == (None, (-math.inf, math.inf))


@pytest.mark.parametrize(
    ("one", "other", "weaker"),
    [
        ("measured", "cached", "measured"),
        ("reconstructed", "measured", "reconstructed"),
        ("synthetic", "reconstructed", "synthetic"),
        ("public", "measured", "measured"),
        ("public", "public", "public"),
    ],
)
def test_a_mean_is_from_where_its_weaker_part_is(one, other, weaker):
    for sources in ((one, other), (other, one)):
        parts = [measured(1.0, source=source) for source in sources]
        assert mean(parts[0], parts[1]).source == weaker


def test_what_is_infinite_or_not_known_travels_as_null():
    found = answer_table(
        Result(
            compile_sql("SELECT sex, COUNT(*) FROM people GROUP BY sex", DOMAIN),
            (
                Answer(1.0, math.inf, (-math.inf, math.inf), "reconstructed"),
                Answer(2.0, None, None, "synthetic"),
            ),
        )
    )
    sent = json.loads(found.model_dump_json())
    nothing = {"standard_error": None, "interval": None}
    assert sent["rows"] == [
        ["F", {**nothing, "value": None, "interval": [None, None], "source": "reconstructed"}],
        ["M", {**nothing, "value": 2.0, "source": "synthetic"}],
    ]


def test_the_cost_is_the_askers_and_each_charge_counts_once():
    sql = "SELECT sex, COUNT(*) FROM people GROUP BY sex"
    together = result(sql, [1.0, 2.0], cost=Fraction(1, 8), charge=5)
    assert answer_table(together).cost == Fraction(1, 8)
    assert answer_table(result(sql, [1.0, 2.0])).cost == Fraction(0)


def test_a_payer_is_named_where_there_is_just_one():
    statement = compile_sql("SELECT sex, COUNT(*) FROM people GROUP BY sex", DOMAIN)

    def paid_by(*answers: Answer) -> str | None:
        return answer_table(Result(statement, answers)).paid_by

    ann, ben, nobody = (measured(1.0, payer=payer) for payer in ("ann", "ben", None))
    zero = Answer(0.0, 0.0, (0.0, 0.0), "public")
    assert paid_by(ann, ann) == "ann"
    assert paid_by(ann, zero) == "ann"
    assert paid_by(ann, ben) is None
    assert paid_by(ann, nobody) is None
    assert paid_by(zero, zero) is None


def test_every_kind_of_label_goes_over_the_wire_and_comes_back():
    domain = Domain(
        [
            Integer("age", 0, 3, bins={"grown": [0, 2]}, nullable=True),
            Boolean("moved", nullable=True),
            Date("day", "2024-01-31", "2024-02-01", bins={"month": "month"}),
            Binned("income", [0, 10.5, 20], other="else"),
            Category("sex", ["F", "M"]),
        ]
    )
    expected: dict[str, list[object]] = {
        "age": [0, 1, 2, 3, None],
        "grown": ["0-1", "2-3", None],
        "moved": [False, True, None],
        "day": ["2024-01-31", "2024-02-01"],
        "month": ["2024-01", "2024-02"],
        "income": ["[0, 10.5)", "[10.5, 20)", "else"],
        "sex": ["F", "M"],
    }
    for name, labels in expected.items():
        sql = f"SELECT {name}, COUNT(*) FROM people GROUP BY {name}"
        sent = answer_table(result(sql, range(len(labels)), domain)).model_dump_json()
        assert wire.Result.model_validate_json(sent).model_dump_json() == sent
        assert [row[0] for row in json.loads(sent)["rows"]] == labels


def quoted(sql: str, paid, free, cost: str = "1/8") -> wire.Quote:
    return quote_message(compile_sql(sql, DOMAIN), Fraction(cost), Fraction(1, 2), paid, free)


def test_a_quote_has_the_largest_and_the_smallest_error_of_each_column_of_numbers():
    sql = "SELECT sex, AVG(age), COUNT(*), SUM(age) FROM people GROUP BY sex LIMIT 1"
    statement = compile_sql(sql, DOMAIN)
    errors = {block: (10.0 * block + 1, 10.0 * block + 2) for block in range(len(statement.blocks))}
    flat = tuple(error for block in errors.values() for error in block)
    found = quoted(sql, flat, None)
    sources = [output.source for output in statement.outputs[2:]]
    expected = [(errors[s.block][1], errors[s.block][0]) for s in sources]  # type: ignore[union-attr]
    average = statement.outputs[1].source
    assert isinstance(average, Average)
    parts = (errors[average.total][1], errors[average.count][1])
    assert found.paid is not None
    assert found.paid.errors[1:] == tuple(expected)
    assert found.paid.averages == (parts, None, None)
    # Ages are at most 19, and a group of which nothing is known has 1,000 rows.
    assert found.paid.errors[0] == pytest.approx(
        tuple(
            math.hypot(errors[average.total][at], 19 * errors[average.count][at]) / 1000 for at in (1, 0)
        )
    )
    assert found.paid.group_sizes == ((1000, 1000), None, None)
    assert found.free is None
    assert (found.groups, found.means, found.sql) == (1, Fraction(1, 2), sql)
    assert [column.kind for column in found.columns] == ["group", "number", "number", "number"]


def test_the_errors_of_an_average_are_not_known_where_those_of_a_part_are_not():
    found = quoted("SELECT AVG(age) FROM people", (1.0, None), (math.inf, 2.0))
    assert found.paid is not None
    assert (found.paid.averages, found.paid.errors) == ((None,), (None,))
    # Nothing that was measured so far determines it.
    assert found.free is None


BINNED = Domain([Binned("stay", [0, 3, 7, 365]), Integer("age", 0, 19), Category("sex", ["F", "M"])])


@pytest.mark.parametrize(
    ("sql", "warned"),
    [
        ("SELECT COUNT(*) FROM people WHERE stay >= 3", []),
        ("SELECT SUM(age), COUNT(stay) FROM people", []),
        ("SELECT stay, COUNT(*) FROM people GROUP BY stay ORDER BY stay LIMIT 2", []),
        ("SELECT sex, COUNT(*) AS n FROM people GROUP BY sex ORDER BY n", []),
        ("SELECT sex FROM people GROUP BY sex ORDER BY COUNT(*) DESC LIMIT 1", ["Noisy numbers"]),
        ("SELECT sex, COUNT(*) FROM people GROUP BY sex HAVING COUNT(*) > 3", ["Noisy numbers"]),
        ("SELECT SUM(stay), AVG(age), AVG(stay) FROM people", ["stay is stored in bins"]),
        ("SELECT AVG(stay) FILTER (WHERE sex = 'F') FROM people", ["stay is stored in bins"]),
        (
            "SELECT sex FROM people GROUP BY sex HAVING SUM(stay) > 3",
            ["stay is stored in bins", "Noisy numbers"],
        ),
    ],
)
def test_what_no_interval_covers_is_noted_before_and_after_one_asks(sql, warned):
    count = len(compile_sql(sql, BINNED).queries)
    edges = ((0, EdgeEstimate(90.0, 1.0, 110.0, 1.0)),)
    answered = answer_table(result(sql, [100.0] * count, BINNED, error=1.0, edges=edges)).notes
    statement = compile_sql(sql, BINNED)
    quoted = quote_message(statement, Fraction(1), Fraction(1), None, None).notes
    assert answered == quoted
    assert len(answered) == len(warned)
    assert all(note.startswith(start) for note, start in zip(answered, warned, strict=True))


def test_why_an_average_is_null_is_noted():
    sql = "SELECT sex, AVG(age) FROM people GROUP BY sex"
    assert answer_table(result(sql, [50.0, 60.0, 5.0, 6.0])).notes == ()
    [note] = answer_table(result(sql, [50.0, 60.0, 5.0, -1.0])).notes
    assert note.startswith("NULL: the noisy count")
    vague = result(sql, [50.0, 60.0, 5.0, 6.0], error=10.0)
    [note] = answer_table(vague).notes
    assert note.startswith("An average without an interval")
    nothing = Answer(0.0, 0.0, (0.0, 0.0), "public")
    answers = (
        vague.answers[0],
        nothing,
        replace(vague.answers[2], standard_error=0.1, interval=(4.9, 5.1)),
        nothing,
    )
    [note] = answer_table(vague._replace(answers=answers)).notes
    assert note.startswith("NULL: the average of an empty set")


def test_that_a_share_was_not_enough_is_noted_where_it_was_to_be_paid_for():
    answers = result("SELECT COUNT(*) FROM people", [5.0], error=1.0)
    known = answers._replace(answers=(replace(answers.answers[0], source="reconstructed"),))
    assert answer_table(known, pay=False).notes == ()
    assert "does not cover" in answer_table(known, pay=True).notes[0]
    assert answer_table(answers, pay=True).notes == ()


@pytest.mark.parametrize(
    ("paid", "free", "noted"),
    [((9.6,), (10.0,), True), ((9.4,), (10.0,), False), ((0.0,), (0.0,), False), (None, (1.0,), False)],
)
def test_that_paying_hardly_helps_is_noted_in_a_quote(paid, free, noted):
    statement = compile_sql("SELECT COUNT(*) FROM people", DOMAIN)
    for cost in (Fraction(1), Fraction(0)):
        notes = quote_message(statement, cost, Fraction(1), paid, free).notes
        assert ("hardly make the answer" in str(notes)) == (noted and cost > 0)


@pytest.mark.parametrize(
    ("unknown", "offer"),
    [
        (None, wire.Offer(cost=Fraction(0), errors=((1.0, 1.0),), unknown=1)),
        (math.inf, wire.Offer(cost=Fraction(0), errors=((1.0, 1.0),), undetermined=1)),
    ],
)
def test_errors_that_are_not_known_and_numbers_that_are_undetermined_are_counted(unknown, offer):
    found = quoted("SELECT sex, COUNT(*) FROM people GROUP BY sex", None, (1.0, unknown))
    assert found.paid is None
    assert found.free == offer
    assert found.groups == 2


def test_two_intervals_of_laplace_noise_hold_at_once():
    """Exactly: one draw of noise that is not tiny stays within the wider interval 39 times in 40."""
    for scale in (50.0, 51.3, 77.7, 200.0, 1e4):
        ratio = math.exp(-1 / scale)
        deviation = math.sqrt(2 * ratio) / (1 - ratio)

        def within(factor: float, ratio: float = ratio, deviation: float = deviation) -> float:
            reach = factor * reach_of(deviation, 1.0, LAPLACE_CRITICAL)
            return 1 - 2 * ratio ** (math.floor(reach) + 1) / (1 + ratio)

        assert within(WIDENING) >= 0.975
        assert within(1.2) < 0.975


AVERAGES = 1_500


def covered(budget: Budget, seed: int) -> float:
    """How often the interval of an average holds, on a made-up table with seeded noise."""
    domain = Domain([Integer("age", 0, 19)])
    counts = np.arange(20, dtype=np.int64) * 10
    truth = float(counts @ np.arange(20) / counts.sum())
    price = budget.total / (2 * AVERAGES)
    curator = Curator(DataVector(domain, counts), budget, {"ann": budget.total}, noise=SeededNoise(seed))
    mechanism = Laplace(curator, query_budget=price)
    statement = compile_sql("SELECT AVG(age) FROM people", domain)
    held = 0
    for _ in range(AVERAGES):
        answers = [answer for block in statement.blocks for answer in mechanism.ask(block, "ann")]
        [[found]] = answer_table(Result(statement, tuple(answers))).rows
        low, high = found.interval
        held += low <= truth <= high
    return held / AVERAGES


@pytest.mark.statistical
@pytest.mark.parametrize(
    "budget", [Budget.pure("150"), Budget.zcdp("100", "1e-6")], ids=lambda budget: budget.currency
)
def test_the_interval_of_an_average_holds_95_times_in_100(budget, monkeypatch):
    """It holds 99 times in 100 here, since both numbers would have to be off in the same direction.

    The seed is fixed, so it fails always or never. With a fresh one, 1,500 draws of which 99 in 100
    hold would fall below 95 in 100 less than once in 10^9 runs.
    """
    assert covered(budget, seed=20) >= 0.95
    monkeypatch.setattr(intervals, "WIDENING", 0.6)
    assert covered(budget, seed=20) < 0.95
