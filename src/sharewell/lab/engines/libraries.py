"""The libraries that only the lab needs, asked for when they are first used."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sharewell.errors import ConfigError


@contextmanager
def lab_libraries() -> Iterator[None]:
    """Turn a library that is not installed into a sentence that says how to install it."""
    try:
        yield
    except ModuleNotFoundError as missing:
        if (missing.name or "").startswith("sharewell"):
            raise
        raise ConfigError(
            f"The lab needs {missing.name}, which is not installed.",
            hint="Run `make lab` in a checkout, or pip install 'sharewell[lab]'.",
        ) from missing
