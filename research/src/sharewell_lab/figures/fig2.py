"""Figure 2, the query limit: two streams that cannot be told apart until it is too late."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sharewell_lab.estimates import mean
from sharewell_lab.figures import style
from sharewell_lab.limit import REALISED, LimitNumbers
from sharewell_lab.theory.query_limit import Stream

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: The first analyst, and those who come later, in turns.
FIRST = style.BLUE
LATER = ("#f0c069", style.VERMILION)
_IN_BAR: dict[str, Any] = {"ha": "center", "va": "center", "fontweight": "bold", "fontsize": 9.5}


def draw(numbers: LimitNumbers) -> Figure:
    """The two streams as bars of arrivals, the limit's numbers, and what mechanisms answer."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10.4, 6.4), layout="constrained")
    grid = figure.add_gridspec(2, 2, height_ratios=(0.85, 1), width_ratios=(1, 1.25))
    _streams(figure.add_subplot(grid[0, :]), numbers)
    _limits(figure.add_subplot(grid[1, 0]), numbers)
    _measured(figure.add_subplot(grid[1, 1]), numbers)
    limit = numbers.limit
    figure.suptitle(
        f"The query limit: alpha = {limit.alpha:.4g} people, epsilon = {float(limit.epsilon):g}, "
        f"k = {limit.analysts} analysts"
    )
    return figure


def _streams(panel: Axes, numbers: LimitNumbers) -> None:
    streams, limit = numbers.streams, numbers.limit
    for row, stream in ((1, streams.one_asks), (0, streams.others_come)):
        places = np.arange(len(stream))
        panel.bar(
            places, 0.62, 1.0, row - 0.31, align="edge", color=_colours(stream), ec="white", lw=0.35
        )
    for analyst, (start, end) in enumerate(_runs(streams.others_come), start=1):
        middle, wide = (start + end) / 2, end - start
        name = f"analyst 1: {wide} hard queries" if analyst == 1 else str(analyst)
        panel.text(middle, 0, name, color="white" if analyst == 1 else "black", **_IN_BAR)
    panel.text(
        *(len(streams.one_asks) / 2, 1, f"analyst 1: {len(streams.one_asks)} hard queries"),
        color="white",
        **_IN_BAR,
    )
    same = streams.same_until
    panel.plot([same, same], [-0.42, 1.42], color="black", lw=1.4)
    panel.text(same + 1, 1.46, f"the same up to here: {same} queries, the joint limit", va="bottom")
    panel.text(
        *((same + len(streams.others_come)) / 2, -0.42),
        f"each other analyst comes with the {_floor(limit.alone)} that they would have had alone",
        ha="center",
        va="top",
    )
    panel.set(ylim=(-0.85, 1.85), xlim=(-1, len(streams.hard) + 1), xlabel="order of arrival")
    panel.set_yticks([0, 1], ["Q'': others\ncome", "Q': one asks\neverything"])
    panel.tick_params(axis="y", length=0)
    panel.grid(visible=False)
    panel.spines["left"].set_visible(False)


def _limits(panel: Axes, numbers: LimitNumbers) -> None:
    limit = numbers.limit
    bars = (
        ("alone, (αε/k)$^{2/3}$", limit.alone, style.VERMILION, ""),
        ("all alone, k times that", limit.all_alone, style.VERMILION, "////"),
        ("together, (αε)$^{2/3}$", limit.together, FIRST, ""),
        ("of this, held back for others", limit.held_back, style.GREY, ""),
        ("usable by who is first", limit.usable, FIRST, "////"),
    )
    for row, (_, value, colour, hatch) in enumerate(bars):
        panel.barh(row, value, 0.62, color="white" if hatch else colour, ec=colour, hatch=hatch)
        panel.annotate(
            f"{value:.1f}", (value, row), (4, 0), textcoords="offset points", va="center", fontsize=9
        )
    panel.set_yticks(range(len(bars)), [label for label, *_ in bars])
    panel.invert_yaxis()
    panel.set(xlabel="hard queries within alpha", xlim=(0, 1.16 * limit.all_alone))
    panel.set_title("The limit", fontweight="bold", loc="left")
    panel.grid(axis="y", visible=False)


def _measured(panel: Axes, numbers: LimitNumbers) -> None:
    """Counts at a share (hollow) and at the whole budget (filled); whiskers are 90 % intervals."""
    names = list(numbers.alone)
    epsilon, analysts = float(numbers.limit.epsilon), numbers.limit.analysts
    for row, name in enumerate(names):
        for shift, counts, filled, label in (
            (-0.18, numbers.alone[name], False, f"with a share, epsilon = {epsilon / analysts:g}"),
            (0.18, numbers.together[name], True, f"with all, epsilon = {epsilon:g}"),
        ):
            found, colour = mean(counts), style.COLOURS[name]
            panel.barh(
                *(row + shift, found.value, 0.34),
                color=colour if filled else "white",
                ec=colour,
                lw=1.2,
                label=label if name == "PMW" else None,
            )
            if found.high > found.low:
                panel.plot([found.low, found.high], [row + shift] * 2, color="black", lw=1.4)
            all_of_them = " (all)" if found.value == numbers.hard else ""
            panel.annotate(
                f"{found.value:.0f}{all_of_them}",
                (max(found.value, found.high), row + shift),
                (4, 0),
                textcoords="offset points",
                va="center",
                fontsize=8,
                bbox={"fc": "white", "ec": "none", "pad": 0.6},
            )
    labels = [f"{name}\n({'realised' if name in REALISED else 'expected'})" for name in names]
    panel.set_yticks(range(len(names)), labels, fontsize=8)
    # Room below the last bar, for the name of the line.
    panel.set_ylim(len(names) + 0.15, -0.5)
    panel.set(xlabel=f"of {numbers.hard} hard queries, within alpha", xlim=(0, 1.18 * numbers.hard))
    panel.set_title("What mechanisms answer", fontweight="bold", loc="left")
    panel.legend(loc="upper right", fontsize=8, borderaxespad=0)
    panel.axvline(numbers.limit.together, color=FIRST, lw=1.4, ls=(0, (4, 2)))
    panel.annotate(
        "the limit of all together",
        (numbers.limit.together, 0),
        (4, 2),
        xycoords=("data", "axes fraction"),
        textcoords="offset points",
        va="bottom",
        fontsize=7.5,
        color=FIRST,
    )
    panel.grid(axis="y", visible=False)


def _colours(stream: Stream) -> list[str]:
    names = list(dict.fromkeys(name for name, _ in stream))
    colour = {name: LATER[at % 2] for at, name in enumerate(names)} | {names[0]: FIRST}
    return [colour[name] for name, _ in stream]


def _runs(stream: Stream) -> list[tuple[int, int]]:
    """Where every analyst's queries start and end; each asks theirs one after the other."""
    places: dict[str, list[int]] = {}
    for place, (name, _) in enumerate(stream):
        places.setdefault(name, []).append(place)
    return [(mine[0], mine[-1] + 1) for mine in places.values()]


def _floor(value: float) -> int:
    return int(value * (1 + 1e-12))
