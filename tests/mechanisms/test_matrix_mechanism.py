"""The matrix mechanism's error formula, against dense matrices."""

import numpy as np
import pytest

from sharewell import Domain, Integer
from sharewell.mechanisms import seed
from sharewell.mechanisms.reconstruction import matrix_mechanism_variances
from sharewell.query import workload

LINE = Domain([Integer("age", 0, 15)])


@pytest.mark.parametrize("make", [seed.identity, seed.h2, seed.prefix])
def test_the_matrix_mechanism_formula_is_that_of_dense_matrices(make):
    strategy, prefixes = make(LINE), workload.prefixes(LINE)
    matrix = np.array([strategy.answers(cell) for cell in np.eye(16, dtype=np.int64)]).T
    asked = np.array([query.to_vector() for query in prefixes])
    expected = 3.0 * np.diag(asked @ np.linalg.inv(matrix.T @ matrix) @ asked.T)
    assert matrix_mechanism_variances(prefixes, strategy, 3.0) == pytest.approx(expected)
