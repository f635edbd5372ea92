"""The one place where the tests begin datasets."""

from __future__ import annotations

from pathlib import Path

from sharewell.config import read_config
from sharewell.service.lifecycle import begin


def begun(path: Path) -> Path:
    """A configuration whose dataset is begun, now or before."""
    config = read_config(path)
    if not config.witness.exists():
        begin(config)
    return path
