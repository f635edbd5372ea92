"""Retries, against a server that misbehaves, with a clock of our own, in threads and in event loops."""

import socket
import time
from email.utils import formatdate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharewell import errors, wire
from sharewell.client import connect
from sharewell.client.retry import ApiCall, RetryPolicy, Sleep, TransientFailure, retry
from sharewell.client.transport import retry_after
from sharewell.errors import (
    KeyReused,
    LedgerUnavailable,
    OverBudget,
    Paused,
    SharewellError,
    SqlError,
    TooMany,
    UnknownName,
    Unreachable,
)
from tests.client import misbehaving as server_that
from tests.client.misbehaving import SELF_SIGNED, SQL, misbehaving, problem, say, ticket
from tests.client.twins import KINDS, Clock, twin


@pytest.fixture
def server():
    with misbehaving() as server:
        yield server


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture(params=KINDS)
def client(request, server, clock):
    with twin(request.param, server.url, clock=clock) as client:
        yield client


@pytest.fixture(params=KINDS)
def curator(request, server, clock):
    with twin(request.param, server.url, clock=clock, curator=True) as curator:
        yield curator


SETBACKS = {
    "hangs up": server_that.hang_up,
    "hangs up halfway": server_that.drop,
    "babbles": server_that.babble,
    "is unavailable": problem(503, "service.closed"),
    "has no disk": problem(503, "ledger.unavailable"),
    "fails": problem(500, "error"),
    "is overrun": problem(429, "request.too-many"),
    "has a proxy that is unavailable": server_that.page(503),
}


@pytest.mark.parametrize("deed", SETBACKS.values(), ids=SETBACKS)
def test_a_question_is_asked_again_with_the_same_key(client, server, deed):
    server.deeds = [deed, deed, say(ticket())]
    assert float(client.do(lambda s: s.ask(SQL))) == 6231
    assert len(server.asked) == 3
    keys = {asked.body["key"] for asked in server.asked}
    assert len(keys) == 1
    assert len(keys.pop()) == 32


def test_a_server_that_says_nothing_is_asked_again(server, clock):
    server.deeds = [server_that.stall, say(ticket())]
    for kind in KINDS:
        with twin(kind, server.url, clock=clock, attempt_timeout=0.5) as client:
            assert float(client.do(lambda s: s.ask(SQL))) == 6231
    assert len(server.asked) >= 3  # a busy machine may be slow once more
    assert len({asked.body["key"] for asked in server.asked}) == 2


def test_two_questions_have_two_keys(client, server):
    client.do(lambda s: s.ask(SQL))
    client.do(lambda s: s.ask(SQL))
    assert len({asked.body["key"] for asked in server.asked}) == 2


def test_a_key_of_ones_own_is_kept(client, server):
    client.do(lambda s: s.ask(SQL, key="mine", pay=False))
    assert server.asked[0].body == {"sql": SQL, "pay": False, "key": "mine"}


def test_pauses_double_up_to_the_longest_and_end(client, server, clock):
    server.deeds = [problem(503, "service.closed")]
    with pytest.raises(errors.Closed) as refused:
        client.do(lambda s: s.ask(SQL))
    assert clock.naps[:7] == pytest.approx([0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5])
    assert set(clock.naps[7:]) == {5.0}
    assert sum(clock.naps) < 60
    assert sum(clock.naps) + 5 >= 60
    key = server.asked[-1].body["key"]
    assert f"with the key {key!r}" in refused.value.hint
    assert refused.value.suggestion == errors.Suggestion("key", key)


@pytest.mark.parametrize("deed", SETBACKS.values(), ids=SETBACKS)
def test_every_error_names_the_key_of_its_question(client, server, deed):
    server.deeds = [deed]
    with pytest.raises(SharewellError) as refused:
        client.do(lambda s: s.ask(SQL))
    key = server.asked[0].body["key"]
    assert refused.value.idempotency_key == key
    assert refused.value.suggestion == errors.Suggestion("key", key)
    assert str(refused.value).endswith(f"Ask again with the key {key!r}: the question is charged once.")


def test_a_question_without_a_key_is_not_asked_again_after_an_unexpected_error(client, server):
    server.deeds = [problem(500, "error")]
    with pytest.raises(SharewellError):
        client.do(lambda s: s.quote(SQL))
    assert len(server.asked) == 1


def test_whoever_waits_for_long_is_told_once(client, server, caplog):
    server.deeds = [problem(503, "service.closed")] * 3 + [say(ticket())]
    client.do(lambda s: s.ask(SQL))
    assert caplog.messages == []
    server.deeds = [problem(503, "service.closed")] * 9 + [say(ticket())]
    client.do(lambda s: s.ask(SQL))
    [told] = caplog.messages
    assert told.endswith(" Retrying for up to 60 s.")


@pytest.mark.parametrize("status", [429, 503])
def test_the_service_says_how_long_to_wait(client, server, clock, status):
    code = "request.too-many" if status == 429 else "ledger.unavailable"
    server.deeds = [problem(status, code, "7"), say(ticket())]
    client.do(lambda s: s.ask(SQL))
    assert clock.naps == [7.0]


def test_a_wait_that_passes_all_patience_is_not_begun(client, server, clock):
    server.deeds = [problem(429, "request.too-many", "3600")]
    with pytest.raises(TooMany):
        client.do(lambda s: s.ask(SQL))
    assert clock.naps == []
    assert len(server.asked) == 1


REFUSALS = {
    (400, "sql.unknown-name"): UnknownName,
    (400, "sql.unsupported"): SqlError,
    (402, "privacy.over-budget"): OverBudget,
    (409, "request.key-reused"): KeyReused,
    (503, "service.paused"): Paused,
}


@pytest.mark.parametrize(("told", "kind"), REFUSALS.items(), ids=str)
def test_a_refusal_is_raised_as_what_it_was_and_not_tried_again(client, server, told, kind):
    place = errors.Location(line=1, column=35, text="agee")
    server.deeds = [problem(*told, hint="Do this.", where=place, request_id="r-1")]
    with pytest.raises(SharewellError) as refused:
        client.do(lambda s: s.ask(SQL))
    error = refused.value
    assert type(error) is kind
    assert error.code == told[1]
    assert error.message == "It is wrong."
    assert error.hint.startswith("Do this.")
    assert error.where == errors.Location(1, 35, "agee")
    assert error.request_id == "r-1"
    assert len(server.asked) == 1
    assert error.idempotency_key == server.asked[0].body["key"]


def test_a_code_of_a_newer_service_is_kept(client, server):
    server.deeds = [problem(400, "sharing.of-tomorrow")]
    with pytest.raises(SharewellError) as refused:
        client.do(lambda s: s.ask(SQL))
    assert type(refused.value) is SharewellError
    assert refused.value.code == "sharing.of-tomorrow"


STRANGERS = {
    "a web page": server_that.page(200),
    "a page that is not there": server_that.page(404),
    "other JSON": server_that.plain(b'{"hello": "world"}'),
    "no JSON": server_that.plain(b"\xff\xfe"),
    "nothing": server_that.plain(b""),
}


@pytest.mark.parametrize("deed", STRANGERS.values(), ids=STRANGERS)
def test_what_is_no_service_is_told_in_a_sentence(client, server, deed):
    server.deeds = [deed]
    with pytest.raises(
        Unreachable, match=r"The server at http://127.* is not a Sharewell server: status"
    ):
        client.do(lambda s: s.quote(SQL))
    assert len(server.asked) == 1


def test_a_redirection_is_not_followed(client, server):
    server.deeds = [server_that.page(302, Location="https://elsewhere.example/login")]
    with pytest.raises(Unreachable, match=r"It redirects to https://elsewhere.example/login\."):
        client.do(lambda s: s.quote(SQL))
    assert len(server.asked) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_an_address_where_nobody_listens_is_told_soon(kind, clock):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        with (
            twin(kind, url, clock=clock) as client,
            pytest.raises(Unreachable, match=r"Cannot reach a server at \S+: [a-z]"),
        ):
            client.do(lambda s: s.ask(SQL))
    assert 0 < sum(clock.naps) < 5


def test_a_service_that_is_still_opening_is_waited_for(client, server, clock):
    deeds = [problem(503, "service.closed", "20"), say(server_that.GREETING)]
    server.greeting = lambda handler: deeds.pop(0)(handler)
    client.do(lambda s: s.ask(SQL))
    assert clock.naps == [20.0]


def test_somebody_is_not_taken_in_twice(curator, server):
    """Where it is not known whether it was done, a second try could only say that it cannot be."""
    server.deeds = [server_that.hang_up, say(wire.Token(name="cleo", role="analyst", token="t"))]
    with pytest.raises(Unreachable):
        curator.do(lambda s: s.join("cleo", "1/10"))
    assert len(server.asked) == 1


def test_a_failing_ledger_may_have_taken_somebody_in(curator, server):
    server.deeds = [problem(503, "ledger.unavailable")]
    with pytest.raises(LedgerUnavailable):
        curator.do(lambda s: s.join("cleo", "1/10"))
    assert len(server.asked) == 1


@pytest.mark.parametrize("deed", [problem(429, "request.too-many"), problem(503, "service.closed")])
def test_somebody_is_taken_in_when_it_is_certain_that_they_were_not(curator, server, deed):
    server.deeds = [deed, say(wire.Token(name="cleo", role="analyst", token="t"), 201)]
    assert curator.do(lambda s: s.join("cleo", "1/10")) == "t"
    assert server.asked[1].body == {"name": "cleo", "share": "1/10"}


def test_names_and_choices_arrive_as_they_were_meant(curator, server):
    server.deeds = [lambda handler: handler.write(204, b"")]
    curator.do(lambda s: s.leave("a b/ü?", donate=True))
    curator.do(lambda s: s.leave("ann"))
    assert [(asked.method, asked.path) for asked in server.asked] == [
        ("DELETE", "/v1/datasets/people/analysts/a%20b%2F%C3%BC%3F?donate=true"),
        ("DELETE", "/v1/datasets/people/analysts/ann?donate=false"),
    ]


def test_the_token_is_sent_and_never_shown(client, server):
    client.do(lambda s: s.ask(SQL))
    assert {asked.token for asked in server.asked + server.greeted} == {"Bearer sw_token"}
    shown = [client.session, client.session._api, client.session._transport, vars(client.session)]
    assert "sw_token" not in repr(shown)
    server.deeds = [server_that.page(404)]
    with pytest.raises(Unreachable) as refused:
        client.do(lambda s: s.ask(SQL))
    assert "sw_token" not in repr(refused.value) + str(refused.value)


class TestCertificates:
    """A real server with a certificate that it signed itself."""

    @pytest.fixture
    def server(self):
        with misbehaving(tls=True) as server:
            yield server

    def test_one_that_nobody_vouches_for_is_told_at_once(self, server):
        with pytest.raises(Unreachable, match="Cannot verify the certificate of") as refused:
            connect(server.url, "sw_token")
        assert refused.value.suggestion == errors.Suggestion("verify", "ca.pem")
        assert server.greeted == []

    def test_ones_own_authority_vouches_for_it(self, server):
        with connect(server.url, "sw_token", verify=SELF_SIGNED) as session:
            assert int(session.ask(SQL)) == 6231

    def test_a_name_that_it_does_not_have_is_refused(self, server):
        url = server.url.replace("127.0.0.1", "localhost")
        with pytest.raises(Unreachable, match="Cannot verify the certificate"):
            connect(url, "sw_token", verify=SELF_SIGNED)


class TestRetry:
    """The rule itself, for all that may happen."""

    @staticmethod
    def play(failures, policy, *, idempotent=True):
        """Drive a call over some failures; how many tries there were, and how it ended."""
        call = ApiCall("GET", "", wire.DatasetList, lambda at: None, idempotent=idempotent)
        steps = retry(call, policy)
        tries, failure = 0, None
        while True:
            try:
                step = steps.throw(failure) if failure else next(steps)
            except StopIteration as end:
                return tries, end.value
            except SharewellError as error:
                return tries, error
            failure = None
            if isinstance(step, Sleep):
                policy.clock.sleep(step.seconds)
                continue
            tries += 1
            if tries > len(failures):
                try:
                    steps.send("reply")
                except StopIteration as end:
                    return tries, end.value
            failure = failures[tries - 1]

    @given(
        st.lists(st.floats(0, 100), max_size=30),
        st.floats(0, 120),
        st.floats(0, 1),
    )
    def test_patience_is_never_exceeded_and_the_service_is_left_alone_as_long_as_it_asks(
        self, afters, seconds, jitter
    ):
        clock = Clock()
        policy = RetryPolicy(seconds, clock=clock, jitter=lambda: jitter)
        failures = [TransientFailure(TooMany("No."), after=after) for after in afters]
        tries, end = self.play(failures, policy)
        assert sum(clock.naps) <= seconds
        assert all(nap >= after for nap, after in zip(clock.naps, afters, strict=False))
        if end == "reply":
            assert tries == len(afters) + 1
        else:
            assert isinstance(end, TooMany)
            assert len(clock.naps) == tries - 1

    def test_what_cannot_be_repeated_is_repeated_only_where_nothing_was_done(self):
        untouched, unsure = (
            TransientFailure(TooMany("No."), not_executed=each) for each in (True, False)
        )
        assert self.play([untouched] * 3, RetryPolicy(clock=Clock()), idempotent=False) == (4, "reply")
        tries, end = self.play([untouched, unsure], RetryPolicy(clock=Clock()), idempotent=False)
        assert (tries, type(end)) == (2, TooMany)

    def test_jitter_shortens_a_pause_by_a_half_at_the_most(self):
        shortest, longest = RetryPolicy(jitter=lambda: 0.0), RetryPolicy(jitter=lambda: 1.0)
        pairs = [(shortest.delay(attempt), longest.delay(attempt)) for attempt in range(10_000)]
        assert all(2 * short == long for short, long in pairs)
        assert pairs[-1][1] == 5.0


@pytest.mark.parametrize(
    ("text", "seconds"), [("7", 7), ("0.5", 0.5), ("", 0), ("soon", 0), ("-3", 0), ("1e9", 0)]
)
def test_a_wait_is_read(text, seconds):
    assert retry_after({"retry-after": text} if text else {}) == seconds


def test_a_date_to_come_back_at_is_read():
    assert 50 < retry_after({"retry-after": formatdate(time.time() + 60, usegmt=True)}) <= 60
    assert retry_after({"retry-after": formatdate(0, usegmt=True)}) == 0
