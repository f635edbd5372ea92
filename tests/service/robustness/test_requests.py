"""Hostile heads: paths, methods, versions, headers, and lengths that contradict each other."""

import json

import pytest

from tests.service.http.servers import COUNT
from tests.service.robustness.guarding import nothing_happens
from tests.service.robustness.sockets import get, post, told

ASK = "/v1/datasets/people/ask"
GOOD = json.dumps({"sql": COUNT}).encode()


@pytest.mark.parametrize(
    "path",
    [
        *(
            "//",
            "/..",
            "/../../etc/passwd",
            "/%2e%2e/%2e%2e/etc/passwd",
            "/..%2f..%2fetc%2fpasswd",
            "/%00",
        ),
        *(
            "/docs/../healthz",
            "/docs/%2e%2e/healthz",
            "/docs/..%2f..%2fsecret",
            "/docs/%00",
            "/docs//etc/passwd",
        ),
        *(
            "/docs/..",
            "/docs/.",
            "/docs/swagger-ui.css%00.png",
            "/docs/__init__.py",
            "/docs/%2fetc%2fpasswd",
        ),
        *(
            "//healthz",
            "/healthz/",
            "/healthz%00",
            "/HEALTHZ",
            "/healthz/.",
            "/./healthz",
            "/healthz;x=1",
        ),
        *(
            "/v1//datasets",
            "/v1/datasets//people",
            "/v1/./datasets",
            "/v1/datasets/people/../people/ask",
        ),
        *(
            "/v1/datasets/people%2fask",
            "/v1/datasets/%70eople/tickets/%30",
            "/%76%31/nothing",
            "/\\..\\x",
        ),
        *(
            "/v1/datasets/people/tickets/-1",
            "/v1/datasets/people/tickets/0x1",
            "/v1/datasets/people/tickets/1e3",
        ),
        *(
            "/v1/datasets/people/tickets/" + "9" * 5000,
            "/v1/datasets/people/tickets/٣",
            "/%ff%fe",
            "/%",
            "/%zz",
        ),
        *(
            "/v1/datasets/people.toml",
            "/v1/datasets/people.ledger.sqlite",
            "/people.access.json",
            "/.env",
        ),
        *(
            "/v1/datasets/" + "x" * 50_000,
            "/" + "a/" * 20_000,
            "/?" + "a=b&" * 10_000,
            "/metrics/../v1/datasets",
        ),
    ],
    ids=lambda path: f"{ascii(path)[:50]}-{len(path)}",
)
def test_a_path_that_leads_nowhere_is_a_problem(server, token, path):
    raw = path.encode() if path.isascii() else path.encode().replace(b" ", b"%20")
    head = b"GET %s HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\nauthorization: %s\r\n\r\n" % (
        raw,
        token.encode(),
    )
    with nothing_happens(server):
        [reply] = told(server, head)
        assert reply.status in (400, 404, 405, 422), reply
        assert len(reply.body) < 1000
        if reply.is_not_http:
            return
        assert reply.problem["code"] in ("request.invalid", "request.not-found")


@pytest.mark.parametrize(
    "query",
    [
        "?x=1",
        "?limit=1&limit=2",
        "?limit=%00",
        "?limit=" + "1" * 5000,
        "?after=%ff",
        "?&&&=",
        "?limit=1;after=2",
        "?limit[]=1",
        "?LIMIT=1",
    ],
)
def test_a_query_that_means_nothing_is_422(server, ann, query):
    with nothing_happens(server):
        reply = ann.get(f"/questions{query}")
        assert (reply.status_code, reply.json()["code"]) == (422, "request.invalid")


@pytest.mark.parametrize(
    "method", ["PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND", "GET", "HEAD"]
)
def test_a_method_that_is_not_for_asking_asks_nothing(server, ann, method):
    with nothing_happens(server):
        reply = ann.client.request(
            method,
            ASK,
            content=GOOD,
            headers={"content-type": "application/json", "x-http-method-override": "POST"},
        )
        assert (reply.status_code, reply.headers["allow"]) == (405, "POST")


@pytest.mark.parametrize(
    "method", ["FOO", "get", "GET\x00", "PO ST", "x" * 1000, "", "GET\t", "ÄSK", "QUERY /", "PRI"]
)
def test_a_method_that_is_none_is_400(server, method):
    with nothing_happens(server):
        [reply] = told(server, f"{method} {ASK} HTTP/1.1\r\nhost: localhost\r\n\r\n".encode("latin-1"))
        assert reply.status == 400


@pytest.mark.parametrize("version", ["0.9", "2.0", "1.2", "3.0", "9.9", "1", "1.1.1", "x", "11", "-1.1"])
def test_another_version_is_400_or_answered_as_ours(server, version):
    with nothing_happens(server):
        found = told(server, get("/healthz", version=version))
        assert [reply.status for reply in found] in ([400], [200])


def test_http_1_0_is_answered_and_ends_the_connection(server, token):
    with nothing_happens(server):
        [reply] = told(server, b"GET /healthz HTTP/1.0\r\n\r\n" + get("/healthz", last=False))
        assert (reply.status, reply.headers["connection"]) == (200, "close")
        [reply] = told(server, post(ASK, token, b'{"sql": "x"}').replace(b"HTTP/1.1", b"HTTP/1.0"))
        assert reply.status == 400


def test_requests_in_one_piece_are_answered_in_order_and_not_mixed_up(server, token):
    asked = [
        post(ASK, token, json.dumps({"sql": sql}).encode(), last=False)
        for sql in ("one", "two", "three")
    ]
    first, second = get("/healthz", last=False), get("/nowhere", last=False)
    raw = b"".join([first, asked[0], second, asked[1], asked[2], get("/readyz")])
    with nothing_happens(server):
        found = told(server, raw)
    assert [reply.status for reply in found] == [200, 400, 404, 400, 400, 200]
    assert [found[i].problem["where"]["text"] for i in (1, 3, 4)] == ["one", "two", "three"]


def test_a_thousand_requests_in_one_piece_are_all_answered(server):
    with nothing_happens(server):
        found = told(server, get("/healthz", last=False) * 999 + get("/healthz"))
    assert [reply.status for reply in found] == [200] * 1000


HIDDEN = get("/v1/datasets/people/hidden")


@pytest.mark.parametrize(
    ("lengths", "body"),
    [
        (["content-length: 4", "transfer-encoding: chunked"], b"0\r\n\r\n"),
        (["transfer-encoding: chunked", "content-length: 4"], b"0\r\n\r\n"),
        (["transfer-encoding: chunked", "transfer-encoding: identity"], b"0\r\n\r\n"),
        (["transfer-encoding: identity", "content-length: 2"], b"{}"),
        (["transfer-encoding: chunked, identity"], b"0\r\n\r\n"),
        (["transfer-encoding: xchunked"], b"0\r\n\r\n"),
        (["transfer-encoding : chunked"], b"0\r\n\r\n"),
        (["transfer-encoding:\x0bchunked"], b"0\r\n\r\n"),
        (["x: y\ntransfer-encoding: chunked"], b"0\r\n\r\n"),
        (["content-length: 2", "content-length: 2"], b"{}"),
        (["content-length: 2", "content-length: 200"], b"{}"),
        (["content-length: 2, 2"], b"{}"),
        (["content-length: +2"], b"{}"),
        (["content-length: 2\x00"], b"{}"),
        ([" content-length: 2"], b"{}"),
        (["content-length\t: 2"], b"{}"),
        (["transfer-encoding: chunked"], b"2\n{}\n0\n\n"),
        (["transfer-encoding: chunked"], b"0x2\r\n{}\r\n0\r\n\r\n"),
        (["transfer-encoding: chunked"], b"-2\r\n{}\r\n0\r\n\r\n"),
        (["transfer-encoding: chunked"], b"2 \r\n{}\r\n0\r\n\r\n"),
        (["transfer-encoding: chunked"], b"ffffffffffffffffffff\r\n{}\r\n0\r\n\r\n"),
        (["transfer-encoding: chunked"], b"2\r\n{}GET"),
    ],
    ids=lambda each: ascii(each)[:60],
)
def test_lengths_that_contradict_each_other_hide_no_second_request(server, token, lengths, body):
    """Where a proxy in front and we might not agree where a request ends, the connection ends."""
    first = post(ASK, token, body, *lengths, length=None, last=False)
    with nothing_happens(server):
        found = told(server, first + HIDDEN)
    assert found
    assert [reply.status for reply in found[:-1]] in ([], [422])
    assert found[-1].status == 400, found


@pytest.mark.parametrize(
    "head",
    [
        [f"x-{i}: {i}" for i in range(3000)],
        ["x: " + "y" * 60_000],
        ["cookie: " + "a=b; " * 10_000],
        ["x: é", "y: \xff", "z:"],
        ["accept: " + "*/*, " * 5000],
        ["range: bytes=" + ",".join(f"{i}-" for i in range(5000))],
        ["expect: nothing"],
        ["upgrade: h2c", "connection: upgrade, http2-settings", "http2-settings: x"],
        ["if-none-match: *", "if-modified-since: never"],
        ["x-request-id: " + "x" * 5000],
        ["x-request-id: a\tb"],
        ["forwarded: for=127.0.0.1", "x-real-ip: 127.0.0.1", "x-forwarded-host: example.org"],
        ["x-original-url: /v1/datasets/people/ledger", "x-rewrite-url: /metrics"],
    ],
    ids=lambda head: f"{head[0][:25]}-{len(head)}",
)
def test_headers_that_mean_nothing_to_us_change_nothing(server, head):
    with nothing_happens(server):
        [reply] = told(server, get("/healthz", *head))
        assert reply.status == 200
        assert reply.body == b'{"alive":true}'
        assert len(reply.headers["x-request-id"]) <= 64


@pytest.mark.parametrize(
    "head",
    [
        *(
            ["no colon"],
            [": x"],
            ["x y: z"],
            ["x\x00: y"],
            ["x: y\x00"],
            ["é: x"],
            ["x: y\rz: w"],
            ["\tfolded"],
        ),
    ],
    ids=lambda head: ascii(head)[:40],
)
def test_a_head_that_is_none_is_refused(server, head):
    with nothing_happens(server):
        [reply] = told(server, get("/healthz", *head))
        assert reply.is_not_http


@pytest.mark.parametrize(
    "sent",
    [
        "Bearer",
        "Bearer ",
        "bearer x",
        "Basic eDp5",
        "sw_x",
        "Bearer " + "x" * 50_000,
        "Bearer \xe9\xff",
        "Bearer a b",
        "Bearer sw_" + "_" * 56,
        "Bearer ../../x",
        "Bearer null",
    ],
    ids=lambda sent: f"{ascii(sent)[:20]}-{len(sent)}",
)
def test_a_token_that_is_none_is_401_or_told_to_slow_down(server, sent):
    with nothing_happens(server):
        [reply] = told(server, post(ASK, sent, GOOD))
        assert reply.status in (401, 429)
        assert sent not in reply.body.decode()


def test_two_tokens_in_one_request_open_nothing_more_than_one_does(server, token):
    with nothing_happens(server):
        twice = post("/v1/datasets/people/pause", token, b"", f"authorization: Bearer {'x' * 60}")
        [reply] = told(server, twice)
        assert reply.status in (401, 403, 429)
