"""No file of the project names a machine it was written on, or the host of a package registry."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

FORBIDDEN = {
    "the host of a package registry": re.compile(
        rb"pypi\.org|pythonhosted\.org|npmjs\.(?:org|com)|yarnpkg\.com|anaconda\.(?:org|com)"
        rb"|crates\.io/api|index-url\s*[= ]\s*\w+:",
        re.IGNORECASE,
    ),
    "a path of one machine": re.compile(
        rb"(?<![\w.~$}*-])/(?:root|work|opt/(?:pypi|wheels)|home/\w+|Users/\w+)(?:/|(?![\w-]))"
    ),
}


def project_files() -> list[Path]:
    """What git holds or would add: new files count before they are committed."""
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    names = {name for name in listing.stdout.decode().split("\0") if name}
    return sorted(path for name in names if (path := ROOT / name).is_file())


def findings(text: bytes) -> list[str]:
    """Each forbidden thing in a text, with its line."""
    return [
        f"line {line}: {what}: {match.group().decode()}"
        for line, content in enumerate(text.split(b"\n"), start=1)
        for what, pattern in FORBIDDEN.items()
        for match in pattern.finditer(content)
    ]


def test_the_project_speaks_only_of_itself():
    files = project_files()
    assert Path(__file__) in files
    found = [
        f"{path.relative_to(ROOT)}, {finding}"
        for path in files
        for finding in findings(path.read_bytes())
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    "text",
    [
        "see /{}/notes.md",
        "cd /{}",
        '"/{}/main"',
        "file:///{}/x",
    ],
)
@pytest.mark.parametrize("folder", ["root", "work", "home/ann", "Users/ann"])
def test_a_path_of_one_machine_is_found(text, folder):
    assert findings(text.format(folder).encode())


@pytest.mark.parametrize("host", ["{}.org/simple", "https://files.{}hosted.org/packages"])
def test_the_host_of_a_registry_is_found(host):
    assert findings(host.format("pypi" if host.startswith("{}") else "python").encode())


@pytest.mark.parametrize(
    "text",
    [
        "docs/work/plan.md",
        "https://example.org/work/",
        "work/life",
        "/workload",
        "~/work/x",
        "/rooted",
    ],
)
def test_what_only_resembles_one_is_let_be(text):
    assert not findings(text.encode())
