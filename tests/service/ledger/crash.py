"""Kills a writer at random moments, again and again, and looks at what it leaves behind.

Run as a program of its own, `python -m tests.service.ledger.crash LEDGER NAME ROUNDS SEED`, because it
forks: each writer is a copy of this process, which has a single thread. It prints how many events were
promised before the deaths of their writers.
"""

from __future__ import annotations

import os
import random
import signal
import struct
import sys
import threading
import time

from sharewell.privacy.ledger import Done
from sharewell.service.ledger import open_ledger, verify_chain

THREADS = 8
PROMISE = struct.Struct("!QQ")


def write_until_killed(where: str, name: str, pipe: int, start: int) -> None:
    """Append from many threads, and report each number only when `append` has returned it."""
    ledger = open_ledger(where, name=name, wait=120, create=True)

    def work(thread: int) -> None:
        for i in range(start + thread, sys.maxsize, THREADS):
            if i % 3:
                os.write(pipe, PROMISE.pack(ledger.append(Done(str(i))), i))
            else:
                first = ledger.append_many([Done(str(i)), Done(f"{i} again")])
                os.write(pipe, PROMISE.pack(first, i))

    os.write(pipe, b"!")
    for thread in range(THREADS):
        threading.Thread(target=work, args=(thread,)).start()


def one_round(where: str, name: str, chance: random.Random, start: int) -> dict[int, int]:
    """Let a writer live for a moment; give the numbers that it was promised."""
    mine, theirs = os.pipe()
    child = os.fork()
    if not child:
        os.close(mine)
        write_until_killed(where, name, theirs, start)
        signal.pause()
    os.close(theirs)
    with os.fdopen(mine, "rb") as pipe:
        assert pipe.read(1) == b"!"
        # Some are killed at their first event, some after a few, however slow they are.
        promised = pipe.read(PROMISE.size * chance.choice((0, 1, 2, 8)))
        time.sleep(chance.uniform(0, 0.06))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        promised += pipe.read()
    whole = len(promised) - len(promised) % PROMISE.size
    return dict(PROMISE.iter_unpack(promised[:whole]))


def main(where: str, name: str, rounds: int, seed: int) -> None:
    open_ledger(where, name=name, create=True).close()
    chance = random.Random(seed)
    promised: dict[int, int] = {}
    for turn in range(rounds):
        new = one_round(where, name, chance, turn * 1_000_000)
        assert not new.keys() & promised.keys(), "a number was given twice"
        promised |= new
        with open_ledger(where, name=name, wait=120, create=True) as ledger:
            events = [event.analyst for event in ledger.events() if isinstance(event, Done)]
        missing = [
            number for number, what in promised.items() if events[number : number + 1] != [str(what)]
        ]
        assert not missing, f"promised and lost: {missing}"
        halves = [n for n, what in enumerate(events) if what.isdigit() and not int(what) % 3]
        torn = [n for n in halves if events[n + 1 : n + 2] != [f"{events[n]} again"]]
        assert not torn, f"stored by half: {torn}"
        found = verify_chain(where, name=name)
        assert not found, found
    print(len(promised))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
