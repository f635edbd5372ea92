"""Whole sessions: in this process, and with a real server from threads and from an event loop."""

import asyncio
import inspect
from contextlib import contextmanager
from fractions import Fraction

import pytest

from sharewell import client, errors
from sharewell.client import AsyncCuratorSession, AsyncSession, CuratorSession, Session
from sharewell.client.api import Api
from sharewell.client.transport import LocalTransport
from sharewell.errors import (
    AccessError,
    Closed,
    KeyReused,
    LedgerInUse,
    NotFound,
    Paused,
    RequestError,
    StillWaiting,
    UnknownName,
    UnknownToken,
)
from tests.client.twins import KINDS, Twin, twin
from tests.service.beginning import begun
from tests.service.http.servers import running

COUNT = "SELECT COUNT(*) FROM people WHERE age BETWEEN 3 AND 9"
BY_SEX = "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex"
#: Sessions in threads go over HTTP as those in event loops do, so that a few tests of theirs are enough.
WAYS = ("in process", "event loop")


DATASET = """
[dataset]
source = "people.csv"
population = 1000
[budget]
epsilon = 10
error_threshold = 20
[attributes.age]
type = "integer"
low = 0
high = 19
[attributes.sex]
type = "category"
categories = ["F", "M"]
[analysts.ann]
share = "1/4"
[analysts.ben]
share = "1/4"
[mechanism]
query_budget = "1/80"
[scheduler]
name = "{scheduler}"
[service]
requests_per_second = 100_000
certificate = {certificate}
"""


def written(folder, *, scheduler="none", certificate=False):
    """A dataset; most tests do without the certificate, which is computed in a process of its own."""
    folder.mkdir(exist_ok=True)
    (folder / "people.csv").write_text("age,sex\n3,F\n4,M\n5,M\n")
    path = folder / "people.toml"
    path.write_text(DATASET.format(scheduler=scheduler, certificate=str(certificate).lower()))
    return begun(path)


class Place:
    """Where a dataset can be reached; gives sessions of its analysts and of its curator."""

    def __init__(self, way, path, server, stack):
        self.path = path
        self._way = way
        self._server = server
        self._stack = stack
        self._loop = asyncio.new_event_loop()
        self._opened = None

    def of(self, name, role="analyst"):
        if self._server is not None:
            token = self._server.token(name, role)
            curator = role == "curator"
            return self._enter(twin(self._way, self._server.url, token, curator=curator))
        if self._opened is None:
            self._opened = self._enter(client.open(self.path, "ann"))
        if role == "analyst" and name == "ann":
            return Twin(self._opened, self._loop)
        # The ledger is locked, so that every session of this process shares one service.
        transport = LocalTransport(self._opened._transport.service, name, role)
        of_role = CuratorSession if role == "curator" else Session
        return Twin(of_role(Api(), transport), self._loop)

    def _enter(self, context):
        self._stack.append(context)
        return context.__enter__()


@contextmanager
def reached(way, folder, scheduler="none", certificate=False):
    path = written(folder, scheduler=scheduler, certificate=certificate)
    stack: list = []
    if way == "in process":
        place = Place(way, path, None, stack)
        yield place
        for each in reversed(stack):
            each.__exit__(None, None, None)
    else:
        with running(path) as server:
            place = Place(way, path, server, stack)
            yield place
            for each in reversed(stack):
                each.__exit__(None, None, None)
    place._loop.close()


@pytest.fixture(params=WAYS)
def place(request, tmp_path):
    with reached(request.param, tmp_path) as place:
        yield place


@pytest.fixture
def ann(place):
    return place.of("ann")


def test_a_question_for_one_number(ann):
    answer = ann.do(lambda s: s.ask(COUNT))
    assert (answer.source, answer.cost, answer.paid_by) == ("measured", Fraction(1, 8), "ann")
    low, high = answer.interval
    assert low < float(answer) < high
    assert answer.standard_error > 0
    assert answer.sql == COUNT
    again = ann.do(lambda s: s.ask("SELECT COUNT(*) FROM people WHERE NOT (age < 3 OR age > 9)"))
    assert again.cost == 0
    assert again.value == answer.value


def test_a_question_with_groups(ann):
    table = ann.do(lambda s: s.ask(BY_SEX))
    assert not table.is_scalar
    assert table.column_names == ("sex", "n")
    assert table.labels == ["F", "M"]
    assert table["F"].interval[0] < table["F"].value < table["F"].interval[1]
    assert tuple(table.to_pandas().columns) == ("sex", "n", "n_error", "n_low", "n_high")


def test_the_same_key_is_the_same_question(ann):
    first = ann.do(lambda s: s.ask(COUNT, key="mine"))
    assert ann.do(lambda s: s.ask(COUNT, key="mine")) == first
    assert ann.do(lambda s: s.budget()).asked == 1
    with pytest.raises(KeyReused):
        ann.do(lambda s: s.ask(BY_SEX, key="mine"))


def test_a_quote_comes_true(ann):
    quote = ann.do(lambda s: s.quote(COUNT))
    assert quote.cost == Fraction(1, 8)
    assert quote.free is not None
    assert quote.means == Fraction(5, 4)
    answer = ann.do(lambda s: s.ask(COUNT))
    assert answer.standard_error == pytest.approx(quote.paid.standard_errors[0])
    after = ann.do(lambda s: s.quote(COUNT))
    assert after.cost == 0
    assert repr(after).startswith("free, standard error ")
    assert repr(quote).startswith("costs 1/8 of 5/4, standard error ")


def test_without_paying_nothing_is_spent(ann):
    answer = ann.do(lambda s: s.ask(COUNT, pay=False))
    assert answer.cost == 0
    assert answer.source == "reconstructed"
    budget = ann.do(lambda s: s.budget())
    assert (budget.share, budget.left, budget.spent) == (Fraction(5, 2), Fraction(5, 4), Fraction(5, 4))
    assert budget.questions_left == 10
    assert repr(budget) == "ann: epsilon 5/4 left of 5/2, for 10 questions; 1 asked, 0 waiting"


def test_ones_questions_are_found_again(ann):
    for low in range(5):
        ann.do(lambda s, low=low: s.ask(f"SELECT COUNT(*) FROM people WHERE age > {low}"))
    all_of_them = ann.do(lambda s: s.questions())
    assert [each.sql[-1] for each in all_of_them] == list("01234")
    some = ann.do(lambda s: s.questions(after=all_of_them[1].number, limit=2))
    assert [each.sql[-1] for each in some] == list("23")
    found = ann.do(lambda s: s.ticket(all_of_them[3].number))
    assert found.key == all_of_them[3].key
    assert found.result() == all_of_them[3].result()
    with pytest.raises(NotFound):
        ann.do(lambda s: s.ticket(10_000))


def test_pages_are_put_together(ann, monkeypatch):
    monkeypatch.setattr("sharewell.client.api.PAGE_SIZE", 2)
    for low in range(5):
        ann.do(lambda s, low=low: s.submit(f"SELECT COUNT(*) FROM people WHERE age > {low}"))
    assert len(ann.do(lambda s: s.questions())) == 5
    assert len(ann.do(lambda s: s.questions(limit=3))) == 3
    for limit in (0, -1):
        with pytest.raises(RequestError, match="`limit` must be at least 1"):
            ann.do(lambda s, limit=limit: s.questions(limit=limit))


def test_a_refusal_says_where_and_what_to_do(ann):
    with pytest.raises(UnknownName) as refused:
        ann.do(lambda s: s.ask("SELECT COUNT(*) FROM people WHERE agee > 3"))
    assert refused.value.where == errors.Location(1, 35, "agee")
    assert refused.value.hint == 'Did you mean "age"?'


def test_what_cannot_be_sent_is_not(ann):
    for fields in ({"sql": ""}, {"sql": 7}, {"sql": COUNT, "key": ""}, {"sql": COUNT, "pay": "no"}):
        with pytest.raises(RequestError, match="Invalid `"):
            ann.do(lambda s, fields=fields: s.ask(**fields))


def test_what_is_public_reads_well(ann):
    dataset = ann.do(lambda s: s.dataset())
    assert dataset.name == "people"
    assert repr(dataset).splitlines() == [
        "people: 40 cells, epsilon 10, Seeded Cache and Reconstruct, 1/8 per paid question",
        "  age  integer: 0, 1, 2, …, 19",
        "  sex  category: F, M",
    ]


@pytest.mark.parametrize("way", ["in process", "threads"])
def test_certificates_read_well(way, tmp_path):
    with reached(way, tmp_path, certificate=True) as place:
        ann, curator = place.of("ann"), place.of("curator", "curator")
        ann.do(lambda s: s.ask(COUNT))
        own = ann.do(lambda s: s.certificate())
        assert own.holds is not False
        assert "sharing incentive: proven" in repr(own)
        everybody = curator.do(lambda s: s.certificate())
        assert {each.analyst for each in everybody.analysts} == {"ann", "ben"}


def test_a_certificate_that_is_switched_off_says_so(ann):
    with pytest.raises(RequestError, match="disabled"):
        ann.do(lambda s: s.certificate())
    ann.do(lambda s: s.done())


def test_curators_take_in_and_let_go(place):
    curator = place.of("curator", "curator")
    everybody = curator.do(lambda s: s.analysts())
    assert [each.analyst for each in everybody] == ["ann", "ben"]
    assert everybody.unallocated == 5
    assert curator.do(lambda s: s.join("cleo", "1/10")).startswith("sw_")
    assert curator.do(lambda s: s.token("cleo")).startswith("sw_")
    assert repr(curator.do(lambda s: s.analysts())).splitlines()[-2:] == [
        "cleo: epsilon 1/2 left of 1, for 4 questions; 0 asked, 0 waiting",
        "unallocated: 4",
    ]
    curator.do(lambda s: s.leave("cleo", donate=True))
    assert len(curator.do(lambda s: s.analysts())) == 2
    with pytest.raises(errors.SharewellError):
        curator.do(lambda s: s.leave("nobody"))


def test_curators_read_the_ledger(place, monkeypatch):
    monkeypatch.setattr("sharewell.client.api.PAGE_SIZE", 2)
    place.of("ann").do(lambda s: s.ask(COUNT))
    curator = place.of("curator", "curator")
    ledger = curator.do(lambda s: s.events())
    numbers = [event.number for event in ledger.events]
    assert numbers == sorted(set(numbers))
    assert {"asked", "charged", "answered"} <= {event.kind.lower() for event in ledger.events}
    assert ledger.head
    some = curator.do(lambda s: s.events(after=numbers[0], limit=3))
    assert [event.number for event in some.events] == numbers[1:4]
    assert some.head == ledger.head


def test_a_paused_dataset_answers_nothing_until_it_goes_on(place):
    ann, curator = place.of("ann"), place.of("curator", "curator")
    curator.do(lambda s: s.pause())
    assert ann.do(lambda s: s.dataset()).paused
    with pytest.raises(Paused, match="Ask again with the key"):
        ann.do(lambda s: s.ask(COUNT))
    curator.do(lambda s: s.resume())
    assert ann.do(lambda s: s.ask(COUNT)).cost == Fraction(1, 8)


def test_a_closed_session_says_so(ann):
    ann.do(lambda s: s.close())
    ann.do(lambda s: s.close())
    with pytest.raises(Closed, match="The session is closed") as refused:
        ann.do(lambda s: s.ask(COUNT))
    assert refused.value.suggestion is None  # nothing was sent
    assert repr(ann.session).endswith("closed>")


@pytest.mark.parametrize("way", ["in process", *KINDS])
def test_a_question_waits_its_turn(way, tmp_path):
    with reached(way, tmp_path, scheduler="round-robin") as place:
        ann = place.of("ann")
        # It is ann's turn, then ben's, who has not asked anything.
        ann.do(lambda s: s.ask(COUNT))
        second = ann.do(lambda s: s.submit(BY_SEX))
        third = ann.do(lambda s: s.submit(COUNT))
        assert (second.state, third.state) == ("waiting", "waiting")
        assert (second.position, third.position) == (0, 1)
        with pytest.raises(StillWaiting) as over:
            ann.do(lambda s: s.ask(BY_SEX, key=second.key, timeout=0))
        assert over.value.number == second.number
        place.of("ben").do(lambda s: s.done())
        assert len(ann.do(lambda s: s.wait(second)).result()) == 2
        assert ann.do(lambda s: s.ticket(second.number)).state == "answered"


class TestTokens:
    """With a real server."""

    @pytest.fixture
    def server(self, tmp_path):
        with running(written(tmp_path)) as server:
            yield server

    def test_an_unknown_token_is_told_when_one_connects(self, server):
        with pytest.raises(UnknownToken) as refused:
            client.connect(server.url, "sw_nobody")
        assert refused.value.request_id
        assert "sw_nobody" not in str(refused.value)

        async def enter():
            async with client.connect_async(server.url, "sw_nobody"):
                pass

        with pytest.raises(UnknownToken):
            asyncio.run(enter())

    def test_an_analyst_is_no_curator_and_a_curator_no_analyst(self, server):
        ann, curator = server.token("ann"), server.token("curator", "curator")
        with pytest.raises(AccessError, match="the analyst ann; a curator's token is required"):
            client.connect_curator(server.url, ann)
        with pytest.raises(AccessError, match="belongs to the curator") as refused:
            client.connect(server.url, curator)
        assert refused.value.suggestion == errors.Suggestion("role", "curator")
        with client.connect_curator(server.url, curator) as session:
            assert len(session.analysts()) == 2

        async def analysts(token):
            async with client.connect_curator_async(server.url, token) as session:
                return await session.analysts()

        assert len(asyncio.run(analysts(curator))) == 2
        with pytest.raises(AccessError):
            asyncio.run(analysts(ann))

    def test_the_server_checks_the_role_too(self, server):
        with twin("threads", server.url, server.token("ann"), curator=True) as ann:
            for call in (lambda s: s.events(), lambda s: s.analysts(), lambda s: s.pause()):
                with pytest.raises(AccessError):
                    ann.do(call)
        with (
            twin("threads", server.url, server.token("curator", "curator")) as curator,
            pytest.raises(AccessError),
        ):
            curator.do(lambda s: s.ask(COUNT))

    def test_many_ask_at_a_time_from_one_event_loop(self, server):
        async def ask_all():
            async with client.connect_async(server.url, server.token("ann")) as session:
                assert repr(session) == f"<AsyncSession ann on people, at {server.url}>"
                asked = [session.ask(f"SELECT COUNT(*) FROM people WHERE age > {n}") for n in range(15)]
                answers = await asyncio.gather(*asked)
                return answers, await session.budget()

        answers, budget = asyncio.run(ask_all())
        assert sum(answer.cost for answer in answers) == Fraction(5, 4)
        assert (budget.left, budget.asked) == (0, 15)

    def test_a_wait_can_be_cancelled(self, tmp_path):
        async def give_up(url, token):
            async with client.connect_async(url, token) as session:
                await session.ask(COUNT)
                with pytest.raises(asyncio.TimeoutError):
                    await asyncio.wait_for(session.ask(BY_SEX, key="mine"), 0.3)
                return (await session.submit(BY_SEX, key="mine")).state

        with running(written(tmp_path / "in turn", scheduler="round-robin")) as server:
            assert asyncio.run(give_up(server.url, server.token("ann"))) == "waiting"


class TestOpen:
    """In this process, without a server."""

    def test_what_was_spent_is_spent_when_it_is_opened_again(self, tmp_path):
        path = written(tmp_path)
        with client.open(path, "ann") as session:
            assert repr(session) == "<Session ann on people, in this process>"
            first = session.ask(COUNT, key="mine")
        with client.open(str(path), "ann") as session:
            assert session.ask(COUNT, key="mine") == first
            assert session.budget().left == Fraction(9, 8)

    def test_of_several_analysts_one_must_be_named(self, tmp_path):
        path = written(tmp_path)
        with pytest.raises(
            RequestError, match=r"has 2 analysts: ann, ben\. Name the analyst"
        ) as refused:
            client.open(path)
        assert refused.value.suggestion == errors.Suggestion("analyst", "ann")
        with pytest.raises(RequestError, match=r"Unknown analyst 'anne'\. Did you mean 'ann'\?"):
            client.open(path, "anne")
        with client.open(path, "ben") as session:
            assert session.budget().analyst == "ben"

    def test_the_only_analyst_need_not_be_named(self, tmp_path):
        path = written(tmp_path)
        path.write_text(path.read_text().replace('[analysts.ben]\nshare = "1/4"\n', ""))
        with client.open(path) as session:
            assert session.budget().analyst == "ann"

    def test_a_file_is_opened_as_its_curator_too(self, tmp_path):
        with client.open_curator(written(tmp_path)) as session:
            assert repr(session) == "<CuratorSession curator on people, in this process>"
            assert session.join("cleo", "1/10").startswith("sw_")
            assert [each.analyst for each in session.analysts()] == ["ann", "ben", "cleo"]

    def test_nobody_else_writes_to_its_ledger_meanwhile(self, tmp_path):
        path = written(tmp_path)
        with client.open(path, "ann"), pytest.raises(LedgerInUse) as refused:
            client.open(path, "ben")
        assert refused.value.hint.startswith("Close the other session first")


class TestTwins:
    """What one kind of session can do, the other can, in the same words."""

    PAIRS = ((Session, AsyncSession), (CuratorSession, AsyncCuratorSession))

    @staticmethod
    def members(kind):
        return {name: value for name, value in inspect.getmembers(kind) if not name.startswith("_")}

    @pytest.mark.parametrize(("kind", "its_twin"), PAIRS)
    def test_they_have_the_same_members_and_parameters(self, kind, its_twin):
        mine, other = self.members(kind), self.members(its_twin)
        assert mine.keys() == other.keys()
        for name, value in mine.items():
            assert not isinstance(value, property), name
            ours, theirs = inspect.signature(value), inspect.signature(other[name])
            assert ours.parameters == theirs.parameters, name
            assert inspect.iscoroutinefunction(other[name]), name

    def test_both_ways_to_connect_take_the_same(self):
        ways = (
            client.connect,
            client.connect_async,
            client.connect_curator,
            client.connect_curator_async,
        )
        first, *others = (inspect.signature(way).parameters for way in ways)
        assert all(other == first for other in others)
