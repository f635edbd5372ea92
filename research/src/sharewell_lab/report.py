"""The report of a run: settings, claims with their verdicts, figures and all numbers.

It is written twice from the same parts, as Markdown and as one HTML file that needs nothing beside it.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import sharewell
from sharewell.datasets import movers_by_age
from sharewell.errors import SourceError
from sharewell_lab import document
from sharewell_lab.claims import Claim, claims, percent
from sharewell_lab.document import Code, Figure, Heading, Part, Table, Text
from sharewell_lab.estimates import mean, median
from sharewell_lab.figures import draw_all
from sharewell_lab.limit import LimitNumbers, measure_limit
from sharewell_lab.results import Numbers, Outcomes, OutcomeTable, by_scenario, read_results
from sharewell_lab.studies import STUDIES

#: What a runner leaves beside the results about how they came to be; the first that is there is read.
METADATA = ("run.json", "settings.json", "study.json")

CLAIM_HEAD = ("the paper says, in our words", "holds if", "measured", "verdict")
#: On a page: where numbers were found, and by which rule a claim is judged, is in the report.
PAGE_HEAD = ("the paper says, in our words", "measured", "verdict")

INTERVALS = (
    "Numbers in brackets are 90 % intervals: Student's of a mean, between two order statistics of a "
    "median, Clopper and Pearson's of a share. A claim that something never happens holds where it did "
    "not happen in any trial. Any other counts as held in a setting when the whole interval is on its "
    "side, as broken when it is on the other, and as undecided in between. "
    "*Realised* errors are those that happened; *expected* ones are standard errors, which depend on "
    "the questions alone and are known for Laplace and SCR. The realised interference compares the best "
    "of several runs with one run, so where errors are near alpha, noise alone lifts it above 1."
)

NUMBERS = (
    "Accuracy is the share of questions answered within alpha. Ratios are medians, since they can be "
    "infinite; the rest are means."
)


def write_report(out: Path, results: Path) -> None:
    """Draw the figures of a run and write report.md, report.html and claims.json into `out`."""
    out.mkdir(parents=True, exist_ok=True)
    run = by_scenario(read_results(results))
    limit = measured_limit(run)
    drawn = draw_all(run, out / "figures", limit)
    _write_json(out / "figures" / "captions.json", {one.name: one.caption for one in drawn})
    # A user's own study does not bear on the paper.
    judged = claims(run, limit) if limit else []
    about = metadata(out)
    _write_json(out / "claims.json", [plain(claim) for claim in judged])
    parts: list[Part] = [
        Heading(1, "The paper's experiments, reproduced and judged" if judged else "A study"),
        Heading(2, "Settings"),
        settings_table(about, run),
        Text(INTERVALS),
        *claims_table(judged),
        Heading(2, "Figures"),
        *(Figure(one.svg, one.caption) for one in drawn),
        Heading(2, "All numbers"),
        Text(NUMBERS),
        numbers_table(run),
        *details(judged),
        Heading(2, "How to run it again"),
        Text("The same seed gives the same results, byte for byte, whatever the number of jobs."),
        Code(command(about)),
    ]
    (out / "report.md").write_text(document.markdown(parts, out), encoding="utf-8")
    (out / "report.html").write_text(document.html(parts), encoding="utf-8")


def update_page(page: Path, out: Path, other: Path | None = None) -> None:
    """Rewrite a page's parts between markers from a run's output, and copy its figures beside it.

    The parts are `<!-- claims -->`, `<!-- settings -->` and `<!-- figures -->`, each up to its
    `<!-- /... -->`. A page needs the first; the figures go to `figures/reproduction` beside it. With
    the output of an `other` run, `<!-- other -->` lists the claims that it judges otherwise.
    """
    judged = _judged(out)
    text = page.read_text(encoding="utf-8")
    folder = page.parent / "figures" / "reproduction"
    new: dict[str, list[Part]] = {
        "claims": [
            Table(PAGE_HEAD, [(one["says"], one["brief"], one["verdict"]) for one in judged]),
        ],
        "settings": [settings_table(metadata(out))],
    }
    if other is not None:
        new["other"] = [
            _other_settings(metadata(other), metadata(out)),
            _differences(judged, _judged(other)),
        ]
    if "<!-- figures -->" in text:
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.iterdir():
            old.unlink()
        # By their captions, since a folder may also hold figures of an earlier run.
        captions = json.loads((out / "figures" / "captions.json").read_text(encoding="utf-8"))
        for name in captions:
            for suffix in ("svg", "png"):
                shutil.copy(out / "figures" / f"{name}.{suffix}", folder)
        new["figures"] = list(_figures(folder, captions))
    for name, parts in new.items():
        text = replace_between(text, name, document.markdown(parts, page.parent))
    page.write_text(text, encoding="utf-8")


def _judged(out: Path) -> list[dict[str, Any]]:
    """The claims of a run, as plain data."""
    report = out / "claims.json"
    if not report.is_file():
        raise SourceError(f"No report in {os.fspath(out)}.", hint="Run `sharewell reproduce`.")
    found: list[dict[str, Any]] = json.loads(report.read_text(encoding="utf-8"))
    return found


def _figures(folder: Path, captions: Mapping[str, str]) -> Iterator[Part]:
    """The figures with their titles; what several in a row have in common is said once, before them."""
    said = ""
    for name, caption in captions.items():
        title, _, legend = caption.partition(". ")
        if legend != said:
            yield Text(legend)
        yield Figure(folder / f"{name}.svg", title)
        said = legend


def _other_settings(other: Mapping[str, Any], here: Mapping[str, Any]) -> Table:
    """The settings of another run that differ from those of this one."""
    table, known = settings_table(other), settings_table(here).rows
    return Table(table.head, [row for row in table.rows if row not in known])


def _differences(here: list[dict[str, Any]], there: list[dict[str, Any]]) -> Table:
    """The claims that another run judges otherwise."""
    verdicts = {one["name"]: one["verdict"] for one in here}
    rows = [
        (one["says"], one["verdict"])
        for one in there
        if one["name"] in verdicts and one["verdict"] != verdicts[one["name"]]
    ]
    return Table((CLAIM_HEAD[0], "verdict there"), rows)


def replace_between(text: str, name: str, new: str) -> str:
    """A text with what stands between two markers replaced; without the markers, as it is."""
    start, end = f"<!-- {name} -->", f"<!-- /{name} -->"
    if start not in text and name != "claims":
        return text
    before, opened, rest = text.partition(start)
    _, closed, after = rest.partition(end)
    if not opened or not closed:
        raise SourceError(
            f"The page has no part between {start} and {end}.", hint="Put both markers where it belongs."
        )
    return f"{before}{start}\n\n{new.strip()}\n\n{end}{after}"


def measured_limit(run: OutcomeTable) -> LimitNumbers | None:
    """The numbers of the query limit, on the bundled table; None for a user's own study."""
    if run and not {setting.study for setting in run} & set(STUDIES):
        return None
    data = movers_by_age()
    return measure_limit(data, float(data.counts.sum()))


def metadata(out: Path) -> Mapping[str, Any]:
    """What the runner wrote about the run; nothing where it wrote nothing."""
    for name in METADATA:
        if (out / name).is_file():
            found = json.loads((out / name).read_text(encoding="utf-8"))
            if isinstance(found, dict):
                return found
    return {}


def settings_table(about: Mapping[str, Any], run: OutcomeTable | None = None) -> Table:
    """What the run was made with, as far as it is known."""
    rows = [("package", f"sharewell {about.get('version', sharewell.__version__)}")]
    for key in ("seed", "trials", "epsilons", "data"):
        if key in about:
            rows.append((key, _in_words(about[key])))
    for study in about.get("studies", ()):
        chosen = {key: study[key] for key in _STUDY_KEYS if key in study}
        rows.append((f"study {study.get('name', '')}", _in_words(chosen)))
    if run:
        counts = sorted({(setting.study, len(found.trial)) for setting, found in run.items()})
        rows.append(("trials found", "; ".join(f"{study}: {count:,}" for study, count in counts)))
    return Table(("setting", "value"), rows)


#: The keys of a study that the table of settings shows.
_STUDY_KEYS = ("trials", "cells", "analysts", "p")


def command(about: Mapping[str, Any]) -> str:
    """What to type for the same run."""
    if "command" in about:
        return str(about["command"])
    trials = max((study.get("trials", 0) for study in about.get("studies", ())), default=0)
    words = ["sharewell reproduce all", f"--trials {trials or about.get('trials', 1000)}"]
    if about.get("epsilons"):
        words.append(f"--epsilon {' '.join(f'{epsilon:g}' for epsilon in about['epsilons'])}")
    if "seed" in about:
        words.append(f"--seed {about['seed']}")
    return " ".join(words)


def numbers_table(run: OutcomeTable) -> Table:
    """Every measure in every setting."""
    head = ("study", "epsilon", "p", "contestant", *(label for label, *_ in _MEASURES))
    rows = []
    for setting, found in run.items():
        keys = (setting.study, f"{setting.epsilon:g}", f"{setting.p:g}", setting.contestant)
        rows.append((*keys, *(_measure(found, name, kind) for _, name, kind in _MEASURES)))
    return Table(head, rows)


_MEASURES = (
    ("accuracy (%)", "accuracy", "share"),
    ("expected (%)", "expected_accuracy", "share"),
    ("max ratio error", "ratio", "ratio"),
    ("expected", "expected_ratio", "ratio"),
    ("interference", "interference", "ratio"),
    ("expected", "expected_interference", "ratio"),
    ("steps", "steps", "steps"),
)


def _measure(found: Outcomes, name: str, kind: str) -> str:
    values: Numbers = getattr(found, name)
    if np.isnan(values).any():
        return "not known"
    if kind == "share":
        return mean(values).text(lambda value: f"{100 * value:.1f}")
    if kind == "steps":
        return mean(values).text(lambda value: f"{value:.0f}")
    endless = float(np.isinf(values).mean())
    return median(values).text() + (f", ∞ in {percent(endless)} %" if endless else "")


def claims_table(judged: Sequence[Claim]) -> list[Part]:
    """Every claim with what was measured and the verdict."""
    rows = [(one.says, one.judged, one.measured, one.verdict) for one in judged]
    title = Heading(2, "The paper's claims, and what was found")
    return [title, Table(CLAIM_HEAD, rows)] if rows else []


def details(judged: Sequence[Claim]) -> list[Part]:
    """Every claim with everything that was found about it."""
    title = Heading(2, "Every claim in every setting")
    return [title, *(part for claim in judged for part in _detail(claim))] if judged else []


def _detail(claim: Claim) -> list[Part]:
    names = list(claim.findings[0].where)
    judged = {True: "holds", False: "does not hold", None: "undecided"}
    rows = [
        (*finding.where.values(), claim.text(finding), finding.note, judged[finding.holds])
        for finding in claim.findings
    ]
    return [
        Heading(3, claim.says),
        Text(f"Holds where: {claim.judged}. Verdict: {claim.verdict}."),
        Table((*names, "measured", "note", "here it"), rows),
    ]


def plain(claim: Claim) -> dict[str, Any]:
    """A claim as plain data."""
    return {
        "name": claim.name,
        "says": claim.says,
        "measured": claim.measured,
        "brief": claim.brief,
        "verdict": claim.verdict,
        "judged": claim.judged,
        "findings": [
            {
                "where": dict(finding.where),
                "measured": claim.text(finding),
                "holds": finding.holds,
                "note": finding.note,
            }
            for finding in claim.findings
        ],
    }


def _in_words(value: object) -> str:
    if isinstance(value, Mapping):
        return "; ".join(f"{key}: {_in_words(inner)}" for key, inner in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(_in_words, value))
    if isinstance(value, int | float) and not isinstance(value, bool):
        return f"{value:,}" if isinstance(value, int) else f"{value:,g}"
    return str(value)


def _write_json(path: Path, value: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
