"""Parameters: what may stand in a path or after its question mark, described and read in one place."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Generic, TypeVar
from urllib.parse import parse_qsl

from sharewell.service.http.call import Call
from sharewell.service.http.problems import Refused

Value = TypeVar("Value")


@dataclass(frozen=True)
class Parameter(ABC, Generic[Value]):
    """One parameter of the query: its name, what it is for, and what it is if left out."""

    name: str
    meaning: str
    default: Value

    def of(self, call: Call) -> Value:
        """What a request says."""
        text = call.query_params.get(self.name)
        return self.default if text is None else self.read(text)

    @abstractmethod
    def read(self, text: str) -> Value:
        """Read a text; refuses what is no such value."""

    @property
    @abstractmethod
    def schema(self) -> dict[str, Any]:
        """Which values there are, as JSON Schema."""

    @property
    def described(self) -> dict[str, Any]:
        """The parameter, as OpenAPI has it."""
        schema = {**self.schema, "default": self.default}
        return {"name": self.name, "in": "query", "description": self.meaning, "schema": schema}


@dataclass(frozen=True)
class Whole(Parameter[int]):
    """A whole number between two bounds, both included."""

    low: int
    high: int

    def read(self, text: str) -> int:
        """Read a text of digits."""
        if len(text) <= 20 and text.isascii() and text.removeprefix("-").isdigit():
            value = int(text)
            if self.low <= value <= self.high:
                return value
        raise invalid(f"{self.name} must be a whole number from {self.low} to {self.high}.")

    @property
    def schema(self) -> dict[str, Any]:
        """An integer."""
        return {"type": "integer", "minimum": self.low, "maximum": self.high}


@dataclass(frozen=True)
class Seconds(Parameter[float]):
    """A time, from none to `most`."""

    most: float

    def read(self, text: str) -> float:
        """Read a decimal number."""
        try:
            value = float(text) if len(text) <= 40 and text.isascii() and "_" not in text else math.nan
        except ValueError:
            value = math.nan
        if not 0 <= value <= self.most:
            raise invalid(f"{self.name} must be a number of seconds from 0 to {self.most:g}.")
        return value

    @property
    def schema(self) -> dict[str, Any]:
        """A number."""
        return {"type": "number", "minimum": 0, "maximum": self.most}


@dataclass(frozen=True)
class Flag(Parameter[bool]):
    """True or false."""

    def read(self, text: str) -> bool:
        """Read one of the two words."""
        if text not in ("true", "false"):
            raise invalid(f"{self.name} must be true or false.")
        return text == "true"

    @property
    def schema(self) -> dict[str, Any]:
        """A boolean."""
        return {"type": "boolean"}


AFTER = Whole("after", "Only what comes after this number; `next` of the page before.", -1, -1, 2**53)
LIMIT = Whole("limit", "How many at the most.", 100, 1, 1000)
WAIT = Seconds("wait", "How long to wait for the answer, in seconds.", 0.0, 60.0)
DONATE = Flag("donate", "Whether what is left of the share goes to those who stay.", False)

IN_PATH = {
    "file": ("The file.", {"type": "string"}),
    "dataset": ("The dataset's name.", {"type": "string"}),
    "number": ("The ticket's number.", {"type": "integer", "minimum": 0}),
    "name": ("The analyst's name.", {"type": "string"}),
}


def path_parameter(name: str) -> dict[str, Any]:
    """A parameter of a path, as OpenAPI has it."""
    meaning, schema = IN_PATH[name]
    return {"name": name, "in": "path", "required": True, "description": meaning, "schema": schema}


def refuse_strangers(call: Call, known: Collection[Parameter[Any]]) -> None:
    """Refuse parameters that mean nothing or come twice: they may be slips."""
    seen: set[str] = set()
    names = {parameter.name for parameter in known}
    text = call.scope["query_string"].decode("latin-1")
    for name, _ in parse_qsl(text, keep_blank_values=True):
        if name not in names:
            hint = f"There are: {', '.join(sorted(names))}." if names else "Leave it out."
            raise invalid(f"The parameter {name[:40]!r} means nothing here.", hint)
        if name in seen:
            raise invalid(f"{name} is there twice.", "Give it once.")
        seen.add(name)


def invalid(message: str, hint: str = "") -> Refused:
    """Says that a parameter cannot be read."""
    return Refused(422, "request.invalid", message, hint=hint)
