"""`%sharewell` in IPython's own shell."""

from pathlib import Path

import pytest
from IPython.core.interactiveshell import InteractiveShell

import sharewell
from tests.cli.commands import COUNT, GROUPS, write_dataset


@pytest.fixture(scope="module")
def notebook(tmp_path_factory):
    path = write_dataset(tmp_path_factory.mktemp("notebook"))
    shell = InteractiveShell()
    with sharewell.open(path, "ann") as session:
        shell.user_ns["ann"] = session
        shell.run_cell("%load_ext sharewell")
        yield shell
    InteractiveShell.clear_instance()


def ran(notebook, source):
    result = notebook.run_cell(source)
    assert result.error_in_exec is None
    return result.result


def test_lines_and_cells_return_results(notebook):
    assert ran(notebook, f"%sharewell {COUNT}").is_scalar
    assert ran(notebook, f"found = %sharewell {COUNT}") is None
    assert notebook.user_ns["found"].cost == 0
    table = ran(notebook, f"%%sharewell\n{GROUPS}\n")
    assert table.labels == ["F", "M"]
    free = ran(notebook, "%%sharewell \\free\nSELECT COUNT(*)\nFROM people WHERE sex = 'F'")
    assert free.cost == 0
    number = notebook.user_ns["found"].number
    assert ran(notebook, f"%sharewell \\answer {number}").number == number


def test_the_cells_of_the_guide_run(notebook):
    page = Path("docs/analyst.md").read_text(encoding="utf-8")
    cells = page.split("```ipython\n")[1].split("```")[0].strip().split("\n\n")
    assert len(cells) == 5
    for cell in cells[1:]:
        ran(notebook, cell)


def test_commands_are_those_of_the_shell(notebook, capsys):
    ran(notebook, f"%sharewell {COUNT}")
    assert ran(notebook, f"%sharewell \\quote {COUNT}").cost == 0
    assert ran(notebook, "%sharewell \\budget").analyst == "ann"
    assert ran(notebook, "%sharewell \\columns").name == "people"
    assert len(ran(notebook, "%sharewell \\questions")) > 0
    capsys.readouterr()
    assert ran(notebook, "%sharewell \\help") is None
    assert "\\quote SQL" in capsys.readouterr().out


def red(notebook, capsys, source):
    """Run a cell that is refused; return what is shown."""
    capsys.readouterr()
    assert notebook.run_cell(source).error_in_exec is not None
    return capsys.readouterr().out


def test_a_refusal_is_one_red_sentence(notebook, capsys):
    shown = red(notebook, capsys, "%sharewell SELECT COUNT(*) FROM people WHERE agee = 1")
    assert shown.count("\n") == 1
    assert shown.startswith("\x1b[31mUnknown column")
    assert "Traceback" not in shown
    # So is that of a session's own method.
    assert red(notebook, capsys, "ann.ask('SELECT 1 FROM peple')").startswith("\x1b[31m")
    assert "No question given." in red(notebook, capsys, "%sharewell")
    assert "\\help lists the commands." in red(notebook, capsys, "%sharewell \\zzz")
    assert "The sessions of this notebook: ann." in red(notebook, capsys, "%sharewell \\session x")


def test_each_mistake_is_a_red_line_with_its_place(notebook, capsys):
    shown = red(notebook, capsys, "%sharewell SELECT COUNT(*) FROM people WHERE agee = 1 AND stat = 2")
    first, second = shown.splitlines()
    assert first.startswith('\x1b[31mUnknown column "agee". (line 1, column 35, at ')
    assert second.startswith('\x1b[31mAlso: Unknown column "stat". (line 1, column 48)')


def test_control_characters_in_a_refusal_do_not_reach_the_terminal():
    [line] = sharewell.QueryError("a\x1b]0;t\x07")._render_traceback_()
    assert line == "\x1b[31ma\ufffd]0;t\ufffd\x1b[0m"


def test_a_purchase_that_hardly_helps_is_announced(tmp_path, capsys):
    note = "Paying would hardly make the answer more precise. To ask without paying, use \\free.\n"
    shell = InteractiveShell()
    with sharewell.open(write_dataset(tmp_path, price="1/100000"), "ann") as ann:
        shell.user_ns["ann"] = ann
        shell.run_cell("%load_ext sharewell")
        ran(shell, f"%sharewell \\free {COUNT}")
        assert note not in capsys.readouterr().out
        assert ran(shell, f"%sharewell {COUNT}").paid_by == "ann"
        assert note in capsys.readouterr().out
        ran(shell, f"%sharewell {COUNT}")
        assert note not in capsys.readouterr().out, "it was measured, and is free now"


def test_one_of_several_sessions_is_chosen_by_its_variable(tmp_path, capsys):
    path = write_dataset(tmp_path)
    shell = InteractiveShell()
    with sharewell.open(path, "ann") as ann:
        shell.user_ns |= {"ann": ann, "other": object.__new__(sharewell.Session)}
        shell.run_cell("%load_ext sharewell")
        assert "The notebook has 2 sessions: ann, other." in red(shell, capsys, "%sharewell \\budget")
        ran(shell, "%sharewell \\session ann")
        assert ran(shell, "%sharewell \\budget").analyst == "ann"
