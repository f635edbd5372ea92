"""The different questions of a stream: what is computed once is what the cells say."""

from __future__ import annotations

import gc

import numpy as np
import pytest
from hypothesis import given

from sharewell.errors import QueryError
from sharewell_lab.engines import world
from sharewell_lab.engines.world import distinct
from sharewell_lab.streams import Questions
from tests.lab.engines.cases import cases


@given(case=cases())
def test_sizes_overlaps_and_answers_are_those_of_the_cells(case):
    found = distinct(case.questions)
    weights = case.questions.weights.astype(np.int64)
    which = found.which
    np.testing.assert_array_equal(found.size[which], weights.sum(axis=1))
    np.testing.assert_array_equal(found.overlaps[np.ix_(which, which)], weights @ weights.T)
    np.testing.assert_array_equal(found.answers(case.counts)[which], weights @ case.counts)


@given(case=cases())
def test_runs_cover_the_cells_of_their_question_and_no_others(case):
    found = distinct(case.questions)
    for place, weights in enumerate(case.questions.weights):
        question = found.which[place]
        covered = np.zeros(len(found.width), dtype=int)
        for run in range(found.runs.first[question], found.runs.first[question + 1]):
            covered[found.runs.start[run] : found.runs.stop[run]] += 1
        np.testing.assert_array_equal(covered[found.group], weights)


def test_cells_that_no_question_tells_apart_are_one_group():
    stream = Questions.of([[1, 1, 0, 0, 1], [0, 0, 1, 1, 0]], [0, 0], analysts=1)
    assert distinct(stream).group.tolist() == [0, 0, 1, 1, 0]
    assert distinct(stream).width.tolist() == [3, 2]


def test_a_stream_is_looked_through_once_and_forgotten_with_it():
    stream = Questions.of([[1, 0]], [0], analysts=1)
    before = len(world._KNOWN)
    assert distinct(stream) is distinct(stream)
    assert len(world._KNOWN) == before + 1
    del stream
    gc.collect()
    assert len(world._KNOWN) <= before


def test_a_question_about_no_cell_is_refused_by_its_place():
    stream = Questions.of([[1, 0], [0, 1], [0, 0]], [0, 0, 0], analysts=1)
    with pytest.raises(QueryError, match=r"Question 2 selects no cell") as refused:
        distinct(stream)
    assert refused.value.hint
