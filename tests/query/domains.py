"""Hypothesis strategies for small domains and queries over them."""

import numpy as np
from hypothesis import strategies as st

from sharewell import Binned, Boolean, Category, Date, Domain, Integer, LinearQuery
from sharewell.query.attribute import Attribute


@st.composite
def attributes(draw, name: str) -> Attribute:
    options = {"nullable": draw(st.booleans()), "other": draw(st.sampled_from([None, "other"]))}
    kind = draw(st.sampled_from(["integer", "category", "binned", "boolean", "date"]))
    size = draw(st.integers(1, 4))
    if kind == "integer":
        low = draw(st.integers(-3, 3))
        return Integer(name, low, low + size - 1, **options)
    if kind == "category":
        return Category(name, [f"v{i}" for i in range(size)], **options)
    if kind == "binned":
        return Binned(name, list(np.arange(size + 1) * 10.5), **options)
    if kind == "boolean":
        return Boolean(name, **options)
    return Date(name, "2020-01-30", f"2020-02-{size:02}", **options)


@st.composite
def domains(draw, most: int = 3) -> Domain:
    count = draw(st.integers(1, most))
    return Domain([draw(attributes(f"a{i}")) for i in range(count)])


@st.composite
def vectors(draw, domain: Domain, low: int = -3, high: int = 3) -> np.ndarray:
    """Weights that are often zero, often equal and often products, as those of real queries are."""
    if draw(st.booleans()):
        return np.array(
            draw(st.lists(st.integers(low, high), min_size=domain.size, max_size=domain.size))
        )
    vector = np.ones(1, dtype=np.int64)
    for size in domain.shape:
        factor = draw(st.lists(st.integers(max(low, -1), 1), min_size=size, max_size=size))
        vector = np.multiply.outer(vector, np.array(factor)).ravel()
    return vector


@st.composite
def domain_and_vectors(draw, count: int, low: int = -3, high: int = 3):
    domain = draw(domains())
    return domain, [draw(vectors(domain, low, high)) for _ in range(count)]


def queries(domain: Domain, dense: list[np.ndarray]) -> list[LinearQuery]:
    return [LinearQuery.from_vector(domain, vector) for vector in dense]
