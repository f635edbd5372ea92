"""UNION ALL: the rows of all SELECTs, each block bought once, and intervals of every number."""

import pytest

import sharewell
from sharewell import Category, Domain, Integer, Measure, compile_sql
from sharewell.errors import QueryTooComplex
from tests.cli.commands import write_dataset

DOMAIN = Domain([Integer("age", 0, 9), Category("sex", ["F", "M"])], [Measure("wage", "wage", 0, 10, 1)])


def test_equal_blocks_are_bought_once():
    part = "SELECT sex, COUNT(*), AVG(age) FROM people GROUP BY sex"
    one, three = compile_sql(part, DOMAIN), compile_sql(" UNION ALL ".join([part] * 3), DOMAIN)
    assert three.queries == one.queries
    assert three.rows([4, 2, 8, 6]) == one.rows([4, 2, 8, 6]) * 3


def test_labels_of_different_selects_sort_together():
    text = "SELECT sex AS g, COUNT(*) FROM people GROUP BY g UNION ALL SELECT 'G', COUNT(*) FROM people"
    statement = compile_sql(f"{text} ORDER BY g", DOMAIN)
    assert statement.rows([1, 2, 3]) == [("F", 1), ("G", 3), ("M", 2)]
    assert not statement.selects_by_noise
    assert compile_sql(f"{text} ORDER BY 2 DESC LIMIT 1", DOMAIN).selects_by_noise


def test_an_average_of_a_measure_keeps_its_middle():
    part = "SELECT AVG(wage), SUM(wage) FROM people"
    statement = compile_sql(f"{part} UNION ALL {part} WHERE age < 5", DOMAIN)
    # 4 rows with 2 above the middle in all; 2 rows with 4 below.
    answers = [2, 4, -4, 2]
    assert statement.rows(answers) == [(5.5, 22), (3, 6)]


def test_long_unions_are_refused():
    part = "SELECT COUNT(*) FROM people"
    with pytest.raises(QueryTooComplex, match="UNION ALL has 65 SELECTs; the limit is 64"):
        compile_sql(" UNION ALL ".join([part] * 65), DOMAIN)
    grouped = "SELECT age, COUNT(*) FROM people WHERE sex = '{}' GROUP BY age"
    both = " UNION ALL ".join(map(grouped.format, "FM"))
    assert compile_sql(both, DOMAIN, most=20).size == 20
    with pytest.raises(QueryTooComplex, match="20 numbers"):
        compile_sql(both + " ", DOMAIN, most=19)


def test_a_union_is_quoted_charged_and_answered_with_intervals(tmp_path):
    count = "SELECT '{0}' AS who, COUNT(*) AS n, AVG(age) AS mean FROM people WHERE sex = '{0}'"
    with sharewell.open(write_dataset(tmp_path), "ann") as session:
        session.ask(count.format("F"))
        text = " UNION ALL ".join([*map(count.format, "FM"), count.format("F")])
        # The first SELECT was bought before, and the third is the first again.
        only_new = session.quote(count.format("M")).cost
        quote = session.quote(text)
        table = session.ask(text)
        assert table.cost == quote.cost == only_new
        assert [row[0] for row in table] == ["F", "M", "F"]
        for _, n, mean in table:
            assert n.interval[0] < n.value < n.interval[1]
            assert mean.interval[0] < mean.value < mean.interval[1]
        assert session.quote(text).cost == 0
