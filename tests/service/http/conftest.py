"""Servers that most tests share: nothing that a test does to them changes what another sees."""

from collections.abc import Iterator

import pytest

from tests.service.http.servers import Running, running, write_dataset


@pytest.fixture(scope="module")
def server(tmp_path_factory) -> Iterator[Running]:
    """One dataset, answered in order of arrival."""
    with running(write_dataset(tmp_path_factory.mktemp("served"), price="1/4000")) as found:
        yield found


@pytest.fixture(scope="module")
def turns(tmp_path_factory) -> Iterator[Running]:
    """One dataset in strict rotation: ann's second question waits for ben's first."""
    with running(write_dataset(tmp_path_factory.mktemp("turns"), scheduler="round-robin")) as found:
        yield found


@pytest.fixture(scope="module")
def ann(server):
    return server.analyst("ann")


@pytest.fixture(scope="module")
def curator(server):
    return server.curator()
