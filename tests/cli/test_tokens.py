"""Tokens: issued once, to names that the configuration or the ledger knows."""

import json
import os
import re
import stat

import pytest

from sharewell.config import read_config
from sharewell.service.tokens import Principal, TokenStore
from tests.cli.commands import InProcess, OverServer, refused, said, typed


@pytest.fixture
def token(dataset):
    """`sharewell token` for the dataset, with these words."""
    return lambda *words: ("token", *words, "--config", str(dataset))


def test_a_token_stands_alone_on_stdout_and_opens_a_running_server(server: OverServer, token):
    result = typed(*token("ann"))
    assert re.fullmatch(r"sw_[\w-]{12}_[\w-]{43}\n", result.stdout)
    assert "New token for analyst ann," in result.stderr
    options = ["--url", server.running.url, "--token", result.stdout.strip()]
    assert said("budget", *options).startswith("ann ")
    said(*token("ann"))
    assert "Unknown token" in refused("budget", *options)


def test_a_curator_gets_a_curators_token(dataset, token):
    result = json.loads(said(*token("curator", "--json")))
    assert (result["name"], result["role"]) == ("curator", "curator")
    assert TokenStore(dataset.with_name("people.access.json")).authenticate(
        result["token"]
    ) == Principal("curator", "curator")
    assert "'ann' is not a curator of people. The curators are curator;" in refused(
        *token("ann", "--curator")
    )


def test_unknown_names_get_no_token(dataset, token):
    assert "Did you mean 'ann'?" in refused(*token("anne"))
    assert "Known names: ann, ben, curator." in refused(*token("zoe"))
    assert not dataset.with_name("people.access.json").exists()


def test_analysts_who_joined_later_are_found_in_the_ledger(dataset, token):
    curator = InProcess(dataset).of("curator")
    said("analysts", "add", "cleo", "1/10", *curator)
    said(*token("cleo", "--revoke"))
    assert said(*token("cleo")).startswith("sw_")
    assert "Known names: ann, ben, cleo, curator." in refused(*token("zoe"))
    said("analysts", "remove", "cleo", "--yes", *curator)
    assert "'cleo' is neither an analyst nor a curator" in refused(*token("cleo"))


def test_the_list_shows_who_has_a_token(dataset, token):
    said(*token("ann"))
    shown = said(*token("--list"))
    assert re.search(r"ann +analyst +issued", shown)
    assert re.search(r"ben +analyst +none", shown)
    assert re.search(r"curator +curator +none", shown)
    TokenStore(dataset.with_name("people.access.json")).issue("dora", "curator")
    assert re.search(r"dora +curator +invalid", said(*token("--list")))
    plain = json.loads(said(*token("--list", "--json")))
    assert {"name": "dora", "role": "curator", "token": True, "in_file": False} in plain["holders"]


def test_a_token_ends_when_it_is_revoked(dataset, token):
    issued = said(*token("ann")).strip()
    assert said(*token("ann", "--revoke")) == "Revoked the token of ann.\n"
    assert TokenStore(dataset.with_name("people.access.json")).authenticate(issued) is None
    assert "has no token" in refused(*token("ann", "--revoke"))


def test_a_name_and_the_list_exclude_each_other(token):
    assert refused(*token()).startswith("NAME is missing.")
    assert refused(*token("ann", "--list")) == "NAME and --list are mutually exclusive.\n"


def test_a_token_is_written_to_a_new_private_file(dataset, tmp_path):
    file = tmp_path / "ann.token"
    before = os.umask(0)
    try:
        shown = said("token", "ann", "--config", str(dataset), "--out", str(file))
    finally:
        os.umask(before)
    assert "Wrote a token for analyst ann" in shown
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    token = file.read_text()
    assert token not in shown
    again = refused("token", "ann", "--config", str(dataset), "--out", str(file))
    assert "file exists" in again
    # The token that was there still opens the dataset.
    store = TokenStore(read_config(dataset).service.access)
    assert store.authenticate(token.strip()) == Principal("ann", "analyst")
    assert "--out is for a new token" in refused(
        "token", "ann", "--revoke", "--config", str(dataset), "--out", str(tmp_path / "other")
    )
