"""Waiting for one's turn: long looks, what is shown meanwhile, and how to give up without losing it."""

import io
import re
import signal
import sys
import threading
import types
from contextlib import redirect_stderr
from urllib.parse import parse_qs, urlsplit

import pytest

from sharewell import wire
from sharewell.client.progress import Progress, show_progress
from sharewell.errors import OverBudget, RequestError, StillWaiting, Suggestion
from tests.client import misbehaving as server_that
from tests.client.misbehaving import SQL, misbehaving, problem, say, ticket
from tests.client.twins import KINDS, twin


@pytest.fixture
def server():
    with misbehaving() as server:
        yield server


@pytest.fixture(params=KINDS)
def client(request, server):
    with twin(request.param, server.url, clock=server.clock) as client:
        yield client


def wait_param(asked) -> float:
    return float(parse_qs(urlsplit(asked.path).query)["wait"][0])


def after_its_wait(server, message):
    """A look that takes as long as was asked for."""

    def deed(handler):
        server.clock.sleep(wait_param(server.asked[-1]))
        say(message)(handler)

    return deed


def test_a_waiting_question_is_looked_at_longer_and_longer(client, server):
    look = after_its_wait(server, ticket("waiting", 2))
    server.deeds = [say(ticket("waiting", 3), 202), *[look] * 6, say(ticket())]
    assert float(client.do(lambda s: s.ask(SQL))) == 6231
    looks = server.asked[1:]
    assert {urlsplit(each.path).path for each in looks} == {"/v1/datasets/people/tickets/7"}
    assert [wait_param(each) for each in looks] == [1, 2, 4, 8, 15, 15, 15]


def test_the_time_to_wait_is_kept_and_the_error_says_how_to_go_on(client, server):
    server.deeds = [say(ticket("waiting", 3), 202), after_its_wait(server, ticket("waiting", 2))]
    with pytest.raises(StillWaiting) as over:
        client.do(lambda s: s.ask(SQL, timeout=5.5))
    assert [wait_param(each) for each in server.asked[1:]] == [1, 2, 2.5]
    error = over.value
    assert isinstance(error, TimeoutError)
    assert isinstance(error, RequestError)
    assert (error.key, error.number) == ("k", 7)
    assert str(error).startswith("Question 7 is still waiting behind 2 questions of yours.")
    assert "fetch ticket 7 later, or ask again with the key 'k'" in str(error)
    assert error.suggestion == Suggestion("ticket", "7")


def test_no_time_to_wait_is_not_waited_at_all(client, server):
    server.deeds = [say(ticket("waiting", 0), 202)]
    with pytest.raises(StillWaiting):
        client.do(lambda s: s.ask(SQL, timeout=0))
    assert len(server.asked) == 1


def test_a_question_that_is_refused_when_its_turn_comes_raises_its_refusal(client, server):
    refusal = wire.Problem(code="privacy.over-budget", message="Nothing is left.")
    server.deeds = [say(ticket("waiting", 0), 202), say(ticket("refused", problem=refusal))]
    with pytest.raises(OverBudget, match="Nothing is left"):
        client.do(lambda s: s.ask(SQL))


def test_a_service_that_restarts_meanwhile_is_waited_for(client, server):
    server.deeds = [
        say(ticket("waiting", 1), 202),
        server_that.hang_up,
        problem(503, "service.closed"),
        say(ticket()),
    ]
    assert float(client.do(lambda s: s.ask(SQL))) == 6231


def test_a_ticket_is_a_snapshot_that_can_be_fetched_and_waited_for(client, server):
    server.deeds = [
        say(ticket("waiting", 2), 202),
        say(ticket("waiting", 1)),
        say(ticket("waiting", 0)),
        say(ticket()),
    ]
    first = client.do(lambda s: s.submit(SQL))
    assert repr(first) == f"<Ticket 7, waiting behind 2 questions of yours: {SQL}>"
    with pytest.raises(StillWaiting):
        first.result()
    assert client.do(lambda s: s.ticket(7)).position == 1
    assert first.position == 2
    ended = client.do(lambda s: s.wait(first))
    assert (ended.state, int(ended.result())) == ("answered", 6231)
    asked = len(server.asked)
    assert client.do(lambda s: s.wait(ended)) == ended
    assert len(server.asked) == asked
    assert int(client.do(lambda s: s.wait(7)).result()) == 6231


def test_a_result_knows_its_question(client, server):
    result = client.do(lambda s: s.ask(SQL))
    assert (result.sql, result.number, result.key) == (SQL, 7, "k")
    assert not {"sql", "number", "key"} & result.model_dump().keys()


def test_a_function_is_told_how_it_goes(client, server):
    server.deeds = [say(ticket("waiting", 2), 202), say(ticket("waiting", 1)), say(ticket())]
    told: list[wire.Ticket] = []
    client.do(lambda s: s.ask(SQL, progress=told.append))
    assert [(each.state, each.position) for each in told] == [
        ("waiting", 2),
        ("waiting", 1),
        ("answered", None),
    ]


@pytest.fixture
def ctrl_c():
    """A deed during which Ctrl-C is pressed: a signal to the thread that waits for the reply."""

    def press(handler):
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        server_that.stall(handler)

    former = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield press
    signal.signal(signal.SIGINT, former)


def test_ctrl_c_leaves_the_question_and_says_how_to_find_it_again(server, ctrl_c):
    with twin("threads", server.url, clock=server.clock) as client:
        server.deeds = [say(ticket("waiting", 2), 202), ctrl_c]
        with pytest.raises(
            KeyboardInterrupt, match="fetch ticket 7 later, or ask again with the key 'k'"
        ):
            client.do(lambda s: s.ask(SQL))
        assert [asked.method for asked in server.asked] == ["POST", "GET"]
        server.deeds = [say(ticket())]
        assert int(client.do(lambda s: s.ask(SQL, key="k"))) == 6231


def test_ctrl_c_while_a_question_is_handed_in_tells_its_key(server, ctrl_c):
    with twin("threads", server.url, clock=server.clock) as client:
        server.deeds = [ctrl_c]
        with pytest.raises(KeyboardInterrupt, match="may have been submitted") as pressed:
            client.do(lambda s: s.ask(SQL))
        assert repr(server.asked[0].body["key"]) in str(pressed.value)


class Stream(io.StringIO):
    """Standard error, of a terminal or not."""

    def __init__(self, terminal: bool = False) -> None:
        super().__init__()
        self.terminal = terminal

    def isatty(self) -> bool:
        return self.terminal


def shown(*now: wire.Ticket, progress: Progress = None, terminal: bool = False) -> str:
    """What is written while a question waits."""
    with redirect_stderr(Stream(terminal)) as stream, show_progress(now[0], progress) as show:
        for each in now[1:]:
            show(each)
    return stream.getvalue()


@pytest.fixture
def notebook(monkeypatch):
    shell = type("ZMQInteractiveShell", (), {})()
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: shell))


ALONG = (ticket("waiting", 2), ticket("waiting", 1), ticket())


def test_nothing_is_written_into_files_and_pipes():
    assert shown(*ALONG) == ""


def test_a_terminal_shows_the_place_in_the_queue_and_the_time():
    text = shown(ALONG[0], terminal=True)
    assert re.search(r"\rwaiting behind 2 questions of yours, \d+ s", text)


def test_a_terminal_shows_nothing_to_whoever_wants_nothing():
    assert shown(*ALONG, progress=False, terminal=True) == ""


def test_what_is_answered_at_once_shows_nothing():
    assert shown(ticket(), ticket(), terminal=True) == ""


def test_a_notebook_shows_one_line_and_clears_it_away(notebook):
    lines = shown(*ALONG).split("\r")
    assert re.fullmatch(r"waiting behind 2 questions of yours, \d+ s", lines[1])
    assert re.fullmatch(r"waiting behind 1 question of yours, \d+ s *", lines[2])
    assert lines[-2:] == [" " * len(lines[2]), ""]


def test_it_is_cleared_away_when_something_goes_wrong(notebook):
    with redirect_stderr(Stream()) as stream, pytest.raises(KeyboardInterrupt):  # noqa: SIM117
        with show_progress(ALONG[0], None):
            raise KeyboardInterrupt
    assert stream.getvalue().endswith(" \r")


def test_the_next_in_turn_is_told_so():
    assert ticket("waiting", 0).describe() == "waiting for its turn"
