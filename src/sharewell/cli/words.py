"""Words: what libraries say to programs, said to somebody at a shell."""

from __future__ import annotations

import re

from sharewell.errors import SharewellError

#: How to write in a shell what hints write in Python.
IN_SHELL = (
    (re.compile(r"\bkey='([^']*)'"), r"--key \1"),
    (re.compile(r"take ticket\((\d+)\)"), r"run `sharewell answer \1`"),
    (re.compile(r"\bverify='([^']*)'"), r"--ca \1"),
    (re.compile(r"\ballow_http=True"), "--allow-http"),
    (re.compile(r"\bpay=False"), "--free"),
    (re.compile(r"Open the broker with it\."), "It is a setting of [service] in the dataset's file."),
)


def in_shell_words(text: str) -> str:
    """A hint as it is followed in a shell.

    >>> in_shell_words("Ask again later with key='monday'.")
    'Ask again later with --key monday.'
    """
    for python, shell in IN_SHELL:
        text = python.sub(shell, text)
    return clean(text)


def refusal(error: SharewellError) -> str:
    """A refusal in one line."""
    hint = in_shell_words(error.hint)
    return clean(str(type(error)(error.message, hint=hint, where=error.where)))


def clean(text: str) -> str:
    r"""A text that does nothing to a terminal but stand in it.

    What others have written can hold sequences that move the cursor or rename the window.

    >>> clean("SELECT 1 -- \x1b[2J")
    'SELECT 1 -- �[2J'
    """
    return "".join(each if each.isprintable() or each in "\n\t" else "\ufffd" for each in text)


def one_line(text: str, longest: int = 1000) -> str:
    r"""A text in one line, cut off where it is long.

    >>> one_line("SELECT COUNT(*)\n  FROM people", 20)
    'SELECT COUNT(*) FRO…'
    """
    line = clean(" ".join(text.split()))
    return line if len(line) <= longest else f"{line[: longest - 1]}…"
