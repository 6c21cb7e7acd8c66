"""Measuring a real llama-server: every draft length, known acceptance, in-flight speed."""

import pytest
from inflight import check_speeds, record_speeds, watched

import spectui.adapters.llama_http as http
from spectui.domain.acceptance import standard_error
from spectui.domain.runs import Arm
from spectui.domain.speculation import Speculation

pytestmark = pytest.mark.real

RATES = (0.95, 0.915, 0.88, 0.835, 0.79, 0.767, 0.743, 0.72)


def simple(n_max):
    return Arm(Speculation.of("draft-simple", {"n_max": n_max}))


def test_a_baseline_and_three_draft_lengths(measured):
    session = measured(limit=1, workload={"tasks": ["code", "creative"], "max_tokens": 24})
    session.measure_arms([Arm(), simple(1), simple(4), simple(8)]).result(110)
    found = session.snapshot
    assert [run.arm.name for run in found.runs] == ["off", "n_max 1", "n_max 4", "n_max 8"]
    base, *arms = found.runs
    assert base.drafted == 0
    assert not base.unverified
    for run, length in zip(arms, (1, 4, 8), strict=True):
        acceptance = found.summaries[run.number].acceptance
        assert acceptance.exact
        assert acceptance.drafted == sum(r.timings.drafted for r in run.requests) > 0
        assert len(acceptance.accepted_at) == length
        assert sum(acceptance.accepted_at) == acceptance.accepted
        assert acceptance.drafts <= acceptance.drafted <= length * acceptance.drafts
        assert found.comparisons[run.number].overall.pairs == 2
        assert run.requests[0].text == base.requests[0].text  # lossless


def test_shown_acceptance_is_the_acceptance_that_was_set(measured):
    # one long request: the server draws from its seed, so that a second one would repeat the first
    session = measured(
        args=["--ignore-eos", "--spec-synth-rates", ",".join(map(str, RATES))],
        context=4096,
        limit=1,
        workload={"tasks": ["creative"], "max_tokens": 2000},
    )
    session.measure_arms([simple(len(RATES))]).result(110)
    [run] = session.snapshot.runs
    acceptance = session.snapshot.summaries[run.number].acceptance
    assert acceptance.drafts > 150
    for shown, rate in zip(acceptance.unconditional, RATES, strict=True):
        assert abs(shown - rate) < 4 * standard_error(rate, acceptance.drafts), acceptance


@pytest.mark.parametrize("arm", [Arm(), simple(4)], ids=["off", "n_max 4"])
def test_in_flight_speed_agrees_with_what_the_server_says(measured, arm, monkeypatch):
    said = record_speeds(monkeypatch, http)
    rates = ",".join(map(str, RATES[:4]))
    synthetic = [] if arm.is_baseline else ["--spec-synth-rates", rates]
    session = measured(
        args=["--ignore-eos", *synthetic],
        context=2048,
        limit=1,
        workload={"tasks": ["creative"], "max_tokens": 400},
    )
    with watched(session) as seen:
        session.measure_arms([arm]).result(110)
    [request] = session.snapshot.runs[0].requests
    check_speeds(said, request, seen)
    assert bool(request.timings.drafted) is not arm.is_baseline


def test_a_setting_that_the_server_refuses_brings_back_the_last_good_one(measured):
    # four synthetic rates fit n_max 4 and nothing else
    session = measured(
        args=["--spec-synth-rates", "0.9,0.8,0.7,0.6"],
        limit=1,
        workload={"tasks": ["creative"], "max_tokens": 8},
    )
    session.launch(simple(4).speculation).result(60)
    error = session.launch(simple(8).speculation).exception(60)
    assert "did not start" in str(error)
    assert "synth" in str(error)
    assert session.snapshot.running == simple(4)
