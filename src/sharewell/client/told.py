"""What a service tells beside answers: quotes, budgets, certificates and what a dataset is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from sharewell import wire
from sharewell.client.wording import amount, currency, number, several


@dataclass(frozen=True)
class Offer:
    """A way to have a question answered: what it costs, and how far off the answers may be."""

    cost: Fraction
    #: For each column of numbers the largest standard error over its rows; None where it is not known.
    standard_errors: tuple[float | None, ...]
    #: Where there are averages: for each column that is one, the largest standard errors of its sums and
    #: of its counts.
    averages: tuple[tuple[float, float] | None, ...] = ()

    @classmethod
    def read(cls, told: wire.Offer) -> Offer:
        """An offer as it came over the wire."""
        errors = tuple(pair and pair[0] for pair in told.errors)
        return cls(Fraction(told.cost), errors, told.averages)


@dataclass(frozen=True, repr=False)
class Quote:
    """What a question would cost, and how far off its answers may be; asking for it costs nothing."""

    sql: str
    #: The names of the columns of numbers.
    columns: tuple[str, ...]
    #: How many rows the answer has at the most.
    groups: int
    #: With `pay=True`; None where too little is left.
    paid: Offer | None
    #: With `pay=False`; None where nothing is known yet.
    free: Offer | None
    #: What there is to pay with.
    means: Fraction
    #: What to know before one asks.
    notes: tuple[str, ...] = ()

    @classmethod
    def read(cls, told: wire.Quote) -> Quote:
        """A quote as it came over the wire."""
        return cls(
            told.sql,
            tuple(column.name for column in told.columns if column.kind == "number"),
            told.groups,
            Offer.read(told.paid) if told.paid else None,
            Offer.read(told.free) if told.free else None,
            Fraction(told.means),
            told.notes,
        )

    @property
    def cost(self) -> Fraction | None:
        """What it costs when one pays; 0 where it was bought before, None where it cannot be had."""
        return self.paid.cost if self.paid else None

    def __repr__(self) -> str:
        if self.paid is None:
            first = f"cannot be paid for: {amount(self.means)} is left"
        elif self.paid.cost == 0:
            first = f"free, {self._errors(self.paid)}"
        else:
            first = f"costs {amount(self.paid.cost)} of {amount(self.means)}, {self._errors(self.paid)}"
        lines = [first]
        if self.free is not None and not (self.paid and self.paid.cost == 0):
            lines.append(f"with pay=False: free, {self._errors(self.free)}")
        return "\n".join((*lines, *self.notes))

    def _errors(self, offer: Offer) -> str:
        known = []
        averages = offer.averages or (None,) * len(self.columns)
        for name, error, parts in zip(self.columns, offer.standard_errors, averages, strict=True):
            of = f" ({name})" if len(self.columns) > 1 else ""
            if error is not None:
                known.append(f"{number(error, error)}{of}")
            elif parts is not None:
                total, count = (number(part, part) for part in parts)
                known.append(f"{total} of the sum and {count} of the count{of}")
        if not known:
            return "standard error not known beforehand"
        return f"standard error {'at most ' if self.groups > 1 else ''}{', '.join(known)}"


@dataclass(frozen=True, repr=False)
class Budget:
    """How an analyst stands."""

    analyst: str
    #: "pure" for epsilon, "zcdp" for rho.
    currency: str
    share: Fraction
    spent: Fraction
    left: Fraction
    asked: int
    waiting: int
    #: About how many more questions can be paid for; None where prices are not known beforehand.
    questions_left: int | None

    @classmethod
    def read(cls, told: wire.Budget) -> Budget:
        """A budget as it came over the wire."""
        amounts = (Fraction(told.share), Fraction(told.spent), Fraction(told.left))
        return cls(told.analyst, told.currency, *amounts, told.asked, told.waiting, told.questions_left)

    def __repr__(self) -> str:
        unit = currency(self.currency)
        more = "" if self.questions_left is None else f", for {several(self.questions_left, 'question')}"
        return (
            f"{self.analyst}: {unit} {amount(self.left)} left of {amount(self.share)}{more}; "
            f"{self.asked:,} asked, {self.waiting:,} waiting"
        )


@dataclass(frozen=True, repr=False)
class Analysts:
    """Everybody who may ask, and what nobody holds yet."""

    budgets: tuple[Budget, ...]
    unallocated: Fraction

    @classmethod
    def read(cls, told: wire.Analysts) -> Analysts:
        """The analysts as they came over the wire."""
        return cls(tuple(map(Budget.read, told.analysts)), Fraction(told.unallocated))

    def __iter__(self) -> Iterator[Budget]:
        return iter(self.budgets)

    def __len__(self) -> int:
        return len(self.budgets)

    def __repr__(self) -> str:
        return "\n".join((*map(repr, self), f"nobody holds {amount(self.unallocated)}"))


class Certificate(wire.Certificate):
    """The fairness certificate: how one fares here, and how one would have fared alone."""

    def __repr__(self) -> str:
        return "\n".join((self._verdict(), *map(self._standing, self.analysts), *self._promised()))

    def __str__(self) -> str:
        return repr(self)

    def _verdict(self) -> str:
        if not self.exact:
            return f"The figures of {self.mechanism} depend on the data, so nobody may know them."
        if self.holds is None:
            return "There is nothing to certify yet."
        own = len(self.analysts) == 1 and self.analysts[0].without is None
        who = self.analysts[0].analyst if own else "Nobody" if self.holds else "Somebody"
        verb = "is not worse off" if own and self.holds else "is worse off"
        return f"{who} {verb} for sharing, after {several(self.entries, 'entry', 'entries')}."

    def _standing(self, of: wire.Standing) -> str:
        near = f"within {number(self.error_threshold)} of the truth"
        worse = f"; {several(of.worse_answers, 'answer')} less precise" if of.worse_answers else ""
        return (
            f"{of.analyst}: {number(of.here)} of {of.answers:,} {near}; alone {number(of.alone)}{worse}"
        )

    def _promised(self) -> list[str]:
        return [f"{promise.desideratum}: {promise.status}" for promise in self.promises]


class Dataset(wire.Dataset):
    """What everybody who may ask may know of a dataset."""

    def __repr__(self) -> str:
        budget = f"epsilon {self.epsilon}" + (f", delta {self.delta}" if self.currency == "zcdp" else "")
        paused = ", paused" if self.paused else ""
        people = f", each {self.privacy_unit} counted once" if self.privacy_unit else ""
        price = f", {amount(Fraction(self.query_budget))} a paid question" if self.query_budget else ""
        width = max((len(each.name) for each in self.attributes), default=0)
        return "\n".join(
            (
                f"{self.name}: {self.cells:,} cells, {budget}, {self.mechanism}{price}{people}{paused}",
                *(f"  {each.name.ljust(width)}  {_described(each)}" for each in self.attributes),
            )
        )

    def __str__(self) -> str:
        return repr(self)


def _described(attribute: wire.Attribute) -> str:
    """An attribute's kind and values, and what groupings it has."""
    labels = [str(label) for label in attribute.labels]
    few = ", ".join(labels) if len(labels) <= 6 else f"{', '.join(labels[:3])}, …, {labels[-1]}"
    bins = "".join(f"; {name}: {', '.join(map(str, of))}" for name, of in attribute.bins.items())
    return f"{attribute.kind}: {few}{bins}"
