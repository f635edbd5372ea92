"""The data vector holds counts and shows none."""

import pickle
import pprint
from typing import Any

import numpy as np
import pytest
from rich.pretty import pretty_repr

from sharewell import Domain, Integer
from sharewell.engine.data_vector import MAX_ROWS, DataVector
from sharewell.errors import DomainTooLarge, SourceError

LINE = Domain([Integer("age", 0, 2)])
COUNTS = np.array([31_337, 271_828, 0])


def test_nothing_that_prints_a_vector_shows_a_count():
    vector = DataVector(LINE, COUNTS)
    shown = [
        repr(vector),
        str(vector),
        f"{vector}",
        pprint.pformat(vector),
        pretty_repr(vector),
        repr([vector]),
    ]
    for text in shown:
        assert "age: 3 cells" in text
        for digits in ("31", "337", "27", "828", str(COUNTS.sum())):
            assert digits not in text


def test_counts_is_the_one_way_in():
    vector: Any = DataVector(LINE, COUNTS)
    assert vector.counts.tolist() == COUNTS.tolist()
    assert not hasattr(vector, "__array__")
    assert np.asarray(vector).dtype == object
    for use in (iter, len, sum, lambda v: v[0]):
        with pytest.raises(TypeError):
            use(vector)


def test_counts_cannot_be_changed_from_outside():
    given = COUNTS.copy()
    vector: Any = DataVector(LINE, given)
    given[0] = 5
    assert vector.counts[0] == 31_337
    for same in (vector, pickle.loads(pickle.dumps(vector))):
        assert same.counts.tolist() == COUNTS.tolist()
        with pytest.raises(ValueError, match="read-only"):
            same.counts[0] = 5
    with pytest.raises(AttributeError):
        vector.counts = given


def test_a_read_only_view_of_what_others_can_write_is_copied():
    base = COUNTS.copy()
    view = base[:]
    view.flags.writeable = False
    vector = DataVector(LINE, view)
    base[0] = 5
    assert vector.counts[0] == 31_337


@pytest.mark.parametrize(
    "counts",
    [
        [1, 2],
        [1, 2, 3, 4],
        [-1, 2, 3],
        [0.5, 1, 2],
        [True, False, True],
        [MAX_ROWS, 1, 0],
        [2**62, 2**62, 2**62],
        np.array([2**63, 2**63, 0], dtype=np.uint64),
    ],
)
def test_counts_that_cannot_be_are_refused(counts):
    with pytest.raises(SourceError) as refusal:
        DataVector(LINE, counts)
    told = str(refusal.value)
    assert not any(str(count) in told for count in np.asarray(counts).tolist() if abs(count) > 9)


def test_as_many_rows_as_allowed_are_allowed():
    assert DataVector(LINE, np.array([MAX_ROWS - 1, 1, 0], dtype=np.uint32)).counts.dtype == np.int64


def test_a_domain_too_large_is_refused():
    with pytest.raises(DomainTooLarge):
        DataVector(Domain([Integer("a", 0, 99_999), Integer("b", 0, 99_999)]), np.zeros(1, dtype=int))
