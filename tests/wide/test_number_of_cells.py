"""Nothing that is written anywhere tells how many cells of a wide table are non-empty.

Two tables have the same answers to all that is asked, without noise. In one of them all rows are in one
cell; in the other each has its own. Whatever commands and a server say of them must be the same.
"""

from __future__ import annotations

import logging
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sharewell.config import read_config
from sharewell.privacy.ledger import Charged, Released
from sharewell.privacy.noise import ExactNoise
from sharewell.service.ledger import open_ledger
from tests.cli.commands import said
from tests.service.http.servers import running

ROWS = 617
COLUMNS = [f"c{at}" for at in range(8)]
CONFIG = """
[dataset]
name = "people"
source = "people.parquet"
population = 600
max_rows = 900
[budget]
epsilon = 10
error_threshold = 20
[measures.wage]
column = "c1"
low = -3
high = 9
step = 1
[analysts.ann]
share = "1/2"
[mechanism]
query_budget = "1/80"
seed = [["c0"], []]
[service]
witness = "witness.json"
certificate = false
release_every = 0.002
"""
#: What is asked, and whether it may be paid for.
ASKED = [
    ("SELECT COUNT(*) FROM people", True),
    ("SELECT c0, COUNT(*) FROM people GROUP BY c0", True),
    ("SELECT COUNT(*), SUM(wage), AVG(wage) FROM people WHERE c0 = 3", True),
    ("SELECT c0, c1, COUNT(*) FROM people GROUP BY c0, c1", True),
    ("SELECT COUNT(*) FROM people WHERE c5 = 1 AND c6 = 2", False),
    ("SELECT COUNT(*) FROM people WHERE c9 = 1", True),
    ("SELECT c2, c3, c4, c5, c6, c7, COUNT(*) FROM people GROUP BY ALL", True),
]
#: What differs between runs: times, and a line if opening is slow; ids, digests, addresses, tokens.
BY_CHANCE = re.compile(
    r'^.*"event":"opening"}\n'
    r'|"(?:time|request_id)": ?"[^"]*"|"(?:milli)?seconds": ?[0-9.e-]+|^\S+_(?:created|seconds)\S* .*$'
    r"|\b[0-9a-f]{8,}\b|sw_\S+|127\.0\.0\.1:\d+|\d{4}-\d\d-\d\d[T ][0-9:.]+",
    re.MULTILINE,
)


def write_people(folder: Path, *, in_one_cell: bool) -> Path:
    """Rows that are alike in the first two columns, and in the others alike or all different."""
    folder.mkdir()
    columns = {"c0": np.full(ROWS, 3), "c1": np.full(ROWS, 5)}
    own = np.zeros(ROWS, dtype=int) if in_one_cell else np.arange(ROWS)
    columns |= {name: own // 10 ** (at % 3) % 10 for at, name in enumerate(COLUMNS[2:])}
    pq.write_table(pa.table(columns), folder / "people.parquet")
    attributes = [f'[attributes.{name}]\ntype = "integer"\nlow = 0\nhigh = 9\n' for name in COLUMNS]
    path = folder / "people.toml"
    path.write_text(CONFIG + "".join(attributes))
    return path


def written(path: Path) -> dict[str, list[str]]:
    """All that is written anywhere about a table: commands, replies, logs, metrics, the ledger."""
    found = {"commands": [said("check", str(path)), said("begin", str(path), "--yes")]}
    with running(path) as server:
        ann, curator = server.analyst("ann"), server.curator()
        replies = [ann.ask(sql, pay=pay, key=str(at)) for at, (sql, pay) in enumerate(ASKED)]
        replies += [ann.post("/quote", {"sql": sql}) for sql, _ in ASKED]
        replies += [ann.get(), ann.get("/me"), curator.get("/analysts")]
        found["replies"] = [f"{reply.status_code} {reply.text}" for reply in replies]
        found["metrics"] = [server.client().get("/metrics").text]
    found["log"] = [server.log]
    config = read_config(path)
    with open_ledger(config.service.ledger, read_only=True) as ledger:
        events = [event for event in ledger.events() if isinstance(event, Charged | Released)]
    found["ledger"] = list(map(repr, events))
    return found


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """The data of each table, and what is written about it, without what chance makes differ."""
    folder, messages = tmp_path_factory.mktemp("cells"), list[str]()
    handler = logging.Handler(logging.DEBUG)
    found = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(handler, "emit", lambda record: messages.append(record.getMessage()))
        for kind in ("laplace", "gaussian"):
            patch.setattr(ExactNoise, kind, lambda self, scale, size: np.zeros(size, dtype=np.int64))
        logging.getLogger().addHandler(handler)
        try:
            for in_one_cell in (False, True):
                path = write_people(folder / str(in_one_cell), in_one_cell=in_one_cell)
                messages.clear()
                everything = written(path) | {"messages": messages}
                kept = {
                    name: [BY_CHANCE.sub("", text.replace(str(path.parent), "")) for text in texts]
                    for name, texts in everything.items()
                }
                found.append((read_config(path).vector(), kept))
        finally:
            logging.getLogger().removeHandler(handler)
    return found


def test_the_tables_differ_in_the_number_of_their_cells_alone(both):
    (own, _), (one, _) = both
    assert [int(np.count_nonzero(each.counts)) for each in (own, one)] == [3 * ROWS, 3]
    assert len(own.counts) == len(one.counts)
    assert repr(own) == repr(one)


@pytest.mark.parametrize("where", ["commands", "replies", "metrics", "log", "ledger", "messages"])
def test_what_is_written_is_the_same(both, where):
    (_, own), (_, one) = both
    assert own[where] == one[where]


def test_what_is_compared_has_the_answers(both):
    """So that it would have the number of cells, too, if that was written."""
    (_, found), _ = both
    assert any(f'"value":{ROWS}.0' in reply for reply in found["replies"])
    assert "sharewell_questions_total" in found["metrics"][0]
    assert '"event":"request"' in found["log"][0]
    assert len(found["ledger"]) > 6
