"""One server for all attacks that must change nothing."""

from collections.abc import Iterator

import pytest

from tests.service.http.servers import Running, running, write_dataset


@pytest.fixture(scope="package")
def server(tmp_path_factory) -> Iterator[Running]:
    with running(write_dataset(tmp_path_factory.mktemp("attacked"), price="1/4000")) as found:
        yield found


@pytest.fixture(scope="package")
def ann(server):
    return server.analyst("ann")


@pytest.fixture(scope="package")
def token(ann) -> str:
    return ann.client.headers["authorization"]
