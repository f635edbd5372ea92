"""Strategies refuse rows whose sensitivity could not be computed exactly."""

import numpy as np
import pytest
import scipy.sparse as sp

from sharewell.errors import QueryError
from sharewell.mechanisms.strategy import Rows


def test_rows_too_heavy_for_64_bits_or_not_whole_are_refused():
    heavy = Rows(2, sp.csr_array(np.full((4, 2), 2**31, dtype=np.int64)))
    with pytest.raises(QueryError, match="64 bits"):
        heavy.norms(2)
    with pytest.raises(QueryError, match="whole-number"):
        Rows(2, sp.csr_array(np.array([[0.5, 0.5]])))
