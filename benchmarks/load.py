"""Load from a process of its own: many connections, each sending its next request once answered."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time

#: The requests of one connection, as bytes, in order.
Requests = list[bytes]


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
    """The time that a server takes for all requests; every status must be the given one."""
    words = json.dumps([port, status, [[each.decode() for each in one] for one in connections]])
    command = [sys.executable, "-m", "benchmarks.load"]
    ran = subprocess.run(command, input=words, capture_output=True, text=True, check=True)
    return float(ran.stdout)


async def _all(port: int, status: str, connections: list[Requests]) -> float:
    lines = [await asyncio.open_connection("127.0.0.1", port) for _ in connections]
    begun = time.perf_counter()
    pairs = zip(lines, connections, strict=True)
    await asyncio.gather(*(_send(*line, status, mine) for line, mine in pairs))
    took = time.perf_counter() - begun
    for _, writer in lines:
        writer.close()
    return took


async def _send(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, status: str, requests: Requests
) -> None:
    for request in requests:
        writer.write(request)
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        if not head.startswith(f"http/1.1 {status}".encode()):
            raise SystemExit(head.decode())
        length = head.partition(b"content-length:")[2].partition(b"\r\n")[0]
        await reader.readexactly(int(length))


if __name__ == "__main__":
    import uvloop

    port, status, texts = json.load(sys.stdin)
    print(uvloop.run(_all(port, status, [[each.encode() for each in one] for one in texts])))
