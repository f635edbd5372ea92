"""Commands for analysts: the same over a server and in this process."""

import json
import re
from fractions import Fraction

import pytest

from sharewell import wire
from sharewell.cli.render import format_quote, render_quote
from sharewell.cli.terminal import print_items
from tests.cli.commands import (
    COUNT,
    GROUPS,
    TOTAL,
    InProcess,
    found,
    refused,
    said,
    typed,
    write_dataset,
)


def test_an_answer_has_its_interval_cost_and_payer(way):
    first = said("ask", COUNT, *way.of("ann"))
    assert re.match(r"-?[\d,.]+ ± [\d.]+ \(95 %\)\nMeasured; cost 1/8, paid by ann\.\n$", first)
    second = said("ask", COUNT, *way.of("ben"))
    assert second.endswith("Cached; free, already paid for by ann.\n")


def test_a_table_has_a_row_for_each_group(way):
    shown = said("ask", GROUPS, *way.of("ann"))
    assert [line.split()[0] for line in shown.splitlines() if "±" in line] == ["F", "M"]
    assert "2 rows; 95 % intervals; measured; cost 1/4, paid by ann." in shown


def test_what_is_asked_free_costs_nothing(way):
    shown = said("ask", COUNT, "--free", *way.of("ann"))
    assert "Reconstructed; free, derived from earlier measurements." in shown
    assert "10 paid questions. 1 question asked" in said("budget", *way.of("ann"))


def test_a_dash_reads_the_question_from_stdin(way):
    answered = json.loads(said("ask", "-", "--json", *way.of("ann"), stdin=f"{COUNT}\n"))
    assert answered["sql"] == COUNT
    assert "paid" in said("quote", "-", *way.of("ann"), stdin=COUNT)
    assert refused("ask", "-", *way.of("ann")).startswith("The SQL is empty.")


def test_a_key_makes_one_question_of_two(way):
    first, second = (
        json.loads(said("ask", COUNT, "--key", "monday", "--json", *way.of("ann"))) for _ in range(2)
    )
    assert first == second
    assert "another" in refused("ask", GROUPS, "--key", "monday", *way.of("ann"))


def test_a_quote_says_both_ways_and_what_is_left(way):
    shown = said("quote", TOTAL, *way.of("ann"))
    assert re.search(r"cost +1/8 +free *\n", shown)
    paid, free = map(float, found(r"± COUNT\(\*\) +([\d.]+) +([\d.]+)", shown).groups())
    assert paid < free
    assert "You have 5/4 left: enough for 10 such questions." in shown
    answered = json.loads(said("ask", TOTAL, "--json", *way.of("ann")))["answer"]["rows"][0][0]
    reach = (answered["interval"][1] - answered["interval"][0]) / 2
    assert paid == pytest.approx(reach, abs=0.6)  # The interval may have half a count more.


def test_a_quote_that_cannot_be_had_says_so(capsys):
    column = wire.ResultColumn(name="n", kind="number")
    offer = wire.Offer(cost=Fraction(1, 8), errors=((3.0, 2.0),))
    neither = wire.Quote(sql="", columns=(column,), groups=2, paid=None, free=None, means=Fraction(0))
    print_items(*render_quote(neither))
    shown = capsys.readouterr().out
    assert re.search(r"cost +over budget +nothing free *\n± n +- +-", shown)
    print_items(*render_quote(neither.model_copy(update={"paid": offer})))
    assert re.search(r"± n +4.2 to 6.4 +-", capsys.readouterr().out)
    paid = neither.model_copy(update={"paid": offer})
    assert format_quote(paid) == "needs a paid question: cost 1/8, ± 4.2 to 6.4; nothing free"
    average = wire.Offer(cost=Fraction(1, 8), errors=((0.15, 0.1),), group_sizes=((80, 5000),))
    print_items(*render_quote(neither.model_copy(update={"paid": average})))
    assert "0.21 to 0.32 for groups of 5,000 to 80" in capsys.readouterr().out
    equal = average.model_copy(update={"errors": ((0.15, 0.15),), "group_sizes": ((80, 80),)})
    partly = equal.model_copy(update={"unknown": 1})
    print_items(*render_quote(neither.model_copy(update={"paid": partly})))
    shown = capsys.readouterr().out
    assert "0.32 for a group of 80" in shown
    assert "that of 1 number is not known in advance" in " ".join(shown.split())


def test_a_purchase_that_hardly_helps_is_not_sold_without_saying_so(tmp_path):
    ann = InProcess(write_dataset(tmp_path, price="1/100000")).of("ann")
    note = "Paying would hardly make the answer more precise."
    assert note in said("quote", COUNT, *ann)
    asked = typed("ask", COUNT, *ann)
    assert asked.stderr == f"{note} To ask without paying, use --free.\n"
    assert "paid by ann" in asked.stdout
    assert typed("ask", COUNT, *ann).stderr == "", "it was measured, and is free now"
    assert typed("ask", TOTAL, "--free", *ann).stderr == ""


def test_an_exhausted_share_is_reported(tmp_path):
    options = InProcess(write_dataset(tmp_path, price="1/9")).of("ann")
    said("ask", COUNT, *options)
    assert "Not enough for another paid question" in said("budget", *options)
    another = f"{COUNT} AND sex = 'F'"
    assert re.search(r"cost +over budget +free *\n", said("quote", another, *options))
    assert "your remaining share does not cover" in said("ask", another, *options)
    assert "not enough" not in said("ask", another, "--free", *options)
    assert "not enough" not in said("ask", COUNT, *options)


def test_the_budget_is_a_bar_that_shrinks(way):
    before = said("budget", *way.of("ann"))
    assert "5/4 of 5/2 epsilon left\nEnough for 10 paid questions. 0 questions asked" in before
    said("ask", GROUPS, *way.of("ann"))
    after = said("budget", *way.of("ann"))
    assert before.count("█") == 10
    assert after.count("█") == 8
    assert before.count("█") + before.count("░") == after.count("█") + after.count("░") == 20


def test_questions_are_listed_and_can_be_fetched_again(way):
    assert said("questions", *way.of("ann")) == "No questions yet.\n"
    first = said("ask", COUNT, *way.of("ann"))
    said("ask", GROUPS, "--free", *way.of("ann"))
    shown = said("questions", *way.of("ann"))
    number = found(rf"(\d+) +{re.escape(COUNT)} +(\S+ ± \S+) +1/8", shown)
    assert first.startswith(number[2])
    assert "(--free)" in shown
    assert "2 rows" in shown
    assert said("answer", number[1], *way.of("ann")) == first
    assert "no question 999" in refused("answer", "999", *way.of("ann"))


def test_the_dataset_says_what_can_be_asked_about(way):
    shown = said("dataset", *way.of("ann"))
    assert re.search(r"sex +category +F, M", shown)
    words = " ".join(shown.split())
    assert "A paid count or sum costs epsilon 1/8; an average takes both." in words
    assert "Curators can read every question, with the name of the analyst who asked it." in words


def test_json_is_the_messages_of_the_wire(way):
    said("ask", COUNT, *way.of("ann"))
    for words, kind in (
        (("ask", COUNT), wire.Ticket),
        (("quote", COUNT), wire.Quote),
        (("budget",), wire.BudgetStatus),
        (("questions",), wire.QuestionPage),
        (("dataset",), wire.DatasetInfo),
    ):
        plain = json.loads(said(*words, "--json", *way.of("ann")))
        assert kind.model_validate(plain).model_dump(mode="json") == plain, words
    assert json.loads(said("done", "--json", *way.of("ann"))) == {}


def test_a_refusal_is_a_sentence_and_for_programs_a_problem(way):
    wrong = "SELECT COUNT(*) FROM people WHERE agee = 3"
    assert 'Unknown column "agee"' in refused("ask", wrong, *way.of("ann"))
    several = refused("ask", f"{wrong} AND stat = 2", *way.of("ann"))
    assert 'Also: Unknown column "stat". (line 1, column 48)' in several.splitlines()[1]
    result = typed("quote", wrong, "--json", *way.of("ann"), code=2)
    problem = json.loads(result.stdout)
    assert wire.Problem.model_validate(problem).code == "sql.unknown-name"
    assert problem["where"]["column"] == 35
    assert 'Unknown column "agee"' in result.stderr


def test_the_certificate_says_how_one_fares(tmp_path):
    path = write_dataset(tmp_path, certificate="true")
    way = InProcess(path)
    said("ask", COUNT, *way.of("ann"))
    own = said("certificate", *way.of("ann"))
    assert own.startswith("ann is not worse off for sharing, after 1 entry.\n")
    assert "without one" not in own
    all_analysts = said("certificate", "--config", str(path))
    assert re.search(r"ben +0 +0 +0", all_analysts)
    assert "without one" in all_analysts
    plain = json.loads(said("certificate", "--json", *way.of("ann")))
    assert wire.CertificateReport.model_validate(plain).holds


def test_a_disabled_certificate_says_how_to_enable_it(server):
    assert "Set service.certificate = true" in refused("certificate", *server.of("ann"))


class TestWaiting:
    """Exit code 3: not answered yet."""

    def test_a_question_that_waits_says_how_to_fetch_it(self, in_turns):
        options = in_turns.of("ben")
        result = typed("ask", COUNT, "--no-wait", *options, code=3)
        assert result.stdout == ""
        fetch = found(r"To fetch its answer:\n  sharewell (answer \d+) --url (\S+)\n", result.stderr)
        assert fetch[2] == in_turns.running.url
        assert options[3] not in result.stderr
        waiting = typed(*fetch[1].split(), "--wait", "0.1", "--json", *options, code=3)
        assert json.loads(waiting.stdout)["state"] == "waiting"
        said("ask", COUNT, *in_turns.of("ann"))
        assert "free, already paid for by ann" in said(*fetch[1].split(), *options)

    def test_the_queue_position_is_shown(self, in_turns):
        typed("ask", COUNT, "--no-wait", *in_turns.of("ben"), code=3)
        result = typed("ask", GROUPS, "--no-wait", *in_turns.of("ben"), code=3)
        assert "is waiting behind 1 question of yours" in result.stderr
        assert "waiting behind 1 question of yours" in said("questions", *in_turns.of("ben"))

    def test_no_turn_waits_for_an_analyst_who_is_done(self, in_turns):
        typed("ask", COUNT, "--no-wait", *in_turns.of("ben"), code=3)
        assert "No turn waits for you" in said("done", *in_turns.of("ann"))
        assert "paid by ben" in said("answer", "8", *in_turns.of("ben"))


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
        assert "none': no such file or directory." in refused(
            "budget", "--token-file", str(tmp_path / "none")
        )
        assert "--token and --token-file are mutually exclusive." in refused(
            "budget", "--token", token, "--token-file", str(file)
        )

    def test_an_unreachable_server_is_exit_code_4(self):
        assert "Cannot reach a server at http://127.0.0.1:9: connection refused." in refused(
            "budget", "--url", "http://127.0.0.1:9", "--token", "sw_x", code=4
        )

    def test_no_token_and_a_wrong_one_are_refused(self, server):
        _, url, *_ = server.of("ann")
        assert "Use --token-file, or set SHAREWELL_TOKEN" in refused("budget", "--url", url)
        assert "Unknown token" in refused("budget", "--url", url, "--token", "sw_wrong")

    def test_suggestions_are_command_line_options(self, server):
        said_no = refused("budget", "--url", "http://stats.example.org", "--token", "sw_x")
        assert "pass --allow-http" in said_no
        said("pause", *server.of("curator"))
        options = server.of("ann")
        said_no = refused("ask", COUNT, "--key", "monday", *options)
        assert "Ask again with --key monday: " in said_no

    def test_server_options_and_a_file_exclude_each_other(self, dataset):
        config = ["--config", str(dataset)]
        assert "--config and --token are mutually exclusive." in refused(
            "budget", *config, "--token", "sw_x"
        )
        assert "--config and --token-file are mutually exclusive." in refused(
            "budget", *config, "--token-file", "x"
        )
        assert "--analyst requires --config." in refused("budget", "--analyst", "ann")

    def test_the_asking_analyst_must_be_named(self, dataset):
        config = ["--config", str(dataset)]
        assert (
            "The dataset has 2 analysts: ann, ben. Name the analyst who asks. Use --analyst ann."
            in refused("budget", *config)
        )
        assert "Unknown analyst 'anne'. Did you mean 'ann'? Use --analyst ann." in refused(
            "budget", *config, "--analyst", "anne"
        )
        assert "The analysts are ann, ben." in refused("budget", *config, "--analyst", "zoe")

    def test_a_dataset_that_is_served_is_not_opened_twice(self, server, dataset):
        assert "use --url and a token" in refused("budget", "--config", str(dataset), "--analyst", "ann")

    def test_a_server_that_speaks_tls_is_trusted_by_its_certificate(self, tmp_path):
        assert "Cannot read certificates" in refused(
            "budget", "--url", "https://localhost:9", "--token", "sw_x", "--ca", str(tmp_path / "ca.pem")
        )


def test_an_answer_is_never_cut_off_where_the_terminal_is_narrow(dataset):
    sums = ", ".join(f"COUNT(*) AS a_rather_long_name_{n}" for n in range(8))
    shown = said("ask", f"SELECT {sums} FROM people", *InProcess(dataset).of("ann"))
    assert len(re.findall(r"-?[\d,.]+ ± [\d.]+", shown)) == 8
    assert all(f"a_rather_long_name_{n}" in shown.splitlines()[0] for n in range(8))


def test_control_characters_in_questions_do_not_reach_the_terminal(server):
    server.running.analyst("ann").ask('SELECT COUNT(*) AS "\x1b[2J\x1b]0;t\x07" FROM people')
    for words in (("questions", *server.of("ann")), ("ledger", *server.of("curator"))):
        shown = said(*words)
        assert "�[2J" in shown
        assert "\x1b" not in shown
        assert "\x07" not in shown
