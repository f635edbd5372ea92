"""Verdicts, put together from where a claim held and where it did not."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from sharewell.lab.estimates import Estimate, plain

#: The setting of a finding: what differs from finding to finding, as words.
Where = Mapping[str, str]

#: How many conditions are named one by one.
FEW = 2
NAMES = {"contestant": "the contestant", "study": "the study", "mechanism": "the mechanism"}


@dataclass(frozen=True)
class Finding:
    """What was measured in one setting, and whether the claim holds there; None where undecided."""

    where: Where
    measured: Estimate
    holds: bool | None
    #: Further numbers that help to read it.
    note: str = ""

    @property
    def place(self) -> str:
        """The setting in a few words."""
        return ", ".join(
            value if name in NAMES else f"{name} = {value}" for name, value in self.where.items()
        )


@dataclass(frozen=True)
class Claim:
    """Something that the paper says, what was measured, and the verdict that follows by a fixed rule."""

    name: str
    #: The claim, in our words.
    says: str
    #: What the number is, and when the claim counts as held.
    judged: str
    findings: tuple[Finding, ...]
    number: Callable[[float], str] = plain
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
        return f"{self._range}. {self.also}" if self.also else self._range

    @property
    def _range(self) -> str:
        least = min(self.findings, key=lambda finding: finding.measured.value)
        most = max(self.findings, key=lambda finding: finding.measured.value)
        if len(self.findings) == 1:
            return self.shown(least)
        if least.measured.value == most.measured.value:
            widest = max(self.findings, key=lambda f: f.measured.high - f.measured.low)
            return f"{self.shown(widest)} in all {len(self.findings)} settings"
        return " to ".join(f"{self.shown(f)} ({f.place})" for f in (least, most))

    def shown(self, finding: Finding) -> str:
        """What was measured in one setting, with its interval and unit."""
        return f"{finding.measured.shown(self.number)} {self.unit}".strip()


def above(measured: Estimate, bound: float) -> bool | None:
    """Whether something is above a bound: by its whole interval, or it is undecided."""
    return True if measured.low > bound else False if measured.high <= bound else None


def at_most(measured: Estimate, bound: float) -> bool | None:
    """Whether something is at most a bound: by its whole interval, or it is undecided."""
    return True if measured.high <= bound else False if measured.low > bound else None


def below(measured: Estimate, bound: float) -> bool | None:
    """Whether something is below a bound: by its whole interval, or it is undecided."""
    return True if measured.high < bound else False if measured.low >= bound else None


def verdict(findings: Sequence[Finding]) -> str:
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
    words = f"holds only when {in_words(held, among)}" if held else "does not hold"
    return f"{words}; undecided {_when(undecided, among)}" if undecided else words


def _when(undecided: Sequence[Where], among: Sequence[Where]) -> str:
    """Where nothing was decided, or in how many settings, when to name them would take too long."""
    if len(_cover(undecided, among)) > FEW:
        return f"in {len(undecided)} of {len(among)} settings"
    return f"when {in_words(undecided, among)}"


def in_words(chosen: Sequence[Where], among: Sequence[Where]) -> str:
    """Which settings were chosen among all: "p is 0.9 or 1, or epsilon is 0.1 and p is 0.5"."""
    phrases = [
        " and ".join(f"{NAMES.get(name, name)} is {_either(values)}" for name, values in part.items())
        for part in _cover(chosen, among)
    ]
    return "; or ".join(phrase or "always" for phrase in phrases)


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
