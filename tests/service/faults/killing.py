"""Kills a service under load at random moments, again and again, and looks at what it leaves behind.

Run as a program of its own, because it forks:

`python -m tests.service.faults.killing LEDGER NAME MECHANISM SCHEDULER ROUNDS SEED`

Each service lives in a copy of this process, which has a single thread and has imported everything.
Analysts' threads ask one question after the other and report every answer before they go on. After a
death they begin with the question that they had no answer to, under the same key. It prints how many
answers were promised, and how many of them were bought.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import threading
import time
from itertools import count

from sharewell.config import Config, parse_config
from sharewell.errors import SharewellError
from sharewell.privacy.noise import ExactNoise
from sharewell.service.dataset import DatasetService
from sharewell.service.ledger import open_ledger, verify_chain
from tests.service import services
from tests.service.faults.bookkeeping import Books, Plain, Question, plain, whole_events
from tests.service.services import CONFIG, MECHANISMS, SCHEDULERS, table

ANALYSTS = ("ann", "ben", "cleo")
THREADS = 6
#: Rounds in which the certificate's process runs as well; it takes a second to start.
WITH_CERTIFICATE = (3, 13)
#: Old answers that are asked for again in each round.
SAMPLE = 20


def settings(mechanism: str, scheduler: str) -> Config:
    """The usual ones, with enough for some hundred questions."""
    text = CONFIG.format(mechanism=MECHANISMS[mechanism], scheduler=SCHEDULERS[scheduler])
    return parse_config(text.replace('"1/80"', '"1/2000"'))


def question(thread: int, at: int) -> tuple[str, str, str, bool]:
    """The analyst, key, text and `pay` of a thread's question: always the same."""
    chance = random.Random(1000 * at + thread % 5)
    ages = sorted(chance.sample(range(20), chance.randint(1, 6)))
    sql = f"SELECT COUNT(*) FROM people WHERE age IN ({', '.join(map(str, ages))})"
    return ANALYSTS[thread % 3], f"{thread}-{at}", sql, at % 4 != 3


class Killing:
    """One ledger, and the services that die on it."""

    def __init__(self, where: str, name: str, mechanism: str, scheduler: str, seed: int) -> None:
        self.where, self.name = where, name
        self.config = settings(mechanism, scheduler)
        self.data = table(self.config)
        self.free = mechanism != "laplace"
        self.books = Books(bought_once=mechanism == "cache-reconstruct")
        self.promised: dict[Question, Plain] = {}
        self.chance = random.Random(seed)

    def ask(self, service: DatasetService, thread: int, at: int) -> Plain | None:
        analyst, key, sql, pay = question(thread, at)
        try:
            return plain(services.plain(service.ask(analyst, sql, pay=pay or not self.free, key=key)))
        except SharewellError as error:
            # The share is spent, or nothing can be had for nothing.
            return [{"refused": error.code}]

    def open(self, certificate: bool = False) -> DatasetService:
        ledger = open_ledger(self.where, name=self.name, wait=120, create=True)
        return services.serve(self.config, ledger, data=self.data, certificate=certificate)

    def serve(self, pipe: int, certificate: bool) -> None:
        """Open, ask for old answers again, and then for new ones until death comes."""
        service = self.open(certificate)
        for analyst, key in self.chance.sample(list(self.promised), min(SAMPLE, len(self.promised))):
            thread, at = map(int, key.split("-"))
            assert self.ask(service, thread, at) == self.promised[analyst, key]

        def work(thread: int) -> None:
            start = sum(key.startswith(f"{thread}-") for _, key in self.promised)
            for at in count(start):
                analyst, key, *_ = question(thread, at)
                found = self.ask(service, thread, at)
                os.write(pipe, (json.dumps([analyst, key, found]) + "\n").encode())

        os.write(pipe, b"!\n")
        for thread in range(THREADS):
            threading.Thread(target=work, args=(thread,)).start()

    def one_round(self, turn: int) -> None:
        mine, theirs = os.pipe()
        child = os.fork()
        if not child:
            try:
                os.close(mine)
                self.serve(theirs, certificate=turn in WITH_CERTIFICATE)
                signal.pause()
            finally:
                os._exit(1)
        os.close(theirs)
        with os.fdopen(mine, "rb") as pipe:
            # Some are killed while they open the ledger, some after a few answers however slow they are.
            lines = [pipe.readline() for _ in range(self.chance.choice((0, 1, 1, 2, 6)))]
            time.sleep(self.chance.uniform(0, 0.06))
            os.kill(child, signal.SIGKILL)
            _, status = os.waitpid(child, 0)
            assert os.WIFSIGNALED(status), "it died before it was killed"
            lines += pipe.read().splitlines(keepends=True)
        for line in lines:
            # The last one may have been cut off: nobody was told it.
            if line != b"!\n" and line.endswith(b"\n"):
                analyst, key, answers = json.loads(line)
                self.promised[analyst, key] = answers
        self.check()

    def check(self) -> None:
        """Nothing that was answered is missing, and nobody has spent more than they have."""
        with open_ledger(self.where, name=self.name, wait=120, create=True) as ledger:
            self.books.read(whole_events(ledger, self.books.count))
        answered = {q: a for q, a in self.promised.items() if "refused" not in a[0]}
        refused = {q: a[0]["refused"] for q, a in self.promised.items() if "refused" in a[0]}
        self.books.kept(answered)
        assert refused == {q: self.books.refused[q] for q in refused}

    def finish(self) -> None:
        """Everything that was ever answered is answered alike, and the chain is whole."""
        child = os.fork()
        if not child:
            try:
                with self.open() as service:
                    for analyst, key in self.promised:
                        thread, at = map(int, key.split("-"))
                        assert self.ask(service, thread, at) == self.promised[analyst, key]
                os._exit(0)
            finally:
                os._exit(1)
        assert os.waitpid(child, 0)[1] == 0
        self.check()
        assert verify_chain(self.where, name=self.name) == []


def main(where: str, name: str, mechanism: str, scheduler: str, rounds: int, seed: int) -> None:
    # Loads the samplers, so that the copies need not.
    ExactNoise().laplace(1.0, 1)
    killing = Killing(where, name, mechanism, scheduler, seed)
    for turn in range(rounds):
        killing.one_round(turn)
    killing.finish()
    bought = sum(a[0].get("source") == "measured" for a in killing.promised.values())
    print(len(killing.promised), bought)


if __name__ == "__main__":
    place, called, how, order, lives, start = sys.argv[1:]
    main(place, called, how, order, int(lives), int(start))
