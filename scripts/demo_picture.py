"""Draw what `make demo` shows, for the README: docs/figures/demo.svg."""

from __future__ import annotations

import re
import tempfile
from io import StringIO
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import MONOKAI

from sharewell.client import connect
from sharewell.demo.stage import set_up
from sharewell.demo.story import SCENES, Story

OUT = Path(__file__).parent.parent / "docs" / "figures" / "demo.svg"
#: The scenes that tell most in little room.
SHOWN = (0, 1, 4)


def main() -> None:
    console = Console(record=True, width=88, file=StringIO(), force_terminal=True)
    with tempfile.TemporaryDirectory() as folder, set_up(Path(folder), None) as stage:
        analysts = {name: token for name, token in stage.tokens.items() if name != "dana"}
        sessions = {name: connect(stage.url, token) for name, token in analysts.items()}
        Story(console, sessions, 0.0, tuple(SCENES[at] for at in SHOWN)).play()
        for session in sessions.values():
            session.close()
    drawn = console.export_svg(title="make demo", theme=MONOKAI)
    # Rich would have a browser fetch a font; whatever it has for code will do.
    drawn = re.sub(r"@font-face \{.*?\}", "", drawn, flags=re.DOTALL)
    drawn = drawn.replace("Fira Code", "ui-monospace, Menlo, Consolas, DejaVu Sans Mono")
    OUT.write_text(re.sub(r"[ \t]+\n", "\n", drawn), encoding="utf-8")


if __name__ == "__main__":
    main()
