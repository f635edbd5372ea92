"""Commands for curators at run time."""

import json
import re
import stat

from sharewell import wire
from tests.cli.commands import COUNT, InProcess, found, refused, said, typed


def test_the_ledger_says_what_happened(way):
    said("ask", COUNT, *way.of("ann"))
    shown = said("ledger", *way.of("curator"))
    asked = found(rf"(\d+) +asked +ann +{re.escape(COUNT)}", shown)
    assert re.search(r"charged +ann, ben +5/4, 5/4 for the seed, identity", shown)
    assert re.search(r"charged +ann +1/8 for 1 measurement", shown)
    assert re.search(rf"answered +question {asked[1]}, 1 value", shown)
    assert re.search(r"Head: 1[23]:", shown)


def test_the_ledger_is_shown_in_pages(way):
    said("analysts", *way.of("curator"))
    first = json.loads(said("ledger", "--after", "-1", "--limit", "2", "--json", *way.of("curator")))
    assert [event["number"] for event in first["events"]] == [0, 1]
    assert first["next"] == 1
    shown = said("ledger", "--after", "1", "--limit", "2", *way.of("curator"))
    assert re.findall(r"^ +(\d+) ", shown, re.MULTILINE) == ["2", "3"]
    assert "More events: --after 3" in shown
    last = json.loads(said("ledger", "--limit", "2", "--json", *way.of("curator")))
    assert [event["number"] for event in last["events"]] == [6, 7]
    assert last["next"] is None


def test_a_ledger_reads_the_same_from_a_server_and_from_its_file(server, dataset):
    said("ask", COUNT, *server.of("ann"))
    over = json.loads(said("ledger", "--limit", "100", "--json", *server.of("curator")))
    for where in (
        ["--file", str(dataset.with_name("people.ledger.sqlite"))],
        ["--config", str(dataset)],
    ):
        assert json.loads(said("ledger", "--limit", "100", "--json", *where)) == over
    assert wire.EventPage.model_validate(over).events


def test_a_ledger_that_is_not_there_is_not_begun(dataset, tmp_path):
    dataset.with_name("people.ledger.sqlite").unlink()
    before = sorted(tmp_path.iterdir())
    refused("ledger", "--file", str(tmp_path / "none.sqlite"))
    refused("ledger", "--config", str(dataset))
    assert sorted(tmp_path.iterdir()) == before


def test_analysts_are_shown_with_what_they_have_left(way):
    shown = said("analysts", *way.of("curator"))
    assert re.search(r"ann +1/4 +5/2 +5/4 +0 +0 +█{10}░{10}", shown)
    assert "Unallocated: 1/2 of the budget, epsilon 5." in shown
    plain = json.loads(said("analysts", "--json", *way.of("curator")))
    assert wire.AnalystList.model_validate(plain).model_dump(mode="json") == plain


def test_a_fully_allocated_budget_is_reported(way):
    said("analysts", "add", "cleo", "1/2", *way.of("curator"))
    assert "The whole budget is allocated." in said("analysts", *way.of("curator"))


def test_an_analyst_is_added_and_removed(server):
    options = server.of("curator")
    result = typed("analysts", "add", "cleo", "1/10", *options)
    token = result.stdout.strip()
    assert result.stdout == f"{token}\n"
    assert "New token for analyst cleo" in result.stderr
    theirs = ["--url", server.running.url, "--token", token]
    assert "1/2 of 1 epsilon left" in said("budget", *theirs)
    again = said("analysts", "token", "cleo", *options).strip()
    assert "Unknown token" in refused("budget", *theirs)
    theirs[-1] = again
    assert said("budget", *theirs).startswith("cleo ")
    assert "cleo is already an analyst. " in refused("analysts", "add", "cleo", "1/10", *options)
    assert "Removed cleo and revoked the token. The rest of the share is never spent." in said(
        "analysts", "remove", "cleo", "--yes", *options
    )
    assert "Unknown token" in refused("budget", *theirs)
    assert "cleo" not in said("analysts", *options)
    assert "cleo was removed; " in refused("analysts", "add", "cleo", "1/10", *options)
    assert "Invalid name 'bad name'. " in refused("analysts", "add", "bad name", "1/10", *options)


def test_tokens_of_analysts_are_written_to_new_private_files(way, tmp_path):
    options = way.of("curator")
    first, second = tmp_path / "first", tmp_path / "second"
    told = said("analysts", "add", "cleo", "1/10", "--out", str(first), *options)
    assert f"Wrote a token for analyst cleo to {first}." in told
    assert stat.S_IMODE(first.stat().st_mode) == 0o600
    assert first.read_text().startswith("sw_")
    said("analysts", "token", "cleo", "--out", str(second), *options)
    assert second.read_text() != first.read_text()
    kept = second.read_text()
    assert "file exists" in refused("analysts", "token", "cleo", "--out", str(second), *options)
    assert second.read_text() == kept
    other = tmp_path / "other"
    assert "already an analyst" in refused(
        "analysts", "add", "cleo", "1/10", "--out", str(other), *options
    )
    assert not other.exists(), "nothing is left of a file without a token"


def test_nobody_is_removed_without_a_confirmation(server):
    options = server.of("curator")
    assert "Confirmation required" in refused("analysts", "remove", "ben", *options)
    assert "ben" in said("analysts", *options)


def test_what_a_leaving_analyst_donates_is_spent_for_all(way):
    words = ("analysts", "remove", "ben", "--donate", "--yes")
    assert "donated to all analysts" in said(*words, *way.of("curator"))
    shown = said("ledger", *way.of("curator"))
    assert re.search(r"charged +ben +5/4 for the seed", shown)
    assert re.search(r"curator +remove analyst ben, by", shown)


def test_options_may_stand_before_what_is_done(dataset):
    options = InProcess(dataset).of("curator")
    assert said("analysts", *options, "add", "cleo", "1/10").startswith("sw_")
    plain = json.loads(said("analysts", "--json", *options, "remove", "cleo", "--yes"))
    assert plain == {}


def test_a_pause_lasts_until_resume(server):
    options = server.of("curator")
    assert "Paused." in said("pause", *options)
    assert "people is paused." in refused("ask", COUNT, *server.of("ann"))
    assert "The dataset is paused" in said("dataset", *server.of("ann"))
    assert json.loads(said("resume", "--json", *options)) == {}
    said("ask", COUNT, *server.of("ann"))


def test_the_configuration_file_suffices_to_pause_a_running_server(server, dataset):
    said("pause", "--config", str(dataset))
    assert "people is paused." in refused("ask", COUNT, *server.of("ann"))
    said("resume", "--config", str(dataset))
    said("ask", COUNT, *server.of("ann"))


def test_analysts_are_not_curators(server):
    for words in (("ledger",), ("analysts",), ("analysts", "add", "cleo", "1/10"), ("pause",)):
        assert "requires the role curator" in refused(*words, *server.of("ann"))


def test_a_round_is_closed_for_those_who_are_done(way):
    assert "No analyst is done." in refused("close-round", *way.of("curator"))
    said("done", *way.of("ann"))
    assert "Confirmation required" in refused("close-round", *way.of("curator"))
    closed = said("close-round", "--yes", *way.of("curator"))
    assert "Closed the round: ann had epsilon 5/4 left, 1/8 of the budget." in closed
    shown = said("ledger", *way.of("curator"))
    assert re.search(r"round closed +ann", shown)
    assert re.search(r"charged +ann +5/4 for the seed", shown)
    assert re.search(r"curator +close round, by", shown)
    assert re.search(r"ann +1/4 +5/2 +0 ", said("analysts", *way.of("curator")))
