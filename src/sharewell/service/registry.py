"""The datasets of one server, by name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from types import MappingProxyType

from sharewell.config import Config, read_config
from sharewell.errors import ConfigError, NotBegun, UnknownToken
from sharewell.service.dataset import DatasetService
from sharewell.service.planning import PlannedDataset
from sharewell.service.tokens import Principal


class DatasetRegistry:
    """The datasets of one server. A token opens one of them."""

    def __init__(
        self,
        datasets: Mapping[str, DatasetService],
        planned: Mapping[str, PlannedDataset] = MappingProxyType({}),
    ) -> None:
        self.datasets = MappingProxyType(dict(datasets))
        #: Those that were never begun: their curators can plan, and nothing else.
        self.planned = MappingProxyType(dict(planned))

    @classmethod
    def open(
        cls, paths: Iterable[str | Path], *, wait: float = 0.0, plan: bool = False
    ) -> DatasetRegistry:
        """Open one dataset for each configuration file, or none of them.

        With `plan`, a dataset that was never begun is open to its curators' plans.
        """
        configs = [_read(Path(path)) for path in paths]
        _reject_conflicts(configs)
        with ExitStack() as opened:
            datasets: dict[str, DatasetService] = {}
            planned: dict[str, PlannedDataset] = {}
            for config in configs:
                every = config.service.release_every
                try:
                    service = DatasetService.open(config, wait=wait, release_every=every)
                except NotBegun:
                    if not plan:
                        raise
                    planned[config.name] = PlannedDataset(config)
                else:
                    datasets[config.name] = opened.enter_context(service)
            opened.pop_all()
            return cls(datasets, planned)

    def authenticate(self, token: str = "", *, session: str = "") -> tuple[DatasetService, Principal]:
        """The owner of a token or of a browser's session, and the dataset that it opens."""
        for dataset in self.datasets.values():
            if (principal := dataset.authenticate(token, session=session)) is not None:
                return dataset, principal
        if session:
            raise UnknownToken("The session has ended.", hint="Sign in again with your token.")
        raise self._unknown(token)

    def authenticate_planner(
        self, token: str = "", *, session: str = ""
    ) -> tuple[PlannedDataset, Principal] | None:
        """The curator of a token or a session, and the dataset, not yet begun, that it opens."""
        for dataset in self.planned.values():
            if (curator := dataset.authenticate(token, session=session)) is not None:
                return dataset, curator
        return None

    def sign_in(self, *, token: str = "", code: str = "") -> str:
        """Begin a session with a token or a sign-in code: its secret."""
        for dataset in self.datasets.values():
            if (secret := dataset.sign_in(token=token, code=code)) is not None:
                return secret
        for planned in self.planned.values():
            if (secret := planned.sign_in(token)) is not None:
                return secret
        if code:
            raise UnknownToken(
                "This sign-in link was used before, or is too old.", hint="Sign in with your token."
            )
        raise self._unknown(token)

    def _unknown(self, token: str) -> UnknownToken:
        """The refusal of a token that opens no dataset, or one that was never begun."""
        for planned in self.planned.values():
            if planned.tokens.authenticate(token) is not None:
                return UnknownToken(
                    f"{planned.name} was never begun, so it answers no questions yet.",
                    hint="Ask its curator to run `sharewell begin`.",
                )
        return UnknownToken("Unknown token.", hint="Ask the dataset's curator for a new one.")

    def sign_out(self, secret: str) -> None:
        """End a browser's session."""
        for dataset in self.datasets.values():
            dataset.sessions.end(secret)
        for planned in self.planned.values():
            planned.sessions.end(secret)

    def close(self) -> None:
        """Close every dataset, even if closing one of them fails."""
        with ExitStack() as closing:
            for dataset in self.datasets.values():
                closing.callback(dataset.close)

    def __enter__(self) -> DatasetRegistry:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"DatasetRegistry({', '.join(self.datasets)})"


def _read(path: Path) -> Config:
    """Read one of several files: an error must name the file."""
    try:
        return read_config(path)
    except ConfigError as error:
        if str(path) in error.message:
            raise
        raise ConfigError(f"{path}: {error.message}", hint=error.hint, where=error.where) from None


def _reject_conflicts(configs: Iterable[Config]) -> None:
    """Reject datasets that share a name, a token file, or without saying so a source."""
    names: set[str] = set()
    files: set[Path] = set()
    sources: dict[tuple[Path | str, str | None], bool] = {}
    for config in configs:
        if config.name in names:
            raise ConfigError(
                f"{config.path}: another dataset of this server is also called {config.name!r}.",
                hint="Give each dataset a dataset.name of its own.",
            )
        access = config.service.access.resolve()
        if access in files:
            raise ConfigError(
                f"{config.path}: another dataset of this server uses the same access file.",
                hint="Give each dataset a service.access of its own.",
            )
        for source in config.identities:
            if source in sources and not (sources[source] and config.budgets_add_up):
                raise ConfigError(
                    f"{config.path}: another dataset of this server has the same source, {source[0]}.",
                    hint="Each would spend a whole budget on the same rows. If their sum is what you "
                    "want, set dataset.budgets_add_up = true and another service.witness in both files.",
                )
        sources |= dict.fromkeys(config.identities, config.budgets_add_up)
        names.add(config.name)
        files.add(access)
    if not names:
        raise ConfigError("No dataset to open.", hint="Name at least one sharewell.toml.")
