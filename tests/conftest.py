"""What every test shares: Hypothesis profiles, and the rule that CI skips nothing."""

import os

import pytest
from hypothesis import settings

IN_CI = os.environ.get("CI", "").lower() in {"1", "true"}

settings.register_profile("dev", deadline=None, max_examples=50)
settings.register_profile("ci", deadline=None, max_examples=100, print_blob=True)
settings.load_profile("ci" if IN_CI else "dev")


def _fail_instead_of_skipping(report: pytest.TestReport | pytest.CollectReport) -> None:
    if not IN_CI or not report.skipped or hasattr(report, "wasxfail"):
        return
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    report.outcome = "failed"
    report.longrepr = f"{reason}\nA missing component is a failure, never a skip, when CI is true."


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport():
    report = yield
    _fail_instead_of_skipping(report)
    return report


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_make_collect_report():
    report = yield
    _fail_instead_of_skipping(report)
    return report
