"""The chosen seed is stored: a ledger opens where another machine would choose another one."""

from dataclasses import replace
from fractions import Fraction

import pytest

from sharewell.config import read_config
from sharewell.errors import PrivacyError
from sharewell.mechanisms import planned_seed, seed
from sharewell.mechanisms.marginal_seed import MarginalPart
from sharewell.mechanisms.strategy import Strategy
from sharewell.privacy.ledger import Charged
from sharewell.service.dataset import DatasetService
from sharewell.service.ledger import open_ledger
from sharewell.service.verify import verify
from sharewell.service.verify.audit import _parse
from tests.service.datasets import write_dataset
from tests.service.services import count


@pytest.fixture
def path(tmp_path):
    """A dataset with an optimized seed, of which a question was asked."""
    path = write_dataset(tmp_path)
    path.write_text(path.read_text().replace("[mechanism]", '[mechanism]\nseed = "optimized"'))
    ask(path, "first")
    return path


@pytest.fixture
def elsewhere(path, monkeypatch):
    """Another machine, whose optimizer finds something else; what was computed here is forgotten."""
    monkeypatch.setattr(seed, "optimized", lambda domain, _: named(seed.NAMED["hb"](domain)))
    _parse.cache_clear()
    yield path
    _parse.cache_clear()


def named(strategy: Strategy) -> Strategy:
    return replace(strategy, name="optimized")


def ask(path, key, analyst="ann"):
    with DatasetService.open(read_config(path)) as service:
        found = service.ask(analyst, count(2, 11), key=key, timeout=120).answers
        return [(each.value, each.standard_error) for each in found]


def seeds(path) -> list:
    with open_ledger(path.with_name("people.ledger.sqlite"), read_only=True) as ledger:
        charged = [event.purpose for event in ledger.events() if isinstance(event, Charged)]
    return [each["measure"]["parts"] for each in charged if each["measure"]["kind"] == "strategy"]


def test_the_optimizer_of_this_test_finds_something_else(path, elsewhere):
    config = read_config(path)
    seed = config.make.seed_of(config.shares)
    assert seed is not None
    assert seed.to_json()["parts"] != seeds(path)[0]


def test_a_ledger_continues_with_its_own_seed_on_another_machine(elsewhere):
    assert ask(elsewhere, "second") == ask(elsewhere, "first")
    assert len(seeds(elsewhere)) == 1
    found = verify(elsewhere.with_name("people.ledger.sqlite"))
    assert found.findings == []
    assert found.certificate is not None


def test_an_analyst_who_joins_on_another_machine_donates_to_the_seed_of_the_ledger(elsewhere):
    elsewhere.write_text(elsewhere.read_text() + '[analysts.dora]\nshare = "1/8"\n')
    ask(elsewhere, "second", "dora")
    first, second = seeds(elsewhere)
    assert first == second
    assert verify(elsewhere.with_name("people.ledger.sqlite")).findings == []


def test_a_seed_of_another_name_is_refused(path):
    make = read_config(path).make
    domain = read_config(path).domain
    with pytest.raises(PrivacyError, match="another seed"):
        make.with_seed([seed.identity(domain).to_json()], domain)


def test_plans_are_taken_from_the_ledger(tmp_path, monkeypatch):
    """Another planner, or other expected questions, change nothing about those who have donated."""
    path = write_dataset(tmp_path)
    settings = path.read_text().replace("[mechanism]", '[mechanism]\nseed = "planned"')
    path.write_text(settings)
    first = ask(path, "first")
    identity = MarginalPart(tuple(range(len(read_config(path).domain.attributes))), 0, Fraction(1))
    monkeypatch.setattr(planned_seed, "plan_seed", lambda *_: (identity,))
    _parse.cache_clear()
    changed = settings + '[analysts.dora]\nshare = "1/8"\n'
    path.write_text(changed)
    assert ask(path, "second", "dora") != first
    with open_ledger(path.with_name("people.ledger.sqlite"), read_only=True) as ledger:
        plans = [
            event.purpose["measure"]["plans"]
            for event in ledger.events()
            if isinstance(event, Charged) and "plans" in event.purpose["measure"]
        ]
    assert [list(each) for each in plans][1:] == [["dora"]]
    assert plans[1]["dora"] == ["1"]
    monkeypatch.undo()
    _parse.cache_clear()
    found = verify(path.with_name("people.ledger.sqlite"))
    assert found.findings == []
    assert found.certificate is not None
    _parse.cache_clear()
