"""The house: several datasets in one server, each with a desk of its own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from types import MappingProxyType

from sharewell.config import Config, read_config
from sharewell.errors import ConfigError, NotFound, UnknownToken
from sharewell.service.access import Holder
from sharewell.service.desk import Desk


class House:
    """The desks of one server, by the names of their datasets. A token opens one of them."""

    def __init__(self, desks: Mapping[str, Desk]) -> None:
        self.desks = MappingProxyType(dict(desks))

    @classmethod
    def open(cls, paths: Iterable[str | Path], *, wait: bool = False) -> House:
        """Open every dataset that has a file here, or none of them."""
        configs = [_read(Path(path)) for path in paths]
        _refuse_sharing(configs)
        with ExitStack() as opened:
            desks = {
                config.name: opened.enter_context(Desk.open(config, wait=wait)) for config in configs
            }
            opened.pop_all()
            return cls(desks)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the datasets."""
        return tuple(self.desks)

    def desk(self, name: str) -> Desk:
        """A dataset by its name."""
        try:
            return self.desks[name]
        except (KeyError, TypeError):
            raise NotFound(
                "There is no dataset of that name here.", hint="Look at which ones your token opens."
            ) from None

    def holder(self, token: str) -> tuple[Desk, Holder]:
        """Who a token was given to, and the dataset that it opens."""
        for desk in self.desks.values():
            if (found := desk.holder(token)) is not None:
                return desk, found
        raise UnknownToken(
            "This token opens nothing here.", hint="Ask the curator of the dataset for a new one."
        )

    def close(self) -> None:
        """Close all, also where one of them fails."""
        with ExitStack() as closing:
            for desk in self.desks.values():
                closing.callback(desk.close)

    def __enter__(self) -> House:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"House({', '.join(self.names)})"


def _read(path: Path) -> Config:
    """Read one file of several: a mistake must say in which it is."""
    try:
        return read_config(path)
    except ConfigError as error:
        if str(path) in error.message:
            raise
        raise ConfigError(f"{path}: {error.message}", hint=error.hint, where=error.where) from None


def _refuse_sharing(configs: Iterable[Config]) -> None:
    """Refuse datasets that nobody could tell apart, or that would write over each other's tokens."""
    names: set[str] = set()
    files: set[Path] = set()
    for config in configs:
        if config.name in names:
            raise ConfigError(
                f"{config.path}: another dataset of this server is called {config.name!r} too.",
                hint="Give each a dataset.name of its own.",
            )
        access = config.service.access.resolve()
        if access in files:
            raise ConfigError(
                f"{config.path}: another dataset of this server has the same access file.",
                hint="Give each a service.access of its own.",
            )
        names.add(config.name)
        files.add(access)
    if not names:
        raise ConfigError("There is no dataset to open.", hint="Name at least one sharewell.toml.")
