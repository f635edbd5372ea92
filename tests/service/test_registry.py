"""The registry of datasets: several datasets in one server, and which of them a token opens."""

from __future__ import annotations

import pytest

from sharewell.errors import ConfigError, LedgerInUse, UnknownToken
from sharewell.service.registry import DatasetRegistry
from sharewell.service.tokens import Principal
from tests.service.datasets import open_service, write_dataset
from tests.service.waiting import comes_true


def write_two(folder):
    return [write_dataset(folder, "people"), write_dataset(folder, "patients")]


def test_a_token_opens_the_dataset_that_it_was_issued_for(tmp_path):
    with DatasetRegistry.open(write_two(tmp_path)) as registry:
        assert tuple(registry.datasets) == ("people", "patients")
        tokens = {name: dataset.token("ann") for name, dataset in registry.datasets.items()}
        for name, token in tokens.items():
            assert registry.authenticate(token) == (registry.datasets[name], Principal("ann", "analyst"))
        registry.datasets["people"].tokens.revoke("ann", "analyst")
        with pytest.raises(UnknownToken):
            registry.authenticate(tokens["people"])
        assert registry.authenticate(tokens["patients"])[0].name == "patients"


def test_datasets_answer_on_their_own(tmp_path):
    with DatasetRegistry.open(write_two(tmp_path)) as registry:
        for name, service in registry.datasets.items():
            ticket = service.submit("ann", f"SELECT COUNT(*) FROM {name}")
            assert ticket.wait(60).cost == service.config.budget.total / 80
            comes_true(lambda service=service: service.budget("ann").asked == 1)  # type: ignore[misc]


@pytest.mark.parametrize("token", ["", "nothing", f"sw_{'A' * 12}_{'B' * 43}", None])
def test_a_token_that_was_never_issued_opens_nothing(tmp_path, token):
    with (
        DatasetRegistry.open(write_two(tmp_path)[:1]) as registry,
        pytest.raises(UnknownToken) as refused,
    ):
        registry.authenticate(token)
    assert refused.value.code == "access.unknown-token"
    assert "AAAA" not in str(refused.value)


def test_datasets_that_could_not_be_told_apart_are_refused(tmp_path):
    first = write_dataset(tmp_path / "a")
    second = write_dataset(tmp_path / "b")
    with pytest.raises(ConfigError, match="also called 'people'"):
        DatasetRegistry.open([first, second])
    shared = write_dataset(tmp_path / "a", "patients", service='access = "people.access.json"')
    with pytest.raises(ConfigError, match="same access file"):
        DatasetRegistry.open([first, shared])
    with pytest.raises(ConfigError, match="No dataset"):
        DatasetRegistry.open([])


def test_where_one_cannot_be_opened_none_stays_open(tmp_path):
    paths = write_two(tmp_path)
    with open_service(tmp_path, "patients"), pytest.raises(LedgerInUse):
        DatasetRegistry.open(paths)
    DatasetRegistry.open(paths).close()


@pytest.mark.parametrize("failing", ["people", "patients"])
def test_all_are_closed_also_where_one_fails(tmp_path, monkeypatch, failing):
    paths = write_two(tmp_path)
    registry = DatasetRegistry.open(paths)

    def fail() -> None:
        raise OSError("no")

    broken = registry.datasets[failing]
    close = broken.close
    monkeypatch.setattr(broken, "close", fail)
    with pytest.raises(OSError, match="no"):
        registry.close()
    close()
    DatasetRegistry.open(paths).close()


def test_a_mistake_names_the_file_that_it_is_in(tmp_path):
    good, bad = write_two(tmp_path)
    bad.write_text(bad.read_text().replace("epsilon = 10", "epsilon = -1"))
    with pytest.raises(ConfigError, match=r"patients\.toml: "):
        DatasetRegistry.open([good, bad])
