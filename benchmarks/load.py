"""An open load above what the server can take: how late its answers are, and what a refusal costs.

Requests come at one and a half times the rate that a core can serve, however slowly they are answered.
The server answers some, and refuses the others with 503 and Retry-After.
"""

from __future__ import annotations

import tempfile
from itertools import islice
from pathlib import Path

from benchmarks.http import (
    ASK,
    SERVICE,
    TEXTS,
    cpu_of,
    measure,
    prepare,
    serving,
    warm_up,
)
from benchmarks.questions import ANALYSTS, questions
from benchmarks.ratio import Ratio
from benchmarks.traffic import offer, post

#: How many connections there are while an answer is measured alone: few enough that none is refused.
FEW = 32
#: How long the load lasts, in seconds, and how many times what a core can serve it offers.
DURATION, TIMES = 15.0, 1.5
#: How old a question may become until it is taken up, in seconds. An answer may wait as long again for
#: the event loop on its way out; its slot and the delay that is not measured yet come on top.
MOST_QUEUED, MARGIN = 2.0, 1.0
LIMIT = f"max_queue_seconds = {MOST_QUEUED}\n"


def run() -> list[Ratio]:
    with tempfile.TemporaryDirectory() as name:
        tokens = prepare(Path(name), SERVICE + LIMIT)
        texts = list(islice(questions(), TEXTS))
        asks = [
            post(ASK, {"sql": texts[at % TEXTS]}, tokens[at % ANALYSTS])
            for at in range(ANALYSTS * TEXTS)
        ]
        with serving(Path(name)) as (port, process):
            warm_up(port, tokens, texts)
            alone = measure(port, process, [asks[at::FEW] for at in range(FEW)])
            before = cpu_of(process)
            replies = offer(port, asks, TIMES / alone.cpu, DURATION)
            cpu = cpu_of(process) - before
    answered = sorted(reply.seconds for reply in replies if reply.status == 200)
    refused = sorted(reply.seconds for reply in replies if reply.status == 503 and reply.retry_after)
    if not refused or len(answered) + len(refused) < len(replies):
        raise SystemExit("An overloaded server must answer, or refuse with 503 and Retry-After.")
    load = f"{TIMES / alone.cpu:.0f} a second, {len(refused) / len(replies):.0%} refused"
    refusal = (cpu - len(answered) * alone.cpu) / len(refused)
    most = 2 * MOST_QUEUED + MARGIN
    return [
        Ratio(f"open load, {load}: answer, p99", _late(answered), "its limit", most, 1),
        Ratio("open load: refusal, p99", _late(refused), "its limit", MOST_QUEUED + MARGIN, 1),
        Ratio("open load: CPU of a refusal with 503", refusal, "an answer", alone.cpu, 1),
    ]


def _late(seconds: list[float]) -> float:
    """The 99th percentile of sorted times."""
    return seconds[round(0.99 * len(seconds)) - 1]
