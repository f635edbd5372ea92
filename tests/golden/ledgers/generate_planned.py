"""Write the golden ledger `planned`: the first with a plan for each donor, and centred rows.

It was written once, by the version that introduced planned seeds, and is never written again: a later
planner may find other plans, and this ledger keeps its own.
"""

# mypy: ignore-errors

from __future__ import annotations

from pathlib import Path

from sharewell.config import read_config
from sharewell.service.dataset import DatasetService
from sharewell.service.lifecycle import begin
from tests.golden.ledgers.recording import BY_CITY, COUNT, record
from tests.service.verify.test_golden_ledgers import as_stored, budgets


def planned(text: str) -> str:
    """The settings of `estimate`, with Gaussian noise, a planned seed and what two analysts expect."""
    text = text.replace("[mechanism]\n", '[mechanism]\nseed = "planned"\n')
    text = text.replace("[budget]\n", '[budget]\ndelta = "1e-6"\n')
    ranges = ", ".join(f'"{COUNT.format(0, age)}"' for age in range(7))
    text = text.replace("[analysts.ann]\n", f"[analysts.ann]\nexpects = [{ranges}]\n")
    return text.replace("[analysts.ben]\n", '[analysts.ben]\nexpects = ["age, city"]\n')


def story(folder: Path, path: Path) -> dict[str, object]:
    """Three plans, paid and free questions, a restart, and a donation."""
    config = read_config(folder / "sharewell.toml")
    begin(config)
    for start in range(2):
        with DatasetService.open(config) as dataset:
            if start:
                dataset.leave("ben", donate=True)
            for analyst, sql, pay in [
                ("ann", COUNT.format(start, 4), True),
                ("ann", f"{BY_CITY}, age", False),
                ("cleo", BY_CITY, True),
                ("cleo", COUNT.format(start, 6), False),
            ]:
                dataset.submit(analyst, sql, pay=pay, key=f"{start} {pay} {sql}").outcome(60)
            tickets = {
                name: [as_stored(ticket) for ticket in dataset.questions(name).tickets]
                for name in ("ann", "cleo")
            }
            held = budgets(dataset)
    return {"questions": tickets, "budgets": held}


if __name__ == "__main__":
    record("planned", story, planned)
