"""Whatever is asked: an answer of the right shape, or a sentence and nothing spent."""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sharewell import Category, Domain, Integer, wire
from sharewell.errors import QueryError
from sharewell.query.sql import compile_sql
from tests.service.http.servers import COUNT, running, write_dataset
from tests.service.robustness.guarding import is_problem, is_sentence, standing
from tests.service.robustness.sql_texts import broken, noise, soup, whole

DOMAIN = Domain([Integer("age", 0, 19), Category("sex", ["F", "M"])])
#: What comes over a socket takes a while; and a server outlives its examples.
OVER_HTTP = settings(
    max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
ANYTHING = st.one_of(noise(), soup(), broken())


@settings(max_examples=300)
@given(ANYTHING)
def test_any_text_is_a_statement_or_a_sentence(text):
    try:
        statement = compile_sql(text, DOMAIN)
    except QueryError as error:
        refused = error
    else:
        rows = statement.rows([1.5] * len(statement.queries))
        assert {len(row) for row in rows} <= {len(statement.outputs)}
        return
    assert is_sentence(refused.message)
    assert is_sentence(refused.hint)


@settings(max_examples=60)
@given(whole())
def test_what_is_meant_to_be_answered_is_a_statement_of_that_shape(asked):
    text, columns, rows = asked
    statement = compile_sql(text, DOMAIN)
    assert len(statement.outputs) == columns
    assert len(statement.rows([1.5] * len(statement.queries))) <= rows


@OVER_HTTP
@given(ANYTHING, st.sampled_from(["/ask", "/quote"]))
def test_a_refused_text_spends_nothing_and_leaves_nothing_in_the_ledger(server, ann, text, path):
    before = standing(server)
    reply = ann.client.post(
        f"{ann.path}{path}",
        content=json.dumps({"sql": text}),
        headers={"content-type": "application/json"},
    )
    if reply.status_code == 200:
        (wire.Ticket if path == "/ask" else wire.Quote).model_validate_json(reply.content)
        assert path == "/ask" or standing(server) == before
    else:
        assert reply.status_code in (400, 402, 422)
        assert is_problem(reply.json())
        assert standing(server) == before


@OVER_HTTP
@given(whole())
def test_an_answer_has_the_columns_and_rows_that_were_asked_for(ann, asked):
    text, columns, rows = asked
    reply = ann.ask(text)
    assert reply.status_code == 200, reply.text
    answer = wire.Ticket.model_validate_json(reply.content).answer
    assert answer is not None
    assert len(answer.columns) == columns
    assert len(answer.rows) <= rows
    for row in answer.rows:
        for column, field in zip(answer.columns, row, strict=True):
            if column.kind == "number":
                wire.Number.model_validate(field)
            else:
                assert isinstance(field, int | str)


def wide(columns: str, rest: str, times: int) -> str:
    return f"SELECT {', '.join([columns] * times)} FROM people {rest}"


@pytest.mark.parametrize(
    "sql",
    [
        wide("COUNT(*)", "GROUP BY age, sex", 5_000),
        wide("age", "GROUP BY age HAVING COUNT(*) > 0", 15_000),
        wide("age AS a", "GROUP BY a HAVING COUNT(*) > 0", 8_000),
    ],
    ids=["numbers", "labels", "aliases"],
)
def test_a_short_question_cannot_ask_for_a_huge_answer(server, ann, sql):
    before = standing(server)
    reply = ann.ask(sql)
    assert (reply.status_code, reply.json()["code"]) == (400, "query.too-complex")
    assert standing(server) == before


NESTED = "COUNT(*) > 1"
for _ in range(99):
    NESTED = f"({NESTED}) IS NOT FALSE IS NOT FALSE AND COUNT(*) > 1 OR COUNT(*) > 2"


def test_what_is_too_deep_is_refused_before_it_is_paid_for(server, ann):
    before = standing(server)
    reply = ann.ask(f"SELECT COUNT(*) FROM people HAVING {NESTED}")
    assert (reply.status_code, reply.json()["code"]) == (400, "query.too-complex")
    assert standing(server) == before


def test_the_deepest_text_that_is_taken_can_be_taken_again_from_anywhere(tmp_path):
    """How deep a text may be does not hang on who compiles it: a ledger that was written can be read."""
    path = write_dataset(tmp_path)
    levels = next(n for n in range(400, 0, -1) if compiles(deep(n)))
    assert 100 < levels < 300
    with running(path) as first:
        assert first.analyst().ask(deep(levels)).status_code == 200
        assert first.analyst().ask(deep(levels + 1)).status_code == 400
    with running(path) as again:
        ann = again.analyst()
        assert [each["state"] for each in ann.get("/questions").json()["tickets"]] == ["answered"]
        assert ann.ask(COUNT).status_code == 200
    assert compiles_below(deep(levels), 250)


def deep(levels: int) -> str:
    return f"SELECT COUNT(*) FROM people WHERE age < {'+'.join(['0'] * levels)} + 5"


def compiles(text: str) -> bool:
    try:
        compile_sql(text, DOMAIN, "people")
    except QueryError:
        return False
    return True


def compiles_below(text: str, frames: int) -> bool:
    return compiles_below(text, frames - 1) if frames else compiles(text + " ")
