import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharewell import Domain, Integer, LinearQuery
from sharewell.errors import QueryError
from sharewell_lab.streams import Questions

DOMAIN = Domain([Integer("age", 0, 4)])


@given(st.lists(st.lists(st.integers(0, 1), min_size=11, max_size=11), min_size=1, max_size=40))
def test_same_is_the_place_of_the_first_equal_question(rows):
    questions = Questions.of_rows(rows, [0] * len(rows), analysts=1)
    assert questions.same.tolist() == [rows.index(row) for row in rows]


def test_queries_and_rows_make_the_same_stream():
    queries = [LinearQuery.of(DOMAIN, age=range(3)), LinearQuery.cell(DOMAIN, 4)]
    made = Questions.of(queries, [1, 0], analysts=2)
    assert made.weights.tolist() == [[1, 1, 1, 0, 0], [0, 0, 0, 0, 1]]
    assert (made.cells, len(made), made.asked().tolist()) == (5, 2, [1, 1])


def test_places_are_of_those_present():
    made = Questions.of_rows(np.eye(4), [0, 1, 2, 1], analysts=3)
    assert made.places(np.array([True, False, True])).tolist() == [0, 2]
    assert made.places(np.array([False, True, False])).tolist() == [1, 3]


@pytest.mark.parametrize(
    ("rows", "who", "says"),
    [
        ([[0, 2]], [0], "every weight is 0 or 1"),
        (np.array([[255, 0]], dtype=np.uint8), [0], "every weight is 0 or 1"),
        ([[0.5, 1]], [0], "every weight is 0 or 1"),
        ([[0, 1]], [2], "needs an analyst"),
        ([[0, 1]], [-1], "needs an analyst"),
        ([[0, 1]], [0, 1], "needs an analyst"),
        ([0, 1], [0], "rows of one length"),
    ],
)
def test_what_is_no_stream_of_counts_is_refused(rows, who, says):
    with pytest.raises(QueryError, match=says):
        Questions.of_rows(rows, who, analysts=2)
