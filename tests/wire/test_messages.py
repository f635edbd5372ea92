"""Quotes, budgets, certificates and descriptions of datasets, as text."""

from fractions import Fraction

import pytest

from sharewell import wire
from sharewell.errors import SharewellError, Suggestion
from sharewell.wire import Offer, Quote


def quote(paid=None, free=None, columns=("n",), groups=1) -> Quote:
    numbers = tuple(wire.ResultColumn(name=name, kind="number") for name in columns)
    return Quote(
        sql="SELECT", columns=numbers, groups=groups, paid=paid, free=free, means=Fraction(1, 4)
    )


def offer(cost, errors, **more) -> Offer:
    pairs = tuple(error and (error, error / 2) for error in errors)
    return Offer(cost=Fraction(cost), errors=pairs, **more)


PAID = offer("1/100", (28.3,))
FREE = offer(0, (141.0,))


@pytest.mark.parametrize(
    ("told", "text"),
    [
        (
            quote(PAID),
            "needs a paid question: costs 1/100 of 1/4, standard error 28; nothing free",
        ),
        (
            quote(PAID, FREE),
            "costs 1/100 of 1/4, standard error 28\nwith pay=False: free, standard error 141",
        ),
        (quote(offer("0", (28.3,)), FREE), "free, standard error 28"),
        (
            quote(None, FREE),
            "cannot be paid for: 1/4 is left\nwith pay=False: free, standard error 141",
        ),
        (quote(), "cannot be paid for: 1/4 is left"),
        (
            quote(PAID, groups=3),
            "needs a paid question: costs 1/100 of 1/4, standard error at most 28; nothing free",
        ),
        (
            quote(offer("0", (28.0, None)), columns=("n", "AVG(age)")),
            "free, standard error 28 (n)",
        ),
        (
            quote(
                offer("0", (28.0, 0.31), group_sizes=(None, (5000, 5000))), columns=("n", "AVG(wage)")
            ),
            "free, standard error 28 (n), 0.31 for a group of 5,000 (AVG(wage))",
        ),
        (
            quote(offer("1/50", (None,))),
            "needs a paid question: costs 1/50 of 1/4, standard error not known in advance; "
            "nothing free",
        ),
        (
            quote(offer("0", (28.0,), undetermined=2), groups=9),
            "free, standard error at most 28; 2 numbers not determined",
        ),
    ],
)
def test_a_quote_reads_well(told, text):
    assert repr(told) == text


def test_a_quote_knows_its_cost():
    assert quote(PAID).cost == Fraction(1, 100)
    assert quote(offer("0", (1.0,))).cost == 0
    assert quote(None, FREE).cost is None


def test_a_quote_is_read_with_the_largest_error_of_each_column_of_numbers():
    told = wire.Quote(
        sql="SELECT",
        columns=(
            wire.ResultColumn(name="sex", kind="group"),
            wire.ResultColumn(name="n", kind="number"),
        ),
        groups=2,
        paid=wire.Offer(cost=Fraction(1, 100), errors=((30.0, 20.0),)),
        free=None,
        means=Fraction(1, 4),
    )
    assert told.number_columns == ("n",)
    assert told.paid is not None
    assert told.paid.standard_errors == (30.0,)


def test_a_budget_whose_prices_are_not_known_says_nothing_of_them():
    budget = wire.BudgetStatus(
        analyst="ann",
        currency="zcdp",
        part=Fraction(1),
        share=Fraction(1, 3),
        spent=Fraction(0),
        left=Fraction(1, 3),
        asked=1200,
        waiting=1,
        questions_left=None,
    )
    assert repr(budget) == "ann: rho 1/3 left of 1/3; 1,200 asked, 1 waiting"


def standing(name="ann", without=None, worse=0) -> wire.AnalystStanding:
    return wire.AnalystStanding(
        analyst=name,
        answers=13,
        here=12.0,
        alone=9.5,
        without=without,
        ratio=0.8,
        interference=1.0,
        worse_answers=worse,
    )


def certificate(*analysts, exact=True, holds: bool | None = True) -> wire.CertificateReport:
    return wire.CertificateReport(
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
            wire.PromiseInfo(
                desideratum="sharing incentive", meaning="", status="proven", assumptions=(), page=""
            ),
        ),
    )


@pytest.mark.parametrize(
    ("told", "first"),
    [
        (certificate(standing()), "ann is not worse off for sharing, after 2 entries."),
        (certificate(standing(), holds=False), "ann is worse off for sharing, after 2 entries."),
        (certificate(standing(without={})), "No analyst is worse off for sharing, after 2 entries."),
        (
            certificate(standing(without={}), standing("ben", {}), holds=False),
            "At least one analyst is worse off for sharing, after 2 entries.",
        ),
        (certificate(holds=None), "No answer has been judged yet."),
        (
            certificate(holds=None).model_copy(update={"behind": 1}),
            "No answer has been judged yet. 1 entry is waiting.",
        ),
        (
            certificate(exact=False, holds=None),
            "The certificate of Private Multiplicative Weights depends on the data and cannot be "
            "published.",
        ),
    ],
)
def test_a_certificate_begins_with_its_verdict(told, first):
    assert repr(told).splitlines()[0] == str(told).splitlines()[0] == first


def test_a_certificate_says_how_everybody_fares_and_what_is_promised():
    assert repr(certificate(standing(), standing("ben", worse=1))).splitlines()[1:] == [
        "ann: 12 of 13 with an expected error of at most 100; alone 9.5",
        "ben: 12 of 13 with an expected error of at most 100; alone 9.5; 1 answer less precise",
        "sharing incentive: proven",
    ]


def test_a_dataset_reads_well():
    dataset = wire.DatasetInfo(
        name="visits",
        attributes=(
            wire.AttributeInfo(
                name="age", kind="integer", size=100, labels=tuple(range(100)), bins={"of_age": (0, 18)}
            ),
            wire.AttributeInfo(name="ward", kind="category", size=2, labels=("north", None)),
        ),
        measures=(wire.MeasureInfo(name="cost", low=0, high=80_000, step=0.01, nullable=True),),
        cells=200,
        currency="zcdp",
        epsilon=Fraction(1),
        delta=Fraction(1, 10**6),
        total=Fraction(24355970357, 10**12),
        neighbours="add-remove",
        population=None,
        error_threshold=20.0,
        mechanism="Seeded Cache and Reconstruct",
        query_budget=Fraction(24355970357, 10**14),
        scheduler="none",
        release_every=0.01,
        promises=(),
        paused=True,
    )
    assert repr(dataset).splitlines() == [
        "visits: 200 cells, epsilon 1, delta 1/1000000, Seeded Cache and Reconstruct, "
        "0.0002436 per paid question, paused",
        "  age   integer: 0, 1, 2, …, 99; of_age: 0, 18",
        "  ward  category: north, None",
        "  cost  measure: 0 to 80,000 in steps of 0.01, or NULL",
    ]


def test_a_problem_brings_back_the_error_with_its_suggestion():
    error = SharewellError("No.", hint="Mend it.", suggestion=Suggestion("key", "k"))
    sent = wire.Problem.model_validate_json(wire.Problem.of(error).model_dump_json())
    assert sent.to_error().suggestion == Suggestion("key", "k")
    older = wire.Problem.model_validate_json('{"code": "error", "message": "No."}')
    assert older.to_error().suggestion is None


def test_a_token_is_not_in_its_repr():
    assert "sw_" not in f"{wire.Token(name='ann', role='analyst', token='sw_1')!r}"
