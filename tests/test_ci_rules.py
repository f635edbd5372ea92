"""The rules of conftest.py, seen from outside: each test runs pytest on a small suite."""

from pathlib import Path

import pytest

CONFTEST = Path(__file__).with_name("conftest.py").read_text()

WAYS_TO_SKIP = {
    "test_mark": "@pytest.mark.skip(reason='no server')\ndef test_it(): pass",
    "test_condition": "@pytest.mark.skipif(True, reason='no server')\ndef test_it(): pass",
    "test_call": "def test_it(): pytest.skip('no server')",
    "test_fixture": (
        "@pytest.fixture\ndef server(): pytest.skip('no server')\ndef test_it(server): pass"
    ),
    "test_no_parameters": "@pytest.mark.parametrize('server', [])\ndef test_it(server): pass",
    "test_module": "pytest.skip('no server', allow_module_level=True)",
    "test_import": "pytest.importorskip('no_server')",
}


@pytest.fixture
def run(pytester, monkeypatch):
    """Run pytest over some files, with or without CI in the environment."""

    def run_pytest(ci: str | None, **files: str) -> pytest.RunResult:
        if ci is None:
            monkeypatch.delenv("CI", raising=False)
        else:
            monkeypatch.setenv("CI", ci)
        pytester.makeconftest(CONFTEST)
        pytester.makepyfile(**{name: f"import pytest\n{body}" for name, body in files.items()})
        # A subprocess, since conftest.py sets the Hypothesis profile of its whole process.
        return pytester.runpytest_subprocess("-p", "no:xdist", "--continue-on-collection-errors")

    return run_pytest


def test_in_ci_every_skip_is_a_failure_that_says_why(run):
    result = run("true", **WAYS_TO_SKIP)
    # pytest calls it an error where the test's own body was never reached.
    result.assert_outcomes(failed=1, errors=len(WAYS_TO_SKIP) - 1)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    printed = result.stdout.str()
    assert printed.count("A missing component is a failure, never a skip") >= len(WAYS_TO_SKIP)
    assert "no server" in printed
    for name in WAYS_TO_SKIP:
        result.stdout.re_match_lines([rf"(FAILED|ERROR) {name}\.py.*"])


@pytest.mark.parametrize("ci", [None, "false"])
def test_elsewhere_a_skip_stays_a_skip(run, ci):
    result = run(ci, **WAYS_TO_SKIP)
    result.assert_outcomes(skipped=len(WAYS_TO_SKIP))
    assert result.ret == pytest.ExitCode.OK


def test_in_ci_what_passes_and_what_fails_as_expected_stay_so(run):
    body = "def test_good(): pass\n@pytest.mark.xfail\ndef test_known(): assert False"
    run("true", test_it=body).assert_outcomes(passed=1, xfailed=1)


@pytest.mark.parametrize(("ci", "profile"), [("true", "ci"), (None, "dev")])
def test_hypothesis_runs_the_profile_of_the_place(run, ci, profile):
    body = (
        "from hypothesis import settings\n"
        "def test_it():\n"
        f"    assert settings.get_current_profile_name() == {profile!r}\n"
        f"    assert settings().derandomize == {profile == 'ci'}\n"
        "    assert settings().deadline is None"
    )
    run(ci, test_it=body).assert_outcomes(passed=1)
