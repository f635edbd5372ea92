"""What every test shares: Hypothesis profiles, coverage, and the rule that CI skips nothing."""

import atexit
import importlib
import os
import pkgutil
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, is_hypothesis_test, settings

#: Where measuring coverage is slow, these folders are left out: they run what the others run, at length.
UNMEASURED = {"faults", "lab", "robustness", "sharing", "web", "wide"}

IN_CI = os.environ.get("CI", "").lower() in {"1", "true"}

# Witnesses of the tests' datasets, also of those in other processes, are not this user's.
os.environ["XDG_STATE_HOME"] = tempfile.mkdtemp(prefix="sharewell-state-")
atexit.register(shutil.rmtree, os.environ["XDG_STATE_HOME"], ignore_errors=True)

# No profile depends on how busy the machine is. In CI one commit has the same examples in every run, and
# so does not fail by luck; elsewhere they are new each time, and find what CI does not.
settings.register_profile(
    "dev", deadline=None, max_examples=50, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile(
    "ci", settings.get_profile("dev"), max_examples=100, print_blob=True, derandomize=True, database=None
)
settings.load_profile("ci" if IN_CI else "dev")


def pytest_collection_finish(session: pytest.Session) -> None:
    """Load the whole product: Hypothesis takes examples from the constants of all modules loaded so far.

    What has been loaded would otherwise depend on which tests ran before in the same process.
    """
    if IN_CI and any(is_hypothesis_test(getattr(item, "obj", None)) for item in session.items):
        for package in map(importlib.import_module, ("sharewell", "sharewell_lab")):
            for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
                if not module.name.endswith("__main__"):
                    importlib.import_module(module.name)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put files with long tests first, and leave long tests out of the coverage on Python 3.11.

    Files are handed to the workers in this order (`--dist loadfile`), so that their servers and tables
    are made once, and no long file is left for the end.

    Without `sys.monitoring`, tracing adds about 60 % to a test that runs Python all the time. Tests that
    repeat or simulate run the same lines over and over, and so do the many cases of one test, of which
    the first is measured, except those of the query language, where each is another statement: what the
    rest adds to the figure is little.
    """
    long = {item.path for item in items if _is_long(item)}
    items.sort(key=lambda item: item.path not in long)
    if hasattr(sys, "monitoring"):
        return
    seen: set[str] = set()
    for item in items:
        test = item.nodeid.partition("[")[0]
        repeats = test in seen and "query" not in item.path.parts
        repeats |= not UNMEASURED.isdisjoint(item.path.parts)
        seen.add(test)
        if repeats or _is_long(item) or is_hypothesis_test(getattr(item, "obj", None)):
            item.add_marker(pytest.mark.no_cover)


def _is_long(item: pytest.Item) -> bool:
    return any(item.get_closest_marker(name) for name in ("slow", "statistical"))


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


@pytest.fixture(autouse=True, scope="session")
def decisions_are_made_once() -> Iterator[None]:
    """Whether counts are bought as signed rows is decided once for each configuration.

    Thousands of tests begin a dataset with one of a few configurations, and the decision, which follows
    from the configuration alone, takes longer than all else that is done then.
    """
    if "sharewell.config" not in sys.modules:
        yield
        return
    from sharewell.config import Config

    decide, known = Config.decided, dict[object, bool]()

    def decided(config: Config) -> Config:
        # The text says everything, except what a test has replaced.
        rest = config.domain, config.budget, config.analysts, config.neighbours, config.make
        key = config.text, repr(rest), config.max_rows_per_person
        if key not in known:
            known[key] = decide(config).make.signed_rows
        return replace(config, make=config.make.with_signed_rows(known[key]))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Config, "decided", decided)
        yield


@pytest.fixture
def in_place_at_once(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """What is measured in place leaves as soon as it is known, and not at its deadline.

    So the deadline can be one that no busy machine misses. The seconds that were not waited are listed.
    """
    from sharewell.engine.in_place import InPlaceData

    defaults = InPlaceData.__init__.__kwdefaults__ or {}
    waits: list[float] = []
    monkeypatch.setitem(defaults, "wait", waits.append)
    return waits
