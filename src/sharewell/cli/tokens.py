"""Tokens of a dataset, for the `token` command: issue, revoke and list them."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from sharewell import wire
from sharewell.cli.render import print_reply
from sharewell.cli.terminal import make_table, print_items, print_json
from sharewell.config import Config
from sharewell.errors import RequestError, advice
from sharewell.privacy.ledger import Granted, Left
from sharewell.service.ledger import open_ledger
from sharewell.service.ledger.files import create_private
from sharewell.service.tokens import Principal, Role, TokenStore


def issue_token(config: Config, name: str, curator: bool) -> wire.Token:
    """Issue a token to an analyst or curator."""
    role = _find_role(config, name, curator)
    token = TokenStore(config.service.access).issue(name, role)
    return wire.Token(name=name, role=role, token=token)


def deliver_token(issue: Callable[[], wire.Token], out: str | None) -> wire.Token | str:
    """Issue a token, to be printed or, if a file is named, written to it: then a message."""
    if out is None:
        return issue()
    try:
        # First the file: a token that cannot be written must not revoke the previous one.
        with os.fdopen(create_private(Path(out)), "w", encoding="utf-8") as file:
            try:
                issued = issue()
            except BaseException:
                os.unlink(out)
                raise
            file.write(issued.token + "\n")
    except OSError as error:
        reason = (error.strerror or "unknown error").lower()
        raise RequestError(f"Cannot write {out!r}: {reason}.", hint="Name a new file.") from None
    return f"Wrote a token for {issued.role} {issued.name} to {out}. Any previous token is revoked."


def revoke_token(config: Config, name: str, curator: bool, as_json: bool) -> None:
    """Revoke a token, whether or not the configuration still names its holder."""
    store = TokenStore(config.service.access)
    roles = [each.role for each in store.holders if each.name == name]
    if curator:
        roles = [role for role in roles if role == "curator"]
    if not roles:
        raise RequestError(f"{name!r} has no token.", hint="`sharewell token --list` lists tokens.")
    for role in roles:
        store.revoke(name, role)
    print_reply(f"Revoked the token of {name}.", as_json)


def list_tokens(config: Config, as_json: bool) -> None:
    """Print the names of the configuration and of the token store, and which have a token."""
    holders = TokenStore(config.service.access).holders
    named = [Principal(name, "analyst") for name in config.shares]
    named += [Principal(name, "curator") for name in config.service.curators]
    principals = list(dict.fromkeys((*named, *holders)))
    if as_json:
        plain = [
            {"name": each.name, "role": each.role, "token": each in holders, "in_file": each in named}
            for each in principals
        ]
        print_json({"dataset": config.name, "holders": plain})
        return
    rows = []
    for each in principals:
        status = "issued" if each in holders else "none"
        if each not in named and each.role == "curator":
            status = "invalid: not a curator in the configuration"
        rows.append((each.name, each.role, status))
    print_items(make_table(("name", "role", "token"), rows, title=f"Tokens for {config.name}"))


def _find_role(config: Config, name: str, curator: bool) -> Role:
    """Look up the role of a name in the configuration, then in the ledger."""
    curators = config.service.curators
    if name in curators:
        return "curator"
    if curator:
        raise RequestError(
            f"{name!r} is not a curator of {config.name}.",
            hint=f"The curators are {', '.join(curators)}; add others to service.curators in "
            f"{config.path}.",
        )
    if name in config.shares or name in (joined := _read_joined(config)):
        return "analyst"
    known = list(dict.fromkeys([*config.shares, *joined, *curators]))
    otherwise = f"Known names: {', '.join(known)}. Add one with `sharewell analysts add`."
    raise RequestError(
        f"{name!r} is neither an analyst nor a curator of {config.name}.",
        **advice(name, known, otherwise=otherwise),
    )


def _read_joined(config: Config) -> dict[str, None]:
    """Read the analysts who hold a share from the ledger, which also knows those who joined later."""
    service = config.service
    joined: dict[str, None] = {}
    if service.ledger_is_file and not Path(service.ledger).exists():
        return joined
    with open_ledger(service.ledger, name=config.name, read_only=True) as ledger:
        for event in ledger.events():
            if isinstance(event, Granted):
                joined[event.payer] = None
            elif isinstance(event, Left):
                joined.pop(event.payer, None)
    return joined
