"""Run all benchmarks, or the named ones: `python -m benchmarks [noise sql vectorize ...]`."""

import importlib
import pkgutil
import sys

from rich.console import Console
from rich.table import Table

import benchmarks
from benchmarks.ratio import Ratio

NOT_BENCHMARKS = {"__main__", "hostile", "ratio", "traffic"}


def main(names: list[str]) -> int:
    """Print one row per benchmark; exit with 1 if a target is missed."""
    known = [m.name for m in pkgutil.iter_modules(benchmarks.__path__) if m.name not in NOT_BENCHMARKS]
    console = Console()
    if unknown := sorted(set(names) - set(known)):
        console.print(f"Unknown benchmark {unknown[0]!r}. The benchmarks are {', '.join(known)}.")
        return 2
    table = Table("benchmark", "ours", "compared with", "theirs", "ratio", "promise", "")
    kept = True
    for name in names or known:
        console.print(f"[dim]running {name}...")
        for row in importlib.import_module(f"benchmarks.{name}").run():
            kept &= row.met
            table.add_row(*cells(row))
    console.print(table)
    return 0 if kept else 1


def cells(row: Ratio) -> list[str]:
    """Format a row."""
    promise = f"{'at most' if row.at_most else 'at least'} {row.target:g}"
    verdict = "[green]kept" if row.met else "[red]broken"
    return [
        row.name,
        clock(row.ours) if row.times else f"{row.ours:.3g}",
        row.reference_name,
        clock(row.reference) if row.times else f"{row.reference:.3g}",
        f"{row.ratio:.3g}",
        promise,
        verdict,
    ]


def clock(seconds: float) -> str:
    """Format a time in a suitable unit."""
    for unit, size in (("s", 1), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


sys.exit(main(sys.argv[1:]))
