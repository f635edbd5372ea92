"""What `sharewell check` says of a ledger that is there: whether the service could go on with it."""

from __future__ import annotations

import pytest

from sharewell.config import read_config
from sharewell.errors import SharewellError
from sharewell.service.dataset import DatasetService
from sharewell.service.ledger import open_ledger
from sharewell.service.state import check_ledger
from tests.service.datasets import write_dataset
from tests.service.services import count


@pytest.fixture
def path(tmp_path):
    """A dataset of which two questions were asked."""
    path = write_dataset(tmp_path)
    with DatasetService.open(read_config(path)) as service:
        for high in (4, 5):
            service.ask("ann", count(0, high))
    return path


def test_where_there_is_no_ledger_there_is_nothing_to_say(tmp_path):
    assert list(check_ledger(read_config(write_dataset(tmp_path)))) == []


def test_a_ledger_that_goes_on_is_told_and_not_changed(path):
    before = path.with_name("people.ledger.sqlite").read_bytes()
    [found] = check_ledger(read_config(path))
    assert (found.level, found.message) == (
        "note",
        "The service continues its ledger: 2 questions were asked, and 1/4 of the budget is "
        "unallocated.",
    )
    assert path.with_name("people.ledger.sqlite").read_bytes() == before


def test_it_is_looked_at_beside_a_service_that_runs(path):
    config = read_config(path)
    with DatasetService.open(config):
        assert [found.level for found in check_ledger(config)] == ["note"]


@pytest.mark.parametrize(
    ("now", "then"),
    [
        ("epsilon = 10", "epsilon = 11"),
        ("high = 19", "high = 20"),
        ('[analysts.ann]\nshare = "1/4"', '[analysts.ann]\nshare = "1/5"'),
        ('query_budget = "1/80"', 'query_budget = "1/90"'),
    ],
)
def test_what_the_service_would_refuse_is_an_error_in_the_same_words(path, now, then):
    text = path.read_text()
    assert now in text
    path.write_text(text.replace(now, then, 1))
    config = read_config(path)
    with pytest.raises(SharewellError) as refused, DatasetService.open(config):
        pass
    [found] = check_ledger(config)
    assert (found.level, found.message, found.hint) == (
        "error",
        refused.value.message,
        refused.value.hint,
    )


def test_what_may_change_is_no_error(path):
    path.write_text(path.read_text().replace("error_threshold = 20", "error_threshold = 30"))
    assert [found.level for found in check_ledger(read_config(path))] == ["note"]


def test_a_damaged_ledger_is_an_error(path):
    path.with_name("people.ledger.sqlite").write_bytes(b"no ledger")
    assert [found.level for found in check_ledger(read_config(path))] == ["error"]


def test_nothing_is_granted_to_those_who_are_new_in_the_file(path):
    path.write_text(path.read_text() + '[analysts.dan]\nshare = "1/8"\n')
    assert [found.level for found in check_ledger(read_config(path))] == ["note"]
    ledger = path.with_name("people.ledger.sqlite")
    with open_ledger(ledger, read_only=True) as found:
        assert "dan" not in str(list(found.events()))
