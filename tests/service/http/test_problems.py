"""One shape for every refusal: bodies, paths, methods, and what nobody expected."""

import json
import socket

import pytest

from sharewell import errors
from sharewell.errors import SharewellError
from sharewell.service.http.errors import status_of
from tests.service.http.servers import COUNT, problem
from tests.service.waiting import comes_true

JSON = {"content-type": "application/json"}


def send(holder, content, headers=JSON, path="/ask"):
    return holder.client.post(f"{holder.path}{path}", content=content, headers=headers)


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b"[]", "not a JSON object"),
        (b"null", "not a JSON object"),
        (b'"text"', "not a JSON object"),
        (b"\xff\xfe", "not JSON"),
        (b'{"sql": "\xff"}', "not JSON"),
        ('{"sql": "x"}'.encode("utf-16"), "not JSON"),
        (b'\xef\xbb\xbf{"sql": "x"}', "not JSON"),
        (b'{"sql": "\\ud800"}', "not JSON"),
        (b"[" * 200_000, "not JSON"),
        (b'{"sql": ' * 100_000, "not JSON"),
        (b'{"sql": "x", "pay": ' + b"[" * 5000 + b"]" * 5000 + b"}", ""),
        (b"{}", "Missing field 'sql'"),
        (b'{"sql": "x", "bid": 1}', "Unknown field 'bid'"),
        (b'{"sql": 1}', "Invalid field 'sql'"),
        (b'{"sql": ""}', "Invalid field 'sql'"),
        (b'{"sql": "x", "pay": "yes"}', "Invalid field 'pay'"),
        (b'{"sql": "x", "pay": 1}', "Invalid field 'pay'"),
        (b'{"sql": "x", "key": ""}', "Invalid field 'key'"),
        (b'{"sql": "x", "key": NaN}', "Invalid field 'key'"),
        (json.dumps({"sql": "x" * 100_001}).encode(), "Invalid field 'sql'"),
        (json.dumps({"sql": "x", "key": "k" * 201}).encode(), "Invalid field 'key'"),
    ],
)
@pytest.mark.parametrize("path", ["/ask", "/quote"])
def test_a_body_that_cannot_be_read_is_422(ann, body, says, path):
    assert says in problem(send(ann, body, path=path), 422, "request.invalid")["message"]


def test_what_is_wrong_is_not_quoted_back(ann):
    body = json.dumps({"sql": {"secret": "words"}}).encode()
    assert "words" not in send(ann, body).text


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"content-type": "text/plain"},
        {"content-type": "application/x-www-form-urlencoded"},
        {"content-type": "application/json; charset=latin-1"},
        {"content-type": "application/jsonp"},
        {**JSON, "content-encoding": "gzip"},
    ],
)
def test_another_kind_of_body_is_415(ann, headers):
    problem(send(ann, json.dumps({"sql": COUNT}).encode(), headers), 415, "request.invalid")


@pytest.mark.parametrize(
    "kind", ["application/json", "Application/JSON; charset=utf-8", "application/x+json"]
)
def test_json_by_any_of_its_names_is_read(ann, kind):
    assert send(ann, json.dumps({"sql": COUNT}).encode(), {"content-type": kind}).status_code == 200


def test_a_body_that_says_that_it_is_too_large_is_413_before_it_is_sent(server):
    with socket.create_connection(("127.0.0.1", server.port)) as connection:
        connection.sendall(
            b"POST /v1/datasets/people/ask HTTP/1.1\r\nhost: localhost\r\nexpect: 100-continue\r\n"
            b"content-length: 1000001\r\n\r\n"
        )
        assert connection.recv(65536).startswith(b"HTTP/1.1 413 ")


def test_a_body_that_was_sent_all_the_same_spoils_nothing(ann):
    for _ in range(2):
        problem(send(ann, b"x" * 1_000_001), 413, "request.too-large")
    assert send(ann, json.dumps({"sql": COUNT}).encode()).status_code == 200


@pytest.mark.parametrize("length", [1_000_001, 5_000_000])
def test_a_body_in_chunks_is_413_when_it_is_too_large(ann, length):
    parts = (b" " * 50_000 for _ in range(length // 50_000 + 1))
    problem(send(ann, parts), 413, "request.too-large")


def test_a_body_just_small_enough_is_read(ann):
    body = json.dumps({"sql": COUNT}).encode()
    assert send(ann, body + b" " * (1_000_000 - len(body))).status_code == 200
    assert send(ann, iter([body, b" " * (1_000_000 - len(body))])).status_code == 200


@pytest.mark.parametrize(
    "path",
    [
        "/v1",
        "/v1/",
        "/v1/datasets/",
        "/v2/datasets",
        "/docs/",
        "/docs/../x",
        "/%2e%2e",
        "/v1/datasets/people/ask/",
    ],
)
def test_a_path_that_leads_nowhere_is_404(ann, path):
    problem(ann.client.get(path), 404, "request.not-found")


@pytest.mark.parametrize(
    ("method", "path", "allow"),
    [
        ("GET", "/v1/datasets/people/ask", "POST"),
        ("PUT", "/v1/datasets/people/analysts", "GET, POST"),
        ("POST", "/healthz", "GET"),
        ("PATCH", "/v1/datasets/people/analysts/ann", "DELETE"),
        ("TRACE", "/v1/datasets", "GET"),
    ],
)
def test_a_wrong_method_is_405_and_says_which_are_right(ann, method, path, allow):
    reply = ann.client.request(method, path)
    problem(reply, 405, "request.invalid")
    assert reply.headers["allow"] == allow


def test_a_head_has_no_body(ann):
    reply = ann.client.head("/healthz")
    assert (reply.status_code, reply.content) == (405, b"")


def test_what_nobody_expected_says_nothing_and_is_logged_without_values(server, ann, monkeypatch):
    def fails(analyst, sql, cancelled):
        raise ZeroDivisionError(f"the secret is 42, and {analyst} asked {sql}")

    monkeypatch.setattr(server.registry.datasets["people"], "quote", fails)
    reply = ann.post("/quote", {"sql": "SELECT secret"})
    found = problem(reply, 500, "error")
    assert "42" not in reply.text.replace(found["request_id"], "")
    assert "ZeroDivision" not in reply.text
    line = next(line for line in server.log_lines if line["event"] == "error")
    assert line["request_id"] == found["request_id"]
    assert line["error"] == "builtins.ZeroDivisionError"
    assert line["at"][-1].startswith(f"{__name__}.")
    assert "secret is" not in server.log


@pytest.mark.parametrize("sane", ["abc", "A.b-c_1", "x" * 64])
def test_a_sane_request_id_is_kept(server, ann, sane):
    reply = ann.client.get("/nowhere", headers={"x-request-id": sane})
    assert (reply.headers["x-request-id"], reply.json()["request_id"]) == (sane, sane)
    comes_true(lambda: any(line.get("request_id") == sane for line in server.log_lines))


@pytest.mark.parametrize("odd", ["", "x" * 65, "a b", 'a"b', "é", "a\tb", "<script>"])
def test_another_is_replaced(ann, odd):
    reply = ann.client.get("/healthz", headers={"x-request-id": odd.encode("latin-1")})
    assert len(reply.headers["x-request-id"]) == 16
    assert reply.headers["x-request-id"] != odd


CODES = {
    kind.code: kind
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, SharewellError) and kind is not SharewellError
}
STATUSES = {
    "sql.syntax": 400,
    "query.too-complex": 400,
    "request.invalid": 400,
    "privacy.invalid": 400,
    "sharing.invalid": 400,
    "access.unknown-token": 401,
    "privacy.over-budget": 402,
    "access.denied": 403,
    "privacy.unknown-payer": 403,
    "request.not-found": 404,
    "request.key-reused": 409,
    "request.too-large": 413,
    "request.too-many": 429,
    "service.closed": 503,
    "service.paused": 503,
    "ledger.in-use": 503,
    "ledger.unavailable": 503,
    "error": 500,
    "no.such-code": 500,
}


@pytest.mark.parametrize(("code", "status"), STATUSES.items())
def test_a_code_has_its_status(code, status):
    assert status_of(code) == status


def test_every_code_but_those_of_a_domain_has_a_status_of_its_family():
    assert {code for code in CODES if status_of(code) == 500} == {"domain.invalid", "domain.too-large"}
