"""The figures of docs/fairness.md, drawn by `make_figures.py`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import partial
from random import Random

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sharewell import Budget, Domain, Integer
from sharewell.mechanisms import seed
from sharewell.mechanisms.cache_reconstruct import CacheReconstruct
from sharewell.mechanisms.laplace import Laplace
from sharewell.query import workload
from sharewell.schedulers import InOrder, Randomized, RoundRobin
from sharewell.sharing.certificate import Certificate
from sharewell.sharing.collective import Ask, Collective
from sharewell_lab.timeline import Timeline, run

AGES = Domain([Integer("age", 0, 85)])
NAMES = ("ann", "ben", "cleo")
COLOURS = {"ann": "#D55E00", "ben": "#0072B2", "cleo": "#009E73"}
#: The maximum standard error of a useful answer, and the price of an answer: a share buys two dozen.
THRESHOLD = 120.0
PRICE = Fraction(1, 72)


def who_is_served_when() -> Figure:
    """Draw the same arrivals under three schedulers: a busy, a slow and a late analyst."""
    rng = np.random.default_rng(3)
    arrivals = [str(rng.choice(NAMES, p=[0.6, 0.25, 0.15])) for _ in range(40)]
    questions = [(analyst, at) for at, analyst in enumerate(arrivals)]
    played = {
        "none: first come, first served": run(InOrder(NAMES), questions),
        "round robin": run(RoundRobin(NAMES), questions),
        "randomized, uniform": run(Randomized(NAMES, draw=Random(5)), questions),
    }
    figure, panels = plt.subplots(3, 1, figsize=(9.4, 4.6), sharex=True, layout="constrained")
    for panel, (name, timeline) in zip(panels, played.items(), strict=True):
        _draw_timeline(panel, timeline)
        panel.set_title(
            f"{name}: {timeline.steps} steps until all is answered, {timeline.stalls} stalls",
            loc="left",
            fontsize=10,
        )
    panels[-1].set_xlabel("time step: one question arrives and one decision is made")
    figure.suptitle("Hollow: a question arrives.  Filled: it is answered.", fontweight="bold")
    return figure


def _draw_timeline(panel: Axes, timeline: Timeline[int]) -> None:
    for row, name in enumerate(reversed(NAMES)):
        mine = [at for at, (analyst, _) in enumerate(timeline.order) if analyst == name]
        arrived = [timeline.arrived_at[at] for at in mine]
        served = [timeline.served_at[at] for at in mine]
        panel.hlines([row] * len(mine), arrived, served, color=COLOURS[name], lw=1, alpha=0.35)
        panel.scatter(arrived, [row] * len(mine), s=34, facecolors="none", edgecolors=COLOURS[name])
        panel.scatter(served, [row] * len(mine), s=16, color=COLOURS[name], zorder=3)
    panel.set(yticks=range(3), yticklabels=reversed(NAMES), ylim=(-0.6, 2.6))
    panel.grid(axis="y", visible=False)


def here_and_alone() -> Figure:
    """Draw useful answers over time, together and alone: a common pot and a shared cache."""
    rng = np.random.default_rng(11)
    order = [str(rng.choice(NAMES, p=[0.6, 0.25, 0.15])) for _ in range(110)]
    pool = workload.random_ranges(AGES, 40, rng)
    stream = [Ask(name, pool[int(rng.integers(len(pool)))]) for name in order]
    scr = partial(CacheReconstruct, seed=seed.identity(AGES), seed_fraction="1/20", query_budget=PRICE)
    figure, panels = plt.subplots(1, 2, figsize=(9.4, 4.0), sharey=True, layout="constrained")
    for panel, title, make in (
        (panels[0], "A common pot, first come first served", partial(Laplace, query_budget=PRICE)),
        (panels[1], "Seeded Cache and Reconstruct", scr),
    ):
        for case, counts in _counts(make, stream).items():
            for name in NAMES:
                panel.plot(
                    counts[name],
                    color=COLOURS[name],
                    lw=2,
                    ls="-" if case == "here" else (0, (2, 1.5)),
                    label=f"{name}, {case}",
                )
        panel.set(title=title, xlabel="questions asked by all three", xlim=(0, len(stream)))
    panels[0].set_ylabel(f"answers within {THRESHOLD:g} people, so far")
    figure.legend(
        *panels[1].get_legend_handles_labels(), ncols=6, loc="outside lower center", columnspacing=1
    )
    figure.suptitle("Useful answers so far, here and alone", fontweight="bold")
    return figure


def _counts(make: partial, stream: Sequence[Ask]) -> Mapping[str, Mapping[str, list[float]]]:
    """Return each analyst's useful answers after each question, together and alone."""
    collective = Collective(AGES, Budget.pure("1"), dict.fromkeys(NAMES, Fraction(1, 3)), make)
    certificate = Certificate(collective, error_threshold=THRESHOLD)
    counts = {case: {name: [0.0] for name in NAMES} for case in ("here", "alone")}
    for ask in stream:
        certificate.record(ask)
        for standing in certificate.report().standings:
            counts["here"][standing.analyst].append(standing.here)
            counts["alone"][standing.analyst].append(standing.alone)
    return counts
