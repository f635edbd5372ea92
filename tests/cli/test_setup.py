"""From a file of rows to a configuration that can be served."""

import json

from tests.cli.commands import COUNT, InProcess, refused, said, typed


def test_a_file_becomes_a_configuration_that_checks(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "people.csv").write_text("age,sex\n3,F\n4,M\n5,M\n")
    assert "Wrote sharewell.toml" in said("init", "people.csv")
    assert "--force" in refused("init", "people.csv")
    said("init", "people.csv", "--force")
    assert "sharewell.toml can be served." in said("check")
    assert json.loads(said("check", "--json"))["ok"] is True
    assert "curator   none" in said("token", "--list")
    assert "1 of 1 column" in said("init", "people.csv", "--columns", "sex", "--force")
    assert "Unknown column 'sax'" in refused("init", "people.csv", "--columns", "sax", "--force")


def test_a_configuration_that_cannot_be_served_is_exit_code_1(dataset):
    dataset.with_name("people.csv").write_text("age\n3\n")
    result = typed("check", str(dataset), code=1)
    assert "cannot be served" in result.stdout
    assert json.loads(said("check", str(dataset), "--json", code=1))["ok"] is False


def test_a_file_that_cannot_be_read_is_exit_code_2(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for words in (
        ("check",),
        ("plan",),
        ("serve", "--port", "0"),
        ("token", "ann"),
        ("pause", "--config", "x.toml"),
    ):
        assert "no such file" in refused(*words)


def test_what_a_server_refuses_is_a_sentence(dataset):
    assert "--behind-proxy" in refused("serve", str(dataset), "--host", "0.0.0.0")
    assert "--tls-key" in refused("serve", str(dataset), "--tls-cert", "cert.pem")


def test_a_ledger_that_is_not_as_it_was_noted_is_exit_code_1(dataset):
    said("ask", COUNT, *InProcess(dataset).of("ann"))
    ledger = str(dataset.with_name("people.ledger.sqlite"))
    head = json.loads(said("ledger", "--file", ledger, "--json"))["head"]
    assert "The ledger is intact." in said("verify", ledger, "--no-certificate", "--head", head)
    other = f"{head[:-1]}{'0' if head[-1] != '0' else '1'}"
    assert "1 wrong" in said("verify", ledger, "--no-certificate", "--head", other, code=1)
    assert "Cannot read" in refused("verify", str(dataset))
