"""The curator: the only object that holds the data, and the only way to learn anything from it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from threading import Lock
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from sharewell.engine.data_vector import DataVector
from sharewell.errors import OverBudget, PrivacyError, UnknownPayer
from sharewell.privacy.budget import Amount, Budget, amount
from sharewell.privacy.ledger import (
    Charged,
    Exceeded,
    Granted,
    Ledger,
    MemoryLedger,
    Opened,
    Released,
)
from sharewell.privacy.noise import (
    ExactNoise,
    Noise,
    gaussian_scale,
    gaussian_variance,
    laplace_scale,
    laplace_variance,
)
from sharewell.privacy.sparse_vector import SparseVector, SparseVectorPlan
from sharewell.query.block import Measurable, Neighbours
from sharewell.query.domain import Domain
from sharewell.query.linear import LinearQuery

#: Who pays: one name, or what each of several pays.
Payer = str | Mapping[str, Fraction]


@dataclass(frozen=True)
class Measurement:
    """A block's noisy values, public from now on, and the exact variance of each.

    `charge` is the number of its event in the ledger.
    """

    block: Measurable
    values: NDArray[np.int64]
    variances: NDArray[np.float64]
    cost: Fraction
    bill: Mapping[str, Fraction]
    charge: int


class Curator:
    """Holds a data vector and a budget; `measure` and a sparse vector's `exceeds` are the only ways in.

    Every verb keeps to one order: check what is public, charge, wait until the ledger has stored the
    charge, only then draw noise and touch the data, store what is released, return it. A charge is
    never given back. After it, nothing that happens depends on a true count except the value itself.

    Privacy: all measurements and tests together cost at most `budget.total`, in its currency.
    """

    def __init__(
        self,
        data: DataVector,
        budget: Budget,
        shares: Mapping[str, Amount],
        *,
        neighbours: Neighbours = "add-remove",
        noise: Noise | None = None,
        ledger: Ledger | None = None,
    ) -> None:
        if neighbours not in get_args(Neighbours):
            raise PrivacyError(
                f"Tables cannot be neighbours by {neighbours!r}.",
                hint='Use "add-remove" or "replace-one".',
            )
        self._data = data
        self._noise = ExactNoise() if noise is None else noise
        self._ledger = MemoryLedger() if ledger is None else ledger
        self._lock = Lock()
        self._shares: dict[str, Fraction] = {}
        self._spent: dict[str, Fraction] = {}
        self.budget = budget
        self.neighbours = neighbours
        self._reopen(Opened(budget.currency, budget.total, neighbours, data.domain.shape))
        for payer, share in shares.items():
            if payer not in self._shares:
                self.grant(payer, share)
            elif self._shares[payer] != amount(share, f"The share of {payer}"):
                raise PrivacyError(f"The ledger gives {payer} another share than was stated.")

    def _reopen(self, opened: Opened) -> None:
        """Take up what the ledger already holds, or begin it."""
        events = list(self._ledger.events())
        if not events:
            self._ledger.append(opened)
        elif events[0] != opened:
            raise PrivacyError(
                "The ledger belongs to another dataset, budget or notion of neighbours.",
                hint="Open it with the settings that it began with, or begin a new one.",
            )
        for event in events:
            if isinstance(event, Granted):
                self._shares[event.payer] = event.share
                self._spent.setdefault(event.payer, Fraction(0))
            elif isinstance(event, Charged):
                for payer, cost in event.bill.items():
                    self._spent[payer] += cost

    @property
    def domain(self) -> Domain:
        """The public domain of the data."""
        return self._data.domain

    @property
    def payers(self) -> tuple[str, ...]:
        """Everybody who holds a share."""
        return tuple(self._shares)

    def share(self, payer: str) -> Fraction:
        """What a payer was given."""
        return self._of(payer, self._shares)

    def spent(self, payer: str) -> Fraction:
        """What a payer has been charged so far."""
        return self._of(payer, self._spent)

    def left(self, payer: str) -> Fraction:
        """What a payer may still spend."""
        return self.share(payer) - self.spent(payer)

    def grant(self, payer: str, share: Amount) -> None:
        """Give a new payer a share of what nobody holds yet."""
        exact = amount(share, f"The share of {payer}")
        if not isinstance(payer, str) or not payer:
            raise PrivacyError(f"A payer must have a name, not {payer!r}.")
        with self._lock:
            if payer in self._shares:
                raise PrivacyError(f"{payer} already holds a share.")
            free = self.budget.total - sum(self._shares.values())
            if exact > free:
                raise OverBudget(
                    f"The share of {payer} is more than what is left of the total.",
                    hint=f"At most {float(free):g} can be given.",
                )
            self._ledger.append(Granted(payer, exact))
            self._shares[payer] = exact
            self._spent[payer] = Fraction(0)

    def scales(self, block: Measurable, cost: Amount) -> NDArray[np.float64]:
        """The scale of the noise on each row that a cost buys for a block; public."""
        exact = amount(cost, "The cost")
        if block.domain != self.domain:
            raise PrivacyError("The block is over another domain than the data.")
        if self.budget.currency == "pure":
            sensitivity = block.l1_sensitivity(self.neighbours)
            return _per_unit(block.units, lambda unit: laplace_scale(unit * sensitivity, exact))
        squared = block.l2_sensitivity_squared(self.neighbours)
        return _per_unit(block.units, lambda unit: gaussian_scale(unit**2 * squared, exact))

    def variances(self, block: Measurable, cost: Amount) -> NDArray[np.float64]:
        """The exact variance of each value that a cost buys for a block; public, spends nothing."""
        variance = laplace_variance if self.budget.currency == "pure" else gaussian_variance
        return _per_unit(self.scales(block, cost), variance)

    def measure(self, block: Measurable, cost: Amount, payer: Payer) -> Measurement:
        """Every row of a block with exact discrete noise, for a cost that is charged first.

        Privacy: costs `cost`. Trusts the block's sensitivity, which is computed from public weights.
        """
        exact = amount(cost, "The cost")
        bill = self._bill(exact, payer)
        if not len(block):
            raise PrivacyError("There is nothing to measure: the block has no rows.")
        scales = self.scales(block, exact)
        variances = self.variances(block, exact)
        purpose = {"measure": block.to_json(), "scales": [scale.hex() for scale in scales.tolist()]}
        charge = self._charge(bill, purpose)
        values = block.answers(self._data.counts) + self._draw(scales)
        values.flags.writeable = False
        self._ledger.append(Released(charge, tuple(values.tolist())))
        return Measurement(block, values, variances, exact, bill, charge)

    def _draw(self, scales: NDArray[np.float64]) -> NDArray[np.int64]:
        """Fresh noise of these scales, drawn together for all rows that have the same one."""
        draw = self._noise.laplace if self.budget.currency == "pure" else self._noise.gaussian
        noise = np.zeros(len(scales), dtype=np.int64)
        for scale in np.unique(scales[scales > 0]).tolist():
            rows = scales == scale
            noise[rows] = draw(scale, int(rows.sum()))
        return noise

    def sparse_vector(
        self, *, epsilon: Amount, threshold: int, positives: int, payer: Payer, sensitivity: int = 1
    ) -> SparseVector:
        """A sparse vector over the data, paid for in full before its first test.

        Privacy: costs epsilon in the pure currency, epsilon^2 / 2 as rho, for all of its tests.
        """
        exact = amount(epsilon, "epsilon")
        plan = SparseVectorPlan(exact, threshold, positives, sensitivity, self.neighbours)
        bill = self._bill(self.budget.cost_of_pure(exact), payer)
        purpose = {"epsilon": str(exact), "threshold": threshold, "positives": positives}
        charge = self._charge(bill, {"sparse_vector": {**purpose, "sensitivity": sensitivity}})

        def answer(query: LinearQuery) -> int:
            return int(query.dot(self._data.counts))

        def record(query: LinearQuery, guess: int) -> None:
            self._ledger.append(Exceeded(charge, query.to_json(), guess))

        return SparseVector(plan, answer, self._noise, record)

    def _bill(self, cost: Fraction, payer: Payer) -> Mapping[str, Fraction]:
        bill = {payer: cost} if isinstance(payer, str) else dict(payer)
        for name, part in bill.items():
            self.share(name)
            amount(part, f"What {name} pays")
        if sum(bill.values()) != cost:
            raise PrivacyError("What the payers pay together is not the cost.")
        return bill

    def _charge(self, bill: Mapping[str, Fraction], purpose: Mapping[str, Any]) -> int:
        """Charge a bill for good, and return only when the ledger has stored it."""
        with self._lock:
            for payer, cost in bill.items():
                if self._spent[payer] + cost > self._shares[payer]:
                    raise OverBudget(
                        f"{payer} has {_plain(self.left(payer))} left, and this costs {_plain(cost)}.",
                        hint="Ask for something that has been measured already, which is free.",
                    )
            for payer, cost in bill.items():
                self._spent[payer] += cost
        # Outside the lock, so that a durable ledger may store many charges at once. Should it fail,
        # the amount stays spent in memory: whether it reached the disk is not known.
        return self._ledger.append(Charged(bill, purpose))

    def _of(self, payer: str, amounts: Mapping[str, Fraction]) -> Fraction:
        try:
            return amounts[payer]
        except (KeyError, TypeError):
            raise UnknownPayer(
                f"Nobody called {payer!r} holds a share.",
                hint=f"There are {', '.join(self._shares)}.",
            ) from None

    def __repr__(self) -> str:
        spent = {
            payer: f"{_plain(self._spent[payer])} of {_plain(s)}" for payer, s in self._shares.items()
        }
        return f"Curator({self.domain.size:,} cells, {self.budget.currency}, spent {spent})"


def _plain(exact: Fraction) -> str:
    """An amount as short decimal text; exact where it is short anyway."""
    return f"{float(exact):.6g}"


def _per_unit(units: NDArray[Any], of_unit: Callable[[Any], float]) -> NDArray[np.float64]:
    """A function of each number, computed once for equal ones."""
    different, where = np.unique(units, return_inverse=True)
    return np.array([of_unit(unit) for unit in different.tolist()], dtype=np.float64)[where]
