"""A page in four looks: light and dark, wide and narrow; checked with axe, and for what sticks out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from playwright.sync_api import Page

#: Axe comes with the packages of the console's sources; where they are missing, it is left out.
AXE = Path(__file__).parents[2] / "web" / "node_modules" / "axe-core" / "axe.min.js"
WIDE, NARROW = {"width": 1280, "height": 860}, {"width": 375, "height": 780}
#: What can differ between looks: places with the width, colours with the scheme and what is shown.
PLACES, COLOURS = ["scrollable-region-focusable"], ["color-contrast"]
#: The rules of each look; None for every rule.
LOOKS = (
    ("dark", NARROW, PLACES + COLOURS),
    ("light", NARROW, PLACES + COLOURS),
    ("dark", WIDE, PLACES + COLOURS),
    ("light", WIDE, None),
)


def check_looks(page: Page, only: list[str] | None = None) -> None:
    """Nothing serious in any look, by the rules in `only` if given; no page wider than the screen."""
    for scheme, size, rules in LOOKS:
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")  # type: ignore[arg-type]
        page.set_viewport_size(size)  # type: ignore[arg-type]
        # Charts follow the width in the next frames, and colours without a transition.
        page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        beyond = page.evaluate("document.documentElement.scrollWidth - innerWidth")
        assert beyond <= 0, (scheme, size, beyond)
        if AXE.exists():
            chosen = only or rules
            found = _serious(page, {"runOnly": chosen} if chosen else {})
            assert found == [], (scheme, size, found)


def _serious(page: Page, rules: dict[str, Any]) -> list[tuple[str, Any]]:
    """What axe calls serious or critical."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE.read_text())
    found = page.evaluate("rules => axe.run(document, rules)", rules)
    return [
        (each["id"], node["target"])
        for each in found["violations"]
        if each["impact"] in ("serious", "critical")
        for node in each["nodes"]
    ]
