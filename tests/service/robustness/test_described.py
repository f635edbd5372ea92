"""The description of the service, taken at its word: Schemathesis asks for all that it says there is."""

import copy
from collections.abc import Iterator

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.failures import FailureGroup
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.service.http.operations import describe
from tests.service.http.servers import COUNT, Running, running, write_dataset
from tests.service.robustness.guarding import is_problem

#: Each is run with few inputs, but there are many operations, two modes and three holders.
EXAMPLES = 6
ANYWHERE = {400, 404, 405}

SQL = [
    COUNT,
    "SELECT sex, AVG(age) AS mean FROM people GROUP BY sex HAVING COUNT(*) > 1 ORDER BY mean LIMIT 1",
    "SELECT agee FROM people",
]
#: Values that lead somewhere, beside those that anybody might think of.
LIKELY: dict[str, list] = {
    "dataset": ["people"],
    "name": ["ann", "ben", "curator", "nobody"],
    "sql": SQL,
    "share": ["1/100000", "0", "2"],
}


def description() -> dict:
    """The description, with waits that a test has the time for."""
    found = copy.deepcopy(describe())
    ticket = found["paths"]["/v1/datasets/{dataset}/tickets/{number}"]["get"]
    wait = next(each for each in ticket["parameters"] if each["name"] == "wait")
    wait["schema"]["maximum"] = 0.01
    return found


def lead_somewhere(case, likely: dict[str, list], draw) -> None:
    """Put values that are there in the place of most of those that were made up."""
    for part in (case.path_parameters, case.body):
        for name in sorted(likely.keys() & part if isinstance(part, dict) else ()):
            if draw(st.integers(0, 4)) < 4:
                part[name] = draw(st.sampled_from(likely[name]))


SCHEMA = schemathesis.openapi.from_dict(description())
OPERATIONS = [each.ok() for each in SCHEMA.get_all_operations()]  # type: ignore[union-attr]
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    negative_data_rejection,
]
#: What a few examples need not hit: a share that is left, somebody who has not left, a certificate.
SELDOM = {
    "POST /v1/datasets/{dataset}/analysts",
    "DELETE /v1/datasets/{dataset}/analysts/{name}",
    "POST /v1/datasets/{dataset}/analysts/{name}/token",
    "GET /v1/datasets/{dataset}/certificate",
    "POST /v1/datasets/{dataset}/close-round",
}
SESSION = requests.Session()
SESSION.trust_env = False


@pytest.fixture(scope="module")
def served(tmp_path_factory) -> Iterator[Running]:
    """A server of one's own: what curators do to it, they do to nobody else's test."""
    path = write_dataset(
        tmp_path_factory.mktemp("described"), price="1/4000", service="most_waiting = 5"
    )
    with running(path) as found:
        yield found


@pytest.fixture(scope="module")
def holders(served) -> dict[str, dict[str, str]]:
    """The headers of somebody of each kind.

    Whoever asks is called cleo: the operations of curators let ann go and give ben another token.
    """
    curator = served.token("curator", "curator")
    joined = served.client(curator).post(
        "/v1/datasets/people/analysts", json={"name": "cleo", "share": "1/10"}
    )
    tokens = {"curator": curator, "analyst": joined.json()["token"]}
    return {"nobody": {}} | {
        role: {"Authorization": f"Bearer {token}"} for role, token in tokens.items()
    }


@pytest.fixture(scope="module")
def likely(served, holders) -> dict[str, list]:
    """Values that are there: besides those that are always, the number of a ticket."""
    asked = served.client(holders["analyst"]["Authorization"].removeprefix("Bearer ")).post(
        "/v1/datasets/people/ask", json={"sql": COUNT, "key": "likely"}
    )
    return LIKELY | {"number": [asked.json()["number"], 0]}


def modes(operation) -> list[GenerationMode]:
    """What can be sent to an operation: as described, and not so where there is a way."""
    wrong = operation.body or operation.path_parameters or operation.query
    return list(GenerationMode) if wrong else [GenerationMode.POSITIVE]


@pytest.mark.slow
@pytest.mark.parametrize("role", ["nobody", "analyst", "curator"])
@pytest.mark.parametrize(
    ("operation", "mode"),
    [(operation, mode) for operation in OPERATIONS for mode in modes(operation)],
    ids=lambda each: each.value if isinstance(each, GenerationMode) else each.label,
)
def test_every_reply_is_as_described(served, holders, likely, operation, role, mode):
    described = {int(status) for status in operation.definition.raw["responses"] if status != "default"}
    seen = set()
    # A curator of an earlier test may have paused it.
    served.registry.datasets["people"].resume()

    @settings(
        max_examples=EXAMPLES,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        # Schemathesis filters a good deal where a schema leaves little room to be wrong.
        suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow],
    )
    @given(st.data())
    def check(data):
        case = data.draw(operation.as_strategy(generation_mode=mode))
        if mode is GenerationMode.POSITIVE:
            lead_somewhere(case, likely, data.draw)
        reply = case.call(base_url=served.url, headers=dict(holders[role]), session=SESSION)
        # A stream is described as a text, and its events are looked at where tickets are tested.
        is_stream = (
            reply.headers["content-type"][0].startswith("text/event-stream") if reply.content else False
        )
        case.validate_response(
            reply,
            checks=[each for each in CHECKS if each is not response_schema_conformance or not is_stream],
        )
        assert reply.status_code in described | ANYWHERE
        if reply.status_code >= 400:
            assert is_problem(reply.json())
        seen.add(reply.status_code)

    check()
    allowed = {"analysts": "analyst", "curators": "curator"}.get(operation.tags[0], role)
    if role != allowed or (role == "nobody" and "public" not in operation.tags):
        assert seen <= {401, 403, 404, 405, 422, 429}
    elif mode is GenerationMode.POSITIVE and operation.label not in SELDOM:
        # Else all that was seen would be one refusal after the other.
        assert any(status < 300 for status in seen)


def test_what_is_not_as_described_is_found(served, holders):
    operation = next(each for each in OPERATIONS if each.label == "GET /v1/datasets")
    case = operation.Case()
    reply = case.call(base_url=served.url, headers=holders["analyst"])
    case.validate_response(reply, checks=CHECKS)
    for broken in (_with(reply, b"{}"), _with(reply, b"", 500), _with(reply, b"x", kind="text/plain")):
        with pytest.raises(FailureGroup):
            case.validate_response(broken, checks=CHECKS)


def _with(reply, body: bytes, status: int = 200, kind: str = "application/json"):
    headers = {name: list(values) for name, values in reply.headers.items()}
    return schemathesis.Response(
        status_code=status,
        headers=headers | {"content-type": [kind]},
        content=body,
        request=reply.request,
        elapsed=0.0,
        verify=False,
    )
