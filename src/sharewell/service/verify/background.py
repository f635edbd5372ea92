"""Verification of a ledger that is being served: in a process of low priority, one at a time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import suppress
from threading import Lock, Thread
from typing import Any

from sharewell import wire
from sharewell.config import Config
from sharewell.errors import RequestError, SharewellError
from sharewell.service.verify.verification import verify

#: The lowest priority.
NICENESS = 19


class BackgroundVerification:
    """Verifies the ledgers of one server, one at a time, each in a process that others go before.

    Privacy: the process reads the ledger only, as `sharewell verify` does.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._process: subprocess.Popen[str] | None = None
        self._status: dict[str, wire.VerificationStatus] = {}

    def status(self, dataset: str) -> wire.VerificationStatus:
        """How far the last verification of a dataset has come, or what it found."""
        return self._status.get(dataset, wire.VerificationStatus(state="none"))

    def start(self, config: Config) -> wire.VerificationStatus:
        """Begin to verify a dataset's ledger; if that one is being verified, it goes on."""
        with self._lock:
            if self._process is not None:
                if self.status(config.name).state == "running":
                    return self.status(config.name)
                raise RequestError(
                    "Another ledger is being verified.", hint="Try again when that has ended."
                )
            command = [sys.executable, "-m", __name__]
            # The ledger's address may contain a password: it is not an argument, which others can see.
            self._process = subprocess.Popen(  # noqa: S603
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
            )
            started = wire.VerificationStatus(state="running", check="chain")
            self._status[config.name] = started
            Thread(
                target=self._follow, args=(self._process, config), name="verification", daemon=True
            ).start()
            return started

    def close(self) -> None:
        """Stop what is running."""
        with self._lock:
            if self._process is not None:
                self._process.kill()

    def _follow(self, process: subprocess.Popen[str], config: Config) -> None:
        """Read the status from the process until it ends."""
        with process, suppress(BrokenPipeError, ValueError):
            job = {"ledger": str(config.service.ledger), "name": config.name}
            if process.stdin and process.stdout:
                process.stdin.write(json.dumps(job))
                process.stdin.close()
                for line in process.stdout:
                    found = wire.VerificationStatus.model_validate_json(line)
                    self._status[config.name] = found
        with self._lock:
            self._process = None
            if self.status(config.name).state == "running":
                problem = "The verification was interrupted."
                self._status[config.name] = wire.VerificationStatus(state="failed", message=problem)


def _report(**fields: Any) -> None:
    sys.stdout.write(wire.VerificationStatus(**fields).model_dump_json() + "\n")
    sys.stdout.flush()


def main() -> None:
    """Verify the ledger that standard input names; write the status to standard output."""
    if hasattr(os, "nice"):
        os.nice(NICENESS)
    job = json.load(sys.stdin)
    try:
        found = verify(
            job["ledger"],
            name=job["name"],
            progress=lambda check, done, of: _report(state="running", check=check, done=done, of=of),
        )
    except SharewellError as error:
        _report(state="failed", message=error.message)
        return
    plain = found.to_json()
    _report(
        state="done", ok=found.ok, events=found.events, head=plain["head"], checks=tuple(plain["checks"])
    )


if __name__ == "__main__":
    main()
