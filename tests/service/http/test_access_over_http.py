"""Who may do what: tokens, roles, several datasets, paces; and what all replies have in common."""

import re
import socket

import pytest

from tests.service.http.operations import OPERATIONS
from tests.service.http.servers import Principal, problem, running, write_dataset

WITH_TOKEN = [each for each in OPERATIONS if each.needs_token]


def call(client, operation, dataset="people"):
    path = operation.path.format(dataset=dataset, number=0, name="zoe")
    body = {"sql": {"sql": "SELECT 1"}, "share": {"name": "zoe", "share": "1/10"}}
    wanted = next((key for key in body if operation.body and key in operation.body.model_fields), None)
    return client.request(operation.method, path, json=body[wanted] if wanted else None)


@pytest.mark.parametrize("operation", WITH_TOKEN, ids=str)
@pytest.mark.parametrize(
    "header", [None, "Bearer", "Bearer nonsense", "Basic YW5uOmFubg==", "Bearer sw_{}_{}", "bearer \xff"]
)
def test_nobody_gets_anywhere_without_a_token(server, operation, header):
    client = server.client()
    if header is not None:
        client.headers = {"authorization": header.format("x" * 12, "y" * 43).encode("latin-1")}
    server.state.failures._full_at.clear()
    reply = call(client, operation)
    problem(reply, 401, "access.unknown-token")
    assert reply.headers["www-authenticate"] == 'Bearer realm="sharewell"'


@pytest.mark.parametrize("operation", WITH_TOKEN, ids=str)
def test_roles_are_kept_apart(server, operation):
    wrong = {"analysts": server.curator(), "curators": server.analyst("ben")}.get(operation.audience)
    if wrong is None:
        for holder in (server.curator(), server.analyst("ben")):
            assert call(holder.client, operation).status_code not in {401, 403}
    else:
        problem(call(wrong.client, operation), 403, "access.denied")


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    folder = tmp_path_factory.mktemp("two")
    with running(write_dataset(folder, "people"), write_dataset(folder, "pets")) as found:
        yield found


def test_one_server_serves_several_datasets(two):
    for name in ("people", "pets"):
        ann = two.analyst("ann", name)
        assert ann.client.get("/v1/datasets").json() == {
            "datasets": [name],
            "name": "ann",
            "role": "analyst",
        }
        assert ann.get().json()["name"] == name
        assert ann.ask(f"SELECT COUNT(*) FROM {name}").status_code == 200


@pytest.mark.parametrize("operation", [each for each in WITH_TOKEN if "{dataset}" in each.path], ids=str)
def test_a_dataset_that_a_token_does_not_open_looks_like_none(two, operation):
    ann = two.analyst("ann", "people").client
    other = problem(call(ann, operation, "pets"), 404, "request.not-found")
    none = problem(call(ann, operation, "nix!"), 404, "request.not-found")
    assert other["message"].replace("pets", "") == none["message"].replace("nix!", "")


def test_too_fast_is_429_for_one_token_and_not_for_another(tmp_path):
    path = write_dataset(tmp_path)
    path.write_text(path.read_text().replace("100000", "0.01"))
    with running(path) as server:
        ann, ben = server.analyst("ann"), server.analyst("ben")
        assert ann.get().status_code == 200
        reply = ann.get()
        problem(reply, 429, "request.too-many")
        assert 1 <= int(reply.headers["retry-after"]) <= 100
        assert ben.get().status_code == 200


def test_guessing_slows_an_address_down_and_locks_nobody_out(tmp_path):
    with running(write_dataset(tmp_path)) as server:
        ann, guesser = server.analyst("ann"), server.client("sw_nothing")
        replies = [guesser.get("/v1/datasets") for _ in range(60)]
        assert [reply.status_code for reply in replies[:20]] == [401] * 20
        assert 429 in {reply.status_code for reply in replies}
        assert ann.get().status_code == 200


def test_behind_a_proxy_an_address_is_what_the_proxy_noted_last(tmp_path):
    with running(write_dataset(tmp_path), behind_proxy=True) as server:
        guesser = server.client("sw_nothing")

        def guess(forwarded):
            return guesser.get("/v1/datasets", headers={"x-forwarded-for": forwarded}).status_code

        assert 429 in {guess(f"10.1.1.{at}, 10.9.9.9") for at in range(60)}
        assert guess("10.9.9.9, 10.1.1.1") == 401


def test_a_new_token_ends_the_former_one_at_once(server):
    former = server.analyst("ben")
    assert former.get().status_code == 200
    token = server.curator().post("/analysts/ben/token").json()
    assert (token["name"], token["role"]) == ("ben", "analyst")
    problem(former.get(), 401, "access.unknown-token")
    assert Principal(server.client(token["token"]), "people").get().status_code == 200


@pytest.mark.parametrize("operation", OPERATIONS, ids=str)
def test_every_reply_is_safe_and_sets_no_cookie(server, operation):
    holder = server.curator() if operation.audience == "curators" else server.analyst("ben")
    path = operation.path.format(dataset="people", number=0, name="zoe", file="start.js", version="0")
    reply = holder.client.request(operation.method, path)
    headers = reply.headers
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["x-frame-options"] == "DENY"
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    assert "default-src 'none'" in headers["content-security-policy"]
    assert re.fullmatch(r"[0-9a-f]{16}", headers["x-request-id"])
    if operation.needs_token:
        assert headers["cache-control"] == "no-store"
        assert headers["content-security-policy"] == "default-src 'none'; frame-ancestors 'none'"
    for never in ("set-cookie", "server", "access-control-allow-origin"):
        assert never not in headers


def test_no_other_origin_is_let_in(server):
    reply = server.client().options(
        "/v1/datasets", headers={"origin": "https://example.org", "access-control-request-method": "GET"}
    )
    problem(reply, 405, "request.invalid")
    assert not [name for name in reply.headers if name.startswith("access-control")]


@pytest.fixture(scope="module")
def picky(tmp_path_factory):
    names = ["localhost", "127.0.0.1", "[::1]"]
    with running(write_dataset(tmp_path_factory.mktemp("picky")), allowed_hosts=names) as found:
        yield found


@pytest.mark.parametrize("host", ["localhost", "LocalHost:8080", "127.0.0.1", "[::1]", "[::1]:8080"])
def test_hosts_that_are_ours_are_let_in(picky, host):
    assert picky.client().get("/healthz", headers={"host": host}).status_code == 200


@pytest.mark.parametrize(
    "host",
    ["evil.example", "localhost.evil.example", "127.0.0.1.nip.io:80", "", "[::1", "localhost:", ":80"],
)
def test_other_hosts_are_not(picky, host):
    problem(picky.client().get("/healthz", headers={"host": host}), 400, "request.invalid")


def test_two_hosts_are_none(picky):
    with socket.create_connection(("127.0.0.1", picky.port)) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nhost: evil.example\r\n\r\n")
        assert connection.makefile("rb").readline() == b"HTTP/1.1 400 Bad Request\r\n"
