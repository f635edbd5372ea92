"""The desiderata of the paper, by their definitions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from sharewell.sharing.certificate import ratio

Name = TypeVar("Name")


def max_ratio_error(alone: Mapping[Name, float], joint: Mapping[Name, float]) -> float:
    """The largest utility ratio of any analyst, alone against joint."""
    return max(ratio(alone[analyst], joint[analyst]) for analyst in joint)


def interference(without: Mapping[Name, float], joint: Mapping[Name, float]) -> float:
    """The largest utility ratio of any analyst, without one other against joint."""
    return max(ratio(without[analyst], joint[analyst]) for analyst in joint)
