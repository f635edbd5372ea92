"""Every error that Sharewell raises on purpose.

::

    SharewellError
    ├── DomainError            domain.invalid          the public description contradicts itself
    │   └── DomainTooLarge     domain.too-large        more cells than a data vector may have
    ├── QueryError             query.invalid           a linear query that cannot be built or combined
    │   ├── QueryTooComplex    query.too-complex       its canonical form passes the size limit
    │   └── SqlError           sql.unsupported         the text asks for something that is not answered
    │       ├── SqlSyntaxError sql.syntax              the text is not SQL
    │       ├── UnknownName    sql.unknown-name        no such table, column or value
    │       └── CutsThroughBin sql.cuts-through-bin    a condition falls inside a bin
    ├── SourceError            source.unreadable       the rows cannot be read as declared
    ├── ConfigError            config.invalid          a setting is missing, or means nothing
    ├── SharingError           sharing.invalid         a collective cannot be as asked
    ├── PrivacyError           privacy.invalid         the kernel was asked for something unsound
    │   ├── OverBudget         privacy.over-budget     a charge would pass a share or the total
    │   ├── UnknownPayer       privacy.unknown-payer   nobody of that name holds a share
    │   └── Exhausted          privacy.exhausted       a sparse vector has given all its positives
    ├── RequestError           request.invalid         a request that cannot be taken as it is
    │   ├── KeyReused          request.key-reused      the same key for another question
    │   ├── NotFound           request.not-found       there is nothing of that name or number
    │   ├── TooLarge           request.too-large       more than a server reads
    │   ├── TooMany            request.too-many        more at a time than one analyst may
    │   └── StillWaiting       request.still-waiting   the time to wait is over, the question stays
    ├── AccessError            access.denied           a token that does not open this
    │   └── UnknownToken       access.unknown-token    no token, or none that was given out
    ├── Closed                 service.closed          the service is closing, or has closed
    │   ├── Paused             service.paused          the curator has paused the dataset
    │   └── Unreachable        service.unreachable     no service answers at that address
    └── LedgerError            ledger.invalid          what was given is no ledger, or no event for one
        ├── LedgerMissing      ledger.missing          there is no ledger at the place
        ├── LedgerInUse        ledger.in-use           somebody else writes to the ledger
        ├── LedgerUnavailable  ledger.unavailable      the store cannot be read or written just now
        └── LedgerCorrupt      ledger.corrupt          what is stored is not what was written

A message says what is wrong, a hint says what to do instead, and a place says where. All three
depend on public things alone: none may carry a count, nor anything computed from one.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Place:
    """A position in a text that somebody wrote: one-based line and column, and the words there."""

    line: int
    column: int
    text: str = ""

    def __str__(self) -> str:
        at = f"line {self.line}, column {self.column}"
        return f"{at}, at {self.text!r}" if self.text else at


class SharewellError(Exception):
    """The root: a sentence, a stable code, and where they help a hint and a place."""

    code = "error"

    def __init__(self, message: str, *, hint: str = "", where: Place | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.where = where
        #: The request that it came back from, where it came over the wire: a server's log has it too.
        self.request_id: str | None = None

    def __str__(self) -> str:
        place = f" ({self.where})" if self.where else ""
        hint = f" {self.hint}" if self.hint else ""
        return f"{self.message}{place}{hint}"


class DomainError(SharewellError):
    """The public description of the table contradicts itself."""

    code = "domain.invalid"


class DomainTooLarge(DomainError):
    """The domain has more cells than a data vector may have."""

    code = "domain.too-large"


class QueryError(SharewellError):
    """A linear query cannot be built or combined as asked."""

    code = "query.invalid"


class QueryTooComplex(QueryError):
    """The canonical form of a query passes the size limit."""

    code = "query.too-complex"


class SqlError(QueryError):
    """The SQL asks for something that is not answered."""

    code = "sql.unsupported"


class SqlSyntaxError(SqlError):
    """The text is not SQL."""

    code = "sql.syntax"


class UnknownName(SqlError):
    """The SQL names a table, a column or a value that does not exist."""

    code = "sql.unknown-name"


class CutsThroughBin(SqlError):
    """A condition falls inside a bin, whose rows cannot be told apart."""

    code = "sql.cuts-through-bin"


class SourceError(SharewellError):
    """The rows cannot be read as the domain declares them."""

    code = "source.unreadable"


class ConfigError(SharewellError):
    """A setting of the configuration is missing, unknown or contradicts another."""

    code = "config.invalid"


class SharingError(SharewellError):
    """A collective, a scheduler or a formula about them cannot be as asked."""

    code = "sharing.invalid"


class PrivacyError(SharewellError):
    """The kernel was asked for something unsound; nothing was charged."""

    code = "privacy.invalid"


class OverBudget(PrivacyError):
    """A charge would pass the payer's share or the total; nothing was charged."""

    code = "privacy.over-budget"


class UnknownPayer(PrivacyError):
    """Nobody of that name holds a share."""

    code = "privacy.unknown-payer"


class Exhausted(PrivacyError):
    """A sparse vector has given all the positive answers that it was paid for."""

    code = "privacy.exhausted"


class RequestError(SharewellError):
    """A request cannot be taken as it is; nothing was spent."""

    code = "request.invalid"


class KeyReused(RequestError):
    """A key that names one request was used for another."""

    code = "request.key-reused"


class NotFound(RequestError):
    """There is nothing of that name or number, or not for whoever asks."""

    code = "request.not-found"


class TooLarge(RequestError):
    """A request is larger, or takes longer, than a server puts up with."""

    code = "request.too-large"


class TooMany(RequestError):
    """An analyst asks faster, or has more questions waiting, than is allowed."""

    code = "request.too-many"


class StillWaiting(RequestError, TimeoutError):
    """The time to wait is over, and the question still waits; it stays with the service."""

    code = "request.still-waiting"

    def __init__(self, message: str, *, hint: str = "", where: Place | None = None) -> None:
        super().__init__(message, hint=hint, where=where)
        self.key = ""
        self.number: int | None = None


class AccessError(SharewellError):
    """The token does not open what was asked for."""

    code = "access.denied"


class UnknownToken(AccessError):
    """There is no token, or it was never given out, or it was replaced."""

    code = "access.unknown-token"


class Closed(SharewellError):
    """The service is closing or has closed; what was charged is finished, nothing new is taken."""

    code = "service.closed"


class Paused(Closed):
    """The curator has paused the dataset; nothing is answered until it goes on."""

    code = "service.paused"


class Unreachable(Closed):
    """No service answers at that address, or what answers is none."""

    code = "service.unreachable"


class LedgerError(SharewellError):
    """What was given is no ledger, or cannot be stored in one."""

    code = "ledger.invalid"


class LedgerMissing(LedgerError):
    """There is no ledger at the place, or nothing in it yet."""

    code = "ledger.missing"


class LedgerInUse(LedgerError):
    """Somebody else writes to the ledger, and two writers would spend its budget twice."""

    code = "ledger.in-use"


class LedgerUnavailable(LedgerError):
    """The store cannot be read or written just now; it may work again later.

    Nothing of the batch was stored. Only where `uncertain` is true is that not known yet: the
    connection broke during a commit and could not be made again to look. The ledger finds out before
    it stores anything else.
    """

    code = "ledger.unavailable"
    uncertain = False


class LedgerCorrupt(LedgerError):
    """What the store holds is not what was written to it."""

    code = "ledger.corrupt"
