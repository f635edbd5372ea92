"""Datasets on disk for the tests of desks and houses: rows, a configuration, a ledger, tokens."""

from __future__ import annotations

from pathlib import Path

from sharewell.config import read_config
from sharewell.service.desk import Desk
from tests.service.brokers import CONFIG, MECHANISMS, SCHEDULERS

ROWS = 400


def write_dataset(
    folder: Path,
    name: str = "people",
    *,
    mechanism: str = "cache-reconstruct",
    scheduler: str = "none",
    service: str = "",
) -> Path:
    """Write rows and a configuration; 20 people of every age, half of them F and half M."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = [f"{row % 20},{'FM'[row // 20 % 2]}" for row in range(ROWS)]
    (folder / "people.csv").write_text("\n".join(["age,sex", *rows]) + "\n")
    text = CONFIG.format(mechanism=MECHANISMS[mechanism], scheduler=SCHEDULERS[scheduler])
    text = text.replace("[dataset]", f'[dataset]\nname = "{name}"')
    path = folder / f"{name}.toml"
    if "certificate" not in service:
        service += "\ncertificate = false"
    path.write_text(f"{text}\n[service]\n{service}\n")
    return path


def open_desk(folder: Path, name: str = "people", **options: str) -> Desk:
    return Desk.open(read_config(write_dataset(folder, name, **options)))
