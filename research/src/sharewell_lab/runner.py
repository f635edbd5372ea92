"""Runs a study's trials in several processes, keeps every chunk that is done, and goes on from there.

A chunk is some trials of one case. Each is written to a file of its own as soon as it is done, under a
name that says which it is, so a run that was stopped, or one with more trials or more cases, computes
only what is missing. What a trial gives depends on the study, the case, its number and the seed alone;
the results are therefore the same however many processes there are.
"""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import signal
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

import numpy as np

from sharewell.errors import ConfigError
from sharewell_lab.results import together, write_results
from sharewell_lab.studies import Study
from sharewell_lab.trials import Case, Columns

#: How many trials a chunk has, fewer where they are dearer. It is the same however many are asked for,
#: so that a longer run finds the chunks of a shorter one.
CHUNK = 10

#: Called with the number of trials done and the number of all of them.
Watch = Callable[[int, int], None]


class Stopped(KeyboardInterrupt):
    """Ctrl-C stopped the run; finished chunks are kept."""

    def __init__(self, done: int, total: int, out: Path) -> None:
        super().__init__(
            f"Stopped after {done:,} of {total:,} trials, which are kept in {str(out)!r}. "
            "Run the same command again to go on."
        )


@dataclass(frozen=True)
class Chunk:
    """Some trials of one case, and the file that they go to."""

    case: Case
    first: int
    end: int
    path: Path

    @property
    def trials(self) -> int:
        """How many trials there are."""
        return self.end - self.first


def run_study(
    study: Study,
    trials: int,
    seed: int,
    jobs: int,
    out: Path,
    progress: Watch | None = None,
) -> Path:
    """Run so many trials of every case of a study; the path of the Parquet file with the results."""
    return write_results(run_trials(study, trials, seed, jobs, out, progress), out)


def run_trials(
    study: Study,
    trials: int,
    seed: int,
    jobs: int,
    out: Path,
    progress: Watch | None = None,
) -> Columns:
    """The rows of so many trials of every case, in order of cases and trials."""
    if trials < 1 or jobs < 1 or seed < 0:
        raise ConfigError(
            f"There cannot be {trials} trials, {jobs} jobs and the seed {seed}.",
            hint="Trials and jobs are whole numbers from 1 on, and the seed from 0 on.",
        )
    folder = out / "parts" / study.name
    _guard(study, seed, folder)
    chunks = [chunk for case in study.cases for chunk in _chunks(study, case, trials, folder)]
    todo = [chunk for chunk in chunks if not chunk.path.exists()]
    total = sum(chunk.trials for chunk in chunks)
    done = total - sum(chunk.trials for chunk in todo)
    watch = progress or (lambda _done, _total: None)
    watch(done, total)
    try:
        with closing(_finished(study, seed, min(jobs, len(todo)), todo)) as finished:
            for chunk in finished:
                done += chunk.trials
                watch(done, total)
    except KeyboardInterrupt:
        raise Stopped(done, total, out) from None
    for leftover in folder.glob(".*"):
        leftover.unlink(missing_ok=True)
    return together([_read(chunk.path) for chunk in chunks])


def _guard(study: Study, seed: int, folder: Path) -> None:
    """Refuse to mix what comes from another study, another seed or another version."""
    folder.mkdir(parents=True, exist_ok=True)
    identity = {"study": study.name, "seed": seed, "fingerprint": study.fingerprint()}
    path = folder / "study.json"
    if not path.exists():
        _write(path, lambda half: half.write_text(json.dumps(identity) + "\n", encoding="utf-8"))
        return
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        found = None
    if found != identity:
        what = "seed" if isinstance(found, dict) and found.get("seed") != seed else "study or version"
        raise ConfigError(
            f"{str(folder)!r} holds trials of another {what}.",
            hint="Choose another folder for the results, or remove this one.",
        )


def _chunks(study: Study, case: Case, asked_for: int, folder: Path) -> Iterator[Chunk]:
    trials, size = study.trials(asked_for), max(1, CHUNK // study.one_trial_in)
    key = hashlib.blake2b(repr(case).encode(), digest_size=8).hexdigest()
    for first in range(0, trials, size):
        end = min(first + size, trials)
        yield Chunk(case, first, end, folder / f"{key}-{first:06}-{end:06}.npz")


def _play(study: Study, seed: int, chunk: Chunk) -> None:
    """Play a chunk's trials, and write them to its file at once or not at all."""
    rows = together([study.play(chunk.case, trial, seed) for trial in range(chunk.first, chunk.end)])

    def save(half: Path) -> None:
        with half.open("wb") as file:
            np.savez(file, allow_pickle=False, **rows)

    _write(chunk.path, save)


def _read(path: Path) -> Columns:
    try:
        with np.load(path, allow_pickle=False) as stored:
            return {name: stored[name] for name in stored.files}
    except (OSError, ValueError, EOFError):
        raise ConfigError(
            f"The part {str(path)!r} is damaged.", hint="Remove it and run the same command again."
        ) from None


def _write(path: Path, save: Callable[[Path], Any]) -> None:
    half = path.with_name(f".{path.name}.{os.getpid()}")
    save(half)
    half.replace(path)


def _finished(study: Study, seed: int, jobs: int, todo: Sequence[Chunk]) -> Generator[Chunk]:
    """The chunks, as they are done, by so many processes.

    One process plays too when there is one job, so that nothing differs but the number.
    """
    if not todo:
        return
    waiting = iter(todo)
    context = multiprocessing.get_context("spawn")
    workers: dict[Connection, tuple[Any, Chunk | None]] = {}
    try:
        with _deaf_children():
            for _ in range(jobs):
                ours, theirs = context.Pipe()
                process = context.Process(target=_work, args=(theirs, study, seed), daemon=True)
                process.start()
                theirs.close()
                workers[ours] = (process, None)
        for connection, (process, _) in list(workers.items()):
            workers[connection] = (process, _give(connection, next(waiting, None)))
        while workers:
            for ready in wait(list(workers)):
                connection = ready  # type: ignore[assignment]
                process, chunk = workers[connection]
                failure = _answer(connection, process)
                if failure is not None:
                    raise failure
                following = _give(connection, next(waiting, None))
                if following is None:
                    del workers[connection]
                    connection.close()
                    process.join()
                else:
                    workers[connection] = (process, following)
                if chunk is not None:
                    yield chunk
    finally:
        for connection, (process, _) in workers.items():
            process.terminate()
            process.join()
            connection.close()


def _give(connection: Connection, chunk: Chunk | None) -> Chunk | None:
    connection.send(chunk)
    return chunk


def _answer(connection: Connection, process: Any) -> BaseException | None:
    """The outcome of a chunk: None if it is done, or the error."""
    try:
        failure: BaseException | None = connection.recv()
    except EOFError:
        process.join()
        return ConfigError(
            f"A process of the run ended with code {process.exitcode}, perhaps for lack of memory.",
            hint="What was done is kept. Run the same command again, with fewer jobs.",
        )
    return failure


def _work(connection: Connection, study: Study, seed: int) -> None:
    """Play chunks in a worker process until there are none or the parent is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        while (chunk := connection.recv()) is not None:
            try:
                _play(study, seed, chunk)
            except Exception as error:
                connection.send(error)
            else:
                connection.send(None)
    except (EOFError, BrokenPipeError):
        return


@contextmanager
def _deaf_children() -> Iterator[None]:
    """Start processes that Ctrl-C does not reach, each with one thread for linear algebra.

    A terminal sends Ctrl-C to all of them. The main process alone should answer it. And the threads of
    several processes' linear algebra would wait for each other more than they work.
    """
    wanted = {"OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    can_block = hasattr(signal, "pthread_sigmask")
    if can_block:
        # It is started with the first process otherwise, and lets the signal in again.
        resource_tracker.ensure_running()
    held = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT}) if can_block else set()
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
        if can_block:
            signal.pthread_sigmask(signal.SIG_SETMASK, held)
