"""A checked configuration: all that follows from it, from public things alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from sharewell.config import findings
from sharewell.config.config import Config
from sharewell.config.findings import Finding
from sharewell.config.forecast import Means, Outlook, Settings, means, outlooks, rehearsed
from sharewell.errors import ConfigError, DomainTooLarge, SharewellError
from sharewell.sharing.promises import Promise, promises


@dataclass(frozen=True)
class Checked:
    """A configuration with all that follows from it."""

    config: Config
    settings: Settings
    means: tuple[Means, ...]
    outlooks: tuple[Outlook, ...]
    promises: tuple[Promise, ...]
    findings: tuple[Finding, ...]

    @property
    def ok(self) -> bool:
        """Whether it can be served."""
        return all(finding.level != "error" for finding in self.findings)


#: Looks for more that is wrong with a configuration.
Look = Callable[[Config], Iterable[Finding]]


def check(config: Config, *also: Look) -> Checked:
    """All that follows from a configuration, from public things alone."""
    looks = (
        findings.of_file,
        findings.of_budget,
        findings.of_scheduler,
        findings.of_source,
        findings.of_unit,
        *also,
    )
    found = [finding for look in looks for finding in look(config)]
    who = means(config)
    found += findings.of_means(config, who)
    ahead: tuple[Outlook, ...] = ()
    promised: tuple[Promise, ...] = ()
    try:
        config.domain.require_dense()
        mechanism = rehearsed(config)
        promised = promises(mechanism, config.scheduler())
        ahead = outlooks(config, mechanism)
        found += findings.of_outlooks(config, ahead)
    except ConfigError:
        raise
    except DomainTooLarge:
        pass  # It is among the findings of the file.
    except SharewellError as error:
        found.append(findings.of_error(error))
    return Checked(config, Settings.of(config), who, ahead, promised, tuple(found))
