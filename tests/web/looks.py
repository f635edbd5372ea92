"""A page in four looks: light and dark, wide and narrow; checked with axe, and for what sticks out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from playwright.sync_api import Page

#: Axe comes with the packages of the console's sources; where they are missing, it is left out.
AXE = Path(__file__).parents[2] / "web" / "node_modules" / "axe-core" / "axe.min.js"
WIDE, NARROW = {"width": 1280, "height": 860}, {"width": 360, "height": 780}
#: What can differ between looks: colours, and what has to be scrolled.
DIFFERENT = ["color-contrast", "scrollable-region-focusable"]
#: The rules of each look; None for every rule.
LOOKS = (
    ("dark", NARROW, DIFFERENT),
    ("light", NARROW, DIFFERENT),
    ("dark", WIDE, DIFFERENT),
    ("light", WIDE, None),
)


#: What is wider than the box that it is in.
STICKS_OUT = """() => [...document.querySelectorAll(
    "html, dialog[open], .dialog-body, .card, .question, .form, .results, .sign-in form"
  )]
  .filter((box) => box.scrollWidth > box.clientWidth + 1)
  .map((box) => `${box.tagName}.${box.className}: ${box.scrollWidth} > ${box.clientWidth}`)"""

#: What axe calls serious or critical, picked out in the page: a whole report takes long to send.
SERIOUS = """async rules => {
  const { violations } = await axe.run(document, { ...rules, resultTypes: ["violations"] });
  return violations
    .filter(({ impact }) => ["serious", "critical"].includes(impact))
    .flatMap(({ id, nodes }) => nodes.map(({ target }) => [id, target]));
}"""


def check_looks(page: Page) -> None:
    """Nothing serious in any look; nothing wider than the screen or than its box."""
    for scheme, size, rules in LOOKS:
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")  # type: ignore[arg-type]
        page.set_viewport_size(size)  # type: ignore[arg-type]
        # Charts follow the width in the next frames, and colours without a transition.
        page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        sticks_out = page.evaluate(STICKS_OUT)
        assert sticks_out == [], (scheme, size, sticks_out)
        if AXE.exists():
            found = _serious(page, {"runOnly": rules} if rules else {})
            assert found == [], (scheme, size, found)


def _serious(page: Page, rules: dict[str, Any]) -> Any:
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE.read_text())
    return page.evaluate(SERIOUS, rules)
