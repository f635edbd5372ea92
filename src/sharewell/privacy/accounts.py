"""Accounts: who holds which share of the budget, and what has been charged to it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from copy import copy
from fractions import Fraction
from threading import RLock

from sharewell.errors import OverBudget, PrivacyError, UnknownPayer
from sharewell.privacy.budget import Amount, Budget, amount
from sharewell.privacy.ledger import Charged, Event, Granted, Left, Recovered, RoundClosed

#: Who pays: one name, or the amount that each of several payers contributes.
Payer = str | Mapping[str, Fraction]
ZERO = Fraction(0)


class Accounts:
    """The shares of one budget: a fold over the events of a ledger, and what is reserved on top of it.

    Only `apply` changes shares and spending, and only with events that a ledger has stored. A charge or
    a grant is reserved *before* it is stored; a reservation whose fate is uncertain is kept. So a
    failure can waste budget and never hides spending.

    Privacy: no charge exceeds its payer's share, and no shares exceed the total, from any thread.
    """

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self._lock = RLock()
        self._shares: dict[str, Fraction] = {}
        #: The sum of the shares, kept up so that granting takes the same time for any number of them.
        self._granted = ZERO
        self._spent: dict[str, Fraction] = {}
        self._gone: set[str] = set()
        #: Those whose rest was spent when a round was closed.
        self._closed: set[str] = set()
        #: Reserved for charges, by payer, and for grants that may or may not have been stored.
        self._reserved: defaultdict[str, Fraction] = defaultdict(Fraction)
        self._pending_grants: dict[str, Fraction] = {}

    def apply(self, event: Event) -> None:
        """Account for an event that is stored; what was reserved for it becomes spent or granted."""
        with self._lock:
            match event:
                case Granted(payer, share):
                    self._pending_grants.pop(payer, None)
                    self._granted += share - self._shares.get(payer, ZERO)
                    self._shares[payer] = share
                    self._spent[payer] = ZERO
                case Charged(bill) | Recovered(bill):
                    for payer, cost in bill.items():
                        self._spent[payer] += cost
                        self._reserved[payer] = max(ZERO, self._reserved[payer] - cost)
                case Left(payer):
                    self._gone.add(payer)
                case RoundClosed(payers):
                    self._closed.update(payers)

    def snapshot(self) -> Accounts:
        """A copy as of now, which later events do not change."""
        with self._lock:
            frozen = copy(self)
            frozen._shares, frozen._spent = dict(self._shares), dict(self._spent)
            frozen._gone, frozen._closed = set(self._gone), set(self._closed)
            frozen._reserved = self._reserved.copy()
            frozen._pending_grants = dict(self._pending_grants)
        frozen._lock = RLock()
        return frozen

    def require_within_budget(self) -> None:
        """Refuse accounts that a damaged ledger has overdrawn."""
        overdrawn = any(spent > self._shares[payer] for payer, spent in self._spent.items())
        if overdrawn or self._granted > self.budget.total:
            raise PrivacyError(
                "The ledger has spent more than its budget.", hint="Do not continue with it."
            )

    @property
    def payers(self) -> tuple[str, ...]:
        """All who hold a share and have not left."""
        payers = tuple(self._shares)  # in one step: another thread may grant a share
        return tuple([payer for payer in payers if payer not in self._gone]) if self._gone else payers

    def share(self, payer: str) -> Fraction:
        """The share that a payer was granted."""
        try:
            return self._shares[payer]
        except (KeyError, TypeError):
            raise UnknownPayer(
                f"No payer {payer!r} holds a share.",
                hint=f"Shares are held by {', '.join(self.payers) or 'no one yet'}.",
            ) from None

    def spent(self, payer: str) -> Fraction:
        """What was charged to a payer, or is reserved for a charge."""
        self.share(payer)
        return self._spent[payer] + self._reserved[payer]

    def left(self, payer: str) -> Fraction:
        """What a payer may still spend: nothing once they have left, or were done in a closed round."""
        share = self.share(payer)
        if payer in self._gone or payer in self._closed:
            return ZERO
        return share - self._spent[payer] - self._reserved[payer]

    @property
    def unallocated(self) -> Fraction:
        """The part of the total that was never granted."""
        return self.budget.total - self._granted - sum(self._pending_grants.values(), ZERO)

    def reserve_grant(self, payer: str, share: Amount) -> Granted:
        """Reserve a share for a new payer: the event to store. The share counts once it is stored."""
        exact = amount(share, f"The share of {payer}")
        if not isinstance(payer, str) or not payer:
            raise PrivacyError(f"A payer's name must be a non-empty string, not {payer!r}.")
        with self._lock:
            if payer in self._gone:
                raise PrivacyError(
                    f"{payer} was removed; the name cannot be used again.", hint="Choose another name."
                )
            if payer in self._shares or payer in self._pending_grants:
                raise PrivacyError(
                    f"{payer} already holds a share.",
                    hint="To replace a lost token, issue a new token instead.",
                )
            if exact > self.unallocated:
                raise OverBudget(
                    f"The share of {payer} exceeds the unallocated budget.",
                    hint=f"At most {plain(self.unallocated)} is unallocated.",
                )
            self._pending_grants[payer] = exact
        return Granted(payer, exact)

    def cancel_grant(self, granted: Granted) -> None:
        """Release a reserved share that is known not to be stored."""
        with self._lock:
            self._pending_grants.pop(granted.payer, None)

    def suspend(self, payer: str) -> None:
        """Charge a payer nothing more, while it is stored that they leave."""
        with self._lock:
            self.require(payer)
            self._gone.add(payer)

    def reinstate(self, payer: str) -> None:
        """Undo a suspension that is known not to be stored."""
        with self._lock:
            self._gone.discard(payer)

    def require(self, payer: str) -> None:
        """Refuse payers who hold no share, or have left."""
        self.share(payer)
        if payer in self._gone:
            raise UnknownPayer(f"{payer} has left.", hint="Only current payers can be charged.")

    def reserve(self, bill: Mapping[str, Fraction]) -> None:
        """Reserve a bill, or refuse it whole where a payer cannot pay."""
        with self._lock:
            for payer, cost in bill.items():
                self.require(payer)
                if cost > self.left(payer):
                    raise OverBudget(
                        f"{payer} has {plain(self.left(payer))} left, and this costs {plain(cost)}.",
                        hint="Ask without paying: earlier measurements still answer questions.",
                    )
            for payer, cost in bill.items():
                self._reserved[payer] += cost

    def release(self, bills: Iterable[Mapping[str, Fraction]]) -> None:
        """Release reservations that are known not to be charged."""
        with self._lock:
            for bill in bills:
                for payer, cost in bill.items():
                    self._reserved[payer] -= cost

    def __repr__(self) -> str:
        parts = (f"{p} {plain(self.spent(p))} of {plain(share)}" for p, share in self._shares.items())
        return f"Accounts({', '.join(parts)})"


def plain(exact: Fraction) -> str:
    """An amount as short decimal text, for messages."""
    return f"{float(exact):.6g}"
