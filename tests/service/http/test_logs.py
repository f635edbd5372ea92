"""The log: lines of JSON, and never a reason to stop."""

import io
import json
import threading
from contextlib import closing

from sharewell.service.http.log import Log, open_log
from sharewell.service.registry import DatasetRegistry
from tests.service.http.servers import running, write_dataset
from tests.service.waiting import comes_true


def events(stream: io.BytesIO) -> list[str]:
    return [json.loads(line)["event"] for line in stream.getvalue().splitlines()]


def test_a_line_has_its_time_its_event_and_the_fields_that_are_known():
    stream = io.BytesIO()
    log = Log(stream)
    log.write("one", missing=None, number=1)
    log.write_error(ValueError("a secret"))
    assert events(stream) == ["one", "error"]
    assert json.loads(stream.getvalue().splitlines()[0]).keys() == {"time", "event", "number"}
    assert b"secret" not in stream.getvalue()


def test_every_line_is_written_once_from_many_threads(tmp_path):
    path = tmp_path / "log"
    log = open_log(str(path))

    def write(who: int) -> None:
        for number in range(500):
            log.write(f"{who} {number}")

    threads = [threading.Thread(target=write, args=(who,)) for who in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    written = sorted(f"{who} {number}" for who in range(4) for number in range(500))
    log.close()
    assert sorted(json.loads(line)["event"] for line in path.read_text().splitlines()) == written
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_log_is_appended_to(tmp_path):
    path = tmp_path / "log"
    for event in ("first", "second"):
        with closing(open_log(str(path))) as log:
            log.write(event)
    assert [json.loads(line)["event"] for line in path.read_text().splitlines()] == ["first", "second"]


def test_what_is_logged_while_the_log_is_written_is_written_too():
    """As by the garbage collector, which may end a task at any moment."""
    log: Log

    class Reentrant(io.BytesIO):
        def write(self, text) -> int:
            if b"first" in text:
                log.write_error(ValueError())
            return super().write(text)

    stream = Reentrant()
    log = Log(stream)
    log.write("first")
    assert sorted(events(stream)) == ["error", "first"]


def test_a_broken_stream_is_no_reason_to_stop():
    stream = io.BytesIO()
    log = Log(stream)
    stream.close()
    log.write("one")
    log.write("two")


def test_a_server_writes_its_log_while_it_runs(tmp_path, monkeypatch):
    monkeypatch.setattr("sharewell.service.http.state.SLOW_OPENING", 3600.0)
    stream = io.BytesIO()
    with running(write_dataset(tmp_path), log=Log(stream)) as server:
        server.client().get("/healthz")
        comes_true(lambda: events(stream) == ["open", "request"])
    assert events(stream)[2:] == ["closing", "closed"]


def test_what_takes_long_to_open_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr("sharewell.service.http.state.SLOW_OPENING", 0.01)
    stream = io.BytesIO()
    path = write_dataset(tmp_path)

    def slowly() -> DatasetRegistry:
        comes_true(lambda: events(stream) == ["opening"])
        return DatasetRegistry.open([path])

    with running(open_registry=slowly, log=Log(stream)):
        assert events(stream) == ["opening", "open"]
