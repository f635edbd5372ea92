"""Messages between client and server: every request and response body of the HTTP interface.

The server writes these models and the client returns them to the analyst, so that they also know how to
print themselves, in text and in notebooks, and how to become data frames.

Budget amounts are exact `Fraction` objects here and strings such as "1/100" in JSON. Numbers that are
infinite or unknown are null in JSON.
"""

from sharewell.wire.messages import (
    AnalystList,
    AnalystStanding,
    AttributeInfo,
    BudgetStatus,
    CertificateReport,
    ClosedRound,
    DatasetInfo,
    DatasetList,
    Empty,
    EventPage,
    LedgerEvent,
    MeasureInfo,
    Message,
    Newcomer,
    Problem,
    PromiseInfo,
    Question,
    Request,
    SessionInfo,
    SettingChange,
    SettingsComparison,
    SignIn,
    Token,
    VerificationStatus,
)
from sharewell.wire.result import (
    DraftQuote,
    Number,
    Offer,
    QuestionPage,
    Quote,
    Result,
    ResultColumn,
    Ticket,
)

__all__ = [
    "AnalystList",
    "AnalystStanding",
    "AttributeInfo",
    "BudgetStatus",
    "CertificateReport",
    "ClosedRound",
    "DatasetInfo",
    "DatasetList",
    "DraftQuote",
    "Empty",
    "EventPage",
    "LedgerEvent",
    "MeasureInfo",
    "Message",
    "Newcomer",
    "Number",
    "Offer",
    "Problem",
    "PromiseInfo",
    "Question",
    "QuestionPage",
    "Quote",
    "Request",
    "Result",
    "ResultColumn",
    "SessionInfo",
    "SettingChange",
    "SettingsComparison",
    "SignIn",
    "Ticket",
    "Token",
    "VerificationStatus",
]
