"""Draw the figures of the documentation: `python scripts/make_figures.py` (needs matplotlib).

All figures show expected errors, which depend on the queries and not on the data. Only the queries are
random, with a fixed seed, so every run writes the same files.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import matplotlib as mpl
import numpy as np
from fairness_figures import here_and_alone, who_is_served_when
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from sharewell import Block, Budget, Curator, DataVector, Domain, Integer
from sharewell.mechanisms import seed
from sharewell.mechanisms.base import Answer
from sharewell.mechanisms.cache_reconstruct import CacheReconstruct
from sharewell.mechanisms.reconstruction import matrix_mechanism_variances
from sharewell.mechanisms.strategy import Strategy
from sharewell.query import workload
from sharewell.sharing.plan import in_turns
from sharewell_lab.noise import NoNoise

FOLDER = Path(__file__).parent.parent / "docs" / "figures"
AGES = Domain([Integer("age", 0, 85)])

#: Colour-blind-safe colours (Okabe and Ito).
COLOURS = {
    "identity": "#000000",
    "h2": "#0072B2",
    "hb": "#56B4E9",
    "prefix": "#D55E00",
    "optimized": "#009E73",
    "alone": "#D55E00",
    "with one other": "#56B4E9",
    "with nine others": "#0072B2",
}
DASHES = {"h2": (5, 2), "hb": (1, 1.5), "prefix": (6, 2, 1, 2)}

STYLE = {
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e4e4e4",
    "axes.axisbelow": True,
    "legend.frameon": False,
    "svg.hashsalt": "sharewell",
    "savefig.dpi": 130,
}


def main() -> None:
    mpl.use("agg")
    FOLDER.mkdir(parents=True, exist_ok=True)
    with plt.rc_context(STYLE):
        save(seeds_by_length(), "seeds-by-range-length")
        save(alone_and_together(), "alone-and-together")
        save(who_is_served_when(), "who-is-served-when")
        save(here_and_alone(), "here-and-alone")


def save(figure: Figure, name: str) -> None:
    """Write a figure reproducibly, without a date."""
    figure.savefig(FOLDER / f"{name}.svg", metadata={"Date": None})
    figure.savefig(FOLDER / f"{name}.png", metadata={"Software": None})
    plt.close(figure)


def seeds_by_length() -> Figure:
    """Draw the standard error of a range by its length, from the seed alone, at equal budget."""
    ranges = workload.ranges(AGES)
    lengths = np.array([int(query.l1_norm) for query in ranges])
    strategies = {name: make(AGES) for name, make in seed.NAMED.items() if name != "total"}
    strategies["optimized"] = seed.optimized(AGES, ranges)
    figure, panels = plt.subplots(1, 2, figsize=(9.4, 4.2), sharex=True, layout="constrained")
    for panel, budget, title in (
        (panels[0], Budget.pure("1"), "pure, epsilon = 1"),
        (panels[1], Budget.zcdp("1", "1e-6"), "zcdp, epsilon = 1, delta = 1e-6"),
    ):
        for name, strategy in strategies.items():
            variances = matrix_mechanism_variances(ranges, strategy, noise_variance(strategy, budget))
            by_length = [np.sqrt(variances[lengths == length].mean()) for length in range(1, 87)]
            panel.plot(
                range(1, 87),
                by_length,
                color=COLOURS[name],
                dashes=DASHES.get(name, ()),
                lw=2,
                label=name,
            )
        panel.set(title=title, xlabel="cells in the range", xlim=(1, 86), yscale="log")
        whole_numbers(panel)
    panels[0].set_ylabel("expected standard error (people)")
    figure.legend(*panels[0].get_legend_handles_labels(), ncols=5, loc="outside lower center")
    figure.suptitle("Ranges of 86 ages, the whole budget spent on one seed", fontweight="bold")
    return figure


def noise_variance(strategy: Strategy, budget: Budget) -> float:
    """Return the variance of every row if the whole budget is spent on the seed."""
    empty = DataVector(strategy.domain, np.zeros(strategy.domain.size, dtype=np.int64))
    curator = Curator(empty, budget, {"all": budget.total}, noise=NoNoise())
    return float(curator.variances(strategy, budget.total)[0])


def alone_and_together() -> Figure:
    """Draw Ann's standard errors per query: the same queries, alone and with others."""
    rng = np.random.default_rng(7)
    names = ["ann", *(f"other {number}" for number in range(1, 10))]
    workloads = {name: workload.random_ranges(AGES, 40, rng) for name in names}
    company = {"alone": 1, "with one other": 2, "with nine others": 10}
    answers = {what: answers_to_ann(workloads, names[:count]) for what, count in company.items()}
    errors = {what: [answer.standard_error for answer in found] for what, found in answers.items()}
    figure, panel = plt.subplots(figsize=(9.4, 4.2), layout="constrained")
    asked = np.arange(1, 41)
    panel.vlines(asked, errors["with nine others"], errors["alone"], color="#c8c8c8", lw=1, zorder=1)
    for (what, found), marker in zip(errors.items(), "osD", strict=True):
        panel.scatter(asked, found, s=24, color=COLOURS[what], marker=marker, label=what, zorder=2)
    note_where_paying_ends(
        panel, max(at for at, answer in enumerate(answers["alone"], 1) if answer.cost)
    )
    panel.set(
        xlabel="Ann's questions, in order", ylabel="expected standard error (people)", yscale="log"
    )
    panel.set(xlim=(0, 41), ylim=(2, 320))
    whole_numbers(panel)
    figure.legend(*panel.get_legend_handles_labels(), ncols=3, loc="outside lower center")
    panel.set_title("Ann asks for 40 ranges of ages", fontweight="bold")
    return figure


def answers_to_ann(workloads: Mapping[str, Block], present: list[str]) -> list[Answer]:
    """Return her errors if each analyst has epsilon = 0.1: half for the seed, half for 8 rows."""
    empty = DataVector(AGES, np.zeros(AGES.size, dtype=np.int64))
    curator = Curator(empty, Budget.pure("1"), dict.fromkeys(present, "1/10"), noise=NoNoise())
    mechanism = CacheReconstruct(
        curator, seed=seed.identity(AGES), seed_fraction="1/2", query_budget="1/160"
    )
    stream = in_turns({name: list(workloads[name]) for name in present})
    answers = [(analyst, mechanism.ask(query, analyst)) for analyst, query in stream]
    return [answer for analyst, answer in answers if analyst == "ann"]


def note_where_paying_ends(panel: Axes, last: int) -> None:
    """Draw a line after the last query that her share pays for."""
    panel.axvline(last + 0.5, color="#888888", lw=1, ls=":")
    panel.annotate(
        "alone, her share is spent here",
        (last + 0.5, 1),
        (4, -2),
        xycoords=("data", "axes fraction"),
        textcoords="offset points",
        va="top",
        color="#555555",
    )


def whole_numbers(panel: Axes) -> None:
    """Label ticks at 1, 2, 5, 10, 20, 50 and so on."""
    panel.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    panel.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    panel.yaxis.set_minor_locator(NullLocator())


if __name__ == "__main__":
    main()
