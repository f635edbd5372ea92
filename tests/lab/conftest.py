"""What the tests of figures, claims and reports share."""

import pytest

from sharewell.datasets import movers_by_age
from sharewell_lab.limit import LimitNumbers, measure_limit


@pytest.fixture(scope="session")
def limit() -> LimitNumbers:
    """The query limit on the bundled table, measured on few queries."""
    data = movers_by_age()
    return measure_limit(data, float(data.counts.sum()), runs=2, hard=40)
