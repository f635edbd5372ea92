"""Draw every figure for which there are results."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sharewell_lab.figures import fig1, fig2, fig3, style
from sharewell_lab.limit import LimitNumbers
from sharewell_lab.results import OutcomeTable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: What two analysts ask in the studies of the first figure.
PAIRS = {"fig1": "random points and ranges", "fig1-h2": "a hierarchy (H2)"}
#: What the studies of the paper are called in titles.
TITLES = {"fig3": "Ten analysts", "wide": "Ten analysts, the wide domain"}


@dataclass(frozen=True)
class Drawn:
    """A figure that was written, and what it shows."""

    name: str
    caption: str
    svg: Path
    png: Path


def draw_all(run: OutcomeTable, folder: Path, limit: LimitNumbers | None = None) -> list[Drawn]:
    """Write a figure for every study and budget of a run, and that of the query limit if measured."""
    with style.paper():
        return [
            Drawn(name, caption, *style.save(figure, folder, name))
            for name, caption, figure in _figures(run, limit)
        ]


def _figures(run: OutcomeTable, limit: LimitNumbers | None) -> Iterator[tuple[str, str, Figure]]:
    pairs = sorted({(setting.study, setting.epsilon) for setting in run})
    for study, epsilon in pairs:
        if study in PAIRS:
            figure = fig1.draw(run, epsilon, study, PAIRS[study])
            yield f"{study}-epsilon-{epsilon:g}", _FIG1.format(PAIRS[study], epsilon), figure
    if limit is not None:
        yield "fig2", _FIG2, fig2.draw(limit)
    for study, epsilon in pairs:
        if study not in PAIRS:
            title = TITLES.get(study, study)
            figure = fig3.draw(run, study, epsilon, title)
            yield f"{_slug(study)}-epsilon-{epsilon:g}", _FIG3.format(title, epsilon), figure


def _slug(study: str) -> str:
    """A study's name as a part of a file's name."""
    return "-".join("".join(c if c.isalnum() or c == "." else " " for c in study).split())


_FIG1 = (
    "The motivating experiment with {0}, epsilon = {1:g}. Above: the share of questions answered within "
    "alpha. Below: the max ratio error; above 1 the sharing incentive is broken. Bands hold the middle "
    "90 % of the trials; the numbers at the top are the shares of infinite trials."
)
_FIG2 = (
    "The query limit. Q, Q' and Q'' begin alike. Below: how many hard queries the Laplace mechanism "
    "answers by two readings of alpha, and how many each mechanism answers within alpha on movers by "
    "age."
)
_FIG3 = (
    "{0}, epsilon = {1:g}. Accuracy and time are means, ratios are medians; whiskers hold the middle "
    "90 % of the trials. Filled marks are realised errors, hollow ones expected errors, where known."
)
