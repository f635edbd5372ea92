"""The command line: one command per verb, no logic."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer.core import TyperGroup

import sharewell
from sharewell.errors import SharewellError


class SaysWhy(TyperGroup):
    """Commands whose refusals are a sentence on stderr and exit code 2, never a traceback."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command that was typed."""
        try:
            return super().invoke(ctx)
        except SharewellError as refused:
            typer.echo(f"{refused}", err=True)
            raise typer.Exit(2) from None


app = typer.Typer(
    cls=SaysWhy,
    help="Several analysts, one sensitive table, one privacy budget, and nobody worse off for sharing.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"sharewell {sharewell.__version__}")
        raise typer.Exit


@app.callback()
def common(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Say what every command has in common."""


@app.command()
def demo(
    seconds: Annotated[float, typer.Option(help="How long to pause after each step.", min=0)] = 0.0,
) -> None:
    """Show three analysts share a budget on the bundled table."""
    from sharewell.demo import play

    play(pause=seconds)


AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command()
def plan(
    config: Annotated[str, typer.Argument(help="A sharewell.toml.")],
    top: Annotated[int, typer.Option(help="How many settings to show.", min=1)] = 10,
    as_json: AsJson = False,
) -> None:
    """Compare seeds and prices for what the analysts will ask, before anything is spent."""
    from sharewell.config.report import show_plan

    show_plan(config, top, as_json)


Jobs = Annotated[int | None, typer.Option(help="How many processes; all processors if left out.", min=1)]


@app.command()
def reproduce(
    figures: Annotated[list[str] | None, typer.Argument(help="fig1, fig2, fig3 or all.")] = None,
    trials: Annotated[int, typer.Option(help="How many random streams to play.", min=1)] = 1000,
    epsilon: Annotated[list[str] | None, typer.Option(help="One or more budgets: 0.1 1 10.")] = None,
    data: Annotated[str | None, typer.Option(help="A histogram: a CSV file, one count a line.")] = None,
    seed: Annotated[int, typer.Option(help="The same seed gives the same results.", min=0)] = 1,
    jobs: Jobs = None,
    out: Annotated[str, typer.Option(help="The folder for results and report.")] = "reproduction",
) -> None:
    """Run the paper's experiments, and judge its claims by what comes out."""
    from sharewell.lab.reproduce import from_words

    from_words(figures or [], epsilon or [], trials, data, seed, jobs, out)


@app.command()
def simulate(
    study: Annotated[str, typer.Argument(help="A STUDY.toml.")],
    trials: Annotated[int | None, typer.Option(help="Instead of the file's trials.", min=1)] = None,
    seed: Annotated[int | None, typer.Option(help="Instead of the file's seed.", min=0)] = None,
    jobs: Jobs = None,
    out: Annotated[str | None, typer.Option(help="The folder for the results.")] = None,
    as_json: AsJson = False,
) -> None:
    """Compare mechanisms and schedulers on data and questions of one's own."""
    from sharewell.lab.simulate import simulate

    simulate(study, trials, seed, jobs, out, as_json)


@app.command()
def verify(
    ledger: Annotated[str, typer.Argument(help="A ledger's file, or the address of a PostgreSQL one.")],
    head: Annotated[str | None, typer.Option(help="A head noted earlier, as COUNT:HASH.")] = None,
    name: Annotated[str, typer.Option(help="The ledger's name in PostgreSQL.")] = "default",
    certificate: Annotated[bool, typer.Option(help="Compute the certificate again, too.")] = True,
    as_json: AsJson = False,
) -> None:
    """Verify a ledger offline: chain, budget, questions, answers and certificate."""
    from sharewell.service.verify.report import show_verification

    if not show_verification(ledger, name, head, certificate, as_json):
        raise typer.Exit(1)


theory = typer.Typer(help="What can be promised to several analysts at once.", no_args_is_help=True)
app.add_typer(theory, name="theory")


@theory.command("coupons")
def theory_coupons(
    analysts: Annotated[int, typer.Option(help="How many analysts there are.")],
    quota: Annotated[str, typer.Option(help="Turns that everybody wants, or each: 50 or 50,20,20.")],
    probabilities: Annotated[
        str | None, typer.Option(help="How likely each is drawn: 0.5,0.25,0.25. Alike if left out.")
    ] = None,
    steps: Annotated[int | None, typer.Option(help="Also show what so many draws give.")] = None,
    probability: Annotated[
        float | None, typer.Option(help="Also find the fewest draws that meet all quotas so likely.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Say how many random turns it takes until every analyst has had their quota."""
    from sharewell.sharing.theory.report import show_coupons

    show_coupons(analysts, quota, probabilities, steps, probability, as_json)


@theory.command("limit")
def theory_limit(
    alpha: Annotated[float, typer.Option(help="How far off an answer may be, in counts.")],
    epsilon: Annotated[str, typer.Option(help="The whole budget, such as 1 or 0.1.")],
    analysts: Annotated[int, typer.Option(help="How many analysts share it equally.")],
    as_json: AsJson = False,
) -> None:
    """Say how many hard queries can be answered, alone and together."""
    from sharewell.sharing.theory.report import show_limit

    show_limit(alpha, epsilon, analysts, as_json)


def main() -> None:
    """Run the command line."""
    app()
