"""The stage: the demonstration's dataset in a folder, and a server for it."""

from __future__ import annotations

import shutil
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from sharewell import datasets
from sharewell.config import read_config
from sharewell.errors import Closed, ConfigError
from sharewell.service.access import Access, Role
from sharewell.service.house import House
from sharewell.service.http.app import create_app
from sharewell.service.http.serving import Server, bind

HOST = "127.0.0.1"


@dataclass(frozen=True)
class Stage:
    """Where the service is, what it was started from, and everybody's token."""

    url: str
    config: Path
    tokens: dict[str, str]


@contextmanager
def set_up(folder: Path, port: int | None) -> Iterator[Stage]:
    """Serve the demonstration's dataset from a folder, until it is left; any free port if None."""
    config = write_dataset(folder)
    tokens = give_out_tokens(config)
    listening = _bind(port)
    # As `sharewell serve` would be told: names that a page from elsewhere could not use.
    app = create_app(None, allowed_hosts={"localhost", HOST})
    opened = threading.Event()
    server = Server(app, lambda: House.open([config]), lambda house: opened.set())
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, name="demo")
    thread.start()
    try:
        while not opened.wait(0.05):
            if not thread.is_alive():
                raise server.failure or Closed("The demonstration's server has ended.")
        yield Stage(f"http://{HOST}:{listening.getsockname()[1]}", config, tokens)
    finally:
        server.should_exit = True
        thread.join()
        listening.close()


def write_dataset(folder: Path) -> Path:
    """Put the bundled table and its configuration into a folder."""
    table = datasets.massachusetts().path
    shutil.copy(table, folder / table.name)
    config = folder / "sharewell.toml"
    config.write_text((resources.files(__package__) / "sharewell.toml").read_text("utf-8"), "utf-8")
    return config


def give_out_tokens(path: Path) -> dict[str, str]:
    """A new token for every analyst and every curator."""
    config = read_config(path)
    access = Access(config.service.access)
    roles: dict[str, Role] = dict.fromkeys(config.shares, "analyst")
    roles |= dict.fromkeys(config.service.curators, "curator")
    return {name: access.issue(name, role) for name, role in roles.items()}


def _bind(port: int | None) -> socket.socket:
    """The port that was asked for, or else the usual one if it is free, or any."""
    if port is not None:
        return bind(HOST, port)
    try:
        return bind(HOST, 8080)
    except ConfigError:
        return bind(HOST, 0)
