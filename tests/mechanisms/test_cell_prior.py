"""What planned seeds with rows of their own say about queries, against dense inverses."""

from __future__ import annotations

from fractions import Fraction
from functools import reduce

import numpy as np
import pytest
import scipy.sparse as sp

from sharewell.mechanisms import cell_prior
from sharewell.mechanisms.cell_prior import CellPrior, MeasuredPart, prior_of
from sharewell.mechanisms.kronecker import KroneckerPrior
from sharewell.mechanisms.marginal_seed import MarginalPart
from sharewell.mechanisms.strategy import Rows
from tests.mechanisms.measurements import line_of, random_query

SHAPE = (4, 3, 2)


def rows_of_their_own(rng) -> tuple[MarginalPart, np.ndarray]:
    """A part with rows of its own along every attribute, as p-Identity strategies have; written out."""
    along = [np.vstack([2 * np.eye(n, dtype=np.int64), rng.integers(1, 5, (2, n))]) for n in SHAPE]
    rows = tuple(Rows(n, sp.csr_array(each)) for n, each in zip(SHAPE, along, strict=True))
    return MarginalPart((0, 1, 2), 0, Fraction(1), False, rows), reduce(np.kron, along)


@pytest.mark.parametrize(("parts", "kind"), [(1, KroneckerPrior), (2, CellPrior)])
def test_estimates_and_variances_are_those_of_the_dense_inverse(parts, kind, monkeypatch):
    monkeypatch.setattr(cell_prior, "MOST_AT_ONCE", 7)
    rng, domain = np.random.default_rng(1), line_of(*SHAPE)
    measured, information, total = [], np.zeros((24, 24)), np.zeros(24)
    for at in range(parts):
        part, written = rows_of_their_own(rng)
        values = rng.normal(size=len(written))
        measured.append(MeasuredPart(part, 0.5 + at, (0.5 + at) * values))
        information += (0.5 + at) * written.T @ written
        total += (0.5 + at) * written.T @ values
    prior = prior_of(domain, measured)
    assert isinstance(prior, kind)
    covariance = np.linalg.inv(information)
    queries = [random_query(domain, rng).primitive for _ in range(20)]
    weights = np.array([query.to_vector() for query in queries])
    np.testing.assert_allclose(prior.means(queries), weights @ covariance @ total)
    np.testing.assert_allclose(prior.variances(queries), ((weights @ covariance) * weights).sum(axis=1))
    store = prior.rows()
    assert store.covariances(queries).shape == (20, 0)
    for query in queries[:3]:
        store.append(query)
    np.testing.assert_allclose(
        store.covariances(queries), weights @ covariance @ weights[:3].T, rtol=1e-6, atol=1e-12
    )
    assert prior.variances([]).shape == (0,)
