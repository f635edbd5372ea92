"""What needs no token: health, metrics, logs, the description and its page."""

import asyncio
import io
import json
import re
from pathlib import Path

import httpx
import pytest
from starlette.responses import PlainTextResponse

from sharewell import wire
from sharewell.service.http.app import create_app
from sharewell.service.http.log import Log
from sharewell.service.registry import DatasetRegistry
from tests.service.http.operations import DESCRIBED, OPERATIONS
from tests.service.http.servers import COUNT, problem, running, write_dataset
from tests.service.waiting import comes_true

PAGE = Path(__file__).parents[3] / "docs" / "http.md"


@pytest.fixture(scope="module")
def description(server):
    return server.client().get("/openapi.json").json()


def test_alive_and_ready(server):
    assert server.client().get("/healthz").json() == {"alive": True}
    assert server.client().get("/readyz").json() == {"ready": True}


def test_metrics_count_requests_and_questions_and_name_nobody(tmp_path):
    with running(write_dataset(tmp_path, scheduler="round-robin")) as server:
        ann = server.analyst("ann")
        ann.ask()
        ann.ask()
        ann.ask("SELECT nonsense FROM people")
        ann.client.get("/no/such/path")
        text = server.client().get("/metrics").text
        counted = dict(re.findall(r"^(sharewell_\w+(?:{.*})?) (.*)$", text, re.MULTILINE))
        ask = 'method="POST",route="/v1/datasets/{dataset}/ask"'
        assert counted[f'sharewell_requests_total{{{ask},status="200"}}'] == "1.0"
        assert counted[f'sharewell_requests_total{{{ask},status="202"}}'] == "1.0"
        assert counted[f'sharewell_requests_total{{{ask},status="400"}}'] == "1.0"
        assert counted['sharewell_requests_total{method="any",route="none",status="404"}'] == "1.0"
        for outcome in ("answered", "waiting", "refused"):
            name = f'sharewell_questions_total{{dataset="people",outcome="{outcome}"}}'
            assert counted[name] == "1.0"
        assert counted['sharewell_waiting_tickets{dataset="people"}'] == "1.0"
        assert "ann" not in text
        assert "/no/such" not in text


def test_metrics_are_for_this_machine_or_for_curators(tmp_path):
    with running(write_dataset(tmp_path), behind_proxy=True) as server:
        problem(server.client().get("/metrics"), 401, "access.unknown-token")
        problem(server.analyst("ann").client.get("/metrics"), 403, "access.denied")
        assert server.curator().client.get("/metrics").status_code == 200


def test_metrics_of_whoever_was_forwarded_need_a_token(server):
    reply = server.client().get("/metrics", headers={"x-forwarded-for": "10.0.0.1"})
    problem(reply, 401, "access.unknown-token")


def test_the_log_has_one_line_a_request_and_nothing_secret(server):
    ann = server.analyst("ann")
    replies = [
        ann.ask("SELECT COUNT(*) FROM people WHERE age = 13 AND sex = 'M'", key="secret-key"),
        ann.get("/questions", params={"after": 5, "limit": 77}),
        ann.client.get("/some/secret/path?token=abc"),
    ]
    answer, ids = replies[0].json(), [reply.headers["x-request-id"] for reply in replies]
    # A line is written after its reply was sent.
    comes_true(lambda: set(ids) <= {line.get("request_id") for line in server.log_lines})
    lines = [line for line in server.log_lines if line.get("request_id") in ids]
    assert [(line["method"], line.get("route"), line["status"]) for line in lines] == [
        ("POST", "/v1/datasets/{dataset}/ask", 200),
        ("GET", "/v1/datasets/{dataset}/questions", 200),
        ("GET", None, 404),
    ]
    assert [(line.get("dataset"), line.get("holder")) for line in lines] == [
        ("people", "ann"),
        ("people", "ann"),
        (None, None),
    ]
    assert all(line["time"].endswith("+00:00") and line["milliseconds"] >= 0 for line in lines)
    token = ann.client.headers["authorization"].removeprefix("Bearer ")
    # What was drawn or timed may hold any digits.
    drawn = ("request_id", "time", "milliseconds")
    text = json.dumps([{key: line[key] for key in line if key not in drawn} for line in lines])
    value = json.dumps(answer["answer"]["rows"][0][0]["value"])
    for secret in ("SELECT", "secret", token, token[-43:], "limit", "77", "abc", value):
        assert secret not in text


def test_everything_is_described(description):
    described = {
        (method.upper(), path) for path, verbs in description["paths"].items() for method in verbs
    }
    assert described == {(each.method, each.path) for each in DESCRIBED}
    assert len(described) > 15
    for path, verbs in description["paths"].items():
        for verb in verbs.values():
            assert verb["summary"]
            named = {each["name"] for each in verb.get("parameters", ()) if each["in"] == "path"}
            assert named == set(re.findall(r"{(\w+)}", path))
            problems = {status for status in verb["responses"] if status[0] in "45"}
            assert {"400", "500", "503"} <= problems
            for status in problems:
                content = verb["responses"][status]["content"]["application/json"]
                assert content["schema"] == {"$ref": "#/components/schemas/Problem"}


def test_messages_are_described_as_they_are_sent_and_read(description):
    ask = description["paths"]["/v1/datasets/{dataset}/ask"]["post"]
    schemas = {
        "200": ask["responses"]["200"]["content"]["application/json"]["schema"]["$ref"],
        "202": ask["responses"]["202"]["content"]["application/json"]["schema"]["$ref"],
    }
    prefix = "#/components/schemas/"
    assert schemas == {"200": f"{prefix}Ticket", "202": f"{prefix}Ticket"}
    assert ask["security"] == [{"token": []}]
    assert description["components"]["securitySchemes"]["token"]["scheme"] == "bearer"
    body = ask["requestBody"]["content"]["application/json"]["schema"]
    assert (body["title"], set(body["properties"])) == ("Question", set(wire.Question.model_fields))


def test_every_reference_of_the_description_leads_somewhere(description):
    wanted = set(re.findall(r'"#/components/schemas/(\w+)"', json.dumps(description)))
    assert wanted
    assert wanted <= set(description["components"]["schemas"])


@pytest.mark.parametrize("operation", DESCRIBED, ids=str)
def test_replies_are_as_described(server, description, operation):
    holder = server.curator() if operation.audience == "curators" else server.analyst("ann")
    if operation.method == "GET" and not re.search(r"{number}|{file}", operation.path):
        reply = holder.client.get(operation.path.format(dataset="people"))
    else:
        body = {"sql": COUNT} if operation.body is wire.Question else {"name": "a/b", "share": "1/9"}
        path = operation.path.format(dataset="people", number=0, name="nobody", file="start.js")
        reply = holder.client.request(operation.method, path, json=body if operation.body else None)
    responses = description["paths"][operation.path][operation.method.lower()]["responses"]
    described = responses[str(reply.status_code)]
    if reply.status_code == 204:
        assert "content" not in described
        return
    kind = reply.headers["content-type"].partition(";")[0]
    content = described["content"].get(kind) or described["content"]["*/*"]
    if "$ref" in content["schema"]:
        model = getattr(wire, content["schema"]["$ref"].rpartition("/")[2])
        model.model_validate_json(reply.content)
    else:
        is_object = kind == "application/json" and isinstance(reply.json(), dict)
        assert content["schema"]["type"] == ("object" if is_object else "string")


def test_the_page_runs_no_script_that_stands_in_it_and_needs_no_other_host(server):
    client = server.client()
    page = client.get("/docs")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    policy = dict(
        part.strip().split(" ", 1) for part in page.headers["content-security-policy"].split(";")
    )
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == "'self'"
    assert policy["connect-src"] == "'self'"
    assert re.findall(r"<script(.*?)>(.*?)</script>", page.text) == [
        (' src="docs/swagger-ui-bundle.js"', ""),
        (' src="docs/start.js"', ""),
    ]
    assert not re.search(r"\son\w+=|javascript:|https?://", page.text)
    for name in re.findall(r'(?:src|href)="(docs/[^"]+)"', page.text):
        file = client.get(f"/{name}")
        assert file.status_code == 200
        assert file.content
    assert 'url: "openapi.json"' in client.get("/docs/start.js").text


@pytest.mark.parametrize("name", ["redoc.standalone.js", "..%2f..%2fcore.py", "__init__.py", ""])
def test_the_page_has_no_other_files(server, name):
    problem(server.client().get(f"/docs/{name}"), 404, "request.not-found")


def undocumented(page: str) -> list[str]:
    """The operations that no heading and no row of a page names."""
    headings = set(re.findall(r"^(?:#+|\|) `([A-Z]+ [^`]+)`", page, re.MULTILINE))
    known = {str(each) for each in OPERATIONS}
    return sorted(known ^ headings)


def test_every_operation_is_on_the_page_and_no_other_is():
    assert undocumented(PAGE.read_text(encoding="utf-8")) == []


def test_an_operation_that_the_page_lacks_is_found():
    text = PAGE.read_text(encoding="utf-8")
    assert undocumented(text.replace("| `GET /healthz`", "| Health")) == ["GET /healthz"]
    assert undocumented(f"{text}\n## `GET /nothing`\n") == ["GET /nothing"]


def test_every_parameter_and_field_that_can_be_sent_is_on_the_page():
    text = PAGE.read_text(encoding="utf-8")
    names = {parameter for each in OPERATIONS for parameter in each.parameters}
    names |= {name for each in OPERATIONS if each.body for name in each.body.model_fields}
    assert [name for name in sorted(names) if f"`{name}`" not in text] == []


def test_middleware_covers_mounted_applications():
    log = io.BytesIO()
    app = create_app(lambda: DatasetRegistry({}), log=Log(log), allowed_hosts=["localhost"])
    app.mount("/console", PlainTextResponse("hello", status_code=203))

    async def get(host):
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), trust_env=False) as client:
            return await client.get(f"http://{host}/console/")

    reply = asyncio.run(get("localhost"))
    assert (reply.status_code, reply.text) == (203, "hello")
    assert json.loads(log.getvalue())["status"] == 203
    problem(asyncio.run(get("evil.example")), 400, "request.invalid")
