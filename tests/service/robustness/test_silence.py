"""What is secret stays where it belongs: not in logs, not in metrics, not in refusals."""

import json
import logging
import re

import numpy as np
import pytest

from sharewell.privacy.noise import ExactNoise
from tests.service.http.servers import COUNT, running, write_dataset
from tests.service.robustness.sockets import get, post, told

#: A count that nobody would come across by chance, and how many there are of everything.
TRUE = 7919
SQL, KEY, PATH, TOKEN, FIELD = (f"MARKED{name}" for name in ("SQL", "KEY", "PATH", "TOKEN", "FIELD"))
ASK = "/v1/datasets/people/ask"


@pytest.fixture(scope="module")
def told_all(tmp_path_factory):
    """A server without noise that has been asked all sorts of things, and what it said by the way.

    Noise would hide a true count that leaks; without it, whatever is computed from one has its digits.
    """
    path = write_dataset(tmp_path_factory.mktemp("silent"), price="1/5", rows="7,F\n" * TRUE)
    path.write_text(path.read_text().replace("[mechanism]", '[mechanism]\nname = "laplace"'))
    with pytest.MonkeyPatch.context() as patched:
        for kind in ("laplace", "gaussian"):
            patched.setattr(ExactNoise, kind, lambda self, scale, size: np.zeros(size, dtype=np.int64))
        with running(path) as server:
            yield server, _ask_all_sorts(server)


def _ask_all_sorts(server) -> dict[str, list[str]]:
    """What is said, by what it is: answers, refusals, and what everybody may look up."""
    ann, curator = server.analyst("ann"), server.curator()
    answers = [
        ann.ask(f"SELECT COUNT(*) AS {SQL} FROM people WHERE sex = 'F'", key=KEY),
        ann.ask("SELECT age, COUNT(*) FROM people GROUP BY age"),
        ann.ask("SELECT AVG(age), SUM(age) FROM people HAVING COUNT(*) > 0"),
    ]
    refusals = [
        ann.ask(f"SELECT COUNT(*) FROM people WHERE sex = '{SQL}'", key=KEY + "2"),
        ann.ask(COUNT, key=KEY),
        ann.ask(f"SELECT COUNT(*) FROM people WHERE age = {TRUE - 1} OR {SQL}"),
        ann.post("/ask", {"sql": COUNT, FIELD: TOKEN}),
        ann.post("/ask", {"sql": {"x": SQL}}),
        ann.get(f"/tickets/{PATH}"),
        ann.get(f"/{PATH}?{PATH}={PATH}"),
        ann.get("/ledger"),
        curator.post("/ask", {"sql": COUNT}),
        curator.post("/analysts", {"name": "zoe", "share": "2"}),
        curator.delete("/analysts/nobody"),
        server.client(f"sw_{TOKEN}").post(ASK, json={"sql": SQL, "key": KEY}),
        server.client().get("/v1/datasets", headers={"authorization": f"Basic {TOKEN}"}),
    ]
    one_by_one = [ann.ask(f"SELECT COUNT(*) FROM people WHERE age = {age}") for age in range(20)]
    refusals += [reply for reply in one_by_one if not reply.is_success]
    assert refusals[-1].status_code == 402
    raw = [
        *told(server, post(ASK, f"Bearer sw_{TOKEN}", b'{"sql": "%s"' % SQL.encode())),
        *told(server, b"%s %s\r\n\r\n" % (SQL.encode(), PATH.encode())),
        *told(
            server,
            get(
                f"/{PATH}", f"cookie: {TOKEN}", f"x-key: {KEY}", f"user-agent: {SQL}", f"referer: {PATH}"
            ),
        ),
        *told(server, post(ASK, f"Bearer {TOKEN}", b"", "content-length: 1, 2", length=None)),
    ]
    public = [
        ann.get(),
        ann.get("/me"),
        ann.post("/quote", {"sql": "SELECT sex, COUNT(*), AVG(age) FROM people GROUP BY sex"}),
        curator.get("/analysts"),
        server.client().get("/metrics"),
        server.client().get("/openapi.json"),
        server.client().get("/readyz"),
    ]
    assert all(reply.is_success for reply in public)
    assert all(reply.status_code >= 400 for reply in refusals)
    return {
        "answers": [reply.text for reply in answers],
        "refusals": [*(reply.text for reply in refusals), *(reply.body.decode() for reply in raw)],
        "public": [reply.text for reply in public],
        "tokens": [holder.client.headers["authorization"].split()[1] for holder in (ann, curator)],
    }


def test_without_noise_an_answer_is_the_true_count(told_all):
    """So that the tests below would see one."""
    _, said = told_all
    assert sum(f'"value":{TRUE}.0' in answer for answer in said["answers"]) >= 2


#: What holds any digits by chance: times, and ids that are drawn at random.
BY_CHANCE = re.compile(
    r'"(?:time|request_id)":"[^"]*"|"milliseconds":[0-9.e-]+|^\S+_(?:created|seconds)\S* .*$',
    re.MULTILINE,
)


def digits_of_counts(text: str) -> list[str]:
    """Where a text has the true count, twice it, or its sum over a column, or one more."""
    counts = "|".join(map(str, (TRUE, TRUE + 1, 2 * TRUE, 7 * TRUE)))
    return re.findall(rf"(?<![0-9.])(?:{counts})(?![0-9])", BY_CHANCE.sub("", text))


def test_a_count_would_be_found(told_all):
    _, said = told_all
    assert digits_of_counts(said["answers"][0])
    assert digits_of_counts('sharewell_questions_total{dataset="people"} 7919.0')
    assert digits_of_counts('{"time":"7919","request_id":"7919","milliseconds":79.19,"rows":7919}') == [
        "7919"
    ]


def test_no_true_count_is_said_but_in_an_answer(told_all):
    server, said = told_all
    for text in [server.log, *said["public"], *said["refusals"]]:
        assert digits_of_counts(text) == []


def test_nothing_of_a_request_is_in_the_log(told_all):
    server, said = told_all
    assert len(server.log_lines) > 20
    for secret in (SQL, KEY, PATH, TOKEN, FIELD, *said["tokens"]):
        assert secret not in server.log
    for token in said["tokens"]:
        assert token[-43:] not in server.log


def test_nothing_of_a_request_is_in_the_metrics(told_all):
    _, said = told_all
    for secret in (SQL, KEY, PATH, TOKEN, FIELD, "ann", "curator", *said["tokens"]):
        assert not any(secret in text for text in said["public"] if "sharewell_requests_total" in text)


def test_no_token_is_in_a_refusal(told_all):
    _, said = told_all
    for refusal in said["refusals"]:
        assert TOKEN not in refusal
        assert not any(token in refusal for token in said["tokens"])


def test_refusals_are_sentences_and_show_nothing_of_python(told_all):
    server, said = told_all
    refusals = [refusal for refusal in said["refusals"] if refusal != "Invalid HTTP request received."]
    assert len(refusals) >= len(said["refusals"]) - 2
    for refusal in refusals:
        problem = json.loads(refusal)
        assert problem["message"].endswith((".", "?"))
        assert not any(
            inside in refusal for inside in ("Traceback", "sqlglot", "pydantic", "uvicorn", "0x7")
        )
    assert {line["event"] for line in server.log_lines} - {"opening"} == {"open", "request"}


def test_what_goes_wrong_inside_is_not_told_even_where_it_names_a_count(
    server, ann, monkeypatch, caplog, capfd
):
    def fail(*_):
        raise ValueError(f"{SQL}: the count is {TRUE}") from KeyError(TOKEN)

    service = server.registry.datasets["people"]
    monkeypatch.setattr(service, "describe", fail)
    before = len(server.log)
    with caplog.at_level(logging.DEBUG):
        reply = ann.ask(COUNT, pay=False)
    assert reply.status_code == 500
    printed = capfd.readouterr()
    for said in (reply.text, server.log[before:], caplog.text, printed.out, printed.err):
        assert not any(secret in said for secret in (SQL, TOKEN))
        assert digits_of_counts(said) == []
