import re
from pathlib import Path

import numpy as np
import pytest

from sharewell.errors import ConfigError
from sharewell.schedulers.registry import SCHEDULERS
from sharewell_lab.results import COLUMNS
from sharewell_lab.study_file import FAMILIES, SWEPT, parse_study, read_study
from sharewell_lab.trials import CONTESTANTS, MECHANISMS

LEAST = """
[data]
table = "movers-by-age"
[budget]
epsilon = 1
error_threshold = "1%"
[stream]
workloads = ["identity"]
"""

WHOLE = """
name = "all-keys"
trials = 7
seed = 5
[data]
table = "massachusetts"
columns = ["age", "sex"]
population = 300000
[budget]
epsilon = "1/2"
error_threshold = 250
[stream]
workloads = ["ages", "women"]
restrict = 0.25
[workloads.ages]
family = "marginal"
attributes = ["age"]
[workloads.women]
family = "hierarchy"
attribute = "age"
branching = 4
where = "sex = 'female' AND age < 20"
[workloads.asked]
family = "sql"
queries = ["SELECT sex, COUNT(*) FROM people GROUP BY sex"]
[analysts.ann]
share = "1/2"
chance = 0.9
[analysts.ben]
share = 0.25
chance = 0.1
workloads = ["asked"]
restrict = 0
[mechanism]
seed_fraction = "1/4"
query_budget = 0.01
updates = 30
threshold = 100
[compare]
mechanisms = ["pmw", "laplace"]
schedulers = ["none", "weighted-round-robin"]
independent = true
[contestants."by lot"]
mechanism = "scr-as-printed"
scheduler = "randomized"
probabilities = ["2/3", "1/3"]
seed_fraction = 0.75
query_budget = 0.02
[sweep]
epsilon = [0.1, 1]
updates = [10, 20]
"""


def rows_of(choice):
    """The questions of a workload that is the same in every trial."""
    return choice.rows


def test_the_least_file_has_defaults_for_the_rest():
    file = parse_study(LEAST)
    study = file.study
    assert (study.name, file.trials, file.seed) == ("study", 100, 1)
    assert study.contestants == tuple(CONTESTANTS.values())
    (case,) = study.cases
    assert (case.epsilon, case.analysts, case.p, case.seed_fraction) == (1.0, 2, 0.5, 0.5)
    assert [case.population, case.error_threshold] == pytest.approx([35_819, 358.19])
    assert case.swept == ()
    assert study.play(case, 0, 1)["asked"][0] == 86


def test_every_key_of_a_file_is_heard():
    file = parse_study(WHOLE)
    study = file.study
    assert (study.name, file.trials, file.seed) == ("all-keys", 7, 5)
    assert study.data.domain.shape == (86, 2)
    ann, ben = study.askers
    assert [choice.name for choice in ann.choices] == ["ages", "women"]
    assert (ann.restrict, ben.restrict) == (0.25, 0.0)
    women = rows_of(ann.choices[1]).reshape(-1, 86, 2)
    assert not women[:, 20:].any()
    assert not women[:, :, 1].any()
    assert rows_of(ben.choices[0]).sum(axis=1).tolist() == [86, 86]
    labels = [contestant.label for contestant in study.contestants]
    assert labels == [
        *("pmw", "pmw, weighted-round-robin", "laplace", "laplace, weighted-round-robin"),
        *("pmw, independent", "laplace, independent", "by lot"),
    ]
    lot = study.contestants[-1]
    assert (lot.mechanism, lot.scheduler) == ("scr-as-printed", "randomized")
    assert np.allclose(lot.probabilities or (), [2 / 3, 1 / 3])
    assert (lot.seed_fraction, lot.query_budget) == (0.75, 0.02)
    assert [(case.epsilon, case.updates, case.swept) for case in study.cases] == [
        (0.1, 10, (("updates", 10.0),)),
        (0.1, 20, (("updates", 20.0),)),
        (1.0, 10, (("updates", 10.0),)),
        (1.0, 20, (("updates", 20.0),)),
    ]
    case = study.cases[0]
    assert (case.shares, case.chances) == ((0.5, 0.25), (0.9, 0.1))
    assert (case.population, case.error_threshold) == (300_000, 250)
    assert (case.seed_fraction, case.query_budget, case.threshold) == (0.25, 0.01, 100)
    rows = study.play(study.cases[-1], 0, 1)
    assert set(rows["set_updates"]) == {20.0}
    assert set(rows["p"]) == {0.9}


@pytest.mark.parametrize("name", SWEPT)
def test_every_parameter_can_be_swept(name):
    values = {"analysts": "[2, 3]", "updates": "[5, 9]", "threshold": "[50, 90]"}.get(name, "[0.2, 0.3]")
    cases = parse_study(f"{LEAST}[sweep]\n{name} = {values}\n").study.cases
    wanted = [float(text) for text in values.strip("[]").split(",")]
    assert [getattr(case, name) for case in cases] == wanted
    if name not in ("epsilon", "p"):
        assert [case.swept for case in cases] == [((name, value),) for value in wanted]


def test_everybody_asks_alike_where_p_is_not_given_also_when_more_join():
    cases = parse_study(f"{LEAST}[sweep]\nanalysts = [2, 4]\n").study.cases
    assert [case.p for case in cases] == [0.5, 0.25]
    cases = parse_study(f"{LEAST}p = 0.9\n[sweep]\nanalysts = [2, 4]\n").study.cases
    assert [case.p for case in cases] == [0.9, 0.9]


def test_a_threshold_in_percent_follows_a_swept_population():
    cases = parse_study(f"{LEAST}[sweep]\npopulation = [1000, 2000]\n").study.cases
    assert [case.error_threshold for case in cases] == [pytest.approx(10), pytest.approx(20)]
    cases = parse_study(f'{LEAST}[sweep]\nerror_threshold = ["2%", 30]\n').study.cases
    assert [case.error_threshold for case in cases] == [pytest.approx(716.38), 30]


PLAIN = {"marginal": 'attributes = ["age"]', "sql": 'queries = ["SELECT COUNT(*) FROM people"]'}
SIZES = dict(zip(FAMILIES, (86, 1, 86, 3741, 171, 171, 86, 86, 87, 7, 70, 1, 10, 10, 1), strict=True))


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_can_be_asked(family):
    text = LEAST.replace('["identity"]', '["mine"]')
    file = parse_study(f'{text}[workloads.mine]\nfamily = "{family}"\n{PLAIN.get(family, "")}\n')
    assert len(rows_of(file.study.askers[0].choices[0])) == SIZES[family]


def test_a_race_can_be_chosen_and_workloads_be_drawn_from_another_seed():
    text = LEAST.replace('["identity"]', '["mine", "one", "other"]')
    file = parse_study(
        f'{text}[workloads.mine]\nfamily = "race3"\nrace = 5\nattribute = "age"\n'
        '[workloads.one]\nfamily = "random-ranges"\ncount = 4\n'
        '[workloads.other]\nfamily = "random-ranges"\ncount = 4\nseed = 9\n'
    )
    race, one, other = (rows_of(choice) for choice in file.study.askers[0].choices)
    assert np.flatnonzero(race[0]).tolist() == [32]
    assert one.shape == other.shape == (4, 86)
    assert (one != other).any()


def test_a_histogram_lies_beside_the_file(tmp_path):
    (tmp_path / "counts.csv").write_text("5\n6\n7\n", encoding="utf-8")
    text = LEAST.replace('table = "movers-by-age"', 'source = "counts.csv"\nattribute = "floor"')
    path = tmp_path / "Houses.toml"
    path.write_text(text, encoding="utf-8")
    study = read_study(path).study
    assert study.name == "houses"
    assert study.data.counts.tolist() == [5, 6, 7]
    assert study.data.domain.names == ("floor",)


ANALYSTS = "[analysts.ann]\n[analysts.ben]\n"


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda t: t.replace("epsilon = 1", "epsilon = 0"), "epsilon"),
        (lambda t: t.replace("epsilon = 1", ""), "budget.epsilon is missing"),
        (lambda t: t.replace("epsilon = 1", "epsilom = 1"), "budget.epsilon is missing"),
        (lambda t: t.replace('error_threshold = "1%"', ""), "budget.error_threshold is missing"),
        (lambda t: t.replace("[budget]", "[budget]\nprice = 1"), "Unknown key 'budget.price'"),
        (lambda t: t.replace("[data]", 'name = "a/b"\n[data]'), "a folder is called by it"),
        (lambda t: t.replace("[data]", "trials = 1.5\n[data]"), "trials must be a whole number"),
        (lambda t: t.replace("[data]", "nonsense = 1\n[data]"), "Unknown key 'nonsense'"),
        (lambda t: t.replace("[data]", '[data]\nsource = "x"'), "a source or a table, and not both"),
        (lambda t: t.replace("movers-by-age", "moon"), "data.table cannot be 'moon'"),
        (lambda t: t.replace("movers-by-age", "massachusetts"), "data.columns is missing"),
        (lambda t: t.replace('["identity"]', "[]"), "stream.workloads is missing"),
        (lambda t: t.replace('["identity"]', '["idenity"]'), "Unknown workload 'idenity'"),
        (lambda t: t + "restrict = 2", "stream.restrict must be from 0 to 1"),
        (lambda t: t + 'restrict = "half"', "stream.restrict must be a number"),
        (lambda t: t + "p = -1", "stream.p must not be negative"),
        (lambda t: t + "analysts = 0", "analysts must be at least 1"),
        (lambda t: t + "analysts = 3\n" + ANALYSTS, "stream.analysts and"),
        (lambda t: t + ANALYSTS + "share = 0.5", "Some analysts have a share and others do not"),
        (lambda t: t + ANALYSTS + "chance = 0.5", "Some analysts have a chance and others do not"),
        (lambda t: t + "[analysts.ann]\nshare = 2", "together at most 1"),
        (lambda t: t + "[analysts.ann]\nshere = 2", "Unknown key 'analysts.ann.shere'"),
        (
            lambda t: t + "p = 0.5\n[analysts.ann]\nchance = 1",
            "stream.p and analysts' chances are mutually exclusive",
        ),
        (lambda t: t + "[workloads.mine]\nfamily = 'h2'", "No analyst asks the workload mine"),
        (lambda t: t + "[workloads.mine]\nfamily = 'h3'", "workloads.mine.family cannot be 'h3'"),
        (
            lambda t: t + "[workloads.identity]\nfamily = 'h2'\nattribute = 'sex'",
            "workloads.identity: Unknown attribute 'sex'",
        ),
        (
            lambda t: t + "[workloads.identity]\nfamily = 'h2'\nwhere = 'sex = 1'",
            "workloads.identity.where: ",
        ),
        (
            lambda t: t + "[workloads.identity]\nfamily = 'h2'\nwhere = 'age < 5 GROUP BY age'",
            "what stands after WHERE",
        ),
        (
            lambda t: t + "[workloads.identity]\nfamily = 'h2'\nwhere = 'age < 0'",
            "workloads.identity asks nothing",
        ),
        (
            lambda t: (
                t + "[workloads.identity]\nfamily = 'sql'\nqueries = ['SELECT SUM(age) FROM people']"
            ),
            "weights other than 0 and 1",
        ),
        (lambda t: t + "[mechanism]\nseed_fraction = 2", "seed_fraction must be between"),
        (lambda t: t + "[mechanism]\nseed = 'h2'", "Unknown key 'mechanism.seed'"),
        (lambda t: t + "[compare]\nmechanisms = ['x']", "Unknown mechanism 'x'"),
        (lambda t: t + "[contestants.x]\nmechanism = 'y'", "contestants.x.mechanism cannot be 'y'"),
        (
            lambda t: t + "[contestants.x]\nmechanism = 'pmw'\nprobabilities = [1]",
            "takes no probabilities",
        ),
        (
            lambda t: (
                t + "[contestants.x]\nmechanism = 'pmw'\nscheduler = 'randomized'\nprobabilities = [1]"
            ),
            "must be 2 positive numbers that sum to 1",
        ),
        (lambda t: t + "[sweep]\nname = [1]", "sweep.name cannot be swept"),
        (lambda t: t + "[sweep]\np = []", "sweep.p has no values"),
        (lambda t: t + "[sweep]\np = 0.5", "sweep.p must be a list"),
        (lambda t: t + "[sweep]\np = [true]", "sweep.p must be a list of numbers"),
        (lambda t: t + "[sweep]\np = [2]", "p must be from 0 to 1"),
        (lambda t: t + "[sweep]\nupdates = [1.5]", "sweep.updates takes whole numbers"),
        (lambda t: t + "[sweep]\nanalysts = [2]\n" + ANALYSTS, "sweep.analysts and"),
        (lambda t: t + "[analysts.a]\nchance = 1\n[sweep]\np = [0.5]", "sweep.p and"),
        (lambda t: t + "[", "Invalid TOML"),
    ],
)
def test_a_mistake_gets_a_sentence_that_names_the_key(change, says):
    with pytest.raises(ConfigError) as refused:
        parse_study(change(LEAST))
    assert says in str(refused.value)


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(ConfigError, match="no such file"):
        read_study(tmp_path / "gone.toml")
    (tmp_path / "latin.toml").write_bytes(b"name = '\xe9'")
    with pytest.raises(ConfigError, match="not UTF-8 text"):
        read_study(tmp_path / "latin.toml")


PAGE = (Path(__file__).parents[2] / "docs" / "lab.md").read_text(encoding="utf-8")


def test_the_study_of_the_documentation_can_be_run(tmp_path):
    (block,) = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "visits.csv").write_text("\n".join("9" for _ in range(24)), encoding="utf-8")
    study = parse_study(block, tmp_path / "STUDY.toml").study
    assert len(study.cases) == 6
    assert len(study.play(study.cases[0], 0, 1)["analyst"]) == 6 * 5


@pytest.mark.parametrize("name", [*SWEPT, *FAMILIES, *COLUMNS, *MECHANISMS, *SCHEDULERS])
def test_everything_with_a_name_is_documented(name):
    assert f"`{name}`" in PAGE
