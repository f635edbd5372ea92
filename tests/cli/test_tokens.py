"""Tokens: printed once and alone, for those whom the file or the ledger knows."""

import json
import re

import pytest

from sharewell.service.access import Access, Holder
from tests.cli.commands import InProcess, OverServer, refused, said, typed


@pytest.fixture
def token(dataset):
    """`sharewell token` for the dataset, with these words."""
    return lambda *words: ("token", *words, "--config", str(dataset))


def test_a_token_stands_alone_on_stdout_and_opens_a_running_server(server: OverServer, token):
    told = typed(*token("ann"))
    assert re.fullmatch(r"sw_[\w-]{12}_[\w-]{43}\n", told.stdout)
    assert "A new token for the analyst ann." in told.stderr
    link = ["--url", server.running.url, "--token", told.stdout.strip()]
    assert said("budget", *link).startswith("ann ")
    said(*token("ann"))
    assert "opens nothing" in refused("budget", *link)


def test_a_curator_gets_a_curators_token(dataset, token):
    told = json.loads(said(*token("curator", "--json")))
    assert (told["name"], told["role"]) == ("curator", "curator")
    assert Access(dataset.with_name("people.access.json")).holder(told["token"]) == Holder(
        "curator", "curator"
    )
    assert "'ann' is no curator of people. These are: curator." in refused(*token("ann", "--curator"))


def test_strangers_get_none(dataset, token):
    assert "Did you mean ann?" in refused(*token("anne"))
    assert "There are ann, ben, curator." in refused(*token("zoe"))
    assert not dataset.with_name("people.access.json").exists()


def test_those_who_joined_later_are_known_by_the_ledger(dataset, token):
    curator = InProcess(dataset).of("curator")
    said("analysts", "add", "cleo", "1/10", *curator)
    said(*token("cleo", "--revoke"))
    assert said(*token("cleo")).startswith("sw_")
    said("analysts", "remove", "cleo", *curator)
    assert "'cleo' is neither an analyst nor a curator" in refused(*token("cleo"))


def test_the_list_says_who_holds_one(dataset, token):
    said(*token("ann"))
    shown = said(*token("--list"))
    assert re.search(r"ann +analyst +has one", shown)
    assert re.search(r"ben +analyst +none yet", shown)
    assert re.search(r"curator +curator +none yet", shown)
    Access(dataset.with_name("people.access.json")).issue("dora", "curator")
    assert re.search(r"dora +curator +does not open", said(*token("--list")))
    plain = json.loads(said(*token("--list", "--json")))
    assert {"name": "dora", "role": "curator", "token": True, "in_file": False} in plain["holders"]


def test_a_token_ends_when_it_is_revoked(dataset, token):
    issued = said(*token("ann")).strip()
    assert said(*token("ann", "--revoke")) == "The token of ann has ended.\n"
    assert Access(dataset.with_name("people.access.json")).holder(issued) is None
    assert "holds no token" in refused(*token("ann", "--revoke"))


def test_one_says_whose_token_or_lists_them(token):
    for words in (token(), token("ann", "--list")):
        assert refused(*words).startswith("Say whose token, or --list.")
