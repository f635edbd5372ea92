"""Hostile bodies: too large, too deep, wrongly encoded, or JSON that means two things."""

import gzip
import json

import pytest

from sharewell.service.http.dependencies import MAX_BODY_BYTES
from tests.service.http.servers import COUNT
from tests.service.robustness.guarding import nothing_happens
from tests.service.robustness.sockets import connected, post, replies, send, told

ASK = "/v1/datasets/people/ask"
JSON = {"content-type": "application/json"}
GOOD = json.dumps({"sql": COUNT, "pay": False}).encode()


def posted(holder, body: bytes, path: str = ASK, **headers: str):
    return holder.client.post(path, content=body, headers=JSON | headers)


def asking(where: str) -> bytes:
    return json.dumps({"sql": f"SELECT COUNT(*) FROM people WHERE {where}"}).encode()


LARGE = 10_000_000


@pytest.mark.parametrize(
    "path", [ASK, "/v1/datasets/people/quote", "/v1/datasets/people/done", "/healthz"]
)
def test_ten_megabytes_are_refused_by_what_they_say_they_are(server, token, path):
    whole = post(path, token, b" " * LARGE)
    with nothing_happens(server):
        # Of one who sends it all the same, the reply may be lost: the rest is not read.
        for reply in [*told(server, whole), *(begun := told(server, whole[:1000]))]:
            assert reply.status == 413
            assert reply.problem["code"] == "request.too-large"
        assert len(begun) == 1


@pytest.mark.parametrize("piece", [1 << 20, 1 << 16, 1 << 12])
def test_ten_megabytes_in_chunks_are_refused_once_they_are_too_many(server, token, piece):
    chunk = b"%x\r\n%s\r\n" % (piece, b" " * piece)
    body = chunk * (LARGE // piece) + b"0\r\n\r\n"
    with nothing_happens(server):
        for reply in told(server, post(ASK, token, body, "transfer-encoding: chunked", length=None)):
            assert reply.status == 413


def test_a_body_of_unknown_length_is_no_body(server, token):
    """HTTP/1.1 knows no request body that ends with the connection: what follows is not HTTP."""
    with nothing_happens(server):
        *_, last = told(server, post(ASK, token, GOOD, length=None, last=False))
    assert last.is_not_http


@pytest.mark.parametrize(
    "size", ["+10", "-1", "0x10", "1e3", "10 10", "10, 10", "9" * 30, "1" * 5000, "", "ten"]
)
def test_a_length_that_is_no_number_is_refused(server, token, size):
    raw = post(ASK, token, GOOD, f"content-length: {size}", length=None)
    with nothing_happens(server):
        found = told(server, raw)
    assert found
    assert {reply.status for reply in found} <= {400, 413, 422}


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 100_000 + b"]" * 100_000,
        b'{"sql":' * 100_000 + b"1" + b"}" * 100_000,
        b'{"sql": "x", "key": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"sql": "x", "more": ' + b'{"a":' * 100_000 + b"1" + b"}" * 100_000 + b"}",
        b"[" * (MAX_BODY_BYTES - 1),
        b'{"a' * 300_000,
        b"-" * 500_000,
        b"1" * 500_000,
        b'{"sql": ' + b"9" * 900_000 + b"}",
        b'{"sql": "x", "pay": 1e400}',
        b'{"sql": "x", "pay": ' + b"1" * 5000 + b"}",
        b'{"sql": "x", "key": Infinity}',
        b'{"sql": "x", "key": -Infinity}',
        b'{"sql": "x", "pay": NaN}',
        b'{"sql": NaN}',
        b'{"sql": ["SELECT"]}',
        b'{"sql": null}',
        b'{"SQL": "x"}',
        b'{"sql": "x", "analyst": "ben"}',
        b'{"sql": "x", "": 1}',
        b'{"sql": "x", "__proto__": {"pay": false}}',
        b'{"sql": "x"} {"sql": "x"}',
        b"{'sql': 'x'}",
        b'{"sql": "x",}',
        b'{"sql": "x" /* */}',
        b'\x00{"sql": "x"}',
        b'{"sql": "x"}\x00',
        b'{"sql": "a\nb"}',
        b'{"sql": "\\ud800\\u0041"}',
        b'{"sql": "\\x41"}',
    ],
    ids=lambda body: f"{body[:24]!r}-{len(body)}",
)
def test_what_is_no_question_is_422(server, ann, body):
    with nothing_happens(server):
        reply = posted(ann, body)
        assert (reply.status_code, reply.json()["code"]) == (422, "request.invalid")


@pytest.mark.parametrize(
    "code", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-8-sig", "utf-7", "cp037"]
)
def test_another_encoding_is_422_whatever_it_claims_to_be(server, ann, code):
    body = '{"sql": "SELECT COUNT(*) FROM people WHERE sex = \'é\'"}'.encode(code)
    with nothing_happens(server):
        reply = posted(ann, body)
        assert reply.status_code == 422 or (code == "utf-7" and reply.status_code == 400)
        assert (
            posted(ann, body, **{"content-type": f"application/json; charset={code}"}).status_code == 415
        )


@pytest.mark.parametrize(
    "body",
    [
        b'{"sql": "\xe9"}',
        b'{"sql": "\xc0\xaf"}',
        b'{"sql": "\xed\xa0\x80"}',
        b'{"sql": "\xf4\x90\x80\x80"}',
    ],
)
def test_what_is_no_utf_8_is_422(server, ann, body):
    with nothing_happens(server):
        assert posted(ann, body).status_code == 422


@pytest.mark.parametrize("kind", ["gzip", "deflate", "br", "zstd", "identity", "x"])
def test_a_packed_body_is_not_unpacked(server, ann, kind):
    packed = gzip.compress(b" " * LARGE)
    with nothing_happens(server):
        assert posted(ann, packed, **{"content-encoding": kind}).status_code == 415


def test_of_a_key_that_is_there_twice_the_last_one_counts_and_nothing_is_asked_twice(server, ann):
    reply = posted(ann, b'{"sql": "nonsense", "pay": true, "sql": "%s", "pay": false}' % COUNT.encode())
    assert (reply.json()["sql"], reply.json()["pay"]) == (COUNT, False)
    with nothing_happens(server):
        assert posted(ann, b'{"sql": "%s", "sql": "nonsense"}' % COUNT.encode()).status_code == 400


@pytest.mark.parametrize(
    ("where", "status"),
    [
        (f"age IN ({', '.join(str(i % 20) for i in range(4_000))})", 200),
        (" AND ".join(f"age <> {i % 20}" for i in range(1_000)), 200),
        (" OR ".join(["age=1"] * 1_800), 200),
        (" OR ".join(["age=1"] * 1_830), 400),
        (" AND ".join(["age=1"] * 1_600), 200),
        (f"{'(' * 100_000}", 422),
        (f"{'(' * 40_000}age = 1{')' * 40_000}", 400),
        (f"{'NOT ' * 20_000}age = 1", 400),
        (f"{'-' * 2}1 < age", 400),
        ("age < 1e400", 400),
        (f"age < 1{'0' * 5000}", 400),
        (f"age < 1{'0' * 90}", 200),
        (f"age < {'1 * ' * 20_000}1", 400),
        ("age < 1e99 * 1e99", 400),
        ("age < 1 / 0", 400),
        (f"sex LIKE '{'%' * 16_000}'", 200),
        (f"sex = '{'x' * 90_000}'", 400),
        (f"{'x' * 90_000} = 1", 400),
    ],
    ids=lambda each: f"{each[:20]}-{len(each)}" if isinstance(each, str) else None,
)
def test_a_huge_condition_is_quoted_or_refused(server, ann, where, status):
    with nothing_happens(server):
        reply = posted(ann, asking(where), "/v1/datasets/people/quote")
        assert reply.status_code == status, reply.text
        assert len(reply.content) < 200_000


@pytest.mark.parametrize(
    "key", ["\x00", "\n", "é" * 200, "\u202e", "../../x", "'; DROP TABLE events; --", "🦉" * 200]
)
def test_a_key_may_be_any_text_and_stands_for_itself(ann, key):
    body = json.dumps({"sql": COUNT, "pay": False, "key": key}).encode()
    first, again = posted(ann, body), posted(ann, body)
    assert first.status_code == 200
    assert again.content == first.content
    assert first.json()["key"] == key


def test_who_stops_in_the_middle_of_a_body_has_asked_nothing(server, token):
    with nothing_happens(server):
        for sent in (0, 1, len(GOOD) - 1):
            with connected(server) as connection:
                send(connection, post(ASK, token, GOOD[:sent], length=len(GOOD)))
        with connected(server) as connection:
            send(connection, post(ASK, token, GOOD[:-1], length=len(GOOD)))
            connection.shutdown(1)
            assert replies(connection) == []
