"""Links: the options that say where the service is and who asks, and the line that they open."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sharewell.cli.files import TomlFile
from sharewell.errors import LedgerInUse, RequestError, SharewellError

if TYPE_CHECKING:
    from sharewell.cli.line import Line
    from sharewell.config import Config
    from sharewell.service.desk import Desk

DEFAULT_URL = "http://127.0.0.1:8080"
PANEL = "Where the service is"

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def _option(*names: str, **more: Any) -> Any:
    return typer.Option(*names, rich_help_panel=PANEL, **more)


@dataclass(frozen=True)
class Link:
    """Where the service is, and who asks; the fields are the options of every command that has one."""

    url: Annotated[
        str | None,
        _option("--url", help=f"Its address; else SHAREWELL_URL, or {DEFAULT_URL}.", show_default=False),
    ] = None
    token: Annotated[
        str | None,
        _option("--token", help="Your token; else SHAREWELL_TOKEN, which others cannot see in `ps`."),
    ] = None
    token_file: Annotated[
        str | None, _option("--token-file", help="A file that holds the token.", metavar="FILE")
    ] = None
    ca: Annotated[
        str | None,
        _option("--ca", help="A PEM file of your own certificate authority.", metavar="FILE"),
    ] = None
    allow_http: Annotated[
        bool, _option("--allow-http", help="Send the token over plain http to another machine.")
    ] = False
    config: Annotated[
        str | None,
        _option(
            "--config",
            help="Work in this process, without a server: the sharewell.toml.",
            metavar="FILE",
            autocompletion=TomlFile.complete,
        ),
    ] = None
    analyst: Annotated[
        str | None, _option("--analyst", help="Who asks, with --config.", metavar="NAME")
    ] = None
    as_json: AsJson = False

    def over(self, other: Link) -> Link:
        """This link, with the other's options where it has none."""
        return Link(
            **{each.name: getattr(self, each.name) or getattr(other, each.name) for each in fields(self)}
        )

    @property
    def words(self) -> str:
        """The options to be typed again, without what is secret."""
        told = {
            "--url": self.url,
            "--token-file": self.token_file,
            "--ca": self.ca,
            "--config": self.config,
            "--analyst": self.analyst,
        }
        given = [f" {option} {value}" for option, value in told.items() if value]
        return "".join([*given, " --allow-http" if self.allow_http else ""])

    @contextmanager
    def open(self, *, curator: bool = False, certificate: bool = False) -> Iterator[Line]:
        """Open the line: to a server, or to a desk in this process.

        A desk's certificate is kept up by a process of its own, which takes a while to start.
        """
        from sharewell.cli.line import Line

        self.refuse_contradictions()
        if self.config is None:
            line = Line.to_server(self._address, self._secret, self.ca, self.allow_http)
        else:
            desk = _open_desk(_configured(self.config, certificate))
            try:
                line = Line.to_desk(desk, self._who(desk, curator))
            except BaseException:
                desk.close()
                raise
        with line:
            yield line

    def refuse_contradictions(self) -> None:
        """Refuse options that say two things."""
        server = [name for name in ("url", "token", "token_file", "ca") if getattr(self, name)]
        if self.config is not None and server:
            raise RequestError(
                f"There is --config, and --{server[0].replace('_', '-')} of a server.",
                hint="With --config the dataset is opened in this process: leave one of them out.",
            )
        if self.config is None and self.analyst is not None:
            raise RequestError(
                "There is --analyst without --config.",
                hint="Over a server the token says who asks: leave out --analyst.",
            )
        if self.token is not None and self.token_file is not None:
            raise RequestError("There are two tokens.", hint="Give --token or --token-file.")

    @property
    def _address(self) -> str:
        return self.url or os.environ.get("SHAREWELL_URL") or DEFAULT_URL

    @property
    def _secret(self) -> str | None:
        if self.token_file is None:
            return self.token
        try:
            return Path(self.token_file).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            raise RequestError(
                f"The token file {self.token_file!r} cannot be read.",
                hint="It is a file that holds a token, and nothing else.",
            ) from None

    def _who(self, desk: Desk, curator: bool) -> str:
        """Who stands at a desk."""
        analysts = desk.broker.analysts
        if self.analyst is None and curator:
            return desk.config.service.curators[0]
        if self.analyst is None:
            if len(analysts) == 1:
                return analysts[0]
            raise RequestError(
                f"{desk.name} has {len(analysts)} analysts.",
                hint=f"Say who asks: --analyst {' or --analyst '.join(analysts[:3])}.",
            )
        if self.analyst not in analysts:
            near = get_close_matches(self.analyst, analysts, n=1) or analysts
            raise RequestError(
                f"There is no analyst called {self.analyst!r}.",
                hint=f"Did you mean {near[0]}?" if len(near) == 1 else f"There are {', '.join(near)}.",
            )
        return self.analyst


def linked(command: Callable[..., None]) -> Callable[..., None]:
    """Make a command of a function whose first parameter is a `Link`: its fields become options."""
    own = inspect.signature(command, eval_str=True)
    options = [
        inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, default=each.default, annotation=each.annotation
        )
        for name, each in inspect.signature(Link, eval_str=True).parameters.items()
    ]

    def run(**given: Any) -> None:
        link = Link(**{option.name: given.pop(option.name) for option in options})
        try:
            command(link, **given)
        except SharewellError as error:
            if link.as_json:
                _print_problem(error)
            raise

    after_link = list(own.parameters.values())[1:]
    parameters = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in after_link]
    run.__signature__ = inspect.Signature([*parameters, *options])  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in (*parameters, *options)}
    run.__name__, run.__doc__ = command.__name__, command.__doc__
    return run


def _print_problem(error: SharewellError) -> None:
    from sharewell import wire
    from sharewell.cli.line import print_json

    print_json(wire.Problem.of(error))


def _configured(path: str, certificate: bool) -> Config:
    from sharewell.config import read_config

    config = read_config(path)
    kept = certificate and config.service.certificate
    return replace(config, service=replace(config.service, certificate=kept))


def _open_desk(config: Config) -> Desk:
    from sharewell.service.desk import Desk

    try:
        return Desk.open(config)
    except LedgerInUse as error:
        raise LedgerInUse(
            error.message, hint="Where that is a server, ask it: with --url and a token, not --config."
        ) from None
