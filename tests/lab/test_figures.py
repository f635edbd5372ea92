"""Figures: what is drawn is what the results say, and the same results give the same files."""

import math
import re
import struct

import numpy as np
import pytest

from sharewell_lab.figures import draw_all, fig1, fig2, fig3, style
from sharewell_lab.results import by_scenario
from tests.lab.made_up import Model

RUN = by_scenario(
    Model(trials=20, studies=("fig1", "fig3"), gap=0).changed(PMW={"nothing": 0.25}).columns()
)


@pytest.fixture(scope="module")
def drawn(tmp_path_factory, limit):
    return draw_all(RUN, tmp_path_factory.mktemp("figures"), limit)


def words(figure):
    """All that is written in a figure."""
    import matplotlib.text

    return "\n".join(text.get_text() for text in figure.findobj(matplotlib.text.Text))


def marks(panel):
    """Where the marks of a panel of the third figure stand, with whether they are filled."""
    return {
        (round(float(line.get_xdata()[0]), 2), round(float(line.get_ydata()[0]), 3)): (
            line.get_markerfacecolor() != "white"
        )
        for line in panel.get_lines()
        if line.get_marker() not in ("None", "", None)
    }


def test_there_is_a_figure_for_every_study_and_budget_and_one_for_the_limit(drawn):
    names = ["fig1-epsilon-1", "fig2", "fig3-epsilon-1"]
    assert [one.name for one in drawn] == names
    for one in drawn:
        assert one.svg.read_text(encoding="utf-8").rstrip().endswith("</svg>")
        width, height = struct.unpack(">16xII", one.png.read_bytes()[:24])
        assert width > 1_000
        assert height > 700


def test_the_same_results_give_the_same_files_and_no_dates(drawn, tmp_path):
    (again,) = draw_all({s: o for s, o in RUN.items() if s.study == "fig3"}, tmp_path)
    assert again.svg.read_bytes() == drawn[2].svg.read_bytes()
    assert again.png.read_bytes() == drawn[2].png.read_bytes()
    for one in drawn:
        assert not re.search(r"<dc:date>|20\d\d-\d\d-\d\d", one.svg.read_text(encoding="utf-8"))


def test_the_first_figure_draws_shares_and_ratios_of_the_results():
    with style.paper():
        figure = fig1.draw(RUN, 1.0)
    assert [panel.get_title() for panel in figure.axes[:4]] == [
        "PMW", "Laplace", "SCR as printed", "SCR with estimates",
    ]  # fmt: skip
    laplace = {line.get_label(): np.asarray(line.get_ydata()) for line in figure.axes[1].get_lines()}
    found = next(o for s, o in RUN.items() if s.contestant == "Laplace" and s.p == 0.5)
    assert laplace["first analyst"][0] == pytest.approx(100 * found.accuracy_by_analyst[:, 0].mean())
    assert laplace["both together"][0] == pytest.approx(100 * found.accuracy.mean())
    guess = next(o for s, o in RUN.items() if s.contestant == "Uniform" and s.p == 0.5)
    assert laplace["uniform guess, no budget at all"][0] == pytest.approx(100 * guess.accuracy.mean())
    # Of 40 questions 12 - s are useful and 28 - s alone; in two trials of three an analyst has s = 2.
    below = {line.get_label(): line.get_ydata() for line in figure.axes[5].get_lines()}
    assert below["max ratio error, realised (median)"] == pytest.approx([26 / 10] * 6)
    assert below["by expected errors (median)"] == pytest.approx([26 / 10] * 6)
    assert "∞ in\n25 %" in words(figure)
    assert "is better off alone" in words(figure)


def test_the_third_figure_has_twelve_panels_with_every_contestant():
    with style.paper():
        figure = fig3.draw(RUN, "fig3", 1.0, "Ten analysts")
    assert len(figure.axes) == 12
    assert [panel.get_title() for panel in figure.axes[:3]] == ["p = 0.01", "p = 0.1", "p = 0.9"]
    ticks = [tick.get_text().replace("\n", " ") for tick in figure.axes[9].get_xticklabels()]
    assert ticks == ["Uniform", "Ind", "PMW", "RR", "RS", "RS skip", "SCR printed", "SCR"]
    accuracy = marks(figure.axes[0])
    scr = next(o for s, o in RUN.items() if s[0] == "fig3" and s.contestant == "SCR")
    level = round(100 * float(scr.accuracy.mean()), 3)
    assert accuracy[6.83, level] is True
    assert accuracy[7.17, level] is False
    # Six contestants know no standard errors: eight filled marks, two hollow ones.
    assert sorted(accuracy.values()) == [False] * 2 + [True] * 8
    steps = marks(figure.axes[9])
    assert {round(x): y for x, y in steps}[3] == pytest.approx(1.5 * 1.3 * 400 + 1, abs=1)
    assert "∞ in\n25 %" in words(figure)


def test_an_infinite_ratio_stands_at_the_top_and_says_how_often():
    endless = by_scenario(Model(trials=20, studies=("fig3",)).changed(RS={"nothing": 1.0}).columns())
    with style.paper():
        figure = fig3.draw(endless, "fig3", 1.0)
    panel = figure.axes[3]
    assert [y for x, y in marks(panel) if x == 4] == pytest.approx([panel.get_ylim()[1]], abs=1e-3)
    assert "∞ in\n100 %" in words(figure)


def test_the_second_figure_shows_the_streams_and_the_numbers_that_back_them(limit):
    with style.paper():
        figure = fig2.draw(limit)
    text = words(figure)
    for number in ("10.9", "108.7", "50.4", "35.8", "358.2", "50 hard queries"):
        assert number in text
    arrivals = figure.axes[0].patches
    count = len(limit.streams.repeated)
    assert len(arrivals) == 2 * count + 10
    colours = [patch.get_facecolor() for patch in arrivals]
    assert len(set(colours[:50])) == 1
    # Whose queries follow each other can be told apart: each of those who come later has ten.
    assert all(colours[count + at] != colours[count + at - 1] for at in range(50, 140, 10))


def test_a_band_holds_the_middle_of_the_trials():
    values = np.arange(101.0)
    assert style.mean_band(values) == (50, 5, 95, 0)
    endless = np.where(values > 90, math.inf, values)
    band = style.median_band(endless)
    assert (band.middle, band.high) == (50, math.inf)
    assert band.infinite == pytest.approx(10 / 101)


def test_ones_own_settings_of_matplotlib_change_nothing(drawn, tmp_path):
    import matplotlib as mpl

    with mpl.rc_context({"font.size": 30, "xtick.direction": "in", "lines.linewidth": 9}):
        (again, *_) = draw_all({s: o for s, o in RUN.items() if s.study == "fig1"}, tmp_path)
    assert again.svg.read_bytes() == drawn[0].svg.read_bytes()


def test_every_contestant_has_a_colour_and_a_mark_of_its_own():
    assert len(set(style.COLOURS.values())) == len(style.COLOURS)
    assert len(set(style.MARKS.values())) == len(style.MARKS) == len(style.COLOURS)
