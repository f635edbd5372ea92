"""The paper's claims, each judged by what was measured: the verdicts are computed, never typed.

Every claim is in our words, with the rule by which it is judged. Where a statement is about single
trials and no noise is in it, one trial that breaks it is enough. Elsewhere a claim holds in a setting
when the whole 90 % interval of what was measured is on its side.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial

import numpy as np
from numpy.typing import NDArray

from sharewell.lab.estimates import Estimate, difference, mean, median, share
from sharewell.lab.limit import LimitNumbers
from sharewell.lab.outcomes import Numbers, Outcomes, Run, Setting
from sharewell.lab.theory_claims import theory
from sharewell.lab.verdicts import Claim, Finding, above, at_most

__all__ = ["Claim", "claims"]

#: From here on one of two analysts asks much more often than the other: four times as often.
MUCH_MORE = 0.8
#: What accuracy may be lost before we say that something costs accuracy: one percentage point.
MARGIN = 0.01

PAIR = ("fig1",)
TEN = ("fig3", "wide")
Measure = Callable[[Outcomes], Numbers]


def points(value: float) -> str:
    """A difference of shares, in percentage points."""
    return f"{100 * value:+.1f}"


def percent(value: float) -> str:
    """A share, in percent."""
    return f"{100 * value:.3g}"


def claims(run: Run, limit: LimitNumbers | None = None) -> list[Claim]:
    """Every claim about which the run says something, in the order of the paper."""
    found = [
        *_motivation(run),
        *_sharing_incentive(run),
        *_interference(run),
        *_accuracy(run),
        *_time(run),
        *theory(limit),
    ]
    return [claim for claim in found if claim.findings]


def _motivation(run: Run) -> Iterator[Claim]:
    settings = [s for s in _settings(run, PAIR, ("PMW", "Laplace")) if s.p >= MUCH_MORE]
    yield Claim(
        "unscheduled",
        "Without a scheduler, PMW and Laplace break the sharing incentive when one of two analysts asks "
        "much more often than the other.",
        f"The median over trials of the max ratio error, at p of {MUCH_MORE} and more; holds where its "
        "interval is above 1.",
        tuple(_typical(run, s, lambda o: o.ratio, above) for s in settings),
        also=_broken([run[s].ratio for s in settings]),
    )
    yield Claim(
        "independent",
        "Independent mechanisms have a max ratio error of 1 and no interference, by construction.",
        "The share of trials in which either is not exactly 1; holds where there is none.",
        tuple(
            _never(run, s, lambda o: np.maximum(abs(o.ratio - 1), abs(o.interference - 1)) + 1)
            for s in _settings(run, (*PAIR, *TEN), ("Ind",))
        ),
        percent,
        "%",
    )


def _sharing_incentive(run: Run) -> Iterator[Claim]:
    for who, label in (("SCR printed", "SCR as printed"), ("SCR", "SCR with estimates")):
        yield _expected(run, who, "ratio", f"{label} keeps the sharing incentive, by expected errors.")
        yield _realised(run, who, "ratio", f"{label} keeps the sharing incentive, by realised errors.")
    for who, label in (("RR", "Round robin"), ("RS", "The randomized scheduler")):
        says = f"{label} restores the sharing incentive for PMW, however rarely one asks."
        yield _realised(run, who, "ratio", says)


def _interference(run: Run) -> Iterator[Claim]:
    for who, label in (("SCR printed", "SCR as printed"), ("SCR", "SCR with estimates")):
        yield _expected(run, who, "interference", f"{label} does not interfere, by expected errors.")
        yield _realised(run, who, "interference", f"{label} does not interfere, by realised errors.")


def _accuracy(run: Run) -> Iterator[Claim]:
    yield Claim(
        "sharing-pays",
        "Whoever shares, by any mechanism, has more answers within alpha than with independent PMW.",
        "The mean over trials of the difference in accuracy; holds where its interval is above 0.",
        _gains(run, ("PMW", "RR", "RS", "SCR printed", "SCR"), "Ind", 0.0),
        points,
        "points",
    )
    for against, label in (("SCR printed", "SCR as printed"), ("SCR", "SCR with estimates")):
        yield Claim(
            f"pmw-beats-{'printed' if against == 'SCR printed' else 'scr'}",
            f"PMW, with a scheduler or without, has more answers within alpha than {label}.",
            "The mean over trials of the difference in accuracy; holds where its interval is above 0.",
            _gains(run, ("PMW", "RR", "RS"), against, 0.0),
            points,
            "points",
        )
    yield Claim(
        "scheduling-is-accurate",
        "A scheduler costs PMW no accuracy.",
        "The mean over trials of the difference in accuracy; holds where its interval is above "
        f"{points(-MARGIN)} points.",
        _gains(run, ("RR", "RS"), "PMW", -MARGIN),
        points,
        "points",
    )


def _time(run: Run) -> Iterator[Claim]:
    for who, label in (("RR", "Round robin"), ("RS", "The randomized scheduler")):
        findings = []
        for setting in _settings(run, TEN, (who,)):
            if pair := _paired(run, setting, "PMW", lambda o: o.steps):
                slower = mean(pair[0] / pair[1])
                findings.append(Finding(_where(setting), slower, above(slower, 1.0)))
        yield Claim(
            f"time-{who.lower()}",
            f"{label} takes longer than serving in order of arrival.",
            "The mean over trials of steps to completion with the scheduler by those without; holds "
            "where its interval is above 1.",
            tuple(findings),
        )
    yield Claim(
        "rare-is-slow",
        "Round robin is slowest when the first analyst asks rarely.",
        "The mean steps to completion by those without a scheduler, at the smallest p less that at "
        "each other p; holds where its interval is above 0.",
        tuple(_rarity(run)),
        "{:+.3g}".format,
    )


def _rarity(run: Run) -> Iterator[Finding]:
    slower = {}
    for setting in _settings(run, TEN, ("RR",)):
        if pair := _paired(run, setting, "PMW", lambda o: o.steps):
            slower[setting] = pair[0] / pair[1]
    for setting, here in slower.items():
        rarest = min(s.p for s in slower if s[:2] == setting[:2])
        if setting.p != rarest:
            gap = difference(slower[setting._replace(p=rarest)], here)
            yield Finding(
                {**_where(setting), "p": f"{rarest:g} against {setting.p:g}"}, gap, above(gap, 0.0)
            )


def _expected(run: Run, who: str, what: str, says: str) -> Claim:
    """That a ratio is never above 1, when it is computed from expected errors: no noise is in it."""
    return Claim(
        f"{_slug(who)}-{what}-expected",
        says,
        f"The share of trials in which {_NAMED[what]} is above 1, by expected errors; holds where there "
        "is none.",
        tuple(
            _never(run, s, partial(_measure, f"expected_{what}"))
            for s in _settings(run, (*PAIR, *TEN), (who,))
            if not np.isnan(_measure(f"expected_{what}", run[s])).any()
        ),
        percent,
        "%",
    )


def _realised(run: Run, who: str, what: str, says: str) -> Claim:
    """That a ratio is typically at most 1: in a single trial, noise may lift it above."""
    settings = _settings(run, (*PAIR, *TEN), (who,))
    return Claim(
        f"{_slug(who)}-{what}-realised",
        says,
        f"The median over trials of {_NAMED[what]} by realised errors; holds where its interval is at "
        f"most 1.{_BEST_OF_MANY if what == 'interference' else ''}",
        tuple(_typical(run, s, partial(_measure, what), at_most) for s in settings),
        also=_broken([_measure(what, run[s]) for s in settings]),
    )


def _broken(of_settings: list[Numbers]) -> str:
    """In how many trials a ratio is above 1, and infinite, in the best and the worst setting."""
    if not of_settings:
        return ""
    broken = [float((values > 1).mean()) for values in of_settings]
    endless = max(float(np.isinf(values).mean()) for values in of_settings)
    ends = list(dict.fromkeys(f"{percent(end)} %" for end in (min(broken), max(broken))))
    return (
        f"It is above 1 in {' to '.join(ends)} of the trials of a setting, and infinite in at most "
        f"{percent(endless)} %."
    )


#: The best of several noisy counts against a single one.
_BEST_OF_MANY = (
    " It sets the best of the runs without each other analyst against one run, so where errors are near "
    "alpha, noise alone lifts it above 1."
)
_NAMED = {"ratio": "the max ratio error", "interference": "the interference"}


def _measure(name: str, outcomes: Outcomes) -> Numbers:
    found: Numbers = getattr(outcomes, name)
    return found


def _never(run: Run, setting: Setting, measure: Measure) -> Finding:
    values = measure(run[setting])
    found = share(values > 1)
    return Finding(
        _where(setting), found, not found.value, f"{int(np.sum(values > 1))} of {len(values)} trials"
    )


def _typical(
    run: Run, setting: Setting, measure: Measure, side: Callable[[Estimate, float], bool | None]
) -> Finding:
    values = measure(run[setting])
    found = median(values)
    broken, endless = share(values > 1), share(np.isinf(values))
    note = f"above 1 in {percent(broken.value)} % of trials, infinite in {percent(endless.value)} %"
    return Finding(_where(setting), found, side(found, 1.0), note)


def _gains(run: Run, who: Iterable[str], against: str, least: float) -> tuple[Finding, ...]:
    """How much more accurate some are than another, on the same streams."""
    findings = []
    for setting in _settings(run, TEN, tuple(who)):
        if pair := _paired(run, setting, against, lambda o: o.accuracy):
            gain = mean(pair[0] - pair[1])
            note = f"{percent(float(pair[0].mean()))} % against {percent(float(pair[1].mean()))} %"
            findings.append(Finding(_where(setting), gain, above(gain, least), note))
    return tuple(findings)


def _paired(
    run: Run, setting: Setting, against: str, measure: Measure
) -> tuple[Numbers, Numbers] | None:
    """A measure of two contestants in the trials that both played; None where there are none."""
    here, there = run[setting], run.get(setting._replace(contestant=against))
    if there is None:
        return None
    both: NDArray[np.int64] = np.intersect1d(here.trial, there.trial, assume_unique=True)
    return (measure(here)[here.at(both)], measure(there)[there.at(both)]) if len(both) else None


def _settings(run: Run, studies: tuple[str, ...], who: tuple[str, ...]) -> list[Setting]:
    """The settings of these studies and contestants, by contestant first."""
    found = [s for s in run if s.study.lower() in studies and s.contestant in who]
    return sorted(found, key=lambda s: (who.index(s.contestant), s.study, s.epsilon, s.p))


def _where(setting: Setting) -> dict[str, str]:
    return {
        "contestant": setting.contestant,
        "study": setting.study,
        "epsilon": f"{setting.epsilon:g}",
        "p": f"{setting.p:g}",
    }


def _slug(who: str) -> str:
    return who.lower().replace(" ", "-")
