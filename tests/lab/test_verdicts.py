"""Verdicts: the words say exactly where a claim held."""

import itertools
import re

from hypothesis import given
from hypothesis import strategies as st

from sharewell_lab.claims import Claim, Evidence, above, at_most, below, describe_settings, verdict
from sharewell_lab.estimates import IntervalEstimate

SETTINGS = [
    {"contestant": who, "epsilon": epsilon, "p": p}
    for who, epsilon, p in itertools.product(("PMW", "SCR"), ("0.1", "1"), ("0.01", "0.1", "0.9"))
]
POINT = IntervalEstimate(1.0, 1.0, 1.0, 10)


def findings(holds):
    return [Evidence(where, POINT, held) for where, held in zip(SETTINGS, holds, strict=True)]


def meets(where, words):
    """Whether a setting meets a description, read back from its words."""
    return any(
        all(
            where[name or "contestant"] in re.split(", | or ", values)
            for name, values in re.findall(r"(?:(epsilon|p) )?(\S.*?)(?: with | and |$)", phrase)
        )
        for phrase in words.split("; ")
    )


@given(st.lists(st.booleans(), min_size=12, max_size=12).filter(lambda held: 0 < sum(held) < 12))
def test_the_words_are_met_by_the_chosen_settings_and_by_no_other(held):
    chosen = [where for where, one in zip(SETTINGS, held, strict=True) if one]
    words = describe_settings(chosen, SETTINGS)
    assert [meets(where, words) for where in SETTINGS] == held


def test_the_words_are_few():
    rare = [where for where in SETTINGS if where["p"] != "0.9"]
    assert describe_settings(rare, SETTINGS) == "p 0.01 or 0.1"
    both = [w for w in SETTINGS if w["contestant"] == "SCR" or w["epsilon"] == "1"]
    assert describe_settings(both, SETTINGS) == "PMW with epsilon 1; SCR"
    # What another condition implies is left out.
    uneven = [*SETTINGS[:6], {"contestant": "SCR", "epsilon": "1", "p": "0.5"}]
    assert describe_settings(uneven[6:], uneven) == "SCR"


def test_who_comes_before_the_study_and_epsilon_before_p_however_a_condition_is_found():
    studies = ("fig3", "wide")
    among = [{"contestant": s["contestant"], "study": study, **s} for s in SETTINGS for study in studies]
    one = next(s for s in among if (s["contestant"], s["study"], s["p"]) == ("SCR", "fig3", "0.9"))
    two = [s for s in among if (s["study"], s["epsilon"], s["p"]) == ("wide", "0.1", "0.1")]
    words = describe_settings([one, *two], among)
    assert words == "SCR in fig3 with epsilon 0.1 and p 0.9; wide with epsilon 0.1 and p 0.1"


def test_the_verdict_is_put_together_from_the_settings():
    assert verdict(findings([True] * 12)) == "holds"
    assert verdict(findings([False] * 12)) == "does not hold"
    assert verdict(findings([None] * 12)) == "undecided"
    assert verdict(findings([True] * 6 + [False] * 6)) == "holds only for PMW"
    assert verdict(findings([True] * 6 + [None] * 6)) == ("holds where decided; undecided for SCR")
    assert verdict(findings([False] * 6 + [None] * 6)) == ("does not hold; undecided for SCR")
    assert verdict(findings([True, False, None] * 4)) == "holds only for p 0.01; undecided for p 0.9"
    scattered = [None if at in (0, 4, 8, 9) else False for at in range(12)]
    assert verdict(findings(scattered)) == "does not hold; undecided in 4 of 12 settings"


def test_the_whole_interval_decides():
    over, under, lean = (
        IntervalEstimate(2, 1.1, 3, 9),
        IntervalEstimate(0.5, 0.2, 0.9, 9),
        IntervalEstimate(1.05, 0.9, 1.1, 9),
    )
    assert [above(one, 1) for one in (over, under, lean)] == [True, False, None]
    assert [at_most(one, 1) for one in (over, under, lean)] == [False, True, None]
    assert [below(one, 1) for one in (over, under, lean)] == [False, True, None]
    assert (above(POINT, 1), at_most(POINT, 1), below(POINT, 1)) == (False, True, False)


def test_what_was_measured_is_told_from_the_smallest_to_the_largest():
    two = (
        Evidence({"contestant": "PMW", "p": "0.1"}, IntervalEstimate(2.0, 1.5, 2.5, 9), True),
        Evidence({"contestant": "RR", "p": "0.9"}, IntervalEstimate(1.0, 1.0, 1.0, 9), False),
    )
    claim = Claim("name", "says", "judged", two, unit="%", also="And so on.")
    assert claim.measured == "1 % (RR, p 0.9) to 2 [1.5, 2.5] % (PMW, p 0.1). And so on."
    assert claim.brief == "1 % to 2 [1.5, 2.5] %. And so on."
    assert Claim("name", "says", "judged", two[:1]).measured == "2 [1.5, 2.5]"
    assert Claim("name", "says", "judged", two[:1] * 3).measured == "2 [1.5, 2.5] in all 3 settings"
