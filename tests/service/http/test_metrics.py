"""Metrics, read back as Prometheus reads them."""

from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from sharewell.service.http.monitoring import BUCKETS, Metrics

ROUTES = st.sampled_from(["/v1/datasets/{dataset}/ask", '/odd "\\ \n', None])
MOMENTS = st.one_of(st.floats(0, 100), st.sampled_from(BUCKETS))


def read(metrics, waiting):
    """Every sample by its name and its labels."""
    text = metrics.render(waiting).decode()
    return {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


@given(st.lists(st.tuples(ROUTES, st.sampled_from([200, 404]), MOMENTS)))
def test_every_request_is_counted_and_falls_into_all_buckets_above_it(requests):
    metrics = Metrics()
    for route, status, seconds in requests:
        metrics.count_request("POST", route, status, seconds)
    found = read(metrics, {"people": 3})
    assert found["sharewell_waiting_tickets", ("dataset", "people")] == 3
    for route in {route for route, _, _ in requests}:
        shown = ("method", "any" if route is None else "POST"), ("route", route or "none")
        own = [(status, seconds) for other, status, seconds in requests if other == route]
        for status in {status for status, _ in own}:
            name = ("sharewell_requests_total", *shown, ("status", str(status)))
            assert found[name] == sum(other == status for other, _ in own)
        for end in BUCKETS:
            below = sum(seconds <= end for _, seconds in own)
            assert found["sharewell_request_seconds_bucket", ("le", str(float(end))), *shown] == below
        assert found["sharewell_request_seconds_bucket", ("le", "+Inf"), *shown] == len(own)
        assert found["sharewell_request_seconds_count", *shown] == len(own)
        total = sum(seconds for _, seconds in own)
        assert abs(found["sharewell_request_seconds_sum", *shown] - total) <= 1e-9 * total


def test_questions_are_counted_by_how_they_end():
    metrics = Metrics()
    for outcome in ("answered", "answered", "refused"):
        metrics.questions.labels("people", outcome).inc()
    found = read(metrics, {})
    name = "sharewell_questions_total", ("dataset", "people")
    assert found[*name, ("outcome", "answered")] == 2
    assert found[*name, ("outcome", "refused")] == 1
