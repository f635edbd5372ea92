"""Texts that nobody can guess: never the same twice, in no thread and in no copy of a process."""

import multiprocessing
from concurrent.futures import ThreadPoolExecutor

import pytest

from sharewell.service.unguessable import AT_ONCE, LENGTH, unguessable


def test_no_two_are_alike_and_none_is_short():
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: unguessable(), range(5 * AT_ONCE)))
    assert len(set(found)) == len(found)
    assert all(len(text) == LENGTH and int(text, 16) >= 0 for text in found)


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="there is no fork")
def test_a_copy_of_the_process_has_others():
    unguessable()
    context = multiprocessing.get_context("fork")
    with context.Pool(1) as pool:
        theirs = set(pool.apply(many))
    assert not theirs & set(many())


def many() -> list[str]:
    return [unguessable() for _ in range(2 * AT_ONCE)]
