"""Figure 1, the motivating experiment: one of two analysts asks more and more often."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from sharewell_lab.figures import style
from sharewell_lab.figures.style import Band, mean_band, median_band
from sharewell_lab.results import OutcomeTable, Scenario

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TITLES = {
    "PMW": "PMW",
    "Laplace": "Laplace",
    "SCR printed": "SCR as printed",
    "SCR": "SCR with estimates",
}
#: The lines of the upper row: whose answers, colour, dashes, mark, its size and whether it is filled.
#: A large hollow mark is still seen where a small filled one lies on it.
WHO = (
    ("first analyst", style.BLUE, "-", "o", 7.5, False),
    ("second analyst", style.VERMILION, (0, (5, 1.5)), "s", 3.8, True),
)


def draw(run: OutcomeTable, epsilon: float, study: str = "fig1", asked: str = "the same") -> Figure:
    """Shares of useful answers above, max ratio errors below, one column a mechanism."""
    from matplotlib.figure import Figure

    settings = [s for s in run if s.study == study and s.epsilon == epsilon]
    columns = [name for name in TITLES if any(s.contestant == name for s in settings)]
    figure = Figure(figsize=(2.6 * len(columns) + 0.6, 5.6), layout="constrained")
    panels = figure.subplots(2, len(columns), sharex=True, sharey="row", squeeze=False)
    guess = _line(run, [s for s in settings if s.contestant == "Uniform"], "accuracy")
    ratios = {}
    for column, name in enumerate(columns):
        mine = [s for s in settings if s.contestant == name]
        _shares(panels[0, column], run, mine, guess)
        panels[0, column].set_title(TITLES[name], fontweight="bold")
        ratios[name] = _line(run, mine, "ratio")
    bands = [band for line in ratios.values() for band in line.values()]
    top, low = style.top_of(bands), min(band.low for band in bands)
    for column, name in enumerate(columns):
        _ratios(panels[1, column], ratios[name], _line(run, settings, "expected_ratio", name), top)
        style.ratio_axis(panels[1, column], top, low)
        panels[1, column].set_xlabel("p, the first analyst's share of arrivals")
    panels[0, 0].set_ylabel("answers within alpha\n(% of questions)")
    panels[1, 0].set_ylabel("max ratio error\n(above 1: an analyst\nis better off alone)")
    handles, labels = panels[0, 0].get_legend_handles_labels()
    more, names = panels[1, -1].get_legend_handles_labels()
    figure.legend(handles + more, labels + names, ncols=3, loc="outside lower center")
    figure.suptitle(
        f"Two analysts ask {asked} about disjoint halves, epsilon = {epsilon:g}: bands hold 90 % of "
        f"{_trials(run, settings)} trials"
    )
    return figure


def _shares(panel: Axes, run: OutcomeTable, settings: list[Scenario], guess: dict[float, Band]) -> None:
    """Each analyst's share of useful answers, that of both, and the guess that costs nothing."""
    p = [s.p for s in settings]
    both = [mean_band(100 * run[s].accuracy) for s in settings]
    for analyst, (label, colour, dashes, mark, size, filled) in enumerate(WHO):
        bands = [mean_band(100 * run[s].accuracy_by_analyst[:, analyst]) for s in settings]
        panel.fill_between(p, _low(bands), _high(bands), color=colour, alpha=0.16, lw=0)
        panel.plot(
            *(p, _middle(bands)),
            color=colour,
            ls=dashes,
            marker=mark,
            ms=size,
            mfc=colour if filled else "none",
            lw=1.8,
            label=label,
        )
    panel.plot(p, _middle(both), color=style.BLACK, lw=1.4, label="both together")
    if guess:
        panel.plot(
            list(guess),
            [100 * band.middle for band in guess.values()],
            color=style.GREY,
            ls=(0, (1, 1.2)),
            lw=1.8,
            label="uniform guess, no budget at all",
        )
    panel.set_ylim(0, 103)
    panel.set_xlim(0.48, 1.02)
    panel.set_xticks(np.arange(0.5, 1.01, 0.1))


def _ratios(panel: Axes, line: dict[float, Band], expected: dict[float, Band], top: float) -> None:
    """The median of the max ratio error, realised and expected; what is infinite stands at the top."""
    p = list(line)
    bands = list(line.values())
    low, middle, high = (_cut(values, top) for values in (_low(bands), _middle(bands), _high(bands)))
    panel.fill_between(p, low, high, color=style.PURPLE, alpha=0.22, lw=0)
    panel.plot(
        *(p, middle),
        color=style.PURPLE,
        marker="D",
        ms=4,
        clip_on=False,
        lw=1.8,
        label="max ratio error, realised (median)",
    )
    if expected:
        panel.plot(
            list(expected),
            _cut([band.middle for band in expected.values()], top),
            color=style.GREEN,
            marker="o",
            mfc="none",
            ms=8.5,
            clip_on=False,
            ls=(0, (3, 1.5)),
            lw=1.4,
            label="by expected errors (median)",
        )
    for at, band in line.items():
        style.name_infinite(panel, at, top, band.infinite)


def _line(
    run: OutcomeTable, settings: list[Scenario], measure: str, name: str | None = None
) -> dict[float, Band]:
    """The band of a measure at every p where it is known."""
    found = {}
    for setting in settings:
        values = getattr(run[setting], measure)
        if (name is None or setting.contestant == name) and not np.isnan(values).any():
            found[setting.p] = (mean_band if measure == "accuracy" else median_band)(values)
    return found


def _trials(run: OutcomeTable, settings: list[Scenario]) -> str:
    return f"{max(len(run[s].trial) for s in settings):,}"


def _cut(values: list[float], top: float) -> list[float]:
    return [value if math.isfinite(value) else top for value in values]


def _low(bands: list[Band]) -> list[float]:
    return [band.low for band in bands]


def _middle(bands: list[Band]) -> list[float]:
    return [band.middle for band in bands]


def _high(bands: list[Band]) -> list[float]:
    return [band.high for band in bands]
