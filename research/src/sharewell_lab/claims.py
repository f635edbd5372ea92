"""The paper's claims, each judged by what was measured: the verdicts are computed, never typed.

Every claim is in our words, with the rule by which it is judged. Where a statement is about single
trials and no noise is in it, one trial that breaks it is enough. Elsewhere a claim holds in a setting
when the whole 90 % interval of what was measured is on its side.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from sharewell_lab.estimates import IntervalEstimate, difference, mean, median, share, three_digits
from sharewell_lab.limit import REALISED, LimitNumbers
from sharewell_lab.results import Numbers, Outcomes, OutcomeTable, Scenario
from sharewell_lab.theory.coupons import coupons

#: The setting of a finding: what differs from finding to finding, as words.
Where = Mapping[str, str]

#: How many conditions are named one by one.
FEW = 2
#: The parts of a setting whose values speak for themselves.
NAMES = ("contestant", "study", "mechanism")


@dataclass(frozen=True)
class Evidence:
    """What was measured in one setting, and whether the claim holds there; None where undecided."""

    where: Where
    measured: IntervalEstimate
    holds: bool | None
    #: Further numbers that help to read it.
    note: str = ""

    @property
    def place(self) -> str:
        """The setting in a few words."""
        return _place(self.where)


@dataclass(frozen=True)
class Claim:
    """A claim of the paper, what was measured, and the verdict that follows by a fixed rule."""

    name: str
    #: The claim, in our words.
    says: str
    #: What the number is, and when the claim counts as held.
    judged: str
    findings: tuple[Evidence, ...]
    number: Callable[[float], str] = three_digits
    unit: str = ""
    #: Further numbers, over all settings.
    also: str = ""

    @property
    def verdict(self) -> str:
        """`holds`, `does not hold`, `undecided`, or where it holds."""
        return verdict(self.findings)

    @property
    def measured(self) -> str:
        """The smallest and the largest number, where they were found, and their 90 % intervals."""
        return self._with_more(self._range())

    @property
    def brief(self) -> str:
        """The same without where the numbers were found."""
        return self._with_more(self._range(places=False))

    def _with_more(self, text: str) -> str:
        return f"{text}. {self.also}" if self.also else text

    def _range(self, places: bool = True) -> str:
        least = min(self.findings, key=lambda finding: finding.measured.value)
        most = max(self.findings, key=lambda finding: finding.measured.value)
        if len(self.findings) == 1:
            return self.text(least)
        if least.measured.value == most.measured.value:
            widest = max(self.findings, key=lambda f: f.measured.high - f.measured.low)
            return f"{self.text(widest)} in all {len(self.findings)} settings"
        if not places:
            return " to ".join(self.text(finding) for finding in (least, most))
        varying = [
            name for name in least.where if len(_values(name, [f.where for f in self.findings])) > 1
        ]
        return " to ".join(
            f"{self.text(f)} ({_place({name: f.where[name] for name in varying})})"
            for f in (least, most)
        )

    def text(self, finding: Evidence) -> str:
        """What was measured in one setting, with its interval and unit."""
        return f"{finding.measured.text(self.number)} {self.unit}".strip()


def _place(where: Where) -> str:
    """A setting in a few words."""
    return ", ".join(value if name in NAMES else f"{name} {value}" for name, value in where.items())


def above(measured: IntervalEstimate, bound: float) -> bool | None:
    """Whether something is above a bound: by its whole interval, or it is undecided."""
    return True if measured.low > bound else False if measured.high <= bound else None


def at_most(measured: IntervalEstimate, bound: float) -> bool | None:
    """Whether something is at most a bound: by its whole interval, or it is undecided."""
    return True if measured.high <= bound else False if measured.low > bound else None


def below(measured: IntervalEstimate, bound: float) -> bool | None:
    """Whether something is below a bound: by its whole interval, or it is undecided."""
    return True if measured.high < bound else False if measured.low >= bound else None


def verdict(findings: Sequence[Evidence]) -> str:
    """The verdict over all settings of a claim."""
    among = [finding.where for finding in findings]
    held = [finding.where for finding in findings if finding.holds]
    undecided = [finding.where for finding in findings if finding.holds is None]
    if len(held) == len(among):
        return "holds"
    if len(undecided) == len(among):
        return "undecided"
    if len(held) + len(undecided) == len(among):
        return f"holds where decided; undecided {_when(undecided, among)}"
    words = f"holds only for {describe_settings(held, among)}" if held else "does not hold"
    return f"{words}; undecided {_when(undecided, among)}" if undecided else words


def _when(undecided: Sequence[Where], among: Sequence[Where]) -> str:
    """Where nothing was decided, or in how many settings, when to name them would take too long."""
    if len(_cover(undecided, among)) > FEW:
        return f"in {len(undecided)} of {len(among)} settings"
    return f"for {describe_settings(undecided, among)}"


def describe_settings(chosen: Sequence[Where], among: Sequence[Where]) -> str:
    """Which settings were chosen among all: "p 0.9 or 1; PMW in fig1 with epsilon 0.1 and p 0.5"."""
    order = list(among[0])
    return "; ".join(_in_words(part, order) or "all settings" for part in _cover(chosen, among))


def _in_words(part: Mapping[str, Sequence[str]], order: Sequence[str]) -> str:
    """A condition in words: who, in which study, with which numbers, however it was found."""
    present = [name for name in order if name in part]
    named = " in ".join(_either(part[name]) for name in present if name in NAMES)
    numbers = " and ".join(f"{name} {_either(part[name])}" for name in present if name not in NAMES)
    return " with ".join(words for words in (named, numbers) if words)


def _cover(chosen: Sequence[Where], among: Sequence[Where]) -> list[dict[str, list[str]]]:
    """Few conditions that together are met by the chosen settings and by no other."""
    spans = {name: _values(name, chosen) for name in among[0]}
    inside = [one for one in among if all(one[name] in values for name, values in spans.items())]
    if len(inside) == len(chosen):
        return [_fewest(spans, chosen, among)]
    splits = [_split(name, chosen, among) for name in among[0] if len(_values(name, among)) > 1]
    return min(splits, key=len)


def _fewest(
    spans: dict[str, list[str]], chosen: Sequence[Where], among: Sequence[Where]
) -> dict[str, list[str]]:
    """The spans without those that the others imply."""
    for name in reversed(spans):
        rest = {other: values for other, values in spans.items() if other != name}
        met = [one for one in among if all(one[other] in values for other, values in rest.items())]
        if len(met) == len(chosen):
            spans = rest
    return spans


def _split(name: str, chosen: Sequence[Where], among: Sequence[Where]) -> list[dict[str, list[str]]]:
    """The conditions when every value of one name is looked at by itself; equal ones are joined."""
    parts: list[tuple[list[str], list[dict[str, list[str]]]]] = []
    for value in _values(name, chosen):
        here = [one for one in chosen if one[name] == value]
        cover = _cover(here, [one for one in among if one[name] == value])
        same = next((values for values, known in parts if known == cover), None)
        if same is None:
            parts.append(([value], cover))
        else:
            same.append(value)
    everywhere = _values(name, among)
    return [
        part if values == everywhere else {name: values, **part}
        for values, cover in parts
        for part in cover
    ]


def _values(name: str, settings: Sequence[Where]) -> list[str]:
    """The values that a name takes, each once, in the order of their first coming."""
    return list(dict.fromkeys(setting[name] for setting in settings))


def _either(values: Sequence[str]) -> str:
    return values[0] if len(values) == 1 else f"{', '.join(values[:-1])} or {values[-1]}"


#: How far a formula may be from the exact value, as a part of it, and still be said to give it.
CLOSE = 0.05
#: The coupon times that are compared: analysts, and turns that each wants.
COUPONS = ((2, 5), (10, 50), (50, 20))
#: How many runs are simulated for each.
DRAWS = 400


def theory(limit: LimitNumbers | None) -> Iterator[Claim]:
    """The claims about the coupon time and, where it was measured, about the query limit."""
    times = tuple(_coupon_time(analysts, quota) for analysts, quota in COUPONS)
    yield Claim(
        "coupon-formula",
        "The coupon collector's formula k (ln k + (m - 1) ln ln k) gives the time until k analysts, who "
        "always have a question waiting, have m random turns each.",
        f"formula / exact time within {100 * CLOSE:.0f} % of 1; simulated: means of {DRAWS} runs",
        times,
        also="; ".join(f"{time.place}: {time.note}" for time in times) + ".",
    )
    if limit is not None:
        growth = tuple(_growth(limit, name) for name in limit.alone if name != "Uniform")
        yield Claim(
            "query-limit",
            "Of hard queries, k times the budget answers less than k times as many usefully.",
            f"mean number with epsilon / with epsilon/{limit.limit.analysts} below "
            f"{limit.limit.analysts}; undecided if all {limit.hard} are answered",
            growth,
            also="; ".join(f"{one.place}: {one.note}" for one in growth) + ".",
        )


def _coupon_time(analysts: int, quota: int) -> Evidence:
    time = coupons(analysts, quota)
    formula = time.asymptotic.value if time.asymptotic else float("nan")
    rng = np.random.default_rng([analysts, quota])
    simulated = mean([_draws_until_all(analysts, quota, rng) for _ in range(DRAWS)])
    by_exact = formula / time.expected
    note = f"formula {formula:.1f}, exact {time.expected:.1f}"
    return Evidence(
        {"k": f"{analysts}", "m": f"{quota}"},
        IntervalEstimate(by_exact, by_exact, by_exact, DRAWS),
        abs(by_exact - 1) <= CLOSE,
        f"{note}, simulated {simulated.text('{:.1f}'.format)}",
    )


def _draws_until_all(analysts: int, quota: int, rng: np.random.Generator) -> int:
    """How many draws one run takes until every analyst has met the quota."""
    drawn = np.zeros(0, dtype=np.int64)
    while True:
        drawn = np.append(drawn, rng.integers(analysts, size=2 * analysts * quota))
        counts = np.bincount(drawn, minlength=analysts)
        if counts.min() >= quota:
            by_analyst = np.argsort(drawn, kind="stable")
            return int(by_analyst[np.cumsum(counts) - counts + quota - 1].max()) + 1


def _growth(limit: LimitNumbers, name: str) -> Evidence:
    alone, together = limit.alone[name], limit.together[name]
    growth = mean(together / np.maximum(alone, 1))
    spent = bool(np.all(together == limit.hard))
    holds = None if spent else below(growth, limit.limit.analysts)
    errors = "realised" if name in REALISED else "expected"
    return Evidence(
        {"mechanism": name},
        growth,
        holds,
        f"{alone.mean():.4g} and {together.mean():.4g} of {limit.hard}, {errors}",
    )


__all__ = ["Claim", "claims"]

#: From here on one of two analysts asks much more often than the other: four times as often.
MUCH_MORE = 0.8
#: What accuracy may be lost before we say that something costs accuracy: one percentage point.
MARGIN = 0.01

#: A ratio that is reached "up to" is one that more than this part of the trials reach.
UP_TO = 0.05

PAIR = ("fig1", "fig1-h2")
TEN = ("fig3", "wide")
#: PMW behind a scheduler. Round robin passes over those who are done; the randomized one does or not.
SCHEDULED = {
    "RR": "Round robin",
    "RS": "The randomized scheduler",
    "RS skip": "RS skip",
}
Measure = Callable[[Outcomes], Numbers]


def points(value: float) -> str:
    """A difference of shares, in percentage points."""
    return f"{100 * value:+.1f}"


def percent(value: float) -> str:
    """A share, in percent."""
    return f"{100 * value:.3g}"


def claims(run: OutcomeTable, limit: LimitNumbers | None = None) -> list[Claim]:
    """Every claim that the run bears on, in the order of the paper."""
    found = [
        *_motivation(run),
        *_sharing_incentive(run),
        *_interference(run),
        *_accuracy(run),
        *_time(run),
        *theory(limit),
    ]
    return [claim for claim in found if claim.findings]


def _motivation(run: OutcomeTable) -> Iterator[Claim]:
    settings = [s for s in _settings(run, PAIR, ("PMW", "Laplace")) if s.p >= MUCH_MORE]
    yield Claim(
        "unscheduled",
        "PMW and Laplace break the sharing incentive when one of two analysts asks much more often.",
        f"median max ratio error above 1, for p from {MUCH_MORE} on",
        tuple(_typical(run, s, lambda o: o.ratio, above) for s in settings),
        also=_broken([run[s].ratio for s in settings]),
    )
    yield Claim(
        "gap",
        "The more often the first of two analysts asks, the further apart their accuracies are.",
        f"mean growth of the gap from p = 0.5 to p from {MUCH_MORE} on above 0",
        tuple(_gaps(run, settings)),
        points,
        "points",
    )
    yield _up_to(
        run,
        "three-times",
        "One of two analysts would have up to 3 times as many useful answers alone.",
        settings,
        3.0,
    )
    yield Claim(
        "independent",
        "Independent mechanisms have a max ratio error of 1 and no interference, by construction.",
        "both 1 in every trial; measured: trials where not",
        tuple(
            _never(run, s, lambda o: np.maximum(abs(o.ratio - 1), abs(o.interference - 1)) + 1)
            for s in _settings(run, (*PAIR, *TEN), ("Ind",))
        ),
        percent,
        "%",
    )


def _gaps(run: OutcomeTable, settings: Iterable[Scenario]) -> Iterator[Evidence]:
    """By how much the distance of two analysts grows from equal chances to those of a setting."""

    def gap(outcomes: Outcomes) -> Numbers:
        shares = outcomes.accuracy_by_analyst
        return np.asarray(shares[:, 0] - shares[:, 1])

    for setting in settings:
        if pair := _paired(run, setting, setting._replace(p=0.5), gap):
            wider = mean(pair[0] - pair[1])
            yield Evidence(_where(setting), wider, above(wider, 0.0))


def _up_to(run: OutcomeTable, name: str, says: str, settings: Sequence[Scenario], ratio: float) -> Claim:
    """That the max ratio error reaches a number, in more than a few trials."""
    return Claim(
        name,
        says,
        f"max ratio error from {ratio:g} on in more than {percent(UP_TO)} % of trials; measured: these",
        tuple(
            Evidence(_where(s), found, above(found, UP_TO))
            for s in settings
            for found in (share(run[s].ratio >= ratio),)
        ),
        percent,
        "%",
    )


def _sharing_incentive(run: OutcomeTable) -> Iterator[Claim]:
    settings = _settings(run, TEN, ("PMW",))
    yield Claim(
        "unscheduled-ten",
        "PMW breaks the sharing incentive with ten analysts.",
        "median max ratio error above 1",
        tuple(_typical(run, s, lambda o: o.ratio, above) for s in settings),
        also=_broken([run[s].ratio for s in settings]),
    )
    yield _up_to(
        run,
        "forty-percent",
        "An analyst among ten of PMW has up to 40 % more error: 1.4 times as many useful answers alone.",
        settings,
        1.4,
    )
    for who, label in (("SCR printed", "SCR as printed"), ("SCR", "SCR with estimates")):
        yield _expected(run, who, "ratio", f"{label} keeps the sharing incentive, by expected errors.")
        yield _realised(run, who, "ratio", f"{label} keeps the sharing incentive, by realised errors.")
    for who, label in SCHEDULED.items():
        says = f"{label} restores the sharing incentive for PMW."
        yield _realised(run, who, "ratio", says)


def _interference(run: OutcomeTable) -> Iterator[Claim]:
    for who, label in (("SCR printed", "SCR as printed"), ("SCR", "SCR with estimates")):
        yield _expected(run, who, "interference", f"{label} does not interfere, by expected errors.")
        yield _realised(run, who, "interference", f"{label} does not interfere, by realised errors.")
    for who, label in {"PMW": "PMW without a scheduler", **SCHEDULED}.items():
        settings = _settings(run, TEN, (who,))
        yield Claim(
            f"{_slug(who)}-interferes",
            f"{label} interferes.",
            "median interference above 1",
            tuple(_typical(run, s, lambda o: o.interference, above) for s in settings),
            also=_broken([run[s].interference for s in settings]),
        )
    yield Claim(
        "rs-interferes-less",
        "The randomized scheduler interferes less than round robin.",
        "part of the trials with less interference, less the part with more, above 0",
        tuple(_less_interference(run)),
        points,
        "points",
    )


def _less_interference(run: OutcomeTable) -> Iterator[Evidence]:
    for setting in _settings(run, TEN, ("RS", "RS skip")):
        if pair := _paired(run, setting, setting._replace(contestant="RR"), lambda o: o.interference):
            less = mean((pair[0] < pair[1]).astype(float) - (pair[0] > pair[1]))
            yield Evidence(_where(setting), less, above(less, 0.0))


def _accuracy(run: OutcomeTable) -> Iterator[Claim]:
    yield Claim(
        "sharing-pays",
        "Every way of sharing gives more useful answers than independent PMW.",
        "mean difference in accuracy above 0",
        _gains(run, ("PMW", *SCHEDULED, "SCR printed", "SCR"), "Ind", 0.0),
        points,
        "points",
    )
    for against, label in (("SCR printed", "SCR as printed"), ("SCR", "SCR with estimates")):
        yield Claim(
            f"pmw-beats-{'printed' if against == 'SCR printed' else 'scr'}",
            f"PMW, with a scheduler or without, gives more useful answers than {label}.",
            "mean difference in accuracy above 0",
            _gains(run, ("PMW", *SCHEDULED), against, 0.0),
            points,
            "points",
        )
    yield Claim(
        "scheduling-is-accurate",
        "A scheduler costs PMW no accuracy.",
        f"mean difference in accuracy above {points(-MARGIN)} points",
        _gains(run, tuple(SCHEDULED), "PMW", -MARGIN),
        points,
        "points",
    )
    yield Claim(
        "scheduling-helps",
        "Where the first analyst asks most questions, a scheduler gives PMW more useful answers.",
        f"mean difference in accuracy above 0, for p from {MUCH_MORE} on",
        tuple(
            finding
            for finding in _gains(run, tuple(SCHEDULED), "PMW", 0.0)
            if float(finding.where["p"]) >= MUCH_MORE
        ),
        points,
        "points",
    )


def _time(run: OutcomeTable) -> Iterator[Claim]:
    for who, label in SCHEDULED.items():
        slower = _slower(run, who, "PMW")
        yield Claim(
            f"time-{_slug(who)}",
            f"{label} takes longer than order of arrival.",
            "mean steps with / without the scheduler above 1",
            tuple(Evidence(where, found, above(found, 1.0)) for where, found in slower),
        )
        yield Claim(
            f"twice-{_slug(who)}",
            f"{label} takes at most twice as long as order of arrival.",
            "the same at most 2",
            tuple(Evidence(where, found, at_most(found, 2.0)) for where, found in slower),
        )
    yield Claim(
        "stalls-less",
        "The randomized scheduler stalls less than round robin.",
        "mean steps with it / with round robin below 1",
        tuple(
            Evidence(where, found, below(found, 1.0))
            for who in ("RS", "RS skip")
            for where, found in _slower(run, who, "RR")
        ),
    )
    yield Claim(
        "rare-is-slow",
        "Round robin is slowest when the first analyst asks rarely.",
        "mean steps with / without it, at the smallest p less at each other p, above 0",
        tuple(_rarity(run)),
        "{:+.3g}".format,
    )


def _slower(run: OutcomeTable, who: str, against: str) -> list[tuple[Where, IntervalEstimate]]:
    """How many times as long a contestant takes as another, in every setting of both."""
    found: list[tuple[Where, IntervalEstimate]] = []
    for setting in _settings(run, TEN, (who,)):
        other = setting._replace(contestant=against)
        if pair := _paired(run, setting, other, lambda o: o.steps):
            found.append((_where(setting), mean(pair[0] / pair[1])))
    return found


def _rarity(run: OutcomeTable) -> Iterator[Evidence]:
    slower = {}
    for setting in _settings(run, TEN, ("RR",)):
        if pair := _paired(run, setting, setting._replace(contestant="PMW"), lambda o: o.steps):
            slower[setting] = pair[0] / pair[1]
    for setting, here in slower.items():
        rarest = min(s.p for s in slower if s[:2] == setting[:2])
        if setting.p != rarest:
            gap = difference(slower[setting._replace(p=rarest)], here)
            yield Evidence(
                {**_where(setting), "p": f"{rarest:g} against {setting.p:g}"}, gap, above(gap, 0.0)
            )


def _expected(run: OutcomeTable, who: str, what: str, says: str) -> Claim:
    """That a ratio is never above 1, when it is computed from expected errors: no noise is in it."""
    return Claim(
        f"{_slug(who)}-{what}-expected",
        says,
        f"{_NAMED[what]} at most 1 in every trial; measured: trials where not",
        tuple(
            _never(run, s, partial(_measure, f"expected_{what}"))
            for s in _settings(run, (*PAIR, *TEN), (who,))
            if not np.isnan(_measure(f"expected_{what}", run[s])).any()
        ),
        percent,
        "%",
    )


def _realised(run: OutcomeTable, who: str, what: str, says: str) -> Claim:
    """That a ratio is typically at most 1: in a single trial, noise may lift it above."""
    settings = _settings(run, (*PAIR, *TEN), (who,))
    return Claim(
        f"{_slug(who)}-{what}-realised",
        says,
        f"median {_NAMED[what]} at most 1",
        tuple(_typical(run, s, partial(_measure, what), at_most) for s in settings),
        also=_broken([_measure(what, run[s]) for s in settings]),
    )


def _broken(of_settings: list[Numbers]) -> str:
    """In how many trials a ratio is above 1, and infinite, in the best and the worst setting."""
    if not of_settings:
        return ""
    broken = [float((values > 1).mean()) for values in of_settings]
    endless = max(float(np.isinf(values).mean()) for values in of_settings)
    ends = "–".join(dict.fromkeys(percent(end) for end in (min(broken), max(broken))))
    return f"Above 1: {ends} % of trials; infinite: up to {percent(endless)} %."


_NAMED = {"ratio": "max ratio error", "interference": "interference"}


def _measure(name: str, outcomes: Outcomes) -> Numbers:
    found: Numbers = getattr(outcomes, name)
    return found


def _never(run: OutcomeTable, setting: Scenario, measure: Measure) -> Evidence:
    values = measure(run[setting])
    found = share(values > 1)
    return Evidence(
        _where(setting), found, not found.value, f"{int(np.sum(values > 1))} of {len(values)} trials"
    )


def _typical(
    run: OutcomeTable,
    setting: Scenario,
    measure: Measure,
    side: Callable[[IntervalEstimate, float], bool | None],
) -> Evidence:
    values = measure(run[setting])
    found = median(values)
    broken, endless = share(values > 1), share(np.isinf(values))
    note = f"above 1 in {percent(broken.value)} % of trials, infinite in {percent(endless.value)} %"
    return Evidence(_where(setting), found, side(found, 1.0), note)


def _gains(run: OutcomeTable, who: Iterable[str], against: str, least: float) -> tuple[Evidence, ...]:
    """How much more accurate some are than another, on the same streams."""
    findings = []
    for setting in _settings(run, TEN, tuple(who)):
        other = setting._replace(contestant=against)
        if pair := _paired(run, setting, other, lambda o: o.accuracy):
            gain = mean(pair[0] - pair[1])
            note = f"{percent(float(pair[0].mean()))} % against {percent(float(pair[1].mean()))} %"
            findings.append(Evidence(_where(setting), gain, above(gain, least), note))
    return tuple(findings)


def _paired(
    run: OutcomeTable, setting: Scenario, other: Scenario, measure: Measure
) -> tuple[Numbers, Numbers] | None:
    """A measure in the trials that two settings have in common; None where there are none."""
    here, there = run[setting], run.get(other)
    if there is None:
        return None
    both: NDArray[np.int64] = np.intersect1d(here.trial, there.trial, assume_unique=True)
    return (measure(here)[here.at(both)], measure(there)[there.at(both)]) if len(both) else None


def _settings(run: OutcomeTable, studies: tuple[str, ...], who: tuple[str, ...]) -> list[Scenario]:
    """The settings of these studies and contestants, by contestant first."""
    found = [s for s in run if s.study.lower() in studies and s.contestant in who]
    return sorted(found, key=lambda s: (who.index(s.contestant), s.study, s.epsilon, s.p))


def _where(setting: Scenario) -> dict[str, str]:
    return {
        "contestant": setting.contestant,
        "study": setting.study,
        "epsilon": f"{setting.epsilon:g}",
        "p": f"{setting.p:g}",
    }


def _slug(who: str) -> str:
    return who.lower().replace(" ", "-")
