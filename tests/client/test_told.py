"""What a service tells beside answers, in words."""

from fractions import Fraction

import pytest

from sharewell import wire
from sharewell.client.told import Budget, Certificate, Dataset, Offer, Quote


def quote(paid=None, free=None, columns=("n",), groups=1) -> Quote:
    return Quote("SELECT", columns, groups, paid, free, Fraction(1, 4))


PAID = Offer(Fraction(1, 100), (28.3,))
FREE = Offer(Fraction(0), (141.0,))


@pytest.mark.parametrize(
    ("told", "text"),
    [
        (quote(PAID), "costs 1/100 of 1/4, standard error 28"),
        (
            quote(PAID, FREE),
            "costs 1/100 of 1/4, standard error 28\nwith pay=False: free, standard error 141",
        ),
        (quote(Offer(Fraction(0), (28.3,)), FREE), "free, standard error 28"),
        (
            quote(None, FREE),
            "cannot be paid for: 1/4 is left\nwith pay=False: free, standard error 141",
        ),
        (quote(), "cannot be paid for: 1/4 is left"),
        (quote(PAID, groups=3), "costs 1/100 of 1/4, standard error at most 28"),
        (
            quote(Offer(Fraction(1, 50), (28.0, None)), columns=("n", "AVG(age)")),
            "costs 1/50 of 1/4, standard error 28 (n)",
        ),
        (
            quote(
                Offer(Fraction(1, 50), (28.0, None), (None, (900.0, 28.0))), columns=("n", "AVG(age)")
            ),
            "costs 1/50 of 1/4, standard error 28 (n), 900 of the sum and 28 of the count (AVG(age))",
        ),
        (
            quote(Offer(Fraction(1, 50), (None,))),
            "costs 1/50 of 1/4, standard error not known beforehand",
        ),
    ],
)
def test_a_quote_reads_well(told, text):
    assert repr(told) == text


def test_a_quote_knows_its_cost():
    assert quote(PAID).cost == Fraction(1, 100)
    assert quote(Offer(Fraction(0), (1.0,))).cost == 0
    assert quote(None, FREE).cost is None


def test_a_quote_is_read_with_the_largest_error_of_each_column_of_numbers():
    told = wire.Quote(
        sql="SELECT",
        columns=(wire.Column(name="sex", kind="group"), wire.Column(name="n", kind="number")),
        groups=2,
        paid=wire.Offer(cost="1/100", errors=((30.0, 20.0),)),
        free=None,
        means="1/4",
    )
    assert Quote.read(told) == Quote(
        "SELECT", ("n",), 2, Offer(Fraction(1, 100), (30.0,)), None, Fraction(1, 4)
    )


def test_a_budget_whose_prices_are_not_known_says_nothing_of_them():
    budget = Budget("ann", "zcdp", Fraction(1, 3), Fraction(0), Fraction(1, 3), 1200, 1, None)
    assert repr(budget) == "ann: rho 1/3 left of 1/3; 1,200 asked, 1 waiting"


def standing(name="ann", without=None, worse=0) -> wire.Standing:
    return wire.Standing(
        analyst=name,
        answers=13,
        here=12.0,
        alone=9.5,
        without=without,
        ratio=0.8,
        interference=1.0,
        worse_answers=worse,
    )


def certificate(*analysts, exact=True, holds: bool | None = True) -> Certificate:
    return Certificate(
        mechanism="Private Multiplicative Weights",
        scheduler="none",
        error_threshold=100.0,
        entries=2,
        exact=exact,
        holds=holds,
        worst_ratio=None,
        worst_interference=None,
        analysts=analysts,
        promises=(
            wire.Promise(
                desideratum="sharing incentive", meaning="", status="proven", assumptions=(), page=""
            ),
        ),
    )


@pytest.mark.parametrize(
    ("told", "first"),
    [
        (certificate(standing()), "ann is not worse off for sharing, after 2 entries."),
        (certificate(standing(), holds=False), "ann is worse off for sharing, after 2 entries."),
        (certificate(standing(without={})), "Nobody is worse off for sharing, after 2 entries."),
        (
            certificate(standing(without={}), standing("ben", {}), holds=False),
            "Somebody is worse off for sharing, after 2 entries.",
        ),
        (certificate(holds=None), "There is nothing to certify yet."),
        (
            certificate(exact=False, holds=None),
            "The figures of Private Multiplicative Weights depend on the data, so nobody may know them.",
        ),
    ],
)
def test_a_certificate_begins_with_its_verdict(told, first):
    assert repr(told).splitlines()[0] == str(told).splitlines()[0] == first


def test_a_certificate_says_how_everybody_fares_and_what_is_promised():
    assert repr(certificate(standing(), standing("ben", worse=1))).splitlines()[1:] == [
        "ann: 12 of 13 within 100 of the truth; alone 9.5",
        "ben: 12 of 13 within 100 of the truth; alone 9.5; 1 answer less precise",
        "sharing incentive: proven",
    ]


def test_a_dataset_reads_well():
    dataset = Dataset(
        name="visits",
        attributes=(
            wire.Attribute(
                name="age", kind="integer", size=100, labels=tuple(range(100)), bins={"of_age": (0, 18)}
            ),
            wire.Attribute(name="ward", kind="category", size=2, labels=("north", None)),
        ),
        cells=200,
        currency="zcdp",
        epsilon="1",
        delta="1/1000000",
        total="24355970357/1000000000000",
        neighbours="add-remove",
        population=None,
        error_threshold=20.0,
        mechanism="Seeded Cache and Reconstruct",
        query_budget="24355970357/100000000000000",
        scheduler="none",
        release_every=0.01,
        promises=(),
        paused=True,
    )
    assert repr(dataset).splitlines() == [
        "visits: 200 cells, epsilon 1, delta 1/1000000, Seeded Cache and Reconstruct, "
        "0.0002436 a paid question, paused",
        "  age   integer: 0, 1, 2, …, 99; of_age: 0, 18",
        "  ward  category: north, None",
    ]
