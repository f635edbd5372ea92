"""The command line: one command per verb, no logic.

::

    root            what all commands share: refusals in a sentence, exit codes, pipes and Ctrl-C
    setting_up      init, check, plan, serve, token, verify
    asking          ask, answer, quote, budget, questions, done, certificate, dataset
    curating        ledger, analysts, pause, resume
    research        demo, simulate, reproduce, theory
        link        the options that say where the service is, and the line that they open
        words       what is said in the words of a shell
        shown_...   how what came over the wire is laid out; imported when there is something to show

Nothing heavy is imported before a command runs, so that help and completion are quick.
"""

from sharewell.cli import asking, curating, research, setting_up
from sharewell.cli.root import app, main

for _group in (setting_up.commands, asking.commands, curating.commands, research.commands):
    app.add_typer(_group)

__all__ = ["app", "main"]
