"""The comparison as tables, a figure and a page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sharewell_lab import document
from sharewell_lab.alternatives.closing import Gain
from sharewell_lab.alternatives.comparison import SAME_SEED, Lead, Score, behind, write_scores
from sharewell_lab.document import Figure as Picture
from sharewell_lab.document import Part, Table, Text
from sharewell_lab.estimates import IntervalEstimate, mean
from sharewell_lab.figures import style
from sharewell_lab.report import replace_between

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: The first word of the product's labels.
OURS = "Sharewell"


def parts(scores: Sequence[Score], figure: Path, gains: Sequence[Gain] = ()) -> list[Part]:
    """The figure, a table for every epsilon, where Sharewell is behind, and what closing rounds add."""
    found: list[Part] = [
        Picture(figure, "Useful answers of Sharewell and its alternatives"),
    ]
    for epsilon in sorted({score.epsilon for score in scores}):
        found += [
            Text(f"**epsilon = {epsilon:g}**, in percent: all questions / the worst-off analyst's."),
            table([score for score in scores if score.epsilon == epsilon]),
        ]
    found.append(Text(ahead(scores)))
    if leads := leads_of(scores):
        found.append(behind_table(leads))
    if gains:
        found += [Text(CLOSING), closing_table(gains)]
    return found


def table(scores: Sequence[Score]) -> Table:
    """One row a contestant, one column a stream; the largest numbers of a column are bold."""
    streams = list(dict.fromkeys(score.stream for score in scores))
    names = list(dict.fromkeys(score.contestant for score in scores))
    by_place = {(score.contestant, score.stream): score for score in scores}
    most = {
        stream: tuple(
            max(getattr(score, name) for score in scores if score.stream == stream)
            for name in ("total", "worst_off")
        )
        for stream in streams
    }
    rows = []
    for name in names:
        row = [name]
        for stream in streams:
            score = by_place[name, stream]
            pair = zip((score.total, score.worst_off), most[stream], strict=True)
            row.append("/".join(_percent(value, value == best) for value, best in pair))
        rows.append(tuple(row))
    return Table(("contestant", *streams), rows)


def leads_of(scores: Sequence[Score]) -> list[Lead]:
    """Sharewell against every contestant that has more useful answers on average somewhere."""
    return list(behind(scores, OURS))


def ahead(scores: Sequence[Score]) -> str:
    """In words, in how many settings Sharewell is first, and by how much it is behind elsewhere."""
    settings = sum(score.contestant == OURS for score in scores)
    leads = leads_of(scores)
    others = {
        (lead.own.stream, lead.own.epsilon) for lead in leads if lead.other.contestant != SAME_SEED
    }
    words = (
        f"*{OURS}* has the most useful answers, in total and for the worst-off analyst, in "
        f"{settings - len(others)} of {settings} settings, not counting *{SAME_SEED}*."
    )
    if not leads:
        return words
    most = max(-min(lead.total.value, lead.worst_off.value) for lead in leads)
    return (
        f"{words} It is at most {100 * most:.1f} percentage points behind. Its lead with 90 % intervals "
        "over the streams, where it is behind:"
    )


def behind_table(leads: Sequence[Lead]) -> Table:
    """By how much Sharewell is behind, or ahead in one of both, in percentage points.

    Contestants with the same answers have one row.
    """
    same: dict[object, list[Lead]] = {}
    for lead in leads:
        other = lead.other
        key = (other.stream, other.epsilon, other.totals, other.worst)
        same.setdefault(key, []).append(lead)
    rows = [
        (
            f"{lead.own.stream}, {lead.own.epsilon:g}",
            "; ".join(each.other.contestant for each in alike),
            _points(lead.total),
            _points(lead.worst_off),
        )
        for alike in same.values()
        for lead in alike[:1]
    ]
    return Table(("stream, epsilon", "against", "all questions", "worst-off analyst"), rows)


#: What the table of closing rounds shows.
CLOSING = (
    "**Closing rounds**, epsilon = 0.1, by expected errors: percent of useful answers without a round, "
    "and the points that it adds. *During the stream*: closed after three quarters of the questions; of "
    "later ones. *At the end*: closed after the last question; all are asked once more."
)


def closing_table(gains: Sequence[Gain]) -> Table:
    """One row a stream and part that is kept, with both kinds of rounds."""
    rows: dict[tuple[str, str], list[str]] = {}
    for one in gains:
        cells = rows.setdefault((one.stream, str(one.kept)), [])
        cells.append(f"{100 * one.before:.1f} {_points(one.gain)}")
    body = [(*key, *cells) for key, cells in rows.items()]
    return Table(("stream", "kept of a share", "during the stream", "at the end"), body)


def draw(scores: Sequence[Score]) -> Figure:
    """One panel a stream and epsilon; filled marks are all questions, hollow ones the worst-off's."""
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    streams = list(dict.fromkeys(score.stream for score in scores))
    epsilons = sorted({score.epsilon for score in scores})
    names = list(dict.fromkeys(score.contestant for score in scores))
    size = (2.3 * len(streams) + 2.4, (0.24 * len(names) + 0.5) * len(epsilons) + 1.1)
    figure = Figure(figsize=size, layout="constrained")
    panels = figure.subplots(len(epsilons), len(streams), sharex=True, sharey=True, squeeze=False)
    for row, epsilon in zip(panels, epsilons, strict=True):
        for panel, stream in zip(row, streams, strict=True):
            here = [s for s in scores if (s.epsilon, s.stream) == (epsilon, stream)]
            _panel(panel, here, names)
            panel.set_title(f"{stream}, epsilon = {epsilon:g}", fontweight="bold", fontsize=9)
    for panel in panels[-1]:
        panel.set_xlabel("answers within alpha (%)")
    marks = [
        Line2D([], [], marker="o", ls="none", color=style.BLACK, label="all questions"),
        Line2D([], [], marker="o", ls="none", mfc="white", color=style.BLACK, label="worst-off analyst"),
    ]
    marks.append(Line2D([], [], marker="|", color=style.BLACK, lw=0.8, ms=7, label="90 % interval"))
    figure.legend(handles=marks, ncols=3, loc="outside lower center")
    figure.suptitle("Sharewell and its alternatives, at the same epsilon and delta", fontweight="bold")
    return figure


def _panel(panel: Axes, scores: Sequence[Score], names: Sequence[str]) -> None:
    best = max((s.total for s in scores if not s.contestant.startswith(OURS)), default=0.0)
    panel.axvline(100 * best, color=style.ORANGE, lw=1, ls=(0, (4, 2)), zorder=1)
    for score in scores:
        at = names.index(score.contestant)
        ours = score.contestant.startswith(OURS)
        colour = style.BLUE if ours else style.GREY
        total, least = 100 * score.total, 100 * score.worst_off
        panel.plot([least, total], [at, at], color=colour, lw=1.2, zorder=2)
        for values in (score.worst, score.totals):
            reach = mean(values)
            if len(values) > 1:
                ends = [100 * max(reach.low, 0.0), 100 * min(reach.high, 1.0)]
                panel.plot(ends, [at, at], "|-", color=colour, lw=0.8, ms=7, zorder=2, clip_on=False)
        panel.plot(least, at, "o", ms=5.5, mfc="white", mec=colour, zorder=3, clip_on=False)
        panel.plot(total, at, "o", ms=5.5, color=colour, zorder=4, clip_on=False)
    panel.set_yticks(range(len(names)), names, fontsize=8)
    panel.set_ylim(len(names) - 0.4, -0.6)
    panel.set_xlim(0, 100)
    for label in panel.get_yticklabels():
        if label.get_text().startswith(OURS):
            label.set_color(style.BLUE)
            label.set_fontweight("bold")


def save_figure(scores: Sequence[Score], folder: Path) -> Path:
    """Write the figure as SVG and PNG, and return the path of the former."""
    with style.paper():
        return style.save(draw(scores), folder, "alternatives")[0]


def write_report(scores: Sequence[Score], out: Path, gains: Sequence[Gain] = ()) -> Path:
    """Write the scores, the figure and the tables into a folder, and return the path of the latter."""
    write_scores(scores, out / "scores.json")
    report = out / "report.md"
    heading = document.Heading(1, "Sharewell and its alternatives")
    found = [heading, *parts(scores, save_figure(scores, out), gains)]
    report.write_text(document.markdown(found, out), encoding="utf-8")
    return report


def update_page(page: Path, scores: Sequence[Score], gains: Sequence[Gain] = ()) -> None:
    """Rewrite the part of a page between `<!-- results -->` and its end, and draw its figure."""
    figure = save_figure(scores, page.parent / "figures" / "alternatives")
    text = page.read_text(encoding="utf-8")
    new = document.markdown(parts(scores, figure, gains), page.parent)
    page.write_text(replace_between(text, "results", new), encoding="utf-8")


def _percent(value: float, bold: bool) -> str:
    text = f"{100 * value:.1f}"
    return f"**{text}**" if bold else text


def _points(estimate: IntervalEstimate) -> str:
    """Percentage points with their interval, unless it has no width in the digits shown."""
    middle, low, high = (
        f"{100 * value:+.1f}" for value in (estimate.value, estimate.low, estimate.high)
    )
    return middle if low == middle == high else f"{middle} [{low}, {high}]"
