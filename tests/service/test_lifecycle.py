"""A budget starts once: whatever becomes of its ledger, it is never spent again without a word."""

import shutil
from fractions import Fraction
from pathlib import Path

import pytest

from sharewell.config import Config, read_config
from sharewell.errors import (
    ConfigError,
    LedgerCorrupt,
    LedgerError,
    LedgerInUse,
    NotBegun,
    SharewellError,
    WitnessMismatch,
)
from sharewell.privacy.ledger import (
    Begun,
    Charged,
    CuratorAction,
    Exceeded,
    Granted,
    Recovered,
    Released,
)
from sharewell.service import lifecycle
from sharewell.service.dataset import DatasetService
from sharewell.service.ledger import open_ledger
from sharewell.service.ledger.witness import Witness, lock_witness
from sharewell.service.lifecycle import adopt, begin, plan_recovery, recover
from sharewell.service.registry import DatasetRegistry
from sharewell.service.verify import verify
from tests.service.datasets import write_dataset
from tests.service.services import count, status

QUESTIONS = [("ann", count(0, 4)), ("ben", count(3, 9)), ("ann", count(5, 6)), ("cleo", count(8, 12))]


@pytest.fixture
def config(tmp_path) -> Config:
    return read_config(write_dataset(tmp_path))


def ledger_file(config: Config) -> Path:
    return Path(config.service.ledger)


def log_file(config: Config) -> Path:
    return Path(f"{config.service.ledger}-wal")


def use(config: Config, questions=QUESTIONS) -> dict[str, Fraction]:
    """Ask questions, and return what each analyst has spent."""
    with DatasetService.open(config) as service:
        for analyst, sql in questions:
            service.ask(analyst, sql, timeout=30)
        return {name: status(service, name).spent for name in service.analyst_names}


def witnessed(config: Config) -> Witness:
    found = Witness.read(config.witness)
    assert found is not None
    return found


def events(config: Config) -> list:
    with open_ledger(config.service.ledger, name=config.name, read_only=True) as ledger:
        return list(ledger.events())


def is_refused(config: Config, error: type[SharewellError], words: str) -> None:
    """Opening must fail, and must leave the ledger and the witness as they are."""
    before = config.witness.read_bytes()
    for _ in range(2):
        with pytest.raises(error, match=words):
            DatasetService.open(config)
    assert config.witness.read_bytes() == before


# Beginning


def test_a_dataset_that_was_never_begun_is_not_served(tmp_path, config):
    ledger_file(config).unlink()
    config.witness.unlink()
    with pytest.raises(NotBegun, match="never begun") as caught:
        DatasetService.open(config)
    assert "sharewell begin" in caught.value.hint
    assert not ledger_file(config).exists()
    begin(config)
    assert use(config)["ann"] > 0


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


def test_a_begin_that_crashed_before_the_witness_is_finished_by_the_next(config):
    config.witness.unlink()
    id_ = events(config)[0]
    begin(config)
    assert events(config)[0] == id_
    use(config)


def test_a_temporary_ledger_is_for_sources_that_were_never_begun(config, caplog):
    with pytest.raises(LedgerError, match="was begun before"):
        DatasetService.open(config, temporary=True)
    config.witness.unlink()
    Path(config.service.ledger).unlink()
    with DatasetService.open(config, temporary=True) as service:
        service.ask("ann", count(0, 4), timeout=30)
    assert "temporary ledger" in caplog.text
    assert not config.witness.exists()
    assert not Path(config.service.ledger).exists()


# What becomes of a ledger


def test_an_empty_file_is_refused(config):
    use(config)
    ledger_file(config).write_bytes(b"")
    is_refused(config, LedgerCorrupt, "is empty")


def test_a_deleted_ledger_is_refused(config):
    use(config)
    ledger_file(config).unlink()
    is_refused(config, WitnessMismatch, "is missing; the witness .* saw")


def test_another_name_is_refused(config):
    use(config)
    config.path.write_text(config.text.replace('name = "people"', 'name = "folk"'))
    is_refused(read_config(config.path), WitnessMismatch, "folk.ledger.sqlite is missing")


def test_an_older_copy_is_refused(tmp_path, config):
    use(config, QUESTIONS[:2])
    shutil.copy(ledger_file(config), tmp_path / "backup")
    use(config, QUESTIONS[2:])
    shutil.copy(tmp_path / "backup", ledger_file(config))
    is_refused(config, WitnessMismatch, "has only [0-9]+ events")


def test_a_ledger_that_went_another_way_is_refused(tmp_path, config):
    use(config, QUESTIONS[:2])
    shutil.copy(ledger_file(config), tmp_path / "backup")
    shutil.copy(config.witness, tmp_path / "witness")
    use(config, QUESTIONS[2:3])
    seen = config.witness.read_bytes()
    shutil.copy(tmp_path / "backup", ledger_file(config))
    shutil.copy(tmp_path / "witness", config.witness)
    use(config, QUESTIONS[2:])
    config.witness.write_bytes(seen)
    is_refused(config, WitnessMismatch, "has other events")


def test_the_ledger_of_another_dataset_is_refused(tmp_path, config):
    use(config)
    other = read_config(write_dataset(tmp_path / "other"))
    use(other)
    shutil.copy(ledger_file(other), ledger_file(config))
    is_refused(config, WitnessMismatch, r"is that of another dataset.* Check service\.ledger")
    with pytest.raises(WitnessMismatch, match="another dataset"):
        recover(config)


def test_a_lost_witness_is_told_and_the_ledger_can_be_adopted(config):
    spent = use(config)
    config.witness.unlink()
    with pytest.raises(WitnessMismatch, match="has no witness") as caught:
        DatasetService.open(config)
    assert "sharewell adopt" in caught.value.hint
    adopt(config)
    assert events(config)[-1] == CuratorAction("", "adopt")
    assert sum(isinstance(event, Begun) for event in events(config)) == 1
    assert use(config, []) == spent


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
        service.ask("ann", count(0, 4), timeout=30)
        seen = config.witness.read_bytes()
        if act in (adopt, DatasetService.open):
            shutil.copy(ledger_file(config), ledger_file(other))
        if act in (begin, adopt):
            config.witness.unlink()
        with pytest.raises(LedgerInUse, match=r"The witness .* is in use by process"):
            act(other)
        assert ledger_file(other).exists() == (act in (adopt, DatasetService.open))
        config.witness.write_bytes(seen)
        service.ask("ben", count(3, 9), timeout=30)
    use(config)


def test_a_server_whose_witness_was_taken_over_sells_nothing_more(tmp_path, config, monkeypatch):
    """As with a witness on a disk that two hosts share, and where a lock does not hold."""
    other = renamed(config)
    with DatasetService.open(config) as service:
        service.ask("ann", count(0, 4), timeout=30)
        unlocked = iter(tmp_path / f"{at}" for at in range(9))
        monkeypatch.setattr(
            lifecycle, "lock_witness", lambda _, wait: lock_witness(next(unlocked), wait)
        )
        recover(other)
        released = sum(isinstance(event, Released) for event in events(config))
        for _ in range(2):
            with pytest.raises(SharewellError):
                service.ask("ben", count(3, 9), timeout=30)
        assert sum(isinstance(event, Released) for event in events(config)) == released
    use(other, [])
    is_refused(config, WitnessMismatch, "has other events|has only")


@pytest.fixture
def crashed(tmp_path, config):
    """A ledger as kill -9 leaves it: everything since the last checkpoint is in its log."""
    with DatasetService.open(config) as service:
        for analyst, sql in QUESTIONS:
            service.ask(analyst, sql, timeout=30)
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


def test_a_crash_between_the_commit_and_the_witness_is_no_loss(config):
    use(config, QUESTIONS[:2])
    behind = config.witness.read_bytes()
    spent = use(config, QUESTIONS[2:])
    config.witness.write_bytes(behind)
    assert use(config, []) == spent
    assert witnessed(config).head.count == len(events(config))


# Recovering


def test_a_lost_ledger_is_recovered_with_everything_spent(config):
    spent = use(config)
    dataset = witnessed(config).record.dataset
    ledger_file(config).unlink()
    planned = plan_recovery(config)
    assert not ledger_file(config).exists()
    assert recover(config) == planned
    assert planned.bill == spent
    assert events(config)[0] == Begun(dataset)
    assert events(config)[-1] == CuratorAction("", "recover")
    with DatasetService.open(config) as service:
        for name in spent:
            now = status(service, name)
            # The seed is bought again, from what is left.
            assert spent[name] <= now.spent <= now.share
        assert service.ask("ann", count(1, 2), pay=False, timeout=30).answers
        with pytest.raises(SharewellError, match="certificate"):
            service.certificate()
    found = verify(config.service.ledger)
    assert found.ok
    assert [note.code for note in found.notes if "recovered" in note.code] == ["accounts.recovered"]


def test_a_recovery_books_the_difference_and_grants_lost_shares(tmp_path, config):
    before = use(config, QUESTIONS[:2])
    shutil.copy(ledger_file(config), tmp_path / "backup")
    with DatasetService.open(config) as service:
        service.join(newcomer("dora", "1/8"))
        service.ask("dora", count(2, 7), timeout=30)
        service.ask("ann", count(5, 6), timeout=30)
        after = {name: status(service, name).spent for name in service.analyst_names}
    shutil.copy(tmp_path / "backup", ledger_file(config))
    found = recover(config)
    assert found.bill == {name: after[name] - before.get(name, 0) for name in ("ann", "dora")}
    assert found.grants == {"dora": Fraction(10, 8)}
    with DatasetService.open(config) as service:
        now = {name: status(service, name).spent for name in service.analyst_names}
    # What dora donated to the seed is lost: she donates again, from what is left.
    assert now == after | {"dora": Fraction(10, 8)}
    assert verify(config.service.ledger).findings == []


def newcomer(name, share):
    from sharewell import wire

    return wire.Newcomer(name=name, share=share)


def test_after_a_fork_everything_witnessed_is_booked_on_top(tmp_path, config):
    use(config, QUESTIONS[:2])
    shutil.copy(ledger_file(config), tmp_path / "backup")
    shutil.copy(config.witness, tmp_path / "witness")
    use(config, QUESTIONS[2:3])
    seen = witnessed(config).record
    shutil.copy(tmp_path / "backup", ledger_file(config))
    shutil.copy(tmp_path / "witness", config.witness)
    present = use(config, QUESTIONS[2:])
    Witness(config.witness, seen).write(seen)
    found = recover(config)
    assert found.diverged
    for name, share in seen.shares.items():
        assert found.bill.get(name, 0) == min(seen.spent[name], share - present[name])
    use(config, [])


def test_what_was_charged_before_a_loss_is_never_released_after_it(config, monkeypatch):
    """The lost events may have released it already: a second release would not be paid for."""
    use(config, QUESTIONS[:1])
    use(config, QUESTIONS[1:2])
    stored = events(config)
    last = max(at for at, event in enumerate(stored) if isinstance(event, Charged))
    seen = witnessed(config).record
    cut = stored[: last + 1]
    ledger_file(config).unlink()
    with open_ledger(config.service.ledger, create=True) as ledger:
        ledger.append_many(cut)
    assert recover(config).bill == {}
    assert seen.spent == witnessed(config).record.spent
    use(config, [])
    released = [event.charge for event in events(config) if isinstance(event, Released)]
    assert last not in released
    assert verify(config.service.ledger).findings == []


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


def test_an_interrupted_recovery_books_nothing_twice(config):
    spent = use(config)
    seen = config.witness.read_bytes()
    ledger_file(config).unlink()
    recover(config)
    config.witness.write_bytes(seen)
    assert recover(config).bill == {}
    booked = [event.bill for event in events(config) if isinstance(event, Recovered)]
    assert booked == [spent, {}]


def test_a_whole_ledger_is_not_recovered(config):
    use(config)
    with pytest.raises(LedgerError, match="nothing to recover"):
        recover(config)
    config.witness.unlink()
    with pytest.raises(LedgerError, match="no witness"):
        recover(config)


def test_a_ledger_of_before_is_adopted(config):
    """It has no id, so that it gets one."""
    use(config)
    stored = [e for e in events(config) if not isinstance(e, Begun | CuratorAction)]
    ledger_file(config).unlink()
    config.witness.unlink()
    with open_ledger(config.service.ledger, create=True) as ledger:
        ledger.append_many(stored[: [type(e) for e in stored].index(Charged)])
    with pytest.raises(LedgerError, match="exists, and has no witness"):
        begin(config)
    adopt(config)
    assert isinstance(events(config)[-2], Begun)
    use(config)
    assert verify(config.service.ledger).findings == []
    with pytest.raises(LedgerError, match="already"):
        adopt(config)


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
    assert str(config.source.stat().st_size) not in str([e for e in events(config) if e])


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
        assert registry.names == ("people", "folk")


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
