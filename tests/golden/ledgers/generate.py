"""Write the golden ledgers.

They were written once, by commit 7b0808e, and are never written again: the point is that later code
reads what that code wrote. The script documents how each came about and needs that commit's `src` on
PYTHONPATH:

    python tests/golden/ledgers/generate.py
"""

# mypy: ignore-errors

from __future__ import annotations

import json
import multiprocessing
import os
import shutil
import signal
import sqlite3
import sys
import tempfile
from collections import Counter
from contextlib import closing
from fractions import Fraction
from pathlib import Path

from sharewell import wire
from sharewell.config import read_config
from sharewell.mechanism.cache_reconstruct import CacheReconstruct
from sharewell.mechanism.pmw import PrivateMultiplicativeWeights
from sharewell.privacy.noise import ExactNoise
from sharewell.service.desk import Desk
from sharewell.service.verify import verify

HERE = Path(__file__).parent
LEDGER = "ledger.sqlite"
CITIES = ("Zürich", "Łódź", "東京")

BASE = """\
[dataset]
source = "people.csv"
population = 60
{dataset}
[budget]
epsilon = 10
error_threshold = 8
{budget}
[attributes.age]
type = "integer"
low = 0
high = 7
[attributes.city]
type = "category"
categories = ["Zürich", "Łódź", "東京"]
[analysts.ann]
share = "1/4"
[analysts.ben]
share = "1/4"
[analysts.cleo]
share = "1/4"
[mechanism]
{mechanism}
[scheduler]
{scheduler}
[service]
ledger = "ledger.sqlite"
access = "access.json"
"""

#: Four purchases for each share, after half of it has bought the seed.
SCR = 'query_budget = "1/32"'
ROUND_ROBIN = 'name = "round-robin"'
ZCDP = 'delta = "1e-6"'

WIDE = """\
[dataset]
name = "visits"
source = "visits.csv"
privacy_unit = "person"
population = 50
[budget]
epsilon = 8
delta = 1e-6
error_threshold = "10%"
[attributes.age]
type = "integer"
low = 0
high = 9
bins = { age_group = [0, 5] }
[attributes.fee]
type = "binned"
cuts = [0, 10, 50, 250]
[attributes.ward]
type = "category"
categories = ["nord", "süd"]
other = "außerhalb"
nullable = true
[attributes.emergency]
type = "boolean"
[attributes.admitted]
type = "date"
start = 2024-01-01
end = 2024-03-31
by = "month"
[analysts.ann]
share = "1/2"
expects = ["SELECT ward, COUNT(*) FROM visits GROUP BY ward"]
[analysts.ben]
share = "1/2"
[mechanism]
seed = "marginals(1)"
seed_fraction = "1/4"
query_budget = "1/40"
[scheduler]
name = "randomized"
probabilities = { ann = "1/3", ben = "2/3" }
[service]
ledger = "ledger.sqlite"
access = "access.json"
tick = 0.001
"""


def text(mechanism=SCR, scheduler='name = "none"', budget="", dataset=""):
    return BASE.format(mechanism=mechanism, scheduler=scheduler, budget=budget, dataset=dataset)


def count(low, high, city=None):
    also = f" AND city = '{city}'" if city else ""
    return f"SELECT COUNT(*) FROM people WHERE age BETWEEN {low} AND {high}{also}"


BY_CITY = "SELECT city, COUNT(*), AVG(age) FROM people GROUP BY city"
LARGE = (
    "SELECT age, COUNT(*) AS number FROM people WHERE city <> '東京' "
    "GROUP BY age HAVING COUNT(*) > 2 ORDER BY number DESC LIMIT 5"
)


class Story:
    """One ledger: a folder, the settings of each start, and what is asked."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.keys = 0

    def open(self, settings: str) -> Desk:
        (self.folder / "sharewell.toml").write_text(settings)
        return Desk.open(read_config(self.folder / "sharewell.toml"))

    def submit(self, desk: Desk, analyst: str, sql: str, pay: bool = True, key: str | None = None):
        self.keys += 1
        key = key or f"{analyst}-{self.keys}"
        return desk.submit(analyst, wire.Question(sql=sql, pay=pay, key=key))

    def ask(self, desk: Desk, questions, done=True) -> None:
        tickets = [self.submit(desk, *question) for question in questions]
        if done:
            for name in desk.broker.analysts:
                desk.done(name)
        for ticket in tickets:
            ticket.outcome(60)


def usual(story: Story, settings: str, donate: bool = True) -> None:
    """Questions of every kind, a newcomer, two departures and a restart."""
    with story.open(settings) as desk:
        story.ask(
            desk,
            [
                ("ann", count(0, 3), True, "clé ✓ 鍵"),
                ("ben", "SELECT COUNT(*) FROM people WHERE NOT (age > 3)"),
                ("ann", BY_CITY),
                ("cleo", count(2, 6, "Łódź"), False),
                ("cleo", BY_CITY),
                ("ben", count(1, 5, "東京")),
            ],
        )
    with story.open(settings) as desk:
        story.ask(desk, [("ann", LARGE), ("ann", count(0, 6)), ("ann", count(1, 7)), ("ben", LARGE)])
        desk.join(wire.Newcomer(name="dora", share="3/20"))
        desk.leave("ben", donate=donate)
        story.ask(desk, [("ann", count(3, 4)), ("dora", count(3, 4)), ("cleo", count(2, 6), False)])
        desk.leave("cleo")
        story.ask(desk, [("ann", count(1, 2, "Zürich")), ("dora", count(0, 7))])


def estimate(story):
    usual(story, text())


def estimate_zcdp_round_robin(story):
    settings = text(f'{SCR}\nseed = "hb"', ROUND_ROBIN, ZCDP, 'neighbours = "replace-one"')
    usual(story, settings)
    with story.open(settings) as desk:
        story.submit(desk, "ann", count(5, 6)).wait_until_ready(60)
        story.submit(desk, "ann", count(5, 7)).wait_until_ready(60)  # waits for dora


def as_printed_weighted(story):
    turns = 'name = "weighted-round-robin"\nturns = { ann = 2, ben = 1, cleo = 1 }\nidle_after = 60'
    settings = text(f'{SCR}\nanswers = "as-printed"\nseed = "h2"', turns)
    with story.open(settings) as desk:
        story.ask(desk, [("ann", count(0, at)) for at in range(4)] + [("ben", count(0, 2))])
    with story.open(settings) as desk:
        story.ask(desk, [("cleo", BY_CITY), ("ann", BY_CITY), ("ann", count(2, 5)), ("ben", LARGE)])
        desk.leave("cleo", donate=True)
        story.ask(desk, [("ann", count(2, 6)), ("ben", count(2, 6)), ("ann", count(4, 6), False)])


def independent_randomized(story):
    settings = text(f"{SCR}\nindependent = true", 'name = "randomized"') + "tick = 0.001\n"
    usual(story, settings, donate=False)


def laplace_over_budget(story):
    settings = text('name = "laplace"\nquery_budget = "1/5"', ROUND_ROBIN)
    with story.open(settings) as desk:
        story.ask(desk, [(name, count(0, at)) for at in range(2) for name in ("ann", "ben", "cleo")])
        story.ask(desk, [("ann", BY_CITY), ("ben", count(0, 4), False)])
        desk.leave("cleo")
        story.ask(desk, [("ann", count(0, 7))])


def withdrawn(story):
    """The rotation waits for ann: cleo leaves with two questions waiting, and ben's stays open."""
    with story.open(text(scheduler=ROUND_ROBIN)) as desk:
        for analyst, high in (("cleo", 5), ("ben", 4), ("cleo", 6)):
            story.submit(desk, analyst, count(0, high)).wait_until_ready(60)
        desk.leave("cleo")


def laplace_independent_zcdp(story):
    settings = text('name = "laplace"\nquery_budget = "1/10"\nindependent = true', budget=ZCDP)
    with story.open(settings) as desk:
        story.ask(desk, [("ann", count(0, at)) for at in range(4)] + [("ben", BY_CITY)])
        desk.join(wire.Newcomer(name="dora", share="1/5"))
        desk.leave("ben")
        story.ask(desk, [("dora", LARGE), ("cleo", count(0, 4), False)])


def multiplicative_weights(story):
    settings = text('name = "multiplicative-weights"\nupdates = 5\nthreshold = 3', ROUND_ROBIN)
    with story.open(settings) as desk:
        story.ask(desk, [(name, count(0, at)) for at in range(3) for name in ("ann", "ben", "cleo")])
    with story.open(settings) as desk:
        story.ask(desk, [("ann", BY_CITY), ("ben", LARGE), ("cleo", count(3, 3, "東京"), False)])
        desk.leave("cleo")
        story.ask(desk, [("ann", count(2, 4)), ("ben", count(6, 7))])


def multiplicative_weights_zcdp(story):
    mechanism = 'name = "multiplicative-weights"\nupdates = 3\nthreshold = 2\nupdate = "sign"'
    settings = text(f"{mechanism}\nindependent = true", budget=ZCDP)
    with story.open(settings) as desk:
        story.ask(desk, [(name, count(at, at + 1)) for at in (0, 3) for name in ("ann", "ben")])
        story.ask(desk, [("ann", BY_CITY), ("cleo", count(2, 3, "Łódź"))])


def infinite_errors(story):
    settings = text(f'{SCR}\nseed = "total"\nbuy_seed_rows = true')
    with story.open(settings) as desk:
        story.ask(
            desk,
            [
                ("ann", count(0, 3), False),
                ("ann", count(0, 3)),
                ("ben", count(4, 7), False),
                ("ben", count(0, 7)),
                ("cleo", BY_CITY, False),
                ("cleo", BY_CITY),
            ],
        )


def wide(story):
    lines = ["person,age,fee,ward,emergency,admitted"]
    wards = ("nord", "süd", "Ost", "")
    for row in range(44):
        month, day = 1 + row % 3, 1 + row % 28
        lines.append(
            f"p{row % 40},{row % 10},{(7 * row) % 260},{wards[row % 4]},"
            f"{'true' if row % 5 else 'false'},2024-{month:02}-{day:02}"
        )
    (story.folder / "people.csv").unlink()
    (story.folder / "visits.csv").write_text("\n".join(lines) + "\n")
    with story.open(WIDE) as desk:
        story.ask(
            desk,
            [
                ("ann", "SELECT ward, COUNT(*) FROM visits GROUP BY ward"),
                ("ben", "SELECT age_group, COUNT(*) FROM visits WHERE emergency GROUP BY age_group"),
                ("ann", "SELECT COUNT(*) FROM visits WHERE ward IS NULL OR ward = 'süd'"),
                ("ben", "SELECT COUNT(*) FROM visits WHERE fee >= 10 AND fee < 50"),
                ("ben", "SELECT AVG(age) FROM visits WHERE admitted >= DATE '2024-02-01'", False),
            ],
        )


def settings_changed(story):
    first = text()
    second = first.replace("error_threshold = 8", "error_threshold = 6")
    third = second.replace("[mechanism]", '[analysts.dora]\nshare = "1/8"\n[mechanism]')
    fourth = third.replace('name = "none"', 'name = "round-robin"')
    fifth = fourth.replace('name = "round-robin"', 'name = "randomized"') + "tick = 0.001\n"
    for at, settings in enumerate((first, second, third, fourth, fifth)):
        with story.open(settings) as desk:
            story.ask(desk, [(name, count(at, 5)) for name in desk.broker.analysts])


# What a crash leaves behind


def kill(*_):
    os.kill(os.getpid(), signal.SIGKILL)


def in_a_process(crash, folder: Path) -> None:
    """Run something that kills its own process."""
    process = multiprocessing.get_context("spawn").Process(target=crash, args=(folder,))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL


def crash_at_noise(folder: Path) -> None:
    """Die when the charge is stored and nothing is measured yet."""
    story = Story(folder)
    settings = (folder / "sharewell.toml").read_text()
    with story.open(settings) as desk:
        ExactNoise.laplace = ExactNoise.gaussian = kill
        story.ask(desk, [("ben", count(1, 6), True, "lost"), ("ann", count(2, 3), True, "also lost")])


def crash_at_answer(folder: Path) -> None:
    """Die when the turn is stored and nothing is computed yet."""
    story = Story(folder)
    settings = (folder / "sharewell.toml").read_text()
    with story.open(settings) as desk:
        PrivateMultiplicativeWeights.finish = kill
        story.ask(desk, [("ann", count(1, 6), True, "lost")])


def charge_not_released(story):
    with story.open(text()) as desk:
        story.ask(desk, [("ann", count(0, 3)), ("cleo", BY_CITY)])
    in_a_process(crash_at_noise, story.folder)


def turn_not_answered(story):
    with story.open(text(scheduler=ROUND_ROBIN, budget=ZCDP)) as desk:
        story.ask(desk, [("ann", count(0, 3)), ("ben", BY_CITY)])
    in_a_process(crash_at_noise, story.folder)


def turn_not_answered_weights(story):
    mechanism = 'name = "multiplicative-weights"\nupdates = 5\nthreshold = 3'
    with story.open(text(mechanism, ROUND_ROBIN)) as desk:
        story.ask(desk, [("ann", count(0, 3)), ("ben", count(2, 2))])
    in_a_process(crash_at_answer, story.folder)


def crash_recovered(story):
    charge_not_released(story)
    with story.open(text()) as desk:
        story.ask(desk, [("ann", count(1, 6)), ("ben", count(2, 4))])


def computation_failed(story):
    finish = CacheReconstruct.finish

    def fail(*_):
        raise ArithmeticError

    with story.open(text()) as desk:
        story.ask(desk, [("ann", count(0, 3))])
        CacheReconstruct.finish = fail
        story.ask(desk, [("ben", count(1, 4))], done=False)
        CacheReconstruct.finish = finish
        story.ask(desk, [("ben", count(1, 5)), ("ann", count(1, 4))])


STORIES = (
    estimate,
    estimate_zcdp_round_robin,
    as_printed_weighted,
    independent_randomized,
    laplace_over_budget,
    withdrawn,
    laplace_independent_zcdp,
    multiplicative_weights,
    multiplicative_weights_zcdp,
    infinite_errors,
    wide,
    settings_changed,
    charge_not_released,
    turn_not_answered,
    turn_not_answered_weights,
    crash_recovered,
    computation_failed,
)


def outcome(folder: Path) -> dict:
    """What the ledger comes to, read from a copy: opening may complete what a crash left open."""
    found = verify(folder / LEDGER)
    assert found.ok, found.findings
    with tempfile.TemporaryDirectory() as copied:
        copy = shutil.copytree(folder, Path(copied) / "copy")
        with closing(sqlite3.connect(copy / LEDGER)) as connection:
            bodies = [json.loads(body) for (body,) in connection.execute("SELECT body FROM events")]
        ended = {b["data"]["asked"] for b in bodies if b["kind"] in ("answered", "refused")}
        names = dict.fromkeys(b["data"]["analyst"] for b in bodies if b["kind"] == "asked")
        with Desk.open(read_config(copy / "sharewell.toml")) as desk:
            questions = {
                name: [
                    stored(desk.shown(ticket))
                    for ticket in desk.broker.tickets(name)
                    if ticket.number in ended
                ]
                for name in names
            }
    return {
        "head": str(found.head),
        "notes": sorted(note.code for note in found.notes),
        "counts": {check.name: check.counts for check in found.checks},
        "questions": questions,
        "budgets": budgets(bodies),
        "certificate": found.certificate and numbers(found.certificate.to_json()),
    }


def budgets(bodies) -> dict:
    """Share, spending and number of questions of each present analyst, from the events alone."""
    data = {kind: [b["data"] for b in bodies if b["kind"] == kind] for kind in ("granted", "left")}
    shares = {each["payer"]: each["share"] for each in data["granted"]}
    spent = dict.fromkeys(shares, Fraction(0))
    asked = Counter(b["data"]["analyst"] for b in bodies if b["kind"] == "asked")
    for body in bodies:
        for payer, cost in body["data"].get("bill", {}).items():
            spent[payer] += Fraction(cost)
    gone = {each["payer"] for each in data["left"]}
    return {
        name: [str(Fraction(share)), str(spent[name]), asked[name]]
        for name, share in shares.items()
        if name not in gone
    }


def numbers(certificate: dict) -> dict:
    """A certificate without its texts."""
    texts = ("mechanism", "scheduler", "promises")
    return {key: value for key, value in certificate.items() if key not in texts}


def stored(ticket: wire.Ticket) -> dict:
    return {
        "number": ticket.number,
        "key": ticket.key,
        "sql": ticket.sql,
        "pay": ticket.pay,
        "answer": ticket.answer and ticket.answer.model_dump(mode="json", exclude={"notes"}),
        "problem": ticket.problem and [ticket.problem.code, ticket.problem.message],
    }


def write(name: str, tell) -> None:
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        rows = [f"{row % 8},{CITIES[row * row % 3]}" for row in range(60)]
        (folder / "people.csv").write_text("\n".join(["age,city", *rows]) + "\n")
        tell(Story(folder))
        target = HERE / name
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir()
        for file in ("sharewell.toml", "people.csv", "visits.csv"):
            if (folder / file).exists():
                shutil.copy(folder / file, target / file)
        with closing(sqlite3.connect(folder / LEDGER)) as connection:
            rows = connection.execute("SELECT hash, body FROM events ORDER BY number").fetchall()
        (target / "events.txt").write_text("".join(f"{h.hex()} {body}\n" for h, body in rows))
        found = json.dumps(outcome(folder), indent=1, ensure_ascii=False)
        (target / "expected.json").write_text(found + "\n")


if __name__ == "__main__":
    for tell in STORIES:
        name = tell.__name__.replace("_", "-")
        if len(sys.argv) == 1 or name in sys.argv[1:]:
            write(name, tell)
            print(name)
