"""Claims: in a made-up world where one is true it holds, and where it is not it does not."""

from dataclasses import replace

import numpy as np
import pytest

from sharewell_lab import claims as module
from sharewell_lab.claims import claims
from sharewell_lab.limit import LimitNumbers
from sharewell_lab.results import by_scenario
from sharewell_lab.theory.coupons import coupons
from tests.lab.made_up import Model

WORLD = Model()


def judged(model):
    return {claim.name: claim for claim in claims(by_scenario(model.columns()))}


@pytest.fixture(scope="module")
def as_the_paper_says():
    return judged(WORLD)


#: A claim, and a world in which it is not true.
BROKEN = {
    "unscheduled": WORLD.changed(PMW={"alone": 0.5, "nothing": 0}, Laplace={"alone": 0.1}),
    "gap": replace(WORLD, gap=0),
    "three-times": replace(WORLD, trials=80).changed(PMW={"nothing": 0}, Laplace={"joint": 0.7}),
    "unscheduled-ten": WORLD.changed(PMW={"alone": 0.5, "nothing": 0}),
    "forty-percent": replace(WORLD, trials=80).changed(PMW={"nothing": 0}),
    "pmw-interferes": WORLD.changed(PMW={"without": 0.5, "nothing": 0}),
    "rr-interferes": WORLD.changed(RR={"without": 0.8}),
    "rs-interferes": WORLD.changed(RS={"without": 0.8}),
    "rs-skip-interferes": WORLD.changed(RS_skip={"without": 0.8}),
    "rs-interferes-less": WORLD.changed(RR={"without": 0.92}),
    "independent": WORLD.changed(Ind={"alone": 0.4}),
    "scr-printed-ratio-expected": WORLD.changed(SCR_printed={"alone": 0.8}),
    "scr-printed-ratio-realised": WORLD.changed(SCR_printed={"alone": 0.8}),
    "scr-ratio-expected": WORLD.changed(SCR={"alone": 0.8}),
    "scr-ratio-realised": WORLD.changed(SCR={"alone": 0.8}),
    "rr-ratio-realised": WORLD.changed(RR={"alone": 0.95}),
    "rs-ratio-realised": WORLD.changed(RS={"alone": 0.95}),
    "rs-skip-ratio-realised": WORLD.changed(RS_skip={"alone": 0.95}),
    "scr-printed-interference-expected": WORLD.changed(SCR_printed={"without": 0.8}),
    "scr-printed-interference-realised": WORLD.changed(SCR_printed={"without": 0.8}),
    "scr-interference-expected": WORLD.changed(SCR={"without": 0.8}),
    "scr-interference-realised": WORLD.changed(SCR={"without": 0.8}),
    "sharing-pays": WORLD.changed(Ind={"joint": 0.95}),
    "pmw-beats-printed": WORLD.changed(SCR_printed={"joint": 0.95}),
    "pmw-beats-scr": WORLD.changed(SCR={"joint": 0.95}),
    "scheduling-is-accurate": WORLD.changed(
        RR={"joint": 0.8}, RS={"joint": 0.8}, RS_skip={"joint": 0.8}
    ),
    "scheduling-helps": WORLD.changed(RR={"joint": 0.8}, RS={"joint": 0.8}, RS_skip={"joint": 0.8}),
    "time-rr": replace(WORLD, rare=1.0).changed(RR={"steps": 1.0}),
    "time-rs": WORLD.changed(RS={"steps": 1.0}),
    "time-rs-skip": WORLD.changed(RS_skip={"steps": 1.0}),
    "twice-rr": WORLD.changed(RR={"steps": 2.5}),
    "twice-rs": WORLD.changed(RS={"steps": 2.5}),
    "twice-rs-skip": WORLD.changed(RS_skip={"steps": 2.5}),
    "stalls-less": WORLD.changed(RS={"steps": 2.5}, RS_skip={"steps": 2.5}),
    "rare-is-slow": replace(WORLD, rare=0.6),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_claim_holds_where_it_is_true_and_not_where_it_is_not(name, as_the_paper_says):
    assert as_the_paper_says[name].verdict == "holds"
    assert judged(BROKEN[name])[name].verdict == "does not hold"


def test_every_claim_about_trials_is_tested(as_the_paper_says):
    assert set(as_the_paper_says) == {*BROKEN, "coupon-formula"}


def test_a_claim_that_holds_at_some_settings_says_at_which():
    weak, strong = WORLD, WORLD.changed(SCR={"joint": 0.95})
    mixed = {
        name: np.concatenate([column, other])
        for (name, column), other in zip(
            replace(weak, epsilons=(0.1,)).columns().items(),
            replace(strong, epsilons=(1.0, 10.0)).columns().values(),
            strict=True,
        )
    }
    found = {claim.name: claim for claim in claims(by_scenario(mixed))}
    assert found["pmw-beats-scr"].verdict == "holds only for epsilon 0.1"
    assert found["scr-ratio-expected"].verdict == "holds"


def test_one_trial_breaks_what_is_said_of_every_trial_and_not_what_is_typical():
    found = judged(WORLD.changed(SCR={"nothing": 1 / WORLD.trials}))
    broken = found["scr-ratio-expected"]
    assert broken.verdict == "does not hold"
    assert broken.findings[0].note == "1 of 40 trials"
    assert found["scr-ratio-realised"].verdict == "holds"
    assert "infinite: up to 2.5 %" in found["scr-ratio-realised"].measured


def test_the_number_measured_is_that_of_the_model(as_the_paper_says):
    # RR keeps 36 - s of 40 answers and 24 - s alone, with s of 0, 1 or 2; the ratio is largest at 0.
    assert as_the_paper_says["rr-ratio-realised"].measured.startswith("0.667 in all 6 settings")
    gain = as_the_paper_says["pmw-beats-printed"].findings[0]
    # One of ten analysts has nothing in 12 of 40 trials, and otherwise 34 of 40 on average.
    assert gain.measured.value == pytest.approx(0.875 - 0.025 - 0.3 * 0.085 - 0.675)
    assert as_the_paper_says["time-rs"].findings[0].measured.value == pytest.approx(1.1, rel=0.01)


def test_few_trials_leave_a_claim_undecided():
    found = judged(replace(WORLD, trials=3))
    assert found["rr-ratio-realised"].verdict == "undecided"


def test_a_claim_says_nothing_of_what_was_not_run():
    found = judged(replace(WORLD, studies=("fig1",)))
    assert "unscheduled" in found
    assert "pmw-beats-scr" not in found


def test_only_trials_that_both_played_are_compared():
    columns = WORLD.columns()
    short = (columns["contestant"] == "SCR") & (columns["trial"] >= 10)
    kept = {name: column[~short] for name, column in columns.items()}
    found = {claim.name: claim for claim in claims(by_scenario(kept))}
    assert {f.measured.trials for f in found["pmw-beats-scr"].findings} == {10}
    assert {f.measured.trials for f in found["pmw-beats-printed"].findings} == {40}


class TestTheory:
    def test_the_coupon_formula_is_found_wanting(self, as_the_paper_says):
        claim = as_the_paper_says["coupon-formula"]
        assert claim.verdict == "does not hold"
        assert "formula 431.7, exact 614.3" in claim.measured

    def test_it_would_hold_if_it_gave_the_exact_time(self, monkeypatch):
        monkeypatch.setattr(module, "CLOSE", 0.06)
        (claim,) = module.theory(None)
        assert claim.verdict == "holds only for k 50"

    @pytest.mark.statistical
    def test_simulated_times_are_those_of_the_exact_formula(self):
        rng = np.random.default_rng(2)
        times = [module._draws_until_all(10, 5, rng) for _ in range(2_000)]
        error = np.std(times) / np.sqrt(len(times))
        exact = coupons(10, 5).expected
        # Wrong by chance once in more than a million runs.
        assert abs(np.mean(times) - exact) < 5 * error
        assert abs(np.mean(times) - 0.9 * exact) > 5 * error

    def test_the_query_limit_is_judged_by_how_counts_grow(self, limit: LimitNumbers):
        def grown(alone, together):
            one = {"PMW": np.array(alone)}, {"PMW": np.array(together)}
            *_, claim = module.theory(replace(limit, hard=100, alone=one[0], together=one[1]))
            return claim.verdict

        assert grown([10, 11], [40, 42]) == "holds"
        assert grown([8, 8], [80, 80]) == "does not hold"
        assert grown([100, 100], [100, 100]) == "undecided"
