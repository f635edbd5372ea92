"""Sections: one table of a configuration file, read key by key, with a complaint for every mistake."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypeVar

from sharewell.errors import ConfigError, SharewellError
from sharewell.privacy.budget import amount

Made = TypeVar("Made")


def blame(key: str, make: Callable[[], Made]) -> Made:
    """What `make` makes; where it complains, the complaint with the key that it is about."""
    try:
        return make()
    except ConfigError:
        raise
    except SharewellError as error:
        raise ConfigError(f"{key}: {error.message}", hint=error.hint) from None


class Section:
    """One table of the file, read key by key; whatever is left in the end is unknown."""

    def __init__(self, values: Any, path: str) -> None:
        if not isinstance(values, dict):
            raise ConfigError(f"{path} must be a table.", hint=f"Begin it with [{path}].")
        self.path = path
        self._values = values
        self._asked: set[str] = set()

    def where(self, key: str) -> str:
        """A key's full name."""
        return f"{self.path}.{key}" if self.path else key

    def has(self, key: str) -> bool:
        """Whether a key is given."""
        self._asked.add(key)
        return key in self._values

    def get(self, key: str, kinds: type | tuple[type, ...], kind: str, default: Any = ...) -> Any:
        """The value of a key, which must be of these types."""
        if not self.has(key):
            if default is ...:
                near = difflib.get_close_matches(key, self._values.keys() - self._asked, n=1)
                meant = f" Did you mean it by {near[0]}?" if near else ""
                raise ConfigError(f"{self.where(key)} is missing.{meant}", hint=f"It must be {kind}.")
            return default
        value = self._values[key]
        if not isinstance(value, kinds) or (isinstance(value, bool) and kinds is not bool):
            raise ConfigError(f"{self.where(key)} must be {kind}, not {_shown(value)}.")
        return value

    def text(self, key: str, default: Any = ...) -> Any:
        """A text."""
        return self.get(key, str, "a text in quotes", default)

    def texts(self, key: str, default: Any = ...) -> Any:
        """A list of texts."""
        found = self.get(key, list, "a list of texts", default)
        if any(not isinstance(text, str) for text in found):
            raise ConfigError(f"{self.where(key)} must be a list of texts.", hint='Write ["a", "b"].')
        return found

    def flag(self, key: str, default: bool) -> bool:
        """True or false."""
        return bool(self.get(key, bool, "true or false", default))

    def amount(self, key: str, default: Any = ...) -> Fraction:
        """An exact positive number, such as 0.1 or "1/3"."""
        value = self.get(key, (str, int, Decimal), 'a number such as 0.1 or "1/3"', default)
        return exact(value, self.where(key))

    def part(self, key: str, default: Any = ...) -> Fraction:
        """An exact number from 0 to 1."""
        value = self.get(key, (str, int, Decimal), 'a number from 0 to 1 such as "1/2"', default)
        part = Fraction(0) if str(value) in ("0", "0.0") else exact(value, self.where(key))
        if part > 1:
            raise ConfigError(f"{self.where(key)} must be at most 1, not {value}.")
        return part

    def number(self, key: str, low: float, high: float, default: Any = ...) -> float:
        """A number between two others, both possible."""
        between = f"a number from {low:,g} to {high:,g}"
        found = float(exact(self.get(key, (str, int, Decimal), between, default), self.where(key)))
        if not low <= found <= high:
            raise ConfigError(f"{self.where(key)} must be {between}, not {found:,g}.")
        return found

    def whole(self, key: str, low: int, high: int, default: Any = ...) -> int:
        """A whole number between two others, both possible."""
        between = f"a whole number from {low:,} to {high:,}"
        found = int(self.get(key, int, between, default))
        if not low <= found <= high:
            raise ConfigError(f"{self.where(key)} must be {between}, not {found:,}.")
        return found

    def choice(self, key: str, choices: Sequence[str], default: Any = ...) -> str:
        """One of several texts."""
        value = self.text(key, default)
        if value not in choices:
            raise ConfigError(
                f"{self.where(key)} cannot be {value!r}.", hint=f"Choose one of {', '.join(choices)}."
            )
        return str(value)

    def section(self, key: str) -> Section:
        """A table inside."""
        return Section(self._values.get(key, {}) if self.has(key) else {}, self.where(key))

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def sections(self) -> Iterator[tuple[str, Section]]:
        """Every table inside, by name."""
        for key in self._values:
            self._asked.add(key)
            yield key, Section(self._values[key], self.where(key))

    def end(self) -> None:
        """Refuse keys that mean nothing here."""
        for key in self._values:
            if key not in self._asked:
                near = difflib.get_close_matches(key, self._asked, n=1)
                hint = (
                    f"Did you mean {near[0]}?"
                    if near
                    else f"Known are {', '.join(sorted(self._asked))}."
                )
                raise ConfigError(f"{self.where(key)} means nothing here.", hint=hint)


def exact(value: Any, key: str) -> Fraction:
    """An exact positive amount."""
    try:
        return amount(value, key)
    except SharewellError as error:
        raise ConfigError(error.message, hint=error.hint) from None


def _shown(value: Any) -> str:
    kinds = {bool: "true or false", str: "a text", int: "a whole number", Decimal: "a number"}
    return next((name for kind, name in kinds.items() if isinstance(value, kind)), "something else")
