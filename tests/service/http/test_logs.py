"""The log: lines of JSON, kept until they are flushed, and never a reason to stop."""

import io
import json
import threading

from sharewell.service.house import House
from sharewell.service.http.logs import Log
from tests.service.http.servers import running, write_dataset
from tests.service.waiting import comes_true


def events(stream: io.StringIO) -> list[str]:
    return [json.loads(line)["event"] for line in stream.getvalue().splitlines()]


def test_a_log_that_gathers_writes_when_it_is_flushed_and_at_once_where_something_fails():
    stream = io.StringIO()
    log = Log(stream, gather=True)
    log.write("one", missing=None, number=1)
    log.write("two")
    assert stream.getvalue() == ""
    log.flush()
    log.flush()
    assert events(stream) == ["one", "two"]
    assert json.loads(stream.getvalue().splitlines()[0]).keys() == {"time", "event", "number"}
    log.write("three")
    log.failed(ValueError("a secret"))
    assert events(stream) == ["one", "two", "three", "error"]
    assert "secret" not in stream.getvalue()


def test_every_line_is_written_once_whoever_writes_and_flushes():
    stream = io.StringIO()
    log = Log(stream, gather=True)

    def write(who: int) -> None:
        for number in range(500):
            log.write(f"{who} {number}")
            if number % 7 == 0:
                log.flush()

    threads = [threading.Thread(target=write, args=(who,)) for who in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    log.flush()
    written = [f"{who} {number}" for who in range(4) for number in range(500)]
    assert sorted(events(stream)) == sorted(written)


def test_what_is_logged_while_the_log_is_written_is_written_too():
    """As by the garbage collector, which may end a task that nobody looked after at any moment."""
    log: Log

    class Reentrant(io.StringIO):
        def write(self, text: str) -> int:
            if "first" in text:
                log.failed(ValueError())
            return super().write(text)

    stream = Reentrant()
    log = Log(stream, gather=True)
    log.write("first")
    log.flush()
    assert events(stream) == ["first", "error"]


def test_a_stream_that_is_gone_is_no_reason_to_stop():
    stream = io.StringIO()
    log = Log(stream, gather=True)
    stream.close()
    log.write("one")
    log.flush()
    log.write("two")
    log.flush()


def test_a_server_writes_its_log_while_it_runs(tmp_path):
    stream = io.StringIO()
    with running(write_dataset(tmp_path), log=Log(stream, gather=True)) as server:
        server.client().get("/healthz")
        comes_true(lambda: events(stream) == ["open", "request"])
    assert events(stream)[2:] == ["closing", "closed"]


def test_what_takes_long_to_open_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr("sharewell.service.http.serving.SLOW", 0.01)
    stream = io.StringIO()
    path = write_dataset(tmp_path)

    def slowly() -> House:
        comes_true(lambda: events(stream) == ["opening"])
        return House.open([path])

    with running(open_house=slowly, log=Log(stream, gather=True)):
        assert events(stream) == ["opening", "open"]
