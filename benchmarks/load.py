"""The load: many connections from a process of its own, each sending its next request when answered."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time

#: One connection's requests, one after the other, as the bytes that are sent.
Requests = list[bytes]


def post(path: str, body: object, token: str = "") -> bytes:
    """A request as bytes."""
    content = json.dumps(body).encode()
    head = (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n"
    )
    return head.encode() + content


def seconds(port: int, connections: list[Requests]) -> float:
    """How long a server takes for all requests; every reply must be 200."""
    words = json.dumps([port, [[each.decode() for each in one] for one in connections]])
    command = [sys.executable, "-m", "benchmarks.load"]
    ran = subprocess.run(command, input=words, capture_output=True, text=True, check=True)
    return float(ran.stdout)


async def _all(port: int, connections: list[Requests]) -> float:
    lines = [await asyncio.open_connection("127.0.0.1", port) for _ in connections]
    begun = time.perf_counter()
    await asyncio.gather(*(_send(*line, mine) for line, mine in zip(lines, connections, strict=True)))
    took = time.perf_counter() - begun
    for _, writer in lines:
        writer.close()
    return took


async def _send(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, requests: Requests) -> None:
    for request in requests:
        writer.write(request)
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        if not head.startswith(b"http/1.1 200"):
            raise SystemExit(head.decode())
        length = head.partition(b"content-length:")[2].partition(b"\r\n")[0]
        await reader.readexactly(int(length))


if __name__ == "__main__":
    import uvloop

    port, texts = json.load(sys.stdin)
    print(uvloop.run(_all(port, [[each.encode() for each in one] for one in texts])))
