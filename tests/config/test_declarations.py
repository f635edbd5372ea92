"""A new mechanism or scheduler needs its own file and an entry in the registry, and nothing else."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import sharewell
from sharewell.mechanisms.registry import MECHANISMS
from sharewell.schedulers.registry import SCHEDULERS

SOURCE = Path(sharewell.__file__).parent

MECHANISM = """
from sharewell.mechanisms.base import Guarantee
from sharewell.mechanisms.laplace import Laplace
from sharewell.options import BOOLEAN, Option

class Toy(Laplace):
    name = "Toy"
    key = "toy"
    options = (*Laplace.options, Option("loud", BOOLEAN, True, "whether it is loud"))
    guarantee = Guarantee("guarantees/toy.md", ("It is a toy.",))

    def __init__(self, curator, *, query_budget, loud):
        super().__init__(curator, query_budget=query_budget)
        self.loud = loud

    @classmethod
    def arguments(cls, options, context):
        return {**super().arguments(options, context), "loud": options["loud"]}
"""

SCHEDULER = """
from sharewell.options import INTEGER, Option
from sharewell.schedulers.base import InOrder

class Toy(InOrder):
    name = "toy"
    options = (Option("speed", INTEGER, None, "how fast it is", unset="slow"),)

    def __init__(self, analysts=(), speed=None):
        super().__init__(analysts)
        self.speed = speed
"""

CONFIG = """
[dataset]
source = "people.csv"
[budget]
epsilon = 1
error_threshold = 50
[attributes.age]
type = "integer"
low = 0
high = 9
[analysts.ann]
share = "1/2"
"""

USE = """
import sys
from jsonschema_rs import Draft7Validator
import tomllib
from sharewell.config import parse_config
from sharewell.config.check import check_config
from sharewell.config.schema import config_schema
from sharewell.errors import ConfigError

text = sys.argv[1]
assert Draft7Validator(config_schema()).is_valid(tomllib.loads(text))
report = check_config(parse_config(text))
data = report.to_json()
assert data["ok"], data
print(data["mechanism"], data["query_budget"], data["scheduler"], data["promises"][0]["page"])
try:
    parse_config(text.replace("loud = ", "laud = ").replace("speed = ", "sped = "))
except ConfigError as error:
    print(error)
"""


def use(tmp_path: Path, package: str, file: str, config: str) -> list[str]:
    """What a copy of the product prints that has one more file in a package and its registry."""
    copy = tmp_path / "sharewell"
    shutil.copytree(SOURCE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    (copy / package / "toy.py").write_text(file)
    registry = (copy / package / "registry.py").read_text()
    start, listed = "from __future__ import annotations\n", "kind for kind in ("
    assert registry.count(start) == registry.count(listed) == 1
    registry = registry.replace(start, f"{start}\nfrom sharewell.{package}.toy import Toy\n")
    (copy / package / "registry.py").write_text(registry.replace(listed, f"{listed}Toy, "))
    (tmp_path / "people.csv").write_text("age\n1\n")
    paths = [str(tmp_path), *(path for path in sys.path if path and path != str(SOURCE.parent))]
    ran = subprocess.run(
        [sys.executable, "-c", USE, f"{CONFIG}\n{config}"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.splitlines()


def test_a_new_mechanism_needs_its_file_and_the_registry(tmp_path):
    config = '[mechanism]\nname = "toy"\nloud = true\nquery_budget = "1/8"'
    assert use(tmp_path, "mechanisms", MECHANISM, config) == [
        "Toy 1/8 none guarantees/toy.md",
        "Unknown key 'mechanism.laud'. Did you mean 'loud'?",
    ]


def test_a_new_scheduler_needs_its_file_and_the_registry(tmp_path):
    config = '[scheduler]\nname = "toy"\nspeed = 3'
    assert use(tmp_path, "schedulers", SCHEDULER, config) == [
        "Seeded Cache and Reconstruct 1/100 toy guarantees/cache-reconstruct.md",
        "Unknown key 'scheduler.sped'. Did you mean 'speed'?",
    ]


@pytest.mark.parametrize("kind", [*MECHANISMS.values(), *SCHEDULERS.values()])
def test_every_option_says_what_it_does_and_reads_its_default(kind):
    for option in kind.options:
        assert option.help
        if option.default is None:
            assert option.unset
        else:
            option.type.read(option.default, option.name)
