"""`play`: by name, from a seed, and what it refuses."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from sharewell.errors import ConfigError
from sharewell_lab.engines import MECHANISMS, PlaySettings, play, play_scr_both
from sharewell_lab.streams import Questions

RNG = np.random.default_rng(3)
#: Prefix sums and single cells, each of which comes again and again.
POOL = np.vstack([np.tri(8, dtype=np.uint8), np.eye(8, dtype=np.uint8)])
STREAM = Questions.of_rows(POOL[RNG.integers(0, len(POOL), 60)], RNG.integers(0, 3, 60), analysts=3)
COUNTS = np.array([900, 500, 20, 10, 5, 50, 300, 700])
SETTING = PlaySettings(np.array([0.3, 0.3, 0.4]), 2500.0, 0.5, 0.02)
EVERYBODY = np.ones(3, dtype=bool)
WITHOUT_1 = np.array([True, False, True])


def played(mechanism: str, seed: int = 1, **changed):
    present = changed.get("present", EVERYBODY)
    given = {
        "questions": STREAM,
        "order": np.flatnonzero(np.isin(STREAM.analyst, np.flatnonzero(present))),
        "counts": COUNTS,
        "setting": SETTING,
        "present": EVERYBODY,
        "seed": np.random.SeedSequence(seed),
    }
    return play(mechanism, **{**given, **changed})


def numbers(run) -> list[bytes]:
    return [part.tobytes() for part in (run.value, run.error, run.expected, run.payer)]


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_the_same_seed_gives_the_same_run_byte_for_byte(mechanism):
    assert numbers(played(mechanism)) == numbers(played(mechanism))


@pytest.mark.parametrize("mechanism", sorted(set(MECHANISMS) - {"uniform"}))
def test_another_seed_gives_other_noise(mechanism):
    assert not np.array_equal(played(mechanism, 1).value, played(mechanism, 2).value)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_those_who_are_absent_get_nothing_and_all_others_an_error(mechanism):
    run = played(mechanism, present=WITHOUT_1)
    absent = STREAM.analyst == 1
    assert np.isnan(run.value[absent]).all()
    assert np.isnan(run.error[absent]).all()
    assert np.isnan(run.expected[absent]).all()
    assert not np.isnan(run.error[~absent]).any()
    assert not (run.payer == 1).any()


def test_laplace_refuses_once_the_pot_is_empty():
    few = PlaySettings(SETTING.shares, 2500.0, 0.5, 0.1)
    run = played("laplace", setting=few, order=np.arange(60)[::-1].copy())
    assert np.isnan(run.value[:50]).all()
    assert np.isposinf(run.error[:50]).all()
    assert np.isposinf(run.expected[:50]).all()
    assert np.isfinite(run.error[50:]).all()


def test_both_ways_of_scr_share_their_noise():
    given = (STREAM, STREAM.places(EVERYBODY), COUNTS, SETTING, EVERYBODY, np.random.SeedSequence(1))
    estimate, printed = play_scr_both(*given)
    assert numbers(estimate) == numbers(played("scr"))
    assert numbers(printed) == numbers(played("scr-as-printed"))
    assert (estimate.expected <= printed.expected * (1 + 1e-12)).all()
    assert (estimate.expected < printed.expected * 0.99).any()


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"mechanism": "magic"}, "Unknown mechanism 'magic'"),
        ({"counts": COUNTS[1:]}, "7 counts for 8 cells"),
        ({"present": EVERYBODY[1:], "order": np.arange(3)}, "3 analysts"),
        ({"setting": PlaySettings(np.array([1.0]), 10.0, 0.5, 0.1)}, "3 analysts"),
        ({"present": ~EVERYBODY, "order": np.arange(0)}, "No analyst is present"),
        ({"order": np.array([0, 60])}, "does not have"),
        ({"order": np.array([-1])}, "does not have"),
        ({"order": np.array([4, 2, 4])}, "twice"),
        ({"present": WITHOUT_1, "order": np.arange(60)}, "absent"),
    ],
)
def test_a_world_that_makes_no_sense_is_refused(changed, reason):
    with pytest.raises(ConfigError, match=reason):
        played(**{"mechanism": "uniform", **changed})


def test_nothing_to_serve_is_no_mistake():
    for mechanism in MECHANISMS:
        run = played(mechanism, order=np.arange(0))
        assert np.isnan(run.value).all()


def test_numba_is_imported_when_it_is_first_needed():
    code = "import sys, sharewell_lab.engines; sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
