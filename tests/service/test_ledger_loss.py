"""A lost ledger never starts its budget anew: the same in SQLite files and in PostgreSQL databases."""

import shutil
from fractions import Fraction

import pytest

from sharewell import wire
from sharewell.config import Config, read_config
from sharewell.errors import (
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
    Left,
    Recovered,
    Released,
)
from sharewell.service import lifecycle
from sharewell.service.dataset import DatasetService
from sharewell.service.ledger.witness import Witness, lock_witness
from sharewell.service.lifecycle import adopt, begin, plan_recovery, recover
from tests.service.datasets import write_dataset
from tests.service.losing import (
    QUESTIONS,
    DatabasePlace,
    FilePlace,
    LedgerPlace,
    events,
    is_refused,
    store,
    use,
    verified,
    witnessed,
)
from tests.service.services import count, status


@pytest.fixture(params=["sqlite", "postgres"])
def place(request, tmp_path) -> LedgerPlace:
    if request.param == "sqlite":
        return FilePlace(tmp_path)
    return DatabasePlace(tmp_path, request.getfixturevalue("postgres"))


@pytest.fixture
def database(tmp_path, postgres) -> DatabasePlace:
    return DatabasePlace(tmp_path, postgres)


@pytest.fixture
def config(place) -> Config:
    return place.config


def test_a_dataset_that_was_never_begun_is_not_served(place, config):
    place.delete()
    config.witness.unlink()
    with pytest.raises(NotBegun, match="never begun") as caught:
        DatasetService.open(config)
    assert "sharewell begin" in caught.value.hint
    begin(config)
    assert use(config)["ann"] > 0


def test_a_begin_that_crashed_before_the_witness_is_finished_by_the_next(config):
    config.witness.unlink()
    id_ = events(config)[0]
    begin(config)
    assert events(config)[0] == id_
    use(config)


def test_a_deleted_ledger_is_refused(place, config):
    use(config)
    place.delete()
    is_refused(config, WitnessMismatch, "is missing; the witness .* saw")


def test_another_name_is_refused(config):
    use(config)
    config.path.write_text(config.text.replace('name = "people"', 'name = "folk"'))
    is_refused(read_config(config.path), WitnessMismatch, "is missing")


def test_an_older_copy_is_refused(place, config):
    use(config, QUESTIONS[:2])
    backup = place.backup()
    use(config, QUESTIONS[2:])
    place.restore(backup)
    is_refused(config, WitnessMismatch, "has only [0-9]+ events")


def test_a_ledger_that_went_another_way_is_refused(place, tmp_path, config):
    use(config, QUESTIONS[:2])
    backup = place.backup()
    shutil.copy(config.witness, tmp_path / "witness")
    use(config, QUESTIONS[2:3])
    seen = config.witness.read_bytes()
    place.restore(backup)
    shutil.copy(tmp_path / "witness", config.witness)
    use(config, QUESTIONS[2:])
    config.witness.write_bytes(seen)
    is_refused(config, WitnessMismatch, "has other events")


def test_the_ledger_of_another_dataset_is_refused(place, tmp_path, config):
    use(config)
    other = type(place)(
        tmp_path / "other", *([place.server] if isinstance(place, DatabasePlace) else [])
    )
    use(other.config)
    place.restore(other.backup())
    is_refused(config, WitnessMismatch, r"belongs to another dataset.* Check service\.ledger")
    with pytest.raises(WitnessMismatch, match="different datasets"):
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


def test_a_crash_between_the_commit_and_the_witness_is_no_loss(config):
    use(config, QUESTIONS[:2])
    behind = config.witness.read_bytes()
    spent = use(config, QUESTIONS[2:])
    config.witness.write_bytes(behind)
    assert use(config, []) == spent
    assert witnessed(config).record.head.count == len(events(config))


def test_a_lost_ledger_is_recovered_with_everything_spent(place, config):
    spent = use(config)
    dataset = witnessed(config).record.dataset
    place.delete()
    planned = plan_recovery(config)
    is_refused(config, WitnessMismatch, "is missing")
    assert recover(config) == planned
    assert planned.bill == spent
    assert events(config)[0] == Begun(dataset)
    assert events(config)[-1] == CuratorAction("", "recover")
    with DatasetService.open(config) as service:
        for name in spent:
            now = status(service, name)
            # The seed is bought again, from what is left.
            assert spent[name] <= now.spent <= now.share
        assert service.ask("ann", count(1, 2), pay=False, timeout=120).answers
        with pytest.raises(SharewellError, match="certificate"):
            service.certificate()
    found = verified(config)
    assert found.ok
    assert [note.code for note in found.notes if "recovered" in note.code] == ["accounts.recovered"]


def test_a_recovery_books_the_difference_and_grants_lost_shares(place, config):
    before = use(config, QUESTIONS[:2])
    backup = place.backup()
    with DatasetService.open(config) as service:
        service.join(wire.Newcomer(name="dora", share="1/8"))
        service.ask("dora", count(2, 7), timeout=120)
        service.ask("ann", count(5, 6), timeout=120)
        after = {name: status(service, name).spent for name in service.analyst_names}
    place.restore(backup)
    found = recover(config)
    assert found.bill == {name: after[name] - before.get(name, 0) for name in ("ann", "dora")}
    assert found.grants == {"dora": Fraction(10, 8)}
    with DatasetService.open(config) as service:
        now = {name: status(service, name).spent for name in service.analyst_names}
    # What dora donated to the seed is lost: she donates again, from what is left.
    assert now == after | {"dora": Fraction(10, 8)}
    assert verified(config).findings == []


def test_after_a_fork_everything_witnessed_is_booked_on_top(place, tmp_path, config):
    use(config, QUESTIONS[:2])
    backup = place.backup()
    shutil.copy(config.witness, tmp_path / "witness")
    use(config, QUESTIONS[2:3])
    seen = witnessed(config).record
    place.restore(backup)
    shutil.copy(tmp_path / "witness", config.witness)
    present = use(config, QUESTIONS[2:])
    Witness(config.witness, seen).write(seen)
    found = recover(config)
    assert found.diverged
    for name, share in seen.shares.items():
        assert found.bill.get(name, 0) == min(seen.spent[name], share - present[name])
    use(config, [])


def test_what_was_charged_before_a_loss_is_never_released_after_it(place, config):
    """The lost events may have released it already: a second release would not be paid for."""
    use(config, QUESTIONS[:1])
    use(config, QUESTIONS[1:2])
    stored = events(config)
    last = max(at for at, event in enumerate(stored) if isinstance(event, Charged))
    seen = witnessed(config).record
    cut = stored[: last + 1]
    place.delete()
    store(config, cut)
    assert recover(config).bill == {}
    assert seen.spent == witnessed(config).record.spent
    use(config, [])
    released = [event.charge for event in events(config) if isinstance(event, Released)]
    assert last not in released
    assert verified(config).findings == []


def test_an_interrupted_recovery_books_nothing_twice(place, config):
    spent = use(config)
    seen = config.witness.read_bytes()
    place.delete()
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


def test_a_ledger_of_before_is_adopted(place, config):
    """It has no id, so that it gets one."""
    use(config)
    stored = [e for e in events(config) if not isinstance(e, Begun | CuratorAction)]
    place.delete()
    config.witness.unlink()
    store(config, stored[: [type(e) for e in stored].index(Charged)])
    with pytest.raises(LedgerError, match="exists, and has no witness"):
        begin(config)
    adopt(config)
    assert isinstance(events(config)[-2], Begun)
    use(config)
    assert verified(config).findings == []
    with pytest.raises(LedgerError, match="already"):
        adopt(config)


def test_a_removed_analyst_stays_removed(place, config):
    with DatasetService.open(config) as service:
        service.ask("ben", count(3, 9), timeout=120)
        service.leave("ben")
    backup = place.backup()
    with DatasetService.open(config) as service:
        service.leave("cleo", donate=True)
    for lose, departures in ((lambda: place.restore(backup), ["cleo"]), (place.delete, ["ben", "cleo"])):
        lose()
        found = recover(config)
        assert [event.payer for event in found.events if isinstance(event, Left)] == departures
        with DatasetService.open(config) as service:
            assert service.analyst_names == ("ann",)
            with pytest.raises(SharewellError, match="ben"):
                service.ask("ben", count(1, 2), timeout=120)
            service.ask("ann", count(0, 4), timeout=120)
        assert verified(config).findings == []


# In PostgreSQL only


@pytest.mark.parametrize(
    ("damage", "error", "words"),
    [
        ("DELETE FROM sharewell.heads", LedgerCorrupt, "has events and no head"),
        ("DROP TABLE sharewell.events", LedgerCorrupt, "is damaged: relation .* does not exist"),
        ("DROP TABLE sharewell.heads", LedgerCorrupt, "is damaged: relation .* does not exist"),
        ("DROP TABLE sharewell.questions", LedgerCorrupt, "is damaged: relation .* does not exist"),
        ("DROP TABLE sharewell.endings", LedgerCorrupt, "is damaged: relation .* does not exist"),
        ("DROP TABLE sharewell.schema_version", WitnessMismatch, "is missing"),
    ],
)
def test_a_partly_deleted_ledger_is_refused_and_changed_by_nothing(database, damage, error, words):
    config = database.config
    spent = use(config)
    backup = database.backup()
    database.execute(damage)
    lost = database.contents()
    is_refused(config, error, words)
    for act in (recover, begin, adopt):
        with pytest.raises(LedgerError):
            act(config)
    assert database.contents() == lost
    database.restore(backup)
    assert use(config, []) == spent


def standby(database: DatabasePlace, folder, *, shared: bool = True) -> Config:
    """The same dataset on another host, with its own copy of the source."""
    folder.mkdir()
    shutil.copy(database.config.source, folder)
    text = database.config.text
    if not shared:
        text = "\n".join(line for line in text.splitlines() if not line.startswith("witness"))
    path = folder / "people.toml"
    path.write_text(text)
    return read_config(path)


def test_a_standby_continues_with_the_shared_witness(database, tmp_path):
    config, other = database.config, standby(database, tmp_path / "standby")
    with DatasetService.open(config) as service:
        service.ask("ann", count(0, 4), timeout=120)
        spent = status(service, "ann").spent
        with pytest.raises(LedgerInUse):
            DatasetService.open(other)
    assert use(other, [])["ann"] == spent
    use(other, QUESTIONS)
    assert witnessed(config).record.head.count == len(events(config))
    use(config, [])


def test_a_standby_without_the_witness_is_refused(database, tmp_path):
    other = standby(database, tmp_path / "standby", shared=False)
    use(database.config)
    with pytest.raises(WitnessMismatch, match="has no witness"):
        DatasetService.open(other)
    with pytest.raises(LedgerError, match="exists, and has no witness"):
        begin(other)


def test_a_standby_that_takes_over_stops_the_first_server(database, tmp_path, monkeypatch):
    """As between hosts that do not see each other's locks, when the server ended the first's session."""
    config, other = database.config, standby(database, tmp_path / "standby")
    with DatasetService.open(config) as service:
        service.ask("ann", count(0, 4), timeout=120)
        database.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE application_name LIKE 'sharewell%' AND datname = current_database()"
        )
        with monkeypatch.context() as unlocked:
            free = lambda _, wait: lock_witness(tmp_path / "free", wait)  # noqa: E731
            unlocked.setattr(lifecycle, "lock_witness", free)
            spent = use(other)
        before = events(config)
        for _ in range(2):
            with pytest.raises(SharewellError):
                service.ask("ben", count(11, 13), timeout=120)
        assert events(config) == before
    assert use(config, []) == spent


def test_two_datasets_of_one_name_do_not_share_a_ledger(database, tmp_path):
    use(database.config)
    settings = f'ledger = "{database.url}"\nwitness = "{tmp_path}/shared/other.json"'
    with pytest.raises(LedgerError, match="exists, and has no witness"):
        write_dataset(tmp_path / "other", service=settings)
    use(database.config, [])
