"""A dataset that was never begun: its curators plan, and no row is read."""

import pytest

from sharewell.errors import NotBegun
from sharewell.service.registry import DatasetRegistry
from tests.service.http.servers import problem, running, write_dataset

PLAN = "/v1/plan"


@pytest.fixture(scope="module")
def unbegun(tmp_path_factory):
    """A configuration whose table does not even exist."""
    from sharewell.config import read_config

    path = write_dataset(tmp_path_factory.mktemp("unbegun"))
    config = read_config(path)
    config.witness.unlink()
    for file in ("people.ledger.sqlite", "people.csv"):
        path.with_name(file).unlink()
    return path


@pytest.fixture(scope="module")
def server(unbegun):
    with running(open_registry=lambda: DatasetRegistry.open([unbegun], plan=True)) as found:
        yield found


@pytest.fixture(scope="module")
def tokens(server):
    return server.registry.planned["people"].tokens


def test_without_a_plan_it_is_refused(unbegun):
    with pytest.raises(NotBegun, match="never begun"):
        DatasetRegistry.open([unbegun])


def test_curators_see_what_settings_would_mean(server, tokens):
    curator = server.client(tokens.issue("curator", "curator"))
    now = curator.get(PLAN).json()
    assert (now["seed_fraction"], now["query_budget"]) == ("1/2", "1/80")
    assert [each["analyst"] for each in now["analysts"]] == ["ann", "ben"]
    assert all(each["questions"] == 10 for each in now["analysts"])
    more = curator.post(PLAN, json={"seed_fraction": "1/2", "query_budget": "1/8"}).json()
    assert [each["questions"] for each in more["analysts"]] == [1, 1]
    assert 0 < now["useful"] <= 1
    assert more["typical_error"] != now["typical_error"]


@pytest.mark.parametrize("fraction", ["0", "1", "3/2", "many"])
def test_impossible_settings_are_refused(server, tokens, fraction):
    curator = server.client(tokens.issue("curator", "curator"))
    reply = curator.post(PLAN, json={"seed_fraction": fraction, "query_budget": "1/8"})
    assert reply.status_code == 400


def test_it_is_not_ready_and_says_why(server):
    found = problem(server.client().get("/readyz"), 503, "ledger.not-begun")
    assert found["message"] == "Not begun yet: people."
    assert "sharewell begin" in found["hint"]


def test_nothing_else_is_open(server, tokens):
    curator = server.client(tokens.issue("curator", "curator"))
    problem(curator.get("/v1/datasets/people"), 401, "access.unknown-token")
    problem(curator.get("/readyz"), 503, "ledger.not-begun")
    analyst = server.client(tokens.issue("ann", "analyst"))
    problem(analyst.get(PLAN), 401, "access.unknown-token")
    problem(server.client().get(PLAN), 401, "access.unknown-token")
    early = problem(analyst.get("/v1/datasets/people"), 401, "access.unknown-token")
    assert "never begun" in early["message"]
    assert server.client().get("/").status_code == 200


def test_a_session_of_a_curator_needs_the_csrf_header(server, tokens):
    browser = server.client()
    browser.headers["origin"] = server.url
    analyst = browser.post("/v1/session", json={"token": tokens.issue("ann", "analyst")})
    problem(analyst, 401, "access.unknown-token")
    found = browser.post("/v1/session", json={"token": tokens.issue("curator", "curator")}).json()
    assert (found["dataset"], found["role"], found["begun"]) == ("people", "curator", False)
    problem(browser.get(PLAN), 403, "access.denied")
    assert browser.get(PLAN, headers={"x-sharewell-csrf": found["csrf"]}).status_code == 200
    assert browser.delete("/v1/session", headers={"x-sharewell-csrf": found["csrf"]}).status_code == 204
    problem(browser.get("/v1/session"), 401, "access.unknown-token")
