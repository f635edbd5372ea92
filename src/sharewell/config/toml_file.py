"""TOML files: their text and their tables, with a complaint that says where."""

from __future__ import annotations

import re
import tomllib
from decimal import Decimal
from pathlib import Path
from typing import Any

from sharewell.errors import ConfigError, Place


def read_text(path: Path, kind: str) -> str:
    """The text of a file; `kind` is what to give instead where there is none."""
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ConfigError(
            f"There is no file {str(path)!r}.", hint=f"Give the path of a {kind}."
        ) from None
    except (OSError, UnicodeDecodeError):
        raise ConfigError(f"The file {str(path)!r} cannot be read as UTF-8 text.") from None


def read_tables(text: str) -> dict[str, Any]:
    """The tables of a file; numbers with a point are exact."""
    try:
        return tomllib.loads(text, parse_float=Decimal)
    except tomllib.TOMLDecodeError as error:
        raise _not_toml(error) from None


def _not_toml(error: tomllib.TOMLDecodeError) -> ConfigError:
    found = re.search(r"^(?P<what>.*?) \(at line (?P<line>\d+), column (?P<column>\d+)\)$", str(error))
    if not found:
        return ConfigError(f"The file is not TOML: {error}.")
    return ConfigError(
        f"The file is not TOML: {found['what']}.",
        where=Place(int(found["line"]), int(found["column"])),
        hint="Texts need quotes, and a table begins with its name in brackets.",
    )
