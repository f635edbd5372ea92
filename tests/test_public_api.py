"""The public interface: `sharewell.__all__` is all of it, and every example in it is true."""

import doctest
import importlib
import inspect
import pkgutil

import pytest

import sharewell

PUBLIC = [
    "Ask",
    "Binned",
    "Block",
    "Boolean",
    "Budget",
    "Category",
    "Curator",
    "DataVector",
    "Date",
    "Domain",
    "Integer",
    "Join",
    "Leave",
    "LinearQuery",
    "SharewellError",
    "compile_sql",
    "connect",
    "connect_async",
    "datasets",
    "expected_errors",
    "open",
    "vectorize",
]

MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(sharewell.__path__, "sharewell.")
    if not module.name.endswith("__main__")
)


def test_the_public_names_are_these_and_no_others():
    assert sorted(sharewell.__all__) == PUBLIC
    assert set(PUBLIC) <= set(dir(sharewell))


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_can_be_had_and_says_what_it_is(name):
    thing = getattr(sharewell, name)
    assert inspect.getdoc(thing)
    assert getattr(sharewell, name) is thing


def test_another_name_is_refused_as_usual():
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = sharewell.nothing


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_in_the_docstrings_are_true(name):
    results = doctest.testmod(importlib.import_module(name))
    assert results.failed == 0
