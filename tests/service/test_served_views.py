"""A dataset of a person view behind `sharewell serve`: begun, asked over HTTP, and served again."""

import signal
from typing import Any

from sharewell import connect
from sharewell.config import read_config
from sharewell.service.lifecycle import begin
from sharewell.service.tokens import TokenStore
from tests.service.faults.test_standby import address, started
from tests.service.test_person_view_datasets import CONFIG

BY_VISITS = "SELECT sex, visits, COUNT(*) FROM people GROUP BY sex, visits"


def test_a_view_is_served_over_http_and_served_again(tmp_path):
    (tmp_path / "patients.csv").write_text("person,sex\nann,f\nbob,m\ncem,m\n,f\n")
    (tmp_path / "visits.csv").write_text("person;fee\nann;1\nann;2\nbob;3\ndee;4\n;5\n")
    path = tmp_path / "sharewell.toml"
    path.write_text(CONFIG + "[service]\ncertificate = false\n")
    config = read_config(path)
    begin(config)
    token = TokenStore(config.service.access).issue("ann", "analyst")
    answers: list[tuple[Any, ...]] = []
    spent = []
    for _ in range(2):
        server = started(path)
        try:
            with connect(address(server), token) as session:
                found = session.ask(BY_VISITS, key="visits")
                total = session.ask("SELECT COUNT(DISTINCT person) FROM people", key="people")
                answers.append((found.rows, total.value))
                spent.append(session.budget().spent)
            server.send_signal(signal.SIGTERM)
            assert server.wait(120) == 0
        finally:
            server.kill()
            server.communicate()
    assert answers[0] == answers[1]
    assert spent[0] == spent[1]
    rows, people = answers[0]
    counted = {(sex, visits): round(number.value) for sex, visits, number in rows}
    assert {key: value for key, value in counted.items() if value} == {
        ("f", 2): 1,
        ("m", 1): 1,
        ("m", 0): 1,
    }
    assert round(people) == 3
