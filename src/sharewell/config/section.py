"""TOML files as typed values: tables read key by key, and errors that name the key."""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from sharewell.errors import (
    ConfigError,
    Location,
    SharewellError,
    SqlError,
    Suggestion,
    all_together,
)
from sharewell.options import REQUIRED, Option, ValueType
from sharewell.query.attribute import Boolean
from sharewell.query.domain import Domain
from sharewell.query.sql import compile_sql

Made = TypeVar("Made")

#: The maximum length of a name.
MAX_NAME = 100

# A name of dots alone would be another folder in a URL.
_PERSON = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*", re.ASCII)
_TABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


def read_text(path: Path, kind: str) -> str:
    """The text of a file of some kind, such as `sharewell.toml`."""
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ConfigError(
            f"Cannot read {str(path)!r}: no such file.", hint=f"Give the path of a {kind}."
        ) from None
    except UnicodeDecodeError:
        raise ConfigError(f"Cannot read {str(path)!r}: it is not UTF-8 text.") from None
    except OSError as error:
        raise ConfigError(f"Cannot read {str(path)!r}: {error.strerror}.") from None


def read_tables(text: str) -> dict[str, Any]:
    """The tables of a TOML file; numbers with a decimal point are exact."""
    try:
        return tomllib.loads(text, parse_float=Decimal)
    except tomllib.TOMLDecodeError as error:
        found = re.search(
            r"^(?P<what>.*?) \(at line (?P<line>\d+), column (?P<column>\d+)\)$", str(error)
        )
        raise ConfigError(
            f"Invalid TOML: {found['what'] if found else error}.",
            where=Location(int(found["line"]), int(found["column"])) if found else None,
            hint="Strings need quotes, and a table begins with its name in brackets.",
        ) from None


def validate_person(name: str, key: str = "") -> str:
    """The name of an analyst or curator, if URLs and logs can hold it.

    >>> validate_person("ann.lee", "analysts")
    'ann.lee'
    """
    if len(name) <= MAX_NAME and _PERSON.fullmatch(name):
        return name
    shown = repr(name[:MAX_NAME])
    raise ConfigError(
        f"{key}: invalid name {shown}." if key else f"Invalid name {shown}.",
        hint=f"Use at most {MAX_NAME} letters a to z, digits, '_', '-' and '.'; begin with a letter.",
    )


def validate_table(name: str, key: str) -> str:
    """The name of a table, if it needs no quotes in SQL and no escapes in a URL.

    >>> validate_table("visits", "dataset.name")
    'visits'
    """
    if len(name) > MAX_NAME or not _TABLE.fullmatch(name):
        raise ConfigError(
            f"{key} cannot be {name[:MAX_NAME]!r}: SQL would require quotes around it.",
            hint=f"Use at most {MAX_NAME} letters a to z, digits and '_', and begin with a letter.",
        )
    try:
        compile_sql(f"SELECT COUNT(*) FROM {name}", Domain([Boolean("counted")]), table=name)  # noqa: S608
    except SqlError:
        raise ConfigError(
            f"{key} cannot be {name!r}: it is a keyword of SQL.",
            hint=f"Choose another name, such as {name}_table.",
        ) from None
    return name


def blame(key: str, make: Callable[[], Made]) -> Made:
    """Call `make`, and name the key in any error that it raises."""
    try:
        return make()
    except ConfigError:
        raise
    except SharewellError as error:
        raise ConfigError(f"{key}: {error.message}", hint=error.hint) from None


class Mistakes:
    """What is wrong with a file: collected while it is read, and raised together."""

    def __init__(self) -> None:
        self.found: list[ConfigError] = []

    def of(self, read: Callable[[], Any]) -> Any:
        """Call `read`, and collect the error that it raises; None if it raises one."""
        try:
            return read()
        except ConfigError as error:
            self.found.append(error)
            return None

    def check(self) -> None:
        """Raise what was collected as one error."""
        if self.found:
            raise all_together(self.found)


class Section:
    """One table of a file."""

    def __init__(self, values: Any, path: str) -> None:
        if not isinstance(values, dict):
            raise ConfigError(f"{path} must be a table.", hint=f"Begin it with [{path}].")
        self.path = path
        self._values = values
        self._known: set[str] = set()
        #: Unknown keys that a missing key was probably meant by.
        self._misspelled: set[str] = set()

    def where(self, key: str) -> str:
        """The full name of a key."""
        return f"{self.path}.{key}" if self.path else key

    def has(self, key: str) -> bool:
        """Whether a key is given."""
        self._known.add(key)
        return key in self._values

    def read(self, option: Option) -> Any:
        """The value of an option, or its default; both are validated and converted."""
        return self.get(option.name, option.type, option.default)

    def read_all(self, declared: Iterable[Option], *, given: bool = False) -> dict[str, Any]:
        """The values of options by name, or of those that are given; mistakes are raised together."""
        mistakes = Mistakes()
        values = {
            option.name: mistakes.of(partial(self.read, option))
            for option in declared
            if self.has(option.name) or not given
        }
        mistakes.check()
        return values

    def read_only(self, declared: Iterable[Option], *, given: bool = False) -> dict[str, Any]:
        """The same, and refuse all other keys."""
        mistakes = Mistakes()
        values = mistakes.of(lambda: self.read_all(declared, given=given))
        mistakes.of(self.end)
        mistakes.check()
        found: dict[str, Any] = values
        return found

    def get(self, key: str, kind: ValueType, default: Any = REQUIRED) -> Any:
        """The value of a key, or a default; both are validated and converted."""
        if self.has(key):
            return kind.read(self._values[key], self.where(key))
        if default is REQUIRED:
            raise self._missing(key, kind)
        return None if default is None else kind.read(default, self.where(key))

    def _missing(self, key: str, kind: ValueType) -> ConfigError:
        near = difflib.get_close_matches(key, self._values.keys() - self._known, n=1)
        self._misspelled |= {*near}
        meant = f" Did you misspell it as {near[0]!r}?" if near else ""
        return ConfigError(
            f"{self.where(key)} is missing.{meant}",
            hint=f"It must be {kind.words}.",
            suggestion=Suggestion(self.where(near[0]), self.where(key)) if near else None,
        )

    def section(self, key: str) -> Section:
        """A table inside; empty where it is not given."""
        return Section(self._values[key] if self.has(key) else {}, self.where(key))

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def sections(self) -> Iterator[tuple[str, Section]]:
        """Every table inside, by name."""
        for key in self._values:
            self._known.add(key)
            yield key, Section(self._values[key], self.where(key))

    def end(self) -> None:
        """Refuse unknown keys, all together."""
        mistakes: list[ConfigError] = []
        for key in self._values:
            if key in self._known | self._misspelled:
                continue
            near = difflib.get_close_matches(key, self._known, n=1)
            known = ", ".join(sorted(self._known)) or "none"
            mistakes.append(
                ConfigError(
                    f"Unknown key {self.where(key)!r}.",
                    hint=f"Did you mean {near[0]!r}?" if near else f"Known keys: {known}.",
                    suggestion=Suggestion(self.where(key), self.where(near[0])) if near else None,
                )
            )
        if mistakes:
            raise all_together(mistakes)
