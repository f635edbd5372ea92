"""Begin, adopt and recover on the command line: what they say, and that they ask."""

import os

import pytest

from sharewell.cli import lifecycle, options
from sharewell.config import read_config
from tests.cli.commands import COUNT, InProcess, refused, said, typed, write_dataset


@pytest.fixture
def unbegun(dataset):
    """A dataset that was never begun."""
    read_config(dataset).witness.unlink()
    dataset.with_name("people.ledger.sqlite").unlink()
    return dataset


def test_begin_says_what_it_does_and_needs_a_confirmation(unbegun):
    result = typed("begin", str(unbegun), code=2)
    assert "people: epsilon = 10" in result.stdout
    assert str(unbegun.with_name("people.csv")) in result.stdout
    assert "Confirmation required" in result.stderr
    assert not unbegun.with_name("people.ledger.sqlite").exists()
    assert "Begun." in said("begin", str(unbegun), "--yes")
    said("ask", COUNT, *InProcess(unbegun).of("ann"))
    assert "was begun before" in typed("begin", str(unbegun), "--yes", code=2).stderr


def test_begin_checks_the_file_first(unbegun):
    unbegun.write_text(unbegun.read_text().replace("people.csv", "none.csv"))
    assert "does not exist" in refused("begin", str(unbegun), "--yes")


def test_what_was_never_begun_is_not_asked(unbegun):
    shown = refused("ask", COUNT, *InProcess(unbegun).of("ann"))
    assert "people was never begun" in shown
    assert "sharewell begin" in shown


@pytest.mark.parametrize(("answer", "is_begun"), [("y", True), ("n", False)])
def test_serve_offers_to_begin_at_a_terminal(unbegun, monkeypatch, answer, is_begun):
    monkeypatch.setattr(options, "is_interactive", lambda: True)
    monkeypatch.setattr(lifecycle, "is_interactive", lambda: True)
    monkeypatch.setattr("sharewell.service.http.server.serve", lambda *_, **__: None)
    shown = typed("serve", str(unbegun), stdin=f"{answer}\n", code=0 if is_begun else 1)
    assert "Begin it?" in shown.stderr
    assert ("Nothing was changed." in shown.stderr) != is_begun
    assert read_config(unbegun).witness.exists() == is_begun


def test_a_lost_ledger_is_recovered_and_a_lost_witness_made_anew(dataset):
    said("ask", COUNT, *InProcess(dataset).of("ann"))
    dataset.with_name("people.ledger.sqlite").unlink()
    assert "is missing; the witness" in refused("ask", COUNT, *InProcess(dataset).of("ann"))
    assert "is missing; the witness" in " ".join(said("check", str(dataset), code=1).split())
    planned = typed("recover", str(dataset), code=2)
    assert "Booked as spent, in epsilon: ann 11/8, ben 5/4." in planned.stdout
    assert "A lost seed is measured again" in planned.stdout
    assert "Recovered." in said("recover", str(dataset), "--yes")
    shown = said("ledger", "--config", str(dataset))
    assert "for lost events up to 12" in shown
    read_config(dataset).witness.unlink()
    assert "sharewell adopt" in refused("ask", COUNT, *InProcess(dataset).of("ann"))
    assert "Adopted." in said("adopt", str(dataset), "--yes")
    said("ask", COUNT, "--free", *InProcess(dataset).of("ann"))


def test_check_warns_of_files_that_others_may_read(dataset):
    assert "Other users may read" not in said("check", str(dataset))
    os.chmod(dataset.with_name("people.ledger.sqlite"), 0o644)
    shown = " ".join(said("check", str(dataset)).split())
    assert "Other users may read" in shown
    assert "chmod 600" in shown


def test_verify_compares_a_ledger_with_its_witness(tmp_path):
    path = write_dataset(tmp_path)
    config = read_config(path)
    old = config.witness.read_bytes()
    said("ask", COUNT, *InProcess(path).of("ann"))
    ledger, witness = config.service.ledger, str(config.witness)
    said("verify", ledger, "--witness", witness, "--no-certificate")
    config.witness.write_bytes(old.replace(b'"head": "2:', b'"head": "1:'))
    assert "expected hash" in said("verify", ledger, "--witness", witness, code=1)
    assert "There is no witness" in refused("verify", ledger, "--witness", str(tmp_path / "none"))
    assert "--key requires --witness" in refused("verify", ledger, "--key", "key")
    assert "mutually exclusive" in refused("verify", ledger, "--head", "1:00", "--witness", witness)
