"""The bundled dataset: public census microdata for examples and experiments."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from importlib import resources
from pathlib import Path

from sharewell.config import read_config
from sharewell.engine.data_vector import DataVector
from sharewell.engine.vectorize import vectorize
from sharewell.query.attribute import Category
from sharewell.query.domain import Domain

PROVENANCE = (
    "US Census Bureau, American Community Survey, public-use microdata, Massachusetts, 2015 to 2018; "
    "in the public domain. Taken from the PyPI package nannyml 0.13.1. Changes: codes replaced by "
    "labels, some of them merged; ages above 85 set to 85; columns removed; rows sorted."
)


@dataclass(frozen=True)
class BundledDataset:
    """A table and its public description."""

    name: str
    path: Path
    #: A `sharewell.toml` for it, which describes the columns.
    config_path: Path
    provenance: str
    #: The public number of rows.
    population: int

    @cached_property
    def domain(self) -> Domain:
        """The columns and their values."""
        return read_config(self.config_path).domain

    def vector(self) -> DataVector:
        """Return the table's counts, computed once."""
        return self._vector

    @cached_property
    def _vector(self) -> DataVector:
        return vectorize(self.path, self.domain)


@cache
def massachusetts() -> BundledDataset:
    """Return the people of Massachusetts: age, sex, race, schooling, marital status, moved last year.

    >>> from sharewell import datasets
    >>> people = datasets.massachusetts()
    >>> people.domain.shape
    (86, 2, 7, 10, 5, 2)
    """
    folder = Path(str(resources.files(__name__)))
    return BundledDataset(
        "massachusetts",
        folder / "massachusetts.parquet",
        folder / "massachusetts.toml",
        PROVENANCE,
        population=277_677,
    )


@cache
def movers_by_age() -> DataVector:
    """Return the people who lived elsewhere a year before, by age: a histogram of 86 cells.

    >>> from sharewell import datasets
    >>> datasets.movers_by_age()
    DataVector(age: 86 cells)
    """
    people = massachusetts()
    age = people.domain["age"]
    movers = vectorize(people.path, Domain([age, Category("moved", ["true"])]))
    # The data are public, so moving counts from one vector to another reveals nothing.
    return DataVector(Domain([age]), movers.counts)
