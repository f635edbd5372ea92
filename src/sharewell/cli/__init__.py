"""The command line.

::

    app          the Typer application: error messages, exit codes, pipes and Ctrl-C
    setup        init, check, plan, serve, verify, token, demo
    lifecycle    begin, adopt, recover
    analyst      ask, answer, shell, quote, budget, questions, dataset, certificate, done
    curator      ledger, analysts, pause, resume
    research     commands of installed distributions such as sharewell-lab
    shell        the prompt of `sharewell shell`
    export       CSV and Parquet
    connection   the options that select a service, and the session they open
    options      other options that commands share, and shell completion of file names
    render       tables and sentences for everything a service returns
    render_*     the output of init, check, plan and verify
    tokens       issuing, revoking and listing tokens
    demo         the demonstration's server and script

Commands import heavy modules in their bodies, so that `--help` and shell completion stay fast.
"""

from sharewell.cli import analyst, curator, lifecycle, research, setup
from sharewell.cli.app import app, main

for _module in (setup, lifecycle, analyst, curator):
    app.add_typer(_module.commands)
for _commands in research.installed_commands():
    app.add_typer(_commands)

__all__ = ["app", "main"]
