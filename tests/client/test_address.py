"""Addresses and tokens: what is sent where, and what is refused before anything is sent."""

import re
import ssl

import pytest

import sharewell.client
from sharewell.client.connection import read_address, read_token, read_verify
from sharewell.errors import RequestError, SharewellError, Suggestion, UnknownToken
from tests.client.misbehaving import SELF_SIGNED, misbehaving


@pytest.fixture(autouse=True)
def no_surroundings(monkeypatch):
    for name in ("SHAREWELL_URL", "SHAREWELL_TOKEN"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    "url",
    [
        "https://stats.example.org",
        "https://stats.example.org:8443/sharewell/",
        "http://localhost:8000",
        "http://LOCALHOST:8000",
        "http://127.0.0.1:8000/",
        "http://127.8.9.1",
        "http://[::1]:8000",
    ],
)
def test_a_token_may_go_there(url):
    address = read_address(url)
    assert str(address) == url.rstrip("/")
    assert address.loopback is url.startswith("http:")


@pytest.mark.parametrize(
    "url",
    [
        "http://stats.example.org",
        "http://localhost.example.org",
        "http://127.0.0.1.example.org",
        "http://10.0.0.1",
        "http://[::2]",
        "http://0.0.0.0:8000",
    ],
)
def test_a_token_does_not_go_over_plain_http_to_other_machines(url):
    with pytest.raises(RequestError, match="over plain http") as refused:
        read_address(url)
    assert refused.value.suggestion == Suggestion("allow_http", "True")
    assert str(read_address(url, allow_http=True)) == url


@pytest.mark.parametrize(
    "url", ["localhost:8000", "stats.example.org", "ftp://x", "https://", "http://[::1", "http://x:port"]
)
def test_what_is_no_address_is_told_with_one_that_is(url):
    with pytest.raises(RequestError, match=f"Invalid server address {re.escape(repr(url))}"):
        read_address(url)


@pytest.mark.parametrize(
    "url", ["https://ann:secret@example.org", "https://example.org/?token=secret", "https://x/#secret"]
)
def test_an_address_holds_no_secrets_and_none_is_shown(url):
    with pytest.raises(RequestError, match="only a host, a port and a path") as refused:
        read_address(url)
    assert "secret" not in str(refused.value)


def test_a_password_in_a_broken_address_is_not_shown():
    with pytest.raises(RequestError) as refused:
        read_address("ann:secret@example.org")
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("url", [None, "", "  "])
def test_no_address_names_the_variable(url):
    with pytest.raises(RequestError, match="SHAREWELL_URL"):
        read_address(url)


def test_the_surroundings_may_hold_both(monkeypatch):
    with misbehaving() as server:
        monkeypatch.setenv("SHAREWELL_URL", server.url)
        monkeypatch.setenv("SHAREWELL_TOKEN", "sw_of_the_environment\n")
        with sharewell.client.connect() as session:
            assert repr(session) == f"<Session ann on people, at {server.url}>"
        assert server.greeted[0].token == "Bearer sw_of_the_environment"


@pytest.mark.parametrize("token", [None, "", " \n"])
def test_no_token_names_the_variable(token):
    with pytest.raises(UnknownToken, match="SHAREWELL_TOKEN"):
        read_token(token)


@pytest.mark.parametrize("token", ["two words", "line\nbreak", "schlüssel", "nul\0"])
def test_what_cannot_be_a_token_is_not_sent_and_not_shown(token):
    with pytest.raises(UnknownToken) as refused:
        read_token(token)
    assert token not in str(refused.value)


def test_certificates_are_always_verified(tmp_path):
    assert read_verify(True) is True
    context = ssl.create_default_context()
    assert read_verify(context) is context
    own = read_verify(SELF_SIGNED)
    assert isinstance(own, ssl.SSLContext)
    assert own.verify_mode is ssl.CERT_REQUIRED
    assert own.check_hostname
    with pytest.raises(RequestError, match="cannot be switched off"):
        read_verify(False)
    for path in (tmp_path / "gone.pem", tmp_path):
        with pytest.raises(RequestError, match="Cannot read certificates"):
            read_verify(path)


def test_a_proxy_of_the_surroundings_does_not_see_what_is_meant_for_this_machine(monkeypatch):
    with misbehaving() as proxy, misbehaving() as server:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        monkeypatch.setenv("ALL_PROXY", proxy.url)
        with sharewell.client.connect(server.url, "sw_token"):
            assert (len(server.greeted), len(proxy.greeted)) == (1, 0)


def test_a_connection_that_fails_is_closed_again():
    with misbehaving() as server:
        server.greeting = server.deeds[0]
        with pytest.raises(SharewellError, match="not a Sharewell server"):
            sharewell.client.connect(server.url, "sw_token")
