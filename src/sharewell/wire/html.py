"""HTML of results for notebooks: tables with error bars, without scripts, for light and dark pages.

Text inherits the page's colour; the bars have one that is visible on both.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from sharewell.wire.result import MAX_ROWS_SHOWN, Number, Result, format_field

#: The size of a bar in pixels, and the margin for the caps of the whiskers.
WIDTH, HEIGHT, MARGIN = 180, 18, 3

BAR = "#5b8def"
CELL = "padding:3px 12px;border:none;white-space:nowrap;"
HEAD = f"{CELL}font-weight:600;border-bottom:1px solid currentColor;"
QUIET = "opacity:0.65;font-size:90%;text-align:left;padding:6px 12px 0;caption-side:bottom;"


def render_html(result: Result) -> str:
    """Render a result as an HTML table."""
    rows = result.rows[:MAX_ROWS_SHOWN]
    scales = [
        None if column.kind == "group" else Scale.of([row[at] for row in rows])
        for at, column in enumerate(result.columns)
    ]
    head = "".join(
        _heading(name, scale is not None)
        for name, scale in zip(result.column_names, scales, strict=True)
    )
    body = "".join(
        f"<tr style='background:none'>{''.join(map(_cell, row, scales))}</tr>" for row in rows
    )
    omitted = f"{escape(result.omitted)}<br>" if result.omitted else ""
    notes = "".join(f"<br>{escape(note)}" for note in result.notes)
    return (
        "<table style='border-collapse:collapse;border:none;color:inherit;"
        "font-variant-numeric:tabular-nums'>"
        f"<caption style='{QUIET}'>{omitted}{escape(result.caption)}; whiskers: 95 % intervals"
        f"{notes}</caption>"
        f"<thead><tr style='background:none'>{head}</tr></thead><tbody>{body}</tbody></table>"
    )


@dataclass(frozen=True)
class Scale:
    """The range of a column's error bars; it contains 0."""

    low: float
    high: float

    @classmethod
    def of(cls, column: Sequence[Number]) -> Scale:
        """Return the scale of all finite values and ends of a column."""
        ends = [end for field in column for end in (field.value, *(field.interval or ()))]
        finite = [end for end in ends if end is not None and math.isfinite(end)]
        return cls(min(0.0, *finite, 0.0), max(0.0, *finite, 0.0))

    def at(self, number: float) -> float:
        """Return a number's position in pixels, clipped to the range."""
        within = min(max(number, self.low), self.high)
        part = (within - self.low) / (self.high - self.low) if self.high > self.low else 0.0
        return round(MARGIN + part * (WIDTH - 2 * MARGIN), 1)


def render_bar(field: Number, scale: Scale) -> str:
    """Draw a bar from 0 to the value, with whiskers over its 95 % interval."""
    if field.value is None:
        return ""
    drawn = [_bar(scale.at(0), scale.at(field.value))]
    if field.interval is not None:
        drawn.append(_whiskers(scale.at(field.interval[0]), scale.at(field.interval[1])))
    drawn.append(_line(scale.at(0), 1, HEIGHT - 1, "0.35"))
    title = escape(repr(field))
    return (
        f"<svg width='{WIDTH}' height='{HEIGHT}' viewBox='0 0 {WIDTH} {HEIGHT}' role='img' "
        f"aria-label='{title}' style='display:block'><title>{title}</title>{''.join(drawn)}</svg>"
    )


def _bar(start: float, end: float) -> str:
    left, width = min(start, end), round(abs(end - start), 1)
    size = f"x='{left}' y='4' width='{width}' height='{HEIGHT - 8}'"
    return f"<rect {size} fill='{BAR}' fill-opacity='0.55'/>"


def _whiskers(low: float, high: float) -> str:
    middle = HEIGHT / 2
    across = f"<path d='M{low} {middle}H{high}' stroke='currentColor' stroke-width='1.5' fill='none'/>"
    return across + _line(low, middle - 3, middle + 3, "1") + _line(high, middle - 3, middle + 3, "1")


def _line(x: float, top: float, bottom: float, opacity: str) -> str:
    return (
        f"<path d='M{x} {top}V{bottom}' stroke='currentColor' stroke-width='1.2' "
        f"stroke-opacity='{opacity}' fill='none'/>"
    )


def _heading(name: str, number: bool) -> str:
    if not number:
        return f"<th style='{HEAD}text-align:left'>{escape(name)}</th>"
    return f"<th style='{HEAD}text-align:right'>{escape(name)}</th><th style='{HEAD}'></th>"


def _cell(field: Any, scale: Scale | None) -> str:
    text = escape(format_field(field))
    if scale is None:
        return f"<td style='{CELL}text-align:left'>{text}</td>"
    bar = f"<td style='{CELL}'>{render_bar(field, scale)}</td>"
    return f"<td style='{CELL}text-align:right'>{text}</td>{bar}"
