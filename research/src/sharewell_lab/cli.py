"""Commands for researchers, which `sharewell` finds by the entry point group `sharewell.commands`.

The heavy modules are imported when a command runs, so that help and completion are quick.
"""

from __future__ import annotations

from typing import Annotated

import typer

PANEL = "For researchers"

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Jobs = Annotated[
    int | None, typer.Option(help="Number of processes. Default: one per processor.", min=1)
]

commands = typer.Typer()


@commands.command(rich_help_panel=PANEL)
def reproduce(
    figures: Annotated[list[str] | None, typer.Argument(help="fig1, fig2, fig3 or all.")] = None,
    trials: Annotated[int, typer.Option(help="Number of random streams.", min=1)] = 1000,
    epsilon: Annotated[list[str] | None, typer.Option(help="One or more budgets: 0.1 1 10.")] = None,
    data: Annotated[
        str | None, typer.Option(help="A histogram: a CSV file with one count a line.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Equal seeds give equal results.", min=0)] = 1,
    jobs: Jobs = None,
    out: Annotated[str, typer.Option(help="Folder for the results and the report.")] = "reproduction",
) -> None:
    """Run the paper's experiments and check its claims against the results."""
    from sharewell_lab.reproduce import run

    run(figures or [], epsilon or [], trials, data, seed, jobs, out)


@commands.command(rich_help_panel=PANEL)
def simulate(
    study: Annotated[str, typer.Argument(help="A STUDY.toml file, or alternatives.")],
    trials: Annotated[int | None, typer.Option(help="Override the file's `trials`.", min=1)] = None,
    seed: Annotated[int | None, typer.Option(help="Override the file's `seed`.", min=0)] = None,
    jobs: Jobs = None,
    out: Annotated[str | None, typer.Option(help="Folder for the results.")] = None,
    as_json: AsJson = False,
) -> None:
    """Compare mechanisms and schedulers on your own data and workloads."""
    from sharewell_lab.simulate import simulate

    simulate(study, trials, seed, jobs, out, as_json)


theory = typer.Typer(help="Evaluate the theorems about shared budgets.", no_args_is_help=True)
commands.add_typer(theory, name="theory", rich_help_panel=PANEL)


@theory.command("coupons")
def theory_coupons(
    analysts: Annotated[int, typer.Option(help="Number of analysts.")],
    quota: Annotated[str, typer.Option(help="Turns for every analyst, or for each: 50 or 50,20,20.")],
    probabilities: Annotated[
        str | None, typer.Option(help="Probability of each analyst: 0.5,0.25,0.25. Default: equal.")
    ] = None,
    steps: Annotated[int | None, typer.Option(help="Also show the state after this many draws.")] = None,
    probability: Annotated[
        float | None,
        typer.Option(help="Also find the fewest draws that meet all quotas with this probability."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Compute how many random turns it takes until every analyst has met their quota."""
    from sharewell_lab.theory.render import show_coupons

    show_coupons(analysts, quota, probabilities, steps, probability, as_json)


@theory.command("limit")
def theory_limit(
    alpha: Annotated[float, typer.Option(help="The error allowed in an answer, in counts.")],
    epsilon: Annotated[str, typer.Option(help="The total budget, such as 1 or 0.1.")],
    analysts: Annotated[int, typer.Option(help="Number of analysts with equal shares.")],
    as_json: AsJson = False,
) -> None:
    """Compute how many hard queries can be answered, alone and together."""
    from sharewell_lab.theory.render import show_limit

    show_limit(alpha, epsilon, analysts, as_json)
