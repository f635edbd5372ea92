"""The errors that Sharewell raises.

::

    SharewellError
    ├── DomainError            domain.invalid          invalid description of the table
    │   └── DomainTooLarge     domain.too-large        more cells than a data vector may have
    ├── QueryError             query.invalid           invalid linear query
    │   ├── QueryTooComplex    query.too-complex       the query exceeds a size limit
    │   └── SqlError           sql.unsupported         SQL that is not supported
    │       ├── SqlSyntaxError sql.syntax              SQL syntax error
    │       ├── UnknownName    sql.unknown-name        unknown table, column or value
    │       └── CutsThroughBin sql.cuts-through-bin    a condition that splits a bin
    ├── SourceError            source.unreadable       the rows cannot be read as declared
    │   └── SourceUnavailable  source.unavailable      the engine with the rows does not answer
    ├── ConfigError            config.invalid          missing, unknown or invalid setting
    ├── SharingError           sharing.invalid         invalid collective or scheduler
    ├── PrivacyError           privacy.invalid         unsound request to the kernel
    │   ├── OverBudget         privacy.over-budget     a charge exceeds a share or the total
    │   ├── UnknownPayer       privacy.unknown-payer   no analyst of that name has a share
    │   └── Exhausted          privacy.exhausted       a sparse vector has no positives left
    ├── RequestError           request.invalid         invalid request
    │   ├── KeyReused          request.key-reused      the key belongs to another question
    │   ├── NotFound           request.not-found       no such dataset, ticket, analyst or path
    │   ├── NotOneNumber       request.not-one-number  a table has no value or error of its own
    │   ├── TooLarge           request.too-large       the request exceeds a size or time limit
    │   ├── TooMany            request.too-many        too many requests or waiting questions
    │   ├── StorageFull        request.storage-full    too much is stored of free questions
    │   └── StillWaiting       request.still-waiting   the question is not answered yet
    ├── AccessError            access.denied           the token does not permit this
    │   └── UnknownToken       access.unknown-token    missing, unknown or revoked token
    ├── Closed                 service.closed          the service or session is closed
    │   ├── Paused             service.paused          the curator has paused the dataset
    │   ├── Overloaded         service.overloaded      more questions than can be taken up in time
    │   └── Unreachable        service.unreachable     no Sharewell server at the address
    └── LedgerError            ledger.invalid          invalid ledger or event
        ├── LedgerMissing      ledger.missing          no ledger at the path or address
        ├── NotBegun           ledger.not-begun        the dataset was never begun
        ├── WitnessMismatch    ledger.mismatch         the ledger is not the one that was witnessed
        ├── LedgerInUse        ledger.in-use           another process writes to the ledger
        ├── LedgerUnavailable  ledger.unavailable      the store cannot be read or written now
        └── LedgerCorrupt      ledger.corrupt          the stored events were changed

An error has a message, and where they help a hint, a location and a suggestion. All of them depend on
public values only: none may contain a true count, nor anything computed from one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, TypeVar

__all__ = [
    "AccessError",
    "Closed",
    "ConfigError",
    "CutsThroughBin",
    "DomainError",
    "DomainTooLarge",
    "Exhausted",
    "KeyReused",
    "LedgerCorrupt",
    "LedgerError",
    "LedgerInUse",
    "LedgerMissing",
    "LedgerUnavailable",
    "Location",
    "NotBegun",
    "NotFound",
    "NotOneNumber",
    "OverBudget",
    "Overloaded",
    "Paused",
    "PrivacyError",
    "QueryError",
    "QueryTooComplex",
    "RequestError",
    "SharewellError",
    "SharingError",
    "SourceError",
    "SourceUnavailable",
    "SqlError",
    "SqlSyntaxError",
    "StillWaiting",
    "StorageFull",
    "Suggestion",
    "TooLarge",
    "TooMany",
    "UnknownName",
    "UnknownPayer",
    "UnknownToken",
    "Unreachable",
    "WitnessMismatch",
]


@dataclass(frozen=True)
class Location:
    """A position in a text: one-based line and column, and the text there."""

    line: int
    column: int
    text: str = ""

    def __str__(self) -> str:
        at = f"line {self.line}, column {self.column}"
        return f"{at}, at {self.text!r}" if self.text else at


@dataclass(frozen=True)
class Suggestion:
    """A structured hint, for a front end to express in its own syntax.

    `change` names what to change: an argument of the client (`key`, `ticket`, `pay`, `verify`,
    `allow_http`, `analyst`, `role`), a word of the SQL or a key of the configuration. `to` is its new
    value.
    """

    change: str
    to: str


def advice(given: str, known: Iterable[str], change: str = "", otherwise: str = "") -> dict[str, Any]:
    """The hint and suggestion for an unknown name: the nearest known name, or else `otherwise`."""
    near = get_close_matches(given, [*known], n=1)
    if not near:
        return {"hint": otherwise}
    return {"hint": f"Did you mean {near[0]!r}?", "suggestion": Suggestion(change or given, near[0])}


class SharewellError(Exception):
    """Base class: a stable code, a message, and where they help a hint, a location and a suggestion."""

    code = "error"

    def __init_subclass__(cls, *, code: str) -> None:
        super().__init_subclass__()
        cls.code = code

    def __init__(
        self,
        message: str,
        *,
        hint: str = "",
        where: Location | None = None,
        suggestion: Suggestion | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.where = where
        self.suggestion = suggestion
        #: The id of the HTTP request that failed, as in the server's log.
        self.request_id: str | None = None
        #: The key of the question that failed. Asked again with it, a question is charged once.
        self.idempotency_key: str | None = None

    def __str__(self) -> str:
        where = f" ({self.where})" if self.where else ""
        hint = f" {self.hint}" if self.hint else ""
        return f"{self.message}{where}{hint}"

    def _render_traceback_(self) -> list[str]:
        """Return what IPython and notebooks show in place of a traceback: a sentence a line, in red."""
        lines = str(self).split("\n")
        printable = ["".join(e if e.isprintable() else "\ufffd" for e in line) for line in lines]
        return [f"\x1b[31m{line}\x1b[0m" for line in printable]


#: How many further mistakes an error lists.
MAX_MISTAKES = 20

Mistake = TypeVar("Mistake", bound=SharewellError)


def all_together(mistakes: Sequence[Mistake]) -> Mistake:
    """Return the first of some mistakes, with the others in its hint, each on a line of its own."""
    first, *others = mistakes
    listed = {first.message}
    for each in others[:MAX_MISTAKES]:
        if each.message not in listed:
            listed.add(each.message)
            at = f" (line {each.where.line}, column {each.where.column})" if each.where else ""
            first.hint = f"{first.hint}\nAlso: {each.message}{at} {each.hint}".strip()
    return first


class DomainError(SharewellError, code="domain.invalid"):
    """The public description of the table is invalid."""


class DomainTooLarge(DomainError, code="domain.too-large"):
    """The domain has more cells than a data vector may have."""


class QueryError(SharewellError, code="query.invalid"):
    """A linear query cannot be built or combined."""


class QueryTooComplex(QueryError, code="query.too-complex"):
    """A query exceeds a size limit."""


class SqlError(QueryError, code="sql.unsupported"):
    """The SQL is not supported."""


class SqlSyntaxError(SqlError, code="sql.syntax"):
    """The text is not valid SQL."""


class UnknownName(SqlError, code="sql.unknown-name"):
    """The SQL names a table, column or value that does not exist."""


class CutsThroughBin(SqlError, code="sql.cuts-through-bin"):
    """A condition splits a bin, whose rows cannot be distinguished."""


class SourceError(SharewellError, code="source.unreadable"):
    """The rows cannot be read as the domain declares them."""


class SourceUnavailable(SourceError, code="source.unavailable"):
    """The engine that has the rows does not answer; what was charged is measured later, once."""


class ConfigError(SharewellError, code="config.invalid"):
    """A setting is missing, unknown, or contradicts another."""


class SharingError(SharewellError, code="sharing.invalid"):
    """A collective, a scheduler or a stream is invalid."""


class PrivacyError(SharewellError, code="privacy.invalid"):
    """A request to the kernel is unsound; nothing was charged."""


class OverBudget(PrivacyError, code="privacy.over-budget"):
    """A charge exceeds the payer's share or the total; nothing was charged."""


class UnknownPayer(PrivacyError, code="privacy.unknown-payer"):
    """No analyst of that name has a share."""


class Exhausted(PrivacyError, code="privacy.exhausted"):
    """A sparse vector has given all the positive answers that it was paid for."""


class RequestError(SharewellError, code="request.invalid"):
    """The request is invalid; nothing was spent."""


class KeyReused(RequestError, code="request.key-reused"):
    """The idempotency key belongs to another question."""


class NotFound(RequestError, code="request.not-found"):
    """The object does not exist, or belongs to another analyst."""


class NotOneNumber(RequestError, AttributeError, code="request.not-one-number"):
    """The result is a table, which has no value, error, interval or source of its own."""


class TooLarge(RequestError, code="request.too-large"):
    """The request exceeds the server's limit of size or time."""


class TooMany(RequestError, code="request.too-many"):
    """The analyst sends requests too fast, or has too many questions waiting."""


class StorageFull(RequestError, code="request.storage-full"):
    """Too much is stored of the analyst's free questions; new ones are refused."""


class StillWaiting(RequestError, TimeoutError, code="request.still-waiting"):
    """The question was not answered in time; the server keeps it."""

    key: str = ""
    number: int | None = None


class AccessError(SharewellError, code="access.denied"):
    """The token does not permit this operation."""


class UnknownToken(AccessError, code="access.unknown-token"):
    """The token is missing, unknown or revoked."""


class Closed(SharewellError, code="service.closed"):
    """The service or session is closed; questions already charged are completed."""


class Paused(Closed, code="service.paused"):
    """The curator has paused the dataset."""


class Overloaded(Closed, code="service.overloaded"):
    """The service could not take up the question in time; it was not stored, and nothing was charged."""


class Unreachable(Closed, code="service.unreachable"):
    """No Sharewell server answers at the address."""


class LedgerError(SharewellError, code="ledger.invalid"):
    """The ledger is invalid, or an event cannot be stored in it."""


class LedgerMissing(LedgerError, code="ledger.missing"):
    """There is no ledger at the path or address, or it is empty."""


class NotBegun(LedgerError, code="ledger.not-begun"):
    """The dataset was never begun: it has neither a ledger nor a witness."""


class WitnessMismatch(LedgerError, code="ledger.mismatch"):
    """The ledger is missing, incomplete or not the one that the witness saw."""


class LedgerInUse(LedgerError, code="ledger.in-use"):
    """Another process writes to the ledger; two writers would spend its budget twice."""


class LedgerUnavailable(LedgerError, code="ledger.unavailable"):
    """The store cannot be read or written now; a later attempt may succeed.

    Nothing of the batch was stored, unless `uncertain` is true: then the connection broke during a
    commit, and the ledger finds out what was stored before it stores anything else.
    """

    uncertain = False


class LedgerCorrupt(LedgerError, code="ledger.corrupt"):
    """The stored events are not those that were written."""
