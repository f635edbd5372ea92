"""Verification: every damage that can be known from what is stored is found, and named."""

import random
import shutil
import sqlite3
from contextlib import closing

import psycopg
import pytest

from sharewell.errors import LedgerCorrupt, LedgerError
from sharewell.privacy.ledger import Answered, AnsweredFree, Asked, Event, Refused
from sharewell.service.ledger import Head, open_ledger, verify_chain
from sharewell.service.ledger.codec import encode, free_answers, read_answers
from sharewell.service.ledger.store import BEGINNING, SideRows, link
from sharewell.service.verify import verify
from tests.service.ledger.events import SAMPLES, numbered
from tests.service.ledger.postgres_server import postgres_ledger

COUNT = 40

CHANGE = "UPDATE events SET body = replace(body, 'event 7', 'event 8') WHERE number = 7"
SWAP = (
    "UPDATE events SET number = -1 WHERE number = {0}",
    "UPDATE events SET number = {0} WHERE number = {1}",
    "UPDATE events SET number = {1} WHERE number = -1",
)
SWAP_BODIES = (
    "CREATE TABLE held AS SELECT number, body FROM events WHERE number IN (3, 9)",
    "UPDATE events SET body = (SELECT body FROM held WHERE number = 9) WHERE number = 3",
    "UPDATE events SET body = (SELECT body FROM held WHERE number = 3) WHERE number = 9",
)
CLOSE_THE_GAP = (
    "DELETE FROM events WHERE number = 35",
    *(f"UPDATE events SET number = {n - 1} WHERE number = {n}" for n in range(36, COUNT)),
)

#: What somebody does to the rows, and what is found: (what, number) of each finding.
DAMAGES = {
    "a changed event": ([CHANGE], [("changed", 7)]),
    "a changed hash": (["UPDATE events SET hash = zeroblob(32) WHERE number = 7"], [("changed", 7)]),
    "a changed first event": (
        ["UPDATE events SET body = '{}' WHERE number = 0"],
        [("changed", 0)],
    ),
    "a deleted event": (["DELETE FROM events WHERE number = 7"], [("missing", 7)]),
    "a deleted first event": (["DELETE FROM events WHERE number = 0"], [("missing", 0)]),
    "deleted events": (
        ["DELETE FROM events WHERE number IN (7, 8, 9, 20)"],
        [("missing", 7), ("missing", 20)],
    ),
    "a deleted end": (["DELETE FROM events WHERE number >= 30"], [("missing", 30)]),
    "everything deleted": (["DELETE FROM events"], [("missing", 0)]),
    "two events that changed places": (
        [statement.format(3, 9) for statement in SWAP],
        [("moved", 3), ("moved", 9)],
    ),
    "neighbours that changed places": (
        [statement.format(3, 4) for statement in SWAP],
        [("moved", 3), ("moved", 4)],
    ),
    "contents that changed places": (SWAP_BODIES, [("changed", 3), ("changed", 9)]),
    "a deleted event whose gap was closed": (
        CLOSE_THE_GAP,
        [("changed", 35), *(("moved", n) for n in range(36, COUNT - 1)), ("missing", COUNT - 1)],
    ),
    "a number from nowhere": (
        ["UPDATE events SET number = -5 WHERE number = 7"],
        [("moved", -5), ("missing", 7)],
    ),
    "an event behind the end": (
        ["UPDATE events SET number = 50 WHERE number = 39"],
        [("missing", 39), ("head", 50)],
    ),
    "an end that was moved": (["UPDATE head SET count = 20"], [("head", 20)]),
    "an end with another hash": (["UPDATE head SET hash = zeroblob(32)"], [("head", None)]),
    "no end at all": (["DELETE FROM head"], [("damaged", None)]),
}


def filled(path, count=COUNT):
    with open_ledger(path, create=True) as ledger:
        ledger.append_many([numbered(i) for i in range(count)])
        return ledger.head


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    path = tmp_path_factory.mktemp("whole") / "ledger.sqlite"
    filled(path)
    return path


@pytest.fixture
def path(whole, tmp_path):
    return shutil.copy(whole, tmp_path / "ledger.sqlite")


def tamper(path, *statements):
    with closing(sqlite3.connect(path)) as connection:
        for trigger in ("events_stay", "events_stay_as_they_are"):
            connection.execute(f"DROP TRIGGER {trigger}")
        for statement in statements:
            connection.execute(statement)
        connection.commit()


def found(path, **options):
    findings = verify_chain(path, **options)
    for finding in findings:
        assert finding.event is None or str(finding.event) in str(finding), "it is named"
    return [(finding.kind, finding.event) for finding in findings]


def test_an_untouched_ledger_has_no_findings(path):
    assert verify_chain(path) == []


@pytest.mark.parametrize("damage", DAMAGES)
def test_each_damage_is_found_and_named(path, damage):
    statements, expected = DAMAGES[damage]
    tamper(path, *statements)
    assert found(path) == expected


def test_the_sentences_say_what_happened(path):
    tamper(path, *(statement.format(3, 9) for statement in SWAP), "DELETE FROM events WHERE number = 20")
    sentences = [str(finding) for finding in verify_chain(path)]
    assert "Event 9 is stored in the place of event 3." in sentences
    assert "Event 3 is stored in the place of event 9." in sentences
    assert "Event 20 is missing." in sentences


def rewrite(path, first):
    """Change an event, and compute every hash from there on anew, as somebody who knows how would."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("DROP TRIGGER events_stay_as_they_are")
        previous = BEGINNING
        for number in range(COUNT):
            body = encode(numbered(number + (1000 if number == first else 0)))
            previous = link(previous, number, body)
            connection.execute(
                "UPDATE events SET body = ?, hash = ? WHERE number = ?",
                (body.decode(), previous, number),
            )
        connection.execute("UPDATE head SET hash = ?", (previous,))
        connection.commit()


def test_what_was_rewritten_from_one_event_to_the_end_is_found_by_a_noted_head(path):
    with open_ledger(path, create=True) as ledger:
        noted = ledger.head
    rewrite(path, first=30)
    assert found(path) == [], "this is what only a head that was kept elsewhere can tell"
    assert found(path, expected_head=noted) == [("head", COUNT - 1)]
    assert found(path, expected_head=str(noted)) == [("head", COUNT - 1)]


def test_an_older_copy_is_found_by_a_noted_head(path, tmp_path):
    copy = shutil.copy(path, tmp_path / "copy.sqlite")
    with open_ledger(path, create=True) as ledger:
        ledger.append(numbered(COUNT))
        noted = ledger.head
    assert found(path, expected_head=noted) == []
    assert found(copy) == []
    assert found(copy, expected_head=noted) == [("head", COUNT)]


def test_a_head_that_is_none_is_refused():
    for text in ("", "12", "12:abc", "-1:" + "0" * 64, "x:" + "0" * 64, "3:" + "0" * 62):
        with pytest.raises(LedgerError, match="Invalid ledger head"):
            Head.parse(text)


def test_an_event_of_the_future_is_named(path):
    with closing(sqlite3.connect(path)) as connection:
        ((count, last),) = connection.execute("SELECT count, hash FROM head")
        body = b'{"data":{},"kind":"forgiven","version":1}'
        new = link(last, count, body)
        connection.execute("INSERT INTO events VALUES (?, ?, ?, 0)", (count, body.decode(), new))
        connection.execute("UPDATE head SET count = ?, hash = ?", (count + 1, new))
        connection.commit()
    assert found(path) == [("unknown", COUNT)]


def test_a_flipped_byte_anywhere_is_found_or_changes_nothing(tmp_path):
    """Every byte of the file in turn would take long; 150 places of all pages are tried."""
    path = tmp_path / "ledger.sqlite"
    with open_ledger(path, create=True) as ledger:
        ledger.append_many(SAMPLES * 20)
        head = ledger.head
    content = path.read_bytes()
    random_places = random.Random(6).sample(range(len(content)), 150)
    unnoticed = strange = 0
    for place in random_places:
        damaged = bytearray(content)
        damaged[place] ^= 1 << (place % 8)
        path.write_bytes(damaged)
        try:
            findings = verify_chain(path)
        except LedgerError:
            strange += 1  # In the few bytes that say what the file is: it is not taken for a ledger.
            continue
        if not findings:
            unnoticed += 1
            with open_ledger(path, read_only=True) as ledger:
                assert ledger.head == head
                assert list(ledger.events()) == list(SAMPLES * 20)
        for leftover in ("-wal", "-shm"):
            path.with_name(path.name + leftover).unlink(missing_ok=True)
    assert unnoticed < len(random_places) / 2, "most of the file is events"
    assert strange < 5


def test_a_flipped_byte_of_an_event_names_the_event(path):
    content = bytearray(path.read_bytes())
    for number in (0, 11, COUNT - 1):
        place = content.find(f'"event {number}"'.encode())
        assert place > 0
        damaged = bytearray(content)
        damaged[place + 1] ^= 0x20
        path.write_bytes(damaged)
        assert found(path) == [("changed", number)]
        damaged[place + 1] = 0xFF  # not even a text any more
        path.write_bytes(damaged)
        assert ("changed", number) in found(path)


def test_a_file_that_was_cut_off_anywhere_is_found(tmp_path):
    path = tmp_path / "ledger.sqlite"
    filled(path, 400)
    content = path.read_bytes()
    sizes = [
        0,
        1,
        99,
        100,
        511,
        512,
        4095,
        4096,
        4097,
        *range(6000, len(content), 7000),
        len(content) - 1,
    ]
    for size in sizes:
        path.write_bytes(content[:size])
        findings = verify_chain(path)
        assert "damaged" in {finding.kind for finding in findings}, size
        assert any(word in str(findings[0]) for word in ("damaged", "empty")), size
    path.write_bytes(content)
    assert verify_chain(path) == []


def test_what_is_no_ledger_is_an_error_and_not_a_finding(tmp_path):
    with pytest.raises(LedgerError, match="No ledger at"):
        verify_chain(tmp_path / "nothing.sqlite")


def test_verifying_leaves_the_file_as_it_was(path):
    before = path.read_bytes()
    verify_chain(path)
    tamper(path, CHANGE)
    damaged = path.read_bytes()
    assert damaged != before
    verify_chain(path)
    assert path.read_bytes() == damaged


def test_damage_in_postgresql_is_found_too(postgres):
    url = postgres.database()
    with postgres_ledger(url, "census") as ledger, postgres_ledger(url, "other") as other:
        ledger.append_many([numbered(i) for i in range(COUNT)])
        other.append(numbered(0))
    with psycopg.connect(url) as connection:
        connection.execute("ALTER TABLE sharewell.events DISABLE TRIGGER ALL")
        connection.execute("DELETE FROM sharewell.events WHERE ledger = 'census' AND number IN (5, 39)")
        connection.execute(
            "UPDATE sharewell.events SET body = replace(body, '7', '8') "
            "WHERE ledger = 'census' AND number = 7"
        )
    assert found(url, name="census") == [("missing", 5), ("changed", 7), ("missing", 39)]
    assert found(url, name="other") == []
    with pytest.raises(LedgerError, match="No ledger third"):
        verify_chain(url, name="third")


#: What is done beside the chain of SAMPLES, and what is found: answers are those of event 11.
BESIDE = {
    "answers that are missing": (["DELETE FROM answers"], [("answers", 11)]),
    "answers that were changed": (
        ["UPDATE answers SET text = replace(text, '5', '6')"],
        [("answers", 11)],
    ),
    "answers of another event": (
        ["UPDATE answers SET number = 10"],
        [("answers", 10), ("answers", 11)],
    ),
    "answers that are too many": (
        ["INSERT INTO answers SELECT 2, text FROM answers"],
        [("answers", 2)],
    ),
    "answers behind the end": (["INSERT INTO answers VALUES (99, '[]')"], [("answers", 99)]),
    "a question that is not found": (["DELETE FROM questions WHERE number = 3"], [("index", 3)]),
    "a question with another key": (
        ["UPDATE questions SET key = analyst WHERE number = 3"],
        [("index", 3)],
    ),
    "a question from nowhere": (
        ["INSERT INTO questions SELECT 5, analyst, key FROM questions WHERE number = 3"],
        [("index", 5)],
    ),
    "an end that is not found": (["DELETE FROM endings WHERE asked = 3"], [("index", 10)]),
    "an end of another question": (["UPDATE endings SET asked = 15 WHERE asked = 3"], [("index", 10)]),
}


@pytest.mark.parametrize("damage", BESIDE)
def test_damage_beside_the_chain_is_found_and_named(tmp_path, damage):
    path = tmp_path / "ledger.sqlite"
    with open_ledger(path, create=True) as ledger:
        ledger.append_many(SAMPLES)
    assert verify_chain(path) == []
    statements, expected = BESIDE[damage]
    tamper(path, *statements)
    assert found(path) == expected
    finding = verify(path, certificate=False).check("chain").findings[0]
    assert finding.code == f"chain.{expected[0][0]}"


@pytest.mark.parametrize("damage", [name for name in BESIDE if BESIDE[name][1][0][0] == "index"])
def test_a_writer_does_not_continue_a_ledger_whose_index_is_wrong(tmp_path, damage):
    path = tmp_path / "ledger.sqlite"
    with open_ledger(path, create=True) as ledger:
        ledger.append_many(SAMPLES)
        assert list(ledger.events()) == list(SAMPLES)
    statements, [(_, number)] = BESIDE[damage]
    tamper(path, *statements)
    message = f"index of questions is wrong about event {number}"
    with open_ledger(path) as ledger, pytest.raises(LedgerCorrupt, match=message) as caught:
        list(ledger.events())
    assert "sharewell verify" in caught.value.hint
    with open_ledger(path, read_only=True) as ledger:
        assert list(ledger.events()) == list(SAMPLES), "to be shown, the events are enough"


def test_a_writer_whose_index_grows_while_it_reads_goes_on(tmp_path):
    with open_ledger(tmp_path / "ledger.sqlite", create=True) as ledger:
        ledger.append_many(SAMPLES)
        events = ledger.events()
        next(events)
        ledger.append_many([Asked("k", "ann", {}, pay=True), Refused(len(SAMPLES), "code", "no")])
        assert len(list(events)) == len(SAMPLES) - 1


#: Two questions of ann and one of ben, and their ends.
ASKED: list[Event] = [
    Asked("p1", "ann", {"sql": "x"}, pay=True),
    Asked("p2", "ann", {"sql": "y"}, pay=True),
    Asked("p1", "ben", {"sql": "x"}, pay=True),
    *(Answered(number, ({"value": number},)) for number in range(3)),
]


@pytest.mark.parametrize(
    "statements",
    [
        ["UPDATE endings SET asked = -asked - 1", "UPDATE endings SET asked = (-asked) % 3"],
        [
            "CREATE TABLE held AS SELECT * FROM questions",
            "UPDATE questions SET (analyst, key) = "
            "(SELECT analyst, key FROM held WHERE held.number = (questions.number + 1) % 3)",
        ],
    ],
    ids=["endings", "questions"],
)
def test_no_question_is_given_to_another_key_where_the_index_mixes_them_up(tmp_path, statements):
    path = tmp_path / "ledger.sqlite"
    with open_ledger(path, create=True) as ledger:
        ledger.append_many(ASKED)
        assert [each.ending for each in ledger.find([("ann", "p1"), ("ben", "p1")])] == [
            ASKED[3],
            ASKED[5],
        ]
    tamper(path, *statements)
    with open_ledger(path) as ledger:
        for key in (("ann", "p1"), ("ann", "p2"), ("ben", "p1")):
            with pytest.raises(LedgerCorrupt, match="index of questions"):
                ledger.find([key])
        for analyst in ("ann", "ben"):
            with pytest.raises(LedgerCorrupt, match="index of questions"):
                list(ledger.questions(analyst))


def test_an_event_of_a_newer_version_is_not_called_damage(tmp_path):
    path = tmp_path / "ledger.sqlite"
    with open_ledger(path, create=True) as ledger:
        ledger.append_many(SAMPLES)
        newer = b'{"data":{"analyst":"ann","key":"k","tone":"kind"},"kind":"asked","version":9}'
        [row] = ledger.head.after([newer])
        side = SideRows({row.number: "0" * 64}, {}, {})
        assert ledger._store.write([row], side, ledger.head, Head(row.number + 1, row.hash), 0.0)
    assert found(path) == [("unknown", len(SAMPLES))]
    [finding] = verify_chain(path)
    for part in ("'asked' of version 9", "knows versions up to 1", "or a newer one"):
        assert part in finding.message
    with open_ledger(path) as ledger, pytest.raises(LedgerError, match="of version 9") as caught:
        list(ledger.events())
    assert not isinstance(caught.value, LedgerCorrupt)
    assert "newer" in caught.value.hint


def test_free_answers_that_were_changed_are_not_given_away(tmp_path):
    path = tmp_path / "ledger.sqlite"
    with open_ledger(path, create=True) as ledger:
        ledger.append_many(SAMPLES)
        ledger.append_many(
            [Asked("k", "ann", {"sql": "x"}, pay=False), free_answers(len(SAMPLES), [{}])]
        )
    tamper(path, "UPDATE answers SET text = '[{\"value\":1}]'")
    with open_ledger(path) as ledger:
        [stored] = ledger.find([("ann", "k")])
        assert isinstance(stored.ending, AnsweredFree)
        with pytest.raises(LedgerCorrupt, match=f"answers to question {len(SAMPLES)} were changed"):
            read_answers(stored.ending)


def test_damage_beside_a_chain_in_postgresql_is_found_too(postgres):
    url = postgres.database()
    with open_ledger(url, create=True) as ledger:
        ledger.append_many(SAMPLES)
    assert found(url) == []
    with psycopg.connect(url) as connection:
        connection.execute("UPDATE sharewell.answers SET text = '[]'")
        connection.execute("DELETE FROM sharewell.questions WHERE number = 3")
    assert found(url) == [("index", 3), ("answers", 11)]
