"""Requests of browsers: sessions in cookies, the origin check and the CSRF header."""

import io
import socket

import httpx
import pytest

from sharewell.service.http import state
from tests.service.http.servers import COUNT, problem, running, write_dataset

ME = "/v1/datasets/people/me"


class Browser:
    """A client as a browser is: it keeps cookies, and names its origin."""

    def __init__(self, server, origin=None):
        self.client = server.client()
        self.client.headers["origin"] = origin or server.url
        self.csrf = {}

    def sign_in(self, **body):
        reply = self.client.post("/v1/session", json=body)
        if reply.status_code == 200:
            self.csrf = {"x-sharewell-csrf": reply.json()["csrf"]}
        return reply

    def get(self, path, **headers):
        return self.client.get(path, headers={**self.csrf, **headers})

    def post(self, path, json=None, **headers):
        return self.client.post(path, json=json, headers={**self.csrf, **headers})


@pytest.fixture
def browser(server):
    return Browser(server)


def test_a_token_is_exchanged_for_a_session(server, browser):
    token = server.token("ann")
    reply = browser.sign_in(token=token)
    assert {**reply.json(), "csrf": ""} == {
        "dataset": "people",
        "name": "ann",
        "role": "analyst",
        "csrf": "",
        "begun": True,
    }
    assert browser.get(ME).json()["analyst"] == "ann"
    asked = browser.post("/v1/datasets/people/ask", {"sql": COUNT})
    assert asked.json()["state"] == "answered"
    found = browser.client.get("/v1/session").json()
    assert found == reply.json()


def test_the_cookie_is_out_of_reach_of_scripts_and_other_sites(server, browser):
    cookie = browser.sign_in(token=server.token("ann")).headers["set-cookie"]
    parts = {part.strip().lower() for part in cookie.split(";")[1:]}
    assert parts == {"httponly", "samesite=strict", "max-age=43200"}
    # It is not sent to a path that serves no data, whatever prefix a proxy adds.
    assert {each.path for each in browser.client.cookies.jar} == {"/v1"}


def test_a_planted_cookie_never_becomes_a_session(server, browser):
    """Session fixation: whatever a browser brings, signing in gives it a new secret."""
    token = server.token("ann")
    name = f"sharewell_session_{server.port}"
    browser.client.cookies.set(name, "planted", path="/v1")
    planted = {"cookie": f"{name}=planted"}
    first = browser.client.post("/v1/session", json={"token": token}, headers=planted)
    second = browser.client.post("/v1/session", json={"token": token}, headers=planted)
    secrets = {reply.headers["set-cookie"].split(";")[0].partition("=")[2] for reply in (first, second)}
    assert len(secrets) == 2
    assert "planted" not in secrets
    other = Browser(server)
    problem(other.client.get("/v1/session", headers=planted), 401, "access.unknown-token")


def test_what_is_private_is_kept_by_no_cache(server, browser):
    sign_in = browser.sign_in(token=server.token("ann"))
    for reply in (
        sign_in,
        browser.get("/v1/session"),
        browser.get(ME),
        browser.get("/"),
        browser.get("/v1/x"),
    ):
        assert reply.headers["cache-control"] == "no-store"
        assert reply.headers["x-frame-options"] == "DENY"
        assert "frame-ancestors 'none'" in reply.headers["content-security-policy"]
        assert "access-control-allow-origin" not in reply.headers


def test_under_tls_the_cookie_is_secure(server):
    browser = Browser(server, origin=server.url.replace("http:", "https:"))
    cookie = browser.sign_in(token=server.token("ann")).headers["set-cookie"]
    assert "; Secure" in cookie


def test_a_wrong_token_begins_no_session(server, browser):
    reply = browser.sign_in(token="sw_wrong")
    problem(reply, 401, "access.unknown-token")
    assert "set-cookie" not in reply.headers


def test_guessing_is_slowed_down(tmp_path):
    with running(write_dataset(tmp_path)) as server:
        browser = Browser(server)
        replies = [browser.sign_in(token="sw_wrong") for _ in range(60)]
        assert 429 in {reply.status_code for reply in replies}
        assert browser.sign_in(token=server.token("ann")).status_code == 200


def test_a_session_counts_only_with_the_csrf_header(server, browser):
    browser.sign_in(token=server.token("ann"))
    problem(browser.client.get(ME), 403, "access.denied")
    problem(browser.get(ME, **{"x-sharewell-csrf": "0" * 64}), 403, "access.denied")
    problem(browser.client.delete("/v1/session"), 403, "access.denied")
    assert browser.get(ME).status_code == 200


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "http://127.0.0.1:1", "null", "http://[", "file://"]
)
def test_another_origin_is_refused(server, browser, origin):
    browser.sign_in(token=server.token("ann"))
    problem(browser.get(ME, origin=origin), 403, "access.denied")
    ask = browser.post("/v1/datasets/people/ask", {"sql": COUNT}, origin=origin)
    problem(ask, 403, "access.denied")
    problem(Browser(server, origin).sign_in(token=server.token("ann")), 403, "access.denied")


def test_a_change_without_an_origin_is_refused(server, browser):
    browser.sign_in(token=server.token("ann"))
    del browser.client.headers["origin"]
    problem(browser.post("/v1/datasets/people/done"), 403, "access.denied")
    problem(browser.get(ME, **{"sec-fetch-site": "cross-site"}), 403, "access.denied")
    assert browser.get(ME, **{"sec-fetch-site": "same-origin"}).status_code == 200


def test_a_proxy_may_drop_the_port_of_the_host(server, browser):
    host = {"host": "stats.example.org"}
    reply = browser.client.post(
        "/v1/session",
        json={"token": server.token("ann")},
        headers={**host, "origin": "https://stats.example.org:8443"},
    )
    assert reply.status_code == 200
    assert reply.headers["set-cookie"].startswith("sharewell_session=")


@pytest.mark.parametrize(
    "path",
    [
        "//evil.example/",
        "/%2f%2fevil.example/",
        "/v1/datasets/",
        "/console/",
        "/docs/",
        "/\\\\evil.example",
    ],
)
def test_no_path_redirects(server, path):
    with socket.create_connection(("127.0.0.1", server.port)) as client:
        # As it is written: an HTTP client would tidy the path.
        client.sendall(
            f"GET {path} HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n".encode()
        )
        head = b"".join(iter(lambda: client.recv(65536), b"")).partition(b"\r\n\r\n")[0].lower()
    assert head.startswith(b"http/1.1 404")
    assert b"location:" not in head


@pytest.mark.parametrize("what", ["other id", "other secret"])
def test_every_wrong_token_is_refused_alike(server, browser, what):
    token = server.token("ann")
    before, after = token[3:15], token[16:]
    wrong = f"sw_{before[::-1]}_{after}" if what == "other id" else f"sw_{before}_{after[::-1]}"
    reply = browser.sign_in(token=wrong)
    assert problem(reply, 401, "access.unknown-token")["message"] == "Unknown token."
    assert "set-cookie" not in reply.headers


def test_signing_out_ends_the_session(server, browser):
    browser.sign_in(token=server.token("ann"))
    cookies = httpx.Cookies(browser.client.cookies)
    assert browser.client.delete("/v1/session", headers=browser.csrf).status_code == 204
    assert not list(browser.client.cookies.jar)
    browser.client.cookies = cookies
    problem(browser.get(ME), 401, "access.unknown-token")
    problem(browser.client.get("/v1/session"), 401, "access.unknown-token")


def test_a_new_token_or_removal_ends_the_session(tmp_path):
    with running(write_dataset(tmp_path)) as server:
        ann, ben, curator = Browser(server), Browser(server), server.curator()
        ann.sign_in(token=server.token("ann"))
        ben.sign_in(token=server.token("ben"))
        assert curator.post("/analysts/ann/token").status_code == 200
        assert curator.delete("/analysts/ben").status_code == 204
        problem(ann.get(ME), 401, "access.unknown-token")
        problem(ben.get(ME), 401, "access.unknown-token")


def test_a_session_survives_a_restart(tmp_path):
    path = write_dataset(tmp_path)
    with running(path) as server:
        browser = Browser(server)
        browser.sign_in(token=server.token("ann"))
        (cookie,) = browser.client.cookies.jar
    with running(path) as server:
        # The port is another here, and so is the name of the cookie.
        again = Browser(server)
        again.client.cookies.set(f"sharewell_session_{server.port}", str(cookie.value))
        again.csrf = browser.csrf
        assert again.get(ME).status_code == 200


def test_a_code_begins_one_session(server, browser):
    server.token("ben")
    dataset = server.registry.datasets["people"]
    code = dataset.sessions.issue_code(
        next(at for at, record in dataset.tokens.read().records.items() if record.owner.name == "ben")
    )
    assert browser.sign_in(code=code).json()["name"] == "ben"
    found = problem(Browser(server).sign_in(code=code), 401, "access.unknown-token")
    assert "link" in found["message"]


def test_a_draft_is_quoted_and_its_mistakes_are_no_errors(server, browser):
    browser.sign_in(token=server.token("ann"))
    path = "/v1/datasets/people/draft"
    head = server.curator().get("/ledger").json()["head"]
    found = browser.post(path, {"sql": COUNT}).json()
    assert found["problem"] is None
    assert found["quote"]["columns"] == [{"name": "COUNT(*)", "kind": "number"}]
    found = browser.post(path, {"sql": "SELECT COUNT(*) FROM people WHERE agee = 3"}).json()
    assert found["quote"] is None
    assert found["problem"]["where"] == {"line": 1, "column": 35, "text": "agee"}
    assert "/draft" not in server.log
    assert "agee" not in server.log
    assert server.curator().get("/ledger").json()["head"] == head
    assert browser.get(ME).json()["asked"] == server.analyst("ann").get("/me").json()["asked"]


def test_drafts_have_a_rate_of_their_own(tmp_path, monkeypatch):
    monkeypatch.setattr(state, "DRAFTS_PER_SECOND", 0.001)
    monkeypatch.setattr(state, "DRAFT_BURST", 3.0)
    path = write_dataset(tmp_path)
    path.write_text(path.read_text().replace("100000", "0.01"))
    with running(path) as server:
        browser = Browser(server)
        browser.sign_in(token=server.token("ann"))
        drafts = [browser.post("/v1/datasets/people/draft", {"sql": COUNT}) for _ in range(3)]
        assert {reply.status_code for reply in drafts} == {200}
        problem(browser.post("/v1/datasets/people/draft", {"sql": COUNT}), 429, "request.too-many")
        assert browser.get(ME).status_code == 200
        problem(browser.get(ME), 429, "request.too-many")


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_answers_are_downloaded(server, browser, kind):
    import pyarrow.parquet

    browser.sign_in(token=server.token("ann"))
    sql = "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex"
    ticket = browser.post("/v1/datasets/people/ask", {"sql": sql}).json()
    reply = browser.get(f"/v1/datasets/people/tickets/{ticket['number']}/file?format={kind}")
    assert reply.headers["content-disposition"] == (
        f'attachment; filename="people-{ticket["number"]}.{kind}"'
    )
    # It is private, and no browser takes it for a page.
    assert reply.headers["cache-control"] == "no-store"
    assert reply.headers["x-content-type-options"] == "nosniff"
    names = ["sex", "n", "n_error", "n_low", "n_high"]
    values = [row[1]["value"] for row in ticket["answer"]["rows"]]
    if kind == "csv":
        header, *rows = reply.text.splitlines()
        assert header.split(",") == names
        assert [float(row.split(",")[1]) for row in rows] == pytest.approx(values)
    else:
        table = pyarrow.parquet.read_table(io.BytesIO(reply.content))
        assert table.column_names == names
        assert table["n"].to_pylist() == pytest.approx(values)
        assert table["sex"].to_pylist() == ["F", "M"]
