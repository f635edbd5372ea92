"""The race workloads, against the sizes in the paper."""

import numpy as np
import pytest

from sharewell import Domain, Integer
from sharewell.errors import QueryError
from sharewell_lab import workloads


def dense(block) -> np.ndarray:
    return np.array([query.to_vector() for query in block])


def test_the_race_workloads_have_the_sizes_of_the_paper():
    races = Domain([Integer("race", 0, 63)])
    race1, race2, race3 = (f(races) for f in (workloads.race1, workloads.race2, workloads.race3))
    assert (len(race1), len(race2), len(race3)) == (7, 70, 1)
    assert dense(race1).sum(axis=1).tolist() == [1] * 6 + [58]
    assert dense(race1).sum(axis=0).tolist() == [1] * 64
    assert dense(race2).sum(axis=1).tolist() == [1] * 63 + [6, 15, 20, 15, 6, 1] + [57]
    assert race3[0] == race1[0]
    assert workloads.race3(races, race=5)[0] == race1[5]


def test_impossible_race_workloads_are_refused():
    with pytest.raises(QueryError, match="64 cells"):
        workloads.race1(Domain([Integer("age", 0, 12)]))
    with pytest.raises(QueryError, match="0 to 5"):
        workloads.race3(Domain([Integer("race", 0, 63)]), race=6)
