"""Accounts: who holds which share of the budget, and what has been charged to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from threading import RLock
from types import MappingProxyType
from typing import Any

from sharewell.errors import LedgerUnavailable, OverBudget, PrivacyError, UnknownPayer
from sharewell.privacy.budget import Amount, Budget, amount
from sharewell.privacy.ledger import Charged, Event, Granted, Ledger, Left, Opened

#: Who pays: one name, or what each of several pays.
Payer = str | Mapping[str, Fraction]


class Accounts:
    """The shares of one budget, in step with a ledger.

    In memory a share is taken and an amount is set aside *before* the ledger is told. Should the
    ledger fail, and be not certain that it stored nothing, the amount stays taken: a failure can waste
    budget and never hides a spend.

    Privacy: no charge passes its payer's share, and no shares pass the total, from any thread.
    """

    def __init__(
        self, budget: Budget, shares: Mapping[str, Amount], ledger: Ledger, opened: Opened
    ) -> None:
        self.budget = budget
        self._ledger = ledger
        self._lock = RLock()
        self._shares: dict[str, Fraction] = {}
        #: What everybody may still spend, or might if they had not left.
        self._left: dict[str, Fraction] = {}
        self._gone: set[str] = set()
        if not isinstance(shares, Mapping):
            raise PrivacyError("Shares are given by name.", hint='Write {"ann": "1/2", "ben": "1/2"}.')
        stated = {payer: amount(share, f"The share of {payer}") for payer, share in shares.items()}
        self._check_names(stated)
        if sum(stated.values(), Fraction(0)) > budget.total:
            raise OverBudget(
                "The shares together are more than the total.",
                hint=f"They may sum to {plain(budget.total)} at the most.",
            )
        self._reopen(opened)
        for payer, share in stated.items():
            if payer not in self._shares:
                self.grant(payer, share)
            elif self._shares[payer] != share:
                raise PrivacyError(
                    f"The ledger gives {payer} another share than was stated: {self._shares[payer]}.",
                    hint="State the share that it began with; shares cannot be changed.",
                )

    def _reopen(self, opened: Opened) -> None:
        """Take up what the ledger already holds, or begin it."""
        events = list(self._ledger.events())
        if not events:
            self._ledger.append(opened)
            return
        if events[0] != opened:
            raise _begun_otherwise(events[0], opened)
        for event in events:
            if isinstance(event, Granted):
                self._shares[event.payer] = event.share
                self._left[event.payer] = event.share
            elif isinstance(event, Charged):
                for payer, cost in event.bill.items():
                    self._left[payer] -= cost
            elif isinstance(event, Left):
                self._gone.add(event.payer)
        overdrawn = any(left < 0 for left in self._left.values())
        if overdrawn or sum(self._shares.values(), Fraction(0)) > self.budget.total:
            raise PrivacyError("The ledger has spent more than there is.", hint="Do not go on with it.")

    @property
    def payers(self) -> tuple[str, ...]:
        """Everybody who holds a share and has not left."""
        return tuple(payer for payer in tuple(self._shares) if payer not in self._gone)

    def __contains__(self, payer: object) -> bool:
        """Whether somebody holds a share and has not left."""
        return payer in self._shares and payer not in self._gone

    def share(self, payer: str) -> Fraction:
        """What a payer was given."""
        return self._of(payer, self._shares)

    def spent(self, payer: str) -> Fraction:
        """What a payer has been charged so far."""
        return self.share(payer) - self._left[payer]

    def left(self, payer: str) -> Fraction:
        """What a payer may still spend: nothing once they have left."""
        left = self._of(payer, self._left)
        return Fraction(0) if payer in self._gone else left

    @property
    def unallocated(self) -> Fraction:
        """What nobody holds, nor has held."""
        return self.budget.total - sum(tuple(self._shares.values()), Fraction(0))

    def grant(self, payer: str, share: Amount) -> None:
        """Give a new payer a share of what nobody holds yet."""
        exact = amount(share, f"The share of {payer}")
        self._check_names([payer])
        with self._lock:
            if payer in self._shares:
                raise PrivacyError(
                    f"{payer} already holds a share, or has held one.",
                    hint="Whoever is here and has lost their token needs a new token, not a new share.",
                )
            free = self.unallocated
            if exact > free:
                raise OverBudget(
                    f"The share of {payer} is more than what is left of the total.",
                    hint=f"At most {plain(free)} can be given.",
                )
            self._shares[payer] = exact
            self._left[payer] = exact
            try:
                self._ledger.append(Granted(payer, exact))
            except BaseException as failure:
                # Nobody may pay with a share that the ledger does not know of. Unless it is certain
                # that it does not, nobody else may be given it either.
                self._gone.add(payer)
                if isinstance(failure, LedgerUnavailable) and not failure.uncertain:
                    del self._shares[payer], self._left[payer]
                    self._gone.discard(payer)
                raise

    def retire(self, payer: str) -> None:
        """Let a payer go: what they have left stays unspent for good."""
        with self._lock:
            self.require(payer)
            self._gone.add(payer)
            self._ledger.append(Left(payer))

    def require(self, payer: str) -> None:
        """Refuse those who hold no share, or have left."""
        self.share(payer)
        if payer in self._gone:
            raise UnknownPayer(f"{payer} has left.", hint="Only those who hold a share can pay.")

    def bill(self, cost: Fraction, payer: Payer) -> Mapping[str, Fraction]:
        """What each payer pays, in exact amounts that sum to the cost."""
        if isinstance(payer, str):
            self.require(payer)
            return MappingProxyType({payer: cost})
        if not isinstance(payer, Mapping):
            raise UnknownPayer(
                "Somebody must pay.", hint="Name one payer, or what each of several pays."
            )
        bill = {name: amount(part, f"What {name} pays") for name, part in payer.items()}
        for name in bill:
            self.require(name)
        if sum(bill.values(), Fraction(0)) != cost:
            raise PrivacyError("What the payers pay together is not the cost.")
        return MappingProxyType(bill)

    def reserve(self, bill: Mapping[str, Fraction]) -> None:
        """Set a bill aside: from now on nobody else can spend it."""
        with self._lock:
            left: dict[str, Fraction] = {}
            for payer, cost in bill.items():
                self.require(payer)
                left[payer] = self._left[payer] - cost
                if left[payer] < 0:
                    raise OverBudget(
                        f"{payer} has {plain(self._left[payer])} left, and this costs {plain(cost)}.",
                        hint="What has been measured before can still be answered from.",
                    )
            self._left.update(left)

    def free(self, bill: Mapping[str, Fraction]) -> None:
        """Give up a reservation that was never charged: nothing was stored and no data was touched."""
        with self._lock:
            for payer, cost in bill.items():
                self._left[payer] += cost

    def charge(self, charges: Sequence[Charged], *, after: Sequence[Event] = ()) -> list[int]:
        """Charge what was reserved for good: the charges' numbers, when the ledger has stored them.

        `after` are events that are stored before them in the same breath. Where the ledger is certain
        to have stored nothing, the reservations are given up.
        """
        # Outside the lock, so that a durable ledger may store many charges at once.
        try:
            first = self._ledger.append_many([*after, *charges]) + len(after)
        except LedgerUnavailable as failure:
            if not failure.uncertain:
                for charged in charges:
                    self.free(charged.bill)
            raise
        return list(range(first, first + len(charges)))

    def _check_names(self, payers: Any) -> None:
        for payer in payers:
            if not isinstance(payer, str) or not payer:
                raise PrivacyError(f"A payer must have a name, not {payer!r}.")

    def _of(self, payer: str, amounts: Mapping[str, Fraction]) -> Fraction:
        try:
            return amounts[payer]
        except (KeyError, TypeError):
            raise UnknownPayer(
                f"Nobody called {payer!r} holds a share.",
                hint=f"These do: {', '.join(self.payers) or 'nobody yet'}.",
            ) from None

    def __repr__(self) -> str:
        parts = (f"{p} {plain(self.spent(p))} of {plain(share)}" for p, share in self._shares.items())
        return f"Accounts({', '.join(parts)})"


def _begun_otherwise(begun: Event, now: Opened) -> PrivacyError:
    """Says in what a ledger differs from what it was opened with."""
    told = "The ledger was begun with something else."
    if isinstance(begun, Opened) and begun.domain != now.domain:
        told = "The ledger was begun with other columns, or with other values of theirs, than these."
    elif isinstance(begun, Opened):
        for name in ("currency", "epsilon", "delta", "total", "neighbours"):
            then, here = getattr(begun, name), getattr(now, name)
            if then != here:
                told = f"The ledger was begun with {name} = {then}, and this is {name} = {here}."
                break
    return PrivacyError(
        told,
        hint="Set it back: what was spent was spent under it. Only other data may begin another ledger.",
    )


def plain(exact: Fraction) -> str:
    """An amount as short decimal text, for people."""
    return f"{float(exact):.6g}"
