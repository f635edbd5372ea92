"""The configuration: what a whole file says, and what every mistake is told."""

from __future__ import annotations

import datetime as dt
from fractions import Fraction
from typing import Any

import pytest

from sharewell import Binned, Boolean, Category, Date, Integer
from sharewell.config import parse_config, read_config
from sharewell.errors import ConfigError, Suggestion
from sharewell.mechanisms.cache_reconstruct import CacheReconstruct
from sharewell.mechanisms.independent import Independent
from sharewell.mechanisms.laplace import Laplace
from sharewell.mechanisms.pmw import PrivateMultiplicativeWeights
from sharewell.mechanisms.registry import MECHANISMS
from sharewell.query.measure import Measure
from sharewell.query.workload import marginal
from sharewell.schedulers import InOrder, Randomized, RoundRobin, WeightedRoundRobin
from sharewell.sharing.collective import DryRun

WHOLE = """
[dataset]
name = "visits"
source = "visits.csv"
privacy_unit = "person"
population = 20_000
neighbours = "replace-one"

[budget]
epsilon = 0.3
delta = "1e-6"
error_threshold = "2.5%"

[attributes.age]
type = "integer"
low = 0
high = 19
bins = { grown = [0, 18] }

[attributes.sex]
type = "category"
categories = ["F", "M"]
nullable = true
other = "other"

[attributes.fee]
type = "binned"
cuts = [0, 0.1, 10]

[attributes.emergency]
type = "boolean"

[attributes.admitted]
type = "date"
start = 2024-01-01
end = 2024-12-31
by = "quarter"

[analysts.ann]
share = "1/3"
expects = ["SELECT sex, COUNT(*) FROM visits GROUP BY sex", "SELECT AVG(age) FROM visits"]

[analysts.ben]
share = 0.5

[mechanism]
seed = "marginals(1)"
seed_fraction = 0.25
query_budget = "1/80"
buy_seed_rows = true

[scheduler]
name = "round-robin"
idle_after = 90
"""

SMALL = """
[dataset]
source = "people.csv"
[budget]
epsilon = 1
error_threshold = 50
[attributes.age]
type = "integer"
low = 0
high = 9
[analysts.ann]
share = "1/2"
[analysts.ben]
share = "1/4"
"""


def test_a_whole_file_is_read(tmp_path):
    file = tmp_path / "visits.toml"
    file.write_text(WHOLE)
    config = read_config(file)
    assert (config.name, config.source) == ("visits", tmp_path / "visits.csv")
    assert config.privacy_unit == "person"
    assert config.error_threshold == 500
    assert (config.budget.currency, config.budget.epsilon) == ("zcdp", Fraction(3, 10))
    assert config.domain.attributes == (
        Integer("age", 0, 19, bins={"grown": [0, 18]}),
        Category("sex", ["F", "M"], nullable=True, other="other"),
        Binned("fee", [0, 0.1, 10]),
        Boolean("emergency"),
        Date("admitted", dt.date(2024, 1, 1), dt.date(2024, 12, 31), by="quarter"),
    )
    assert config.shares == {"ann": config.budget.total / 3, "ben": config.budget.total / 2}
    mechanism = DryRun(config.collective).mechanism
    assert isinstance(mechanism, CacheReconstruct)
    assert mechanism.curator.neighbours == "replace-one"
    assert mechanism.seed.name == "marginals(1)"
    assert mechanism.seed_fraction == Fraction(1, 4)
    assert mechanism.query_budget == config.budget.total / 80
    assert mechanism.buy_seed_rows
    scheduler = config.scheduler()
    assert isinstance(scheduler, RoundRobin)
    assert not scheduler.strict


def test_what_a_file_leaves_out_has_a_default():
    config = parse_config(SMALL)
    assert (config.name, config.budget.currency, config.neighbours) == (
        "people",
        "pure",
        "add-remove",
    )
    assert config.error_threshold == 50
    mechanism = DryRun(config.collective).mechanism
    assert isinstance(mechanism, CacheReconstruct)
    assert mechanism.seed.name == "identity"
    assert mechanism.query_budget == Fraction(1, 100)
    assert isinstance(config.scheduler(), InOrder)


def test_a_seed_can_be_left_to_those_who_leave():
    config = parse_config(f"{SMALL}\n[mechanism]\nseed_fraction = 0\n")
    mechanism: Any = DryRun(config.collective).mechanism
    assert mechanism.seed_fraction == 0


def test_numbers_are_exact_however_they_are_written():
    for text in ("0.1", '"0.1"', '"1/10"'):
        config = parse_config(SMALL.replace("epsilon = 1", f"epsilon = {text}"))
        assert config.budget.total == Fraction(1, 10)


MECHANISM_KINDS = [
    ('name = "laplace"\nquery_budget = "1/10"', Laplace),
    ('name = "laplace"\nindependent = true', Independent),
    ('name = "multiplicative-weights"\nupdates = 5\nthreshold = 9', PrivateMultiplicativeWeights),
    ('seed = "optimized"', CacheReconstruct),
    ('seed = "h2"\nanswers = "as-printed"', CacheReconstruct),
]


@pytest.mark.parametrize(("section", "kind"), MECHANISM_KINDS)
def test_every_mechanism_can_be_configured(section, kind):
    config = parse_config(f"{SMALL}\n[mechanism]\n{section}\n")
    assert isinstance(DryRun(config.collective).mechanism, kind)


SCHEDULER_KINDS = [
    ('name = "none"', InOrder),
    ('name = "round-robin"', RoundRobin),
    ('name = "weighted-round-robin"', WeightedRoundRobin),
    ('name = "weighted-round-robin"\nturns = { ann = 3, ben = 2 }', WeightedRoundRobin),
    ('name = "randomized"', Randomized),
    ('name = "randomized"\nprobabilities = { ann = 0.7, ben = "3/10" }', Randomized),
]


@pytest.mark.parametrize(("section", "kind"), SCHEDULER_KINDS)
def test_every_scheduler_can_be_configured(section, kind):
    assert type(parse_config(f"{SMALL}\n[scheduler]\n{section}\n").scheduler()) is kind


def test_expected_questions_are_compiled_and_usual_ones_stand_in_for_them():
    config = parse_config(WHOLE)
    workloads: Any = config.workloads()
    assert [len(block) for block in workloads["ann"]] == [4, 1, 1]
    assert [len(block) for block in workloads["ben"]][:5] == [20, 4, 2, 2, 4]
    assert len(workloads["ben"]) == 5 + 10


MISTAKES = [
    ("epsilon = 1", "epsilon = ", "Invalid TOML", "quotes"),
    ("epsilon = 1\n", "", "budget.epsilon is missing", "number"),
    ("epsilon = 1", "epsilon = true", "budget.epsilon must be a number", ""),
    ("epsilon = 1", "epsilon = 0", "budget.epsilon must be greater than 0", ""),
    ("epsilon = 1", "epsilon = nan", "budget.epsilon must be a plain number", "0.1"),
    ("epsilon = 1", "epsilom = 1", "budget.epsilon is missing. Did you misspell it as 'epsilom'?", ""),
    ("error_threshold = 50", 'error_threshold = "1 percent"', "plain number", "0.1%"),
    ("epsilon = 1", "epsilon = 1\ndelta = 2", "budget: delta must be below 1", ""),
    (
        "error_threshold = 50",
        'error_threshold = "1%"',
        "percentage, and dataset.population is not set",
        "popul",
    ),
    ("error_threshold = 50", "error_threshold = -3", "error_threshold must be greater than 0", ""),
    (
        "error_threshold = 50",
        "error_threshold = 50\nalpha = 3",
        "Unknown key 'budget.alpha'",
        "Known keys",
    ),
    ('source = "people.csv"', "", "dataset.source is missing", "string"),
    ('source = "people.csv"', "source = 5", "dataset.source must be a string", ""),
    ('source = "people.csv"', 'source = "a"\nneighbors = "x"', "dataset.neighbors", "neighbours"),
    ('source = "people.csv"', 'source = "a"\nneighbours = "x"', "dataset.neighbours cannot", "add-rem"),
    ('type = "integer"', 'type = "int"', "attributes.age.type cannot be 'int'", "integer"),
    ('type = "integer"\n', "", "attributes.age.type is missing", ""),
    ("high = 9", "high = -1", "attributes.age: ", ""),
    ("high = 9", "high = 9\nhihg = 3", "Unknown key 'attributes.age.hihg'", "high"),
    ('share = "1/2"', 'share = "4/5"', "shares sum to 21/20", "Reduce them"),
    ('share = "1/2"\n', "", "analysts.ann.share is missing", ""),
    ('share = "1/2"', 'share = "half"', "analysts.ann.share must be a plain number", ""),
    ("[budget]", "[budgets]", "Unknown key 'budgets'", "Did you mean 'budget'"),
    ("[analysts.ann]", "[analyst.ann]", "Unknown key 'analyst'", "analysts"),
    ("[budget]", "[bugdet]", "Unknown key 'bugdet'", "Did you mean 'budget'"),
    (
        "[attributes.age]",
        "[attributes]\n[attribute.age]",
        "Unknown key 'attribute'",
        "Did you mean 'attributes'",
    ),
]


@pytest.mark.parametrize(("right", "wrong", "message", "hint"), MISTAKES)
def test_every_mistake_names_its_key_and_says_how_to_mend_it(right, wrong, message, hint):
    assert right in SMALL
    with pytest.raises(ConfigError) as caught:
        parse_config(SMALL.replace(right, wrong, 1))
    assert message in caught.value.message
    assert hint in caught.value.hint


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ('[mechanism]\nname = "magic"', "mechanism.name cannot be 'magic'"),
        ('[mechanism]\nseed = "oak"', "mechanism.seed cannot be 'oak'"),
        ('[mechanism]\nseed = "marginals(7)"', "mechanism.seed: "),
        ('[mechanism]\nseed_fraction = "3/2"', "mechanism.seed_fraction must be at most 1"),
        ('[mechanism]\nanswers = "raw"', "mechanism.answers cannot be 'raw'"),
        ('[mechanism]\nname = "laplace"\nseed = "h2"', "mechanism.seed is not an option of 'laplace'"),
        ('[mechanism]\nname = "multiplicative-weights"\nupdates = "many"', "mechanism.updates must be"),
        ('[scheduler]\nname = "lottery"', "scheduler.name cannot be 'lottery'"),
        (
            '[scheduler]\nname = "randomized"\nidle_after = 3',
            "scheduler.idle_after is not an option of 'randomized'",
        ),
        ('[scheduler]\nname = "randomized"\nprobabilities = { ann = 0.5, ben = 0.6 }', "sum to 1.1"),
        ('[scheduler]\nname = "weighted-round-robin"\nturns = { ann = 1 }', "scheduler: "),
        ("scheduler = 3", "scheduler must be a table"),
    ],
)
def test_settings_of_mechanism_and_scheduler_are_checked(section, message):
    text = f"{section}\n{SMALL}" if section.startswith("scheduler") else f"{SMALL}\n{section}\n"
    with pytest.raises(ConfigError) as caught:
        parse_config(text)
    assert message in str(caught.value)


def test_a_question_that_cannot_be_answered_is_told_with_its_place():
    asked = '"SELECT COUNT(*) FROM people WHERE agee < 5"'
    config = parse_config(SMALL.replace('share = "1/2"', f'share = "1/2"\nexpects = [{asked}]'))
    with pytest.raises(ConfigError) as caught:
        config.workloads()
    assert "analysts.ann.expects[0]" in caught.value.message
    assert caught.value.where is not None
    assert caught.value.hint == 'Did you mean "age"?'


def test_a_file_that_is_missing_or_no_text_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="no such file"):
        read_config(tmp_path / "none.toml")
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match="UTF-8"):
        read_config(tmp_path / "bytes.toml")


def test_a_near_miss_is_suggested():
    with pytest.raises(ConfigError) as caught:
        parse_config(f"{SMALL}\n[service]\nmost_wating = 3\n")
    assert caught.value.suggestion == Suggestion("service.most_wating", "service.most_waiting")
    with pytest.raises(ConfigError) as caught:
        parse_config(f'{SMALL}\n[mechanism]\nname = "laplase"\n')
    assert caught.value.suggestion == Suggestion("mechanism.name", "laplace")


@pytest.mark.parametrize("kind", MECHANISMS.values())
def test_every_mechanism_can_be_made_from_its_declared_defaults(kind):
    config = parse_config(f'{SMALL}\n[mechanism]\nname = "{kind.key}"\n')
    mechanism = DryRun(config.collective).mechanism
    assert type(mechanism) is kind
    assert mechanism.name == config.make.name
    assert mechanism.guarantee.page
    alone = parse_config(f'{SMALL}\n[mechanism]\nname = "{kind.key}"\nindependent = true\n')
    assert DryRun(alone.collective).mechanism.name == alone.make.name
    assert not alone.make.pooled


MEASURED = """
[dataset]
source = "people.csv"
max_rows = 3
[budget]
epsilon = 1
error_threshold = 2
[attributes.age]
type = "integer"
low = 0
high = 9
[attributes.employed]
type = "boolean"
[measures.age]
low = 0
high = 9
step = 1
[measures.wage]
column = "per_hour"
low = -0.5
high = 99.5
step = 0.01
nullable = false
[analysts.ann]
share = 1
"""


def test_measures_are_read_and_summed(tmp_path):
    (tmp_path / "people.csv").write_text("age,employed,per_hour\n3,true,7.256\n4,no,1e9\n5,no,\n")
    (tmp_path / "sharewell.toml").write_text(MEASURED)
    config = read_config(tmp_path / "sharewell.toml")
    assert config.domain.measures == (
        Measure("age", "age", 0, 9, 1, nullable=True),
        Measure("wage", "per_hour", -0.5, 99.5, 0.01, nullable=False),
    )
    counts = config.vector().counts.reshape(10, 2, 4)
    # Rows, ages, sums of ages from 4, and of cents from 49.50; the row without a wage is dropped.
    assert counts[3, 1].tolist() == [1, 1, -1, 726 - 4950]
    assert counts[4, 0].tolist() == [1, 1, 0, 5000]
    assert counts.sum(axis=(0, 1))[0] == 2


def test_squares_and_products_are_declared():
    text = MEASURED.replace(
        "nullable = false\n", 'nullable = false\nsquare = true\nproducts = ["age"]\n'
    )
    config = parse_config(text)
    assert config.domain.products == (("wage", "wage"), ("age", "wage"))
    # The keys change nothing where they are left out.
    plain = MEASURED.replace("nullable = false\n", "nullable = false\nsquare = false\nproducts = []\n")
    assert parse_config(plain).domain.fingerprint == parse_config(MEASURED).domain.fingerprint
    assert config.domain.fingerprint != parse_config(MEASURED).domain.fingerprint


@pytest.mark.parametrize(
    ("right", "wrong", "message", "hint"),
    [
        ("step = 0.01\n", "", "measures.wage.step is missing.", "It must be a number."),
        ("step = 0.01", 'step = "x"', "measures.wage.step must be a number, not 'x'.", ""),
        ("step = 0.01", "step = nan", "measures.wage: `step` of 'wage' must be a finite number", ""),
        (
            "step = 0.01",
            "step = 0.03",
            "measures.wage: The bounds",
            "For example, low = -0.5, high = 99.5",
        ),
        (
            "step = 0.01",
            "step = 1e-12",
            "100,000,000,000,000 steps",
            "high = 99.5 and step = 0.00000005.",
        ),
        ("low = -0.5", "low = 99.5", "measures.wage: 'wage' requires low < high", "Correct its bounds."),
        ("[measures.wage]", "[measures.employed]", "Duplicate name 'employed'", "case-insensitive"),
        ("max_rows = 3", "max_rows = 0", "dataset.max_rows must be a whole number from 1", ""),
        ("column =", "colum =", "Unknown key 'measures.wage.colum'", "Did you mean 'column'?"),
        ("column =", 'products = ["fee"]\ncolumn =', "unknown measure 'fee'", "are age, wage."),
        ("column =", 'products = ["wage"]\ncolumn =', "is the measure itself", "square = true"),
    ],
)
def test_every_mistake_in_a_measure_is_told(right, wrong, message, hint):
    text = MEASURED.replace(right, wrong)
    with pytest.raises(ConfigError) as refused:
        parse_config(text)
    assert message in refused.value.message
    assert hint in refused.value.hint


def test_assumed_questions_are_the_marginals_and_the_sums_by_one_column():
    config = parse_config(MEASURED)
    questions: Any = config.workloads()["ann"]
    expected = [marginal(config.domain, names) for names in (["age"], ["employed"], ["age", "employed"])]
    assert [[query.key for query in asked] for asked in questions[:3]] == [
        [query.key for query in each] for each in expected
    ]
    sums = questions[3:]
    assert [len(asked) for asked in sums] == [
        attribute.size for _ in range(1, config.domain.vectors) for attribute in config.domain.attributes
    ]
    counted = {query.key for each in expected for query in each}
    assert not counted & {query.key for asked in sums for query in asked}


def test_all_mistakes_of_a_file_are_reported_at_once():
    text = """
[dataset]
source = "people.csv"
populaton = 100
max_rows = "many"
[budget]
epsilon = -1
error_threshold = 20
[attributes.age]
type = "integer"
low = 9
high = 3
[attributes.sex]
type = "categry"
[attributes.pay]
type = "binned"
edges = "none"
colour = 1
[measures.wage]
low = 0
[analysts.ann]
share = "half"
[analysts.ben]
shar = "1/2"
[mechanism]
query_budget = "free"
sed_fraction = "1/10"
[scheduler]
name = "fair"
[service]
realease_every = 1
"""
    with pytest.raises(ConfigError) as refused:
        parse_config(text)
    shown = str(refused.value)
    for part in (
        "dataset.max_rows",
        "'dataset.populaton'",
        "budget.epsilon",
        "attributes.age",
        "attributes.sex.type",
        "attributes.pay.edges",
        "'attributes.pay.colour'",
        "measures.wage.high is missing",
        "measures.wage.step is missing",
        "analysts.ann.share",
        "analysts.ben.share is missing. Did you misspell it as 'shar'?",
        "mechanism.query_budget",
        "'mechanism.sed_fraction'",
        "scheduler.name",
        "'service.realease_every'",
    ):
        assert part in shown, part
    assert "'analysts.ben.shar'" not in shown


def test_a_part_is_checked_where_the_dataset_has_mistakes():
    text = '[dataset]\nsource = 3\n[budget]\nepsilon = 1\nerror_threshold = "1%"\n'
    with pytest.raises(ConfigError) as refused:
        parse_config(text)
    shown = str(refused.value)
    assert shown.startswith("dataset.source must be")
    assert "No attributes are described." in shown
    assert "No analysts are named." in shown
    assert "percentage" not in shown
