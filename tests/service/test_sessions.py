"""Sessions of browsers: how they begin and end, and what is stored of them."""

import stat

import pytest

from sharewell.service import sessions
from sharewell.service.sessions import MAX_SESSIONS, SESSION_SECONDS, SessionStore
from sharewell.service.tokens import Principal, TokenStore, id_of

ANN = Principal("ann", "analyst")


class Clock:
    def __init__(self):
        self.now = 1_000_000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def tokens(tmp_path):
    return TokenStore(tmp_path / "people.access.json")


@pytest.fixture
def store(tokens, clock):
    return SessionStore(tokens, clock)


def begin(store, tokens, name="ann"):
    return store.begin(id_of(tokens.issue(name, "analyst")))


def test_a_session_survives_a_restart(store, tokens, clock):
    secret = begin(store, tokens)
    assert store.owner(secret) == ANN
    assert SessionStore(TokenStore(tokens.path), clock).owner(secret) == ANN


def test_only_a_hash_is_stored_in_a_private_file(store, tokens):
    token = tokens.issue("ann", "analyst")
    secret = store.begin(id_of(token))
    text = store.path.read_text()
    assert secret not in text
    assert token not in text
    assert sessions.csrf_token(secret) not in text
    assert stat.S_IMODE(store.path.stat().st_mode) == 0o600


def test_a_session_ends_after_twelve_hours(store, tokens, clock):
    secret = begin(store, tokens)
    clock.now += SESSION_SECONDS - 1
    assert store.owner(secret) == ANN
    clock.now += 1
    assert store.owner(secret) is None
    assert SESSION_SECONDS == 12 * 3600


def test_a_session_ends_by_signing_out(store, tokens, clock):
    first, second = begin(store, tokens), store.begin(next(iter(tokens.read().records)))
    store.end(first)
    assert store.owner(first) is None
    assert store.owner(second) == ANN
    assert SessionStore(tokens, clock).owner(first) is None


@pytest.mark.parametrize("change", ["issue", "revoke"])
def test_a_session_ends_with_its_token(store, tokens, change):
    secret = begin(store, tokens)
    getattr(tokens, change)("ann", "analyst")
    assert store.owner(secret) is None


@pytest.mark.parametrize("secret", ["", "x", "x" * 43, "é" * 43, "x" * 10_000])
def test_unknown_secrets_are_of_no_one(store, tokens, secret):
    begin(store, tokens)
    assert store.owner(secret) is None


def test_one_token_has_a_limited_number_of_sessions(store, tokens):
    begun = [begin(store, tokens, "ben")]
    token_id = id_of(tokens.issue("ann", "analyst"))
    begun += [store.begin(token_id) for _ in range(MAX_SESSIONS + 2)]
    assert [store.owner(each) is not None for each in begun] == [True, False, False] + [
        True
    ] * MAX_SESSIONS


def test_a_code_works_once(store, tokens):
    token_id = id_of(tokens.issue("ann", "analyst"))
    code = store.issue_code(token_id)
    assert store.redeem(code) == token_id
    assert store.redeem(code) is None
    assert store.redeem("other") is None


def test_a_code_grows_too_old(store, tokens, clock):
    code = store.issue_code(id_of(tokens.issue("ann", "analyst")))
    clock.now += sessions.CODE_SECONDS
    assert store.redeem(code) is None


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", '{"format": "sharewell sessions 1", "sessions": [1]}', "\0"]
)
def test_a_damaged_file_ends_all_sessions_and_no_service(store, tokens, text):
    secret = begin(store, tokens)
    store.path.write_text(text)
    again = SessionStore(tokens)
    assert again.owner(secret) is None
    assert again.owner(begin(again, tokens)) == ANN
