"""A budget starts once: whatever becomes of its ledger, it is never spent again without a word."""

import json
import shutil
from pathlib import Path

import pytest

from sharewell.config import Config, read_config
from sharewell.errors import (
    ConfigError,
    LedgerCorrupt,
    LedgerError,
    LedgerInUse,
    SharewellError,
    SourceError,
    WitnessMismatch,
)
from sharewell.privacy.ledger import (
    Begun,
    CuratorAction,
    Exceeded,
    Granted,
    Released,
)
from sharewell.service import lifecycle
from sharewell.service.dataset import DatasetService
from sharewell.service.ledger.witness import lock_witness
from sharewell.service.lifecycle import adopt, begin, recover
from sharewell.service.registry import DatasetRegistry
from sharewell.service.verify import verify
from tests.service.datasets import write_dataset
from tests.service.losing import QUESTIONS, events, is_refused, use, witnessed
from tests.service.services import count, status


@pytest.fixture
def config(tmp_path) -> Config:
    return read_config(write_dataset(tmp_path))


def ledger_file(config: Config) -> Path:
    return Path(config.service.ledger)


def log_file(config: Config) -> Path:
    return Path(f"{config.service.ledger}-wal")


# Beginning


def test_a_ledger_begins_with_the_id_of_its_dataset(config):
    use(config)
    first, second, *_ = events(config)
    assert isinstance(first, Begun)
    assert second == CuratorAction("", "begin")
    assert first.dataset == witnessed(config).record.dataset
    assert verify(config.service.ledger).findings == []


def test_a_source_is_begun_once_whatever_its_dataset_is_called(config):
    use(config)
    text = config.text.replace('name = "people"', 'name = "folk"')
    other = config.path.with_name("folk.toml")
    other.write_text(text)
    for path in (config.path, other):
        with pytest.raises(LedgerError, match="was begun before"):
            begin(read_config(path))


def limited(config: Config, rows: int) -> Config:
    """The same dataset, not begun, with a limit of its rows."""
    config.witness.unlink()
    ledger_file(config).unlink()
    text = config.text.replace("[dataset]", f"[dataset]\nmax_rows = {rows}", 1)
    config.path.write_text(text)
    return read_config(config.path)


def test_more_rows_than_the_limit_are_refused_before_anything_begins(config, caplog):
    small = limited(config, 399)
    with pytest.raises(SourceError, match="has more than 399 rows") as refused:
        begin(small)
    assert not ledger_file(small).exists()
    assert not small.witness.exists()
    told = f"{refused.value.message} {refused.value.hint} {caplog.text}"
    assert "400" not in told


def test_as_many_rows_as_the_limit_are_begun(config):
    exact = limited(config, 400)
    begin(exact)
    with DatasetService.open(exact) as service:
        assert service.name == "people"


def test_without_a_limit_no_row_is_read(config, monkeypatch):
    config.witness.unlink()
    ledger_file(config).unlink()
    monkeypatch.setattr(Config, "vector", lambda *_: pytest.fail("rows were read"))
    begin(config)


def renamed(config: Config, *changes: tuple[str, str]) -> Config:
    """The same source under another name, so with another ledger."""
    text = config.text.replace('name = "people"', 'name = "folk"')
    for old, new in changes:
        text = text.replace(old, new)
    path = config.path.with_name("folk.toml")
    path.write_text(text)
    return read_config(path)


def test_a_link_to_a_source_is_the_same_source(config):
    config.source.with_name("link.csv").symlink_to(config.source)
    with pytest.raises(LedgerError, match="was begun before"):
        begin(renamed(config, (config.source.name, "link.csv")))


def test_of_two_processes_that_begin_a_source_at_once_one_does(config, monkeypatch):
    ledger_file(config).unlink()
    config.witness.unlink()
    other = renamed(config)

    def begun_meanwhile(path, wait):
        monkeypatch.undo()
        begin(config)
        return lock_witness(path, wait)

    monkeypatch.setattr(lifecycle, "lock_witness", begun_meanwhile)
    with pytest.raises(LedgerError, match="was begun before"):
        begin(other)
    assert not ledger_file(other).exists()
    use(config)


def test_another_witness_is_no_second_budget_unless_the_file_says_that_they_add_up(config):
    use(config)
    text = config.text.replace("[service]", '[service]\nwitness = "other.json"\nledger = "other.sqlite"')
    config.path.write_text(text)
    with pytest.raises(LedgerError, match="was begun before") as caught:
        begin(read_config(config.path))
    assert "budgets_add_up" in caught.value.hint
    config.path.write_text(text.replace("[dataset]", "[dataset]\nbudgets_add_up = true"))
    begin(read_config(config.path))


def test_a_temporary_ledger_is_for_sources_that_were_never_begun(config, caplog):
    with pytest.raises(LedgerError, match="was begun before"):
        DatasetService.open(config, temporary=True)
    config.witness.unlink()
    Path(config.service.ledger).unlink()
    with DatasetService.open(config, temporary=True) as service:
        service.ask("ann", count(0, 4), timeout=120)
    assert "temporary ledger" in caplog.text
    assert not config.witness.exists()
    assert not Path(config.service.ledger).exists()


# What becomes of a ledger


def test_an_empty_file_is_refused(config):
    use(config)
    ledger_file(config).write_bytes(b"")
    is_refused(config, LedgerCorrupt, "is empty")


def test_an_old_copy_is_not_adopted_with_another_witness(config):
    use(config, QUESTIONS[:2])
    old = config.path.with_name("old.sqlite")
    shutil.copy(ledger_file(config), old)
    use(config, QUESTIONS[2:])
    text = config.text.replace("[service]", '[service]\nwitness = "other.json"\nledger = "old.sqlite"')
    config.path.write_text(text)
    other = read_config(config.path)
    with pytest.raises(LedgerError, match=r"has a witness at .* already"):
        adopt(other)
    assert not other.witness.exists()
    config.path.write_text(text.replace("[dataset]", "[dataset]\nbudgets_add_up = true"))
    adopt(read_config(config.path))


# One writer


@pytest.mark.parametrize("act", [begin, adopt, recover, DatasetService.open])
def test_while_a_dataset_is_served_no_other_ledger_takes_its_witness(config, act):
    other = renamed(config)
    with DatasetService.open(config) as service:
        service.ask("ann", count(0, 4), timeout=120)
        seen = config.witness.read_bytes()
        if act in (adopt, DatasetService.open):
            shutil.copy(ledger_file(config), ledger_file(other))
        if act in (begin, adopt):
            config.witness.unlink()
        with pytest.raises(LedgerInUse, match=r"The witness .* is in use by process"):
            act(other)
        assert ledger_file(other).exists() == (act in (adopt, DatasetService.open))
        config.witness.write_bytes(seen)
        service.ask("ben", count(3, 9), timeout=120)
    use(config)


def test_a_server_whose_witness_was_taken_over_sells_nothing_more(tmp_path, config, monkeypatch):
    """As with a witness on a disk that two hosts share, and where a lock does not hold."""
    other = renamed(config)
    with DatasetService.open(config) as service:
        service.ask("ann", count(0, 4), timeout=120)
        unlocked = iter(tmp_path / f"{at}" for at in range(9))
        monkeypatch.setattr(
            lifecycle, "lock_witness", lambda _, wait: lock_witness(next(unlocked), wait)
        )
        recover(other)
        released = sum(isinstance(event, Released) for event in events(config))
        for _ in range(2):
            with pytest.raises(SharewellError):
                service.ask("ben", count(3, 9), timeout=120)
        assert sum(isinstance(event, Released) for event in events(config)) == released
    use(other, [])
    is_refused(config, WitnessMismatch, "has other events|has only")


@pytest.fixture
def crashed(tmp_path, config):
    """A ledger as kill -9 leaves it: everything since the last checkpoint is in its log."""
    with DatasetService.open(config) as service:
        for analyst, sql in QUESTIONS:
            service.ask(analyst, sql, timeout=120)
        spent = {name: status(service, name).spent for name in service.analyst_names}
        for file in (ledger_file(config), log_file(config)):
            shutil.copy(file, tmp_path / f"{file.name}.crashed")
        seen = config.witness.read_bytes()
    for file in (ledger_file(config), log_file(config)):
        shutil.copy(tmp_path / f"{file.name}.crashed", file)
    config.witness.write_bytes(seen)
    return config, spent


def test_a_crash_alone_is_no_loss(crashed):
    config, spent = crashed
    assert use(config, []) == spent


def flip_a_bit(log: Path) -> None:
    content = bytearray(log.read_bytes())
    content[len(content) // 2] ^= 4
    log.write_bytes(content)


@pytest.mark.parametrize(
    "damage",
    [
        lambda log: log.unlink(),
        lambda log: log.write_bytes(b""),
        lambda log: log.write_bytes(log.read_bytes()[:-5000]),
        lambda log: log.write_bytes(bytes(log.stat().st_size)),
        flip_a_bit,
    ],
    ids=["deleted", "emptied", "cut", "zeroed", "bit flipped"],
)
def test_a_damaged_log_is_refused_and_what_it_held_is_recovered_as_spent(crashed, damage):
    config, spent = crashed
    damage(log_file(config))
    is_refused(config, WitnessMismatch, "has only [0-9]+ events")
    found = recover(config)
    assert found.witnessed > found.present
    with DatasetService.open(config) as service:
        for name, cost in spent.items():
            assert status(service, name).spent >= cost
    assert verify(config.service.ledger).findings == []


# Recovering


def test_a_sparse_vector_from_before_a_loss_gives_no_more_positive_answers(tmp_path):
    config = read_config(write_dataset(tmp_path, mechanism="multiplicative-weights"))
    use(config, [])
    shutil.copy(ledger_file(config), tmp_path / "backup")
    use(config, QUESTIONS)
    shutil.copy(tmp_path / "backup", ledger_file(config))
    recover(config)
    start = len(events(config))
    use(config, [("ann", count(0, at)) for at in range(12)])
    assert not any(isinstance(event, Exceeded) for event in events(config)[start:])
    assert verify(config.service.ledger).findings == []


# Sources


def test_a_changed_source_is_told_once_and_served(config, caplog):
    use(config)
    assert "changed" not in caplog.text
    with config.source.open("a") as file:
        file.write("3,F\n")
    use(config, [])
    assert "The source of people has changed: bytes was" in caplog.text
    caplog.clear()
    use(config, [])
    assert "changed" not in caplog.text
    # What the source says of itself is private: it is in no ledger.
    assert str(config.source.stat().st_size) not in str(events(config))


def two_datasets(folder: Path, add_up: str) -> list[Path]:
    first = write_dataset(folder, service=f'witness = "{folder}/people.json"')
    second = folder / "folk.toml"
    text = (
        first.read_text().replace('name = "people"', 'name = "folk"').replace("people.json", "folk.json")
    )
    second.write_text(text)
    begin(read_config(second))
    for path in (first, second):
        path.write_text(path.read_text().replace("[dataset]", f"[dataset]\n{add_up}"))
    return [first, second]


def test_two_datasets_with_one_source_are_refused_in_one_server(tmp_path):
    with pytest.raises(ConfigError, match="has the same source") as caught:
        DatasetRegistry.open(two_datasets(tmp_path, ""))
    assert "budgets_add_up" in caught.value.hint


def test_two_datasets_with_one_source_are_served_where_both_say_that_budgets_add_up(tmp_path):
    with DatasetRegistry.open(two_datasets(tmp_path, "budgets_add_up = true")) as registry:
        assert tuple(registry.datasets) == ("people", "folk")


# Keys


def test_with_a_key_a_forged_witness_is_refused(tmp_path):
    key = tmp_path / "key"
    key.write_text("0123456789abcdef" * 4)
    config = read_config(write_dataset(tmp_path, service=f'ledger_key = "{key}"'))
    spent = use(config)
    text = config.witness.read_text()
    config.witness.write_text(text.replace(str(spent["ann"]), "1/100"))
    is_refused(config, LedgerCorrupt, "HMAC")


def test_shares_are_witnessed_too(config):
    use(config)
    granted = {e.payer: e.share for e in events(config) if isinstance(e, Granted)}
    assert witnessed(config).record.shares == granted


def test_a_witness_that_was_written_before_departures_were_kept_learns_them(config):
    with DatasetService.open(config) as service:
        service.leave("ben")
    plain = json.loads(config.witness.read_text())
    assert plain.pop("gone") == ["ben"]
    config.witness.write_text(json.dumps(plain))
    use(config, [])
    assert witnessed(config).record.gone == ("ben",)
