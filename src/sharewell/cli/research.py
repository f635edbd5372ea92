"""What researchers type, and whoever wants to see it work."""

from __future__ import annotations

from typing import Annotated

import typer

from sharewell.cli.link import AsJson

PANEL = "For researchers"

commands = typer.Typer()


@commands.command(rich_help_panel=PANEL)
def demo(
    script: Annotated[bool, typer.Option("--script", help="Play a short story on it first.")] = False,
    port: Annotated[int | None, typer.Option(help="8080 if left out, or any that is free.")] = None,
    seconds: Annotated[float, typer.Option(help="How long to pause after each scene.", min=0)] = 0.0,
) -> None:
    """Serve the bundled table to three analysts, until Ctrl-C; `--script` shows them at work."""
    from sharewell.demo.show import show

    show(script=script, port=port, pause=seconds)


Jobs = Annotated[int | None, typer.Option(help="How many processes; all processors if left out.", min=1)]


@commands.command(rich_help_panel=PANEL)
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


@commands.command(rich_help_panel=PANEL)
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


theory = typer.Typer(help="What can be promised to several analysts at once.", no_args_is_help=True)
commands.add_typer(theory, name="theory", rich_help_panel=PANEL)


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
