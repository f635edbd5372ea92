"""What curators type while the service runs."""

import json
import re

from sharewell import wire
from tests.cli.commands import COUNT, InProcess, found, refused, said, typed


def test_the_ledger_says_what_happened(way):
    said("ask", COUNT, *way.of("ann"))
    shown = said("ledger", *way.of("curator"))
    asked = found(rf"(\d+) +asked +ann +{re.escape(COUNT)}", shown)
    assert re.search(r"charged +ann, ben +5/4, 5/4 for the seed, identity", shown)
    assert re.search(r"charged +ann +1/8 for 1 number", shown)
    assert re.search(rf"answered +question {asked[1]}, 1 number", shown)
    assert "Head: 10:" in shown


def test_the_ledger_is_shown_in_pages(way):
    said("analysts", *way.of("curator"))
    first = json.loads(said("ledger", "--after", "-1", "--limit", "2", "--json", *way.of("curator")))
    assert [event["number"] for event in first["events"]] == [0, 1]
    assert first["next"] == 1
    shown = said("ledger", "--after", "1", "--limit", "2", *way.of("curator"))
    assert re.findall(r"^ +(\d+) ", shown, re.MULTILINE) == ["2", "3"]
    assert "There are more: --after 3" in shown
    last = json.loads(said("ledger", "--limit", "2", "--json", *way.of("curator")))
    assert [event["number"] for event in last["events"]] == [4, 5]
    assert last["next"] is None


def test_a_ledger_reads_the_same_from_a_server_and_from_its_file(server, dataset):
    said("ask", COUNT, *server.of("ann"))
    over = json.loads(said("ledger", "--limit", "100", "--json", *server.of("curator")))
    for where in (
        ["--file", str(dataset.with_name("people.ledger.sqlite"))],
        ["--config", str(dataset)],
    ):
        assert json.loads(said("ledger", "--limit", "100", "--json", *where)) == over
    assert wire.Events.model_validate(over).events


def test_a_ledger_that_is_not_there_is_not_begun(dataset, tmp_path):
    before = sorted(tmp_path.iterdir())
    refused("ledger", "--file", str(tmp_path / "none.sqlite"))
    refused("ledger", "--config", str(dataset))
    assert sorted(tmp_path.iterdir()) == before


def test_analysts_are_shown_with_what_they_have_left(way):
    shown = said("analysts", *way.of("curator"))
    assert re.search(r"ann +1/4 +5/2 +5/4 +0 +0 +█{10}░{10}", shown)
    assert "1/2 of the budget, epsilon 5, is nobody's yet." in shown
    plain = json.loads(said("analysts", "--json", *way.of("curator")))
    assert wire.Analysts.model_validate(plain).model_dump(mode="json") == plain


def test_nothing_that_is_left_is_said_in_words(way):
    said("analysts", "add", "cleo", "1/2", *way.of("curator"))
    assert "All of it is given out." in said("analysts", *way.of("curator"))


def test_somebody_is_taken_in_and_let_go(server):
    link = server.of("curator")
    told = typed("analysts", "add", "cleo", "1/10", *link)
    token = told.stdout.strip()
    assert told.stdout == f"{token}\n"
    assert "A new token for the analyst cleo" in told.stderr
    theirs = ["--url", server.running.url, "--token", token]
    assert "1/2 of 1 epsilon left" in said("budget", *theirs)
    again = said("analysts", "token", "cleo", *link).strip()
    assert "opens nothing" in refused("budget", *theirs)
    theirs[-1] = again
    assert said("budget", *theirs).startswith("cleo ")
    assert "never spent" in said("analysts", "remove", "cleo", *link)
    assert "opens nothing" in refused("budget", *theirs)
    assert "cleo" not in said("analysts", *link)


def test_what_a_leaving_analyst_donates_is_spent_for_all(way):
    assert "donated to all others" in said("analysts", "remove", "ben", "--donate", *way.of("curator"))
    assert re.search(r"charged +ben +5/4 for the seed", said("ledger", *way.of("curator")))


def test_options_may_stand_before_what_is_done(dataset):
    link = InProcess(dataset).of("curator")
    assert said("analysts", *link, "add", "cleo", "1/10").startswith("sw_")
    plain = json.loads(said("analysts", "--json", *link, "remove", "cleo"))
    assert plain == {}


def test_a_pause_lasts_until_resume(server):
    link = server.of("curator")
    assert "No question is taken" in said("pause", *link)
    assert "people is paused." in refused("ask", COUNT, *server.of("ann"))
    assert "It is paused." in said("dataset", *server.of("ann"))
    assert json.loads(said("resume", "--json", *link)) == {}
    said("ask", COUNT, *server.of("ann"))


def test_who_has_the_file_can_pause_a_server_that_runs(server, dataset):
    said("pause", "--config", str(dataset))
    assert "people is paused." in refused("ask", COUNT, *server.of("ann"))
    said("resume", "--config", str(dataset))
    said("ask", COUNT, *server.of("ann"))


def test_analysts_are_not_curators(server):
    for words in (("ledger",), ("analysts",), ("analysts", "add", "cleo", "1/10"), ("pause",)):
        assert "This is for curators" in refused(*words, *server.of("ann"))
