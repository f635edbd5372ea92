"""The prompt of `sharewell shell`, typed into for real, and the formats for other programs."""

import csv
import io
import json
import os
import sys

import duckdb
import pexpect
import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from prompt_toolkit.history import FileHistory, InMemoryHistory
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

import sharewell
from sharewell import wire
from sharewell.cli.shell import Shell, StatementCompleter, open_history
from tests.cli.commands import COUNT, GROUPS, InProcess, refused, said, typed, write_dataset

INFO = wire.DatasetInfo.model_construct(
    name="people",
    attributes=(
        wire.AttributeInfo(
            name="age", kind="integer", size=2, labels=(0, 1), bins={"age_group": ("0-17", "18-99")}
        ),
        wire.AttributeInfo(name="Home Town", kind="category", size=2, labels=("O'Fallon", "Oslo")),
        wire.AttributeInfo(name="sex", kind="category", size=2, labels=("F", "M")),
    ),
    measures=(wire.MeasureInfo(name="wage", low=0, high=9, step=1, nullable=True),),
)


@pytest.mark.parametrize(
    ("text", "offered"),
    [
        ("SELECT ag", ["age", "age_group"]),
        ("SELECT SUM(wa", ["wage"]),
        ("select hom", ['"Home Town"']),
        ("SELECT COUNT(*) FROM pe", ["people"]),
        ("SELECT * FROM people GR", ["GROUP BY"]),
        ("WHERE sex = '", ["F'", "M'"]),
        ("WHERE age_group IN ('0-17', '1", ["18-99'"]),
        ('WHERE "Home Town" = \'o', ["O''Fallon'", "Oslo'"]),
        ("WHERE sex = 'F' AND x LIKE '0", ["0-17'"]),
        ("\\qu", ["quote", "questions", "quit"]),
        ("WHERE sex = 'F' ", []),
    ],
)
def test_columns_values_and_commands_are_completed(text, offered):
    found = StatementCompleter(INFO).get_completions(Document(text), CompleteEvent())
    assert [each.text for each in found] == offered


def typed_at_prompt(session, *keys, history=None):
    """Type into a shell through prompt_toolkit's pipe, and leave it."""
    with create_pipe_input() as pipe:
        for each in keys:
            pipe.send_text(each)
        pipe.send_text("\x04")
        Shell(session, history, input=pipe, output=DummyOutput()).run()


@pytest.fixture
def ann(dataset):
    with sharewell.open(dataset, "ann") as session:
        yield session


def test_questions_and_commands_are_answered_at_the_prompt(ann, capsys):
    typed_at_prompt(
        ann,
        "\\help\r",
        f"\\quote {COUNT};\r",
        "SELECT sex,\rCOUNT(*) FROM people\rGROUP BY sex;\r",
        "\\free SELECT COUNT(*) FROM people\r\r",
        "SELECT COUNT(*) FROM peple;\r",
        "\\budgte\r",
        "\\answer x\r",
        "\\quote\r\r",
        "\\budget\r",
        "\\questions\r",
        "\\columns\r",
        f"{COUNT}\x03",
    )
    out = capsys.readouterr().out
    assert out.splitlines()[1].startswith("Curators can read every question, with the name")
    for part in ("\\quote SQL", "cost", "F  ", "± ", "econstructed; free", 'Unknown table "peple"'):
        assert part in out
    assert "Unknown command \\budgte. Did you mean \\budget?" in out
    assert "'x' is not the number of a question." in out
    assert "\\quote needs SQL." in out
    assert len(ann.questions()) == 2
    assert "Traceback" not in out


def test_the_prompt_says_that_paying_hardly_helps(tmp_path, capsys):
    with sharewell.open(write_dataset(tmp_path, price="1/100000"), "ann") as session:
        typed_at_prompt(session, f"\\free {COUNT};\r", f"{COUNT};\r")
    free, paid = capsys.readouterr().out.split("econstructed; free")
    note = "Paying would hardly make the answer more precise."
    assert f"{note} To ask without paying" in paid
    assert note not in free


def test_an_earlier_answer_is_shown_again_and_quit_leaves(ann, capsys):
    number = ann.submit(COUNT).number
    typed_at_prompt(ann, f"\\answer {number}\r", "\\quit\r", "\\budget\r")
    out = capsys.readouterr().out
    assert "paid by ann" in out
    assert "Enough for" not in out


def test_the_history_is_kept_for_its_owner_only(ann, tmp_path):
    path = tmp_path / "state" / "history"
    typed_at_prompt(ann, "\\budget\r", history=open_history(path))
    assert os.stat(path).st_mode & 0o77 == 0
    assert list(FileHistory(str(path)).load_history_strings()) == ["\\budget"]
    (tmp_path / "file").touch()
    assert isinstance(open_history(tmp_path / "file" / "history"), InMemoryHistory)


@pytest.mark.skipif(sys.platform == "win32", reason="pexpect needs a pseudoterminal")
def test_the_command_opens_a_prompt_in_a_terminal(dataset, tmp_path):
    child = pexpect.spawn(
        sys.executable,
        ["-c", "from sharewell.cli import main; main()", "shell", *InProcess(dataset).of("ann")],
        env={
            **os.environ,
            "XDG_CONFIG_HOME": str(tmp_path),
            "TERM": "xterm",
            "PROMPT_TOOLKIT_NO_CPR": "1",
        },
        timeout=60,
        encoding="utf-8",
        dimensions=(40, 120),
    )
    try:
        child.expect("people>")
        child.send("\\budget\r")
        child.expect("Enough for")
        child.send("SELECT COUNT(*) FROM people WHERE agee = 1;\r")
        child.expect('Did you mean "age"')
        child.send("\x04")
        child.expect(pexpect.EOF)
    finally:
        child.close()
    assert child.exitstatus == 0
    assert "+\\budget" in (tmp_path / "sharewell" / "history").read_text()


def test_a_shell_without_a_terminal_names_the_other_command(dataset):
    assert "sharewell ask -" in refused("shell", *InProcess(dataset).of("ann"))


class TestFormats:
    """CSV, JSON and Parquet."""

    def test_a_table_is_the_same_in_every_format(self, dataset, tmp_path):
        options = InProcess(dataset).of("ann")
        lines = list(csv.DictReader(io.StringIO(said("ask", GROUPS, "--csv", *options))))
        assert [line["sex"] for line in lines] == ["F", "M"]
        assert list(lines[0])[:5] == ["sex", "people", "people_error", "people_low", "people_high"]
        file = tmp_path / "out.parquet"
        wrote = typed("ask", GROUPS, "--parquet", str(file), *options)
        assert (wrote.stdout, wrote.stderr) == ("", f"Wrote 2 rows to {file}.\n")
        rows = duckdb.connect().execute(f"SELECT sex, people, avg_age_low FROM '{file}'").fetchall()
        assert rows == [(x["sex"], float(x["people"]), float(x["avg_age_low"])) for x in lines]
        number = json.loads(said("ask", GROUPS, "--json", *options))["number"]
        again = said("answer", str(number), "--csv", *options)
        assert list(csv.DictReader(io.StringIO(again))) == lines

    def test_what_cannot_be_written_is_refused_before_it_is_charged(self, dataset, tmp_path):
        options = InProcess(dataset).of("ann")
        assert "--csv and --json are mutually" in refused_json("ask", COUNT, "--csv", "--json", *options)
        missing = str(tmp_path / "none" / "x.parquet")
        assert "there is no folder" in refused("ask", COUNT, "--parquet", missing, *options)
        assert "it is a folder" in refused("ask", COUNT, "--parquet", str(tmp_path), *options)
        assert said("questions", *options) == "No questions yet.\n"

    def test_null_and_commas_are_written_as_csv_writes_them(self, dataset):
        sql = "SELECT 'a,\"b' AS label, AVG(age) AS mean FROM people WHERE age < 0"
        out = said("ask", sql, "--csv", "--free", *InProcess(dataset).of("ann"))
        assert out == 'label,mean,mean_error,mean_low,mean_high\n"a,""b",,,,\n'


def refused_json(*words):
    return typed(*words, code=2).stderr
