"""The curator: the only object that holds the data, and the only way to learn anything from it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from sharewell.engine.data_vector import DataVector
from sharewell.errors import PrivacyError, UnknownPayer
from sharewell.privacy.accounts import Accounts, Payer
from sharewell.privacy.budget import Amount, Budget, amount
from sharewell.privacy.ledger import Armed, Charged, Exceeded, Ledger, MemoryLedger, Opened, Released
from sharewell.privacy.noise import (
    ExactNoise,
    Noise,
    gaussian_scale,
    gaussian_variance,
    laplace_scale,
    laplace_variance,
)
from sharewell.privacy.sparse_vector import SparseVector, SparseVectorPlan
from sharewell.query.block import Block, Measurable, Neighbours
from sharewell.query.domain import Domain
from sharewell.query.linear import LinearQuery

#: Makes a block from its plain data.
Decode = Callable[[Domain, Mapping[str, Any]], Measurable]


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
        if not isinstance(data, DataVector) or not isinstance(budget, Budget):
            raise PrivacyError(
                "A curator needs a data vector and a budget.",
                hint='Make them with vectorize(...) and Budget.pure("1").',
            )
        if neighbours not in get_args(Neighbours):
            raise PrivacyError(
                f"Tables cannot be neighbours by {neighbours!r}.",
                hint='Use "add-remove" or "replace-one".',
            )
        self.budget = budget
        self.neighbours = neighbours
        self._data = data
        self._only: str | None = None
        self._noise = ExactNoise() if noise is None else noise
        self._ledger = MemoryLedger() if ledger is None else ledger
        promise = (budget.currency, budget.epsilon, budget.delta, budget.total, neighbours)
        self._accounts = Accounts(
            budget, shares, self._ledger, Opened(*promise, data.domain.fingerprint)
        )

    @property
    def domain(self) -> Domain:
        """The public domain of the data."""
        return self._data.domain

    @property
    def payers(self) -> tuple[str, ...]:
        """Everybody who holds a share and has not left; in a view, its own payer."""
        payers = self._accounts.payers
        return payers if self._only is None else tuple(p for p in payers if p == self._only)

    def share(self, payer: str) -> Fraction:
        """What a payer was given."""
        return self._accounts.share(payer)

    def spent(self, payer: str) -> Fraction:
        """What a payer has been charged so far."""
        return self._accounts.spent(payer)

    def left(self, payer: str) -> Fraction:
        """What a payer may still spend."""
        return self._accounts.left(payer)

    def grant(self, payer: str, share: Amount) -> None:
        """Give a new payer a share of what nobody holds yet."""
        self._accounts.grant(payer, share)

    def retire(self, payer: str) -> None:
        """Let a payer go: what they have left stays unspent for good."""
        self._accounts.retire(payer)

    def alone(self, payer: str) -> Curator:
        """The same curator, ledger and budget, as if this payer were the only one."""
        self._accounts.require(payer)
        view = copy(self)
        view._only = payer
        return view

    def scales(self, block: Measurable, cost: Amount) -> NDArray[np.float64]:
        """The scale of the noise on each row that a cost buys for a block; public."""
        exact = amount(cost, "The cost")
        if block.domain != self.domain:
            raise PrivacyError("The block is over another domain than the data.")
        units = block.units(self.neighbours)
        if self.budget.currency == "pure":
            sensitivity = block.l1_sensitivity(self.neighbours)
            return _per_value(units, lambda unit: laplace_scale(unit * sensitivity, exact))
        squared = block.l2_sensitivity_squared(self.neighbours)
        return _per_value(units, lambda unit: gaussian_scale(unit**2 * squared, exact))

    def variances(self, block: Measurable, cost: Amount) -> NDArray[np.float64]:
        """The exact variance of each value that a cost buys for a block; public, spends nothing."""
        return self._variances(self.scales(block, cost))

    def _variances(self, scales: NDArray[np.float64]) -> NDArray[np.float64]:
        pure = self.budget.currency == "pure"
        return _per_value(scales, laplace_variance if pure else gaussian_variance)

    def measure(self, block: Measurable | LinearQuery, cost: Amount, payer: Payer) -> Measurement:
        """Every row of a block, or one query, with exact discrete noise, for a cost charged first.

        Privacy: costs `cost`. Trusts the block's sensitivity, which is computed from public weights.
        """
        if isinstance(block, LinearQuery):
            block = Block(block.domain, [block])
        if not hasattr(block, "l1_sensitivity"):
            raise PrivacyError(
                f"A {type(block).__name__} cannot be measured.",
                hint="Give a query or a block, such as those of compile_sql(...).blocks.",
            )
        exact = amount(cost, "The cost")
        bill = self._bill(exact, payer)
        if not len(block):
            raise PrivacyError("There is nothing to measure: the block has no rows.")
        scales = self.scales(block, exact)
        purpose = {"measure": block.to_json(), "scales": [scale.hex() for scale in scales.tolist()]}
        charge = self._accounts.charge(bill, purpose)
        values = self._draw(scales)
        values += block.answers(self._data.counts)
        values.flags.writeable = False
        self._ledger.append(Released(charge, tuple(values.tolist())))
        return Measurement(block, values, self._variances(scales), exact, bill, charge)

    def _draw(self, scales: NDArray[np.float64]) -> NDArray[np.int64]:
        """Fresh noise of these scales, drawn together for all rows that have the same one."""
        draw = self._noise.laplace if self.budget.currency == "pure" else self._noise.gaussian
        noise = np.zeros(len(scales), dtype=np.int64)
        if len(scales) == 1:
            return draw(scales.item(), 1) if scales.item() else noise
        for scale in np.unique(scales[scales > 0]).tolist():
            rows = scales == scale
            noise[rows] = draw(scale, int(rows.sum()))
        return noise

    def history(self, decode: Decode) -> Iterator[Measurement]:
        """Every measurement that the ledger holds, in order, as it was released.

        A view sees what its own payer paid for alone.
        """
        charges: dict[int, Charged] = {}
        for number, event in enumerate(self._ledger.events()):
            if isinstance(event, Charged) and "measure" in event.purpose and self._sees(event):
                charges[number] = event
            elif isinstance(event, Released) and event.charge in charges:
                charged = charges[event.charge]
                block = decode(self.domain, charged.purpose["measure"])
                scales = np.array([float.fromhex(scale) for scale in charged.purpose["scales"]])
                values = np.array(event.values, dtype=np.int64)
                cost = sum(charged.bill.values(), Fraction(0))
                variances = self._variances(scales)
                yield Measurement(block, values, variances, cost, charged.bill, event.charge)

    def sparse_vector(
        self, *, epsilon: Amount, threshold: int, positives: int, payer: Payer, sensitivity: int = 1
    ) -> SparseVector:
        """A sparse vector over the data, paid for in full before its first test.

        Privacy: costs epsilon in the pure currency, epsilon^2 / 2 as rho, for all of its tests.
        """
        exact = amount(epsilon, "epsilon")
        plan = SparseVectorPlan(exact, threshold, positives, sensitivity, self.neighbours)
        bill = self._bill(self.budget.cost_of_pure(exact), payer)
        charge = self._accounts.charge(bill, {"sparse_vector": plan.to_json()})
        armed = Armed(charge, plan.arm(self._noise))
        self._ledger.append(armed)
        return self._armed(plan, armed, positives)

    def sparse_vectors(self) -> list[SparseVector]:
        """The sparse vectors that the ledger holds, with the positives that each has left."""
        plans: dict[int, SparseVectorPlan] = {}
        armed: dict[int, Armed] = {}
        used: Counter[int] = Counter()
        for number, event in enumerate(self._ledger.events()):
            if isinstance(event, Charged) and "sparse_vector" in event.purpose and self._sees(event):
                plans[number] = SparseVectorPlan.from_json(event.purpose["sparse_vector"])
            elif isinstance(event, Armed) and event.charge in plans:
                armed[event.charge] = event
            elif isinstance(event, Exceeded):
                used[event.charge] += 1
        return [
            self._armed(plans[charge], event, plans[charge].positives - used[charge])
            for charge, event in armed.items()
        ]

    def _armed(self, plan: SparseVectorPlan, armed: Armed, positives_left: int) -> SparseVector:
        def answer(query: LinearQuery) -> int:
            return int(query.dot(self._data.counts))

        def record(query: LinearQuery, guess: int) -> None:
            self._ledger.append(Exceeded(armed.charge, query.to_json(), guess))

        threshold = armed.noisy_threshold
        return SparseVector(plan, self.domain, answer, self._noise, record, threshold, positives_left)

    def _bill(self, cost: Fraction, payer: Payer) -> Mapping[str, Fraction]:
        bill = self._accounts.bill(cost, payer)
        if strangers := sorted(set(bill) - set(self.payers)):
            raise UnknownPayer(f"{strangers[0]} does not pay here.")
        return bill

    def _sees(self, charged: Charged) -> bool:
        """Whether a charge belongs to this view."""
        return self._only is None or set(charged.bill) == {self._only}

    def __repr__(self) -> str:
        return f"Curator({self.domain.size:,} cells, {self.budget.currency}, {self._accounts})"


def _per_value(array: NDArray[Any], of_value: Callable[[Any], float]) -> NDArray[np.float64]:
    """A function of each number, computed once for equal ones."""
    if len(array) == 1:
        return np.array([of_value(array.item())], dtype=np.float64)
    different, where = np.unique(array, return_inverse=True)
    return np.array([of_value(value) for value in different.tolist()], dtype=np.float64)[where]
