"""Real tokens of a real model: counts, in-flight speed, the verified baseline."""

import re

import pytest
from inflight import check_speeds, record_speeds, watched

import spectui.adapters.llama_http as http
from spectui.domain.speculation import Speculation

pytestmark = pytest.mark.embedded

POSITION = re.compile(r'accepted_tokens_per_pos_total\{position="(\d+)"\} (\d+)')
LOOKUP = {"type": "ngram-simple", "ngram_simple": {"size_n": 3, "size_m": 8}}
PREDICTED = re.compile(r"^llamacpp:tokens_predicted_total (\S+)", re.MULTILINE)


def positions(page):
    """Return the accepted counts of a metrics page by position, read independently."""
    return [int(count) for _, count in sorted((int(at), n) for at, n in POSITION.findall(page))]


def test_per_position_counts_are_those_of_metrics(measured, monkeypatch):
    pages = []
    parse = http.parse_metrics

    def keep(text, model=""):
        pages.append(text)
        return parse(text, model)

    monkeypatch.setattr(http, "parse_metrics", keep)
    session = measured(
        {"speculation": LOOKUP, "workload": {"tasks": ["rewrite"], "max_tokens": 96}}, limit=2
    )
    session.measure(session.profile.speculation).result(120)
    found = session.snapshot
    base, arm = found.runs
    assert base.drafted == 0
    assert not base.unverified
    assert found.baseline == base.number
    summary = found.summaries[arm.number]
    assert summary.acceptance.drafted > 0
    assert summary.acceptance.accepted > 0

    last = pages[-1]
    # the arm's launch begins where the counter of tokens falls; its first page with any tokens
    # is the one after the warm-up, which counts for nothing
    predicted = [float(PREDICTED.search(page)[1]) for page in pages]
    launch = max(i for i in range(1, len(pages)) if predicted[i] < predicted[i - 1])
    warm = next(page for page in pages[launch:] if float(PREDICTED.search(page)[1]) > 0)
    before = positions(warm) or [0] * 8
    expected = [now - then for now, then in zip(positions(last), before, strict=True)]
    assert list(summary.acceptance.accepted_at) == expected
    assert sum(expected) == summary.acceptance.accepted
    assert summary.acceptance.drafted == sum(r.timings.drafted for r in arm.requests)


@pytest.mark.slow
@pytest.mark.parametrize("speculation", [{"type": "none"}, LOOKUP], ids=["off", "ngram-simple"])
def test_in_flight_speed_agrees_with_what_the_server_says(measured, speculation, monkeypatch):
    said = record_speeds(monkeypatch, http)
    session = measured(
        {"speculation": speculation, "workload": {"tasks": ["rewrite"], "max_tokens": 300}},
        limit=1,
    )
    with watched(session) as seen:
        session.measure_arms([_arm(session)]).result(120)
    [request] = session.snapshot.runs[0].requests
    assert bool(request.timings.drafted) == (speculation["type"] != "none")
    check_speeds(said, request, seen)


def _arm(session):
    from spectui.domain.runs import Arm

    return Arm(session.profile.speculation)


def test_the_answer_ends_where_the_limit_says(measured):
    session = measured({"workload": {"tasks": ["creative"], "max_tokens": 16}}, limit=2)
    session.measure(Speculation()).result(60)
    for request in session.snapshot.runs[0].requests:
        assert not request.error
        assert 2 <= request.timings.predicted_n <= 16
        assert request.timings.cached_n == 0
        assert request.text.strip()
        assert request.first_token > 0
