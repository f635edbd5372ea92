"""The JSON Schema of sharewell.toml and the table of keys: generated and in step."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from jsonschema_rs import Draft7Validator
from scripts.config_reference import DOCS, schema_text, with_table

from sharewell.config import parse_config
from sharewell.config.schema import config_schema
from sharewell.errors import ConfigError
from tests.config import test_check, test_config, test_service
from tests.pages import fenced_blocks
from tests.service.services import CONFIG, MECHANISMS, SCHEDULERS

ROOT = Path(__file__).parents[2]
VALIDATOR = Draft7Validator(config_schema())


def valid(text: str) -> bool:
    """Whether a file fits the schema, as an editor sees it: dates are strings."""
    return VALIDATOR.is_valid(json.loads(json.dumps(tomllib.loads(text), default=str)))


def of_the_docs() -> list[Any]:
    return [
        pytest.param(block.text, id=f"{page.name}:{block.opens}")
        for page in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
        for block in fenced_blocks(page.read_text(encoding="utf-8"))
        if block.language == "toml" and "[dataset]" in block.text
    ]


def of_the_tests() -> list[str]:
    services = [
        CONFIG.format(mechanism=mechanism, scheduler=scheduler)
        for mechanism in MECHANISMS.values()
        for scheduler in SCHEDULERS.values()
    ]
    return [test_config.WHOLE, test_config.SMALL, test_check.HERE, *services]


def test_the_committed_schema_is_the_generated_one():
    assert (DOCS / "sharewell.schema.json").read_text(encoding="utf-8") == schema_text()


def test_the_table_of_keys_is_the_generated_one():
    page = (DOCS / "configuration.md").read_text(encoding="utf-8")
    assert page == with_table(page), "run scripts/config_reference.py"


def test_the_schema_is_printed_for_an_editor():
    command = [sys.executable, "-m", "sharewell.config.schema"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True)
    assert json.loads(printed.stdout) == config_schema()


@pytest.mark.parametrize("text", of_the_docs())
def test_every_configuration_in_the_docs_fits(text):
    assert valid(text)


@pytest.mark.parametrize("text", of_the_tests())
def test_every_configuration_of_the_tests_fits(text):
    parse_config(text)
    assert valid(text)


@pytest.mark.parametrize(
    "section",
    [
        *(f"[mechanism]\n{lines}" for lines, _ in test_config.MECHANISM_KINDS),
        *(f"[scheduler]\n{lines}" for lines, _ in test_config.SCHEDULER_KINDS),
    ],
)
def test_every_mechanism_and_scheduler_fits(section):
    assert valid(f"{test_config.SMALL}\n{section}\n")


#: What a schema cannot know: sums, names, other keys and the meaning of a string.
BEYOND = (
    *("shares sum to", "percentage, and", "attributes.age: ", "plain number", "delta must be below"),
    *("marginals(7)", "sum to 1.1", "turns = { ann = 1 }", "must name a file", "unknown scheme"),
    *("contains a password", "are the same", "is empty", "invalid name", "twice", "both an analyst"),
)


@pytest.mark.parametrize(
    "wrong",
    [
        *(test_config.SMALL.replace(right, wrong, 1) for right, wrong, *_ in test_config.MISTAKES),
        *(test_service.with_service(lines) for lines, *_ in test_service.MISTAKES),
    ],
)
def test_what_the_reader_refuses_the_schema_refuses_where_it_can(wrong):
    with pytest.raises(ConfigError) as caught:
        parse_config(wrong)
    if not any(words in str(caught.value) or words in wrong for words in (*BEYOND, "TOML")):
        assert not valid(wrong), str(caught.value)
