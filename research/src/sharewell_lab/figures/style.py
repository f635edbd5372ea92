"""The style of all figures: colour-blind safe colours, distinct marks, files without dates."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sharewell_lab.results import Numbers

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Colours that colour-blind readers can distinguish (Okabe and Ito).
BLACK, GREY, ORANGE, SKY, GREEN, BLUE, VERMILION, PURPLE = (
    *("#000000", "#7a7a7a", "#E69F00", "#56B4E9", "#009E73", "#0072B2", "#D55E00", "#CC79A7"),
)
#: One more, which they can tell from these by its darkness (Tol).
WINE = "#882255"
#: Every contestant keeps a colour and a mark, so that one of the two is enough.
COLOURS = {
    "Uniform": GREY,
    "Ind": BLACK,
    "Laplace": GREEN,
    "PMW": VERMILION,
    "RR": ORANGE,
    "RS": PURPLE,
    "RS skip": WINE,
    "SCR printed": SKY,
    "SCR": BLUE,
}
MARKS = {
    "Uniform": "X",
    "Ind": "s",
    "Laplace": "h",
    "PMW": "o",
    "RR": "^",
    "RS": "v",
    "RS skip": "<",
    "SCR printed": "D",
    "SCR": "P",
}

STYLE: dict[Any, Any] = {
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e4e4e4",
    "grid.linewidth": 0.7,
    "axes.axisbelow": True,
    "legend.frameon": False,
    "svg.hashsalt": "sharewell",
    "savefig.dpi": 160,
    "savefig.facecolor": "white",
}


class Band(NamedTuple):
    """The middle of many trials, and the ends of the middle 90 % of them."""

    middle: float
    low: float
    high: float
    #: The share of trials that are infinite.
    infinite: float


@contextmanager
def paper() -> Iterator[None]:
    """Within it, figures are drawn in our style, whatever the user's own settings are."""
    import matplotlib as mpl

    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(STYLE)
        yield


def save(figure: Figure, folder: Path, name: str) -> tuple[Path, Path]:
    """Write a figure as SVG and PNG, without a date or anything else that differs from run to run."""
    folder.mkdir(parents=True, exist_ok=True)
    svg, png = folder / f"{name}.svg", folder / f"{name}.png"
    figure.savefig(svg, metadata={"Date": None})
    figure.savefig(png, metadata={"Software": None})
    return svg, png


def mean_band(values: Numbers) -> Band:
    """The mean of trials, and their 5 % and 95 % quantiles."""
    low, high = np.quantile(values, [0.05, 0.95])
    return Band(float(values.mean()), float(low), float(high), 0.0)


def median_band(values: Numbers) -> Band:
    """The median of trials, and their 5 % and 95 % quantiles, of which some may be infinite."""
    # A quantile of a kind that is always one of the trials: between 3 and infinity nothing lies halfway.
    low, high = np.quantile(values, [0.05, 0.95], method="inverted_cdf")
    return Band(float(np.median(values)), float(low), float(high), float(np.isinf(values).mean()))


def ratio_axis(panel: Axes, top: float, bottom: float = 1.0) -> None:
    """A logarithmic axis of ratios with 1 marked, up to a top where all that is infinite is drawn."""
    from matplotlib.ticker import FixedLocator, NullLocator

    panel.set_yscale("log")
    low = min(0.9, bottom / 1.15)
    panel.set_ylim(low, top)
    # Few numbers on a long axis, many on a short one.
    span = top / low
    steps = (1.0,) if span > 300 else (1.0, 2.0, 5.0) if span > 10 else (1.0, 1.2, 1.5, 2, 3, 5, 7)
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(top)) + 1)
    ticks = [step * 10.0**decade for decade in decades for step in steps]
    panel.yaxis.set_major_locator(FixedLocator([tick for tick in ticks if low <= tick <= top]))
    panel.yaxis.set_major_formatter("{x:g}")
    panel.yaxis.set_minor_locator(NullLocator())
    panel.axhline(1, color=BLACK, lw=1, zorder=1.5)


def top_of(bands: Iterable[Band]) -> float:
    """Where a ratio axis ends: above all that is finite, with room for what is not."""
    finite = [value for band in bands for value in band[:3] if math.isfinite(value)]
    return max(1.6, 1.4 * max(finite, default=1.0))


def name_infinite(panel: Axes, at: float, top: float, part: float) -> None:
    """Write above an axis in which part of the trials something is infinite."""
    if part:
        panel.annotate(
            f"∞ in\n{'<1' if part < 0.01 else round(100 * part)} %",
            (at, top),
            (0, 5),
            textcoords="offset points",
            ha="center",
            va="bottom",
            fontsize=6.5,
            annotation_clip=False,
        )
