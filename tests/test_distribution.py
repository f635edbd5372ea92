"""The wheel and the sdist build without network, are complete, and run in a fresh environment."""

import os
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

import sharewell

ROOT = Path(__file__).parent.parent

pytestmark = pytest.mark.slow


def run(*command: str | Path, check: bool = True) -> subprocess.CompletedProcess[str]:
    """Run a command outside the checkout's import path."""
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(command, check=check, capture_output=True, text=True, env=env)


def build(source: Path, into: Path) -> dict[str, Path]:
    """Build an sdist, and a wheel from the sdist, with the build backend of this environment."""
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", into, source)
    return {path.suffix: path for path in into.iterdir()}


@pytest.fixture(scope="module")
def product(tmp_path_factory) -> dict[str, Path]:
    return build(ROOT, tmp_path_factory.mktemp("product"))


@pytest.fixture(scope="module")
def fresh(tmp_path_factory, product) -> Path:
    """A new environment with the wheel and the locked packages of this one, without the checkout."""
    folder = tmp_path_factory.mktemp("fresh")
    packages = folder / "packages"
    packages.mkdir()
    for site in [Path(entry) for entry in sys.path if entry.endswith("site-packages")]:
        for each in site.iterdir():
            link = packages / each.name
            if each.suffix != ".pth" and "sharewell" not in each.name and not link.exists():
                link.symlink_to(each)
    venv.create(folder / "venv", symlinks=True)
    python = folder / "venv" / "bin" / "python"
    purelib = run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").stdout.strip()
    Path(purelib, "packages.pth").write_text(f"{packages}\n")
    install(python, product[".whl"])
    return python.parent


def install(python: Path, wheel: Path) -> None:
    pip = (sys.executable, "-m", "pip", "--python", python, "--disable-pip-version-check")
    run(*pip, "install", "--no-index", "--no-deps", "--quiet", wheel)


def test_the_wheel_holds_the_product_and_nothing_else(product):
    names = zipfile.ZipFile(product[".whl"]).namelist()
    tops = {name.split("/")[0] for name in names}
    assert tops == {"sharewell", f"sharewell-{sharewell.__version__}.dist-info"}
    assert "sharewell/py.typed" in names
    tracked = run("git", "-C", ROOT, "ls-files", "src").stdout.splitlines()
    assert {name.removeprefix("src/") for name in tracked} <= set(names)


def test_the_sdist_holds_what_the_tests_need(product):
    with tarfile.open(product[".gz"]) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    for name in ("LICENSE", "README.md", "CITATION.cff", "SECURITY.md", "Makefile", "mkdocs.yml"):
        assert name in names
    for name in ("tests/conftest.py", "docs/tutorial.md", "requirements/dev.lock", "research/README.md"):
        assert name in names
    assert not [name for name in names if name.startswith((".venv", "site/", ".git/"))]


def test_the_installed_command_runs_from_the_wheel(fresh):
    where = run(fresh / "python", "-c", "import sharewell; print(sharewell.__file__)").stdout
    assert where.startswith(str(fresh.parent))
    assert run(fresh / "sharewell", "--version").stdout == f"sharewell {sharewell.__version__}\n"
    assert run(fresh / "sharewell", "--help").returncode == 0
    data = "from sharewell import datasets; print(datasets.movers_by_age().domain.size)"
    assert run(fresh / "python", "-c", data).stdout == "86\n"
    schema = run(fresh / "python", "-m", "sharewell.config.schema").stdout
    assert schema == (ROOT / "docs" / "sharewell.schema.json").read_text(encoding="utf-8")


def test_the_lab_is_a_distribution_of_its_own(fresh, tmp_path):
    limit = ("theory", "limit", "--alpha", "1000", "--epsilon", "1", "--analysts", "8")
    without = run(fresh / "sharewell", *limit, check=False)
    assert without.returncode == 2
    assert "sharewell-lab, which is not installed" in without.stderr
    lab = build(ROOT / "research", tmp_path)
    names = zipfile.ZipFile(lab[".whl"]).namelist()
    assert {"sharewell_lab/py.typed", "sharewell_lab/cli.py"} <= set(names)
    assert {name.split("/")[0] for name in names if "dist-info" not in name} == {"sharewell_lab"}
    install(fresh / "python", lab[".whl"])
    assert "100.0" in run(fresh / "sharewell", *limit).stdout


def test_versions_agree():
    version = f'version = "{sharewell.__version__}"'
    assert version in (ROOT / "pyproject.toml").read_text()
    assert version in (ROOT / "research" / "pyproject.toml").read_text()
    assert f"version: {sharewell.__version__}" in (ROOT / "CITATION.cff").read_text()
