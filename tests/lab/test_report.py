"""Reports: complete, self-contained, and with verdicts that come from the results alone."""

import json
import re
import shutil
from html.parser import HTMLParser

import pytest

from sharewell.errors import SourceError
from sharewell_lab import report
from sharewell_lab.report import command, update_page, write_report
from tests.lab.made_up import Model, write

ABOUT = {
    "version": "9.9.9",
    "seed": 7,
    "trials": 12,
    "epsilons": [1.0],
    "data": {"name": "the paper's own counts", "cells": 86, "population": 21753},
    "command": "sharewell reproduce all --trials 12 --seed 7 --data counts.csv",
}
PAGE = """# Title

Words before.

<!-- settings -->
<!-- /settings -->

<!-- claims -->
typed by hand
<!-- /claims -->

Words between.

<!-- figures -->
<!-- /figures -->

Words after.
"""


class Tags(HTMLParser):
    """What a page opens and closes, and where it points."""

    def __init__(self):
        super().__init__()
        self.open, self.wrong, self.targets = [], [], []

    def handle_starttag(self, tag, attrs):
        self.targets += [value for name, value in attrs if name in ("src", "href", "srcset")]
        if tag not in ("meta", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.wrong.append(tag)


@pytest.fixture(scope="module")
def made(tmp_path_factory, limit):
    """A report of a made-up run in which all claims hold but one."""
    out = tmp_path_factory.mktemp("run")
    model = Model(trials=12, studies=("fig1", "fig3")).changed(SCR={"joint": 0.95})
    results = model.write(out / "results.parquet")
    (out / "run.json").write_text(json.dumps(ABOUT), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        # The limit on few queries: measuring it in full takes seconds, and is tested elsewhere.
        patch.setattr(report, "measured_limit", lambda run: limit)
        write_report(out, results)
    return out


def verdicts(markdown, head=report.CLAIM_HEAD):
    """The table of claims of a text: what is said, and the verdict."""
    head = f"| {' | '.join(head)} |"
    lines = markdown.partition(head)[2].split("\n\n")[0].splitlines()[2:]
    rows = [re.split(r"(?<!\\) \| ", line.strip("| ")) for line in lines]
    return {says: verdict for says, *_, verdict in rows}


def test_the_verdicts_follow_from_the_results(made):
    found = verdicts((made / "report.md").read_text(encoding="utf-8"))
    assert len(found) > 15
    than = "PMW, with a scheduler or without, gives more useful answers than"
    assert found[f"{than} SCR as printed."] == "holds"
    assert found[f"{than} SCR with estimates."] == "does not hold"


def test_markdown_html_and_json_say_the_same(made):
    text = (made / "report.html").read_text(encoding="utf-8")
    found = verdicts((made / "report.md").read_text(encoding="utf-8"))
    stored = json.loads((made / "claims.json").read_text(encoding="utf-8"))
    assert {one["says"]: one["verdict"] for one in stored} == found
    for verdict in ("holds", "does not hold"):
        assert f">{verdict}</td>" in text
    assert stored[0]["findings"][0]["where"]["contestant"] == "PMW"


def test_settings_numbers_and_how_to_run_it_again_are_there(made):
    text = (made / "report.md").read_text(encoding="utf-8")
    for words in ("sharewell 9.9.9", "| seed | 7 |", "the paper's own counts", "population: 21,753"):
        assert words in text
    assert ABOUT["command"] in text
    numbers = [line for line in text.splitlines() if line.startswith("| fig3 | 1 | 0.01 | ")]
    assert len(numbers) == 8
    scr = next(line for line in numbers if "| SCR |" in line)
    # Of 40 questions 38 less 0, 1 or 2 are useful: 92.5 % in the mean; alone it is 16 of 38 at most.
    assert scr.split(" | ")[4].startswith("92.5 [")
    assert scr.split(" | ")[6] == "0.421"
    assert next(line for line in numbers if "| PMW |" in line).split(" | ")[5] == "not known"


def test_the_html_is_whole_and_needs_nothing_from_elsewhere(made):
    text = (made / "report.html").read_text(encoding="utf-8")
    tags = Tags()
    tags.feed(text)
    assert (tags.open, tags.wrong) == ([], [])
    assert len(tags.targets) == 3
    assert all(target.startswith("data:image/svg+xml;base64,") for target in tags.targets)
    assert "prefers-color-scheme: dark" in text
    assert not re.search(r"<script|@import|url\(", text)


def test_the_markdown_points_to_figures_that_are_there(made):
    text = (made / "report.md").read_text(encoding="utf-8")
    found = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", text)
    assert sorted(found) == [
        "figures/fig1-epsilon-1.svg", "figures/fig2.svg", "figures/fig3-epsilon-1.svg",
    ]  # fmt: skip
    for way in found:
        assert (made / way).is_file()
        assert (made / way).with_suffix(".png").is_file()


def test_a_report_is_the_same_every_time(made, tmp_path, monkeypatch, limit):
    monkeypatch.setattr(report, "measured_limit", lambda run: limit)
    for name in ("results.parquet", "run.json"):
        shutil.copy(made / name, tmp_path)
    write_report(tmp_path, tmp_path / "results.parquet")
    for name in ("report.md", "report.html", "claims.json"):
        assert (tmp_path / name).read_bytes() == (made / name).read_bytes()


def test_a_page_gets_its_tables_and_figures_from_the_run(made, tmp_path):
    page = tmp_path / "docs" / "page.md"
    page.parent.mkdir()
    page.write_text(PAGE, encoding="utf-8")
    update_page(page, made)
    once = page.read_text(encoding="utf-8")
    assert "typed by hand" not in once
    whole = verdicts((made / "report.md").read_text(encoding="utf-8"))
    assert verdicts(once, report.PAGE_HEAD) == whole
    for words in ("Words before.", "Words between.", "Words after.", "sharewell 9.9.9"):
        assert once.count(words) == 1
    for way in re.findall(r"\]\(([^)]+)\)", once):
        assert way.startswith("figures/reproduction/")
        assert (page.parent / way).is_file()
    update_page(page, made)
    assert page.read_text(encoding="utf-8") == once


def test_a_page_lists_what_another_run_judges_otherwise(made, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    shutil.copy(made / "run.json", other)
    judged = json.loads((made / "claims.json").read_text(encoding="utf-8"))
    judged[2]["verdict"] = "holds on the moon"
    (other / "claims.json").write_text(json.dumps(judged), encoding="utf-8")
    page = tmp_path / "page.md"
    page.write_text(f"{PAGE}\n<!-- other -->\n<!-- /other -->\n", encoding="utf-8")
    update_page(page, made, other)
    _, _, table = page.read_text(encoding="utf-8").partition("<!-- other -->")
    assert table.count("holds on the moon") == 1
    assert judged[2]["says"] in table
    assert judged[1]["says"] not in table


def test_a_figure_that_a_new_run_does_not_have_is_taken_away(made, tmp_path):
    page = tmp_path / "page.md"
    page.write_text(PAGE, encoding="utf-8")
    old = tmp_path / "figures" / "reproduction" / "old.svg"
    old.parent.mkdir(parents=True)
    old.touch()
    stale = made / "figures" / "stale.svg"
    stale.touch()
    update_page(page, made)
    stale.unlink()
    assert sorted(path.name for path in old.parent.glob("*.svg")) == [
        "fig1-epsilon-1.svg", "fig2.svg", "fig3-epsilon-1.svg",
    ]  # fmt: skip


def test_a_page_without_markers_or_a_run_without_a_report_is_refused(made, tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# Title\n", encoding="utf-8")
    with pytest.raises(SourceError, match="no part between <!-- claims -->"):
        update_page(page, made)
    page.write_text("<!-- claims -->\n", encoding="utf-8")
    with pytest.raises(SourceError, match="no part between"):
        update_page(page, made)
    with pytest.raises(SourceError, match="No report in"):
        update_page(page, tmp_path)
    assert page.read_text(encoding="utf-8") == "<!-- claims -->\n"


def test_a_study_of_ones_own_makes_no_claims_about_the_paper(tmp_path):
    columns = Model(trials=3, studies=("fig3",)).columns()
    columns = {name: column[columns["p"] == 0.1] for name, column in columns.items()}
    columns["study"][:] = "mine"
    write_report(tmp_path, write(columns, tmp_path / "results.parquet"))
    text = (tmp_path / "report.md").read_text(encoding="utf-8")
    assert "paper" not in text
    assert "figures/mine-epsilon-1.svg" in text


def test_the_command_is_put_together_where_the_run_does_not_tell_it():
    about = {"studies": [{"trials": 50}, {"trials": 10}], "epsilons": [0.1, 1.0], "seed": 3}
    assert command(about) == "sharewell reproduce all --trials 50 --epsilon 0.1 1 --seed 3"
