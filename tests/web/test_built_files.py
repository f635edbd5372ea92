"""The built files of the console: as their sources are, small, and without anything from elsewhere."""

import gzip
import re
import shutil
import subprocess
from importlib.resources import files
from pathlib import Path

import pytest

from sharewell.privacy.ledger import SECRET
from sharewell.service.ledger.codec import KINDS
from tests.service.http.servers import problem, running, write_dataset

WEB = Path(__file__).parents[2] / "web"
STATIC = Path(str(files("sharewell.service.http").joinpath("static")))
#: Whether the sources can be built here: no test may depend on a package registry.
CAN_BUILD = shutil.which("node") is not None and (WEB / "node_modules" / "esbuild").exists()
#: The bundle may take this many bytes over the network.
MOST_BYTES = 300_000
MOST_BYTES_TO_SIGN_IN = 25_000


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    with running(write_dataset(tmp_path_factory.mktemp("served"))) as server:
        yield server.client()


class TestRebuilding:
    __test__ = CAN_BUILD

    def test_the_files_are_as_their_sources(self):
        done = subprocess.run(["node", "build.mjs", "--check"], cwd=WEB, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr


def test_the_bundle_is_small():
    parts = [path for path in STATIC.iterdir() if path.suffix in (".js", ".css")]
    sizes = {path.name: len(gzip.compress(path.read_bytes(), 9)) for path in parts}
    assert 50_000 < sum(sizes.values()) < MOST_BYTES
    # The form to sign in is there before the editor is.
    page = (STATIC / "index.html").read_text()
    assert sum(size for name, size in sizes.items() if name in page) < MOST_BYTES_TO_SIGN_IN


def test_every_kind_of_event_is_shown_in_words():
    text = (WEB / "src" / "curator" / "events.js").read_text()
    shown = {name for name, kind in KINDS.items() if kind not in SECRET}
    assert {name for name in shown if f"\n  {name}: [" not in text} == set()


def test_the_lock_names_no_host_and_pins_every_package():
    text = (WEB / "package-lock.json").read_text()
    assert "resolved" not in text
    assert "://" not in re.sub(r'"url": "[^"]*"', "", text)
    package = (WEB / "package.json").read_text()
    assert not re.search(r'"[\^~*]', package)


def test_the_page_runs_only_its_own_script(client):
    page = client.get("/")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    policy = dict(
        part.strip().split(" ", 1) for part in page.headers["content-security-policy"].split(";")
    )
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == "'self'"
    assert policy["connect-src"] == "'self'"
    assert policy["frame-ancestors"] == "'none'"
    [nonce] = re.findall(r"'nonce-([\w-]{20,})'", policy["style-src"])
    assert f'content="{nonce}"' in page.text
    assert "unsafe" not in page.headers["content-security-policy"]
    assert re.findall(r"<script(.*?)>(.*?)</script>", page.text) == [
        (f' type="module" src="{script_of(page.text)}"', "")
    ]
    assert not re.search(r"\son\w+=|javascript:|https?://|<style", page.text)


def script_of(page: str) -> str:
    [found] = re.findall(r'src="(console/[0-9a-f]{12}/app\.js)"', page)
    return found


def test_every_page_has_another_nonce(client):
    policies = {client.get("/").headers["content-security-policy"] for _ in range(3)}
    assert len(policies) == 3
    assert client.get("/").headers["cache-control"] == "no-store"


def test_files_are_compressed_and_kept_for_long(client):
    page = client.get("/").text
    names = re.findall(r'(?:src|href)="(console/[^"]+)"', page)
    assert {name.rpartition("/")[2] for name in names} >= {"app.js", "app.css", "icon.svg"}
    version = script_of(page).split("/")[1]
    for name in (*names, *(f"console/{version}/{path.name}" for path in STATIC.glob("part-*.js"))):
        reply = client.get(f"/{name}")
        assert reply.headers["content-encoding"] == "gzip"
        assert "immutable" in reply.headers["cache-control"]
        plain = client.get(f"/{name}", headers={"accept-encoding": "identity"})
        assert "content-encoding" not in plain.headers
        assert plain.content == reply.content == (STATIC / name.rpartition("/")[2]).read_bytes()


@pytest.mark.parametrize(
    "path", ["0" * 12 + "/app.js", "{version}/index.html", "{version}/..%2fconsole.py"]
)
def test_no_other_file_is_served(client, path):
    version = script_of(client.get("/").text).split("/")[1]
    problem(client.get(f"/console/{path.format(version=version)}"), 404, "request.not-found")


def test_the_packages_in_the_bundle_are_named_with_their_licences(client):
    text = (STATIC / "LICENSES.txt").read_text()
    for name in ("preact", "@codemirror/state", "@lezer/common", "style-mod"):
        assert re.search(rf"^{name} \d", text, re.MULTILINE)
