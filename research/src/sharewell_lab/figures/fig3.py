"""Figure 3, the main experiment: every contestant by four measures, one column a probability."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sharewell_lab.figures import style
from sharewell_lab.figures.style import Band, mean_band, median_band
from sharewell_lab.results import OutcomeTable, Scenario, contestants

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


class MeasureRow(NamedTuple):
    """One measure: what it is called, what it is read from, and whether it is a ratio."""

    label: str
    realised: str
    expected: str | None
    ratio: bool
    scale: float = 1.0


ROWS = (
    MeasureRow("answers within\nalpha (%)", "accuracy", "expected_accuracy", False, 100.0),
    MeasureRow(
        "max ratio error\n(above 1: an analyst\nis better off alone)", "ratio", "expected_ratio", True
    ),
    MeasureRow(
        "interference\n(above 1: an analyst gains\nif another leaves)",
        "interference",
        "expected_interference",
        True,
    ),
    MeasureRow("time to completion\n(steps)", "steps", None, False),
)


def draw(run: OutcomeTable, study: str, epsilon: float, title: str = "") -> Figure:
    """Twelve panels: means or medians, with whiskers that hold the middle 90 % of the trials."""
    from matplotlib.figure import Figure

    settings = [s for s in run if s.study == study and s.epsilon == epsilon]
    names = contestants(settings)
    probabilities = sorted({s.p for s in settings})
    figure = Figure(figsize=(3.3 * len(probabilities) + 0.7, 9.4), layout="constrained")
    panels = figure.subplots(len(ROWS), len(probabilities), sharex=True, sharey="row", squeeze=False)
    for row, measure in zip(panels, ROWS, strict=True):
        bands = {s: _bands(run, s, measure) for s in settings}
        top = _top(measure, [band for pair in bands.values() for band in pair if band])
        low = min(band.low for pair in bands.values() for band in pair if band)
        for panel, p in zip(row, probabilities, strict=True):
            for s in settings:
                if s.p == p:
                    _mark(panel, names.index(s.contestant), s.contestant, bands[s], top)
            if measure.ratio:
                style.ratio_axis(panel, top, low)
            else:
                panel.set_ylim(_bottom(measure, low), top)
            panel.grid(axis="x", visible=False)
        row[0].set_ylabel(measure.label)
    for panel, p in zip(panels[0], probabilities, strict=True):
        panel.set_title(f"p = {p:g}", fontweight="bold")
        _guess(panel, run, [s for s in settings if s.p == p and s.contestant == "Uniform"])
    for panel in panels[-1]:
        panel.set_xticks(range(len(names)), [name.replace(" ", "\n") for name in names], fontsize=8)
        panel.set_xlim(-0.6, len(names) - 0.4)
    trials = max(len(run[s].trial) for s in settings)
    figure.suptitle(f"{title or study}, epsilon = {epsilon:g}, {trials:,} trials", fontweight="bold")
    _legend(figure)
    return figure


def _bands(run: OutcomeTable, setting: Scenario, measure: MeasureRow) -> tuple[Band | None, Band | None]:
    """What was realised, and what was to be expected, where either is known."""
    found: list[Band | None] = []
    for name in (measure.realised, measure.expected):
        values = np.array([np.nan]) if name is None else getattr(run[setting], name)
        band = median_band if measure.ratio else mean_band
        found.append(None if np.isnan(values).any() else band(measure.scale * values))
    return found[0], found[1]


def _top(measure: MeasureRow, bands: list[Band]) -> float:
    if measure.ratio:
        return style.top_of(bands)
    return 104.0 if measure.scale == 100 else 1.08 * max(band.high for band in bands)


def _bottom(measure: MeasureRow, low: float) -> float:
    """Where an axis begins: shares of answers below the worst need no room."""
    return max(0.0, 10 * math.floor((low - 4) / 10)) if measure.scale == 100 else 0.0


def _mark(
    panel: Axes, place: int, name: str, bands: tuple[Band | None, Band | None], top: float
) -> None:
    """One contestant: a filled mark for what was realised, a hollow one for what was to be expected."""
    both = bands[0] is not None and bands[1] is not None
    for band, filled in zip(bands, (True, False), strict=True):
        if band is None:
            continue
        at = place + (0.0 if not both else -0.17 if filled else 0.17)
        colour = style.COLOURS.get(name, style.BLACK)
        ends = [value if math.isfinite(value) else top for value in (band.low, band.high)]
        panel.plot([at, at], ends, color=colour, lw=1.6 if filled else 1.0, zorder=2)
        middle = band.middle if math.isfinite(band.middle) else top
        panel.plot(
            *(at, middle),
            marker=style.MARKS.get(name, "o"),
            ms=6.5,
            mfc=colour if filled else "white",
            mec=colour,
            mew=1.2,
            ls="none",
            zorder=3,
            clip_on=False,
        )
        if filled:
            style.name_infinite(panel, at, top, band.infinite)


def _guess(panel: Axes, run: OutcomeTable, settings: list[Scenario]) -> None:
    """The accuracy of the uniform guess as a line, since all that is below it is worth nothing."""
    for setting in settings:
        level = 100 * float(run[setting].accuracy.mean())
        panel.axhline(level, color=style.GREY, lw=1, ls=(0, (1, 1.2)), zorder=1.5)


def _legend(figure: Figure) -> None:
    from matplotlib.lines import Line2D

    marks = [
        Line2D([], [], marker="o", ls="none", color=style.BLACK, label="realised errors"),
        Line2D([], [], marker="o", ls="none", mfc="white", color=style.BLACK, label="expected errors"),
        Line2D([], [], color=style.BLACK, lw=1.6, label="the middle 90 % of trials"),
        Line2D([], [], color=style.GREY, lw=1, ls=(0, (1, 1.2)), label="uniform guess"),
    ]
    figure.legend(handles=marks, ncols=4, loc="outside lower center")
