r"""The backslash commands of the shell and of notebooks: `\quote SELECT ...`, `\budget`, `\help`."""

from __future__ import annotations

import difflib

from sharewell.errors import RequestError

#: Every command, with its argument and what it does.
COMMANDS = {
    "quote": ("SQL", "show the cost and expected error of a question; free"),
    "free": ("SQL", "answer from earlier measurements, and spend nothing"),
    "budget": ("", "show what is left of your share"),
    "columns": ("", "list the columns and their values"),
    "questions": ("", "list your questions and their answers"),
    "answer": ("NUMBER", "show the answer to an earlier question again"),
    "help": ("", "list these commands"),
}


def split_command(text: str, more: tuple[str, ...] = ()) -> tuple[str, str]:
    r"""Return the command of a line and its argument; a line without a command is a question: "ask".

    `more` are further commands that the caller has.

    >>> split_command("\\quote SELECT COUNT(*) FROM people;")
    ('quote', 'SELECT COUNT(*) FROM people;')
    >>> split_command("SELECT COUNT(*) FROM people")
    ('ask', 'SELECT COUNT(*) FROM people')
    """
    text = text.strip()
    if not text.startswith("\\"):
        return "ask", text
    name, argument, *_ = (*text[1:].split(maxsplit=1), "", "")
    known = (*COMMANDS, *more)
    if name not in known:
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"Did you mean \\{near[0]}?" if near else "\\help lists the commands."
        raise RequestError(f"Unknown command \\{name}.", hint=hint)
    if COMMANDS.get(name, ("", ""))[0] and not argument:
        raise RequestError(
            f"\\{name} needs {COMMANDS[name][0]}.", hint=f"Write \\{name} {COMMANDS[name][0]}."
        )
    return name, argument


def question_number(argument: str) -> int:
    r"""Return the number that `\answer` is given."""
    number = argument.rstrip("; ")
    if not number.isdecimal():
        raise RequestError(
            f"{number!r} is not the number of a question.", hint="\\questions lists them."
        )
    return int(number)
