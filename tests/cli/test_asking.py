"""What analysts type: the same over a server and in this process."""

import json
import re

import pytest

from sharewell import wire
from sharewell.cli.shown_answers import show_quote
from tests.cli.commands import (
    COUNT,
    EVERYBODY,
    GROUPS,
    InProcess,
    found,
    refused,
    said,
    typed,
    write_dataset,
)


def test_an_answer_says_how_far_off_it_may_be_and_who_paid(way):
    first = said("ask", COUNT, *way.of("ann"))
    assert re.match(r"-?[\d,.]+ ± [\d.]+ \(95 %\)\nMeasured\. It cost 1/8, which ann paid\.\n$", first)
    second = said("ask", COUNT, *way.of("ben"))
    assert second.endswith("Cached. It cost nothing: ann had paid for it.\n")


def test_a_table_has_a_row_for_each_group(way):
    shown = said("ask", GROUPS, *way.of("ann"))
    assert [line.split()[0] for line in shown.splitlines() if "±" in line] == ["F", "M"]
    assert "2 rows; 95 % intervals; measured. It cost 1/4, which ann paid." in shown


def test_what_is_asked_free_costs_nothing(way):
    shown = said("ask", COUNT, "--free", *way.of("ann"))
    assert "Reconstructed. It cost nothing: it is made from what was bought before." in shown
    assert "10 paid questions. 1 question asked" in said("budget", *way.of("ann"))


def test_a_dash_reads_the_question_from_stdin(way):
    answered = json.loads(said("ask", "-", "--json", *way.of("ann"), stdin=f"{COUNT}\n"))
    assert answered["sql"] == f"{COUNT}\n"
    assert "paid" in said("quote", "-", *way.of("ann"), stdin=COUNT)
    assert refused("ask", "-", *way.of("ann")).startswith("There is no SQL.")


def test_a_key_makes_one_question_of_two(way):
    first, second = (
        json.loads(said("ask", COUNT, "--key", "monday", "--json", *way.of("ann"))) for _ in range(2)
    )
    assert first == second
    assert "another" in refused("ask", GROUPS, "--key", "monday", *way.of("ann"))


def test_a_quote_says_both_ways_and_what_is_left(way):
    shown = said("quote", EVERYBODY, *way.of("ann"))
    assert re.search(r"cost +1/8 +nothing *\n", shown)
    paid, free = map(float, found(r"± of COUNT\(\*\) +([\d.]+) +([\d.]+)", shown).groups())
    assert paid < free
    assert "You have 5/4 left. Nothing was spent." in shown
    answered = json.loads(said("ask", EVERYBODY, "--json", *way.of("ann")))["answer"]["rows"][0][0]
    reach = (answered["interval"][1] - answered["interval"][0]) / 2
    assert paid == pytest.approx(reach, abs=0.1)


def test_a_quote_that_cannot_be_had_says_so(capsys):
    column = wire.Column(name="n", kind="number")
    offer = wire.Offer(cost="1/8", errors=((3.0, 2.0),))
    show_quote(wire.Quote(sql="", columns=(column,), groups=2, paid=None, free=None, means="0"))
    shown = capsys.readouterr().out
    assert re.search(r"cost +too little is left +nothing is known yet *\n +± of n +- +-", shown)
    show_quote(wire.Quote(sql="", columns=(column,), groups=2, paid=offer, free=None, means="1/4"))
    assert re.search(r"± of n +4.1 to 6.2 +-", capsys.readouterr().out)


def test_who_has_spent_all_is_told_so(tmp_path):
    link = InProcess(write_dataset(tmp_path, price="1/9")).of("ann")
    said("ask", COUNT, *link)
    assert "Not enough for another paid question" in said("budget", *link)
    another = f"{COUNT} AND sex = 'F'"
    assert re.search(r"cost +too little is left +nothing *\n", said("quote", another, *link))
    assert "What was left of your share was not enough" in said("ask", another, *link)
    assert "not enough" not in said("ask", another, "--free", *link)
    assert "not enough" not in said("ask", COUNT, *link)


def test_the_budget_is_a_bar_that_shrinks(way):
    before = said("budget", *way.of("ann"))
    assert "5/4 of 5/2 epsilon left\nEnough for 10 paid questions. 0 questions asked" in before
    said("ask", GROUPS, *way.of("ann"))
    after = said("budget", *way.of("ann"))
    assert before.count("█") == 10
    assert after.count("█") == 8
    assert before.count("█") + before.count("░") == after.count("█") + after.count("░") == 20


def test_questions_are_listed_and_can_be_fetched_again(way):
    assert said("questions", *way.of("ann")) == "You have asked nothing yet.\n"
    first = said("ask", COUNT, *way.of("ann"))
    said("ask", GROUPS, "--free", *way.of("ann"))
    shown = said("questions", *way.of("ann"))
    number = found(rf"(\d+) +{re.escape(COUNT)} +(\S+ ± \S+) +1/8", shown)
    assert first.startswith(number[2])
    assert "(--free)" in shown
    assert "2 rows" in shown
    assert said("answer", number[1], *way.of("ann")) == first
    assert "no question with the number 999" in refused("answer", "999", *way.of("ann"))


def test_the_dataset_says_what_can_be_asked_about(way):
    shown = said("dataset", *way.of("ann"))
    assert re.search(r"sex +category +F, M", shown)
    assert "A paid question costs epsilon 1/8." in " ".join(shown.split())


def test_json_is_the_messages_of_the_wire(way):
    said("ask", COUNT, *way.of("ann"))
    for words, kind in (
        (("ask", COUNT), wire.Ticket),
        (("quote", COUNT), wire.Quote),
        (("budget",), wire.Budget),
        (("questions",), wire.Questions),
        (("dataset",), wire.Dataset),
    ):
        plain = json.loads(said(*words, "--json", *way.of("ann")))
        assert kind.model_validate(plain).model_dump(mode="json") == plain, words
    assert json.loads(said("done", "--json", *way.of("ann"))) == {}


def test_a_refusal_is_a_sentence_and_for_programs_a_problem(way):
    wrong = "SELECT COUNT(*) FROM people WHERE agee = 3"
    assert "no column agee" in refused("ask", wrong, *way.of("ann"))
    told = typed("quote", wrong, "--json", *way.of("ann"), code=2)
    problem = json.loads(told.stdout)
    assert wire.Problem.model_validate(problem).code == "sql.unknown-name"
    assert problem["where"]["column"] == 35
    assert "no column agee" in told.stderr


def test_the_certificate_says_how_one_fares(tmp_path):
    path = write_dataset(tmp_path, certificate="true")
    way = InProcess(path)
    said("ask", COUNT, *way.of("ann"))
    own = said("certificate", *way.of("ann"))
    assert own.startswith("ann is not worse off for sharing, after 1 entry.\n")
    assert "without another" not in own
    everybody = said("certificate", "--config", str(path))
    assert re.search(r"ben +0 +0 +0", everybody)
    assert "without another" in everybody
    plain = json.loads(said("certificate", "--json", *way.of("ann")))
    assert wire.Certificate.model_validate(plain).holds


def test_a_certificate_that_is_switched_off_says_where(server):
    assert "setting of [service]" in refused("certificate", *server.of("ann"))


class TestWaiting:
    """Exit code 3: not answered yet."""

    def test_a_question_that_waits_says_how_to_fetch_it(self, in_turns):
        link = in_turns.of("ben")
        told = typed("ask", COUNT, "--no-wait", *link, code=3)
        assert told.stdout == ""
        fetch = found(r"To fetch its answer:\n  sharewell (answer \d+) --url (\S+)\n", told.stderr)
        assert fetch[2] == in_turns.running.url
        assert link[3] not in told.stderr
        waiting = typed(*fetch[1].split(), "--wait", "0.1", "--json", *link, code=3)
        assert json.loads(waiting.stdout)["state"] == "waiting"
        said("ask", COUNT, *in_turns.of("ann"))
        assert "It cost nothing: ann had paid for it." in said(*fetch[1].split(), *link)

    def test_one_behind_another_says_so(self, in_turns):
        typed("ask", COUNT, "--no-wait", *in_turns.of("ben"), code=3)
        told = typed("ask", GROUPS, "--no-wait", *in_turns.of("ben"), code=3)
        assert "waits for its turn after 1 question of yours" in told.stderr
        assert "waiting, 1 question of yours before it" in said("questions", *in_turns.of("ben"))

    def test_who_is_done_is_not_waited_for(self, in_turns):
        typed("ask", COUNT, "--no-wait", *in_turns.of("ben"), code=3)
        assert "Nobody waits for you" in said("done", *in_turns.of("ann"))
        assert "which ben paid" in said("answer", "6", *in_turns.of("ben"))


class TestWhereTheServiceIs:
    """Options, variables and files, and what contradicts itself."""

    def test_variables_do_as_well_as_options(self, server, monkeypatch):
        _, url, _, token = server.of("ann")
        monkeypatch.setenv("SHAREWELL_URL", url)
        monkeypatch.setenv("SHAREWELL_TOKEN", token)
        assert said("budget").startswith("ann ")
        assert said("budget", *server.of("ben")).startswith("ben ")

    def test_a_token_may_be_in_a_file(self, server, tmp_path):
        _, url, _, token = server.of("ann")
        file = tmp_path / "token"
        file.write_text(f"{token}\n")
        assert said("budget", "--url", url, "--token-file", str(file)).startswith("ann ")
        assert "cannot be read" in refused("budget", "--token-file", str(tmp_path / "none"))
        assert "two tokens" in refused("budget", "--token", token, "--token-file", str(file))

    def test_nobody_there_is_exit_code_4(self):
        assert "No service answers" in refused(
            "budget", "--url", "http://127.0.0.1:9", "--token", "sw_x", code=4
        )

    def test_no_token_and_a_wrong_one_are_refused(self, server):
        _, url, *_ = server.of("ann")
        assert "SHAREWELL_TOKEN" in refused("budget", "--url", url)
        assert "opens nothing" in refused("budget", "--url", url, "--token", "sw_wrong")

    def test_hints_are_in_the_words_of_a_shell(self, server):
        said_no = refused("budget", "--url", "http://stats.example.org", "--token", "sw_x")
        assert "--allow-http" in said_no
        said("pause", *server.of("curator"))
        link = server.of("ann")
        said_no = refused("ask", COUNT, "--key", "monday", *link)
        assert "Ask again with --key monday" in said_no

    def test_one_cannot_be_in_two_places(self, dataset):
        config = ["--config", str(dataset)]
        assert "--token of a server" in refused("budget", *config, "--token", "sw_x")
        assert "--token-file of a server" in refused("budget", *config, "--token-file", "x")
        assert "--analyst without --config" in refused("budget", "--analyst", "ann")

    def test_who_asks_must_be_clear(self, dataset):
        config = ["--config", str(dataset)]
        assert "--analyst ann or --analyst ben" in refused("budget", *config)
        assert "Did you mean ann?" in refused("budget", *config, "--analyst", "anne")
        assert "There are ann, ben." in refused("budget", *config, "--analyst", "zoe")

    def test_a_dataset_that_is_served_is_not_opened_twice(self, server, dataset):
        assert "with --url and a token" in refused(
            "budget", "--config", str(dataset), "--analyst", "ann"
        )

    def test_a_server_that_speaks_tls_is_trusted_by_its_certificate(self, tmp_path):
        assert "holds no certificates" in refused(
            "budget", "--url", "https://localhost:9", "--token", "sw_x", "--ca", str(tmp_path / "ca.pem")
        )


def test_an_answer_is_never_cut_off_where_the_terminal_is_narrow(dataset):
    sums = ", ".join(f"COUNT(*) AS a_rather_long_name_{n}" for n in range(8))
    shown = said("ask", f"SELECT {sums} FROM people", *InProcess(dataset).of("ann"))
    assert len(re.findall(r"-?[\d,.]+ ± [\d.]+", shown)) == 8
    assert all(f"a_rather_long_name_{n} " in shown for n in range(8))


def test_what_others_wrote_does_nothing_to_a_terminal(server):
    server.running.analyst("ann").ask('SELECT COUNT(*) AS "\x1b[2J\x1b]0;t\x07" FROM people')
    for words in (("questions", *server.of("ann")), ("ledger", *server.of("curator"))):
        shown = said(*words)
        assert "�[2J" in shown
        assert "\x1b" not in shown
        assert "\x07" not in shown
