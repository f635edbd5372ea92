"""Draw the picture of the README, docs/figures/demo.svg, from the output of `make demo`."""

from __future__ import annotations

import re
import tempfile
from io import StringIO
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import MONOKAI

from sharewell.cli.demo import SCRIPT, run_demo_server, run_script

OUT = Path(__file__).parent.parent / "docs" / "figures" / "demo.svg"
#: The steps of the script to show.
STEPS = (0, 1, 4)


def main() -> None:
    console = Console(record=True, width=88, file=StringIO(), force_terminal=True)
    with tempfile.TemporaryDirectory() as folder, run_demo_server(Path(folder), None) as server:
        run_script(console, server, tuple(SCRIPT[index] for index in STEPS), 0.0)
    drawn = console.export_svg(title="make demo", theme=MONOKAI)
    # Use the browser's own monospace font: Rich's template would fetch one over the network.
    drawn = re.sub(r"@font-face \{.*?\}", "", drawn, flags=re.DOTALL)
    drawn = drawn.replace("Fira Code", "ui-monospace, Menlo, Consolas, DejaVu Sans Mono")
    OUT.write_text(re.sub(r"[ \t]+\n", "\n", drawn), encoding="utf-8")


if __name__ == "__main__":
    main()
