"""Tokens: who may hold one, as the dataset's file and its ledger say."""

from __future__ import annotations

import json
from difflib import get_close_matches
from pathlib import Path

import typer

from sharewell import wire
from sharewell.cli.shown import show, table, tell_token
from sharewell.config import Config, read_config
from sharewell.errors import RequestError
from sharewell.privacy.ledger import Granted, Left
from sharewell.service.access import Access, Holder, Role
from sharewell.service.ledger import open_ledger


def access_of(path: str) -> Access:
    """The tokens of a dataset, by its file; a server that runs sees what is changed here."""
    return Access(read_config(path).service.access)


def issue_token(path: str, name: str, curator: bool, as_json: bool) -> None:
    """Make a new token for somebody of a dataset, and print it."""
    config = read_config(path)
    role = _role(config, name, curator)
    token = Access(config.service.access).issue(name, role)
    tell_token(wire.Token(name=name, role=role, token=token), as_json)


def revoke_token(path: str, name: str, curator: bool, as_json: bool) -> None:
    """End somebody's token, also where the file names them no longer."""
    access = access_of(path)
    found = [each for each in access.holders if each.name == name]
    found = [each for each in found if each.role == "curator"] if curator else found
    if not found:
        raise RequestError(
            f"{name!r} holds no token.", hint="`sharewell token --list` shows who holds one."
        )
    for holder in found:
        access.revoke(holder.name, holder.role)
    if as_json:
        typer.echo("{}")
    else:
        typer.echo(f"The token of {name} has ended.")


def list_tokens(path: str, as_json: bool) -> None:
    """Show everybody who may hold a token, and who does."""
    config = read_config(path)
    holders = Access(config.service.access).holders
    named = [Holder(name, "analyst") for name in config.shares]
    named += [Holder(name, "curator") for name in config.service.curators]
    everybody = list(dict.fromkeys((*named, *holders)))
    if as_json:
        plain = [
            {"name": each.name, "role": each.role, "token": each in holders, "in_file": each in named}
            for each in everybody
        ]
        typer.echo(json.dumps({"dataset": config.name, "holders": plain}, indent=2))
        return
    shown = table("name", "role", "token", title=f"Who may enter {config.name}")
    for each in everybody:
        held = "has one" if each in holders else "none yet"
        if each not in named and each.role == "curator":
            held = "does not open: the file names them no longer"
        shown.add_row(each.name, each.role, held)
    show(shown)


def _role(config: Config, name: str, curator: bool) -> Role:
    """What somebody is; refuses those who are nothing here."""
    curators = config.service.curators
    if name in curators:
        return "curator"
    if curator:
        raise RequestError(
            f"{name!r} is no curator of {config.name}.",
            hint=f"These are: {', '.join(curators)}. Add names to service.curators of {config.path}.",
        )
    if name in config.shares or name in (joined := _joined(config)):
        return "analyst"
    known = [*config.shares, *joined, *curators]
    near = get_close_matches(name, known, n=1)
    raise RequestError(
        f"{name!r} is neither an analyst nor a curator of {config.name}.",
        hint=f"Did you mean {near[0]}?"
        if near
        else f"There are {', '.join(known)}. `sharewell analysts add` takes in somebody new.",
    )


def _joined(config: Config) -> dict[str, None]:
    """Who has a share in the ledger, and has not left: those who came later are in no file."""
    service = config.service
    found: dict[str, None] = {}
    if service.ledger_is_file and not Path(service.ledger).exists():
        return found
    with open_ledger(service.ledger, name=config.name, read_only=True) as ledger:
        for event in ledger.events():
            if isinstance(event, Granted):
                found[event.payer] = None
            elif isinstance(event, Left):
                found.pop(event.payer, None)
    return found
