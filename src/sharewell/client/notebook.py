r"""The magic of notebooks, `%sharewell SELECT ...`, after `%load_ext sharewell`; and its commands.

A line or a cell is a question, or a command as in the shell: `%sharewell \quote SELECT ...`. The session
is the only one among the notebook's variables, the one that `\session NAME` chose, or one opened from
SHAREWELL_URL and SHAREWELL_TOKEN.
"""

from __future__ import annotations

import difflib
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from sharewell.client.connection import connect
from sharewell.client.session import Session
from sharewell.errors import RequestError
from sharewell.wire.text import GAINS_LITTLE

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell


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


class SharewellMagic:
    """The magic function, with the session that it asks."""

    def __init__(self, shell: InteractiveShell) -> None:
        self._shell = shell
        self._chosen: Session | None = None

    def __call__(self, line: str, cell: str | None = None) -> Any:
        r"""Ask a question: `%sharewell SELECT ...`; `%sharewell \help` lists commands."""
        text = f"{line}\n{cell or ''}".strip()
        if not text:
            raise RequestError("No question given.", hint="Write SQL, or \\help.")
        name, argument = split_command(text, ("session",))
        match name:
            case "session":
                self._chosen = self._named(argument)
                return None
            case "help":
                usage = {f"\\{each} {what}": does for each, (what, does) in COMMANDS.items()}
                usage["\\session NAME"] = "use the session in this variable"
                width = max(map(len, usage))
                sys.stdout.writelines(f"{key.ljust(width)}  {usage[key]}\n" for key in usage)
                return None
        session = self._session()
        match name:
            case "quote":
                return session.quote(argument)
            case "free":
                return session.ask(argument, pay=False)
            case "budget":
                return session.budget()
            case "columns":
                return session.dataset()
            case "questions":
                return session.questions()
            case "answer":
                return session.wait(question_number(argument)).result()
        if session.quote(argument).gains_little:
            sys.stdout.write(f"{GAINS_LITTLE} To ask without paying, use \\free.\n")
        return session.ask(argument)

    def _named(self, name: str) -> Session:
        found = self._shell.user_ns.get(name)
        if not isinstance(found, Session):
            known = ", ".join(self._sessions()) or "none"
            raise RequestError(
                f"{name!r} is not a session.", hint=f"The sessions of this notebook: {known}."
            )
        return found

    def _sessions(self) -> dict[str, Session]:
        names = self._shell.user_ns.items()
        return {k: v for k, v in names if isinstance(v, Session) and not k.startswith("_")}

    def _session(self) -> Session:
        if self._chosen is None:
            sessions = self._sessions()
            if len(set(sessions.values())) > 1:
                raise RequestError(
                    f"The notebook has {len(sessions)} sessions: {', '.join(sessions)}.",
                    hint=f"Choose one: %sharewell \\session {next(iter(sessions))}",
                )
            self._chosen = next(iter(sessions.values())) if sessions else connect()
        return self._chosen


def load(shell: InteractiveShell) -> None:
    """Register the magic of lines and cells."""
    register: Callable[..., None] = shell.register_magic_function  # its types lack the decorator's
    register(SharewellMagic(shell), "line_cell", "sharewell")
