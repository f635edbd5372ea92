"""Settings for a configuration: which are compared, and which `init` and `plan` recommend.

Privacy: reads no row and spends nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from pathlib import Path

from sharewell.config.check import check_settings
from sharewell.config.config import Config, parse_config
from sharewell.config.forecast import delta_for, join_names, paid_questions
from sharewell.config.propose import Proposal
from sharewell.config.template import EPSILON, Settings, proposal_text
from sharewell.errors import ConfigError
from sharewell.mechanisms.base import PublicContext, Question
from sharewell.mechanisms.cache_reconstruct import CacheReconstruct
from sharewell.mechanisms.registry import MechanismFactory
from sharewell.privacy.budget import Budget
from sharewell.query.linear import LinearQuery
from sharewell.sharing.plan import Candidate, asked_together, how_many, plan, rank, recommended
from sharewell.wire.text import format_cells

NOISE = {"pure": "Laplace", "zcdp": "Gaussian"}
#: The error thresholds that a proposal may have, in percent of the population; and which part of it the
#: most precise answer must be within, since `check` looks at other questions too.
PERCENTS = tuple(digit * 10**power for power in range(6) for digit in (1, 2, 5))
ROOM = 0.9


def compare_settings(
    config: Config,
    watch: Callable[[int, int], object] = lambda done, of: None,
    budgets: Sequence[Budget] | None = None,
) -> list[Candidate]:
    """Every combination of noise, seed, seed fraction and query budget, best first.

    `watch` is called with the number of combinations done, and of all. Other noise than the budget's own
    is compared until the budget is begun, or with the `budgets` given.
    """
    workloads = config.workloads()
    if not any(workloads.values()):
        raise ConfigError(
            f"Nothing to plan for: no questions are given for {join_names(list(workloads))}, "
            "and every column has too many values to assume counts by it.",
            hint=f"List questions in analysts.{config.analysts[0].name}.expects.",
        )
    budgets, found = budgets_of(config) if budgets is None else budgets, list[Candidate]()
    for at, budget in enumerate(budgets):
        found += plan(
            config.domain,
            workloads,
            budget,
            shares_of(config, budget),
            config.error_threshold,
            neighbours=config.neighbours,
            max_rows_per_person=config.max_rows_per_person,
            expected=_expected(config),
            watch=partial(_advance, watch, at, len(budgets)),
        )
    return sorted(found, key=rank)


def _advance(watch: Callable[[int, int], object], at: int, budgets: int, done: int, of: int) -> None:
    watch(at * of + done, budgets * of)


def count_settings(config: Config) -> int:
    """How many settings are compared."""
    return how_many(config.domain) * len(budgets_of(config))


def recommend(config: Config, found: Sequence[Candidate]) -> Candidate:
    """The best of some settings for a configuration, of those that `check` accepts."""
    return recommended(found, lambda each: not any(check_settings(with_settings(config, each))))


def with_settings(config: Config, candidate: Candidate) -> Config:
    """A configuration with other settings."""
    budget = candidate.budget
    shares = shares_of(config, budget)
    options = {
        **{option.name: option.default for option in CacheReconstruct.options},
        "seed": candidate.seed,
        "seed_fraction": candidate.seed_fraction,
        "query_budget": candidate.query_budget / budget.total,
    }
    context = PublicContext(
        config.domain,
        budget,
        config.population,
        lambda: asked_together(config.domain, config.workloads()),
        config.neighbours,
        lambda: _expected(config),
    )
    return replace(
        config,
        budget=budget,
        analysts=tuple(replace(each, share=shares[each.name]) for each in config.analysts),
        make=MechanismFactory(CacheReconstruct, CacheReconstruct.arguments(options, context)),
    )


def provisional_config(proposal: Proposal, target: Path, percent: int = 1) -> Config:
    """A proposed configuration before its settings are chosen, to be written at `target`."""
    return parse_config(proposal_text(proposal, Settings(percent=percent)), target)


def propose_settings(
    proposal: Proposal, target: Path, watch: Callable[[int, int], object] = lambda done, of: None
) -> Settings:
    """The settings that `plan` recommends for a proposed configuration, and why.

    Where no answer would be within one percent of the population, the threshold is raised.
    """
    percent = PERCENTS[0]
    config = provisional_config(proposal, target, percent)
    found = compare_settings(config, watch, both_budgets(config))
    best = recommend(config, found)
    while best.least_error > ROOM * proposal.population * percent / 100:
        wanted = best.least_error / (ROOM * proposal.population)
        percent = next(each for each in PERCENTS if each / 100 >= wanted)
        config = provisional_config(proposal, target, percent)
        # Errors do not depend on the threshold.
        found = sorted((each.with_threshold(config.error_threshold) for each in found), key=rank)
        best = recommend(config, found)
    budget = best.budget
    why = [reason_for(config, best), outcome_of(config, best)]
    if percent > PERCENTS[0]:
        why.append(
            f"There are few rows: with epsilon = {EPSILON} no answer is expected within {PERCENTS[0]} % "
            f"of them, so error_threshold is {percent} %."
        )
    return Settings(
        delta_for(config.population) if budget.delta else None,
        best.seed,
        best.seed_fraction,
        best.query_budget / budget.total,
        percent,
        tuple(why),
    )


def _expected(config: Config) -> dict[str, Sequence[Question]]:
    """What analysts for whom questions are given expect to ask."""
    workloads = config.workloads()
    return {each.name: workloads[each.name] for each in config.analysts if each.expects}


def budgets_of(config: Config) -> list[Budget]:
    """The budget, and before it is begun the same epsilon with the other noise."""
    return [config.budget] if config.witness.exists() else both_budgets(config)


def both_budgets(config: Config) -> list[Budget]:
    """The same epsilon with Laplace and with Gaussian noise."""
    budget = config.budget
    if budget.currency == "zcdp":
        return [Budget.pure(budget.epsilon), budget]
    return [budget, Budget.zcdp(budget.epsilon, delta_for(config.population))]


def shares_of(config: Config, budget: Budget) -> dict[str, Fraction]:
    """The analysts' shares of a budget."""
    return {name: share * budget.total / config.budget.total for name, share in config.shares.items()}


def paid_questions_of(config: Config, candidate: Candidate) -> dict[str, int]:
    """How many questions each analyst can pay for."""
    shares = shares_of(config, candidate.budget)
    return paid_questions(shares, candidate.seed_fraction, candidate.query_budget)


def reason_for(config: Config, best: Candidate) -> str:
    """Why these settings, in a sentence or two."""
    numbers = sum(numbers_of(asks) for asks in config.workloads().values())
    takes = f"{best.seed_fraction} of every share; the rest pays for questions that were not expected"
    if best.seed_fraction == 1:
        takes = "all of every share: a paid answer would hardly be more precise"
    return (
        f"Best for {numbers:,} expected numbers on {format_cells(config.domain.cells)}: "
        f'{NOISE[best.budget.currency]} noise and seed = "{best.seed}". The seed takes {takes}.'
    )


def outcome_of(config: Config, best: Candidate) -> str:
    """What the settings buy, in a sentence."""
    questions = range_of(paid_questions_of(config, best).values())
    within = f"within {config.error_threshold:,g} rows, {_percent(best.worst)} for the worst-off analyst"
    paid = f"{questions} paid questions each" if questions != "0" else "no question has to be paid for"
    return f"About {_percent(best.average)} of the expected answers are {within}; {paid}."


def _percent(part: float) -> str:
    """A percentage; 100 % only for exactly everything."""
    return f"{100 * min(part, 0.99) if part < 1 - 1e-9 else 100:.0f} %"


def range_of(counts: Collection[int]) -> str:
    """The smallest and the largest count; one number where they are equal."""
    fewest, most = min(counts), max(counts)
    return f"{fewest:,}" if fewest == most else f"{fewest:,}-{most:,}"


def numbers_of(questions: Iterable[Question]) -> int:
    """How many numbers some questions ask for."""
    return sum(1 if isinstance(asks, LinearQuery) else len(asks) for asks in questions)
