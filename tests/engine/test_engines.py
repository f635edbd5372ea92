"""Every kind of source passes the one suite for engines."""

import pytest

from tests.engine.check_engine import check_engine
from tests.engine.source_kinds import SOURCES


@pytest.mark.parametrize("kind", SOURCES)
def test_every_source_passes_the_common_suite(kind, tmp_path):
    make = SOURCES[kind]
    check_engine(lambda rows: make(rows, tmp_path), typed=kind != "csv", thorough=kind == "arrow table")
