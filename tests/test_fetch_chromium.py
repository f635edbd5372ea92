"""scripts/fetch_chromium: what it does where a browser is there, can be installed, or cannot."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "scripts" / "fetch_chromium"
pytestmark = pytest.mark.skipif(shutil.which("sh") is None, reason="needs a POSIX shell")


@pytest.fixture
def commands(tmp_path):
    """The only folder in which the script finds commands."""
    folder = tmp_path / "bin"
    folder.mkdir()
    os.symlink(shutil.which("env") or "", folder / "env")
    return folder


def command(folder, name, body):
    path = folder / name
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)


def run(commands, **environment):
    done = subprocess.run(
        ["/bin/sh", str(SCRIPT)],
        env={"PATH": str(commands), **environment},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def installer(commands, tmp_path, works="true"):
    """An apt-get that notes its arguments, and puts a browser where the script looks for one."""
    body = f'echo "$*" >> {tmp_path}/calls; {works} && : > {commands}/chromium'
    command(commands, "apt-get", body)
    return tmp_path / "calls"


def test_a_browser_that_is_there_is_left_alone(commands, tmp_path):
    calls = installer(commands, tmp_path)
    command(commands, "id", "echo 0")
    command(commands, "chromium-browser", "")
    assert run(commands) == ""
    (commands / "chromium-browser").unlink()
    assert run(commands, CHROMIUM="/opt/browser") == ""
    assert not calls.exists()


def test_root_installs_the_package(commands, tmp_path):
    calls = installer(commands, tmp_path)
    command(commands, "id", "echo 0")
    assert run(commands) == "fetch_chromium: Installing Debian's chromium.\n"
    assert calls.read_text() == "install --yes --no-install-recommends chromium\n"


def test_a_user_installs_it_with_a_sudo_that_asks_for_no_password(commands, tmp_path):
    calls = installer(commands, tmp_path)
    command(commands, "id", "echo 1000")
    command(commands, "sudo", 'shift; exec "$@"')
    command(commands, "true", "")
    assert run(commands) == "fetch_chromium: Installing Debian's chromium.\n"
    assert calls.read_text() == "install --yes --no-install-recommends chromium\n"


def test_old_lists_of_packages_are_renewed(commands, tmp_path):
    calls = installer(commands, tmp_path, works=f'grep -q update {tmp_path}/calls && [ "$1" = install ]')
    command(commands, "id", "echo 0")
    os.symlink(shutil.which("grep") or "", commands / "grep")
    assert "missing" not in run(commands)
    assert [line.split()[0] for line in calls.read_text().splitlines()] == [
        "install",
        "update",
        "install",
    ]


@pytest.mark.parametrize("user", ["0", "1000"])
def test_what_is_missing_is_said(commands, tmp_path, user):
    calls = installer(commands, tmp_path, works="false")
    command(commands, "id", f"echo {user}")
    assert "Chromium is missing. Install the package chromium, or set CHROMIUM" in run(commands)
    assert calls.exists() == (user == "0")
