"""Figure 2, the query limit: streams that an online mechanism cannot tell apart in time."""

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
    """The streams as bars of arrivals, both readings of the limit, and what mechanisms answer."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10.8, 6.8), layout="constrained")
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
    streams = numbers.streams
    rows = {
        "Q: the others\nrepeat": streams.repeated,
        "Q': the others ask\nabout other parts": streams.disjoint,
        "Q'': one query\neach": streams.one_each,
    }
    for row, stream in enumerate(rows.values()):
        places = np.arange(len(stream))
        panel.bar(
            places, 0.62, 1.0, row - 0.31, align="edge", color=_colours(stream), ec="white", lw=0.35
        )
        if stream is streams.one_each:
            continue
        for analyst, (start, end) in enumerate(_runs(stream), start=1):
            name = f"analyst 1: {end - start} hard queries" if analyst == 1 else str(analyst)
            panel.text(
                *((start + end) / 2, row, name),
                color="white" if analyst == 1 else "black",
                **_IN_BAR,
            )
    same, each = streams.same_until, _floor(numbers.limit.norm.alone)
    panel.plot([same, same], [-0.42, 1.42], color="black", lw=1.4)
    panel.text(same + 1, -0.46, f"Q and Q' are the same up to here: {same} queries", va="bottom")
    panel.text(
        *(len(streams.one_each) + 1, 2),
        f"analysts 1 to {numbers.limit.analysts} (above, each after the first asks {each})",
        va="center",
    )
    panel.set(ylim=(2.5, -0.95), xlim=(-1, len(streams.disjoint) + 1), xlabel="order of arrival")
    panel.set_yticks(range(len(rows)), list(rows))
    panel.tick_params(axis="y", length=0)
    panel.grid(visible=False)
    panel.spines["left"].set_visible(False)


def _limits(panel: Axes, numbers: LimitNumbers) -> None:
    """The counts by both readings of alpha: independent analysts have what each would have alone."""
    limit = numbers.limit
    groups = (
        ("each error\nwithin α", limit.per_query, ("αε / k", "αε", "αε")),
        (
            "L2 norm of all\nerrors within α",
            limit.norm,
            ("(αε/k)$^{2/3}$", "k (αε/k)$^{2/3}$", "(αε)$^{2/3}$"),
        ),
    )
    for group, (_, count, formulas) in enumerate(groups):
        for place, (value, colour, label) in enumerate(
            (
                (count.alone, style.ORANGE, "one analyst, one share"),
                (count.independent, style.VERMILION, "independent analysts, in all"),
                (count.together, FIRST, "one analyst, all of ε"),
            )
        ):
            row = group + 0.27 * (place - 1)
            panel.barh(row, value, 0.24, color=colour, label=label if not group else None)
            panel.annotate(
                f"{value:.1f} = {formulas[place]}",
                (value, row),
                (4, 0),
                textcoords="offset points",
                va="center",
                fontsize=8.5,
            )
    panel.set_yticks(range(len(groups)), [label for label, *_ in groups])
    panel.set_ylim(1.95, -0.5)
    panel.set(xlabel="hard queries", xlim=(0, 1.5 * limit.per_query.together))
    panel.set_title("Two readings of the limit", fontweight="bold", loc="left")
    panel.legend(loc="lower right", fontsize=8, borderaxespad=0)
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
    for limit, name in ((numbers.limit.norm, "(αε)$^{2/3}$"), (numbers.limit.per_query, "αε")):
        if limit.together > numbers.hard:
            continue
        panel.axvline(limit.together, color=FIRST, lw=1.4, ls=(0, (4, 2)), zorder=0.5)
        panel.annotate(
            name,
            (limit.together, 0),
            (4, 2),
            xycoords=("data", "axes fraction"),
            textcoords="offset points",
            va="bottom",
            fontsize=8.5,
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
