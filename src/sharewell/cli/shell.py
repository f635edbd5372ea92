"""The prompt of `sharewell shell`: questions in SQL, completion, history and backslash commands."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import typer
from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.lexers import PygmentsLexer
from pygments.lexers.sql import SqlLexer
from rich.text import Text

from sharewell import wire
from sharewell.cli.render import SEEN_BY_CURATORS, print_reply, render_result
from sharewell.cli.terminal import Items, format_error, make_table, print_items, sanitize
from sharewell.client import Session
from sharewell.client.notebook import COMMANDS, question_number, split_command
from sharewell.errors import SharewellError
from sharewell.wire.text import GAINS_LITTLE, budget_unit, format_amount

#: Words that are completed beside columns and values.
KEYWORDS = (
    *("SELECT", "FROM", "WHERE", "GROUP BY", "HAVING", "ORDER BY", "LIMIT", "OFFSET", "AS", "AND", "OR"),
    *("NOT", "IN", "BETWEEN", "LIKE", "IS NULL", "IS NOT NULL", "DISTINCT", "CASE WHEN", "THEN", "ELSE"),
    *("END", "DESC", "FILTER (WHERE", "OVER (", "PARTITION BY", "ROLLUP (", "COUNT(*)", "SUM(", "AVG("),
    *("MEDIAN(", "STDDEV(", "RANK()", "ROUND(", "COALESCE(", "EXTRACT("),
)
#: Matches a quote that is open at the end of a text, with what it holds so far.
_OPEN_QUOTE = re.compile(r"""^(?:[^'"]|'(?:[^']|'')*'|"(?:[^"]|"")*")*'((?:[^']|'')*)$""")
#: Matches the column that the value in a quote is compared with.
_COMPARED = re.compile(
    r"""(?:"((?:[^"]|"")+)"|(\w+))\s*(?:=|<>|!=|<=?|>=?|(?:not\s+)?(?:in\s*\([^()]*|i?like))\s*$""",
    re.IGNORECASE,
)
QUIT = ("quit", "q", "exit")


class StatementCompleter(Completer):
    """Completes commands, keywords, and the names and values of the public columns."""

    def __init__(self, info: wire.DatasetInfo) -> None:
        self._values: dict[str, list[str]] = {}
        self._names: dict[str, str] = {info.name: "table"}
        for attribute in info.attributes:
            for name, labels in ((attribute.name, attribute.labels), *attribute.bins.items()):
                self._names[name] = attribute.kind if name == attribute.name else "bins"
                self._values[name.casefold()] = [each for each in labels if isinstance(each, str)]
        for measure in info.measures:
            self._names.setdefault(measure.name, "measure")

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:
        """Yield what may stand at the cursor."""
        before = document.text_before_cursor
        if match := re.fullmatch(r"\s*\\(\w*)", before):
            yield from _starting(match[1], ((name, _usage(name)) for name in (*COMMANDS, "quit")))
        elif match := _OPEN_QUOTE.match(before):
            values = self._compared(before[: match.start(1) - 1])
            yield from _starting(match[1], ((f"{_doubled(each)}'", each) for each in values))
        else:
            word = document.get_word_before_cursor(pattern=re.compile(r"\w+"))
            if word:
                names = ((_quoted(name), kind) for name, kind in self._names.items())
                yield from _starting(word, (*names, *((each, "") for each in KEYWORDS)))

    def _compared(self, before: str) -> list[str]:
        """Return the values of the column before a quote; of all columns if none is compared."""
        if match := _COMPARED.search(before):
            found = self._values.get((match[1] or match[2]).casefold())
            if found:
                return found
        return list(dict.fromkeys(each for values in self._values.values() for each in values))


def _starting(written: str, words: Iterable[tuple[str, str]]) -> Iterator[Completion]:
    folded = written.casefold()
    for word, meta in words:
        if word.casefold().lstrip('"').startswith(folded):
            yield Completion(word, start_position=-len(written), display_meta=sanitize(meta))


def _quoted(name: str) -> str:
    return name if name.isidentifier() else '"{}"'.format(name.replace('"', '""'))


def _doubled(value: str) -> str:
    return value.replace("'", "''")


def _usage(name: str) -> str:
    return COMMANDS[name][1] if name in COMMANDS else "leave the shell"


def is_complete(text: str) -> bool:
    r"""Whether Enter sends a text: it ends with a semicolon or an empty line, or is a short command.

    >>> is_complete("SELECT COUNT(*)"), is_complete("SELECT COUNT(*) FROM people;")
    (False, True)
    >>> is_complete("\\budget"), is_complete("\\quote SELECT COUNT(*)")
    (True, False)
    """
    text = text.lstrip()
    if not text or text.rstrip(" ").endswith((";", "\n")):
        return True
    name = re.match(r"\\(\w*)", text)
    return name is not None and not COMMANDS.get(name[1], ("", ""))[0].startswith("SQL")


class Shell:
    """Reads an analyst's lines in a loop; prints errors as one sentence and continues."""

    def __init__(self, session: Session, history: History | None = None, **terminal: Any) -> None:
        self._session = session
        self._info = session.dataset()
        self._left = ""
        self._prompt: PromptSession[str] = PromptSession(
            completer=StatementCompleter(self._info),
            history=history or InMemoryHistory(),
            lexer=PygmentsLexer(SqlLexer),
            multiline=Condition(lambda: not is_complete(self._prompt.default_buffer.text)),
            prompt_continuation=lambda width, _line, _wrapped: "... ".rjust(width),
            bottom_toolbar=lambda: self._left,
            complete_while_typing=True,
            **terminal,
        )
        self._commands: dict[str, Callable[[str], None]] = {
            "ask": self._ask,
            "free": lambda sql: self._ask(sql, pay=False),
            "quote": lambda sql: print_reply(session.quote(sql), as_json=False),
            "budget": lambda _: print_reply(session.budget(), as_json=False),
            "columns": lambda _: print_reply(session.dataset(), as_json=False),
            "questions": lambda _: print_reply(
                wire.QuestionPage(tickets=tuple(session.questions())), as_json=False
            ),
            "answer": lambda number: self._show(session.ticket(question_number(number))),
            "help": lambda _: print_items(*render_help()),
        }

    def run(self) -> None:
        r"""Read and answer until Ctrl-D or `\quit`; Ctrl-C drops what was typed."""
        typer.echo(f"{sanitize(self._info.name)}. End questions with ; or an empty line. \\help helps.")
        typer.echo(SEEN_BY_CURATORS)
        while True:
            try:
                self._update_budget()
                text = self._prompt.prompt(f"{sanitize(self._info.name)}> ")
            except KeyboardInterrupt:
                continue
            except EOFError:
                return
            if text.strip().rstrip(";")[1:] in QUIT and text.lstrip().startswith("\\"):
                return
            if text.strip(" ;\n\t"):
                self.execute(text)

    def execute(self, text: str) -> None:
        """Run one question or command, and print its outcome."""
        try:
            name, argument = split_command(text, QUIT)
            self._commands[name](argument)
        except SharewellError as error:
            print_items(Text(format_error(error), style="red"))
        except KeyboardInterrupt:
            print_items(Text("Interrupted.", style="red"))

    def _ask(self, sql: str, pay: bool = True) -> None:
        if pay and self._session.quote(sql).gains_little:
            print_items(Text(f"{GAINS_LITTLE} To ask without paying, use \\free.", style="yellow"))
        ticket = self._session.submit(sql, pay=pay)
        self._show(ticket)

    def _show(self, ticket: wire.Ticket) -> None:
        try:
            ticket = self._session.wait(ticket)
        except KeyboardInterrupt:
            where = f"\\answer {ticket.number} shows its answer"
            print_items(f"Question {ticket.number} stays in the queue; {where}.")
            return
        if ticket.problem is not None:
            raise ticket.problem.to_error()
        if ticket.answer is not None:
            print_items(*render_result(ticket.answer))

    def _update_budget(self) -> None:
        try:
            budget = self._session.budget()
        except SharewellError as error:
            self._left = sanitize(error.message)
            return
        left, share = format_amount(budget.left), format_amount(budget.share)
        self._left = sanitize(
            f" {budget.analyst}: {left} of {share} {budget_unit(budget.currency)} left "
        )


def render_help() -> Items:
    """Render the commands of the shell."""
    rows = [(f"\\{name} {what}".rstrip(), does) for name, (what, does) in COMMANDS.items()]
    rows.append(("\\quit", "leave the shell, as Ctrl-D does"))
    return [
        make_table(("command", "what it does"), rows),
        "Everything else is SQL. Tab completes columns and values; the arrow keys recall earlier lines.",
    ]


def open_history(path: Path) -> History:
    """Return the history in a file that only its owner can read; in memory if it cannot be written."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(mode=0o600)
        with path.open("ab"):
            return FileHistory(str(path))
    except OSError:
        return InMemoryHistory()
