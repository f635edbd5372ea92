"""A dataset for every test, and both ways to it."""

import pytest

from tests.cli.commands import InProcess, OverServer, write_dataset
from tests.service.http.servers import running


@pytest.fixture(autouse=True)
def no_settings_of_the_machine(monkeypatch):
    monkeypatch.delenv("SHAREWELL_URL", raising=False)
    monkeypatch.delenv("SHAREWELL_TOKEN", raising=False)


@pytest.fixture
def dataset(tmp_path):
    return write_dataset(tmp_path)


@pytest.fixture
def server(dataset):
    with running(dataset) as found:
        yield OverServer(found)


@pytest.fixture(params=["over a server", "in this process"])
def way(request, dataset):
    if request.param == "in this process":
        yield InProcess(dataset)
    else:
        with running(dataset) as found:
            yield OverServer(found)


@pytest.fixture
def in_turns(tmp_path):
    """A server whose analysts take turns."""
    path = write_dataset(tmp_path, scheduler="round-robin")
    with running(path) as found:
        yield OverServer(found)
