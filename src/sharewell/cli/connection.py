"""The options that select a service, and the session they open: over HTTP, or in this process."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sharewell.cli.options import AsJson, complete_config, flag, option
from sharewell.errors import LedgerInUse, RequestError, SharewellError, UnknownToken

if TYPE_CHECKING:
    from sharewell.cli.render import Reply
    from sharewell.client import CuratorSession, Session
    from sharewell.client.transport import LocalTransport, Transport

DEFAULT_URL = "http://127.0.0.1:8080"
#: Environment variables, read where the option is not given.
URL_VARIABLE, TOKEN_VARIABLE = "SHAREWELL_URL", "SHAREWELL_TOKEN"


_option = partial(option, rich_help_panel="Connection")


@dataclass(frozen=True)
class Connection:
    """Where the service is and who asks; its fields become options of every command that connects."""

    url: Annotated[
        str | None, _option(f"Server address. Default: ${URL_VARIABLE}, or {DEFAULT_URL}.", "URL")
    ] = None
    token: Annotated[
        str | None, _option(f"Access token, visible in `ps`. Default: ${TOKEN_VARIABLE}.", "TOKEN")
    ] = None
    token_file: Annotated[str | None, _option("File that contains the token.", "FILE")] = None
    ca: Annotated[str | None, _option("PEM file of your certificate authority.", "FILE")] = None
    allow_http: Annotated[
        bool, flag("Allow plain HTTP to another machine.", "--allow-http", rich_help_panel="Connection")
    ] = False
    config: Annotated[
        str | None,
        _option(
            "Open this configuration file in the process, without a server.",
            "FILE",
            autocompletion=complete_config,
        ),
    ] = None
    analyst: Annotated[str | None, _option("The asking analyst, with --config.", "NAME")] = None
    as_json: AsJson = False

    def or_else(self, parent: Connection) -> Connection:
        """Fill unset options from those given before a subcommand."""
        names = [each.name for each in fields(self)]
        return Connection(**{name: getattr(self, name) or getattr(parent, name) for name in names})

    @property
    def arguments(self) -> str:
        """The options as typed, without the token."""
        names = ("url", "token_file", "ca", "config", "analyst")
        given = {name.replace("_", "-"): getattr(self, name) for name in names}
        typed = [f" --{name} {value}" for name, value in given.items() if value]
        return "".join([*typed, " --allow-http" if self.allow_http else ""])

    def validate(self) -> None:
        """Reject options that exclude each other."""
        server = [name for name in ("url", "token", "token_file", "ca") if getattr(self, name)]
        if self.config is not None and server:
            raise RequestError(
                f"--config and --{server[0].replace('_', '-')} are mutually exclusive.",
                hint="Use --config to open the dataset in this process, or --url to query a server.",
            )
        if self.config is None and self.analyst is not None:
            raise RequestError(
                "--analyst requires --config.", hint="A server identifies the analyst by the token."
            )
        if self.token is not None and self.token_file is not None:
            raise RequestError("--token and --token-file are mutually exclusive.")

    def open(self, *, any_role: bool = False, certificate: bool = False) -> Session:
        """Open a session for an analyst; with `any_role` also for a curator, who sees all analysts.

        In this process, `certificate` starts the worker that computes the certificate.
        """
        from sharewell.client import Session
        from sharewell.client.api import Api

        curator = any_role and self.analyst is None
        return Session(Api(), self._open_transport(curator, certificate))

    def open_curator(self) -> CuratorSession:
        """Open a session for a curator."""
        from sharewell.client import CuratorSession
        from sharewell.client.api import Api

        return CuratorSession(Api(), self._open_transport(curator=True))

    def _open_transport(self, curator: bool, certificate: bool = False) -> Transport:
        from sharewell.client.connection import choose_analyst, read_address, read_token, read_verify
        from sharewell.client.transport import HttpTransport

        self.validate()
        if self.config is None:
            url = self.url or os.environ.get(URL_VARIABLE) or DEFAULT_URL
            address = read_address(url, allow_http=self.allow_http)
            token = read_token(self._read_token())
            return HttpTransport(address, token, read_verify(True if self.ca is None else self.ca))
        transport = _open_dataset(self.config, certificate)
        if not curator:
            try:
                transport.name = choose_analyst(self.analyst, transport.service.analyst_names)
                transport.role = "analyst"
            except BaseException:
                transport.close()
                raise
        return transport

    def _read_token(self) -> str | None:
        if self.token_file is None:
            if not (self.token or os.environ.get(TOKEN_VARIABLE)):
                raise UnknownToken(
                    "No token given.",
                    hint=f"Use --token-file, or set {TOKEN_VARIABLE} to the token from your curator.",
                )
            return self.token
        try:
            return Path(self.token_file).read_text(encoding="utf-8")
        except OSError as error:
            reason = (error.strerror or "unknown error").lower()
        except UnicodeDecodeError:
            reason = "not a text file"
        raise RequestError(f"Cannot read token file {self.token_file!r}: {reason}.")


def with_connection(command: Callable[..., Reply | None]) -> Callable[..., None]:
    """Replace a command's first parameter, a `Connection`, by options; print what it returns.

    Typer reads options from signatures and has no way to group them, so the signature is built here.
    Options given before a subcommand hold for the subcommand.
    """
    # The messages that commands return are imported only when a command runs.
    command.__annotations__.pop("return", None)
    _, *own = inspect.signature(command, eval_str=True).parameters.values()
    options = inspect.signature(Connection, eval_str=True).parameters

    def run(context: typer.Context, **given: Any) -> None:
        from sharewell import wire
        from sharewell.cli.render import print_reply
        from sharewell.cli.terminal import print_json

        connection = Connection(**{name: given.pop(name) for name in options})
        if context.obj is not None:
            connection = connection.or_else(context.obj)
        context.obj = connection
        if context.invoked_subcommand is not None:
            return
        try:
            reply = command(connection, **given)
        except SharewellError as error:
            if connection.as_json:
                print_json(wire.Problem.of(error))
            raise
        if reply is not None:
            print_reply(reply, connection.as_json)

    context = inspect.Parameter("context", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)
    keyword_only = [
        context,
        *(each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in (*own, *options.values())),
    ]
    run.__signature__ = inspect.Signature(keyword_only)  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in keyword_only}
    run.__name__, run.__doc__ = command.__name__, command.__doc__
    return run


def _open_dataset(path: str, certificate: bool) -> LocalTransport:
    from sharewell.client.transport import LocalTransport
    from sharewell.config import read_config
    from sharewell.service.dataset import DatasetService

    config = read_config(path)
    service = replace(config.service, certificate=certificate and config.service.certificate)
    try:
        dataset = DatasetService.open(replace(config, service=service))
        return LocalTransport(dataset, config.service.curators[0], "curator")
    except LedgerInUse as error:
        raise LedgerInUse(
            error.message, hint="If a server has it open, use --url and a token instead of --config."
        ) from None
