"""Datasets on disk for the tests of desks and houses: rows, a configuration, a ledger, tokens."""

from __future__ import annotations

from pathlib import Path

from sharewell.config import read_config
from sharewell.service.dataset import DatasetService
from tests.service.beginning import begun
from tests.service.services import CONFIG, MECHANISMS, SCHEDULERS

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
    (folder / f"{name}.csv").write_text("\n".join(["age,sex", *rows]) + "\n")
    text = CONFIG.format(mechanism=MECHANISMS[mechanism], scheduler=SCHEDULERS[scheduler])
    text = text.replace("[dataset]", f'[dataset]\nname = "{name}"').replace("people.csv", f"{name}.csv")
    path = folder / f"{name}.toml"
    if "certificate" not in service:
        service += "\ncertificate = false"
    path.write_text(f"{text}\n[service]\n{service}\n")
    return begun(path)


def open_service(folder: Path, name: str = "people", **options: str) -> DatasetService:
    return DatasetService.open(read_config(write_dataset(folder, name, **options)))
