"""Names: what analysts, curators and tables may be called, so that URLs, logs and SQL can hold them."""

from __future__ import annotations

import re

from sharewell.errors import ConfigError, SqlError
from sharewell.query.attribute import Boolean
from sharewell.query.domain import Domain
from sharewell.query.sql import compile_sql

#: The longest name.
LONGEST = 100

# A name of dots alone would be another folder in an address.
_PERSON = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*", re.ASCII)
_TABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


def person_name(name: str, key: str) -> str:
    """The name of an analyst or a curator, if it can stand in an address and in a log.

    >>> person_name("ann.lee", "analysts")
    'ann.lee'
    """
    if len(name) <= LONGEST and _PERSON.fullmatch(name):
        return name
    raise ConfigError(
        f"{key} has the name {name[:LONGEST]!r}, which cannot stand in an address.",
        hint=f"Use up to {LONGEST} of the letters a to z, digits, _, - and ., and begin with a letter.",
    )


def table_name(name: str, key: str) -> str:
    """The name of a table, if it can stand in an address and, without quotes, in SQL.

    >>> table_name("visits", "dataset.name")
    'visits'
    """
    if len(name) > LONGEST or not _TABLE.fullmatch(name):
        raise ConfigError(
            f"{key} cannot be {name[:LONGEST]!r}: it must stand in SQL and in an address.",
            hint=f"Use up to {LONGEST} of the letters a to z, digits and _, and begin with a letter.",
        )
    try:
        compile_sql(f"SELECT COUNT(*) FROM {name}", Domain([Boolean("counted")]), table=name)  # noqa: S608
    except SqlError:
        raise ConfigError(
            f"{key} cannot be {name!r}, which means something else in SQL.",
            hint=f"Choose another name, such as {name}_table.",
        ) from None
    return name
