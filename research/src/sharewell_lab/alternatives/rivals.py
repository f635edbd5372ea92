"""The alternatives, written from their papers: each spends the same (epsilon, delta), and no more.

Every rival plays with the setting that serves it best on a stream, among a few that double from one to
the next, which no user could know beforehand. Where a paper refuses a question, the rival still answers
from whatever it released before, since that is free.

A price is in the currency of the noise: epsilon for Laplace, rho of zCDP for Gaussian. In both, prices
add up (Dwork and Roth, 2014, theorem 3.16; Bun and Steinke, 2016, lemma 1.7).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from sharewell_lab.alternatives.streams import Numbers, TableQuestion, TableStream

#: What each question was answered with, or None where it was refused.
Answers = list[Numbers | None]
#: A rival answers a stream with a budget, a setting, and random numbers.
Rival = Callable[[TableStream, float, float, np.random.Generator], Answers]
NoiseKind = Literal["laplace", "gaussian"]


@dataclass
class Accounts:
    """Who has spent how much of what; a purchase that exceeds a limit is not made.

    Privacy: the sum of all purchases is at most `total`.
    """

    total: float
    each: float
    spent: dict[int, float] = field(default_factory=dict)

    def buy(self, analyst: int, price: float) -> bool:
        """Charge an analyst, if neither their limit nor the total is exceeded."""
        mine = self.spent.get(analyst, 0.0) + price
        if mine > self.each * (1 + 1e-9) or sum(self.spent.values()) + price > self.total * (1 + 1e-9):
            return False
        self.spent[analyst] = mine
        return True


def noisy(kind: NoiseKind, truth: Numbers, price: float, rng: np.random.Generator) -> Numbers:
    """Disjoint counts with noise. Privacy: costs `price`, since one individual is in one of them."""
    if kind == "laplace":
        return np.asarray(truth + rng.laplace(0, 1 / price, len(truth)))
    return np.asarray(truth + rng.normal(0, math.sqrt(1 / (2 * price)), len(truth)))


def exact_match(kind: NoiseKind, cache: Literal["none", "own", "shared"], pot: bool) -> Rival:
    """Pay for every question that the cache does not hold, from one's own share or from a common pot.

    A setting is the number of questions that a share, or the pot, pays for.
    """

    def play(stream: TableStream, budget: float, purchases: float, rng: np.random.Generator) -> Answers:
        each = budget if pot else budget / stream.analysts
        accounts, held = Accounts(budget, each), dict[Hashable, Numbers]()
        answers: Answers = []
        for place, (question, who) in enumerate(_asked(stream)):
            key = {"none": place, "own": (who, question.key), "shared": question.key}[cache]
            if key not in held and accounts.buy(who, each / purchases):
                held[key] = noisy(kind, stream.truth[place], each / purchases, rng)
            answers.append(held.get(key))
        return answers

    return play


@dataclass
class Synopsis:
    """A view's marginal with Gaussian noise of variance 1 / (2 rho)."""

    rho: float
    cells: Numbers


def dprovdb(additive: bool) -> Rival:
    """DProvDB (Zhang and He, Proc. ACM Manag. Data 1(4), 2023), accounted in zCDP.

    A question asks its view, the marginal over its attributes, for a standard error: alpha times the
    setting. *Vanilla*: every analyst has synopses of their own, and a share of the budget. *Additive
    Gaussian*: a synopsis of each view is shared and refined by further measurements, whose precisions
    add up; an analyst gets it with further noise, as precise as they asked for. The budget is charged
    for the refinements alone. All analysts have the highest privilege, so that each may spend all of
    it.
    """

    def play(stream: TableStream, budget: float, setting: float, rng: np.random.Generator) -> Answers:
        accounts = Accounts(budget, budget if additive else budget / stream.analysts)
        own: dict[tuple[int, tuple[int, ...]], Synopsis] = {}
        shared: dict[tuple[int, ...], Synopsis] = {}
        answers: Answers = []
        for question, who in _asked(stream):
            view = question.view
            needed = question.cells_per_row / (2 * (setting * stream.error_threshold) ** 2)
            mine = own.get((who, view))
            if mine is None or mine.rho < needed:
                made = (
                    _refined(stream, question, needed, shared, accounts, rng)
                    if additive
                    else _measured(stream, question, needed, who, accounts, rng)
                )
                if made is not None:
                    own[who, view] = mine = made
            answers.append(None if mine is None else _from_view(question, mine.cells))
        return answers

    return play


def _measured(
    stream: TableStream,
    question: TableQuestion,
    rho: float,
    who: int,
    accounts: Accounts,
    rng: np.random.Generator,
) -> Synopsis | None:
    """A new synopsis of a view, paid for by an analyst."""
    if not accounts.buy(who, rho):
        return None
    return Synopsis(rho, noisy("gaussian", _view(question, stream.counts), rho, rng))


def _refined(
    stream: TableStream,
    question: TableQuestion,
    rho: float,
    shared: dict[tuple[int, ...], Synopsis],
    accounts: Accounts,
    rng: np.random.Generator,
) -> Synopsis | None:
    """The shared synopsis of a view, refined where it is not precise enough, with noise added."""
    known = shared.get(question.view, Synopsis(0.0, np.zeros(1)))
    if known.rho < rho:
        more = rho - known.rho
        # One account for all: what a view cost is what its synopsis is worth.
        if not accounts.buy(-1, more):
            return None
        fresh = noisy("gaussian", _view(question, stream.counts), more, rng)
        known = Synopsis(rho, (known.rho * known.cells + more * fresh) / rho)
        shared[question.view] = known
    added = max(0.0, 1 / (2 * rho) - 1 / (2 * known.rho))
    return Synopsis(rho, known.cells + rng.normal(0, math.sqrt(added), len(known.cells)))


def _view(question: TableQuestion, table: Numbers) -> Numbers:
    """The marginal over a question's attributes."""
    return TableQuestion(question.domain, question.view, {}).answers(table)


def _from_view(question: TableQuestion, cells: Numbers) -> Numbers:
    """A question's rows as sums of the cells of its view."""
    shape = question.domain.shape
    found = cells.reshape([shape[level] for level in question.view])
    for at in reversed(range(found.ndim)):
        level = question.view[at]
        mask = question.where.get(level)
        if level not in question.by:
            found = np.tensordot(found, mask, (at, 0)) if mask is not None else found.sum(axis=at)
        elif mask is not None:
            found = found.compress(mask, axis=at)
    return found.reshape(-1)


#: Turbo: a step of the histogram, the part of alpha from which a measured answer moves it, and how many
#: more updates of its cells a question needs after the histogram has failed.
STEP, MOVES, PENALTY = 0.1, 0.05, 5


def turbo(stream: TableStream, budget: float, purchases: float, rng: np.random.Generator) -> Answers:
    """Turbo (Kostopoulou and others, SOSP 2023): an exact-match cache, and PMW with a bypass.

    A question whose cells were updated too seldom bypasses the histogram: it is measured for a price,
    and the histogram learns from it for free. Another one is tested by a sparse vector, which costs
    three prices to open: one for the threshold and two for the tests, whose noise has the scale of a
    measurement. The test is of the largest error of the question's rows, which one individual changes by
    1. If it fails, the question is measured, and a new sparse vector is needed. The pot is common, and
    `purchases` prices are all of it. When it is empty the histogram answers.
    """
    price, alpha = budget / purchases, stream.error_threshold
    accounts, held = Accounts(budget, budget), dict[Hashable, Numbers]()
    population = float(stream.counts.sum())
    table = np.full(len(stream.counts), population / len(stream.counts))
    updates = np.zeros(len(stream.counts))
    needed, limit = 1, None
    answers: Answers = []
    for place, (question, _) in enumerate(_asked(stream)):
        if question.key in held:
            answers.append(held[question.key])
            continue
        guess, truth = question.answers(table), stream.truth[place]
        inside = question.spread(np.ones(len(truth))) > 0
        if updates[inside].min() >= needed:
            if limit is None and accounts.buy(0, 3 * price):
                limit = alpha / 2 + rng.laplace(0, 1 / price)
            if limit is not None:
                if np.abs(truth - guess).max() + rng.laplace(0, 1 / price) < limit:
                    answers.append(guess)
                    continue
                limit, needed = None, needed + PENALTY
        if not accounts.buy(0, price):
            answers.append(guess)
            continue
        measured = noisy("laplace", truth, price, rng)
        moves = np.where(np.abs(measured - guess) > MOVES * alpha, np.sign(measured - guess), 0.0)
        table = table * (1 + question.spread(np.expm1(STEP * moves)))
        table *= population / table.sum()
        updates[inside] += 1
        held[question.key] = measured
        answers.append(measured)
    return answers


def _asked(stream: TableStream) -> list[tuple[TableQuestion, int]]:
    return list(zip(stream.questions, stream.analyst.tolist(), strict=True))


#: How many questions a share or a pot pays for, and standard errors as parts of alpha.
PURCHASES = tuple(float(2**power) for power in range(11))
ERRORS = (0.25, 0.5, 1.0, 2.0, 4.0)


@dataclass(frozen=True)
class Alternative:
    """A rival, its currency, and the settings of which the best is reported."""

    label: str
    kind: NoiseKind
    play: Rival
    settings: tuple[float, ...] = PURCHASES


ALTERNATIVES = (
    Alternative("Silos, Laplace", "laplace", exact_match("laplace", "none", pot=False)),
    Alternative("Silos, Gaussian", "gaussian", exact_match("gaussian", "none", pot=False)),
    Alternative("Own cache, Laplace", "laplace", exact_match("laplace", "own", pot=False)),
    Alternative("Own cache, Gaussian", "gaussian", exact_match("gaussian", "own", pot=False)),
    Alternative("Shared cache, Laplace", "laplace", exact_match("laplace", "shared", pot=False)),
    Alternative("Shared cache, Gaussian", "gaussian", exact_match("gaussian", "shared", pot=False)),
    Alternative("Common pot, Laplace", "laplace", exact_match("laplace", "none", pot=True)),
    Alternative("Common pot and cache", "gaussian", exact_match("gaussian", "shared", pot=True)),
    Alternative("DProvDB, vanilla", "gaussian", dprovdb(additive=False), ERRORS),
    Alternative("DProvDB, additive", "gaussian", dprovdb(additive=True), ERRORS),
    Alternative("Turbo (PMW bypass)", "laplace", turbo),
)
