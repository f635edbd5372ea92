"""The bundled table: real people, already public, to try things out on and for the experiments."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from importlib import resources
from pathlib import Path

from sharewell.engine.data_vector import DataVector
from sharewell.engine.vectorize import vectorize
from sharewell.query.attribute import Boolean, Category
from sharewell.query.domain import Domain
from sharewell.query.ordered import Integer

AGE = Integer("age", 0, 85, bins={"age_group": [0, 18, 25, 35, 45, 55, 65, 75]})

PEOPLE = Domain(
    [
        AGE,
        Category("sex", ["female", "male"]),
        Category(
            "race",
            ["white", "black", "native american", "asian", "pacific islander", "other", "two or more"],
        ),
        Category(
            "schooling",
            [
                *("none", "preschool", "grades 1-8", "grades 9-12", "high school"),
                *("some college", "associate", "bachelor", "master", "doctorate or professional"),
            ],
        ),
        Category("marital", ["married", "widowed", "divorced", "separated", "never married"]),
        Boolean("moved"),
    ]
)

PROVENANCE = (
    "US Census Bureau, American Community Survey, public-use microdata, Massachusetts, 2015 to 2018; "
    "in the public domain. Taken from the PyPI package nannyml 0.13.1. Changed: codes replaced by "
    "labels, some of them joined; ages above 85 set to 85; columns left out; rows sorted."
)


@dataclass(frozen=True)
class Dataset:
    """A table with what is public about it."""

    name: str
    domain: Domain
    path: Path
    provenance: str
    #: How many people the table is said to have, in public.
    population: int

    def vector(self) -> DataVector:
        """The table's counts, computed once."""
        return self._vector

    @cached_property
    def _vector(self) -> DataVector:
        return vectorize(self.path, self.domain)


@cache
def massachusetts() -> Dataset:
    """The people of Massachusetts: age, sex, race, schooling, marital status, and who moved last year.

    >>> from sharewell import datasets
    >>> people = datasets.massachusetts()
    >>> people.domain.shape
    (86, 2, 7, 10, 5, 2)
    """
    path = Path(str(resources.files(__name__) / "massachusetts.parquet"))
    return Dataset("massachusetts", PEOPLE, path, PROVENANCE, population=277_677)


@cache
def movers_by_age() -> DataVector:
    """The people who lived elsewhere a year before, by year of age: a histogram of 86 cells.

    >>> from sharewell import datasets
    >>> datasets.movers_by_age()
    DataVector(age: 86 cells)
    """
    movers = vectorize(massachusetts().path, Domain([AGE, Category("moved", ["true"])]))
    # Public already, so that taking its counts out of one vector and into another gives nothing away.
    return DataVector(Domain([AGE]), movers.counts)
