"""Traffic from a process of its own, over many connections: as fast as answered, or at a fixed rate."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import cycle
from typing import Any

#: The connections of an open load: more than wait at the same time.
OPEN = 6000
#: The requests of one connection, as bytes, in order.
Requests = list[bytes]
Line = tuple[asyncio.StreamReader, asyncio.StreamWriter]


def post(path: str, body: object, token: str = "") -> bytes:
    """A request with a JSON body, as bytes."""
    content = json.dumps(body).encode()
    head = (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n"
    )
    return head.encode() + content


def get(path: str) -> bytes:
    """A request without a body, as bytes."""
    return f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode()


def seconds(port: int, connections: list[Requests], status: str = "200") -> float:
    """The time that a server takes for all requests; every status must be the given one.

    Each connection sends its next request once the last one is answered.
    """
    return float(_run("closed", port, status, [[each.decode() for each in one] for one in connections]))


@dataclass(frozen=True)
class Reply:
    """What came back: the status, the seconds since the request was due, and Retry-After."""

    status: int
    seconds: float
    retry_after: str


def offer(port: int, requests: Requests, rate: float, duration: float) -> list[Reply]:
    """Send requests at a fixed rate, however slowly the server answers: an open load."""
    found = _run("open", port, rate, duration, [each.decode() for each in requests])
    return [Reply(*each) for each in found]


def _run(*words: object) -> Any:
    """Run a load in a process of its own: the clients' work must not count as the server's."""
    command = [sys.executable, "-m", "benchmarks.traffic"]
    ran = subprocess.run(
        command, input=json.dumps(words), stdout=subprocess.PIPE, text=True, check=True, timeout=120
    )
    return json.loads(ran.stdout)


async def _closed(port: int, status: str, connections: list[list[str]]) -> float:
    lines = [await asyncio.open_connection("127.0.0.1", port) for _ in connections]
    begun = time.perf_counter()
    pairs = zip(lines, connections, strict=True)
    await asyncio.gather(*(_send_all(line, status, mine) for line, mine in pairs))
    took = time.perf_counter() - begun
    for _, writer in lines:
        writer.close()
    return took


async def _send_all(line: Line, status: str, requests: list[str]) -> None:
    for request in requests:
        head = await _exchange(line, request.encode())
        if not head.startswith(f"http/1.1 {status}".encode()):
            raise SystemExit(head.decode())


async def _open(
    port: int, rate: float, duration: float, texts: list[str]
) -> list[tuple[int, float, str]]:
    requests = cycle([each.encode() for each in texts])
    idle: asyncio.Queue[Line] = asyncio.Queue()
    for _ in range(OPEN):
        idle.put_nowait(await asyncio.open_connection("127.0.0.1", port))
    begun = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        tasks = []
        for due in _moments(begun, rate, duration):
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            tasks.append(group.create_task(_send_one(idle, next(requests), due)))
    return [task.result() for task in tasks]


def _moments(begun: float, rate: float, duration: float) -> Iterator[float]:
    for at in range(round(rate * duration)):
        yield begun + at / rate


async def _send_one(idle: asyncio.Queue[Line], request: bytes, due: float) -> tuple[int, float, str]:
    """Send a request over the first connection that is idle."""
    line = await idle.get()
    head = await _exchange(line, request)
    idle.put_nowait(line)
    retry = head.partition(b"retry-after:")[2].partition(b"\r\n")[0].decode().strip()
    return int(head.split()[1]), time.perf_counter() - due, retry


async def _exchange(line: Line, request: bytes) -> bytes:
    """Send a request and read its response: the head, in lower case."""
    reader, writer = line
    writer.write(request)
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    length = head.partition(b"content-length:")[2].partition(b"\r\n")[0]
    await reader.readexactly(int(length))
    return head


if __name__ == "__main__":
    import uvloop

    kind, *words = json.load(sys.stdin)
    print(json.dumps(uvloop.run((_closed if kind == "closed" else _open)(*words))))
